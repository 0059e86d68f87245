//! Whose place a node takes in which recording, and with which options.

use std::time::Duration;

use nacp_link::Config;

use crate::support::quiet;

/// One app of one recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Role {
    pub(crate) file: &'static str,
    pub(crate) app: &'static str,
    /// The connections that this app takes part in, as the dialling or the accepting side; the
    /// others belong to an app of the same name, or to none.
    pub(crate) conns: &'static [(&'static str, &'static [u64])],
    /// Options that the recording names, in milliseconds.
    pub(crate) options: Options,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) is_gateway: bool,
    pub(crate) downgrade: bool,
    pub(crate) beat: Option<u64>,
    pub(crate) ack_timeout: Option<u64>,
    pub(crate) grace: Option<u64>,
    pub(crate) queue_max_count: Option<usize>,
}

impl Options {
    pub(crate) const NONE: Self = Self {
        is_gateway: false,
        downgrade: false,
        beat: None,
        ack_timeout: None,
        grace: None,
        queue_max_count: None,
    };

    pub(crate) const GATEWAY: Self = Self {
        is_gateway: true,
        ..Self::NONE
    };

    pub(crate) fn config(self, app: &str) -> Config {
        let mut config = quiet(app)
            .is_gateway(self.is_gateway)
            .multi_gateway_downgrade(self.downgrade)
            .heartbeat_interval(self.beat.map(Duration::from_millis));
        if let Some(limit) = self.ack_timeout {
            config = config.ack_timeout(Duration::from_millis(limit));
        }
        if let Some(grace) = self.grace {
            config = config.reconnect_grace(Duration::from_millis(grace));
        }
        if let Some(count) = self.queue_max_count {
            config = config.queue_max_count(count);
        }
        config
    }
}

const fn role(
    file: &'static str,
    app: &'static str,
    conns: &'static [(&'static str, &'static [u64])],
    options: Options,
) -> Role {
    Role {
        file,
        app,
        conns,
        options,
    }
}

const ALL: &[u64] = &[1, 2, 3, 4];
const CLI_SRV: &[(&str, &[u64])] = &[("cli-srv", ALL)];
const NONE: Options = Options::NONE;

const fn beats(interval: u64) -> Options {
    Options {
        beat: Some(interval),
        ..NONE
    }
}

const fn limits(ack_timeout: u64, grace: u64) -> Options {
    Options {
        ack_timeout: Some(ack_timeout),
        grace: Some(grace),
        ..NONE
    }
}

const fn capped(count: usize) -> Options {
    Options {
        queue_max_count: Some(count),
        ..NONE
    }
}

