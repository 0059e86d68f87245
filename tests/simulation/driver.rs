//! What stands between a node and its connections, as any driver would.

use std::time::Duration;

use bytes::Bytes;
use nacp_link::{Inbound, Lane, PeerId, Transmit};
use nacp_proto::{Body, Decoded, Encoded, Message, MessageType};

use super::oracle::index;
use super::sent::uid_of;
use super::trace::hash_of;
use super::wire::{End, Flow, Note};
use super::world::{Happening, World};

/// Repeats and ghosts draw from so many messages.
const HEARD: usize = 8;

impl World {
    /// Does what a node asks for; the end that may have something to write.
    pub(crate) fn transmit(&mut self, life: usize, transmit: Transmit) -> Option<(usize, usize)> {
        match transmit {
            Transmit::Send {
                peer,
                lane,
                encoded,
            } => {
                let at = self.end_of(life, peer, "message")?;
                self.send(life, at, lane, encoded);
                Some(at)
            }
            Transmit::Registered { peer, .. } => {
                let ended = self.lives[life].batch.ended.get(&peer).copied();
                let at = self.end_of(life, peer, "registered").or(ended)?;
                self.end(at).decoder.handle_registered();
                self.lives[life].bindings.push_back(at);
                None
            }
            Transmit::Pause { peer } => {
                let at = self.end_of(life, peer, "pause")?;
                self.end(at).is_paused = true;
                None
            }
            Transmit::Resume { peer } => {
                let at = self.end_of(life, peer, "resume")?;
                self.end(at).is_paused = false;
                self.after(Duration::ZERO, Happening::Arrive(at.0, at.1));
                None
            }
            Transmit::Close { peer, how } => {
                let at = self.end_of(life, peer, "close")?;
                self.close(life, at, how);
                Some(at)
            }
            other => {
                self.fail(|| format!("life {life}: an unknown transmit {other:?}"));
                None
            }
        }
    }

    pub(crate) fn end(&mut self, (conn, end): (usize, usize)) -> &mut End {
        &mut self.conns[conn].ends[end]
    }

    fn end_of(&mut self, life: usize, peer: PeerId, what: &str) -> Option<(usize, usize)> {
        let at = self.lives[life].peers.get(&peer).copied();
        // What was asked before the node heard of the end comes to nothing.
        let has_just_ended = self.lives[life].batch.ended.contains_key(&peer);
        self.check(at.is_some() || has_just_ended, || {
            format!("life {life}: {what} is asked of {peer:?}, which has ended")
        });
        at
    }

    fn send(&mut self, life: usize, at: (usize, usize), lane: Lane, encoded: Encoded) {
        let whole = encoded.to_bytes();
        self.trace.mix_bytes(&whole);
        self.trace
            .mix((at.0 * 4 + at.1 * 2 + usize::from(lane == Lane::Bulk)) as u64);
        self.stats.wire_messages += 1;
        let decoded = match Message::decode(&whole) {
            Ok(decoded) => decoded,
            Err(error) => {
                return self.fail(|| format!("life {life} sends what is no message: {error}"));
            }
        };
        if lane == Lane::Bulk {
            self.lives[life].last_bulk = self.now;
        }
        let note = self.note(life, at, lane, &decoded, &whole);
        self.trace.log(self.now, || {
            format!(
                "life {life} sends on {at:?} {lane:?} {}{}",
                describe(&decoded),
                if note.is_lost { " (lost)" } else { "" }
            )
        });
        if let Some(id) = note.id.clone().filter(|_| note.is_beat) {
            self.end(at).beats.insert(id);
        }
        self.end(at).push(lane, Encoded::from(whole), note);
    }

    fn note(
        &mut self,
        life: usize,
        at: (usize, usize),
        lane: Lane,
        decoded: &Decoded,
        whole: &Bytes,
    ) -> Note {
        let envelope = decoded.envelope();
        let app = self.lives[life].app;
        let other = self.conns[at.0].ends[1 - at.1].life;
        let is_own = self.app_of(envelope.from) == app;
        let is_direct = self.app_of(envelope.to) == self.lives[other].app;
        let message_type = decoded.message_type();
        if is_own && lane == Lane::Bulk {
            let hash = hash_of(whole);
            let before = self.wires.insert((life, envelope.id.clone()), hash);
            self.check(before.is_none_or(|before| before == hash), || {
                format!("life {life}: a replay of {} has other bytes", envelope.id)
            });
        }
        let uid = uid_in(decoded);
        if let Some(uid) = uid.filter(|_| is_own && message_type == Some(MessageType::Subscribe)) {
            self.subscribes.insert((life, envelope.id.clone()), uid);
        }
        let is_beat = lane == Lane::Control && message_type == Some(MessageType::Request);
        let is_ack = message_type == Some(MessageType::Ack);
        let loses = is_ack && self.conns[at.0].ends[at.1].lose_acks > 0;
        if loses {
            self.end(at).lose_acks -= 1;
        }
        let is_reliable = message_type.is_some_and(MessageType::is_reliable);
        Note {
            id: Some(envelope.id.clone()),
            uid,
            is_watched: is_own && is_direct && is_reliable && (lane == Lane::Bulk || is_beat),
            is_beat,
            is_response: lane == Lane::Bulk && message_type == Some(MessageType::Response),
            is_lost: loses,
        }
    }

