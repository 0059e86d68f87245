//! How sends and calls may end.

use nacp_link::{Answered, LinkState, Settlement, Undelivered};
use nacp_proto::{AppId, MessageId, Outcome};

use super::oracle::index;
use super::sent::{Kind, uid_of};
use super::world::World;

impl World {
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
            (Kind::Connect, Settlement::Connected(app)) => self.connected_to(life, to, &app),
            (Kind::Connect, Settlement::DialFailed(error)) => {
                self.trace.log(self.now, || format!("dial failed: {error}"));
                self.dial_ended(life, to, false);
            }
            (Kind::Connect | Kind::Disconnect | Kind::Terminate, other) => {
                self.fail(|| format!("#{uid} {kind:?} settles {other:?}"));
            }
            (_, Settlement::Undelivered(reason)) => self.undelivered(life, uid, reason),
            (_, other) => self.fail(|| format!("#{uid} {kind:?} settles {other:?}")),
        }
        self.lives[life].requests.remove(&uid);
        if matches!(kind, Kind::Item { .. }) {
            self.item_settled(life, uid);
        }
    }

    fn connected_to(&mut self, life: usize, to: usize, app: &AppId) {
        let found = self.app_of(app);
        let known = &self.lives[life];
        let link = known.node.link(app);
        let is_online = link.is_some_and(|link| link.state == LinkState::Online);
        let has_ended = !known.batch.ended.is_empty();
        self.check(found == to && (is_online || has_ended), || {
            format!("life {life} is told that {app} is online")
        });
        self.dial_ended(life, to, true);
    }

    fn undelivered(&mut self, life: usize, uid: u64, reason: Undelivered) {
        self.stats.count(reason.as_str());
        let is_lost = matches!(
            reason,
            Undelivered::Evicted | Undelivered::SendFailed | Undelivered::Poisoned
        );
        if let Kind::Response { request, .. } = self.sent_of(uid).kind
            && is_lost
        {
            self.sent[index(request)].is_orphaned = true;
        }
        self.lives[life].batch.excuses.push((uid, reason));
    }

    pub(super) fn dial_ended(&mut self, life: usize, to: usize, went_well: bool) {
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

    pub(super) fn answered(&mut self, life: usize, uid: u64, answered: &Answered) {
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

    pub(super) fn check_response(
        &mut self,
        life: usize,
        uid: u64,
        response: u64,
        missed: Option<u64>,
    ) {
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
        let is_bound = self.lives[life].bindings.is_empty();
        self.check(is_bound, || {
            format!("life {life}: a peer is told registered, and no app is online")
        });
        self.check(batch.reports.is_empty(), || {
            format!(
                "life {life}: {:?} is reported without its event",
                batch.reports
            )
        });
    }

    pub(super) fn accounts_for(
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
