use std::future::IntoFuture;
use std::time::Instant;

use nacp::proto::AppId;
use nacp::{LinkState, LinkWatch};
use serde::Serialize;
use tokio::time::timeout_at;

use super::stage::Stage;
use super::stages::Probe;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::latency::millis;

/// How a link came back after its connection was cut.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Resumed {
    /// Whether the peer went on where it had stopped.
    resumed: bool,
    /// Messages that were sent again.
    replayed: u64,
    /// From the cut to the answer of a request made meanwhile.
    took_ms: f64,
}

const STAGE: &str = "resume";

/// Cuts the connection under the link, sends a request meanwhile, registers again, and waits for
/// the answer: what was queued must go out and be answered.
pub(super) async fn resume(probe: &Probe<'_>, peer: &AppId) -> Result<(Stage, Resumed), Failure> {
    let node = &probe.session.node;
    let mut changes = node.watch_links();
    let began = Instant::now();
    if !probe.session.trace.cut() {
        return Err(Failure::local(STAGE, "cannot cut the connection"));
    }
    wait_for(LinkState::Offline, probe, &mut changes).await?;
    let meanwhile = node.heartbeat(peer);
    let mut meanwhile = std::pin::pin!(meanwhile);
    let target = nacp::Target::from(&probe.session.target.address).expect(peer.clone());
    let connecting = node.connect(target).into_future();
    let back = async {
        tokio::select! {
            biased;
            // Polled first, so that it is queued before the link is back.
            early = &mut meanwhile => early.map(drop).map_err(|error| error.to_string()),
            connected = connecting => {
                connected.map_err(|error| error.to_string())?;
                meanwhile.await.map(drop).map_err(|error| error.to_string())
            }
        }
    };
    match timeout_at(probe.deadline, back).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(not_back(&error)),
        Err(_) => {
            return Err(Failure::timed_out(
                STAGE,
                "the link did not come back in time",
            ));
        }
    }
    let took = began.elapsed();
    let resumed = wait_for(LinkState::Online, probe, &mut changes).await?;
    let found = Resumed {
        resumed,
        replayed: node.link(peer).map_or(0, |link| link.replayed),
        took_ms: millis(took),
    };
    Ok((stage(found, took), found))
}

fn stage(found: Resumed, took: std::time::Duration) -> Stage {
    let replayed = found.replayed;
    if found.resumed {
        let detail = format!("cut, registered again, resumed; replayed {replayed}");
        return Stage::ok(STAGE, Some(took), detail);
    }
    let detail = format!("cut, registered again, as a new link; replayed {replayed}");
    Stage::ok(STAGE, Some(took), detail)
        .warn("the peer had forgotten the link: calls under way at a cut are lost there")
}

fn not_back(error: &str) -> Failure {
    Failure::new(
        Exit::LinkLost,
        STAGE,
        "peer-gone",
        format!("the link did not come back: {error}"),
    )
}

/// Waits until the link is so; says whether it was resumed.
async fn wait_for(
    state: LinkState,
    probe: &Probe<'_>,
    changes: &mut LinkWatch,
) -> Result<bool, Failure> {
    let waiting = async {
        while let Some(change) = changes.next().await {
            if change.state == state {
                return change.resumed.unwrap_or(true);
            }
        }
        false
    };
    let late = |_| Failure::timed_out(STAGE, "the cut was not noticed in time");
    timeout_at(probe.deadline, waiting).await.map_err(late)
}
