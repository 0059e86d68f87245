//! What must be true of every send, call and handling.

use nacp_link::{Answered, Settlement, StreamEnd, StreamId, Token, Undelivered};
use nacp_proto::{MessageId, Outcome, Payload};

use super::sent::{Kind, Sent, uid_of};
use super::world::World;

impl World {
    pub(crate) fn sent_of(&self, uid: u64) -> &Sent {
        &self.sent[index(uid)]
    }

    /// A message has reached an application. Its uid.
    pub(crate) fn reach(&mut self, life: usize, payload: &Payload) -> Option<u64> {
        match uid_of(payload) {
            Ok(Some(uid)) if index(uid) < self.sent.len() => {
                self.reach_uid(life, uid);
                Some(uid)
            }
            Ok(_) => {
                self.fail(|| format!("life {life} got a payload that nobody sent: {payload:?}"));
                None
            }
            Err(damage) => {
                self.fail(|| format!("life {life}: {damage}"));
                None
            }
        }
    }

    pub(crate) fn reach_uid(&mut self, life: usize, uid: u64) {
        self.trace
            .log(self.now, || format!("#{uid} reaches life {life}"));
        self.trace.mix(uid << 8 | life as u64);
        let sent = self.sent_of(uid);
        let (from, kind, to) = (sent.from, sent.kind, sent.to);
        let is_repeat = sent.reached.contains(&life);
        let app = self.lives[life].app;
        self.check(to == app, || {
            format!("#{uid} for app {to} reaches life {life} of app {app}")
        });
        if is_repeat {
            let excused = self.may_repeat(life, uid);
            self.check(excused, || {
                format!("#{uid} {kind:?} is handled twice in life {life}")
            });
            return;
        }
        self.check_receiver(life, uid);
        self.check_order(life, uid, from);
        self.sent[index(uid)].reached.push(life);
    }

    /// Notifies have no dedup: one that arrived whole, but whose acceptance was not told, is sent
    /// again. And what went through a gateway outlives the window of a source that is forgotten.
    fn may_repeat(&self, life: usize, uid: u64) -> bool {
        let sent = self.sent_of(uid);
        let has_lost_link = self.lives[life].forgot.contains(&self.lives[sent.from].app);
        (sent.was_unreported && (sent.kind.is_notify() || has_lost_link))
            || (!sent.is_direct && (has_lost_link || !self.lives[sent.from].is_alive))
    }

    /// What waited for one instance goes to another only if that is proven, and only requests and
    /// subscribes do.
    fn check_receiver(&mut self, life: usize, uid: u64) {
        let sent = self.sent_of(uid);
        let Some(meant) = sent.meant.filter(|meant| *meant != life && sent.is_direct) else {
            return;
        };
        let (kind, from) = (sent.kind, sent.from);
        let is_proven = self.lives[from].proven.contains(&life);
        let may_go = matches!(kind, Kind::Ability | Kind::Event | Kind::Subscribe);
        self.check(may_go && is_proven, || {
            format!("#{uid} {kind:?} was meant for life {meant} and reaches life {life} (proven: {is_proven})")
        });
    }

    /// What one life sends another by their own link is handled in the order of sending. Relay
    /// retries may break it (section 9), and what the node sends by itself passes blocked sends.
    fn check_order(&mut self, life: usize, uid: u64, from: usize) {
        let sent = self.sent_of(uid);
        if !sent.is_direct {
            return;
        }
        let overtakes = sent.may_overtake;
        let kind = sent.kind;
        let latest = self.latest.get(&(from, life)).copied().unwrap_or(0);
        self.check(uid > latest || latest == 0, || {
            format!("#{uid} {kind:?} of life {from} reaches life {life} after #{latest}")
        });
        if !overtakes {
            self.latest.insert((from, life), latest.max(uid));
        }
    }

