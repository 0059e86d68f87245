//! A register for an app that is online through another peer (specification, section 4.2).

use std::time::Instant;

use nacp_proto::{AppId, Payload};

use crate::accept::APP_ID_IN_USE;
use crate::ids::LinkId;
use crate::node::Node;
use crate::peer::{Applicant, Stage};
use crate::report::Reason;
use crate::timers::Timer;
use crate::{Cause, Close, PeerId};

impl Node {
    /// The app is online through another peer.
    pub(crate) fn contend(
        &mut self,
        now: Instant,
        peer: PeerId,
        mut applicant: Applicant,
        bound: (LinkId, PeerId),
    ) {
        let (id, old) = bound;
        if self.session_held(&applicant).is_some() {
            self.refuse_contender(now, id);
            self.lose_peer(now, old, Cause::TakenOver, Close::Abort);
            return self.accept(now, peer, applicant);
        }
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if self.config.takeover_probe.is_zero() || link.contender.is_some() {
            return self.refuse_applicant(now, peer, &applicant, APP_ID_IN_USE, Payload::empty());
        }
        link.contender = Some(peer);
        self.acknowledge_applicant(now, peer, &mut applicant);
        self.report_register_warning(&applicant.app, Reason::TakeoverProbe);
        let timer = self
            .timers
            .arm(now, self.config.takeover_probe, Timer::Takeover(peer));
        if let Some(known) = self.peers.get_mut(peer) {
            self.timers.disarm(&mut known.timer);
            known.timer = timer;
            known.stage = Stage::Held(Box::new(applicant));
        }
        self.probe(now, id, old);
    }

    /// The old peer has stayed silent: the new one takes over.
    pub(crate) fn takeover_timed_out(&mut self, now: Instant, peer: PeerId) {
        let Some(app) = self.held_app(peer) else {
            return;
        };
        let old = self
            .by_app
            .get(&app)
            .and_then(|link| self.links.get(*link))
            .and_then(|link| link.peer());
        match old {
            Some(old) => self.lose_peer(now, old, Cause::TakenOver, Close::Abort),
            None => self.accept_held(now, peer),
        }
    }

    fn held_app(&self, peer: PeerId) -> Option<AppId> {
        match self.peers.get(peer).map(|peer| &peer.stage) {
            Some(Stage::Held(applicant)) => Some(applicant.app.clone()),
            Some(_) | None => None,
        }
    }

    /// Nothing stands in the way of a held register any more.
    pub(crate) fn accept_held(&mut self, now: Instant, peer: PeerId) {
        if let Some(applicant) = self.take_held(peer) {
            self.decide(now, peer, applicant);
        }
    }

    fn take_held(&mut self, peer: PeerId) -> Option<Applicant> {
        let known = self.peers.get_mut(peer)?;
        self.timers.disarm(&mut known.timer);
        match std::mem::replace(&mut known.stage, Stage::Fresh) {
            Stage::Held(applicant) => {
                self.forget_contender(&applicant.app, peer);
                Some(*applicant)
            }
            stage @ (Stage::Fresh
            | Stage::Registering { .. }
            | Stage::Deciding(_)
            | Stage::Bound(_)
            | Stage::Leaving { .. }) => {
                known.stage = stage;
                None
            }
        }
    }

    /// The old peer lives: whoever waits for its place is refused.
    pub(crate) fn refuse_contender(&mut self, now: Instant, link: LinkId) {
        let Some(peer) = self
            .links
            .get_mut(link)
            .and_then(|link| link.contender.take())
        else {
            return;
        };
        if let Some(applicant) = self.take_held(peer) {
            self.refuse_applicant(now, peer, &applicant, APP_ID_IN_USE, Payload::empty());
        }
    }

    pub(crate) fn forget_contender(&mut self, app: &AppId, peer: PeerId) {
        let link = self.by_app.get(app).and_then(|id| self.links.get_mut(*id));
        if let Some(link) = link.filter(|link| link.contender == Some(peer)) {
            link.contender = None;
        }
    }
}
