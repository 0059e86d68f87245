//! The application of every node: what it calls, and how its handlers answer.

use std::time::Duration;

use nacp_link::{Interest, MessageReport, Request, StreamId, SubscriptionId, Token};
use nacp_proto::{MessageId, RequestKind, Signal};
use smol_str::SmolStr;

use super::life::{Asked, Stream};
use super::plan::Op;
use super::random::Random;
use super::sent::{Kind, Sent, hit_name, pattern, payload};
use super::world::{Happening, Heal, Phase, World};

/// The reports that the world listens to.
pub(crate) fn interest(all: bool) -> Interest {
    if all {
        return Interest::ALL;
    }
    [
        MessageReport::AckWarning,
        MessageReport::BacklogWarning,
        MessageReport::ResponseError,
        MessageReport::SignalError,
        MessageReport::InboundError,
        MessageReport::MessageError,
        MessageReport::RouteError,
        MessageReport::GatewayError,
    ]
    .into_iter()
    .map(Interest::message)
    .fold(
        Interest::APPS
            .union(Interest::PEERS)
            .union(Interest::REGISTERS),
        Interest::union,
    )
}

impl World {
    /// Writes a send or call down; its token.
    pub(crate) fn call(
        &mut self,
        life: usize,
        to: usize,
        kind: Kind,
        limit: Option<Duration>,
        by_node: bool,
    ) -> Token {
        let uid = self.sent.len() as u64;
        let known = &self.lives[life];
        let link = known.links.get(&to);
        let node_link = self
            .plan
            .nodes
            .get(to)
            .and_then(|node| known.node.link(&node.app));
        let blocked = node_link.as_ref().map_or(0, |link| link.blocked);
        self.sent.push(Sent {
            kind,
            from: life,
            to,
            at: self.now,
            limit,
            is_direct: node_link.is_some(),
            meant: link.map(|link| link.life),
            may_overtake: by_node && blocked > 0,
            is_large: false,
            has_failed: false,
            was_unreported: false,
            is_orphaned: false,
            settled: None,
            read: Vec::new(),
            reached: Vec::new(),
            lost_endings: 0,
            late_endings: 0,
            disconnects_before: known.disconnects.get(&to).copied().unwrap_or(0),
        });
        let known = &mut self.lives[life];
        known.waiting.insert(uid);
        known.calls += usize::from(kind.is_call());
        known.waiting_dials += usize::from(kind == Kind::Connect);
        if !matches!(kind, Kind::Connect | Kind::Disconnect | Kind::Terminate) {
            self.stats.messages += 1;
        }
        self.trace.log(self.now, || {
            format!("life {life} calls #{uid} {kind:?} to app {to}")
        });
        Token(uid)
    }

    pub(super) fn payload(&mut self, uid: u64) -> nacp_proto::Payload {
        let mut random = Random::new(self.plan.seed ^ uid, 3);
        let len = match random.below(100) {
            0..=79 => random.between(0, 120),
            80..=96 => random.between(100, 1500),
            _ if random.percent(self.plan.large_percent * 10) => random.between(60_000, 200_000),
            _ => random.between(1500, 9000),
        };
        if let Some(sent) = usize::try_from(uid)
            .ok()
            .and_then(|at| self.sent.get_mut(at))
        {
            sent.is_large = len > 3000;
        }
        payload(uid, len)
    }