    pub(crate) fn settled(&mut self, life: usize, uid: u64, settlement: Settlement) {
        self.trace.log(self.now, || {
            format!("life {life}: #{uid} settles {}", brief(&settlement))
        });
        self.trace.mix(uid << 16 | settlement_number(&settlement));
        let is_waiting = self.lives[life].waiting.remove(&uid);
        self.check(is_waiting && index(uid) < self.sent.len(), || {
            format!("life {life}: #{uid} settles, and nobody waits for it: {settlement:?}")
        });
        if self.failure.is_some() {
            return;
        }
        let sent = &mut self.sent[index(uid)];
        sent.settled = Some(settlement.clone());
        let (kind, to, was_reached) = (sent.kind, sent.to, !sent.reached.is_empty());
        self.lives[life].calls -= usize::from(kind.is_call());
        self.lives[life].waiting_dials -= usize::from(kind == Kind::Connect);
        match (kind, settlement) {
            (Kind::Signal | Kind::Response { .. }, Settlement::Delivered) => {
                self.check(was_reached, || {
                    format!("#{uid} {kind:?} is told delivered, and reached nobody")
                });
            }
            (
                Kind::Item { .. }
                | Kind::Hit { .. }
                | Kind::Unsubscribe
                | Kind::Disconnect
                | Kind::Terminate,
                Settlement::Delivered,
            ) => {}
            (
                Kind::Ability | Kind::Event | Kind::Subscribe | Kind::Unsubscribe,
                Settlement::Answered(answered),
            ) => {
                self.answered(life, uid, &answered);
            }
            (Kind::Connect, Settlement::Connected(app)) => {
                let found = self.app_of(&app);
                let is_online = self.lives[life]
                    .node
                    .link(&app)
                    .is_some_and(|link| link.state == nacp_link::LinkState::Online);
                let has_ended = !self.lives[life].batch.ended.is_empty();
                self.check(found == to && (is_online || has_ended), || {
                    format!("life {life} is told that {app} is online")
                });
                self.dial_ended(life, to, true);
            }
            (Kind::Connect, Settlement::DialFailed(error)) => {
                self.trace.log(self.now, || format!("dial failed: {error}"));
                self.dial_ended(life, to, false);
            }
            (Kind::Connect | Kind::Disconnect | Kind::Terminate, other) => {
                self.fail(|| format!("#{uid} {kind:?} settles {other:?}"));
            }
            (_, Settlement::Undelivered(reason)) => {
                self.stats.count(reason.as_str());
                if let (
                    Kind::Response { request, .. },
                    Undelivered::Evicted | Undelivered::SendFailed | Undelivered::Poisoned,
                ) = (kind, reason)
                {
                    self.sent[index(request)].is_orphaned = true;
                }
                self.lives[life].batch.excuses.push((uid, reason));
            }
            (_, other) => self.fail(|| format!("#{uid} {kind:?} settles {other:?}")),
        }
        self.lives[life].requests.remove(&uid);
        if matches!(kind, Kind::Item { .. }) {
            self.item_settled(life, uid);
        }
    }

    fn dial_ended(&mut self, life: usize, to: usize, went_well: bool) {
        let from = self.lives[life].app;
        if self.current[from] != Some(life) {
            return;
        }
        for edge in 0..self.edges.len() {
            if (self.edges[edge].from, self.edges[edge].to) == (from, to) {
                self.edges[edge].is_dialling = false;
                if !went_well {
                    self.back_off(edge);
                }
            }
        }
    }

    fn answered(&mut self, life: usize, uid: u64, answered: &Answered) {
        let kind = self.sent_of(uid).kind;
        let outcome = &answered.response.outcome;
        match kind {
            Kind::Ability | Kind::Event => {
                if uid_of(&answered.response.payload) == Ok(None) {
                    let is_tight = self.plan.nodes.iter().any(|node| {
                        node.knobs.max_running < 1024 || node.knobs.max_message_bytes < 2 << 30
                    });
                    return self.check(is_tight && why(outcome) == "processor-rejected", || {
                        format!("#{uid} is answered {answered:?}")
                    });
                }
                if let Some(response) = self.reach(life, &answered.response.payload) {
                    self.check_response(life, uid, response, answered.missed);
                }
            }
            Kind::Subscribe => {
                let is_tight = self
                    .plan
                    .nodes
                    .iter()
                    .any(|node| node.knobs.max_subscriptions < 4096);
                let stream = self.lives[life]
                    .streams
                    .iter_mut()
                    .find(|(_, stream)| stream.uid == uid);
                if outcome.is_ok() {
                    if let Some((_, stream)) = stream {
                        stream.is_live = true;
                    }
                } else {
                    self.lives[life]
                        .streams
                        .retain(|_, stream| stream.uid != uid);
                    self.check(is_tight && why(outcome) == "limit-reached", || {
                        format!("#{uid} is answered {answered:?}")
                    });
                }
            }
            _ => self.check(
                outcome.is_ok() || why(outcome) == "unknown-subscription",
                || format!("#{uid} is answered {answered:?}"),
            ),
        }
    }

