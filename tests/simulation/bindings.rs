//! What must be true of links: legal changes, one event each, and no bind but of kin.

use std::time::Duration;

use nacp_link::{Cause, LinkChange, LinkState, Reason};

use super::life::LinkModel;
use super::world::{Phase, World};

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

impl World {
    pub(crate) fn link_changed(&mut self, life: usize, change: &LinkChange) {
        let app = self.app_of(&change.app);
        self.trace.log(self.now, || {
            format!(
                "life {life}: app {app} is {:?}, {:?}, resumed {:?}",
                change.state, change.cause, change.resumed
            )
        });
        self.trace
            .mix((life * 64 + app * 8 + change.state as usize) as u64);
        let reported = self.lives[life].batch.reports.pop_front();
        self.check(reported == Some((app, reason(change.state))), || {
            format!("life {life}: {change:?} follows the report {reported:?}")
        });
        let before = self.state_of(life, app);
        self.check(is_legal(before, change.state, change.cause), || {
            format!("life {life}: {change:?} is illegal after {before:?}")
        });
        match change.state {
            LinkState::Online => self.bound(life, app, change),
            LinkState::Offline => self.went_offline(life, app, change.cause),
            LinkState::Dropped => self.dropped(life, app, change.cause),
        }
    }

    fn bound(&mut self, life: usize, app: usize, change: &LinkChange) {
        let Some((conn, end)) = self.lives[life].bindings.pop_front() else {
            return self.fail(|| {
                format!("life {life}: app {app} is online, and no peer is told registered")
            });
        };
        self.check_peer(life, app, (conn, end));
        let kept = self.lives[life].links.get(&app);
        let kept = kept.map(|link| (link.life, link.kin));
        let resumed = change.resumed == Some(true);
        let kin = if end == 1 {
            self.accepted(life, conn, kept, resumed)
        } else {
            self.was_accepted(life, conn, kept, resumed)
        };
        self.stats
            .count(if resumed { "resumed" } else { "bound anew" });
        let is_proven = self.conns[conn].ends[end].is_proven;
        let other = self.conns[conn].ends[1 - end].life;
        let known = &mut self.lives[life];
        if is_proven {
            known.proven.insert(other);
        }
        if kept.is_some() && !resumed {
            known.batch.lost.insert(app);
            known.forgot.insert(app);
        }
        known.links.insert(
            app,
            LinkModel {
                state: LinkState::Online,
                cause: change.cause,
                since: self.now,
                life: other,
                conn,
                kin,
            },
        );
    }

    fn check_peer(&mut self, life: usize, app: usize, (conn, end): (usize, usize)) {
        let other = self.conns[conn].ends[1 - end].life;
        self.check(self.lives[other].app == app, || {
            format!("life {life} binds app {app} to a peer of life {other}")
        });
        let batch = &self.lives[life].batch;
        let has_just_ended = batch.closed.contains(&(conn, end))
            || batch.ended.values().any(|at| *at == (conn, end));
        let is_up = self.conns[conn].ends[end].is_up || has_just_ended;
        self.check(is_up, || {
            format!("life {life} binds app {app} to a peer that has ended")
        });
    }

    /// An acceptor resumes exactly if both sides kept the same kin of binds with each other.
    fn accepted(
        &mut self,
        life: usize,
        conn: usize,
        kept: Option<(usize, u64)>,
        resumed: bool,
    ) -> u64 {
        let other = self.conns[conn].ends[0].life;
        let dialler_kept = self.conns[conn].dialler_kept;
        let is_same = kept.is_some_and(|(kept_life, kin)| {
            kept_life == other && dialler_kept == Some((life, kin))
        });
        self.check(resumed == is_same, || {
            format!("life {life} accepts life {other}: resumed {resumed}, it kept {kept:?}, the dialler {dialler_kept:?}")
        });
        let kin = match kept {
            Some((_, kin)) if resumed => kin,
            _ => self.new_kin(),
        };
        self.conns[conn].bound = Some((kin, resumed));
        kin
    }

    /// A dialler resumes exactly if the acceptor did, and it still keeps what it told.
    fn was_accepted(
        &mut self,
        life: usize,
        conn: usize,
        kept: Option<(usize, u64)>,
        resumed: bool,
    ) -> u64 {
        let other = self.conns[conn].ends[1].life;
        let accepted = self.conns[conn].bound;
        let is_same = kept
            .is_some_and(|(kept_life, kin)| kept_life == other && accepted == Some((kin, true)));
        self.check(resumed == is_same, || {
            format!("life {life} is accepted by life {other}: resumed {resumed}, it kept {kept:?}, the acceptor said {accepted:?}")
        });
        accepted.map_or(0, |(kin, _)| kin)
    }

