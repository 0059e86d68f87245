//! The world of a seed: a virtual clock, a heap of what is to happen, and the nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::time::{Duration, Instant};

use nacp_link::{DialId, LinkState, Node, PeerId, RunningId, Verdict};
use nacp_proto::MessageId;

use super::life::Life;
use super::plan::Plan;
use super::random::Random;
use super::sent::Sent;
use super::stats::Stats;
use super::trace::Trace;
use super::wire::Conn;

/// What is to happen.
#[derive(Debug, Clone)]
pub(crate) enum Happening {
    /// A node's deadline.
    Wake(usize),
    /// A node starts.
    Birth(usize),
    Redial(usize),
    DialFailed(usize, DialId),
    /// One end of a connection hears that it is there.
    Up(usize, usize),
    Arrive(usize, usize),
    Write(usize, usize),
    /// The provider tells what it has accepted.
    Report(usize, usize),
    SendFails(usize, usize, u64),
    /// An end hears that the connection has ended.
    Down(usize, usize),
    /// Inputs of a connection that has ended.
    Ghost(usize, usize),
    Decide(usize, PeerId, Verdict),
    Handle(usize, RunningId),
    Op(usize),
    Fault(usize),
    Heal(Heal),
    Finish(usize),
}

/// The end of a lasting fault.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Heal {
    Partition(usize, usize),
    Poison(u64),
    Impostor(usize),
    Edge(usize),
}

#[derive(Debug)]
struct Entry {
    at: Duration,
    /// At one instant, deadlines go first.
    class: u8,
    order: u64,
    what: Happening,
}

/// Who dials whom.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) is_dialling: bool,
    pub(crate) is_suspended: bool,
    pub(crate) is_due: bool,
    pub(crate) backoff: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Calls and faults.
    Busy,
    /// Nothing new goes wrong, and everybody comes back.
    Quiet,
    /// The nodes end.
    Ending,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now: Duration,
    pub(crate) phase: Phase,
    pub(crate) lives: Vec<Life>,
    /// The life that an app's address leads to.
    pub(crate) current: Vec<Option<usize>>,
    pub(crate) conns: Vec<Conn>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) partitions: BTreeSet<(usize, usize)>,
    pub(crate) poisons: BTreeSet<u64>,
    pub(crate) had_impostor: bool,
    /// The last message, in the order of sending, that went from one life to another.
    pub(crate) latest: BTreeMap<(usize, usize), u64>,
    /// What a message id of a life stood for on the wire.
    pub(crate) wires: HashMap<(usize, MessageId), u64>,
    /// The subscribe that a message id of a life names.
    pub(crate) subscribes: HashMap<(usize, MessageId), u64>,
    pub(crate) kins: u64,
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) stats: Stats,
    pub(crate) failure: Option<String>,
    epoch: Instant,
    heap: BinaryHeap<Reverse<Entry>>,
    order: u64,
}

/// How a run of a seed ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) failure: Option<String>,
    pub(crate) hash: u64,
    pub(crate) stats: Stats,
    pub(crate) lines: Vec<String>,
}

/// From the end of the faults until everything must be settled.
const QUIET: Duration = Duration::from_secs(90);
/// Happenings of a run, at the most.
const MAX_STEPS: u64 = 2_000_000;

impl World {
    pub(crate) fn run(plan: Plan, is_logged: bool) -> Outcome {
        let mut world = Self::new(plan, is_logged);
        world.start();
        world.run_until(world.plan.span);
        world.become_quiet();
        world.run_until(world.plan.span + QUIET);
        world.check_settled();
        world.become_ending();
        world.run_until(Duration::MAX);
        world.check_ended();
        world.stats.virtual_time = world.now;
        Outcome {
            failure: world.failure,
            hash: world.trace.hash(),
            stats: world.stats,
            lines: world.trace.lines().to_vec(),
        }
    }

    fn new(plan: Plan, is_logged: bool) -> Self {
        let count = plan.nodes.len();
        let edges = plan.edges.iter().map(|(from, to)| Edge {
            from: *from,
            to: *to,
            is_dialling: false,
            is_suspended: false,
            is_due: false,
            backoff: Duration::ZERO,
        });
        Self {
            now: Duration::ZERO,
            phase: Phase::Busy,
            lives: Vec::new(),
            current: vec![None; count],
            conns: Vec::new(),
            edges: edges.collect(),
            sent: Vec::new(),
            partitions: BTreeSet::new(),
            poisons: BTreeSet::new(),
            had_impostor: false,
            latest: BTreeMap::new(),
            wires: HashMap::new(),
            subscribes: HashMap::new(),
            kins: 0,
            random: Random::new(plan.seed, 1),
            trace: Trace::new(is_logged),
            stats: Stats::default(),
            failure: None,
            epoch: epoch(),
            heap: BinaryHeap::new(),
            order: 0,
            plan,
        }
    }

