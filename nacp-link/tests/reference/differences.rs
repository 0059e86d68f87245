//! Where a node differs from the recordings, with the clause of the specification.
//!
//! `-` is what the recorded app sent and the node does not, `+` what the node sends beyond it.

const REFUSAL_ACK: &str =
    "4.2: a refusal is an ACK and a response; the ACK heals the reference's own dialler";
const TAKEOVER: &str =
    "4.2: a register for an app that is online is held and the old peer asked for a sign of life";
const PROBED_AWAY: &str =
    "4.2: the challenger of the recording leaves before the probe ends, or the recording ends";
const AGAIN: &str =
    "4.2: a register on a peer already bound to its app is answered isOk=true, whatever its id";
const FOREIGN_CROSSING: &str =
    "4.2: a foreign register that crosses ours is accepted and our own attempt given up";
const CONNECT_ONLINE: &str = "4.1: connect() to an app that is online returns at once";
const NOT_QUEUED: &str = "7: a handshake belongs to its peer and is never queued";
const KEPT: &str =
    "4.1: a failed register leaves the earlier state of the link, and so its backlog, as it was";
const RELAYED: &str = "9: what waits behind a gateway is queued under its next hop";
const RETRY: &str = "9: without an ACK a relayed message goes out three times";
const ACK_FIRST: &str =
    "8, step 5: a reliable message is ACKed first, also the answer of a wrong app";
const WIDTHS: &str = "3: any width of an integer is accepted";
const MALFORMED: &str = "3: a malformed message is ACKed and answered, and its peer stays";
const SOURCES: &str = "8, step 2: `from` must be bound to the peer that it comes on";
const KEYED: &str = "8, step 3: tables are looked up by (from, id)";
const CLOSED: &str = "3: a message without a usable id is decode-failed";
const PANICS: &str = "8: a handler that fails never ends the connection";
const TARGET: &str = "the API always names a target";
const BY_HAND: &str =
    "sent by hand past the recorded app, so that a node cannot be told to send it";
const ENDS: &str = "the recording ends before this ACK";
const NOT_KEPT: &str = "the recording keeps only a digest of what this answers";
const PROXY: &str = "the order between the two directions is that of the arrival at the proxy";
const CUT: &str = "the recorded app's message was still unsent when the connection was cut";

