use std::time::Duration;

use nacp_proto::{AppId, Decl};
use thiserror::Error;

/// Why a configuration makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A limit of zero.
    #[error("{option} must not be zero")]
    Zero {
        /// The option's name.
        option: &'static str,
    },
    /// The dedup window is smaller than what a peer can replay.
    #[error("dedup_window is {window}, which is smaller than queue_max_count, {queue_max_count}")]
    DedupWindow {
        /// The window asked for.
        window: usize,
        /// The records that a peer can replay.
        queue_max_count: usize,
    },
    /// The node's own AppId is the wildcard.
    #[error("a node cannot be named `*`")]
    WildcardApp,
}

/// What happens to a send that finds no room (specification, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Older records make room: notifies first, then the oldest.
    #[default]
    Evict,
    /// The send waits; nothing reliable is ever evicted.
    Wait,
}

/// Who may register (specification, section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Admittance {
    /// Everyone: proven over a trusted connection, unproven over any other.
    #[default]
    All,
    /// Whom the driver's policy admits: each register is an [`Event::Authorize`](crate::Event::Authorize).
    Ask,
}

/// What departs from the letter of the lifecycle document, each restorable by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Letter {
    pub(crate) count_pass_through: bool,
    pub(crate) evict_online: bool,
    pub(crate) defer_limits: bool,
    pub(crate) resume_any_instance: bool,
}

/// The options of a [`Node`](crate::Node).
///
/// `Duration::MAX` is never; the largest number of a count or size is no limit. Zero is refused
/// by name when the node is built, except where an option gives it a meaning.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) app_id: AppId,
    pub(crate) is_gateway: bool,
    pub(crate) decl: Decl,
    pub(crate) ack_timeout: Duration,
    pub(crate) reconnect_grace: Duration,
    pub(crate) heartbeat_interval: Option<Duration>,
    pub(crate) response_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    pub(crate) takeover_probe: Duration,
    pub(crate) terminate_timeout: Duration,
    pub(crate) queue_max_count: usize,
    pub(crate) queue_max_bytes: u64,
    pub(crate) link_queue_max_count: usize,
    pub(crate) link_queue_max_bytes: u64,
    pub(crate) submit_max_count: usize,
    pub(crate) submit_max_bytes: u64,
    pub(crate) dedup_window: Option<usize>,
    pub(crate) poison_limit: u32,
    pub(crate) max_message_bytes: u64,
    pub(crate) max_peers: usize,
    pub(crate) max_unregistered_peers: usize,
    pub(crate) max_links: usize,
    pub(crate) max_subscriptions: usize,
    pub(crate) max_pattern_bytes: usize,
    pub(crate) max_decl_bytes: usize,
    pub(crate) max_running: usize,
    pub(crate) overflow: OverflowPolicy,
    pub(crate) admittance: Admittance,
    pub(crate) multi_gateway_downgrade: bool,
    pub(crate) expose_internal_events: bool,
    pub(crate) letter: Letter,
}

impl Config {
    /// The defaults of the specification, for the node named `app_id`.
    pub fn new(app_id: AppId) -> Self {
        Self {
            app_id,
            is_gateway: false,
            decl: Decl::default(),
            ack_timeout: Duration::from_secs(10),
            reconnect_grace: Duration::from_secs(120),
            heartbeat_interval: Some(Duration::from_secs(60)),
            response_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            takeover_probe: Duration::from_secs(2),
            terminate_timeout: Duration::from_secs(10),
            queue_max_count: 1024,
            queue_max_bytes: 4 << 30,
            link_queue_max_count: usize::MAX,
            link_queue_max_bytes: u64::MAX,
            submit_max_count: 1024,
            submit_max_bytes: 4 << 20,
            dedup_window: None,
            poison_limit: 3,
            max_message_bytes: 2 << 30,
            max_peers: 10_000,
            max_unregistered_peers: 256,
            max_links: 20_000,
            max_subscriptions: 4096,
            max_pattern_bytes: 1024,
            max_decl_bytes: 1 << 20,
            max_running: 1024,
            overflow: OverflowPolicy::Evict,
            admittance: Admittance::All,
            multi_gateway_downgrade: false,
            expose_internal_events: false,
            letter: Letter {
                count_pass_through: false,
                evict_online: false,
                defer_limits: true,
                resume_any_instance: false,
            },
        }
    }

    /// The node's own AppId.
    pub const fn app_id(&self) -> &AppId {
        &self.app_id
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.app_id.is_any() {
            return Err(ConfigError::WildcardApp);
        }
        if let Some(option) = self.zero_option() {
            return Err(ConfigError::Zero { option });
        }
        if self.effective_dedup_window() < self.queue_max_count {
            return Err(ConfigError::DedupWindow {
                window: self.effective_dedup_window(),
                queue_max_count: self.queue_max_count,
            });
        }
        Ok(())
    }