    fn check_response(&mut self, life: usize, uid: u64, response: u64, missed: Option<u64>) {
        let Kind::Response { request, items } = self.sent_of(response).kind else {
            return self
                .fail(|| format!("#{uid} is answered by #{response}, which is no response"));
        };
        self.check(request == uid, || {
            format!("#{uid} gets the answer to #{request}")
        });
        let sent = self.sent_of(uid);
        let is_simple =
            sent.is_direct && self.sent_of(response).is_direct && sent.reached.len() == 1;
        let got = self.lives[life].requests.get(&uid).map(|asked| asked.items);
        if let (true, Some(all), Some(got)) = (is_simple, items, got) {
            self.check(missed == Some(all - got.min(all)), || {
                format!("#{uid}: {got} of {all} items came, and {missed:?} are told missing")
            });
        }
    }

    pub(crate) fn item_came(
        &mut self,
        life: usize,
        request: &MessageId,
        token: Option<Token>,
        payload: &Payload,
        missed: Option<u64>,
    ) {
        let uid = token.map_or(u64::MAX, |token| token.0);
        let is_asked = self.lives[life]
            .requests
            .get(&uid)
            .is_some_and(|asked| asked.id == *request);
        self.check(is_asked, || {
            format!("life {life}: an item comes for #{uid}, which nobody waits for")
        });
        let already = uid_of(payload)
            .ok()
            .flatten()
            .is_some_and(|item| self.sent_of(item).reached.contains(&life));
        let Some(item) = self.reach(life, payload) else {
            return;
        };
        let Kind::Item { request, index } = self.sent_of(item).kind else {
            return self.fail(|| format!("#{item} comes as an item"));
        };
        self.check(request == uid, || {
            format!("#{item} comes as an item of #{uid}")
        });
        let is_simple =
            self.sent_of(item).is_direct && self.sent_of(uid).reached.len() == 1 && !already;
        if let Some(asked) = self.lives[life].requests.get_mut(&uid) {
            let expected = index - asked.next.min(index);
            asked.next = index + 1;
            asked.items += u64::from(!already);
            self.check(!is_simple || missed == Some(expected), || {
                format!("#{item}: {expected} items are missing before it, and {missed:?} are told")
            });
        }
    }

    pub(crate) fn hit_came(
        &mut self,
        life: usize,
        stream: StreamId,
        payload: &Payload,
        missed: Option<u64>,
    ) {
        let already = uid_of(payload)
            .ok()
            .flatten()
            .is_some_and(|hit| self.sent_of(hit).reached.contains(&life));
        let Some(hit) = self.reach(life, payload) else {
            return;
        };
        let (kind, is_direct) = (self.sent_of(hit).kind, self.sent_of(hit).is_direct);
        let Kind::Hit {
            subscribe,
            serial,
            index,
        } = kind
        else {
            return self.fail(|| format!("#{hit} comes as a hit"));
        };
        let Some(held) = self.lives[life].streams.get_mut(&stream) else {
            return self.fail(|| format!("#{hit} is told to {stream:?}, which has ended"));
        };
        if held.serial != serial {
            held.serial = serial;
            held.next = 0;
        }
        let expected = index - held.next.min(index);
        held.next = index + 1;
        let is_right = held.uid == subscribe;
        self.check(is_right, || format!("#{hit} is told to another stream"));
        self.check(!is_direct || already || missed == Some(expected), || {
            format!("#{hit}: {expected} hits are missing before it, and {missed:?} are told")
        });
    }

    pub(crate) fn stream_ended(&mut self, life: usize, stream: StreamId, reason: &StreamEnd) {
        let held = self.lives[life].streams.remove(&stream);
        self.trace.log(self.now, || {
            format!("life {life}: {stream:?} ends, {reason:?}")
        });
        let Some(held) = held else {
            return self
                .fail(|| format!("life {life}: {stream:?} ends, which nobody has: {reason:?}"));
        };
        match reason {
            StreamEnd::Undelivered(reason) => {
                self.lives[life].batch.excuses.push((held.uid, *reason))
            }
            StreamEnd::Refused { .. } => {}
            _ => self.fail(|| format!("life {life}: {stream:?} ends, {reason:?}")),
        }
    }