pub(crate) const DIFFERENCES: &[(&str, &str)] = &[
    (
        "b1-ability-ok cli: cli-srv 1 - request without target",
        TARGET,
    ),
    ("b1-ability-ok cli: cli-srv 1 + request ", TARGET),
    (
        "b1-ability-ok cli: cli-srv 1 + ack of processor-failed to something unknown",
        ENDS,
    ),
    (
        "b2-ability-errors cli: cli-srv 1 + ack of answer to request nul",
        ENDS,
    ),
    (
        "b3-event-request cli: cli-srv 1 + ack of processor-rejected to request nope",
        ENDS,
    ),
    ("d1-subscribe cli: cli-srv 1 unreadable", BY_HAND),
    (
        "d1-subscribe cli: cli-srv 1 - end of something unknown",
        BY_HAND,
    ),
    (
        "e1-appid-in-use srv: cli-srv 1 + request NApp.heartbeat",
        TAKEOVER,
    ),
    ("e1-appid-in-use srv: cli-srv 2 + ack of register", TAKEOVER),
    (
        "e1-appid-in-use srv: cli-srv 2 - appId-in-use to register",
        PROBED_AWAY,
    ),
    ("e1-appid-in-use srv: cli-srv 3 + ack of register", TAKEOVER),
    (
        "e1-appid-in-use srv: cli-srv 3 - appId-in-use to register",
        TAKEOVER,
    ),
    (
        "e1-appid-in-use srv: cli-srv 3 + answer to register",
        TAKEOVER,
    ),
    (
        "e2-version-mismatch srv: raw-srv 1 + ack of register",
        REFUSAL_ACK,
    ),
    (
        "e2-version-mismatch srv: raw-srv 2 - version-mismatch to register",
        WIDTHS,
    ),
    (
        "e2-version-mismatch srv: raw-srv 2 + ack of register",
        WIDTHS,
    ),
    (
        "e2-version-mismatch srv: raw-srv 2 + answer to register",
        WIDTHS,
    ),
    (
        "e3-dual-gateway gw1: gw2-gw1 1 + ack of register",
        REFUSAL_ACK,
    ),
    (
        "e4-expect-mismatch cli: cli-fake 1 + ack of answer to register",
        ACK_FIRST,
    ),
    ("e5-multi-gateway c: gw-c 2 + ack of register", REFUSAL_ACK),
    ("f2-gateway-absent G: B-G 2 + request hi", RELAYED),
    ("f2-gateway-absent A: A-G 1 + request x", RETRY),
    ("f2-gateway-absent A: A-G 1 + signal abort", RETRY),
    (
        "g2-retransmit-dup cli: cli-srv 2 out of order: request once",
        PROXY,
    ),
    (
        "h1-chunking srv: cli-srv 1 - ack of something unknown",
        NOT_KEPT,
    ),
    (
        "h1-chunking cli: cli-srv 1 - ack of something unknown",
        NOT_KEPT,
    ),
    (
        "k1-quirk-stale-register srv: cli-srv 1 + request NApp.heartbeat",
        TAKEOVER,
    ),
    (
        "k1-quirk-stale-register srv: cli-srv 2 + ack of register",
        TAKEOVER,
    ),
    (
        "k1-quirk-stale-register srv: cli-srv 2 - appId-in-use to register",
        PROBED_AWAY,
    ),
    (
        "k4a-quirk-cut-in-register-seen srv: cli-srv 1 + answer to register",
        NOT_QUEUED,
    ),
    (
        "k4a-quirk-cut-in-register-seen srv: cli-srv 2 out of order: answer to register",
        NOT_QUEUED,
    ),
    (
        "k4a-quirk-cut-in-register-seen srv: cli-srv 2 + ack of register",
        AGAIN,
    ),
    (
        "k4a-quirk-cut-in-register-seen cli: cli-srv 2 - register",
        NOT_QUEUED,
    ),
    (
        "k4b-quirk-cut-in-register-unseen srv: cli-srv 2 - appId-in-use to register",
        AGAIN,
    ),
    (
        "k4b-quirk-cut-in-register-unseen srv: cli-srv 2 + ack of register",
        AGAIN,
    ),
    (
        "k4b-quirk-cut-in-register-unseen srv: cli-srv 2 + answer to register",
        AGAIN,
    ),
    (
        "k4b-quirk-cut-in-register-unseen cli: cli-srv 2 - register",
        NOT_QUEUED,
    ),
    (
        "k5-quirk-unencodable-answer cli: cli-srv 1 + ack of answer to request hi",
        ENDS,
    ),
    (
        "k6-quirk-throwing-listener srv: cli-srv 3 + ack of request explode",
        PANICS,
    ),
    (
        "k7-quirk-gateway-routed-loss G: A-G 1 + answer to request hi",
        CUT,
    ),
    (
        "k7-quirk-gateway-routed-loss A: A-G 2 + request hi",
        RELAYED,
    ),
    (
        "k7-quirk-gateway-routed-loss A: A-G 3 + request hi",
        RELAYED,
    ),
    (
        "k9-quirk-old-connection srv: cli-srv 1 + request NApp.heartbeat",
        TAKEOVER,
    ),
    (
        "k9-quirk-old-connection srv: cli-srv 2 + ack of register",
        TAKEOVER,
    ),
    (
        "k9-quirk-old-connection srv: cli-srv 2 - appId-in-use to register",
        PROBED_AWAY,
    ),
    ("k9-quirk-old-connection cli: cli-srv 3 + request hi", KEPT),
    (
        "k11-quirk-cross-dial L: R-dials-L 1 - appId-in-use to register",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial L: R-dials-L 1 + ack of register",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial L: R-dials-L 1 + answer to register",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial L: L-dials-R 1 - ack of something unknown",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial R: L-dials-R 1 - appId-in-use to register",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial R: L-dials-R 1 + ack of register",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial R: L-dials-R 1 + answer to register",
        FOREIGN_CROSSING,
    ),
    (
        "k11-quirk-cross-dial R: R-dials-L 1 - ack of something unknown",
        FOREIGN_CROSSING,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 1 + request NApp.heartbeat",
        TAKEOVER,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 2 + ack of register",
        TAKEOVER,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 2 - appId-in-use to register",
        PROBED_AWAY,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 3 + ack of register",
        TAKEOVER,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 3 - appId-in-use to register",
        PROBED_AWAY,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 4 - answer to register",
        PROBED_AWAY,
    ),
    (
        "k12-quirk-connect-twice srv: cli-srv 4 - request yo",
        PROBED_AWAY,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 1 + ack of request yo",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 2 does not dial",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 2 - register",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 2 - ack of something unknown",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 3 does not dial",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 3 - register",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 3 - ack of something unknown",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 4 does not dial",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 4 - register",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 4 - ack of something unknown",
        CONNECT_ONLINE,
    ),
    (
        "k12-quirk-connect-twice cli: cli-srv 4 - ack of request yo",
        CONNECT_ONLINE,
    ),
];

