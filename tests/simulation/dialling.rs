//! How connections come to be.

use std::time::Duration;

use nacp_link::{Connect, DialId, Origin, PeerId, Trust, Verdict};

use super::sent::Kind;
use super::wire::{Conn, End};
use super::world::{Happening, Phase, World};

impl World {
    pub(crate) fn redial_after(&mut self, edge: usize, wait: Duration) {
        if !self.edges[edge].is_due {
            self.edges[edge].is_due = true;
            self.after(wait, Happening::Redial(edge));
        }
    }

    pub(crate) fn redial(&mut self, at: usize) {
        let edge = &mut self.edges[at];
        edge.is_due = false;
        let (from, to) = (edge.from, edge.to);
        let Some(life) = self.current[from] else {
            return;
        };
        let edge = &self.edges[at];
        if edge.is_dialling || edge.is_suspended || self.phase == Phase::Ending {
            return;
        }
        if self.lives[life].is_ending
            || self.lives[life].is_online(to)
            || self.lives[life].leaving.contains(&to)
        {
            return;
        }
        self.edges[at].is_dialling = true;
        let names = self.random.percent(95);
        self.connect(life, to, names);
    }

    pub(crate) fn connect(&mut self, life: usize, to: usize, names: bool) {
        let token = self.call(life, to, Kind::Connect, None, false);
        let target = names.then(|| self.plan.nodes[to].app.clone());
        let connect = self.lives[life].node.connect(target, None, Some(token));
        if let Connect::Dial(dial) = connect {
            self.attempt(life, to, dial, names);
        }
        self.turn(life);
    }

    pub(super) fn attempt(&mut self, life: usize, to: usize, dial: DialId, is_named: bool) {
        let latency = self.plan.net.latency;
        let from = self.lives[life].app;
        let is_parted = self.partitions.contains(&(from.min(to), from.max(to)));
        let Some(target) = self.current[to].filter(|target| !is_parted && *target != life) else {
            let wait = latency + self.random.millis(0, 500);
            return self.after(wait, Happening::DialFailed(life, dial));
        };
        let is_proven = self.plan.net.is_proven;
        let conn = self.conns.len();
        self.conns.push(Conn {
            ends: [End::new(life, is_proven), End::new(target, is_proven)],
            dial,
            is_named,
            dialler_kept: None,
            bound: None,
            is_broken: false,
        });
        for end in 0..2 {
            let wait = latency + self.random.millis(0, 10);
            self.after(wait, Happening::Up(conn, end));
        }
    }

    pub(crate) fn dial_failed(&mut self, life: usize, dial: DialId) {
        if self.lives[life].is_alive {
            let instant = self.instant();
            self.lives[life].node.handle_dial_failed(instant, dial);
            self.turn(life);
        }
    }

    pub(crate) fn connected(&mut self, conn: usize, end: usize) {
        let instant = self.instant();
        let (life, other) = (
            self.conns[conn].ends[end].life,
            self.conns[conn].ends[1 - end].life,
        );
        if !self.lives[life].is_alive {
            return self.after(Duration::ZERO, Happening::Down(conn, 1 - end));
        }
        if end == 0 {
            let app = self.lives[other].app;
            let kept = self.lives[life]
                .links
                .get(&app)
                .map(|link| (link.life, link.kin));
            let is_leaving = self.lives[life].leaving.contains(&app);
            let is_told = self.conns[conn].is_named && !is_leaving;
            self.conns[conn].dialler_kept = kept.filter(|_| is_told);
        }
        let known = &self.conns[conn].ends[end];
        let trust = if known.is_proven {
            Trust::Proven
        } else {
            Trust::Unproven
        };
        let origin = if end == 0 {
            Origin::Dialled(self.conns[conn].dial)
        } else {
            Origin::Accepted
        };
        let peer = self.lives[life]
            .node
            .handle_connected(instant, origin, trust);
        self.trace.log(self.now, || {
            format!(
                "life {life} is connected by {:?} to life {other}",
                (conn, end)
            )
        });
        self.lives[life].peers.insert(peer, (conn, end));
        let known = self.end((conn, end));
        known.peer = Some(peer);
        known.is_up = true;
        self.turn(life);
        if self.conns[conn].is_broken {
            return self.down(conn, end);
        }
        self.after(Duration::ZERO, Happening::Arrive(conn, end));
    }

    pub(crate) fn decide(&mut self, life: usize, peer: PeerId, verdict: Verdict) {
        if !self.lives[life].is_alive {
            return;
        }
        if let Some(at) = self.lives[life].peers.get(&peer).copied() {
            match verdict {
                Verdict::Admit => self.end(at).is_proven = false,
                Verdict::AdmitProven => self.end(at).is_proven = true,
                _ => {}
            }
        }
        let instant = self.instant();
        self.lives[life]
            .node
            .handle_authorized(instant, peer, verdict);
        self.turn(life);
    }
}
