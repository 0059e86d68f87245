//! Nodes and wires in virtual time.
//!
//! A [`World`] holds nodes and the wires between them. Every message crosses a wire as bytes: what
//! a node gives out is encoded, what it gets is decoded. Nothing moves but in [`World::run`] and
//! [`World::advance_to`]; a deadline that is due at an instant precedes a message of that instant.

mod dice;
mod drive;
mod hand;
mod log;
mod site;
mod text;
mod told;
mod wire;
mod wiring;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use bytes::Bytes;
use nacp_link::{Config, Inbound, Interest, Node, Token, Trust};
use nacp_proto::{AppId, Message, MessageId};

pub(crate) use dice::Dice;
pub(crate) use hand::Hand;
pub(crate) use site::Site;
pub(crate) use text::{app, id, payload, text_of};
pub(crate) use wire::{Crossing, End, Intake, Mode, Parcel, Wire};

/// The wall clock at the start of every world, in milliseconds since 1970.
pub(crate) const UNIX_MS: f64 = 1_700_000_000_000.0;

/// The dialling end of a wire.
pub(crate) const DIALLER: usize = 0;
/// The accepting end of a wire.
pub(crate) const ACCEPTOR: usize = 1;

/// Nodes, the wires between them, and one clock.
#[derive(Debug)]
pub(crate) struct World {
    epoch: Instant,
    now: Instant,
    /// The nodes, in the order in which they were added.
    pub(crate) sites: Vec<Site>,
    /// The wires, in the order in which they were laid.
    pub(crate) wires: Vec<Wire>,
    /// What crossed a wire, in the order in which it left its node.
    pub(crate) log: Vec<Crossing>,
    /// What is known of either end of wires laid from now on.
    pub(crate) trust: Trust,
    flying: BTreeMap<(Instant, u64), Flight>,
    labels: HashMap<MessageId, String>,
    launched: u64,
    tokens: u64,
    first_alive: usize,
}

#[derive(Debug)]
struct Flight {
    wire: usize,
    to: usize,
    parcel: Parcel,
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to an Instant"
)]
fn some_instant() -> Instant {
    Instant::now()
}

/// The defaults with beats off.
pub(crate) fn quiet(name: &str) -> Config {
    Config::new(app(name)).heartbeat_interval(None)
}

