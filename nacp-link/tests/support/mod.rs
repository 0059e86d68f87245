//! Nodes and wires in virtual time.
//!
//! A [`World`] holds nodes and the wires between them. Every message crosses a wire as bytes: what
//! a node gives out is encoded, what it gets is decoded. Nothing moves but in [`World::run`] and
//! [`World::advance_to`]; a deadline that is due at an instant precedes a message of that instant.

mod hand;
mod site;
mod text;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use bytes::Bytes;
use nacp_link::{Close, Config, Connect, Content, DialId, Event, Inbound, Lane};
use nacp_link::{Interest, Node, Origin, PeerId, Token, Transmit, Trust};
use nacp_proto::{AppId, Decoded, Message, MessageId};

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

    fn build(&self, config: Config, seed: [u8; 32]) -> Node {
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

    // Wires.

    /// Lays a wire between two nodes for an attempt of the first; nothing runs yet.
    pub(crate) fn lay(&mut self, from: usize, dial: DialId, to: usize) -> usize {
        let wire = self.wires.len();
        self.wires.push(Wire::new());
        self.join(wire, DIALLER, from, Origin::Dialled(dial));
        self.join(wire, ACCEPTOR, to, Origin::Accepted);
        wire
    }

    fn join(&mut self, wire: usize, end: usize, site: usize, origin: Origin) {
        let (now, trust) = (self.now, self.trust);
        let peer = self.sites[site].node.handle_connected(now, origin, trust);
        self.sites[site].peers.insert(peer, (wire, end));
        self.wires[wire].ends[end] = End::Site { site, peer };
    }

    /// The first node wants the second online: the wire and the token of the attempt. Nothing runs yet.
    pub(crate) fn dial(&mut self, from: usize, to: usize) -> (usize, Token) {
        let target = self.app_of(to);
        let token = self.token();
        let connect = (self.sites[from].node).connect(Some(target), None, Some(token));
        let Connect::Dial(dial) = connect else {
            panic!("expected a dial, got {connect:?}");
        };
        (self.lay(from, dial, to), token)
    }

    /// Dials and runs; the attempt must end well at once.
    pub(crate) fn link(&mut self, from: usize, to: usize) -> usize {
        let (wire, token) = self.dial(from, to);
        self.run();
        let expected = format!("connected {}", self.app_of(to));
        assert_eq!(self.outcome(from, token), expected);
        wire
    }

    /// Both ends notice the end of a wire; what was under way is lost.
    pub(crate) fn cut(&mut self, wire: usize) {
        self.notice(wire, DIALLER, None);
        self.notice(wire, ACCEPTOR, None);
    }

    /// One end is told that its wire has ended; what was under way is lost.
    pub(crate) fn notice(&mut self, wire: usize, end: usize, fault: Option<&'static str>) {
        self.forget_flights(wire);
        self.disconnect_end(wire, end, fault);
    }

    fn disconnect_end(&mut self, wire: usize, end: usize, fault: Option<&'static str>) {
        if std::mem::replace(&mut self.wires[wire].gone[end], true) {
            return;
        }
        let now = self.now;
        if let End::Site { site, peer } = self.wires[wire].ends[end] {
            (self.sites[site].node).handle_disconnected(now, peer, fault);
        }
    }

    fn forget_flights(&mut self, wire: usize) {
        self.flying.retain(|_, flight| flight.wire != wire);
        for way in &mut self.wires[wire].ways {
            way.held.clear();
            way.unread.clear();
            way.outbox = [const { std::collections::VecDeque::new() }; 2];
        }
    }

    /// What happens from now on to bytes that leave an end.
    pub(crate) fn set_mode(&mut self, wire: usize, from: usize, mode: Mode) {
        self.wires[wire].ways[from].mode = mode;
    }

    pub(crate) fn hold(&mut self, wire: usize, from: usize) {
        self.set_mode(wire, from, Mode::Hold);
    }

    /// Neither end's bytes arrive any more, and nobody is told.
    pub(crate) fn swallow(&mut self, wire: usize) {
        self.set_mode(wire, DIALLER, Mode::Swallow);
        self.set_mode(wire, ACCEPTOR, Mode::Swallow);
    }

    /// Passes on what was held, and everything after it.
    pub(crate) fn release(&mut self, wire: usize, from: usize) {
        self.set_mode(wire, from, Mode::Deliver);
        self.release_some(wire, from, usize::MAX);
    }

    /// Passes on the first so many of what was held, and holds on.
    pub(crate) fn release_some(&mut self, wire: usize, from: usize, count: usize) {
        for _ in 0..count {
            let Some(parcel) = self.wires[wire].ways[from].held.pop_front() else {
                return;
            };
            self.launch(wire, from, parcel);
        }
    }

    pub(crate) fn set_intake(&mut self, wire: usize, from: usize, intake: Intake) {
        self.wires[wire].ways[from].intake = intake;
    }

    pub(crate) fn set_delay(&mut self, wire: usize, delay: Duration) {
        for way in &mut self.wires[wire].ways {
            way.delay = delay;
        }
    }

    /// The provider of a stalled end takes so many more messages, control first.
    pub(crate) fn accept(&mut self, wire: usize, from: usize, count: usize) {
        for _ in 0..count {
            if !self.take_one(wire, from) {
                return;
            }
        }
        self.report_accepted(wire, from);
    }

    /// Tells a node what its provider has accepted so far.
    pub(crate) fn report_accepted(&mut self, wire: usize, from: usize) {
        let accepted = self.wires[wire].ways[from].accepted;
        let now = self.now;
        if let (End::Site { site, peer }, false) =
            (self.wires[wire].ends[from], self.wires[wire].gone[from])
        {
            (self.sites[site].node).handle_accepted(now, peer, accepted);
        }
    }

    /// Moves one message from an end's outbox onto the wire.
    fn take_one(&mut self, wire: usize, from: usize) -> bool {
        let way = &mut self.wires[wire].ways[from];
        let (lane, bytes) = if let Some(bytes) = way.outbox[0].pop_front() {
            way.accepted.control += 1;
            (Lane::Control, bytes)
        } else if let Some(bytes) = way.outbox[1].pop_front() {
            way.accepted.bulk += 1;
            (Lane::Bulk, bytes)
        } else {
            return false;
        };
        self.put(wire, from, lane, bytes);
        true
    }

    /// Logs a message and sends it off.
    fn put(&mut self, wire: usize, from: usize, lane: Lane, bytes: Bytes) {
        let decoded = Message::decode(&bytes).ok();
        let line = match &decoded {
            Some(decoded) => self.describe(decoded),
            None => "undecodable".to_owned(),
        };
        self.log.push(Crossing {
            at: self.at(),
            arrived: None,
            wire,
            from,
            lane,
            bytes: bytes.clone(),
            decoded,
            line,
        });
        let parcel = Parcel::Message {
            bytes,
            entry: self.log.len() - 1,
        };
        self.dispatch(wire, from, parcel);
    }

    fn dispatch(&mut self, wire: usize, from: usize, parcel: Parcel) {
        match self.wires[wire].ways[from].mode {
            Mode::Deliver => self.launch(wire, from, parcel),
            Mode::Hold => self.wires[wire].ways[from].held.push_back(parcel),
            Mode::Swallow => {}
        }
    }

    fn launch(&mut self, wire: usize, from: usize, parcel: Parcel) {
        let now = self.now;
        let way = &mut self.wires[wire].ways[from];
        let earliest = way.last_arrival.unwrap_or(now);
        let arrival = (now + way.delay).max(earliest);
        way.last_arrival = Some(arrival);
        self.launched += 1;
        let flight = Flight {
            wire,
            to: 1 - from,
            parcel,
        };
        self.flying.insert((arrival, self.launched), flight);
    }

    fn launch_end(&mut self, wire: usize, to: usize, fault: Option<&'static str>) {
        self.dispatch(wire, 1 - to, Parcel::End { fault });
    }

    // Time.

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

    fn fire_one(&mut self) -> bool {
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

    fn deliver_one(&mut self) -> bool {
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

    fn arrive(&mut self, wire: usize, to: usize, parcel: Parcel) {
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

    fn read(&mut self, wire: usize, to: usize, bytes: Bytes, entry: usize) {
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

    // Draining.

    fn drain(&mut self) {
        for site in 0..self.sites.len() {
            while let Some(event) = self.sites[site].node.poll_event() {
                self.happen(site, event);
            }
            while let Some(transmit) = self.sites[site].node.poll_transmit() {
                self.transmit(site, transmit);
            }
        }
        // Wires are only ever added, and most of a long run's are over.
        while self
            .wires
            .get(self.first_alive)
            .is_some_and(|wire| wire.gone == [true; 2])
        {
            self.first_alive += 1;
        }
        for wire in self.first_alive..self.wires.len() {
            for from in [DIALLER, ACCEPTOR] {
                self.pump(wire, from);
            }
        }
        let busy = |site: &Site| site.has_work;
        if self.sites.iter().any(busy) {
            for site in &mut self.sites {
                site.has_work = false;
            }
            self.drain();
        }
    }

    fn happen(&mut self, site: usize, event: Event) {
        let at = self.at();
        let now = self.now;
        self.sites[site].collect(at, now, event);
    }

    fn transmit(&mut self, site: usize, transmit: Transmit) {
        let at = self.at();
        match transmit {
            Transmit::Send {
                peer,
                lane,
                content,
            } => self.submit(site, peer, lane, content),
            Transmit::Registered { peer, native } => {
                self.sites[site].registered.push((at, peer, native));
            }
            Transmit::Pause { peer } => self.set_paused(site, peer, true),
            Transmit::Resume { peer } => self.set_paused(site, peer, false),
            Transmit::Close { peer, how } => self.close(site, peer, how),
            other => panic!("unknown transmit {other:?}"),
        }
    }

    fn submit(&mut self, site: usize, peer: PeerId, lane: Lane, content: Content) {
        let Some((wire, end)) = self.sites[site].wire_of(peer) else {
            panic!("a message for the unknown peer {peer:?}");
        };
        let bytes = match content {
            Content::Encoded(encoded) => encoded.to_bytes(),
            Content::Message(message) => message.encode().to_bytes(),
        };
        let wire = &mut self.wires[wire];
        if wire.gone[end] {
            return;
        }
        assert!(
            wire.ways[end].closing.is_none(),
            "a message behind the close of its peer"
        );
        wire.ways[end].outbox[usize::from(lane == Lane::Bulk)].push_back(bytes);
    }

    fn set_paused(&mut self, site: usize, peer: PeerId, paused: bool) {
        let Some((wire, end)) = self.sites[site].wire_of(peer) else {
            return;
        };
        self.wires[wire].paused[end] = paused;
        while !self.wires[wire].paused[end] {
            let Some(parcel) = self.wires[wire].ways[1 - end].unread.pop_front() else {
                return;
            };
            self.arrive(wire, end, parcel);
            self.sites[site].has_work = true;
        }
    }

    fn close(&mut self, site: usize, peer: PeerId, how: Close) {
        let at = self.at();
        let Some((wire, end)) = self.sites[site].wire_of(peer) else {
            panic!("a close of the unknown peer {peer:?}");
        };
        self.sites[site].closes.push((at, wire, how));
        if self.wires[wire].gone[end] {
            return;
        }
        let way = &mut self.wires[wire].ways[end];
        assert!(way.closing.is_none(), "one peer is closed twice");
        way.closing = Some(how);
        if how == Close::Abort {
            let swallowed = way.mode == Mode::Swallow;
            self.forget_flights(wire);
            self.disconnect_end(wire, end, None);
            if !swallowed {
                self.launch_end(wire, 1 - end, None);
            }
            self.sites[site].has_work = true;
        }
    }

    /// Lets an end's provider take what it takes, and finishes a close.
    fn pump(&mut self, wire: usize, from: usize) {
        let way = &self.wires[wire].ways[from];
        let idle = way.outbox.iter().all(|lane| lane.is_empty());
        if !idle && way.intake != Intake::Stalled {
            let reported = way.intake == Intake::Open;
            while self.take_one(wire, from) {}
            if reported {
                self.report_accepted(wire, from);
            }
            if let End::Site { site, .. } = self.wires[wire].ends[from] {
                self.sites[site].has_work = true;
            }
        }
        let way = &mut self.wires[wire].ways[from];
        let flushed = way.outbox.iter().all(|lane| lane.is_empty());
        if flushed && !way.finished && way.closing.is_some() && !self.wires[wire].gone[from] {
            self.finish(wire, from);
        }
    }

    fn finish(&mut self, wire: usize, from: usize) {
        let way = &mut self.wires[wire].ways[from];
        way.finished = true;
        let refuse = way.closing == Some(Close::Refuse);
        self.launch_end(wire, 1 - from, None);
        if !refuse {
            self.disconnect_end(wire, from, None);
        }
        if let End::Site { site, .. } = self.wires[wire].ends[from] {
            self.sites[site].has_work = true;
        }
    }

    // Text.

    /// One line for a message: its type, and the label of what it is or answers.
    fn describe(&mut self, decoded: &Decoded) -> String {
        text::describe(&mut self.labels, decoded)
    }

    /// What left an end of a wire, in order.
    pub(crate) fn said(&self, wire: usize, from: usize) -> Vec<&str> {
        self.said_since(0, wire, from)
    }

    /// Where the log ends now, for the `_since` methods.
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    pub(crate) fn said_since(&self, mark: usize, wire: usize, from: usize) -> Vec<&str> {
        self.crossings_since(mark, wire, from)
            .map(|crossing| crossing.line.as_str())
            .collect()
    }

    pub(crate) fn crossings_since(
        &self,
        mark: usize,
        wire: usize,
        from: usize,
    ) -> impl Iterator<Item = &Crossing> {
        self.log[mark..]
            .iter()
            .filter(move |crossing| crossing.wire == wire && crossing.from == from)
    }

    /// When each message left an end of a wire, in milliseconds, with its line.
    pub(crate) fn timed(&self, wire: usize, from: usize) -> Vec<(u128, &str)> {
        self.crossings_since(0, wire, from)
            .map(|crossing| (crossing.at.as_millis(), crossing.line.as_str()))
            .collect()
    }

    /// What an end has submitted and its provider not yet taken, control first.
    pub(crate) fn waiting(&mut self, wire: usize, from: usize) -> Vec<String> {
        let outbox = self.wires[wire].ways[from].outbox.clone();
        outbox
            .iter()
            .flatten()
            .map(|bytes| self.describe(&Message::decode(bytes).unwrap()))
            .collect()
    }
}
