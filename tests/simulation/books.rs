//! What must be true of a node's books: after every turn, when all is quiet, and at the end.

use std::collections::BTreeSet;

use nacp_link::{LinkState, NodeSnapshot, Settlement, Table, Undelivered};

use super::sent::Kind;
use super::world::World;

/// Records that a node may send by itself beyond the caps of `Wait`, a link.
const EXCESS: usize = 1024;

impl World {
    pub(crate) fn check_books(&mut self, life: usize) {
        if self.failure.is_some() {
            return;
        }
        let all = self.lives[life].node.snapshot();
        let held = self
            .caps_hold(life, &all)
            .or_else(|| self.sums_hold(life, &all))
            .or_else(|| self.limits_hold(life, &all));
        if let Some(broken) = held {
            self.fail(|| format!("life {life}: {broken}"));
        }
    }

    /// What is broken about the caps, if anything is.
    fn caps_hold(&self, life: usize, all: &NodeSnapshot) -> Option<String> {
        let (node, knobs) = (&self.lives[life].node, &self.lives[life].knobs);
        let exceeds = |table: Table, count: usize, bytes: u64| {
            table.count > count || (table.bytes > bytes && table.count != 1)
        };
        if knobs.waits {
            let held = all.backlog.count + all.submitted.count + all.ack_pending.count;
            if held > knobs.queue_count + EXCESS * all.links {
                return Some(format!("{held} records are held under `Wait`"));
            }
        } else if exceeds(all.backlog, knobs.queue_count, knobs.queue_bytes) {
            return Some(format!("the backlog is over its caps: {:?}", all.backlog));
        } else if exceeds(all.ack_pending, knobs.queue_count, knobs.queue_bytes) {
            return Some(format!(
                "ack-pending is over its caps: {:?}",
                all.ack_pending
            ));
        }
        for link in node.links() {
            let most = knobs
                .link_count
                .saturating_add(if knobs.waits { EXCESS } else { 0 });
            if link.backlog.count > most || link.ack_pending.count > most {
                return Some(format!("a link is over its own caps: {link:?}"));
            }
            if exceeds(link.submitted, knobs.submit_count, knobs.submit_bytes)
                || link.submitted.count > knobs.submit_count
            {
                return Some(format!("a window is over its size: {link:?}"));
            }
        }
        None
    }

    /// What is broken about sums and about what the application knows, if anything is.
    fn sums_hold(&self, life: usize, all: &NodeSnapshot) -> Option<String> {
        let known = &self.lives[life];
        let mut sum = NodeSnapshot::default();
        let mut states = 0;
        for link in known.node.links() {
            add(&mut sum.backlog, link.backlog);
            add(&mut sum.submitted, link.submitted);
            add(&mut sum.ack_pending, link.ack_pending);
            sum.blocked += link.blocked;
            sum.running += link.running;
            sum.subscriptions += link.subscriptions;
            sum.streams += link.streams;
            states += usize::from(known.state(self.app_of(link.app)) == Some(link.state));
        }
        if states != all.links || states != known.links.len() {
            return Some(format!("its links are not as told: {:?}", known.links));
        }
        let running = known
            .running
            .values()
            .filter(|run| run.cancelled.is_none())
            .count();
        let told = (
            running,
            known.subscriptions.len(),
            known.streams.len(),
            known.peers.len(),
        );
        if told != (all.running, all.subscriptions, all.streams, all.peers) {
            return Some(format!(
                "running, subscriptions, streams and peers are told to be {told:?}: {all:?}"
            ));
        }
        let is_sum = (sum.backlog, sum.ack_pending, sum.blocked)
            == (all.backlog, all.ack_pending, all.blocked)
            && (sum.running, sum.subscriptions, sum.streams)
                == (running, all.subscriptions, all.streams)
            && sum.submitted.count >= all.submitted.count
            && sum.submitted.bytes >= all.submitted.bytes;
        if !is_sum {
            return Some(format!("the links sum up to {sum:?}, of {all:?}"));
        }
        let calls = known.calls;
        (all.calls < calls).then(|| format!("{calls} calls wait: {all:?}"))
    }

    /// What is broken about deadlines, if anything is.
    fn limits_hold(&self, life: usize, all: &NodeSnapshot) -> Option<String> {
        let known = &self.lives[life];
        let online = known
            .links
            .values()
            .filter(|link| link.state == LinkState::Online)
            .count();
        let dials = known.waiting_dials;
        let remotes = if self.plan.has_gateway {
            self.plan.nodes.len() * all.links
        } else {
            0
        };
        let most = (all.peers - online.min(all.peers))
            + online * 5
            + (all.links - online)
            + dials
            + all.calls
            + remotes
            + 1;
        if all.timers > most {
            return Some(format!(
                "{} deadlines are armed, and {most} have a cause: {all:?}",
                all.timers
            ));
        }
        if self.plan.large_percent > 0
            || known
                .node
                .poll_timeout()
                .is_some_and(|next| next <= self.instant())
        {
            return None;
        }
        known.peers.values().find_map(|(conn, end)| {
            let end = &self.conns[*conn].ends[*end];
            let (id, at) = end.unacked.iter().min_by_key(|(_, at)| **at)?;
            let is_over = *at + known.knobs.ack_timeout < self.now && !end.has_grown(self.now);
            let link = known.links.values().find(|link| link.conn == *conn);
            (is_over && link.is_some_and(|link| link.state == LinkState::Online))
                .then(|| format!("{id} is not acknowledged since {at:?}, and its link is online"))
        })
    }

