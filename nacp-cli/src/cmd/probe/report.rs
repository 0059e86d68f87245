use std::fmt;
use std::net::SocketAddr;

use nacp::Entry;
use serde::Serialize;

use super::Scope;
use super::resume::Resumed;
use super::stage::{Stage, Status};
use super::stages::Probe;
use crate::escape::escaped;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<Resumed>,
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
    pub(super) fn new(probe: &Probe<'_>, scope: &Scope, ended: Option<&Stop>) -> Self {
        let seen = probe.session.trace.seen();
        let plan = &scope.plan;
        let failed = match ended {
            Some(Stop::Failed(failure) | Stop::Told(failure)) => Some(failure.stage),
            Some(Stop::Output(_) | Stop::Status(_)) | None => None,
        };
        Self {
            target: plan
                .target
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            embedded: scope.embedded,
            own: plan.own.as_str().to_owned(),
            address: seen.connected.as_ref().map(|connected| connected.remote),
            peer: Peer::new(probe, &seen),
            heartbeat: probe.heartbeat,
            resume: probe.resumed,
            stages: probe.stages.done.clone(),
            failed,
            took_ms: millis(probe.began.elapsed()),
        }
    }

    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    pub(super) const fn took_ms(&self) -> f64 {
        self.took_ms
    }

    pub(super) fn warnings(&self) -> usize {
        let stages = self.stages.iter();
        stages.filter(|stage| stage.status == Status::Warn).count()
    }
}

impl fmt::Display for Report {
    /// Who probed whom, in a few lines of Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "- target: `{}`", escaped(&self.target))?;
        if let Some(address) = self.address {
            writeln!(f, "- address: {address}")?;
        }
        writeln!(f, "- own AppId: `{}`", escaped(&self.own))?;
        let Some(peer) = &self.peer else {
            return writeln!(f, "- peer: not known");
        };
        let version = peer.version.as_deref().unwrap_or("of an unknown version");
        let kind = if peer.native { "native" } else { "foreign" };
        let gateway = if peer.gateway { ", a gateway" } else { "" };
        writeln!(
            f,
            "- peer: `{}`, NACP {version}, {kind}{gateway}",
            escaped(&peer.app)
        )
    }
}

impl Peer {
    /// Only of an app that let us in.
    fn new(probe: &Probe<'_>, seen: &crate::trace::Seen) -> Option<Self> {
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