    pub(crate) fn write(&mut self, conn: usize, end: usize) {
        let now = self.now;
        let known = &mut self.conns[conn].ends[end];
        if !known.is_up && !known.is_flushing {
            return;
        }
        let written = known.write(now, &self.plan.net, &mut self.random);
        for at in written.arrivals {
            self.schedule(at, Happening::Arrive(conn, 1 - end));
        }
        let known = &mut self.conns[conn].ends[end];
        if let Some((index, uid)) = written.fails
            && !known.is_failing
        {
            known.is_failing = true;
            if let Some(uid) = uid.and_then(|uid| usize::try_from(uid).ok()) {
                self.sent[uid].has_failed = true;
            }
            self.after(Duration::ZERO, Happening::SendFails(conn, end, index));
        }
        self.plan_report((conn, end));
        let known = &mut self.conns[conn].ends[end];
        if written.is_done && known.is_flushing && !known.pipe.fin {
            known.pipe.fin = true;
            if known.pipe.flow == Flow::Open {
                let last = known
                    .pipe
                    .last_arrival()
                    .unwrap_or(now)
                    .max(known.pipe.held_until);
                let at = last.max(now + self.plan.net.latency);
                self.schedule(at, Happening::Arrive(conn, 1 - end));
            }
        }
    }

    fn plan_report(&mut self, at: (usize, usize)) {
        let now = self.now;
        let end = self.end(at);
        if !end.is_up || !end.has_unreported() || end.report_at.is_some() {
            return;
        }
        let is_late = now < end.late_until;
        let wait = if is_late {
            self.random.millis(100, 12_000)
        } else {
            Duration::from_millis(self.random.pick(&[0, 0, 1, 4]))
        };
        self.end(at).report_at = Some(now + wait);
        self.after(wait, Happening::Report(at.0, at.1));
    }

    pub(crate) fn report_acceptance(&mut self, conn: usize, end: usize) {
        let at = (conn, end);
        if self.end(at).report_at.take().is_none() || !self.end(at).is_up {
            return;
        }
        let life = self.end(at).life;
        self.tell_accepted(at);
        self.turn(life);
        self.plan_report(at);
        self.write(conn, end);
    }

    pub(super) fn tell_accepted(&mut self, at: (usize, usize)) {
        let (now, instant) = (self.now, self.instant());
        let end = self.end(at);
        let Some(peer) = end.peer.filter(|_| end.is_up && end.has_unreported()) else {
            return;
        };
        end.reported = end.accepted;
        for (_, note) in std::mem::take(&mut end.unreported) {
            if let Some(id) = note.id.filter(|_| note.is_watched) {
                end.watch(id, now);
            }
        }
        let (life, accepted) = (end.life, end.accepted);
        self.lives[life]
            .node
            .handle_accepted(instant, peer, accepted);
    }

    /// Before a deadline or an end, a driver tells what was accepted before it.
    pub(crate) fn flush_reports(&mut self, life: usize) {
        let peers: Vec<_> = self.lives[life].peers.values().copied().collect();
        for at in peers {
            let now = self.now;
            if now >= self.end(at).late_until {
                self.tell_accepted(at);
            }
        }
    }

    /// What was accepted without being told stays untold.
    pub(super) fn lose_reports(&mut self, at: (usize, usize)) {
        for (_, note) in std::mem::take(&mut self.end(at).unreported) {
            if let Some(uid) = note.uid.and_then(|uid| usize::try_from(uid).ok()) {
                self.sent[uid].was_unreported = true;
            }
        }
    }

    pub(crate) fn send_fails(&mut self, conn: usize, end: usize, index: u64) {
        let at = (conn, end);
        self.end(at).is_failing = false;
        let Some(peer) = self
            .end(at)
            .peer
            .filter(|_| self.conns[conn].ends[end].is_up)
        else {
            return;
        };
        let life = self.end(at).life;
        self.stats.count("send failed");
        self.lives[life].node.handle_send_failed(peer, index);
        self.end(at).skip_failed();
        self.turn(life);
        self.write(conn, end);
    }

