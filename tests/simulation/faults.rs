//! What goes wrong, and how it is put right again.

use std::time::Duration;

use nacp_proto::{Body, Decoded, Message, Registered};

use super::plan::Fault;
use super::random::Random;
use super::sent::Kind;
use super::wire::Flow;
use super::world::{Happening, Heal, Phase, World};

const RETRY: Duration = Duration::from_millis(997);

impl World {
    pub(crate) fn break_something(&mut self, at: usize) {
        let planned = self.plan.faults[at];
        if self.phase != Phase::Busy {
            return;
        }
        let mut random = Random::new(planned.seed, 5);
        let fault = planned.what;
        self.trace
            .log(self.now, || format!("fault {at}: {fault:?}"));
        let last_chance = self.now + RETRY > self.plan.span;
        if self.break_by(fault, &mut random) {
            *self.stats.faults.entry(fault).or_default() += 1;
        } else if !last_chance {
            // Nothing is there yet that could break.
            self.after(RETRY, Happening::Fault(at));
        } else if self.partition(&mut random) {
            *self.stats.faults.entry(Fault::Partition).or_default() += 1;
        }
    }

    fn break_by(&mut self, fault: Fault, random: &mut Random) -> bool {
        match fault {
            Fault::CrossDial => self.cross_dial(random),
            Fault::CrashInsideGrace => self.restart(random, Some(false), false),
            Fault::CrashOutsideGrace => self.restart(random, Some(true), false),
            Fault::PoliteRestart => self.restart(random, None, false),
            Fault::GatewayCrash => {
                let outside = random.percent(30);
                self.restart(random, Some(outside), true)
            }
            Fault::Impostor => self.impostor(random),
            Fault::LateTimers => self.late_timers(random),
            Fault::Partition => self.partition(random),
            _ => {
                let conns: Vec<usize> = (0..self.conns.len())
                    .filter(|conn| self.is_whole(*conn))
                    .collect();
                let Some(conn) = random.pick_any(&conns) else {
                    return false;
                };
                let end = random.below(2);
                self.break_conn(fault, conn, end, random);
                true
            }
        }
    }

    fn is_whole(&self, conn: usize) -> bool {
        let conn = &self.conns[conn];
        !conn.is_broken
            && conn
                .ends
                .iter()
                .all(|end| end.is_up && end.pipe.flow == Flow::Open)
    }

    fn break_conn(&mut self, fault: Fault, conn: usize, end: usize, random: &mut Random) {
        let now = self.now;
        self.trace.log(now, || {
            format!("{fault:?} of connection {conn} at end {end}")
        });
        let life = self.conns[conn].ends[end].life;
        let ack_timeout = self.lives[life].knobs.ack_timeout;
        let here = &mut self.conns[conn].ends[end];
        match fault {
            Fault::Close => {
                here.pipe.fin = true;
                let at = here.pipe.last_arrival().unwrap_or(now) + Duration::from_millis(1);
                here.discard();
                self.schedule(at, Happening::Arrive(conn, 1 - end));
                self.down(conn, end);
            }
            Fault::Reset => self.reset(conn),
            Fault::BlackholeOneWay => here.pipe.swallow(),
            Fault::BlackholeBoth => self.conns[conn]
                .ends
                .iter_mut()
                .for_each(|end| end.pipe.swallow()),
            Fault::HalfOpen => {
                here.pipe.swallow();
                self.conns[conn].ends[1 - end].pipe.swallow();
                self.conns[conn].is_broken = true;
                let wait = random.millis(1000, 60_000);
                self.after(wait, Happening::Down(conn, 1 - end));
                self.down(conn, end);
            }
            Fault::CutAtByte => self.cut_at_byte(conn, end, random),
            Fault::Stall => {
                let wait = ack_timeout + random.millis(10, 10_000);
                here.pipe.hold(now + wait);
                self.schedule(now + wait, Happening::Arrive(conn, 1 - end));
            }
            Fault::SlowReader => {
                let wait = random.millis(500, 15_000);
                here.slow_until = now + wait;
                self.after(wait, Happening::Arrive(conn, end));
            }
            Fault::LateAcceptance => here.late_until = now + random.millis(5000, 30_000),
            Fault::SendFailed => here.fail_next += u32::from(random.percent(50)) + 1,
            Fault::LoseAck => here.lose_acks += if random.percent(50) { 1 } else { 5 },
            Fault::HoleAtResponse => here.hole_at_response = true,
            Fault::Poison => self.poison(conn, end, random),
            Fault::Repeat => self.repeat(conn, end),
            _ => {}
        }
    }

