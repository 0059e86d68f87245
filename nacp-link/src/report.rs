use nacp_proto::{AppId, Body, Decoded, Envelope, Message, MessageType};
use smol_str::{SmolStr, format_smolstr};

use crate::incoming::envelope_of;
use crate::{DialError, PeerId};

/// Something that happened to a peer, link or message (specification, section 13).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// `nact:peer:connect`
    PeerConnect {
        /// The peer.
        peer: PeerId,
    },
    /// `nact:peer:disconnect`
    PeerDisconnect {
        /// The peer.
        peer: PeerId,
    },
    /// `nact:peer:error`: we closed the peer for a fault.
    PeerError {
        /// The peer.
        peer: PeerId,
        /// The fault, in the words of section 2.
        reason: &'static str,
    },
    /// `nacp:inbound:{type}`, before any check.
    Inbound {
        /// The peer it came on.
        peer: PeerId,
        /// The message.
        subject: Box<Subject>,
    },
    /// `nacp:outbound:{type}`, at each attempt to submit.
    Outbound {
        /// The peer it leaves by; `None` before a route error.
        peer: Option<PeerId>,
        /// The message.
        subject: Box<Subject>,
    },
    /// `nacp:internal:napp:success`
    App {
        /// The remote app.
        app: AppId,
        /// `bound`, `offline` or `dropped`.
        reason: Reason,
        /// When bound: whether it is a gateway.
        is_gateway: Option<bool>,
        /// When bound: whether an earlier bind goes on.
        resumed: Option<bool>,
    },
    /// `nacp:internal:register:error`
    RegisterError {
        /// The peer it came on.
        peer: Option<PeerId>,
        /// The remote app, where it is known.
        from: Option<AppId>,
        /// Why.
        reason: DialError,
    },
    /// `nacp:internal:register:warning`
    RegisterWarning {
        /// The remote app.
        app: AppId,
        /// `takeover-probe`, `crossed` or `session-lost`.
        reason: Reason,
    },
    /// Everything else that has a message and a reason.
    Message {
        /// Which of them.
        kind: MessageReport,
        /// The peer concerned, where there is one.
        peer: Option<PeerId>,
        /// The message.
        subject: Box<Subject>,
        /// Why.
        reason: Reason,
    },
}

impl Report {
    /// The name of [`PeerConnect`](Self::PeerConnect).
    pub const PEER_CONNECT: &'static str = "nact:peer:connect";
    /// The name of [`PeerDisconnect`](Self::PeerDisconnect).
    pub const PEER_DISCONNECT: &'static str = "nact:peer:disconnect";
    /// The name of [`PeerError`](Self::PeerError).
    pub const PEER_ERROR: &'static str = "nact:peer:error";
    /// The name of [`App`](Self::App).
    pub const APP: &'static str = "nacp:internal:napp:success";
    /// The name of [`RegisterError`](Self::RegisterError).
    pub const REGISTER_ERROR: &'static str = "nacp:internal:register:error";
    /// The name of [`RegisterWarning`](Self::RegisterWarning).
    pub const REGISTER_WARNING: &'static str = "nacp:internal:register:warning";

    /// The event's name on the bus.
    pub fn name(&self) -> SmolStr {
        match self {
            Self::PeerConnect { .. } => SmolStr::new_static(Self::PEER_CONNECT),
            Self::PeerDisconnect { .. } => SmolStr::new_static(Self::PEER_DISCONNECT),
            Self::PeerError { .. } => SmolStr::new_static(Self::PEER_ERROR),
            Self::Inbound { subject, .. } => format_smolstr!("nacp:inbound:{}", subject.type_name),
            Self::Outbound { subject, .. } => {
                format_smolstr!("nacp:outbound:{}", subject.type_name)
            }
            Self::App { .. } => SmolStr::new_static(Self::APP),
            Self::RegisterError { .. } => SmolStr::new_static(Self::REGISTER_ERROR),
            Self::RegisterWarning { .. } => SmolStr::new_static(Self::REGISTER_WARNING),
            Self::Message { kind, .. } => SmolStr::new_static(kind.as_str()),
        }
    }

    /// Whether it tells of a notify. Who forwards such a report as a notify feeds it with itself.
    pub fn is_of_notify(&self) -> bool {
        match self {
            Self::Inbound { subject, .. }
            | Self::Outbound { subject, .. }
            | Self::Message { subject, .. } => subject.type_name == MessageType::Notify.as_str(),
            Self::PeerConnect { .. }
            | Self::PeerDisconnect { .. }
            | Self::PeerError { .. }
            | Self::App { .. }
            | Self::RegisterError { .. }
            | Self::RegisterWarning { .. } => false,
        }
    }
}

/// The reports that have a message and a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is named in `as_str`")]
pub enum MessageReport {
    RouteError,
    AckWarning,
    AckError,
    ResponseError,
    NotifyError,
    BacklogWarning,
    RequestError,
    SignalError,
    SubscribeError,
    MessageError,
    InboundError,
    GatewaySuccess,
    GatewayError,
    GatewayWarning,
}