    fn new_kin(&mut self) -> u64 {
        self.kins += 1;
        self.kins
    }

    fn went_offline(&mut self, life: usize, app: usize, cause: Cause) {
        let now = self.now;
        let Some(link) = self.lives[life].links.get_mut(&app) else {
            return;
        };
        let (since, conn) = (link.since, link.conn);
        link.state = LinkState::Offline;
        link.cause = cause;
        link.since = now;
        let end = usize::from(self.conns[conn].ends[1].life == life);
        let knobs = self.lives[life].knobs.clone();
        match cause {
            Cause::Disconnected => *self.lives[life].disconnects.entry(app).or_default() += 1,
            Cause::AckTimeout => {
                let oldest = self.conns[conn].ends[end].unacked.values().min().copied();
                self.check(oldest.is_some_and(|at| at + knobs.ack_timeout <= now), || {
                    format!("life {life}: app {app} is condemned for an ACK, and the oldest is missing since {oldest:?}")
                });
            }
            Cause::BeatTimeout => {
                let is_due = knobs
                    .heartbeat
                    .is_some_and(|interval| since + interval <= now);
                self.check(is_due, || {
                    format!(
                        "life {life}: app {app} is condemned for a beat, online since {since:?}"
                    )
                });
            }
            _ => {}
        }
        let lived = now - since;
        self.stats.count(match cause {
            Cause::Disconnected => "offline: disconnected",
            Cause::AckTimeout => "offline: ack timeout",
            Cause::BeatTimeout => "offline: beat timeout",
            _ => "offline: taken over",
        });
        self.come_back(life, app, lived);
    }

    fn dropped(&mut self, life: usize, app: usize, cause: Cause) {
        let now = self.now;
        let Some(link) = self.lives[life].links.remove(&app) else {
            return;
        };
        let known = &mut self.lives[life];
        known.batch.dropped.insert(app);
        known.forgot.insert(app);
        known.leaving.remove(&app);
        let grace = known.knobs.grace;
        let is_ending = known.is_ending;
        match cause {
            Cause::GraceEnded => self.check(link.since + grace <= now, || {
                format!(
                    "life {life}: the grace of app {app} ends early: offline since {:?}",
                    link.since
                )
            }),
            Cause::Terminated => self.check(is_ending, || {
                format!("life {life}: app {app} is dropped as if at the end")
            }),
            _ => {}
        }
        self.stats.count(match cause {
            Cause::GraceEnded => "dropped: grace",
            Cause::Unregistered => "dropped: unregistered",
            Cause::Disconnecting => "dropped: disconnecting",
            _ => "dropped: terminated",
        });
        self.come_back(life, app, now - link.since);
    }

    fn come_back(&mut self, life: usize, app: usize, lived: Duration) {
        let from = self.lives[life].app;
        if self.current[from] != Some(life) || self.phase == Phase::Ending {
            return;
        }
        for edge in 0..self.edges.len() {
            if (self.edges[edge].from, self.edges[edge].to) == (from, app) {
                if lived > MAX_BACKOFF {
                    self.edges[edge].backoff = Duration::ZERO;
                }
                self.back_off(edge);
            }
        }
    }

    pub(crate) fn back_off(&mut self, at: usize) {
        let edge = &mut self.edges[at];
        let wait = edge.backoff.max(MIN_BACKOFF);
        edge.backoff = (wait * 2).min(MAX_BACKOFF);
        let millis = u64::try_from(wait.as_millis()).unwrap_or(0);
        let wait = self.random.millis(millis / 2, millis);
        self.redial_after(at, wait);
    }
}

const fn reason(state: LinkState) -> Reason {
    match state {
        LinkState::Online => Reason::Bound,
        LinkState::Offline => Reason::Offline,
        LinkState::Dropped => Reason::Dropped,
    }
}

/// The changes of a link that section 4 knows.
fn is_legal(before: Option<LinkState>, after: LinkState, cause: Cause) -> bool {
    use LinkState::{Dropped, Offline, Online};
    match (before, after) {
        (None | Some(Offline), Online) => cause == Cause::Registered,
        (Some(Online), Offline) => matches!(
            cause,
            Cause::Disconnected | Cause::AckTimeout | Cause::BeatTimeout | Cause::TakenOver
        ),
        (Some(Offline), Dropped) => matches!(
            cause,
            Cause::GraceEnded | Cause::Disconnecting | Cause::Terminated | Cause::Unregistered
        ),
        (Some(Online), Dropped) => matches!(
            cause,
            Cause::Unregistered | Cause::Disconnecting | Cause::Terminated
        ),
        _ => false,
    }
}
