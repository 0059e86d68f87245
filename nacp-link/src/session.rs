//! Binding an app to a peer, and what survives it (specification, sections 4.4 and 11).

use std::collections::VecDeque;
use std::time::Instant;

use nacp_proto::{AppId, Body, Instance, MessageId, PeerInfo, Session};
use nacp_queue::Caps;

use crate::admission::Urgency;
use crate::blocked::Blocked;
use crate::ids::LinkId;
use crate::instances::Instances;
use crate::lifecycle::{self, Step};
use crate::link::{Beat, Foreign, Link, LinkCounts, Place, Replay, Served, Sessions};
use crate::node::Node;
use crate::peer::Stage;
use crate::record::{Call, Class, Record, Waiter};
use crate::report::{MessageReport, Reason};
use crate::{
    Cause, DialId, Event, LinkChange, LinkState, OverflowPolicy, PeerId, StreamEnd, StreamId,
    Transmit, Undelivered,
};

/// Disconnects in a row without an ACK after which a replay goes one record at a time.
const CAUTIOUS_AFTER: u32 = 2;

/// A register that went well.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) peer: PeerId,
    pub(crate) app: AppId,
    pub(crate) info: PeerInfo,
    pub(crate) session: Option<Session>,
    pub(crate) resumed: bool,
    /// At the acceptor: the session that the register named.
    pub(crate) held: Option<Session>,
    pub(crate) proven: bool,
    pub(crate) dialled: bool,
}

/// What is left to do once the answer to a register is on its way.
#[derive(Debug)]
#[must_use]
pub(crate) struct Bound {
    pub(crate) link: LinkId,
    peer: PeerId,
    dial: Option<DialId>,
    app: AppId,
    was_foreign: bool,
    lost: Lost,
}

/// Subscriptions of ours that a lost session took.
#[derive(Debug, Default)]
struct Lost {
    streams: Vec<StreamId>,
    /// Whether the other side may have them all the same.
    may_live: bool,
}

