use nacp::proto::{AppId, MessageId, Signal};
use nacp::{Job, JobItems, JobResponse, NApp, Payload, RequestError, SendError};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::args::{BenchArgs, BenchMode};
use crate::exit::Exit;
use crate::failure::Failure;

/// What is done again and again.
#[derive(Debug)]
pub(super) struct Load {
    node: NApp,
    peer: AppId,
    kind: Kind,
    payload: Payload,
    mode: BenchMode,
}

#[derive(Debug)]
enum Kind {
    Request(&'static str),
    Signal {
        id: MessageId,
        /// Kept, so that the event goes on.
        _job: JobResponse,
    },
    Items {
        items: Mutex<JobItems>,
        _job: JobResponse,
    },
}

#[derive(Serialize)]
struct Countdown {
    from: u64,
    ms: u64,
}

const SMALL: u32 = 64;
const LARGE: u32 = 16 << 20;

impl Load {
    pub(super) async fn new(args: &BenchArgs, node: &NApp, peer: &AppId) -> Result<Self, Failure> {
        let size = args.size.unwrap_or(match args.mode {
            BenchMode::Large => LARGE,
            BenchMode::Rtt | BenchMode::Throughput | BenchMode::Signal | BenchMode::Notify => SMALL,
        });
        let kind = match args.mode {
            BenchMode::Rtt | BenchMode::Throughput | BenchMode::Large => {
                Kind::Request(ability(node, peer))
            }
            BenchMode::Signal => {
                // An event that goes on for longer than anybody measures.
                let job = countdown(node, peer, 1, 1 << 40).await?;
                let id = job.id().cloned().ok_or_else(gone)?;
                let (_, job) = job.split();
                Kind::Signal { id, _job: job }
            }
            BenchMode::Notify => {
                let (items, job) = countdown(node, peer, u64::MAX, 0).await?.split();
                let items = Mutex::new(items);
                Kind::Items { items, _job: job }
            }
        };
        Ok(Self {
            node: node.clone(),
            peer: peer.clone(),
            kind,
            payload: Payload::byte_string(vec![0x5a; size as usize]),
            mode: args.mode,
        })
    }

    /// In flight, if nobody says otherwise.
    pub(super) const fn concurrency(&self) -> u32 {
        match self.mode {
            BenchMode::Rtt | BenchMode::Notify | BenchMode::Large => 1,
            BenchMode::Throughput | BenchMode::Signal => 64,
        }
    }

    /// Bytes that travel with each, there and back.
    pub(super) fn bytes(&self) -> u64 {
        let there = self.payload.len() as u64;
        match self.kind {
            Kind::Request("echo") => 2 * there,
            Kind::Request(_) | Kind::Signal { .. } => there,
            Kind::Items { .. } => 0,
        }
    }

    /// What is called, in a word.
    pub(super) const fn what(&self) -> &'static str {
        match self.kind {
            Kind::Request(name) => name,
            Kind::Signal { .. } => "signal",
            Kind::Items { .. } => "process item",
        }
    }

    pub(super) async fn once(&self) -> Result<(), Failure> {
        match &self.kind {
            Kind::Request(name) => {
                let request = self
                    .node
                    .request_raw(&self.peer, name, self.payload.clone());
                request.await.map(drop).map_err(|error| refused(&error))
            }
            Kind::Signal { id, .. } => {
                let signal = Signal::Normal(self.payload.clone());
                let sending = self.node.signal(&self.peer, id.clone(), signal);
                sending.await.map_err(|error| lost(&error))
            }
            Kind::Items { items, .. } => {
                let item = items.lock().await.next().await;
                item.map(drop).ok_or_else(gone)
            }
        }
    }
}

/// The echo of a peer to test against, and elsewhere what every peer has.
fn ability(node: &NApp, peer: &AppId) -> &'static str {
    let declares_echo = node.link(peer).is_some_and(|link| {
        link.decl
            .abilities
            .iter()
            .any(|ability| ability.name == "echo")
    });
    if declares_echo {
        "echo"
    } else {
        "NApp.heartbeat"
    }
}

async fn countdown(node: &NApp, peer: &AppId, from: u64, ms: u64) -> Result<Job, Failure> {
    let declares_it = node.link(peer).is_some_and(|link| {
        link.decl
            .events
            .iter()
            .any(|event| event.name == "countdown")
    });
    if !declares_it {
        let message = format!("{peer} has no event countdown");
        return Err(
            Failure::new(Exit::SaidNo, "bench", "no-such-event", message)
                .hint("measure a peer that `nacp-cli serve` runs"),
        );
    }
    let job = node.run(peer, "countdown", &Countdown { from, ms }).await;
    job.map_err(|error| refused(&error))
}

fn refused(error: &RequestError) -> Failure {
    let exit = match error {
        RequestError::Rejected { .. } => Exit::SaidNo,
        RequestError::App(_)
        | RequestError::Encode(_)
        | RequestError::Undelivered(_)
        | RequestError::Decode(_)
        | _ => Exit::LinkLost,
    };
    Failure::new(exit, "bench", "peer-gone", error.to_string())
}

fn lost(error: &SendError) -> Failure {
    Failure::new(Exit::LinkLost, "bench", "peer-gone", error.to_string())
}

fn gone() -> Failure {
    Failure::new(Exit::LinkLost, "bench", "peer-gone", "the event has ended")
}
