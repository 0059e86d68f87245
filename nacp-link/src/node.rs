use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hashbrown::{HashMap, HashSet};
use nacp_proto::{AppId, Body, Encoded, Instance, Message, MessageId, PeerInfo};
use nacp_queue::{AckPending, Backlog, Caps, Received};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use slotmap::SlotMap;

use crate::dial::Dial;
use crate::ids::LinkId;
use crate::link::{Link, Running, Served, Stream, Subscription};
use crate::load::Load;
use crate::peer::Peer;
use crate::record::{Key, Record, Waiter};
use crate::snapshot::Totals;
use crate::timers::{Timer, Timers};
use crate::{
    Config, ConfigError, DialId, Event, Interest, OverflowPolicy, PeerId, RunningId, Settlement,
    StreamId, SubscriptionId, Token, Transmit, Undelivered,
};

/// Sources reached through a gateway whose message ids are remembered.
const MAX_RELAYED_SOURCES: usize = 1024;

/// Bytes of the control lane that share one buffer.
const CONTROL_BUFFER: usize = 4096;

/// A node of the protocol: feed it, call it, drain it.
///
/// Four families of methods, as in all of its kind:
/// - *inputs* `handle_*`: what happened to peers and time;
/// - *commands*, plain verbs: what the application wants;
/// - *outputs* `poll_*`: what the driver has to do next;
/// - *getters*.
///
/// Nothing obliges the caller to drain between two calls; outputs keep their order. `now` must not
/// go back; if it does, the node goes on as if no time had passed.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: Config,
    pub(crate) instance: Instance,
    random: ChaCha8Rng,
    sequence: u64,
    epoch: (Instant, f64),

    /// Boxed, so that the map's spare room costs little; so are links.
    pub(crate) peers: SlotMap<PeerId, Box<Peer>>,
    /// Peers without an app.
    pub(crate) strangers: usize,
    pub(crate) links: SlotMap<LinkId, Box<Link>>,
    pub(crate) by_app: HashMap<AppId, LinkId>,
    pub(crate) gateway: Option<LinkId>,
    /// Links to gateways, the one linked longest first.
    pub(crate) gateways: Vec<LinkId>,
    pub(crate) dials: SlotMap<DialId, Dial>,
    pub(crate) dial_of: HashMap<AppId, DialId>,
    /// Apps whose register waits for the policy, with the peers in the order in which they asked.
    pub(crate) deciding: HashMap<AppId, Vec<PeerId>>,
    pub(crate) running: SlotMap<RunningId, Running>,
    pub(crate) subscriptions: SlotMap<SubscriptionId, Subscription>,
    pub(crate) served: Served,
    pub(crate) streams: SlotMap<StreamId, Stream>,

    pub(crate) backlog: Backlog<Record>,
    pub(crate) pending: AckPending<Record>,
    pub(crate) waiters: AckPending<Waiter>,
    pub(crate) received: Received<MessageId, AppId>,
    /// Relayed messages that are still on their way out: a copy of one is dropped.
    pub(crate) relaying: HashSet<Key>,
    /// Reliable records between submission and acceptance.
    pub(crate) submitted: Load,
    /// Under `Wait`: everything between admission and its end.
    pub(crate) outstanding: Load,
    /// Links with blocked sends, in the order in which they came to be.
    pub(crate) blocked: VecDeque<LinkId>,
    /// Links whose replay waits for room in ack-pending.
    pub(crate) starving: VecDeque<LinkId>,

    /// Registers that waited for a peer whose link has just been dropped.
    pub(crate) held_after_drop: Vec<PeerId>,

    pub(crate) timers: Timers,
    /// Where the control lane's messages are encoded, one behind the other.
    control: BytesMut,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    pub(crate) interest: Interest,
    pub(crate) phase: Phase,
    pub(crate) totals: Totals,
    /// Binds of all links so far.
    pub(crate) binds: u64,
    pub(crate) record_seq: u64,
}

/// Whether the node takes calls.
#[derive(Debug)]
pub(crate) enum Phase {
    Running,
    /// Waits for the answers to its good-byes.
    Terminating {
        tokens: Vec<Token>,
    },
    Ended,
}

impl Node {
    /// A node with no peers.
    ///
    /// `unix_ms` is the wall clock at `now` in milliseconds since 1970, for the informative time
    /// in messages. `seed` must be random in production, since ids and sessions come from it; the
    /// same seed and inputs give the same outputs.
    ///
    /// # Errors
    /// [`ConfigError`] names the option that makes no sense.
    pub fn new(
        config: Config,
        now: Instant,
        unix_ms: f64,
        seed: [u8; 32],
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let caps = match config.overflow {
            OverflowPolicy::Evict => caps(config.queue_max_count, config.queue_max_bytes)?,
            OverflowPolicy::Wait => caps(usize::MAX, u64::MAX)?,
        };
        let no_caps = caps_without_limit()?;
        let received = Received::new(config.effective_dedup_window(), MAX_RELAYED_SOURCES)
            .map_err(|_| ConfigError::Zero {
                option: "dedup_window",
            })?;
        let mut random = ChaCha8Rng::from_seed(seed);
        let instance = Instance(random_bytes(&mut random));
        Ok(Self {
            instance,
            random,
            sequence: 0,
            epoch: (now, unix_ms),
            peers: SlotMap::with_key(),
            strangers: 0,
            links: SlotMap::with_key(),
            by_app: HashMap::new(),
            gateway: None,
            gateways: Vec::new(),
            dials: SlotMap::with_key(),
            dial_of: HashMap::new(),
            deciding: HashMap::new(),
            running: SlotMap::with_key(),
            subscriptions: SlotMap::with_key(),
            served: Served::default(),
            streams: SlotMap::with_key(),
            backlog: Backlog::new(caps),
            pending: AckPending::new(caps),
            waiters: AckPending::new(no_caps),
            received,
            relaying: HashSet::new(),
            submitted: Load::default(),
            outstanding: Load::default(),
            blocked: VecDeque::new(),
            starving: VecDeque::new(),
            held_after_drop: Vec::new(),
            timers: Timers::default(),
            control: BytesMut::with_capacity(CONTROL_BUFFER),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            interest: Interest::NONE,
            phase: Phase::Running,
            totals: Totals::default(),
            binds: 0,
            record_seq: 0,
            config,
        })
    }