    pub(crate) fn operate(&mut self, at: usize) {
        let planned = self.plan.ops[at];
        if self.phase == Phase::Ending {
            return;
        }
        let mut random = Random::new(planned.seed, 2);
        let lives: Vec<usize> = self
            .live()
            .into_iter()
            .filter(|life| !self.lives[*life].is_ending)
            .collect();
        let Some(life) = random.pick_any(&lives) else {
            // Nobody is there to call anything.
            return self.after(Duration::from_millis(503), Happening::Op(at));
        };
        let apps: Vec<usize> = (0..self.plan.nodes.len())
            .filter(|app| *app != self.lives[life].app)
            .collect();
        let to = random.pick(&apps);
        let burst = match random.below(100) {
            0..=74 => 1,
            75..=96 => random.between(2, 6),
            _ => random.between(20, 40),
        };
        match planned.what {
            Op::Signal => (0..burst).for_each(|_| self.signal(life, to)),
            Op::Ability => {
                (0..burst).for_each(|_| self.request(life, to, RequestKind::Ability, &mut random))
            }
            Op::Event => self.request(life, to, RequestKind::Event, &mut random),
            Op::Subscribe => self.subscribe(life, to),
            Op::Unsubscribe => self.unsubscribe(&lives, &mut random),
            Op::Emit => self.emit(&lives, burst, &mut random),
            Op::Disconnect => self.disconnect(life, to, &mut random),
            Op::Abandon => self.abandon(&lives, &mut random),
        }
        for life in lives {
            self.turn(life);
        }
    }

    pub(crate) fn signal(&mut self, life: usize, to: usize) {
        let token = self.call(life, to, Kind::Signal, None, false);
        let payload = self.payload(token.0);
        let running = self.lives[life]
            .requests
            .values()
            .find(|asked| asked.to == to && asked.is_event);
        let request = running.map_or_else(
            || MessageId::sequenced(token.0, token.0),
            |asked| asked.id.clone(),
        );
        let (instant, app) = (self.instant(), self.plan.nodes[to].app.clone());
        let node = &mut self.lives[life].node;
        node.signal(instant, &app, request, Signal::Normal(payload), Some(token));
    }

    fn request(&mut self, life: usize, to: usize, kind: RequestKind, random: &mut Random) {
        let limit = random.percent(30).then(|| random.millis(500, 15_000));
        let is_event = kind == RequestKind::Event;
        let call = if is_event { Kind::Event } else { Kind::Ability };
        let token = self.call(life, to, call, limit, false);
        let request = Request {
            to: self.plan.nodes[to].app.clone(),
            kind,
            target: SmolStr::new_static("work"),
            payload: self.payload(token.0),
            limit,
        };
        let instant = self.instant();
        let id = self.lives[life].node.request(instant, request, Some(token));
        if let Some(id) = id {
            self.trace
                .log(self.now, || format!("#{} is {:?}", token.0, id.sequence()));
            let asked = Asked {
                id,
                to,
                is_event,
                items: 0,
                next: 0,
            };
            self.lives[life].requests.insert(token.0, asked);
        }
    }

    fn subscribe(&mut self, life: usize, to: usize) {
        let limit = Some(self.lives[life].knobs.response_timeout);
        let token = self.call(life, to, Kind::Subscribe, limit, false);
        let (instant, app) = (self.instant(), self.plan.nodes[to].app.clone());
        let stream =
            self.lives[life]
                .node
                .subscribe(instant, &app, pattern(token.0).into(), Some(token));
        if let Some(id) = stream {
            let stream = Stream {
                uid: token.0,
                to,
                is_live: false,
                serial: u64::MAX,
                next: 0,
            };
            self.lives[life].streams.insert(id, stream);
        }
    }

    fn unsubscribe(&mut self, lives: &[usize], random: &mut Random) {
        let streams: Vec<(usize, StreamId)> = lives
            .iter()
            .flat_map(|life| {
                self.lives[*life]
                    .streams
                    .keys()
                    .map(|stream| (*life, *stream))
            })
            .collect();
        let Some((life, id)) = random.pick_any(&streams) else {
            return;
        };
        let Some(stream) = self.lives[life].streams.remove(&id) else {
            return;
        };
        let limit = Some(self.lives[life].knobs.response_timeout);
        let token = self.call(life, stream.to, Kind::Unsubscribe, limit, true);
        self.trace.log(self.now, || {
            format!("#{} ends the stream of #{}", token.0, stream.uid)
        });
        let instant = self.instant();
        self.lives[life].node.unsubscribe(instant, id, Some(token));
    }

