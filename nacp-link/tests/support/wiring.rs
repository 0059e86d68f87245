//! Wires: laying, cutting, holding back, and what travels on them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use nacp_link::{Connect, DialId, Lane, Origin, Token};
use nacp_proto::Message;

use super::{ACCEPTOR, Crossing, DIALLER, End, Flight, Intake, Mode, Parcel, Wire, World};

impl World {
    /// Lays a wire between two nodes for an attempt of the first; nothing runs yet.
    pub(crate) fn lay(&mut self, from: usize, dial: DialId, to: usize) -> usize {
        let wire = self.wires.len();
        self.wires.push(Wire::new());
        self.join(wire, DIALLER, from, Origin::Dialled(dial));
        self.join(wire, ACCEPTOR, to, Origin::Accepted);
        wire
    }

    pub(super) fn join(&mut self, wire: usize, end: usize, site: usize, origin: Origin) {
        let (now, trust) = (self.now, self.trust);
        let peer = self.sites[site].node.handle_connected(now, origin, trust);
        self.sites[site].peers.insert(peer, (wire, end));
        self.wires[wire].ends[end] = End::Site { site, peer };
    }

    /// The first node wants the second online: the wire and the token of the attempt. Nothing runs yet.
    pub(crate) fn dial(&mut self, from: usize, to: usize) -> (usize, Token) {
        let target = self.app_of(to);
        let token = self.token();
        let connect = (self.sites[from].node).connect(Some(target), None, Some(token));
        let Connect::Dial(dial) = connect else {
            panic!("expected a dial, got {connect:?}");
        };
        (self.lay(from, dial, to), token)
    }

    /// Dials and runs; the attempt must end well at once.
    pub(crate) fn link(&mut self, from: usize, to: usize) -> usize {
        let (wire, token) = self.dial(from, to);
        self.run();
        let expected = format!("connected {}", self.app_of(to));
        assert_eq!(self.outcome(from, token), expected);
        wire
    }

    /// Both ends notice the end of a wire; what was under way is lost.
    pub(crate) fn cut(&mut self, wire: usize) {
        self.notice(wire, DIALLER, None);
        self.notice(wire, ACCEPTOR, None);
    }

    /// One end is told that its wire has ended; what was under way is lost.
    pub(crate) fn notice(&mut self, wire: usize, end: usize, fault: Option<&'static str>) {
        self.forget_flights(wire);
        self.disconnect_end(wire, end, fault);
    }

    pub(super) fn disconnect_end(&mut self, wire: usize, end: usize, fault: Option<&'static str>) {
        if std::mem::replace(&mut self.wires[wire].gone[end], true) {
            return;
        }
        let now = self.now;
        if let End::Site { site, peer } = self.wires[wire].ends[end] {
            (self.sites[site].node).handle_disconnected(now, peer, fault);
        }
    }

    pub(super) fn forget_flights(&mut self, wire: usize) {
        self.flying.retain(|_, flight| flight.wire != wire);
        for way in &mut self.wires[wire].ways {
            way.held.clear();
            way.unread.clear();
            way.outbox = [const { VecDeque::new() }; 2];
        }
    }

    /// What happens from now on to bytes that leave an end.
    pub(crate) fn set_mode(&mut self, wire: usize, from: usize, mode: Mode) {
        self.wires[wire].ways[from].mode = mode;
    }

    pub(crate) fn hold(&mut self, wire: usize, from: usize) {
        self.set_mode(wire, from, Mode::Hold);
    }

    /// Neither end's bytes arrive any more, and nobody is told.
    pub(crate) fn swallow(&mut self, wire: usize) {
        self.set_mode(wire, DIALLER, Mode::Swallow);
        self.set_mode(wire, ACCEPTOR, Mode::Swallow);
    }

    /// Passes on what was held, and everything after it.
    pub(crate) fn release(&mut self, wire: usize, from: usize) {
        self.set_mode(wire, from, Mode::Deliver);
        self.release_some(wire, from, usize::MAX);
    }

    /// Passes on the first so many of what was held, and holds on.
    pub(crate) fn release_some(&mut self, wire: usize, from: usize, count: usize) {
        for _ in 0..count {
            let Some(parcel) = self.wires[wire].ways[from].held.pop_front() else {
                return;
            };
            self.launch(wire, from, parcel);
        }
    }

    pub(crate) fn set_intake(&mut self, wire: usize, from: usize, intake: Intake) {
        self.wires[wire].ways[from].intake = intake;
    }

    pub(crate) fn set_delay(&mut self, wire: usize, delay: Duration) {
        for way in &mut self.wires[wire].ways {
            way.delay = delay;
        }
    }

    /// The provider of a stalled end takes so many more messages, control first.
    pub(crate) fn accept(&mut self, wire: usize, from: usize, count: usize) {
        for _ in 0..count {
            if !self.take_one(wire, from) {
                return;
            }
        }
        self.report_accepted(wire, from);
    }

    /// Tells a node what its provider has accepted so far.
    pub(crate) fn report_accepted(&mut self, wire: usize, from: usize) {
        let accepted = self.wires[wire].ways[from].accepted;
        let now = self.now;
        if let (End::Site { site, peer }, false) =
            (self.wires[wire].ends[from], self.wires[wire].gone[from])
        {
            (self.sites[site].node).handle_accepted(now, peer, accepted);
        }
    }

    /// Moves one message from an end's outbox onto the wire.
    pub(super) fn take_one(&mut self, wire: usize, from: usize) -> bool {
        let way = &mut self.wires[wire].ways[from];
        let (lane, bytes) = if let Some(bytes) = way.outbox[0].pop_front() {
            way.accepted.control += 1;
            (Lane::Control, bytes)
        } else if let Some(bytes) = way.outbox[1].pop_front() {
            way.accepted.bulk += 1;
            (Lane::Bulk, bytes)
        } else {
            return false;
        };
        self.put(wire, from, lane, bytes);
        true
    }

    /// Logs a message and sends it off.
    pub(super) fn put(&mut self, wire: usize, from: usize, lane: Lane, bytes: Bytes) {
        let decoded = Message::decode(&bytes).ok();
        let line = match &decoded {
            Some(decoded) => self.describe(decoded),
            None => "undecodable".to_owned(),
        };
        self.log.push(Crossing {
            at: self.at(),
            arrived: None,
            wire,
            from,
            lane,
            bytes: bytes.clone(),
            decoded,
            line,
        });
        let parcel = Parcel::Message {
            bytes,
            entry: self.log.len() - 1,
        };
        self.dispatch(wire, from, parcel);
    }

    pub(super) fn dispatch(&mut self, wire: usize, from: usize, parcel: Parcel) {
        match self.wires[wire].ways[from].mode {
            Mode::Deliver => self.launch(wire, from, parcel),
            Mode::Hold => self.wires[wire].ways[from].held.push_back(parcel),
            Mode::Swallow => {}
        }
    }

    pub(super) fn launch(&mut self, wire: usize, from: usize, parcel: Parcel) {
        let now = self.now;
        let way = &mut self.wires[wire].ways[from];
        let earliest = way.last_arrival.unwrap_or(now);
        let arrival = (now + way.delay).max(earliest);
        way.last_arrival = Some(arrival);
        self.launched += 1;
        let flight = Flight {
            wire,
            to: 1 - from,
            parcel,
        };
        self.flying.insert((arrival, self.launched), flight);
    }

    pub(super) fn launch_end(&mut self, wire: usize, to: usize, fault: Option<&'static str>) {
        self.dispatch(wire, 1 - to, Parcel::End { fault });
    }
}
