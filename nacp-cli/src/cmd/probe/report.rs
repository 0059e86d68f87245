use std::net::SocketAddr;

use nacp::Entry;
use serde::Serialize;

use super::stage::{Stage, Status};
use super::stages::Probe;
use crate::dial::Plan;
use crate::failure::Stop;
use crate::latency::{Summary, millis};

/// What `probe --json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    target: String,
    /// Whether the peer was one inside this process.
    embedded: bool,
    /// The own AppId.
    own: String,
    address: Option<SocketAddr>,
    peer: Option<Peer>,
    heartbeat: Option<Summary>,
    stages: Vec<Stage>,
    /// The stage that failed.
    failed: Option<&'static str>,
    took_ms: f64,
}

#[derive(Debug, Serialize)]
struct Peer {
    app: String,
    /// Major and minor, as the peer sends them.
    version: Option<String>,
    gateway: bool,
    /// Whether it speaks our dialect: sessions, and what stands on them.
    native: bool,
    max_message_bytes: Option<u64>,
    abilities: Option<Vec<Entry>>,
    events: Option<Vec<Entry>>,
}

impl Report {
    pub(super) fn new(probe: &Probe, plan: &Plan, embedded: bool, ended: Option<&Stop>) -> Self {
        let seen = probe.trace().seen();
        let failed = match ended {
            Some(Stop::Failed(failure) | Stop::Told(failure)) => Some(failure.stage),
            Some(Stop::Output(_)) | None => None,
        };
        Self {
            target: plan
                .target
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            embedded,
            own: plan.own.as_str().to_owned(),
            address: seen.connected.as_ref().map(|connected| connected.remote),
            peer: Peer::new(probe, &seen),
            heartbeat: probe.heartbeat,
            stages: probe.stages.done.clone(),
            failed,
            took_ms: millis(probe.began.elapsed()),
        }
    }

    pub(super) const fn took_ms(&self) -> f64 {
        self.took_ms
    }

    pub(super) fn warnings(&self) -> usize {
        let stages = self.stages.iter();
        stages.filter(|stage| stage.status == Status::Warn).count()
    }
}

impl Peer {
    /// Only of an app that let us in.
    fn new(probe: &Probe, seen: &crate::trace::Seen) -> Option<Self> {
        let app = probe.peer.as_ref()?;
        let answer = seen.handshake.answer.as_ref()?;
        let info = answer.outcome.as_ref().ok()?;
        let decl = probe.decl.as_ref();
        Some(Self {
            app: app.as_str().to_owned(),
            version: answer
                .version
                .map(|(major, minor)| format!("{major}.{minor}")),
            gateway: info.is_gateway,
            native: info.instance.is_some(),
            max_message_bytes: info.max_message_bytes,
            abilities: decl.map(|decl| decl.abilities.clone()),
            events: decl.map(|decl| decl.events.clone()),
        })
    }
}