pub(crate) const HAND_MADE: &[(&str, &str)] = &[
    (
        "variable-map-headers srv: raw-srv 1 out of order: ack of request ping",
        PROXY,
    ),
    (
        "t-missing-or-text srv: raw-srv 1 out of order: ack of request ping",
        PROXY,
    ),
    (
        "v-wrong-on-request srv: raw-srv 1 out of order: ack of request ping",
        PROXY,
    ),
    (
        "same-id-twice srv: raw-srv 1 out of order: ack of request other",
        PROXY,
    ),
    (
        "request-without-meta srv: raw-srv 1 + ack of something unknown",
        MALFORMED,
    ),
    (
        "request-without-meta srv: raw-srv 1 + malformed to something unknown",
        MALFORMED,
    ),
    (
        "request-unknown-kind srv: raw-srv 1 - no-processor for kind 'foo' to something unknown",
        MALFORMED,
    ),
    (
        "request-unknown-kind srv: raw-srv 1 + malformed to something unknown",
        MALFORMED,
    ),
    (
        "unsubscribe-without-payload srv: raw-srv 1 + ack of something unknown",
        MALFORMED,
    ),
    (
        "unsubscribe-without-payload srv: raw-srv 1 + malformed to something unknown",
        MALFORMED,
    ),
    ("id-missing-twice srv: raw-srv 1 unreadable", CLOSED),
    (
        "spoofed-from-request srv: raw-srv 2 - ack of request ping",
        SOURCES,
    ),
    (
        "spoofed-from-request srv: raw-srv 2 - answer to request ping",
        SOURCES,
    ),
    (
        "spoofed-unregister srv: raw-srv 2 - ack of unregister",
        SOURCES,
    ),
    (
        "spoofed-unregister srv: raw-srv 2 - answer to unregister",
        SOURCES,
    ),
    (
        "unsubscribe-of-others srv: raw-srv 1 - answer to end of subscribe tick",
        KEYED,
    ),
    (
        "unsubscribe-of-others srv: raw-srv 1 + unknown-subscription to end of subscribe tick",
        KEYED,
    ),
    (
        "register-two-ids-one-connection srv: raw-srv 1 - ack of register",
        SOURCES,
    ),
    (
        "register-two-ids-one-connection srv: raw-srv 1 - answer to register",
        SOURCES,
    ),
    (
        "register-again-new-message srv: raw-srv 1 - appId-in-use to register",
        AGAIN,
    ),
    (
        "register-again-new-message srv: raw-srv 1 + ack of register",
        AGAIN,
    ),
    (
        "register-again-new-message srv: raw-srv 1 + answer to register",
        AGAIN,
    ),
];
