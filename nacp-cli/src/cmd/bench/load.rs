use nacp::proto::{AppId, MessageId, Signal};
use nacp::{Job, NApp, Payload, RequestError, SendError, Subscription};
use tokio::sync::Mutex;

use crate::args::{BenchArgs, BenchMode};
use crate::cmd::serve::{FloodArgs, flood_event};
use crate::dial::not_subscribed;
use crate::exit::Exit;
use crate::failure::Failure;

/// What is done again and again: in the shapes of the bench `end_to_end`, so that the two compare.
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
        signal: Signal,
        /// Kept, so that the event goes on.
        _job: Job,
    },
    Events(Mutex<Flood>),
}

/// Events of the peer, as many under way as its queue surely holds.
#[derive(Debug)]
struct Flood {
    events: Subscription,
    id: MessageId,
    /// How many were asked for and have not come.
    due: u64,
    /// Kept, so that the event goes on.
    _job: Job,
}

const SMALL: u32 = 64;
const LARGE: u32 = 16 << 20;

/// Fewer than a node's backlog holds, by default.
const MOST_DUE: u64 = 1024;

impl Load {
    pub(super) async fn new(args: &BenchArgs, node: &NApp, peer: &AppId) -> Result<Self, Failure> {
        let size = args.size.unwrap_or(match args.mode {
            BenchMode::Large => LARGE,
            BenchMode::Signal => 0,
            BenchMode::Rtt | BenchMode::Throughput | BenchMode::Notify => SMALL,
        });
        let payload = Payload::byte_string(vec![0x5a; size as usize]);
        let kind = match args.mode {
            BenchMode::Rtt | BenchMode::Throughput => Kind::Request(ability(node, peer, "echo")),
            BenchMode::Large => Kind::Request(ability(node, peer, "sink")),
            BenchMode::Signal => {
                let job = flood(node, peer, 0).await?;
                Kind::Signal {
                    id: job.id().cloned().ok_or_else(gone)?,
                    signal: match args.size {
                        Some(_) => Signal::Normal(payload.clone()),
                        None => Signal::Resume,
                    },
                    _job: job,
                }
            }
            BenchMode::Notify => Kind::Events(Mutex::new(Flood::new(node, peer, size).await?)),
        };
        Ok(Self {
            node: node.clone(),
            peer: peer.clone(),
            kind,
            payload,
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

    /// Payload bytes that travel with each, there and back.
    pub(super) fn bytes(&self) -> u64 {
        let there = self.payload.len() as u64;
        match &self.kind {
            Kind::Request("echo") => 2 * there,
            Kind::Signal {
                signal: Signal::Resume,
                ..
            } => 0,
            Kind::Request(_) | Kind::Signal { .. } | Kind::Events(_) => there,
        }
    }

    /// What is called, in a word.
    pub(super) const fn what(&self) -> &'static str {
        match self.kind {
            Kind::Request(name) => name,
            Kind::Signal { .. } => "signal",
            Kind::Events(_) => "event",
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
            Kind::Signal { id, signal, .. } => {
                let sending = self.node.signal(&self.peer, id.clone(), signal.clone());
                sending.await.map_err(|error| lost(&error))
            }
            Kind::Events(flood) => flood.lock().await.next(&self.node, &self.peer).await,
        }
    }
}

impl Flood {
    async fn new(node: &NApp, peer: &AppId, size: u32) -> Result<Self, Failure> {
        let job = flood(node, peer, size).await?;
        let id = job.id().cloned().ok_or_else(gone)?;
        let name = flood_event(&id);
        let events = node.subscribe(peer, &name).await;
        Ok(Self {
            events: events.map_err(|error| not_subscribed("bench", &error))?,
            id,
            due: 0,
            _job: job,
        })
    }

    /// The next event. Asks for more when half of them have come.
    async fn next(&mut self, node: &NApp, peer: &AppId) -> Result<(), Failure> {
        if self.due <= MOST_DUE / 2 {
            let more = MOST_DUE - self.due;
            let signal = Payload::new(&more).map(Signal::Normal);
            let signal = signal.map_err(|error| Failure::usage(error.to_string()))?;
            let sending = node.signal(peer, self.id.clone(), signal);
            sending.await.map_err(|error| lost(&error))?;
            self.due = MOST_DUE;
        }
        let event = self.events.next().await.ok_or_else(gone)?;
        self.due = self.due.saturating_sub(1 + event.missed.unwrap_or(0));
        Ok(())
    }
}

/// The ability of a peer to test against, and elsewhere what every peer has.
fn ability(node: &NApp, peer: &AppId, wanted: &'static str) -> &'static str {
    let declares_it = node.link(peer).is_some_and(|link| {
        let mut abilities = link.decl.abilities.iter();
        abilities.any(|ability| ability.name == wanted)
    });
    if declares_it {
        wanted
    } else {
        "NApp.heartbeat"
    }
}

async fn flood(node: &NApp, peer: &AppId, size: u32) -> Result<Job, Failure> {
    let declares_it = node.link(peer).is_some_and(|link| {
        let mut events = link.decl.events.iter();
        events.any(|event| event.name == "flood")
    });
    if !declares_it {
        let message = format!("{peer} has no event flood");
        return Err(
            Failure::new(Exit::SaidNo, "bench", "no-such-event", message)
                .hint("measure a peer that `nacp-cli serve` runs"),
        );
    }
    let job = node.run(peer, "flood", &FloodArgs { size }).await;
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
