//! Good-bye in both directions, and the end of the node (specification, sections 4.5 and 12).

use std::time::{Duration, Instant};

use nacp_proto::{AppId, Body, Message, Payload, Response};

use crate::admission::Urgency;
use crate::dial::DialError;
use crate::ids::LinkId;
use crate::incoming::Source;
use crate::link::{Leaving, Place, Served};
use crate::node::{Node, Phase};
use crate::peer::Stage;
use crate::record::{Call, Class, Waiter};
use crate::timers::Timer;
use crate::{Cause, Close, Event, PeerId, Token, Undelivered};

/// How long the answer to an unregister may take to be accepted.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

impl Node {
    /// The other side says good-bye: it gets its answer, and nothing more of it is handled.
    pub(crate) fn handle_unregister(&mut self, now: Instant, source: Source, message: Message) {
        let answer = Response::ok(message.id.clone(), Payload::empty());
        self.send_control(now, source.peer, &message.from, Body::Response(answer));
        let is_bound = self
            .links
            .get(source.link)
            .is_some_and(|link| link.app == message.from);
        if !is_bound {
            self.end_served(
                source.link,
                Some(&message.from),
                Served::ALL,
                Undelivered::PeerGone,
            );
            return self.end_remote(source.link, &message.from, Undelivered::PeerGone);
        }
        let timer = self
            .timers
            .arm(now, FAREWELL_LIMIT, Timer::Farewell(source.peer));
        let Some(peer) = self.peers.get_mut(source.peer) else {
            return;
        };
        self.timers.disarm(&mut peer.timer);
        peer.timer = timer;
        peer.stage = Stage::Leaving {
            link: source.link,
            control: peer.sent.control,
        };
    }

    /// The answer to an unregister is accepted, or was waited for long enough.
    pub(crate) fn farewell_done(&mut self, now: Instant, peer: PeerId) {
        if let Some(Stage::Leaving { link, .. }) = self.peers.get(peer).map(|peer| &peer.stage) {
            let link = *link;
            self.drop_link(now, link, Cause::Unregistered);
        }
    }

    /// Says good-bye to an app. What was sent before goes first; new sends to it settle
    /// `peer-gone`. The token settles as delivered once the link is dropped: after the answer, at
    /// the latest when the response timeout has passed, at once for a link that is offline or unknown.
    pub fn disconnect(&mut self, now: Instant, app: &AppId, token: Option<Token>) {
        if let Some(dial) = self.dial_of.get(app).copied() {
            self.fail_dial(now, dial, DialError::Terminated);
        }
        match self.by_app.get(app).copied() {
            Some(id) => self.leave(now, id, token),
            None => self.settle_delivered(token),
        }
        self.settle_room();
    }

    fn leave(&mut self, now: Instant, id: LinkId, token: Option<Token>) {
        let Some(link) = self.links.get_mut(id) else {
            return self.settle_delivered(token);
        };
        if let Some(leaving) = &mut link.leaving {
            leaving.tokens.extend(token);
            return;
        }
        let is_online = matches!(link.place, Place::Online(_));
        link.leaving = Some(Leaving {
            tokens: token.into_iter().collect(),
            unregister: None,
            limit: None,
        });
        if !is_online {
            return self.drop_link(now, id, Cause::Disconnecting);
        }
        if self.gateway == Some(id) {
            self.adopt_next();
        }
        self.send_unregister(now, id);
    }

    fn send_unregister(&mut self, now: Instant, id: LinkId) {
        let Some(to) = self.links.get(id).map(|link| link.app.clone()) else {
            return;
        };
        let message_id = self.fresh_id();
        let message = self.message(now, message_id.clone(), to.clone(), Body::Unregister);
        let limit = self
            .timers
            .arm(now, self.config.response_timeout, Timer::GoodBye(id));
        if let Some(leaving) = self
            .links
            .get_mut(id)
            .and_then(|link| link.leaving.as_mut())
        {
            leaving.limit = limit;
            leaving.unregister = Some(message_id.clone());
        }
        let call = Call::Unregister;
        if let Ok(record) = self.address(&message, Some(id), Class::Call(call), None) {
            self.wait_for(Waiter {
                id: message_id,
                link: id,
                to,
                call,
                token: None,
                timer: None,
                items: None,
            });
            // It takes its turn behind blocked sends; without room for it the limit ends the link.
            let _ = self.admit(now, record, Urgency::Waits);
        }
    }

    /// Our good-bye is answered, or was waited for long enough.
    pub(crate) fn good_bye_done(&mut self, now: Instant, id: LinkId) {
        self.drop_link(now, id, Cause::Disconnecting);
    }

    /// Ends the node politely: what waits on offline links settles, online ones are told
    /// good-bye under one deadline, then everything ends as by [`terminate_now`](Self::terminate_now).
    /// The token settles as delivered at the end.
    pub fn terminate(&mut self, now: Instant, token: Option<Token>) {
        match &mut self.phase {
            Phase::Ended => return self.settle_delivered(token),
            Phase::Terminating { tokens, .. } => return tokens.extend(token),
            Phase::Running => {
                self.timers
                    .arm(now, self.config.terminate_timeout, Timer::Terminate);
                self.phase = Phase::Terminating {
                    tokens: token.into_iter().collect(),
                };
            }
        }
        self.fail_all_dials(now);
        self.close_strangers();
        let links: Vec<LinkId> = self.links.keys().collect();
        for link in links {
            self.leave(now, link, None);
        }
        if self.links.is_empty() {
            self.finish_termination(now, Close::Flush);
        }
        self.settle_room();
    }

    /// Ends the node at once: every waiter settles `terminated`, every peer is closed.
    pub fn terminate_now(&mut self, now: Instant) {
        if self.is_running() {
            self.phase = Phase::Terminating { tokens: Vec::new() };
        }
        self.finish_termination(now, Close::Flush);
    }

    /// The limit of [`terminate`](Self::terminate) has passed: nothing is waited for any more, nor
    /// that peers take what they have not taken yet.
    pub(crate) fn termination_timed_out(&mut self, now: Instant) {
        self.finish_termination(now, Close::Abort);
    }

    pub(crate) fn finish_termination(&mut self, now: Instant, how: Close) {
        let Phase::Terminating { tokens } = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        self.fail_all_dials(now);
        let links: Vec<LinkId> = self.links.keys().collect();
        for link in links {
            self.drop_link_and_close(now, link, Cause::Terminated, how);
        }
        self.close_strangers();
        self.clear();
        for token in tokens {
            self.settle_delivered(Some(token));
        }
        self.tell(Event::Terminated);
    }

    fn fail_all_dials(&mut self, now: Instant) {
        let dials: Vec<_> = self.dials.keys().collect();
        for dial in dials {
            self.fail_dial(now, dial, DialError::Terminated);
        }
    }

    /// Closes the peers that have no app.
    fn close_strangers(&mut self) {
        let strangers: Vec<PeerId> = self
            .peers
            .iter()
            .filter(|(_, peer)| !matches!(peer.stage, Stage::Bound(_) | Stage::Leaving { .. }))
            .map(|(id, _)| id)
            .collect();
        for peer in strangers {
            self.close_peer(peer, Close::Flush);
        }
    }
}