    /// Every reason must be one that the turn, the options or the faults account for.
    pub(crate) fn judge_excuses(&mut self, life: usize) {
        let batch = std::mem::take(&mut self.lives[life].batch);
        for (uid, reason) in &batch.excuses {
            let (uid, reason) = (*uid, *reason);
            if self.sent_of(uid).kind == Kind::Subscribe
                && self
                    .sent_of(uid)
                    .settled
                    .as_ref()
                    .is_none_or(|settled| matches!(settled, Settlement::Undelivered(_)))
            {
                self.lives[life]
                    .streams
                    .retain(|_, stream| stream.uid != uid);
            }
            let holds = self.accounts_for(life, uid, reason, &batch);
            let (kind, now) = (self.sent_of(uid).kind, self.now);
            self.check(holds, || {
                format!(
                    "life {life}: nothing accounts for #{uid} {kind:?} ending {reason} at {now:?}"
                )
            });
        }
        self.check(batch.reports.is_empty(), || {
            format!(
                "life {life}: {:?} is reported without its event",
                batch.reports
            )
        });
    }

    fn accounts_for(
        &self,
        life: usize,
        uid: u64,
        reason: Undelivered,
        batch: &super::life::Batch,
    ) -> bool {
        let (sent, known) = (self.sent_of(uid), &self.lives[life]);
        let knobs = &known.knobs;
        let is_answer = matches!(sent.kind, Kind::Response { .. } | Kind::Item { .. });
        let was_stream =
            sent.kind == Kind::Subscribe && matches!(sent.settled, Some(Settlement::Answered(_)));
        match reason {
            Undelivered::NoRoute => !known.is_online(sent.to),
            Undelivered::SendFailed => sent.has_failed || sent.kind == Kind::Unsubscribe,
            Undelivered::Refused => {
                sent.kind.is_notify()
                    && (knobs.has_tight_queues()
                        || knobs.submit_count < 1024
                        || knobs.submit_bytes < 4 << 20)
            }
            Undelivered::Evicted => knobs.has_tight_queues() && !knobs.waits,
            Undelivered::PeerGone => {
                let was_dropped =
                    batch.dropped.contains(&sent.to) || known.leaving.contains(&sent.to);
                was_dropped || is_answer || !sent.is_direct
            }
            Undelivered::SessionLost => {
                batch.lost.contains(&sent.to) || is_answer || !sent.is_direct
            }
            Undelivered::Terminated => known.is_ending,
            Undelivered::Timeout => {
                was_stream || sent.limit.is_some_and(|limit| self.now >= sent.at + limit)
            }
            Undelivered::TooLarge => {
                let is_tight = self
                    .plan
                    .nodes
                    .iter()
                    .any(|node| node.knobs.max_message_bytes < 2 << 30);
                is_tight && sent.is_large
            }
            Undelivered::UnroutableRelay => !sent.is_direct,
            Undelivered::Poisoned => {
                let disconnects = known.disconnects.get(&sent.to).copied().unwrap_or(0);
                // Through a gateway it is the gateway's link that breaks.
                let by_link =
                    disconnects >= sent.disconnects_before + knobs.poison_limit && disconnects >= 3;
                knobs.poison_limit > 0 && (by_link || !sent.is_direct)
            }
            Undelivered::Discarded => {
                is_answer || matches!(sent.kind, Kind::Hit { .. } | Kind::Subscribe)
            }
            Undelivered::SelfAddressed => false,
            _ => false,
        }
    }

    /// A message is evicted from ack-pending. What waits for its answer stays.
    pub(crate) fn overflowed(&mut self, life: usize, id: &MessageId) {
        let asked = self.lives[life]
            .requests
            .iter()
            .find(|(_, asked)| asked.id == *id);
        if let Some(uid) = asked.map(|(uid, _)| *uid) {
            self.sent[index(uid)].is_orphaned = true;
        }
        let peers: Vec<_> = self.lives[life].peers.values().copied().collect();
        for at in peers {
            self.end(at).unacked.remove(id);
        }
    }
}

fn why(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::NotOk { why: Some(why) } => why,
        Outcome::NotOk { why: None } | Outcome::Ok => "",
    }
}

pub(crate) fn index(uid: u64) -> usize {
    usize::try_from(uid).unwrap_or(usize::MAX)
}

fn brief(settlement: &Settlement) -> String {
    match settlement {
        Settlement::Answered(answered) => format!(
            "answered {}",
            if answered.response.outcome.is_ok() {
                "well"
            } else {
                "badly"
            }
        ),
        other => format!("{other:?}"),
    }
}

fn settlement_number(settlement: &Settlement) -> u64 {
    match settlement {
        Settlement::Delivered => 1,
        Settlement::Undelivered(reason) => 100 + *reason as u64,
        Settlement::Answered(answered) => 2 + u64::from(answered.response.outcome.is_ok()),
        Settlement::Connected(_) => 4,
        Settlement::DialFailed(_) => 5,
        _ => 6,
    }
}