impl Node {
    /// Makes a link online, without sending anything yet.
    pub(crate) fn bind(&mut self, binding: Binding) -> Bound {
        let Binding {
            peer,
            app,
            info,
            session,
            resumed,
            held,
            proven,
            dialled,
        } = binding;
        let known = self.by_app.get(&app).copied();
        let was_foreign = known
            .and_then(|id| self.links.get(id))
            .is_some_and(|link| !link.is_native());
        let mut lost = Lost::default();
        if let (Some(link), false) = (known, resumed) {
            lost = self.lose_session(link, info.instance, proven);
        }
        let dial = self.take_stage(peer);
        self.binds += 1;
        let link = known.unwrap_or_else(|| self.insert_link(&app, &info));
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.stage = Stage::Bound(link);
        }
        self.set_online(link, (peer, dialled), info);
        if let Some(link) = self.links.get_mut(link) {
            match (dialled, resumed) {
                (true, _) => link.session.follow(session),
                (false, true) => link.session.resume(held, session),
                (false, false) => link.session.begin(session),
            }
        }
        self.adopt(link);
        self.received.pin(&app);
        if let Some(served) = self.move_in(link) {
            lost = self.lose_moved_session(link, served, proven);
        }
        self.sift_too_large(link);
        self.announce_bound(link, resumed);
        let native = self.links.get(link).is_some_and(|link| link.is_native());
        self.transmit(Transmit::Registered { peer, native });
        Bound {
            link,
            peer,
            dial,
            app,
            was_foreign,
            lost,
        }
    }

    fn set_online(&mut self, id: LinkId, (peer, dialled): (PeerId, bool), info: PeerInfo) {
        let until = self.record_seq;
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if lifecycle::step(Some(link.state()), Cause::Registered)
            != Ok(Step::Move(LinkState::Online))
        {
            return;
        }
        self.timers.disarm(&mut link.grace);
        link.grace_over = false;
        link.place = Place::Online(peer);
        link.bind = self.binds;
        link.dialled = dialled;
        link.replay.until = until;
        link.replay.alone = self.config.poison_limit > 0 && link.replay.row >= CAUTIOUS_AFTER;
        link.foreign.holds_relayed = !dialled && info.instance.is_none();
        link.instances.enter(info.instance);
        link.info = info;
    }

    /// The attempt that a peer belongs to; from here on the peer has an app.
    fn take_stage(&mut self, peer: PeerId) -> Option<DialId> {
        self.strangers = self.strangers.saturating_sub(1);
        let known = self.peers.get_mut(peer)?;
        self.timers.disarm(&mut known.timer);
        match &known.stage {
            Stage::Registering { dial, .. } => Some(*dial),
            Stage::Fresh
            | Stage::Deciding(_)
            | Stage::Held(_)
            | Stage::Bound(_)
            | Stage::Leaving { .. } => None,
        }
    }

    fn insert_link(&mut self, app: &AppId, info: &PeerInfo) -> LinkId {
        let link = Link {
            app: app.clone(),
            place: Place::Offline,
            info: info.clone(),
            dialled: false,
            downgraded: false,
            order: self.binds,
            bind: self.binds,
            session: Sessions::default(),
            instances: Instances::default(),
            grace: None,
            grace_over: false,
            acks: None,
            beat: Beat::default(),
            deferred: crate::link::Deferred::default(),
            replay: Replay::default(),
            contender: None,
            leaving: None,
            withdrawn: hashbrown::HashSet::new(),
            given_up: VecDeque::new(),
            endings: VecDeque::new(),
            streams: hashbrown::HashMap::new(),
            subscriptions: hashbrown::HashMap::new(),
            running: hashbrown::HashMap::new(),
            remotes: hashbrown::HashMap::new(),
            blocked: Blocked::default(),
            outstanding: crate::load::Load::default(),
            excess: 0,
            foreign: Foreign::default(),
            counts: LinkCounts::default(),
        };
        let id = self.links.insert(Box::new(link));
        self.by_app.insert(app.clone(), id);
        let (count, bytes) = (
            self.config.link_queue_max_count,
            self.config.link_queue_max_bytes,
        );
        if let Ok(caps) = Caps::new(count, bytes)
            && caps != Caps::NONE
            && self.config.overflow == OverflowPolicy::Evict
        {
            // The tables hold nothing of a new link, so nothing is evicted.
            self.backlog
                .set_destination_caps(&id, Some(caps))
                .for_each(drop);
            self.pending
                .set_destination_caps(&id, Some(caps))
                .for_each(drop);
        }
        id
    }

    fn announce_bound(&mut self, id: LinkId, resumed: bool) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        let (app, is_gateway) = (link.app.clone(), link.info.is_gateway);
        self.report_app(&app, Reason::Bound, Some(is_gateway), Some(resumed));
        self.tell(Event::Link(LinkChange {
            app,
            state: LinkState::Online,
            cause: Cause::Registered,
            resumed: Some(resumed),
            is_gateway,
        }));
    }

    /// The answer is sent: now what waits may follow.
    pub(crate) fn finish_bind(&mut self, now: Instant, bound: Bound) {
        let Bound {
            link,
            peer,
            dial,
            app,
            was_foreign,
            lost,
        } = bound;
        self.finish_dials(&app, Some(peer), dial);
        for stream in lost.streams {
            if lost.may_live {
                self.subscribe_anew(now, stream);
            } else {
                self.subscribe_again(now, stream);
            }
        }
        if self.peer_of(link) != Some(peer) {
            // What was subscribed again was more than the other side may be owed.
            return;
        }
        if was_foreign {
            self.check_sentinel(now, link);
        } else {
            self.set_sentinel(now, link);
        }
        self.start_beat(now, link);
        self.resume_remote_beats(now, link);
        self.pump(link);
        self.handle_kept(now, peer);
    }

    pub(crate) fn register_answered(&mut self, link: LinkId, answer: MessageId) {
        if let Some(link) = self.links.get_mut(link) {
            link.session.answer = Some(answer);
        }
    }

    /// The other side has our answer, and with it the new session.
    pub(crate) fn register_answer_acked(&mut self, id: LinkId, answer: &MessageId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if link.session.answer.as_ref() != Some(answer) {
            return;
        }
        link.session.answer = None;
        if std::mem::take(&mut link.foreign.holds_relayed) {
            self.pump(id);
        }
    }

    /// The other side has come back without what it knew. What must be subscribed again.
    fn lose_session(&mut self, id: LinkId, instance: Option<Instance>, proven: bool) -> Lost {
        let Some(link) = self.links.get_mut(id) else {
            return Lost::default();
        };
        let is_same = instance.is_some() && link.info.instance == instance;
        // An answer of ours that was lost on its way: the other side knows of no link, and still has
        // what the link has brought along from a gateway's.
        let may_live = is_same && !link.dialled && link.counts.messages_in == 0;
        link.instances.enter(instance);
        let (app, is_gateway) = (link.app.clone(), link.info.is_gateway);
        self.report_register_warning(&app, Reason::SessionLost);
        // What concerns the apps behind a gateway is theirs, not the gateway's.
        let only = is_gateway.then_some(&app);
        if !may_live {
            self.end_served(id, only, Served::ALL, Undelivered::SessionLost);
            self.received.forget_source(&app);
        }
        let streams = self.settle_lost(id, only, is_same || proven);
        if let Some(link) = self.links.get_mut(id) {
            link.foreign = Foreign::default();
            if !may_live {
                link.given_up.retain(|(of, _)| *of != app);
                link.endings.retain(|ending| ending.app != app);
            }
        }
        Lost { streams, may_live }
    }

    /// An app that was met behind a gateway has bound directly, as another instance.
    fn lose_moved_session(&mut self, id: LinkId, served: Served, proven: bool) -> Lost {
        let Some(app) = self.links.get(id).map(|link| link.app.clone()) else {
            return Lost::default();
        };
        self.report_register_warning(&app, Reason::SessionLost);
        // The new instance may have spoken through the gateway: its dedup window and what it was
        // served since stay.
        self.end_served(id, None, served, Undelivered::SessionLost);
        Lost {
            streams: self.settle_lost(id, None, proven),
            may_live: true,
        }
    }

    /// Ends what only the lost session could have answered. What must be subscribed again.
    fn settle_lost(&mut self, id: LinkId, only: Option<&AppId>, may_retry: bool) -> Vec<StreamId> {
        let known = self.links.get(id).map(|link| link.instances.known());
        let streams = self.live_streams(id, only);
        for stream in &streams {
            if let Some(again) = self.streams.get(*stream).map(|stream| stream.id.clone()) {
                self.forget_subscribe(id, &again);
            }
        }
        // What was never ACKed may have been handled, and goes back to nobody who was given it.
        let keeps = |record: &Record| {
            let was_given = known.is_some_and(|known| record.takers & known != 0);
            may_retry && is_for_any_instance(record) && !was_given
        };
        self.sift_backlog(id, only, keeps);
        self.reject_lost_calls(id, only);
        streams
    }

    /// Ends what waits for a lost session, in backlog and among the blocked.
    fn sift_backlog(&mut self, id: LinkId, only: Option<&AppId>, keeps: impl Fn(&Record) -> bool) {
        let is_meant = |record: &Record| only.is_none_or(|app| record.to == *app);
        let lost = self.take_queued(id, |node, record| {
            let has_waiter = record.own_id().is_none_or(|id| node.waiters.contains(id));
            is_meant(record) && !(keeps(record) && has_waiter)
        });
        let blocked = self.take_blocked(id, |record| is_meant(record) && !keeps(record));
        for record in lost {
            self.fail(record, Undelivered::SessionLost);
        }
        for record in blocked {
            self.fail_blocked(record, Undelivered::SessionLost);
        }
    }

    /// Settles what the other side no longer takes.
    fn sift_too_large(&mut self, id: LinkId) {
        let limit = self
            .links
            .get(id)
            .map_or(u64::MAX, |link| link.max_message_bytes());
        for record in self.take_queued(id, |_, record| record.bytes > limit) {
            self.report_record(MessageReport::RouteError, &record, Reason::TooLarge);
            self.fail(record, Undelivered::TooLarge);
        }
        for record in self.take_blocked(id, |record| record.bytes > limit) {
            self.report_record(MessageReport::RouteError, &record, Reason::TooLarge);
            self.fail_blocked(record, Undelivered::TooLarge);
        }
    }

    /// Rejects the calls of a link that are not in its backlog: ACKed and not answered.
    pub(crate) fn reject_lost_calls(&mut self, id: LinkId, only: Option<&AppId>) {
        let lost: Vec<MessageId> = self
            .waiters
            .iter(&id)
            .map(|(waiter, _)| waiter)
            .filter(|waiter| only.is_none_or(|app| waiter.to == *app))
            .filter(|waiter| !self.is_queued(id, &waiter.id))
            .map(|waiter| waiter.id.clone())
            .collect();
        for call in lost {
            self.reject_call(&call, Undelivered::SessionLost);
        }
    }

    pub(crate) fn is_queued(&self, link: LinkId, id: &MessageId) -> bool {
        self.backlog.contains(&Self::own_key(id)) || self.is_on_its_way(link, id)
    }

    /// The user's subscriptions at an app that was answered once.
    pub(crate) fn live_streams(&self, id: LinkId, only: Option<&AppId>) -> Vec<StreamId> {
        let Some(link) = self.links.get(id) else {
            return Vec::new();
        };
        let is_live = |stream: &StreamId| {
            self.streams
                .get(*stream)
                .is_some_and(|stream| stream.live && only.is_none_or(|app| stream.to == *app))
        };
        let mut streams: Vec<StreamId> = link.streams.values().copied().filter(is_live).collect();
        streams.sort_unstable();
        streams
    }

    /// Takes back a subscribe whose subscription is made again: it goes out no more.
    fn forget_subscribe(&mut self, link: LinkId, id: &MessageId) {
        if let Some(waiter) = self.take_waiter(id) {
            self.release_remote(waiter.link, &waiter.to);
        }
        if let Some(record) = self.backlog.remove(&Self::own_key(id)) {
            self.count_out(&record);
        }
        self.remove_blocked(link, id);
        self.withdraw(link, id);
    }

    /// Makes a subscription again that the other side has forgotten; its user keeps the stream.
    pub(crate) fn subscribe_again(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let (to, link, pattern) = (stream.to.clone(), stream.link, stream.pattern.clone());
        let old = stream.id.clone();
        self.forget_subscribe(link, &old);
        let body = Body::Subscribe {
            target_sub_name: pattern,
        };
        let message_id = self.fresh_id();
        let message = self.message(now, message_id.clone(), to.clone(), body);
        let record = match self.address(&message, Some(link), Class::Call(Call::Subscribe), None) {
            Ok(record) => record,
            Err(reason) => return self.end_stream_of(link, &old, StreamEnd::Undelivered(reason)),
        };
        if let Some(stream) = self.streams.get_mut(id) {
            stream.id = message_id.clone();
            stream.items = crate::record::Items::default();
        }
        if let Some(link) = self.links.get_mut(link) {
            link.streams.remove(&old);
            link.streams.insert(message_id.clone(), id);
        }
        let limit = self.config.response_timeout;
        let timer = self
            .timers
            .arm(now, limit, crate::timers::Timer::Call(message_id.clone()));
        let call = Call::Subscribe;
        self.wait_for(Waiter {
            id: message_id,
            link,
            to: to.clone(),
            call,
            token: None,
            timer,
            items: None,
        });
        self.use_remote(now, link, &to);
        // What fails here has ended the stream through its waiter.
        let _ = self.admit(now, record, Urgency::Waits);
    }

    /// An app behind a gateway has answered as another instance.
    pub(crate) fn lose_remote_session(
        &mut self,
        now: Instant,
        link: LinkId,
        app: &AppId,
        served: Served,
    ) {
        self.report_register_warning(app, Reason::SessionLost);
        // Its dedup window stays, and what it was served since the old one answered last: the new
        // instance has spoken already.
        self.end_served(link, Some(app), served, Undelivered::SessionLost);
        self.reject_lost_calls(link, Some(app));
        for stream in self.live_streams(link, Some(app)) {
            // It may have reached the new instance already.
            self.subscribe_anew(now, stream);
        }
    }

    /// Makes a subscription again that the other side may still have.
    fn subscribe_anew(&mut self, now: Instant, id: StreamId) {
        let stream = self.streams.get(id);
        if let Some((to, old)) = stream.map(|stream| (stream.to.clone(), stream.id.clone())) {
            self.send_unsubscribe(now, &to, old, None, Urgency::Forced);
        }
        self.subscribe_again(now, id);
    }
}

/// Whether a record means the app, whichever instance it is, and not what one of them knew.
const fn is_for_any_instance(record: &Record) -> bool {
    match record.class {
        Class::Call(Call::Request | Call::Subscribe) | Class::Relayed { .. } => true,
        Class::Call(Call::Unsubscribe | Call::Unregister | Call::Sentinel(_))
        | Class::Response
        | Class::Signal
        | Class::Notify => false,
    }
}