    fn start(&mut self) {
        for app in 0..self.plan.nodes.len() {
            let at = self.random.millis(0, 200);
            self.schedule(at, Happening::Birth(app));
        }
        for (at, op) in self
            .plan
            .ops
            .iter()
            .map(|op| op.at)
            .enumerate()
            .collect::<Vec<_>>()
        {
            self.schedule(op, Happening::Op(at));
        }
        for (at, fault) in self
            .plan
            .faults
            .iter()
            .map(|fault| fault.at)
            .enumerate()
            .collect::<Vec<_>>()
        {
            self.schedule(fault, Happening::Fault(at));
        }
    }

    pub(crate) fn schedule(&mut self, at: Duration, what: Happening) {
        self.order += 1;
        self.heap.push(Reverse(Entry {
            at: at.max(self.now),
            class: u8::from(!matches!(what, Happening::Wake(_))),
            order: self.order,
            what,
        }));
    }

    pub(crate) fn after(&mut self, wait: Duration, what: Happening) {
        self.schedule(self.now + wait, what);
    }

    fn run_until(&mut self, end: Duration) {
        while self.failure.is_none() {
            let Some(entry) = self.heap.peek().filter(|entry| entry.0.at <= end) else {
                break;
            };
            self.now = entry.0.at;
            let Some(Reverse(entry)) = self.heap.pop() else {
                break;
            };
            self.stats.steps += 1;
            if self.stats.steps > MAX_STEPS {
                self.fail(|| "the world does not come to rest".to_owned());
            }
            self.happen(entry.what);
        }
        if end != Duration::MAX {
            self.now = end;
        }
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Wake(life) => self.wake(life),
            Happening::Birth(app) => self.birth(app),
            Happening::Redial(edge) => self.redial(edge),
            Happening::DialFailed(life, dial) => self.dial_failed(life, dial),
            Happening::Up(conn, end) => self.connected(conn, end),
            Happening::Arrive(conn, end) => self.arrive(conn, end),
            Happening::Write(conn, end) => self.write(conn, end),
            Happening::Report(conn, end) => self.report_acceptance(conn, end),
            Happening::SendFails(conn, end, index) => self.send_fails(conn, end, index),
            Happening::Down(conn, end) => self.down(conn, end),
            Happening::Ghost(conn, end) => self.ghost(conn, end),
            Happening::Decide(life, peer, verdict) => self.decide(life, peer, verdict),
            Happening::Handle(life, running) => self.handle(life, running),
            Happening::Op(at) => self.operate(at),
            Happening::Fault(at) => self.break_something(at),
            Happening::Heal(heal) => self.heal(heal),
            Happening::Finish(life) => self.finish(life),
        }
    }

    pub(crate) fn instant(&self) -> Instant {
        self.epoch + self.now
    }

    pub(crate) fn fail(&mut self, what: impl FnOnce() -> String) {
        if self.failure.is_none() {
            let what = what();
            self.trace.log(self.now, || format!("FAILED: {what}"));
            self.failure = Some(format!("at {:.3} s: {what}", self.now.as_secs_f64()));
        }
    }

    /// Holds an invariant to be true.
    pub(crate) fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fail(what);
        }
    }

    pub(crate) fn app_of(&self, name: &nacp_proto::AppId) -> usize {
        let found = self.plan.nodes.iter().position(|node| node.app == *name);
        found.unwrap_or(usize::MAX)
    }

    pub(crate) fn birth(&mut self, app: usize) {
        if self.current[app].is_some() || self.phase == Phase::Ending {
            return;
        }
        let life = self.new_life(app);
        self.current[app] = Some(life);
        for edge in 0..self.edges.len() {
            if self.edges[edge].from == app {
                self.edges[edge].is_dialling = false;
                self.redial_after(edge, Duration::from_millis(1));
            }
        }
    }

    pub(crate) fn new_life(&mut self, app: usize) -> usize {
        let (config, knobs) = {
            let node = &self.plan.nodes[app];
            (node.knobs.config(node), node.knobs.clone())
        };
        let seed = self.random.node_seed();
        let unix_ms = 1.7e12 + self.now.as_secs_f64() * 1000.0;
        #[expect(clippy::unwrap_used, reason = "every plan's options make sense")]
        let mut node = Node::new(config, self.instant(), unix_ms, seed).unwrap();
        node.set_interest(super::app::interest(self.plan.reports_all));
        let life = self.lives.len();
        self.lives.push(Life::new(app, node, knobs));
        self.trace
            .log(self.now, || format!("life {life} of app {app} begins"));
        life
    }

    fn wake(&mut self, life: usize) {
        if !self.lives[life].is_alive || self.lives[life].wake != Some(self.now) {
            return;
        }
        self.lives[life].wake = None;
        self.flush_reports(life);
        self.trace.mix(life as u64);
        let now = self.instant();
        self.lives[life].node.handle_timeout(now);
        let next = self.lives[life].node.poll_timeout();
        self.check(next.is_none_or(|next| next > now), || {
            format!("life {life}: a deadline is due again right after it fired")
        });
        self.turn(life);
    }

    /// Drains a node after its inputs, and holds it to its promises.
    pub(crate) fn turn(&mut self, life: usize) {
        let mut touched = BTreeSet::new();
        loop {
            let mut is_busy = false;
            while let Some(transmit) = self.lives[life].node.poll_transmit() {
                is_busy = true;
                touched.extend(self.transmit(life, transmit));
            }
            while let Some(event) = self.lives[life].node.poll_event() {
                is_busy = true;
                self.event(life, event);
            }
            if !is_busy || self.failure.is_some() {
                break;
            }
        }
        self.check_rest(life);
        self.judge_excuses(life);
        self.check_books(life);
        for (conn, end) in touched {
            self.write(conn, end);
        }
        self.arm(life);
    }

    /// A node that was drained has nothing left to do: looking at the clock once more changes
    /// nothing, unless a deadline is due.
    fn check_rest(&mut self, life: usize) {
        let instant = self.instant();
        let node = &mut self.lives[life].node;
        if node.poll_timeout().is_some_and(|next| next <= instant) {
            return;
        }
        node.handle_timeout(instant);
        let (transmit, event) = (node.poll_transmit(), node.poll_event());
        self.check(transmit.is_none() && event.is_none(), || {
            format!("life {life} had something left to do: {transmit:?} {event:?}")
        });
    }

    fn arm(&mut self, life: usize) {
        let known = &self.lives[life];
        if !known.is_alive {
            return;
        }
        let Some(deadline) = known.node.poll_timeout() else {
            self.lives[life].wake = None;
            return;
        };
        let due = deadline.saturating_duration_since(self.epoch).max(self.now);
        let due = if self.now < known.late_until {
            due + known.late_by
        } else {
            due
        };
        // Waking early is harmless, and being late once more would be late for ever.
        let is_armed = known
            .wake
            .is_some_and(|wake| wake >= self.now && wake <= due);
        if !is_armed {
            self.lives[life].wake = Some(due);
            self.schedule(due, Happening::Wake(life));
        }
    }

    pub(crate) fn live(&self) -> Vec<usize> {
        (0..self.lives.len())
            .filter(|life| self.lives[*life].is_alive)
            .collect()
    }

    /// Ends a life without a word.
    pub(crate) fn crash(&mut self, life: usize) {
        let app = self.lives[life].app;
        self.lives[life].is_alive = false;
        self.trace.log(self.now, || format!("life {life} crashes"));
        if self.current[app] == Some(life) {
            self.current[app] = None;
            for edge in &mut self.edges {
                if edge.from == app {
                    edge.is_dialling = false;
                }
            }
        }
        let peers: Vec<_> = self.lives[life].peers.values().copied().collect();
        for (conn, end) in peers {
            self.process_died(conn, end);
        }
    }

    fn become_quiet(&mut self) {
        self.phase = Phase::Quiet;
        self.trace.log(self.now, || "quiet".to_owned());
        self.heal_all();
        for app in 0..self.current.len() {
            if self.current[app].is_none() {
                self.after(Duration::from_millis(100), Happening::Birth(app));
            }
        }
        for edge in 0..self.edges.len() {
            self.edges[edge].is_suspended = false;
            self.redial_after(edge, Duration::from_millis(200));
        }
        for life in self.live() {
            let running: Vec<_> = self.lives[life].running.keys().copied().collect();
            for running in running {
                let wait = self.random.millis(0, 3000);
                self.after(wait, Happening::Handle(life, running));
            }
        }
    }

    fn become_ending(&mut self) {
        self.phase = Phase::Ending;
        self.trace.log(self.now, || "ending".to_owned());
        for life in self.live() {
            let wait = self.random.millis(0, 1000);
            self.after(wait, Happening::Finish(life));
        }
    }

    pub(crate) fn state_of(&self, life: usize, app: usize) -> Option<LinkState> {
        self.lives[life].state(app)
    }
}

#[expect(clippy::disallowed_methods, reason = "std offers no other epoch")]
fn epoch() -> Instant {
    Instant::now()
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.class, self.order).cmp(&(other.at, other.class, other.order))
    }
}