    /// The node's own AppId.
    pub const fn app_id(&self) -> &AppId {
        &self.config.app_id
    }

    /// The options it was built with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// This start of the node, as its peers are told (specification, section 11).
    pub const fn instance(&self) -> Instance {
        self.instance
    }

    /// Says which reports are wanted; none at first. The others are never built.
    pub const fn set_interest(&mut self, interest: Interest) {
        self.interest = interest;
    }

    /// The next thing to do to a peer.
    #[must_use = "a transmit that is dropped is lost"]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next thing to tell the application.
    #[must_use = "an event that is dropped is lost"]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next; `None` while there is no deadline.
    #[must_use = "without the timeout nothing ever expires"]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Fires every deadline that is due at `now`, earliest first. Calling it late, early or
    /// without need is harmless; a late caller first feeds what it has read.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, timer)) = self.timers.pop_due(now) {
            tracing::trace!(?timer, late = ?now.saturating_duration_since(at), "deadline");
            self.fire(now, timer);
        }
        self.settle_room();
    }

    fn fire(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::Handshake(peer) => self.handshake_timed_out(now, peer),
            Timer::RegisterAnswer(dial) => self.register_timed_out(now, dial),
            Timer::Takeover(peer) => self.takeover_timed_out(now, peer),
            Timer::Farewell(peer) => self.farewell_done(now, peer),
            Timer::Acks(link) => self.acks_due(now, link),
            Timer::Beat(link) => self.beat_due(now, link),
            Timer::BeatAck(link) => self.beat_ack_due(now, link),
            Timer::Grace(link) => self.grace_ended(now, link),
            Timer::GoodBye(link) => self.good_bye_done(now, link),
            Timer::Call(id) => self.call_timed_out(&id),
            Timer::RemoteBeat(link, app) => self.remote_beat_due(now, link, &app),
            Timer::Terminate => self.termination_timed_out(now),
        }
    }

    pub(crate) fn transmit(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(crate) fn settle(&mut self, token: Option<Token>, settlement: Settlement) {
        if let Some(token) = token {
            self.tell(Event::Settled { token, settlement });
        }
    }

    pub(crate) fn settle_undelivered(&mut self, token: Option<Token>, reason: Undelivered) {
        self.settle(token, Settlement::Undelivered(reason));
    }

    pub(crate) fn fresh_id(&mut self) -> MessageId {
        self.sequence += 1;
        MessageId::sequenced(self.sequence, self.random.next_u64())
    }

    pub(crate) fn fresh_secret(&mut self) -> [u8; 16] {
        random_bytes(&mut self.random)
    }

    pub(crate) fn next_seq(&mut self) -> u64 {
        self.record_seq += 1;
        self.record_seq
    }

    /// A message of this node, as of `now`.
    pub(crate) fn message(&self, now: Instant, id: MessageId, to: AppId, body: Body) -> Message {
        let (start, unix_ms) = self.epoch;
        let elapsed = now.saturating_duration_since(start);
        let elapsed_ms = elapsed.as_secs() as f64 * 1000.0 + f64::from(elapsed.subsec_millis());
        Message {
            id,
            from: self.config.app_id.clone(),
            to,
            time: Some((unix_ms + elapsed_ms).round()),
            body,
        }
    }

    pub(crate) fn encode_control(&mut self, message: &Message) -> Encoded {
        message.encode_into(&mut self.control);
        self.control.split().freeze().into()
    }

    pub(crate) fn own_info(&self) -> PeerInfo {
        PeerInfo {
            is_gateway: self.config.is_gateway,
            decl: self.config.decl.clone(),
            instance: Some(self.instance),
            max_message_bytes: Some(self.config.max_message_bytes),
        }
    }

    /// The peer that a link is bound to.
    pub(crate) fn peer_of(&self, link: LinkId) -> Option<PeerId> {
        self.links.get(link).and_then(|link| link.peer())
    }

    /// Whatever ends after the node began to end, ends for that reason.
    pub(crate) fn reason_now(&self, reason: Undelivered) -> Undelivered {
        if self.is_running() {
            reason
        } else {
            Undelivered::Terminated
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Ends everything that waits inside the node; nothing can follow.
    pub(crate) fn clear(&mut self) {
        self.timers.clear();
        self.blocked.clear();
        self.starving.clear();
    }

    pub(crate) fn own_key(id: &MessageId) -> Key {
        Key::Own(id.clone())
    }
}

fn caps(count: usize, bytes: u64) -> Result<Caps, ConfigError> {
    Caps::new(count, bytes).map_err(|_| ConfigError::Zero {
        option: "queue_max_count",
    })
}

fn caps_without_limit() -> Result<Caps, ConfigError> {
    caps(usize::MAX, u64::MAX)
}

fn random_bytes(random: &mut ChaCha8Rng) -> [u8; 16] {
    let mut bytes = [0; 16];
    random.fill_bytes(&mut bytes);
    bytes
}

/// Half of an interval; half of never is never.
pub(crate) fn half(interval: Duration) -> Duration {
    if interval == Duration::MAX {
        interval
    } else {
        interval / 2
    }
}