    /// The first option that is zero and must not be.
    fn zero_option(&self) -> Option<&'static str> {
        let durations = [
            ("ack_timeout", self.ack_timeout),
            ("reconnect_grace", self.reconnect_grace),
            (
                "heartbeat_interval",
                self.heartbeat_interval.unwrap_or(Duration::MAX),
            ),
            ("response_timeout", self.response_timeout),
            ("handshake_timeout", self.handshake_timeout),
            ("terminate_timeout", self.terminate_timeout),
        ];
        let counts = [
            ("queue_max_count", self.queue_max_count),
            ("link_queue_max_count", self.link_queue_max_count),
            ("submit_max_count", self.submit_max_count),
            ("dedup_window", self.effective_dedup_window()),
            ("max_peers", self.max_peers),
            ("max_unregistered_peers", self.max_unregistered_peers),
            ("max_links", self.max_links),
            ("max_subscriptions", self.max_subscriptions),
            ("max_pattern_bytes", self.max_pattern_bytes),
            ("max_decl_bytes", self.max_decl_bytes),
            ("max_running", self.max_running),
        ];
        let sizes = [
            ("queue_max_bytes", self.queue_max_bytes),
            ("link_queue_max_bytes", self.link_queue_max_bytes),
            ("submit_max_bytes", self.submit_max_bytes),
            ("max_message_bytes", self.max_message_bytes),
        ];
        let durations = durations
            .into_iter()
            .map(|(name, value)| (name, value.is_zero()));
        let counts = counts.into_iter().map(|(name, value)| (name, value == 0));
        let sizes = sizes.into_iter().map(|(name, value)| (name, value == 0));
        let mut all = durations.chain(counts).chain(sizes);
        all.find(|(_, is_zero)| *is_zero).map(|(name, _)| name)
    }

    pub(crate) fn effective_dedup_window(&self) -> usize {
        self.dedup_window
            .unwrap_or_else(|| self.queue_max_count.saturating_mul(4))
    }
}

macro_rules! setters {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty;)+) => {
        impl Config {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )+
        }
    };
}

setters! {
    /// Whether this node forwards messages between its links. Default `false`.
    is_gateway: bool;
    /// The events and abilities told to peers. Default none.
    decl: Decl;
    /// How long after its acceptance a replayable message may stay without an ACK before its link
    /// goes offline. Default 10 s.
    ack_timeout: Duration;
    /// How long an offline link is kept. Default 120 s.
    reconnect_grace: Duration;
    /// Time from one beat of ours to the next; `None` sends none and still answers. Default 60 s.
    heartbeat_interval: Option<Duration>;
    /// How long register, unregister, subscribe and unsubscribe wait for their answer, from the
    /// call. Default 10 s.
    response_timeout: Duration;
    /// An accepted connection from which no register has come by then is closed. Default 10 s.
    handshake_timeout: Duration;
    /// How long the register of an app that is online elsewhere waits for a sign of life from
    /// there; zero refuses it at once. Default 2 s.
    takeover_probe: Duration;
    /// How long `terminate` waits for all good-byes together. Default 10 s.
    terminate_timeout: Duration;
    /// Records that the backlog holds, and as many the ack-pending table. Default 1024.
    queue_max_count: usize;
    /// Bytes that the backlog holds, and as many the ack-pending table. Default 4 GiB.
    queue_max_bytes: u64;
    /// Records of one link in each table, on top of the node's cap. Default no limit.
    link_queue_max_count: usize;
    /// Bytes of one link in each table, on top of the node's cap. Default no limit.
    link_queue_max_bytes: u64;
    /// Messages that a peer may have submitted and unaccepted. Default 1024.
    submit_max_count: usize;
    /// Bytes that a peer may have submitted and unaccepted, or one larger message alone.
    /// Default 4 MiB.
    submit_max_bytes: u64;
    /// After so many disconnects with the same message alone in flight it settles `poisoned`;
    /// zero replays it for ever, as the lifecycle document's letter has it. Default 3.
    poison_limit: u32;
    /// The largest message taken, in bytes, told to native peers. Default 2 GiB.
    max_message_bytes: u64;
    /// Connections at once. Default 10 000.
    max_peers: usize;
    /// Connections at once that have not registered. Default 256.
    max_unregistered_peers: usize;
    /// Links at once, offline ones included. Default 20 000.
    max_links: usize;
    /// Subscriptions that one link may hold here. Default 4096.
    max_subscriptions: usize;
    /// Length of a subscription's pattern, in bytes. Default 1024.
    max_pattern_bytes: usize;
    /// Length of a peer's declarations, in bytes. Default 1 MiB.
    max_decl_bytes: usize;
    /// Requests of one link that run at once; more are answered `processor-rejected`. Default 1024.
    max_running: usize;
    /// What a send does that finds no room. Default [`OverflowPolicy::Evict`].
    overflow: OverflowPolicy;
    /// Who may register. Default [`Admittance::All`].
    admittance: Admittance;
    /// Whether a second gateway becomes a plain link instead of being refused. Default `false`.
    multi_gateway_downgrade: bool;
    /// Whether remote subscribers get events about this node's own traffic. Default `false`.
    expose_internal_events: bool;
}

impl Config {
    /// Ids remembered per source app, to recognise repeats. Default four times `queue_max_count`;
    /// smaller than `queue_max_count` is refused.
    #[must_use]
    pub fn dedup_window(mut self, window: usize) -> Self {
        self.dedup_window = Some(window);
        self
    }

    /// Whether what can be submitted at once is counted in the backlog first, and refused there,
    /// as the lifecycle document's letter has it. Default `false`.
    #[must_use]
    pub fn count_pass_through(mut self, counted: bool) -> Self {
        self.letter.count_pass_through = counted;
        self
    }

    /// Whether a send to an online link evicts from a full backlog instead of waiting, as the
    /// lifecycle document's letter has it. Default `false`.
    #[must_use]
    pub fn evict_online(mut self, evict: bool) -> Self {
        self.letter.evict_online = evict;
        self
    }

    /// Whether an ACK or beat limit waits while a large message from that peer keeps coming in.
    /// `false` is the lifecycle document's letter. Default `true`.
    #[must_use]
    pub fn defer_limits(mut self, defer: bool) -> Self {
        self.letter.defer_limits = defer;
        self
    }

    /// Whether whoever registers under an AppId gets what waits for it, as the lifecycle
    /// document's letter has it. Default `false`.
    #[must_use]
    pub fn resume_any_instance(mut self, resume: bool) -> Self {
        self.letter.resume_any_instance = resume;
        self
    }
}
