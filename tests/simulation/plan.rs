//! What a seed stands for: the nodes, who dials whom, what is called, and what goes wrong.

use std::time::Duration;

use nacp_link::{Admittance, Config, OverflowPolicy};
use nacp_proto::AppId;

use super::random::Random;

/// Sends and calls of a seed, at the least.
pub(crate) const MIN_OPS: usize = 300;
/// Faults of a seed, at the least.
pub(crate) const MIN_FAULTS: usize = 6;

/// Something that is to happen at a time. Its own seed decides the details, so that it stays the
/// same when others are left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planned<T> {
    pub(crate) at: Duration,
    pub(crate) seed: u64,
    pub(crate) what: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Signal,
    Ability,
    Event,
    Subscribe,
    Unsubscribe,
    Emit,
    Disconnect,
    Abandon,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Close,
    Reset,
    BlackholeOneWay,
    BlackholeBoth,
    HalfOpen,
    CutAtByte,
    Stall,
    SlowReader,
    LateAcceptance,
    SendFailed,
    LoseAck,
    HoleAtResponse,
    CrossDial,
    CrashInsideGrace,
    CrashOutsideGrace,
    PoliteRestart,
    Impostor,
    GatewayCrash,
    LateTimers,
    Poison,
    Partition,
    Repeat,
}

const FAULTS: [Fault; 22] = [
    Fault::Close,
    Fault::Reset,
    Fault::BlackholeOneWay,
    Fault::BlackholeBoth,
    Fault::HalfOpen,
    Fault::CutAtByte,
    Fault::Stall,
    Fault::SlowReader,
    Fault::LateAcceptance,
    Fault::SendFailed,
    Fault::LoseAck,
    Fault::HoleAtResponse,
    Fault::CrossDial,
    Fault::CrashInsideGrace,
    Fault::CrashOutsideGrace,
    Fault::PoliteRestart,
    Fault::Impostor,
    Fault::GatewayCrash,
    Fault::LateTimers,
    Fault::Poison,
    Fault::Partition,
    Fault::Repeat,
];

#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    pub(crate) app: AppId,
    pub(crate) is_gateway: bool,
    pub(crate) knobs: Knobs,
}

/// The options of a node, as far as a seed chooses them.
#[derive(Debug, Clone)]
pub(crate) struct Knobs {
    pub(crate) ack_timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) response_timeout: Duration,
    pub(crate) takeover_probe: Duration,
    pub(crate) queue_count: usize,
    pub(crate) queue_bytes: u64,
    pub(crate) link_count: usize,
    pub(crate) submit_count: usize,
    pub(crate) submit_bytes: u64,
    pub(crate) dedup_window: Option<usize>,
    pub(crate) poison_limit: u32,
    pub(crate) max_message_bytes: u64,
    pub(crate) max_running: usize,
    pub(crate) max_subscriptions: usize,
    pub(crate) waits: bool,
    pub(crate) asks: bool,
    pub(crate) counts_pass_through: bool,
    pub(crate) evicts_online: bool,
}

impl Knobs {
    /// Whether a cap is so small that it is reached.
    pub(crate) const fn has_tight_queues(&self) -> bool {
        self.queue_count < 1024 || self.queue_bytes < 4 << 30 || self.link_count < usize::MAX
    }

    pub(crate) fn config(&self, node: &NodePlan) -> Config {
        let config = Config::new(node.app.clone())
            .is_gateway(node.is_gateway)
            .multi_gateway_downgrade(true)
            .ack_timeout(self.ack_timeout)
            .reconnect_grace(self.grace)
            .heartbeat_interval(self.heartbeat)
            .response_timeout(self.response_timeout)
            .takeover_probe(self.takeover_probe)
            .queue_max_count(self.queue_count)
            .queue_max_bytes(self.queue_bytes)
            .link_queue_max_count(self.link_count)
            .submit_max_count(self.submit_count)
            .submit_max_bytes(self.submit_bytes)
            .poison_limit(self.poison_limit)
            .max_message_bytes(self.max_message_bytes)
            .max_running(self.max_running)
            .max_subscriptions(self.max_subscriptions)
            .count_pass_through(self.counts_pass_through)
            .evict_online(self.evicts_online);
        let config = if self.waits {
            config.overflow(OverflowPolicy::Wait)
        } else {
            config
        };
        let config = if self.asks {
            config.admittance(Admittance::Ask)
        } else {
            config
        };
        match self.dedup_window {
            Some(window) => config.dedup_window(window),
            None => config,
        }
    }
}