    pub(crate) fn arrive(&mut self, conn: usize, end: usize) {
        let (now, other) = (self.now, 1 - end);
        let [first, second] = &mut self.conns[conn].ends;
        let (here, there) = if end == 0 {
            (first, second)
        } else {
            (second, first)
        };
        if here.peer.is_none() {
            return;
        }
        if !here.is_up {
            there.pipe.queue.clear();
            return;
        }
        if here.is_paused || now < here.slow_until {
            return;
        }
        let mut read = Vec::new();
        while there.pipe.due(now) {
            let Some((_, piece)) = there.pipe.queue.pop_front() else {
                break;
            };
            there.pipe.bytes = there.pipe.bytes.saturating_sub(piece.len());
            read.push(piece);
        }
        let is_over = there.pipe.fin && there.pipe.queue.is_empty();
        let (life, has_read) = (here.life, !read.is_empty());
        for piece in read {
            self.read((conn, end), piece);
        }
        self.turn(life);
        if is_over && self.conns[conn].ends[end].is_up {
            self.down(conn, end);
        }
        if has_read {
            self.after(Duration::ZERO, Happening::Write(conn, other));
        }
    }

    fn read(&mut self, at: (usize, usize), piece: Bytes) {
        let instant = self.instant();
        if !self.end(at).is_up {
            return;
        }
        let messages = match self.end(at).decode(piece, instant) {
            Ok(messages) => messages,
            Err(fault) => return self.fail(|| fault),
        };
        let (life, peer) = (self.end(at).life, self.end(at).peer);
        let (now, progress) = (self.now, self.end(at).decoder.take_progress());
        self.end(at).grow(now, progress);
        if let Some(peer) = peer.filter(|_| progress > 0) {
            self.lives[life]
                .node
                .handle_progress(instant, peer, progress);
        }
        for message in messages {
            if !self.end(at).is_up {
                return;
            }
            self.hear(at, message);
            if self.random.percent(50) {
                self.turn(life);
            }
        }
    }

    fn hear(&mut self, at: (usize, usize), bytes: Bytes) {
        let decoded = match Message::decode(&bytes) {
            Ok(decoded) => decoded,
            Err(error) => return self.fail(|| format!("{at:?}: no message came: {error}")),
        };
        let uid = uid_in(&decoded);
        if uid.is_some_and(|uid| self.poisons.contains(&uid)) {
            self.stats.count("poison taken");
            self.reset(at.0);
            return self.down(at.0, at.1);
        }
        self.trace
            .log(self.now, || format!("{at:?} hears {}", describe(&decoded)));
        let life = self.end(at).life;
        if let Some(sent) = uid.and_then(|uid| self.sent.get_mut(index(uid))) {
            sent.read.push(life);
        }
        let end = self.end(at);
        if let Decoded::Message(message) = &decoded {
            match &message.body {
                Body::Ack { parent_id } => {
                    end.acknowledge(parent_id);
                }
                Body::Response(response) if end.beats.remove(&response.parent_id) => {
                    end.acknowledge(&response.parent_id);
                }
                _ => {}
            }
        }
        if !matches!(
            decoded.message_type(),
            Some(MessageType::Register | MessageType::Notify)
        ) {
            end.heard.push_back(bytes.clone());
        }
        if end.heard.len() > HEARD {
            end.heard.pop_front();
        }
        self.feed(at, Inbound { bytes, decoded });
    }

    pub(crate) fn feed(&mut self, at: (usize, usize), inbound: Inbound) {
        let instant = self.instant();
        let (life, peer) = (self.end(at).life, self.end(at).peer);
        if let Some(peer) = peer {
            self.lives[life].node.handle_message(instant, peer, inbound);
        }
    }
}

/// The uid that a message carries.
pub(crate) fn uid_in(decoded: &Decoded) -> Option<u64> {
    let Decoded::Message(message) = decoded else {
        return None;
    };
    let payload = match &message.body {
        Body::Request { payload, .. } | Body::Notify { payload, .. } => payload,
        Body::Response(response) => &response.payload,
        Body::Signal {
            signal: nacp_proto::Signal::Normal(payload),
            ..
        } => payload,
        Body::Subscribe { target_sub_name } => return super::sent::uid_of_pattern(target_sub_name),
        _ => return None,
    };
    uid_of(payload).ok().flatten()
}

fn describe(decoded: &Decoded) -> String {
    let envelope = decoded.envelope();
    let parent = match decoded {
        Decoded::Message(message) => match &message.body {
            Body::Ack { parent_id }
            | Body::Signal { parent_id, .. }
            | Body::Notify { parent_id, .. } => Some(parent_id),
            Body::Response(response) => Some(&response.parent_id),
            Body::Unsubscribe { target_sub_id } => Some(target_sub_id),
            _ => None,
        },
        _ => None,
    };
    format!(
        "{} {} of {} to {}{}{}",
        decoded
            .message_type()
            .map_or("unknown", MessageType::as_str),
        short(envelope.id),
        envelope.from,
        envelope.to,
        parent
            .map(|id| format!(" for {}", short(id)))
            .unwrap_or_default(),
        uid_in(decoded)
            .map(|uid| format!(" #{uid}"))
            .unwrap_or_default(),
    )
}

fn short(id: &nacp_proto::MessageId) -> String {
    id.sequence()
        .map_or_else(|| id.to_string(), |number| format!("({number})"))
}
