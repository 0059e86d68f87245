//! How connections end, for one side and for the other.

use bytes::Bytes;
use nacp_link::{Close, Event, Inbound, Verdict};
use nacp_proto::Message;

use super::wire::Flow;
use super::world::{Happening, World};

impl World {
    pub(super) fn close(&mut self, life: usize, at: (usize, usize), how: Close) {
        self.trace
            .log(self.now, || format!("life {life} closes {at:?}: {how:?}"));
        self.lose_reports(at);
        let keeps = self.random.percent(50);
        self.lives[life].batch.closed.insert(at);
        let end = self.end(at);
        end.is_up = false;
        if let Some(peer) = end.peer {
            self.lives[life].peers.remove(&peer);
        }
        self.end((at.0, 1 - at.1)).pipe.flow = Flow::Swallow;
        match how {
            Close::Flush | Close::Refuse => self.end(at).is_flushing = true,
            _ => self.abort(at, keeps),
        }
        self.maybe_ghost(at);
    }

    /// A reset leaves an end. What is under way may still come before it.
    pub(super) fn abort(&mut self, at: (usize, usize), keeps: bool) {
        let latency = self.plan.net.latency;
        let now = self.now;
        let end = self.end(at);
        end.discard();
        let is_open = end.pipe.flow == Flow::Open;
        let heard = end
            .pipe
            .last_arrival()
            .filter(|_| keeps)
            .unwrap_or(now)
            .max(end.pipe.held_until);
        if !keeps {
            end.pipe.cut(0);
        }
        end.pipe.flow = Flow::Swallow;
        if is_open {
            self.schedule(heard + latency, Happening::Down(at.0, 1 - at.1));
        }
    }

    /// The process of an end is no more.
    pub(crate) fn process_died(&mut self, conn: usize, end: usize) {
        let at = (conn, end);
        self.lose_reports(at);
        let known = self.end(at);
        known.is_up = false;
        known.is_flushing = false;
        self.end((conn, 1 - end)).pipe.flow = Flow::Swallow;
        match self.random.below(10) {
            0..=6 => {
                let keeps = self.random.percent(50);
                self.abort(at, keeps);
            }
            7..=8 => {
                self.end(at).pipe.swallow();
                let wait = self.random.millis(1000, 30_000);
                self.after(wait, Happening::Down(conn, 1 - end));
            }
            _ => self.end(at).pipe.swallow(),
        }
        self.end(at).discard();
    }

    /// Both ends of a connection are cut off at once.
    pub(crate) fn reset(&mut self, conn: usize) {
        self.trace
            .log(self.now, || format!("connection {conn} is reset"));
        for end in 0..2 {
            self.conns[conn].ends[end].pipe.cut(0);
            let wait = self.random.millis(0, 30);
            self.after(wait, Happening::Down(conn, end));
        }
        self.conns[conn].is_broken = true;
    }

    pub(crate) fn down(&mut self, conn: usize, end: usize) {
        let at = (conn, end);
        let Some(peer) = self
            .end(at)
            .peer
            .filter(|_| self.conns[conn].ends[end].is_up)
        else {
            return;
        };
        let life = self.end(at).life;
        self.trace
            .log(self.now, || format!("life {life} hears the end of {at:?}"));
        let now = self.now;
        if now >= self.end(at).late_until {
            self.tell_accepted(at);
        }
        self.lose_reports(at);
        let known = self.end(at);
        known.is_up = false;
        known.discard();
        known.pipe.flow = Flow::Swallow;
        self.lives[life].peers.remove(&peer);
        self.lives[life].batch.ended.insert(peer, at);
        let instant = self.instant();
        self.lives[life]
            .node
            .handle_disconnected(instant, peer, None);
        self.turn(life);
        self.maybe_ghost(at);
        // A half that was flushed goes on; any other hears of it.
        let wait = self.plan.net.latency;
        if !self.conns[conn].ends[1 - end].is_flushing
            && !self.conns[conn].is_broken
            && self.random.percent(50)
        {
            self.after(wait, Happening::Down(conn, 1 - end));
        }
    }

    pub(super) fn maybe_ghost(&mut self, at: (usize, usize)) {
        if self.random.percent(30) {
            let wait = self.random.millis(0, 20_000);
            self.after(wait, Happening::Ghost(at.0, at.1));
        }
    }

    /// Whatever still comes of a connection that has ended changes nothing.
    pub(crate) fn ghost(&mut self, conn: usize, end: usize) {
        let instant = self.instant();
        let known = &self.conns[conn].ends[end];
        let life = known.life;
        let Some(peer) = known
            .peer
            .filter(|_| !known.is_up && self.lives[life].is_alive)
        else {
            return;
        };
        let heard: Vec<Bytes> = known.heard.iter().cloned().collect();
        let accepted = known.accepted;
        self.stats.count("ghost");
        let node = &mut self.lives[life].node;
        let before = node.snapshot();
        for bytes in heard {
            if let Ok(decoded) = Message::decode(&bytes) {
                node.handle_message(instant, peer, Inbound { bytes, decoded });
            }
        }
        node.handle_progress(instant, peer, 100_000);
        node.handle_send_failed(peer, accepted.bulk);
        node.handle_accepted(
            instant,
            peer,
            nacp_link::Accepted {
                control: u64::MAX,
                bulk: u64::MAX,
            },
        );
        node.handle_authorized(instant, peer, Verdict::AdmitProven);
        node.handle_disconnected(instant, peer, None);
        let after = node.snapshot();
        let transmit = node.poll_transmit();
        let event = std::iter::from_fn(|| node.poll_event())
            .find(|event| !matches!(event, Event::Report(_)));
        self.check(before == after && transmit.is_none() && event.is_none(), || {
            format!("life {life}: inputs of {peer:?}, which has ended, did something: {transmit:?} {event:?} {before:?} {after:?}")
        });
    }
}