/// How bytes travel.
#[derive(Debug, Clone)]
pub(crate) struct NetPlan {
    pub(crate) latency: Duration,
    pub(crate) jitter: Duration,
    pub(crate) bytes_per_second: u64,
    /// What the kernels of both sides hold of one direction.
    pub(crate) socket_bytes: usize,
    pub(crate) chunk_bytes: u32,
    pub(crate) is_proven: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) nodes: Vec<NodePlan>,
    /// Who dials whom, for as long as both run.
    pub(crate) edges: Vec<(usize, usize)>,
    pub(crate) net: NetPlan,
    pub(crate) ops: Vec<Planned<Op>>,
    pub(crate) faults: Vec<Planned<Fault>>,
    pub(crate) span: Duration,
    pub(crate) has_gateway: bool,
    pub(crate) large_percent: u64,
    pub(crate) reports_all: bool,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let (gateways, edges, count) = topology(&mut random);
        let kinds = fault_kinds(&mut random);
        let has_gateway = gateways > 0;
        let shared = knobs(&mut random, needs_wide_dedup(&kinds, has_gateway));
        let nodes = (0..count)
            .map(|at| node(&mut random, at, gateways, &shared))
            .collect();
        let span = random.millis(40_000, 150_000);
        let fault_count = random.between(MIN_FAULTS, 14);
        let op_count = random.between(MIN_OPS, MIN_OPS + 100);
        let faults = planned(&mut random, fault_count, span * 9 / 10, |random| {
            random.pick(&kinds)
        });
        let ops = planned(&mut random, op_count, span, op);
        let net = net(&mut random);
        let is_fast = net.socket_bytes >= 64 << 10;
        let large_percent = if is_fast { random.pick(&[0, 0, 3]) } else { 0 };
        Self {
            seed,
            nodes,
            edges,
            net,
            ops,
            faults,
            span,
            has_gateway,
            large_percent,
            reports_all: random.percent(5),
        }
    }
}

/// Gateways come first among the nodes.
fn topology(random: &mut Random) -> (usize, Vec<(usize, usize)>, usize) {
    match random.below(10) {
        0..=3 => {
            let both = random.percent(50);
            let edges = if both {
                vec![(0, 1), (1, 0)]
            } else {
                vec![(0, 1)]
            };
            (0, edges, 2)
        }
        4..=5 => {
            let count = random.between(3, 5);
            (0, mesh(random, 0, count), count)
        }
        6..=7 => {
            let count = random.between(3, 5);
            (1, (1..count).map(|app| (app, 0)).collect(), count)
        }
        8 => {
            let count = random.between(3, 5);
            let mut edges: Vec<_> = (1..count).map(|app| (app, 0)).collect();
            edges.extend(mesh(random, 1, count).into_iter().take(2));
            (1, edges, count)
        }
        _ => {
            let count = random.between(4, 5);
            let edges = (2..count).flat_map(|app| [(app, 0), (app, 1)]).collect();
            (2, edges, count)
        }
    }
}

fn mesh(random: &mut Random, first: usize, count: usize) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for one in first..count {
        for other in one + 1..count {
            let (from, to) = if random.percent(50) {
                (one, other)
            } else {
                (other, one)
            };
            edges.push((from, to));
            if random.percent(30) {
                edges.push((to, from));
            }
        }
    }
    edges
}

fn fault_kinds(random: &mut Random) -> Vec<Fault> {
    let mut kinds: Vec<_> = FAULTS.into_iter().filter(|_| random.percent(35)).collect();
    while kinds.len() < 3 {
        kinds.push(random.pick(&FAULTS));
    }
    kinds
}

/// Single lost ACKs, also on the way through a gateway, keep a message alive for longer than a
/// window of the smallest size remembers.
fn needs_wide_dedup(kinds: &[Fault], has_gateway: bool) -> bool {
    has_gateway || kinds.contains(&Fault::LoseAck)
}