    fn emit(&mut self, lives: &[usize], count: usize, random: &mut Random) {
        let held: Vec<(usize, SubscriptionId)> = lives
            .iter()
            .flat_map(|life| {
                self.lives[*life]
                    .subscriptions
                    .keys()
                    .map(|held| (*life, *held))
            })
            .collect();
        let Some((life, id)) = random.pick_any(&held) else {
            return;
        };
        for _ in 0..count {
            let Some(held) = self.lives[life].subscriptions.get_mut(&id) else {
                return;
            };
            let (subscribe, serial, index) = (held.uid, held.serial, held.hits);
            held.hits += 1;
            let to = self.lives[self.sent_of(subscribe).from].app;
            let token = self.call(
                life,
                to,
                Kind::Hit {
                    subscribe,
                    serial,
                    index,
                },
                None,
                false,
            );
            let (payload, instant) = (self.payload(token.0), self.instant());
            let name = SmolStr::from(hit_name(subscribe));
            self.lives[life]
                .node
                .notify(instant, id, &name, payload, Some(token));
        }
    }

    fn disconnect(&mut self, life: usize, to: usize, random: &mut Random) {
        if self.state_of(life, to).is_none() {
            return;
        }
        let from = self.lives[life].app;
        for edge in 0..self.edges.len() {
            let (one, other) = (self.edges[edge].from, self.edges[edge].to);
            if (one, other) == (from, to) || ((other, one) == (from, to) && random.percent(50)) {
                self.edges[edge].is_suspended = true;
                let wait = random.millis(500, 15_000);
                self.after(wait, Happening::Heal(Heal::Edge(edge)));
            }
        }
        self.say_good_bye(life, to);
    }

    pub(crate) fn say_good_bye(&mut self, life: usize, to: usize) {
        let token = self.call(life, to, Kind::Disconnect, None, false);
        self.lives[life].leaving.insert(to);
        let (instant, app) = (self.instant(), self.plan.nodes[to].app.clone());
        self.lives[life].node.disconnect(instant, &app, Some(token));
    }

    fn abandon(&mut self, lives: &[usize], random: &mut Random) {
        let asked: Vec<(usize, u64)> = lives
            .iter()
            .flat_map(|life| self.lives[*life].requests.keys().map(|uid| (*life, *uid)))
            .collect();
        let Some((life, uid)) = random.pick_any(&asked) else {
            return;
        };
        if let Some(asked) = self.lives[life].requests.remove(&uid) {
            self.trace
                .log(self.now, || format!("life {life} abandons #{uid}"));
            self.lives[life].waiting.remove(&uid);
            self.lives[life].calls -= 1;
            self.lives[life].node.abandon(&asked.id);
        }
    }

    pub(crate) fn finish(&mut self, life: usize) {
        if !self.lives[life].is_alive || self.lives[life].has_ended {
            return;
        }
        let instant = self.instant();
        let is_again = self.lives[life].is_ending;
        self.lives[life].is_ending = true;
        match self.random.below(3) {
            0 if !is_again => {
                // It must be able to leave politely before its links are dropped by others.
                self.lives[life].is_ending = false;
                let apps: Vec<usize> = self.lives[life].links.keys().copied().collect();
                for app in apps {
                    self.say_good_bye(life, app);
                }
                self.turn(life);
                self.lives[life].is_ending = true;
                return self.after(Duration::from_secs(30), Happening::Finish(life));
            }
            1 => self.lives[life].node.terminate_now(instant),
            _ => {
                let token = self.call(life, usize::MAX, Kind::Terminate, None, false);
                self.lives[life].node.terminate(instant, Some(token));
            }
        }
        self.turn(life);
        let running: Vec<_> = self.lives[life].running.keys().copied().collect();
        for running in running {
            self.after(Duration::from_secs(12), Happening::Handle(life, running));
        }
    }
}