    /// Some of the bytes that are under way still arrive, up to any one of them.
    fn cut_at_byte(&mut self, conn: usize, end: usize, random: &mut Random) {
        for side in 0..2 {
            let pipe = &mut self.conns[conn].ends[side].pipe;
            let keep = if side == end {
                random.between(0, pipe.under_way())
            } else {
                0
            };
            pipe.cut(keep);
            let last = pipe.last_arrival().unwrap_or(self.now);
            let heard = if side == end { last } else { self.now };
            self.schedule(
                heard + Duration::from_millis(1),
                Happening::Down(conn, 1 - side),
            );
        }
        self.conns[conn].is_broken = true;
    }

    /// The next signal to the other end kills whoever reads it.
    fn poison(&mut self, conn: usize, end: usize, random: &mut Random) {
        let (life, other) = (
            self.conns[conn].ends[end].life,
            self.conns[conn].ends[1 - end].life,
        );
        let to = self.lives[other].app;
        let uid = self.sent.len() as u64;
        self.poisons.insert(uid);
        self.signal(life, to);
        self.turn(life);
        let wait = random.millis(5000, 60_000);
        self.after(wait, Happening::Heal(Heal::Poison(uid)));
    }

    /// What has come once comes again, as far as a window remembers it.
    fn repeat(&mut self, conn: usize, end: usize) {
        let here = &self.conns[conn].ends[end];
        let knobs = &self.lives[here.life].knobs;
        let window = knobs.dedup_window.unwrap_or(4 * knobs.queue_count);
        let late = here.heard.len().saturating_sub(window);
        let heard: Vec<_> = here.heard.iter().skip(late).cloned().collect();
        let life = self.conns[conn].ends[end].life;
        for bytes in heard {
            let Ok(decoded) = Message::decode(&bytes) else {
                continue;
            };
            if is_register_answer(&decoded) {
                continue;
            }
            self.feed((conn, end), nacp_link::Inbound { bytes, decoded });
        }
        self.turn(life);
    }

    fn cross_dial(&mut self, random: &mut Random) -> bool {
        let Some(edge) = random.pick_any(&(0..self.edges.len()).collect::<Vec<_>>()) else {
            return false;
        };
        let (from, to) = (self.edges[edge].from, self.edges[edge].to);
        let (Some(one), Some(other)) = (self.current[from], self.current[to]) else {
            return false;
        };
        if self.lives[one].is_ending || self.lives[other].is_ending {
            return false;
        }
        for conn in 0..self.conns.len() {
            let ends = &self.conns[conn].ends;
            let is_theirs = ends.iter().all(|end| end.life == one || end.life == other);
            if is_theirs && self.is_whole(conn) {
                for end in 0..2 {
                    self.conns[conn].ends[end].pipe.cut(0);
                }
                self.conns[conn].is_broken = true;
                self.down(conn, 0);
                self.down(conn, 1);
            }
        }
        self.connect(one, to, true);
        self.connect(other, from, true);
        true
    }

    /// An app ends and comes back as another life.
    fn restart(&mut self, random: &mut Random, outside: Option<bool>, gateway: bool) -> bool {
        let apps: Vec<usize> = (0..self.current.len())
            .filter(|app| {
                self.current[*app].is_some() && (!gateway || self.plan.nodes[*app].is_gateway)
            })
            .collect();
        let Some(app) = random.pick_any(&apps) else {
            return gateway && !self.plan.has_gateway;
        };
        let Some(life) = self.current[app] else {
            return false;
        };
        let grace = self
            .plan
            .nodes
            .iter()
            .map(|node| node.knobs.grace)
            .max()
            .unwrap_or_default();
        let wait = match outside {
            Some(true) if grace < Duration::from_secs(60) => grace + random.millis(10, 5000),
            _ => random.millis(10, 6000),
        };
        if outside.is_none() {
            self.lives[life].is_ending = true;
            let token = self.call(life, usize::MAX, Kind::Terminate, None, false);
            let instant = self.instant();
            self.lives[life].node.terminate(instant, Some(token));
            self.turn(life);
            let running: Vec<_> = self.lives[life].running.keys().copied().collect();
            for running in running {
                self.after(Duration::from_secs(12), Happening::Handle(life, running));
            }
            self.current[app] = None;
        } else {
            self.crash(life);
        }
        self.after(wait, Happening::Birth(app));
        true
    }

