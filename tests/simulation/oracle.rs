//! What must be true of every send, call and handling.

use nacp_link::{StreamEnd, StreamId, Token};
use nacp_proto::{MessageId, Payload};

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
        // The first time its node refused it, and told nobody.
        let was_read = sent.read.iter().filter(|read| **read == life).count() > 1;
        let is_repeat = was_read && self.may_repeat(life, uid);
        self.check(uid > latest || latest == 0 || is_repeat, || {
            format!("#{uid} {kind:?} of life {from} reaches life {life} after #{latest}")
        });
        if !overtakes {
            self.latest.insert((from, life), latest.max(uid));
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
            asked.next = asked.next.max(index + 1);
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
        held.next = held.next.max(index + 1);
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
}

pub(crate) fn index(uid: u64) -> usize {
    usize::try_from(uid).unwrap_or(usize::MAX)
}