    /// Everybody is back, and nothing waits any more.
    pub(crate) fn check_settled(&mut self) {
        if self.failure.is_some() {
            return;
        }
        for edge in 0..self.edges.len() {
            let (from, to) = (self.edges[edge].from, self.edges[edge].to);
            self.check_edge(from, to);
        }
        for life in self.live() {
            let knobs = &self.lives[life].knobs;
            if self.plan.has_gateway && knobs.waits && knobs.has_tight_queues() {
                // What nobody acknowledges through a gateway holds its room for three limits each.
                continue;
            }
            let left: Vec<u64> = self.lives[life]
                .waiting
                .iter()
                .copied()
                .filter(|uid| !self.may_wait_on(*uid))
                .collect();
            self.check(left.is_empty(), || {
                format!("life {life}: nobody settles {left:?} when all is quiet")
            });
            let all = self.lives[life].node.snapshot();
            let tables = [all.backlog, all.submitted, all.ack_pending];
            let calls = self.lives[life].calls;
            let is_empty =
                tables == [Table::default(); 3] && all.blocked == 0 && all.calls == calls;
            self.check(is_empty, || {
                format!("life {life}: something is left when all is quiet: {all:?}")
            });
        }
        self.check_deadlines();
        if !self.plan.has_gateway {
            self.check_subscriptions();
        }
    }

    /// When nothing waits, only the heartbeats have deadlines: the next beat, the last one's ACK, and
    /// beats from end to end; and the ACK of whatever was sent last.
    fn check_deadlines(&mut self) {
        for life in self.live() {
            let known = &self.lives[life];
            let all = known.node.snapshot();
            let ends = if self.plan.has_gateway {
                self.plan.nodes.len()
            } else {
                0
            };
            let is_idle = known.last_bulk + known.knobs.ack_timeout < self.now;
            let acks = if is_idle { 0 } else { all.links };
            let beats = acks + known.knobs.heartbeat.map_or(0, |_| 2 * all.links + ends);
            self.check(all.calls > 0 || all.timers <= beats, || {
                format!(
                    "life {life}: {} deadlines are armed when all is quiet: {all:?}",
                    all.timers
                )
            });
        }
    }

    /// An answer may get lost on the way through a gateway, and nobody hears of it; or the other
    /// side was told why it was.
    fn may_wait_on(&self, uid: u64) -> bool {
        let sent = self.sent_of(uid);
        let is_request = matches!(sent.kind, Kind::Ability | Kind::Event);
        let app = self.lives[sent.from].app;
        let was_lost = self
            .lives
            .iter()
            .any(|life| life.app == sent.to && life.answers_lost.contains(&app));
        let is_relayed = self.plan.has_gateway && !sent.is_direct;
        sent.is_orphaned || (is_request && (was_lost || is_relayed))
    }

    fn check_edge(&mut self, from: usize, to: usize) {
        let (Some(one), Some(other)) = (self.current[from], self.current[to]) else {
            return self.fail(|| format!("app {from} or app {to} does not run"));
        };
        let there = self.lives[one]
            .links
            .get(&to)
            .map(|link| (link.state, link.life, link.conn));
        let back = self.lives[other]
            .links
            .get(&from)
            .map(|link| (link.state, link.life, link.conn));
        let (Some((state, life, conn)), Some((state_back, life_back, conn_back))) = (there, back)
        else {
            return self.fail(|| {
                format!(
                    "app {from} and app {to} are not linked when all is quiet: {there:?} {back:?}"
                )
            });
        };
        let agree =
            state == LinkState::Online && state_back == LinkState::Online && conn == conn_back;
        self.check(agree && life == other && life_back == one, || {
            format!("app {from} and app {to} do not agree on their link: {there:?} {back:?}")
        });
    }

    /// Who listens where is told alike by both sides.
    fn check_subscriptions(&mut self) {
        let (mut wanted, mut held, mut lingers) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for life in self.live() {
            let streams = self.lives[life].streams.values();
            wanted.extend(streams.map(|stream| (stream.to, stream.uid)));
            let app = self.lives[life].app;
            for subscription in self.lives[life].subscriptions.values() {
                held.insert((app, subscription.uid));
                if self.may_linger(life, subscription.uid) {
                    lingers.insert((app, subscription.uid));
                }
            }
        }
        let lost: Vec<_> = wanted.difference(&held).collect();
        let left = held
            .difference(&wanted)
            .filter(|left| !lingers.contains(left));
        let left: Vec<_> = left.collect();
        self.check(lost.is_empty() && left.is_empty(), || {
            format!("subscriptions that only one side knows: lost {lost:?}, left {left:?}")
        });
    }

    /// It was told why a subscription may live on: its answer or what was to end it was lost, and no
    /// hit has shown it since.
    fn may_linger(&self, life: usize, uid: u64) -> bool {
        let sent = self.sent_of(uid);
        let app = self.lives[sent.from].app;
        let is_lost = matches!(
            sent.settled,
            Some(Settlement::Undelivered(
                Undelivered::SendFailed | Undelivered::Evicted | Undelivered::Poisoned
            ))
        );
        is_lost || sent.lost_endings > 0 || self.lives[life].answers_lost.contains(&app)
    }

    /// Every node has ended, and nothing is left of anything.
    pub(crate) fn check_ended(&mut self) {
        if self.failure.is_some() {
            return;
        }
        for life in self.live() {
            let known = &self.lives[life];
            let all = known.node.snapshot();
            let (left, deadline) = (known.waiting.clone(), known.node.poll_timeout());
            let is_over =
                known.has_ended && left.is_empty() && deadline.is_none() && known.links.is_empty();
            self.check(is_over && all == NodeSnapshot::default(), || {
                format!("life {life}: something is left at the end: {left:?} {deadline:?} {all:?}")
            });
        }
    }
}

fn add(sum: &mut Table, table: Table) {
    sum.count += table.count;
    sum.bytes += table.bytes;
}