/// So many milliseconds.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// So many seconds.
pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl World {
    pub(crate) fn new() -> Self {
        let epoch = some_instant();
        Self {
            epoch,
            now: epoch,
            sites: Vec::new(),
            wires: Vec::new(),
            log: Vec::new(),
            trust: Trust::Unproven,
            flying: BTreeMap::new(),
            labels: HashMap::new(),
            launched: 0,
            tokens: 0,
            first_alive: 0,
        }
    }

    /// A world with a node for each configuration.
    pub(crate) fn with(configs: impl IntoIterator<Item = Config>) -> Self {
        let mut world = Self::new();
        for config in configs {
            world.add(config);
        }
        world
    }

    /// Adds a node, every report of which is collected. Its index is its name from now on.
    pub(crate) fn add(&mut self, config: Config) -> usize {
        let mut seed = [0; 32];
        seed[0] = u8::try_from(self.sites.len()).unwrap();
        self.add_seeded(config, seed)
    }

    pub(crate) fn add_seeded(&mut self, config: Config, seed: [u8; 32]) -> usize {
        let node = self.build(config, seed);
        self.sites.push(Site::new(node));
        self.sites.len() - 1
    }

    pub(super) fn build(&self, config: Config, seed: [u8; 32]) -> Node {
        let unix_ms = UNIX_MS + self.at().as_secs_f64() * 1000.0;
        let mut node = Node::new(config, self.now, unix_ms, seed).unwrap();
        node.set_interest(Interest::ALL);
        node
    }

    /// The process of a node dies without a word, and starts again: its wires end, its memory goes.
    pub(crate) fn restart(&mut self, site: usize, config: Config, seed: [u8; 32]) {
        for wire in 0..self.wires.len() {
            for end in [DIALLER, ACCEPTOR] {
                if self.wires[wire].is_site(end, site) && !self.wires[wire].gone[end] {
                    self.wires[wire].gone[end] = true;
                    self.forget_flights(wire);
                    self.launch_end(wire, 1 - end, None);
                }
            }
        }
        let node = self.build(config, seed);
        self.sites[site].reborn(node);
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Time since the world began.
    pub(crate) fn at(&self) -> Duration {
        self.now - self.epoch
    }

    pub(crate) fn node(&mut self, site: usize) -> &mut Node {
        &mut self.sites[site].node
    }

    pub(crate) fn app_of(&self, site: usize) -> AppId {
        self.sites[site].node.app_id().clone()
    }

    pub(crate) fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// Everything that is due at this instant.
    pub(crate) fn run(&mut self) {
        for turn in 0.. {
            assert!(turn < 10_000_000, "the world does not come to rest");
            self.drain();
            if !self.fire_one() && !self.deliver_one() {
                return;
            }
        }
    }

    /// Goes to a time since the world began, and runs everything on the way and at it.
    pub(crate) fn advance_to(&mut self, at: Duration) {
        let target = self.epoch + at;
        assert!(target >= self.now, "time does not go back");
        loop {
            self.run();
            match self.next_due() {
                Some(next) if next <= target => self.now = next,
                _ => break,
            }
        }
        self.now = target;
        self.run();
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.advance_to(self.at() + by);
    }

    /// Goes to a time without running anything on the way: every driver is late.
    pub(crate) fn oversleep_to(&mut self, at: Duration) {
        self.now = self.epoch + at;
    }

    /// The next deadline or arrival.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let timers = self
            .sites
            .iter()
            .filter_map(|site| site.node.poll_timeout());
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        timers.chain(arrival).min()
    }

    pub(super) fn fire_one(&mut self) -> bool {
        let now = self.now;
        let due = |site: &&mut Site| site.node.poll_timeout().is_some_and(|due| due <= now);
        let Some(site) = self.sites.iter_mut().find(due) else {
            return false;
        };
        site.node.handle_timeout(now);
        let rest = site.node.poll_timeout();
        assert!(
            rest.is_none_or(|due| due > now),
            "{rest:?} is due after its handle_timeout"
        );
        true
    }

    pub(super) fn deliver_one(&mut self) -> bool {
        let Some(entry) = self.flying.first_entry() else {
            return false;
        };
        if entry.key().0 > self.now {
            return false;
        }
        let Flight { wire, to, parcel } = entry.remove();
        if self.wires[wire].paused[to] {
            self.wires[wire].ways[1 - to].unread.push_back(parcel);
        } else {
            self.arrive(wire, to, parcel);
        }
        true
    }

    pub(super) fn arrive(&mut self, wire: usize, to: usize, parcel: Parcel) {
        if self.wires[wire].gone[to] {
            return;
        }
        match parcel {
            Parcel::End { fault } => {
                self.disconnect_end(wire, to, fault);
                // A side that only waited for this is done as well.
                self.disconnect_end(wire, 1 - to, None);
            }
            Parcel::Message { bytes, entry } => {
                self.log[entry].arrived = Some(self.now - self.epoch);
                self.read(wire, to, bytes, entry);
            }
        }
    }

    pub(super) fn read(&mut self, wire: usize, to: usize, bytes: Bytes, entry: usize) {
        let now = self.now;
        match self.wires[wire].ends[to] {
            End::Hand => hand::handle(self, wire, to, entry),
            End::Site { site, peer } => match Message::decode(&bytes) {
                Ok(decoded) => {
                    let inbound = Inbound { bytes, decoded };
                    self.sites[site].node.handle_message(now, peer, inbound);
                }
                Err(fault) => {
                    self.disconnect_end(wire, to, Some(fault.reason()));
                    self.launch_end(wire, 1 - to, None);
                }
            },
        }
    }
}
