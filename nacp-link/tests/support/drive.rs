//! What the driver of a node does: drains it, hands on what it gives out, closes.

use nacp_link::{Close, Event, Lane, PeerId, Transmit};
use nacp_proto::Encoded;

use super::{ACCEPTOR, DIALLER, End, Intake, Mode, Site, World};

impl World {
    pub(super) fn drain(&mut self) {
        for site in 0..self.sites.len() {
            while let Some(event) = self.sites[site].node.poll_event() {
                self.happen(site, event);
            }
            while let Some(transmit) = self.sites[site].node.poll_transmit() {
                self.transmit(site, transmit);
            }
        }
        // Wires are only ever added, and most of a long run's are over.
        while self
            .wires
            .get(self.first_alive)
            .is_some_and(|wire| wire.gone == [true; 2])
        {
            self.first_alive += 1;
        }
        for wire in self.first_alive..self.wires.len() {
            for from in [DIALLER, ACCEPTOR] {
                self.pump(wire, from);
            }
        }
        let busy = |site: &Site| site.has_work;
        if self.sites.iter().any(busy) {
            for site in &mut self.sites {
                site.has_work = false;
            }
            self.drain();
        }
    }

    pub(super) fn happen(&mut self, site: usize, event: Event) {
        let at = self.at();
        let now = self.now;
        self.sites[site].collect(at, now, event);
    }

    pub(super) fn transmit(&mut self, site: usize, transmit: Transmit) {
        let at = self.at();
        match transmit {
            Transmit::Send {
                peer,
                lane,
                encoded,
            } => self.submit(site, peer, lane, encoded),
            Transmit::Registered { peer, native } => {
                self.sites[site].registered.push((at, peer, native));
            }
            Transmit::Pause { peer } => self.set_paused(site, peer, true),
            Transmit::Resume { peer } => self.set_paused(site, peer, false),
            Transmit::Close { peer, how } => self.close(site, peer, how),
            other => panic!("unknown transmit {other:?}"),
        }
    }

    pub(super) fn submit(&mut self, site: usize, peer: PeerId, lane: Lane, encoded: Encoded) {
        let Some((wire, end)) = self.sites[site].wire_of(peer) else {
            panic!("a message for the unknown peer {peer:?}");
        };
        let bytes = encoded.to_bytes();
        let wire = &mut self.wires[wire];
        if wire.gone[end] {
            return;
        }
        assert!(
            wire.ways[end].closing.is_none(),
            "a message behind the close of its peer"
        );
        wire.ways[end].outbox[usize::from(lane == Lane::Bulk)].push_back(bytes);
    }

    pub(super) fn set_paused(&mut self, site: usize, peer: PeerId, paused: bool) {
        let Some((wire, end)) = self.sites[site].wire_of(peer) else {
            return;
        };
        self.wires[wire].paused[end] = paused;
        while !self.wires[wire].paused[end] {
            let Some(parcel) = self.wires[wire].ways[1 - end].unread.pop_front() else {
                return;
            };
            self.arrive(wire, end, parcel);
            self.sites[site].has_work = true;
        }
    }

    pub(super) fn close(&mut self, site: usize, peer: PeerId, how: Close) {
        let at = self.at();
        let Some((wire, end)) = self.sites[site].wire_of(peer) else {
            panic!("a close of the unknown peer {peer:?}");
        };
        self.sites[site].closes.push((at, wire, how));
        if self.wires[wire].gone[end] {
            return;
        }
        let way = &mut self.wires[wire].ways[end];
        assert!(way.closing.is_none(), "one peer is closed twice");
        way.closing = Some(how);
        if how == Close::Abort {
            let swallowed = way.mode == Mode::Swallow;
            self.forget_flights(wire);
            self.disconnect_end(wire, end, None);
            if !swallowed {
                self.launch_end(wire, 1 - end, None);
            }
            self.sites[site].has_work = true;
        }
    }

    /// Lets an end's provider take what it takes, and finishes a close.
    pub(super) fn pump(&mut self, wire: usize, from: usize) {
        let way = &self.wires[wire].ways[from];
        let idle = way.outbox.iter().all(|lane| lane.is_empty());
        if !idle && way.intake != Intake::Stalled {
            let reported = way.intake == Intake::Open;
            while self.take_one(wire, from) {}
            if reported {
                self.report_accepted(wire, from);
            }
            if let End::Site { site, .. } = self.wires[wire].ends[from] {
                self.sites[site].has_work = true;
            }
        }
        let way = &mut self.wires[wire].ways[from];
        let flushed = way.outbox.iter().all(|lane| lane.is_empty());
        if flushed && !way.finished && way.closing.is_some() && !self.wires[wire].gone[from] {
            self.finish(wire, from);
        }
    }

    pub(super) fn finish(&mut self, wire: usize, from: usize) {
        let way = &mut self.wires[wire].ways[from];
        way.finished = true;
        let refuse = way.closing == Some(Close::Refuse);
        self.launch_end(wire, 1 - from, None);
        if !refuse {
            self.disconnect_end(wire, from, None);
        }
        if let End::Site { site, .. } = self.wires[wire].ends[from] {
            self.sites[site].has_work = true;
        }
    }
}