    /// Another node with the same AppId dials where the first one dials.
    fn impostor(&mut self, random: &mut Random) -> bool {
        let edges: Vec<usize> = (0..self.edges.len()).collect();
        let Some(edge) = random.pick_any(&edges) else {
            return false;
        };
        let (app, to) = (self.edges[edge].from, self.edges[edge].to);
        let life = self.new_life(app);
        self.had_impostor = true;
        self.connect(life, to, true);
        let wait = random.millis(500, 20_000);
        self.after(wait, Happening::Heal(Heal::Impostor(life)));
        true
    }

    fn late_timers(&mut self, random: &mut Random) -> bool {
        let lives = self.live();
        let Some(life) = random.pick_any(&lives) else {
            return false;
        };
        self.lives[life].late_until = self.now + random.millis(3000, 20_000);
        self.lives[life].late_by = random.millis(500, 6000);
        true
    }

    fn partition(&mut self, random: &mut Random) -> bool {
        let edges: Vec<usize> = (0..self.edges.len()).collect();
        let Some(edge) = random.pick_any(&edges) else {
            return false;
        };
        let (from, to) = (self.edges[edge].from, self.edges[edge].to);
        let parted = (from.min(to), from.max(to));
        self.partitions.insert(parted);
        for conn in 0..self.conns.len() {
            let apps = [0, 1].map(|end| self.lives[self.conns[conn].ends[end].life].app);
            if self.is_whole(conn) && (apps == [from, to] || apps == [to, from]) {
                self.reset(conn);
            }
        }
        let wait = random.millis(1000, 30_000);
        self.after(wait, Happening::Heal(Heal::Partition(parted.0, parted.1)));
        true
    }

    pub(crate) fn heal(&mut self, heal: Heal) {
        match heal {
            Heal::Partition(one, other) => {
                self.partitions.remove(&(one, other));
            }
            Heal::Poison(uid) => {
                self.poisons.remove(&uid);
            }
            Heal::Impostor(life) => {
                if self.lives[life].is_alive {
                    self.lives[life].is_ending = true;
                    self.crash(life);
                }
            }
            Heal::Edge(edge) => {
                self.edges[edge].is_suspended = false;
                self.redial_after(edge, Duration::from_millis(10));
            }
        }
    }

    /// From here on bytes flow, or their connections end.
    pub(crate) fn heal_all(&mut self) {
        let now = self.now;
        self.partitions.clear();
        self.poisons.clear();
        for life in 0..self.lives.len() {
            self.lives[life].late_until = Duration::ZERO;
            let app = self.lives[life].app;
            if self.lives[life].is_alive
                && !self.lives[life].is_ending
                && self.current[app] != Some(life)
            {
                self.heal(Heal::Impostor(life));
            }
        }
        for conn in 0..self.conns.len() {
            for end in 0..2 {
                let here = &mut self.conns[conn].ends[end];
                here.slow_until = Duration::ZERO;
                here.pipe.release(now);
                here.late_until = Duration::ZERO;
                here.fail_next = 0;
                here.lose_acks = 0;
                here.hole_at_response = false;
                self.after(Duration::ZERO, Happening::Arrive(conn, end));
            }
            let ends = &self.conns[conn].ends;
            let is_waiting =
                ends.iter().any(|end| end.peer.is_none()) && !self.conns[conn].is_broken;
            if !self.is_whole(conn) && !is_waiting {
                for end in 0..2 {
                    let wait = self.random.millis(0, 2000);
                    self.after(wait, Happening::Down(conn, end));
                }
            }
        }
    }
}

/// It belongs to its connection and no sender repeats it. Remembered like news of the link it would
/// take the place of a message that may still be replayed, when the window is as small as can be.
fn is_register_answer(decoded: &Decoded) -> bool {
    matches!(
        decoded,
        Decoded::Message(Message { body: Body::Response(response), .. })
            if Registered::from_payload(&response.payload).is_ok()
    )
}