pub(crate) const ROLES: &[Role] = &[
    role("a1-register-ok", "srv", CLI_SRV, beats(60_000)),
    role("a1-register-ok", "cli", CLI_SRV, beats(60_000)),
    role("a2-heartbeat-cycle", "srv", CLI_SRV, beats(400)),
    role("a2-heartbeat-cycle", "cli", CLI_SRV, beats(400)),
    role("a3-server-terminate", "srv", CLI_SRV, NONE),
    role("a3-server-terminate", "cli", CLI_SRV, NONE),
    role("b1-ability-ok", "srv", CLI_SRV, NONE),
    role("b1-ability-ok", "cli", CLI_SRV, NONE),
    role("b2-ability-errors", "srv", CLI_SRV, NONE),
    role("b2-ability-errors", "cli", CLI_SRV, NONE),
    role("b3-event-request", "srv", CLI_SRV, NONE),
    role("b3-event-request", "cli", CLI_SRV, NONE),
    role("c1-signals", "srv", CLI_SRV, NONE),
    role("c1-signals", "cli", CLI_SRV, NONE),
    role("d1-subscribe", "srv", CLI_SRV, NONE),
    role("d1-subscribe", "cli", CLI_SRV, NONE),
    role("d2-notify-order-and-stray", "srv", CLI_SRV, NONE),
    role("d2-notify-order-and-stray", "cli", CLI_SRV, NONE),
    role("e1-appid-in-use", "srv", CLI_SRV, NONE),
    role("e1-appid-in-use", "cli", &[("cli-srv", &[2])], NONE),
    role("e2-version-mismatch", "srv", &[("raw-srv", ALL)], NONE),
    role(
        "e3-dual-gateway",
        "gw1",
        &[("gw2-gw1", ALL)],
        Options::GATEWAY,
    ),
    role(
        "e3-dual-gateway",
        "gw2",
        &[("gw2-gw1", ALL)],
        Options::GATEWAY,
    ),
    role("e4-expect-mismatch", "other", &[("cli-other", ALL)], NONE),
    role(
        "e4-expect-mismatch",
        "cli",
        &[("cli-other", ALL), ("cli-fake", ALL)],
        NONE,
    ),
    role(
        "e5-multi-gateway",
        "a",
        &[("a-gw1", &[1]), ("a-gw2", &[1])],
        NONE,
    ),
    role(
        "e5-multi-gateway",
        "b",
        &[("a-gw1", &[2]), ("a-gw2", &[2])],
        Options {
            downgrade: true,
            ..NONE
        },
    ),
    role("e5-multi-gateway", "c", &[("gw-c", ALL)], NONE),
    role(
        "e5-multi-gateway",
        "gw1",
        &[("a-gw1", ALL), ("gw-c", &[1])],
        Options::GATEWAY,
    ),
    role(
        "e5-multi-gateway",
        "gw2",
        &[("a-gw2", ALL), ("gw-c", &[2])],
        Options::GATEWAY,
    ),
    role(
        "f1-gateway",
        "G",
        &[("A-G", ALL), ("B-G", ALL)],
        Options::GATEWAY,
    ),
    role("f1-gateway", "A", &[("A-G", ALL)], NONE),
    role("f1-gateway", "B", &[("B-G", ALL)], NONE),
    role(
        "f2-gateway-absent",
        "G",
        &[("A-G", ALL), ("B-G", ALL)],
        Options::GATEWAY,
    ),
    role("f2-gateway-absent", "A", &[("A-G", ALL)], limits(500, 500)),
    role("f2-gateway-absent", "B", &[("B-G", ALL)], NONE),
    role("g1-reconnect-backlog", "srv", CLI_SRV, NONE),
    role("g1-reconnect-backlog", "cli", CLI_SRV, NONE),
    role("g2-retransmit-dup", "srv", CLI_SRV, NONE),
    role("g2-retransmit-dup", "cli", CLI_SRV, NONE),
    role("g3-grace-expiry", "srv", CLI_SRV, limits(10_000, 700)),
    role("g3-grace-expiry", "cli", CLI_SRV, limits(10_000, 700)),
    role(
        "g4-ack-timeout",
        "cli",
        &[("cli-fake", ALL)],
        limits(400, 900),
    ),
    role(
        "g5-heartbeat-timeout",
        "cli",
        &[("cli-fake", ALL)],
        Options {
            beat: Some(400),
            grace: Some(900),
            ..NONE
        },
    ),
    role("g6-reconnect-event", "srv", CLI_SRV, NONE),
    role("g6-reconnect-event", "cli", CLI_SRV, NONE),
    role("g7-queue-caps", "srv", CLI_SRV, NONE),
    role("g7-queue-caps", "cli", CLI_SRV, capped(4)),
    role("h1-chunking", "srv", CLI_SRV, NONE),
    role("h1-chunking", "cli", &[("cli-srv", &[1])], NONE),
    role("i1-payload-zoo", "srv", CLI_SRV, NONE),
    role("i1-payload-zoo", "cli", CLI_SRV, NONE),
    role("k1-quirk-stale-register", "srv", CLI_SRV, NONE),
    role(
        "k1-quirk-stale-register",
        "cli",
        &[("cli-srv", &[2, 3])],
        limits(600, 900),
    ),
    role("k2-quirk-grace-timer", "srv", CLI_SRV, NONE),
    role("k2-quirk-grace-timer", "other", &[("cli-other", ALL)], NONE),
    role(
        "k2-quirk-grace-timer",
        "cli",
        &[("cli-other", ALL), ("cli-srv", ALL)],
        limits(300, 11_000),
    ),
    role(
        "k3-quirk-gateway-reconnect",
        "G",
        &[("A-G", ALL)],
        Options::GATEWAY,
    ),
    role(
        "k3-quirk-gateway-reconnect",
        "A",
        &[("A-G", ALL)],
        limits(10_000, 1200),
    ),
    role(
        "k4a-quirk-cut-in-register-seen",
        "srv",
        CLI_SRV,
        limits(700, 2000),
    ),
    role(
        "k4a-quirk-cut-in-register-seen",
        "cli",
        CLI_SRV,
        limits(700, 2000),
    ),
    role("k4b-quirk-cut-in-register-unseen", "srv", CLI_SRV, NONE),
    role("k4b-quirk-cut-in-register-unseen", "cli", CLI_SRV, NONE),
    role("k5-quirk-unencodable-answer", "srv", CLI_SRV, NONE),
    role("k5-quirk-unencodable-answer", "cli", CLI_SRV, NONE),
    role("k6-quirk-throwing-listener", "srv", CLI_SRV, NONE),
    role("k6-quirk-throwing-listener", "cli", CLI_SRV, NONE),
    role(
        "k7-quirk-gateway-routed-loss",
        "G",
        &[("A-G", ALL), ("B-G", ALL)],
        Options::GATEWAY,
    ),
    role("k7-quirk-gateway-routed-loss", "A", &[("A-G", ALL)], NONE),
    role("k7-quirk-gateway-routed-loss", "B", &[("B-G", ALL)], NONE),
    role(
        "k9-quirk-old-connection",
        "srv",
        CLI_SRV,
        limits(600, 120_000),
    ),
    role(
        "k9-quirk-old-connection",
        "cli",
        CLI_SRV,
        limits(600, 120_000),
    ),
    role(
        "k10-quirk-shared-caps",
        "srv",
        &[("off-srv", ALL), ("on-srv", ALL)],
        capped(3),
    ),
    role("k10-quirk-shared-caps", "off", &[("off-srv", ALL)], NONE),
    role("k10-quirk-shared-caps", "on", &[("on-srv", ALL)], NONE),
    role(
        "k11-quirk-cross-dial",
        "L",
        &[("L-dials-R", ALL), ("R-dials-L", ALL)],
        NONE,
    ),
    role(
        "k11-quirk-cross-dial",
        "R",
        &[("L-dials-R", ALL), ("R-dials-L", ALL)],
        NONE,
    ),
    role("k12-quirk-connect-twice", "srv", CLI_SRV, NONE),
    role("k12-quirk-connect-twice", "cli", CLI_SRV, NONE),
];
