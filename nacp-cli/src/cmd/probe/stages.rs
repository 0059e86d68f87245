use std::time::{Duration, Instant};

use nacp::Decl;
use nacp::proto::AppId;

use super::handshake;
use super::stage::{Stage, Stages};
use crate::dial::{Plan, Session};
use crate::escape::escaped;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::latency::{Latency, Summary, millis};
use crate::output::Output;
use crate::target::Target;

/// What a probe has found so far.
#[derive(Debug)]
pub(super) struct Probe {
    session: Session,
    pub(super) stages: Stages,
    pub(super) began: Instant,
    deadline: tokio::time::Instant,
    count: u32,
    /// The stage under way, once there is a link.
    current: Option<&'static str>,
    pub(super) peer: Option<AppId>,
    pub(super) decl: Option<Decl>,
    pub(super) heartbeat: Option<Summary>,
}

const STAGES: [&str; 8] = [
    "resolve",
    "connect",
    "frame",
    "register",
    "ack",
    "introduce",
    "heartbeat",
    "good-bye",
];

/// On this machine, what TCP's delayed ACK costs a peer that writes header and body apart.
const DELAYED_ACK: Duration = Duration::from_millis(35);

impl Probe {
    pub(super) async fn start(plan: &Plan, target: Target, count: u32) -> Result<Self, Failure> {
        // Beats of the node itself would mix with those that are measured.
        let session = Session::start(plan, target, |builder| builder.heartbeat_interval(None));
        Ok(Self {
            session: session.await?,
            stages: Stages::new(STAGES.to_vec()),
            began: Instant::now(),
            deadline: plan.deadline(),
            count,
            current: None,
            peer: None,
            decl: None,
            heartbeat: None,
        })
    }

    /// Goes through all stages, up to the first that fails; the others show as skipped.
    pub(super) async fn go(&mut self, output: &mut Output) -> Result<(), Stop> {
        let ended = self.all(output).await;
        if let Err(Stop::Failed(failure)) = &ended {
            self.failed(failure, output)?;
        }
        ended
    }

    /// The user has seen enough.
    pub(super) fn interrupted(&mut self, output: &mut Output) -> Result<(), Stop> {
        let current = self
            .current
            .unwrap_or_else(|| handshake::current(&self.session.trace));
        let failure = Failure::interrupted(current);
        self.failed(&failure, output)?;
        Err(failure.into())
    }

    pub(super) const fn trace(&self) -> &crate::trace::Trace {
        &self.session.trace
    }

    pub(super) async fn close(self, interrupt: &Interrupt) {
        self.session.close(interrupt).await;
    }

    async fn all(&mut self, output: &mut Output) -> Result<(), Stop> {
        let peer = self.connect(output).await?;
        self.peer = Some(peer.clone());
        self.current = Some("introduce");
        self.introduce(&peer, output).await?;
        self.current = Some("heartbeat");
        self.heartbeat(&peer, output).await?;
        self.current = Some("good-bye");
        self.good_bye(&peer, output).await
    }

    fn failed(&mut self, failure: &Failure, output: &mut Output) -> Result<(), Stop> {
        match self.current {
            None => handshake::fail(&mut self.stages, &self.session.trace, failure, output)?,
            Some(_) => self.stages.push(Stage::failed(failure, None), output)?,
        }
        Ok(self.stages.skip_rest(output)?)
    }

    async fn connect(&mut self, output: &mut Output) -> Result<AppId, Stop> {
        let connecting = self.session.connect(self.deadline);
        let mut connecting = std::pin::pin!(connecting);
        let peer = loop {
            tokio::select! {
                biased;
                connected = &mut connecting => break connected?,
                () = self.session.trace.changed() => {
                    handshake::advance(&mut self.stages, &self.session.trace, output)?;
                }
            }
        };
        handshake::finish(&mut self.stages, &self.session.trace, output)?;
        Ok(peer)
    }

    async fn introduce(&mut self, peer: &AppId, output: &mut Output) -> Result<(), Stop> {
        let began = Instant::now();
        let call = self.session.node.introduce(peer);
        let decl = self
            .session
            .answer("introduce", self.deadline, call)
            .await?;
        let stage = Stage::ok("introduce", Some(began.elapsed()), declared(&decl));
        self.decl = Some(decl);
        Ok(self.stages.push(stage, output)?)
    }

    async fn heartbeat(&mut self, peer: &AppId, output: &mut Output) -> Result<(), Stop> {
        let began = Instant::now();
        let mut latency = Latency::new();
        for _ in 0..self.count {
            let call = self.session.node.heartbeat(peer);
            latency.record(
                self.session
                    .answer("heartbeat", self.deadline, call)
                    .await?,
            );
        }
        self.heartbeat = latency.summary();
        let Some(summary) = self.heartbeat else {
            return Ok(self
                .stages
                .push(Stage::ok("heartbeat", None, "none asked for"), output)?);
        };
        let detail = format!("{} round trips: {summary}", summary.count);
        let stage = Stage::ok("heartbeat", Some(began.elapsed()), detail);
        let stage = if self.is_local() && summary.p50_ms >= millis(DELAYED_ACK) {
            stage.warn(
                "on one machine this is slow: does the peer write header and body apart, without \
                 TCP_NODELAY? TypeScript peers do",
            )
        } else {
            stage
        };
        Ok(self.stages.push(stage, output)?)
    }

    async fn good_bye(&mut self, peer: &AppId, output: &mut Output) -> Result<(), Stop> {
        let began = Instant::now();
        let parting = self.session.node.disconnect(peer);
        let stage = match tokio::time::timeout_at(self.deadline, parting).await {
            Ok(Ok(())) => Stage::ok("good-bye", Some(began.elapsed()), ""),
            Ok(Err(_)) | Err(_) => {
                return Err(Failure::timed_out("good-bye", "no answer to the unregister").into());
            }
        };
        Ok(self.stages.push(stage, output)?)
    }

    fn is_local(&self) -> bool {
        let seen = self.session.trace.seen();
        let connected = seen.connected.as_ref();
        connected.is_some_and(|connected| connected.remote.ip().to_canonical().is_loopback())
    }
}

/// What an app declares, a line for each kind.
fn declared(decl: &Decl) -> String {
    let line = |kind: &str, entries: &[nacp::Entry]| match entries {
        [] => format!("no {kind}"),
        _ => {
            let names: Vec<_> = entries.iter().map(|entry| escaped(&entry.name)).collect();
            format!("{} {kind}: {}", entries.len(), names.join(", "))
        }
    };
    format!(
        "{}\n{}",
        line("abilities", &decl.abilities),
        line("events", &decl.events)
    )
}
