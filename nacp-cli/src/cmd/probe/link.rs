//! The stages that use the link.

use std::time::{Duration, Instant};

use nacp::Decl;
use nacp::proto::AppId;
use tokio::time::timeout_at;
use uuid::Uuid;

use super::Call;
use super::stage::Stage;
use super::stages::Probe;
use crate::dial::not_subscribed;
use crate::escape::escaped;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::latency::{Latency, Summary, millis};

/// On this machine, what TCP's delayed ACK costs a peer that writes header and body apart.
const DELAYED_ACK: Duration = Duration::from_millis(35);

/// Asks for what the app declares. A peer that keeps it to itself may be well in all else.
pub(super) async fn introduce(
    probe: &Probe<'_>,
    peer: &AppId,
) -> Result<(Stage, Option<Decl>), Failure> {
    let began = Instant::now();
    let call = probe.session.node.introduce(peer);
    let answer = probe.session.answer("introduce", probe.deadline, call);
    let answer = answer.await;
    let took = Some(began.elapsed());
    match answer {
        Ok(decl) => Ok((Stage::ok("introduce", took, declared(&decl)), Some(decl))),
        Err(refusal) if refusal.exit == Exit::SaidNo => {
            let stage = refused("introduce", took, &refusal);
            let hint = "what the app declares is not known; the protocol asks for an answer";
            Ok((stage.warn(hint), None))
        }
        Err(failure) => Err(failure),
    }
}

fn refused(stage: &'static str, took: Option<Duration>, refusal: &Failure) -> Stage {
    Stage::ok(stage, took, format!("refused: {}", refusal.message))
}

/// What an app declares, a line for each kind.
fn declared(decl: &Decl) -> String {
    let abilities = listed("ability", "abilities", &decl.abilities);
    let events = listed("event", "events", &decl.events);
    format!("{abilities}\n{events}")
}

fn listed(one: &str, many: &str, entries: &[nacp::Entry]) -> String {
    let names: Vec<_> = entries.iter().map(|entry| escaped(&entry.name)).collect();
    let names = names.join(", ");
    match entries.len() {
        0 => format!("no {many}"),
        1 => format!("1 {one}: {names}"),
        count => format!("{count} {many}: {names}"),
    }
}

pub(super) async fn heartbeat(
    probe: &Probe<'_>,
    peer: &AppId,
    count: u32,
) -> Result<(Stage, Option<Summary>), Failure> {
    let began = Instant::now();
    let mut latency = Latency::new();
    for _ in 0..count {
        let call = probe.session.node.heartbeat(peer);
        latency.record(
            probe
                .session
                .answer("heartbeat", probe.deadline, call)
                .await?,
        );
    }
    let Some(summary) = latency.summary() else {
        return Ok((Stage::ok("heartbeat", None, "none asked for"), None));
    };
    let detail = format!("{} round trips: {summary}", summary.count);
    let mut stage = Stage::ok("heartbeat", Some(began.elapsed()), detail);
    if is_local(probe) && summary.p50_ms >= millis(DELAYED_ACK) {
        stage = stage.warn(
            "on one machine this is slow: does the peer write header and body apart, without \
             TCP_NODELAY? TypeScript peers do",
        );
    }
    Ok((stage, Some(summary)))
}

fn is_local(probe: &Probe<'_>) -> bool {
    let seen = probe.session.trace.seen();
    let connected = seen.connected.as_ref();
    connected.is_some_and(|connected| connected.remote.ip().to_canonical().is_loopback())
}

/// Subscribes to a name that nobody else uses, and unsubscribes.
pub(super) async fn subscribe(probe: &Probe<'_>, peer: &AppId) -> Result<Stage, Failure> {
    let began = Instant::now();
    let name = format!("nacp-cli:probe:{}", Uuid::new_v4().simple());
    let there_and_back = async {
        let subscription = probe.session.node.subscribe(peer, &name).await?;
        subscription.unsubscribe().await
    };
    let ended = timeout_at(probe.deadline, there_and_back).await;
    let took = Some(began.elapsed());
    match ended {
        Ok(Ok(())) => Ok(Stage::ok("subscribe", took, "and unsubscribe")),
        Ok(Err(error)) => {
            let failure = not_subscribed("subscribe", &error);
            if failure.exit != Exit::SaidNo {
                return Err(failure);
            }
            let hint = "the probe's own event was refused; others may not be";
            Ok(refused("subscribe", took, &failure).warn(hint))
        }
        Err(_) => Err(Failure::timed_out(
            "subscribe",
            "no answer to the subscribe",
        )),
    }
}

pub(super) async fn call(probe: &Probe<'_>, peer: &AppId, call: &Call) -> Result<Stage, Failure> {
    let began = Instant::now();
    let request = probe
        .session
        .node
        .request_raw(peer, &call.name, call.payload.clone());
    let answer = probe
        .session
        .answer("call", probe.deadline, request)
        .await?;
    let detail = format!("{} answered {} bytes", escaped(&call.name), answer.len());
    Ok(Stage::ok("call", Some(began.elapsed()), detail))
}

pub(super) async fn good_bye(probe: &Probe<'_>, peer: &AppId) -> Result<Stage, Failure> {
    let began = Instant::now();
    let parting = probe.session.node.disconnect(peer);
    match timeout_at(probe.deadline, parting).await {
        Ok(Ok(())) => Ok(Stage::ok("good-bye", Some(began.elapsed()), "")),
        Ok(Err(_)) | Err(_) => Err(Failure::timed_out(
            "good-bye",
            "no answer to the unregister",
        )),
    }
}