impl MessageReport {
    /// The event's name on the bus.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RouteError => "nacp:internal:route:error",
            Self::AckWarning => "nacp:internal:ack:warning",
            Self::AckError => "nacp:internal:ack:error",
            Self::ResponseError => "nacp:internal:response:error",
            Self::NotifyError => "nacp:internal:notify:error",
            Self::BacklogWarning => "nacp:internal:backlog:warning",
            Self::RequestError => "nacp:internal:request:error",
            Self::SignalError => "nacp:internal:signal:error",
            Self::SubscribeError => "nacp:internal:subscribe:error",
            Self::MessageError => "nacp:internal:message:error",
            Self::InboundError => "nacp:internal:inbound:error",
            Self::GatewaySuccess => "nacp:internal:gateway:success",
            Self::GatewayError => "nacp:internal:gateway:error",
            Self::GatewayWarning => "nacp:internal:gateway:warning",
        }
    }
}

macro_rules! reasons {
    ($($variant:ident = $text:literal,)+) => {
        /// The reasons of reports, in the specification's words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each is its word")]
        pub enum Reason { $($variant,)+ }

        impl Reason {
            /// The word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            pub(crate) const COUNT: usize = [$($text,)+].len();

            pub(crate) const ALL: [Self; Self::COUNT] = [$(Self::$variant,)+];
        }
    };
}

reasons! {
    Bound = "bound",
    Offline = "offline",
    Dropped = "dropped",
    TakeoverProbe = "takeover-probe",
    Crossed = "crossed",
    SessionLost = "session-lost",
    SelfAddressed = "self-addressed",
    NoRoute = "no-route",
    SendFailed = "send-failed",
    TooLarge = "too-large",
    Timeout = "timeout",
    PendingOverflow = "pending-overflow",
    RelayRetry = "relay-retry",
    UnroutableRelay = "unroutable-relay",
    HasNoConsumer = "has-no-consumer",
    NotifyDropped = "notify-dropped",
    NotifyEvicted = "notify-evicted",
    FifoEvicted = "fifo-evicted",
    Poisoned = "poisoned",
    NoProcessor = "no-processor",
    NoEventProcessor = "no-event-processor",
    ProcessorRejected = "processor-rejected",
    BadTargetSubName = "bad-target-sub-name",
    UnknownSubscription = "unknown-subscription",
    SelfExciting = "self-exciting",
    NotExposed = "not-exposed",
    LimitReached = "limit-reached",
    Malformed = "malformed",
    UnknownType = "unknown-type",
    NotRegistered = "not-registered",
    SourceMismatch = "source-mismatch",
    Forwarded = "forwarded",
    MultiGatewayDowngraded = "multi-gateway-downgraded",
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The message that a report is about. A register's `auth` is cut out.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Id, source, destination and time.
    pub envelope: Envelope,
    /// The type as it is written on the wire.
    pub type_name: SmolStr,
    /// Its content; `None` if it is malformed or of an unknown type.
    pub body: Option<Body>,
}

impl From<&Message> for Subject {
    fn from(message: &Message) -> Self {
        let mut body = message.body.clone();
        if let Body::Register(register) = &mut body {
            register.auth = None;
        }
        Self {
            envelope: envelope_of(message),
            type_name: SmolStr::new_static(message.message_type().as_str()),
            body: Some(body),
        }
    }
}

impl From<&Decoded> for Subject {
    fn from(decoded: &Decoded) -> Self {
        match decoded {
            Decoded::Message(message) => message.into(),
            Decoded::Malformed(malformed) => Self {
                envelope: malformed.envelope.clone(),
                type_name: SmolStr::new_static(malformed.message_type.as_str()),
                body: None,
            },
            Decoded::Unknown {
                envelope,
                type_name,
            } => Self {
                envelope: envelope.clone(),
                type_name: type_name.clone(),
                body: None,
            },
        }
    }
}

/// Which reports are wanted: those that are not are never built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interest(u64);

const OUTBOUND: u32 = 10;
const PEERS: u32 = 20;
const APPS: u32 = 21;
const REGISTERS: u32 = 22;
const MESSAGES: u32 = 23;

impl Interest {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Everything.
    pub const ALL: Self = Self(u64::MAX);
    /// `nact:peer:connect`, `:disconnect` and `:error`.
    pub const PEERS: Self = Self(1 << PEERS);
    /// `nacp:internal:napp:success`.
    pub const APPS: Self = Self(1 << APPS);
    /// `nacp:internal:register:error` and `:warning`.
    pub const REGISTERS: Self = Self(1 << REGISTERS);

    /// `nacp:inbound:{type}`; `None` stands for types that this version does not know.
    #[must_use]
    pub const fn inbound(message_type: Option<MessageType>) -> Self {
        Self(1 << type_bit(message_type))
    }

    /// `nacp:outbound:{type}`.
    #[must_use]
    pub const fn outbound(message_type: MessageType) -> Self {
        Self(1 << (OUTBOUND + type_bit(Some(message_type))))
    }

    /// One of the reports about a message.
    #[must_use]
    pub const fn message(kind: MessageReport) -> Self {
        Self(1 << (MESSAGES + kind as u32))
    }

    /// Either of the two.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn any_outbound(self) -> bool {
        self.0 & (0x3ff << OUTBOUND) != 0
    }
}

const fn type_bit(message_type: Option<MessageType>) -> u32 {
    match message_type {
        Some(known) => known as u32,
        None => 9,
    }
}