fn knobs(random: &mut Random, wide_dedup: bool) -> Knobs {
    let is_tight = random.percent(40);
    let waits = random.percent(30);
    let queue_count = if is_tight {
        random.pick(&[4, 6, 16, 40])
    } else {
        1024
    };
    let dedup_window = if wide_dedup || waits {
        Some(8192)
    } else {
        random.pick(&[None, Some(queue_count)])
    };
    Knobs {
        ack_timeout: random.pick(&[Duration::from_secs(10), Duration::from_secs(3)]),
        grace: Duration::from_secs(random.pick(&[120, 25, 10])),
        heartbeat: random
            .pick(&[Some(60), Some(8), Some(4), None])
            .map(Duration::from_secs),
        response_timeout: Duration::from_secs(random.pick(&[10, 4])),
        takeover_probe: Duration::from_millis(random.pick(&[2000, 2000, 500, 0])),
        queue_count,
        queue_bytes: if is_tight && random.percent(40) {
            8 << 10
        } else {
            4 << 30
        },
        link_count: if is_tight && random.percent(30) {
            queue_count / 2
        } else {
            usize::MAX
        },
        submit_count: if random.percent(40) {
            random.pick(&[1, 2, 4, 10])
        } else {
            1024
        },
        submit_bytes: if random.percent(20) { 2 << 10 } else { 4 << 20 },
        dedup_window,
        poison_limit: random.pick(&[3, 3, 1, 0]),
        max_message_bytes: if random.percent(10) { 4 << 10 } else { 2 << 30 },
        max_running: if random.percent(10) { 3 } else { 1024 },
        max_subscriptions: if random.percent(10) { 2 } else { 4096 },
        waits,
        asks: random.percent(25),
        counts_pass_through: random.percent(8),
        evicts_online: random.percent(8),
    }
}

fn node(random: &mut Random, at: usize, gateways: usize, shared: &Knobs) -> NodePlan {
    let is_gateway = at < gateways;
    let name = if is_gateway {
        format!("g{at}")
    } else {
        format!("app{at}")
    };
    let mut knobs = shared.clone();
    if random.percent(20) {
        knobs.grace = Duration::from_secs(random.pick(&[120, 20, 10]));
        knobs.heartbeat = random
            .pick(&[Some(20), Some(5), None])
            .map(Duration::from_secs);
    }
    NodePlan {
        #[expect(clippy::unwrap_used, reason = "the name is neither empty nor long")]
        app: AppId::new(name).unwrap(),
        is_gateway,
        knobs,
    }
}

/// On a slow line the kernels hold little, or what lies in them outlives an ACK limit.
fn net(random: &mut Random) -> NetPlan {
    let (bytes_per_second, socket_bytes) = random.pick(&[
        (u64::MAX, 64 << 10),
        (u64::MAX, 64 << 10),
        (u64::MAX, 4 << 10),
        (u64::MAX, 600),
        (1 << 20, 64 << 10),
        (1 << 20, 4 << 10),
        (16 << 10, 4 << 10),
        (16 << 10, 600),
    ]);
    NetPlan {
        latency: random.millis(0, 40),
        jitter: random.millis(0, 20),
        bytes_per_second,
        socket_bytes,
        chunk_bytes: random.pick(&[64, 300, 2000, 256 << 10, 256 << 10]),
        is_proven: random.percent(70),
    }
}

fn planned<T>(
    random: &mut Random,
    count: usize,
    span: Duration,
    what: impl Fn(&mut Random) -> T,
) -> Vec<Planned<T>> {
    let last = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut planned: Vec<_> = (0..count)
        .map(|_| Planned {
            at: random.millis(500, last),
            seed: random.next(),
            what: what(random),
        })
        .collect();
    planned.sort_by_key(|planned| planned.at);
    planned
}

fn op(random: &mut Random) -> Op {
    match random.below(100) {
        0..=39 => Op::Signal,
        40..=57 => Op::Ability,
        58..=69 => Op::Event,
        70..=77 => Op::Subscribe,
        78..=81 => Op::Unsubscribe,
        82..=96 => Op::Emit,
        97 => Op::Disconnect,
        _ => Op::Abandon,
    }
}
