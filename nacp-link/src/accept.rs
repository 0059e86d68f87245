//! Registering, the accepting side (specification, section 4.2).

use std::time::Instant;

use nacp_proto::{
    AppId, Body, Decoded, Message, MessageId, Outcome, Payload, Register, Registered, Response,
    Session,
};
use serde::Serialize;
use smol_str::SmolStr;

use crate::config::Admittance;
use crate::dial::DialError;
use crate::ids::LinkId;
use crate::link::Place;
use crate::node::Node;
use crate::peer::{Applicant, Stage};
use crate::report::{MessageReport, Reason};
use crate::session::Binding;
use crate::{Authorize, Close, Event, PeerId, Trust};

/// A policy's answer to a register (specification, section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It may not come in.
    Refuse,
    /// It may come in.
    Admit,
    /// It may come in, and is who it says it is.
    AdmitProven,
    /// It may come in as if it had never been here.
    AdmitAnew,
}

pub(crate) const APP_ID_IN_USE: &str = "appId-in-use";
const MULTI_GATEWAY: &str = "multi-gateway";

impl Node {
    /// The first register of an accepted peer.
    pub(crate) fn handle_register(&mut self, now: Instant, peer: PeerId, decoded: Decoded) {
        let envelope = decoded.envelope();
        if !self.is_for_us(envelope, true) {
            return self.report_subject(
                MessageReport::GatewayError,
                Some(peer),
                &decoded,
                Reason::Dropped,
            );
        }
        let (app, id) = (envelope.from.clone(), envelope.id.clone());
        let register = match decoded {
            Decoded::Message(Message {
                body: Body::Register(register),
                ..
            }) => Some(*register),
            Decoded::Message(_) | Decoded::Malformed(_) | Decoded::Unknown { .. } => None,
        };
        let Some(register) = register.filter(|_| !app.is_any()) else {
            return self.refuse_register(
                now,
                peer,
                &app,
                (&[id], 0),
                Reason::Malformed.as_str(),
                Payload::empty(),
            );
        };
        let trust = self
            .peers
            .get(peer)
            .map_or(Trust::Unproven, |peer| peer.trust);
        let applicant = Applicant {
            app,
            register,
            ids: vec![id],
            acked: 0,
            proven: trust == Trust::Proven,
            anew: false,
        };
        if let Some(why) = self.early_refusal(&applicant) {
            return self.refuse_applicant(now, peer, &applicant, why, Payload::empty());
        }
        match self.config.admittance {
            Admittance::All => self.decide(now, peer, applicant),
            Admittance::Ask => self.ask_policy(now, peer, applicant),
        }
    }

    fn early_refusal(&self, applicant: &Applicant) -> Option<&'static str> {
        let Register { version, info, .. } = &applicant.register;
        if info.is_gateway && self.config.is_gateway {
            return Some("dual-gateway");
        }
        if version.major != nacp_proto::Version::CURRENT.major {
            return Some("version-mismatch");
        }
        let is_over = self.has_no_link_for(&applicant.app)
            || info.decl.encoded_len() > self.config.max_decl_bytes;
        is_over.then_some(Reason::LimitReached.as_str())
    }

    /// Whether an app would need a link more than there may be.
    pub(crate) fn has_no_link_for(&self, app: &AppId) -> bool {
        !self.by_app.contains_key(app) && self.links.len() >= self.config.max_links
    }

    fn ask_policy(&mut self, now: Instant, peer: PeerId, mut applicant: Applicant) {
        self.acknowledge_applicant(now, peer, &mut applicant);
        let Some(known) = self.peers.get_mut(peer) else {
            return;
        };
        self.timers.disarm(&mut known.timer);
        let event = Authorize {
            peer,
            app: applicant.app.clone(),
            info: applicant.register.info.clone(),
            auth: applicant.register.auth.take(),
            trust: known.trust,
        };
        let asking = self.deciding.entry(applicant.app.clone()).or_default();
        asking.push(peer);
        known.stage = Stage::Deciding(Box::new(applicant));
        self.tell(Event::Authorize(Box::new(event)));
    }

    /// The policy has answered; for a peer that has gone meanwhile this does nothing.
    pub fn handle_authorized(&mut self, now: Instant, peer: PeerId, verdict: Verdict) {
        let Some(known) = self.peers.get_mut(peer) else {
            return;
        };
        let stage = std::mem::replace(&mut known.stage, Stage::Fresh);
        let Stage::Deciding(mut applicant) = stage else {
            known.stage = stage;
            return;
        };
        let asking = self.deciding.get(&applicant.app);
        let is_first = asking.and_then(|asking| asking.first()) == Some(&peer);
        self.forget_deciding(&applicant.app, peer);
        match verdict {
            Verdict::Refuse => {
                self.refuse_applicant(now, peer, &applicant, "unauthorized", Payload::empty());
                return self.settle_room();
            }
            Verdict::Admit => applicant.proven = false,
            Verdict::AdmitProven => applicant.proven = true,
            Verdict::AdmitAnew => applicant.anew = true,
        }
        if is_first {
            self.decide(now, peer, *applicant);
        } else {
            self.refuse_applicant(now, peer, &applicant, APP_ID_IN_USE, Payload::empty());
        }
        self.settle_room();
    }

    /// Admitted: is its name free, and the gateway's place?
    pub(crate) fn decide(&mut self, now: Instant, peer: PeerId, applicant: Applicant) {
        if self.has_no_link_for(&applicant.app) {
            let why = Reason::LimitReached.as_str();
            return self.refuse_applicant(now, peer, &applicant, why, Payload::empty());
        }
        if applicant.app == self.config.app_id {
            return self.refuse_applicant(now, peer, &applicant, APP_ID_IN_USE, Payload::empty());
        }
        let link = self.by_app.get(&applicant.app).copied();
        let bound = link
            .and_then(|id| self.links.get(id))
            .and_then(|link| link.peer());
        if let (Some(link), Some(bound)) = (link, bound) {
            return self.contend(now, peer, applicant, (link, bound));
        }
        if self.is_stale(&applicant) {
            return self.refuse_applicant(now, peer, &applicant, APP_ID_IN_USE, Payload::empty());
        }
        if self.has_crossed(&applicant) {
            self.report_register_warning(&applicant.app, Reason::Crossed);
            if self.config.app_id > applicant.app && applicant.register.info.instance.is_some() {
                return self.refuse_applicant(
                    now,
                    peer,
                    &applicant,
                    APP_ID_IN_USE,
                    crossed_payload(),
                );
            }
        }
        if self.is_second_gateway(&applicant.app, applicant.register.info.is_gateway)
            && !self.config.multi_gateway_downgrade
        {
            return self.refuse_applicant(now, peer, &applicant, MULTI_GATEWAY, Payload::empty());
        }
        self.accept(now, peer, applicant);
    }

    /// A register no longer waits for the policy.
    pub(crate) fn forget_deciding(&mut self, app: &AppId, peer: PeerId) {
        if let Some(asking) = self.deciding.get_mut(app) {
            asking.retain(|other| *other != peer);
            if asking.is_empty() {
                self.deciding.remove(app);
            }
        }
    }

    /// Whether our own register to this app is on its way.
    fn has_crossed(&self, applicant: &Applicant) -> bool {
        let dial = self
            .dial_of
            .get(&applicant.app)
            .and_then(|dial| self.dials.get(*dial));
        dial.and_then(|dial| dial.peer).is_some()
    }

    /// Another register of the same app on the same peer, while the first one waits.
    pub(crate) fn join_register(&mut self, now: Instant, peer: PeerId, decoded: Decoded) {
        let id = decoded.envelope().id.clone();
        let Some(known) = self.peers.get_mut(peer) else {
            return;
        };
        let to = match &mut known.stage {
            Stage::Deciding(applicant) | Stage::Held(applicant)
                if applicant.ids.len() < MAX_JOINED =>
            {
                applicant.ids.push(id.clone());
                applicant.acked = applicant.ids.len();
                applicant.app.clone()
            }
            Stage::Fresh
            | Stage::Registering { .. }
            | Stage::Deciding(_)
            | Stage::Held(_)
            | Stage::Bound(_)
            | Stage::Leaving { .. } => return,
        };
        self.acknowledge(now, peer, &to, &id);
    }

    pub(crate) fn acknowledge_applicant(
        &mut self,
        now: Instant,
        peer: PeerId,
        applicant: &mut Applicant,
    ) {
        for id in applicant.ids.iter().skip(applicant.acked) {
            self.acknowledge(now, peer, &applicant.app, id);
        }
        applicant.acked = applicant.ids.len();
    }

    pub(crate) fn refuse_applicant(
        &mut self,
        now: Instant,
        peer: PeerId,
        applicant: &Applicant,
        why: &str,
        payload: Payload,
    ) {
        self.refuse_register(
            now,
            peer,
            &applicant.app,
            (&applicant.ids, applicant.acked),
            why,
            payload,
        );
    }

    /// ACK, an answer that says no, and the end of the peer.
    fn refuse_register(
        &mut self,
        now: Instant,
        peer: PeerId,
        to: &AppId,
        (ids, acked): (&[MessageId], usize),
        why: &str,
        payload: Payload,
    ) {
        for id in ids.iter().skip(acked) {
            self.acknowledge(now, peer, to, id);
        }
        for id in ids {
            let outcome = Outcome::NotOk {
                why: Some(SmolStr::from(why)),
            };
            let response = Response {
                outcome,
                ..Response::ok(id.clone(), payload.clone())
            };
            self.send_control(now, peer, to, Body::Response(response));
        }
        self.report_register_error(Some(peer), Some(to), DialError::Refused { why: why.into() });
        self.close_peer(peer, Close::Refuse);
    }

    /// Binds the app, answers its register, and sends what waits for it.
    pub(crate) fn accept(&mut self, now: Instant, peer: PeerId, mut applicant: Applicant) {
        let resumed = self.can_resume(&applicant);
        let held = self.session_held(&applicant);
        let session = applicant
            .register
            .info
            .instance
            .map(|_| Session(self.fresh_secret()));
        let binding = Binding {
            peer,
            app: applicant.app.clone(),
            info: applicant.register.info.clone(),
            session,
            resumed,
            held,
            proven: applicant.proven,
            dialled: false,
        };
        let bound = self.bind(binding);
        self.acknowledge_applicant(now, peer, &mut applicant);
        let registered = Registered {
            info: self.own_info(),
            session,
            resumed: Some(resumed),
        };
        for id in &applicant.ids {
            let response = Response::ok(id.clone(), registered.to_payload());
            let answer = self.answer_register(now, peer, &applicant.app, response);
            self.register_answered(bound.link, answer);
        }
        self.finish_bind(now, bound);
    }

    fn answer_register(
        &mut self,
        now: Instant,
        peer: PeerId,
        to: &AppId,
        response: Response,
    ) -> MessageId {
        let answer = self.send_control(now, peer, to, Body::Response(response));
        self.expect_ack(peer, answer.clone());
        answer
    }

    fn can_resume(&self, applicant: &Applicant) -> bool {
        let Some(link) = self
            .by_app
            .get(&applicant.app)
            .and_then(|id| self.links.get(*id))
        else {
            return false;
        };
        if self.config.letter.resume_any_instance {
            return true;
        }
        if link.is_native() {
            self.session_held(applicant).is_some()
        } else {
            !applicant.anew
        }
    }

    /// The session of our link that an applicant holds.
    pub(crate) fn session_held(&self, applicant: &Applicant) -> Option<Session> {
        let link = self
            .by_app
            .get(&applicant.app)
            .and_then(|id| self.links.get(*id))?;
        let held = &applicant.register.holds;
        link.session
            .list()
            .into_iter()
            .find(|session| held.contains(session))
    }

    /// Whether a register was sent before its app came to the session that it has now.
    fn is_stale(&self, applicant: &Applicant) -> bool {
        let link = self
            .by_app
            .get(&applicant.app)
            .and_then(|id| self.links.get(*id));
        let Register { info, holds, .. } = &applicant.register;
        link.is_some_and(|link| {
            info.instance.is_some()
                && info.instance == link.info.instance
                && self.session_held(applicant).is_none()
                && link
                    .session
                    .superseded
                    .iter()
                    .any(|session| holds.contains(session))
        })
    }

    /// A register on a peer that is bound to its app already: only the declarations change.
    pub(crate) fn refresh_register(
        &mut self,
        now: Instant,
        peer: PeerId,
        id: LinkId,
        decoded: Decoded,
    ) {
        let envelope = decoded.envelope();
        let (to, message_id) = (envelope.from.clone(), envelope.id.clone());
        self.acknowledge(now, peer, &to, &message_id);
        let Decoded::Message(Message {
            body: Body::Register(register),
            ..
        }) = decoded
        else {
            self.report_subject(
                MessageReport::MessageError,
                Some(peer),
                &decoded,
                Reason::Malformed,
            );
            let response = Response::not_ok(message_id, Reason::Malformed.as_str());
            self.answer_register(now, peer, &to, response);
            return;
        };
        if register.info.decl.encoded_len() > self.config.max_decl_bytes {
            let response = Response::not_ok(message_id, Reason::LimitReached.as_str());
            self.answer_register(now, peer, &to, response);
            return;
        }
        let info = self.own_info();
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.info.decl = register.info.decl;
        let registered = Registered {
            info,
            session: link.session.current,
            resumed: Some(true),
        };
        let response = Response::ok(message_id, registered.to_payload());
        self.answer_register(now, peer, &to, response);
    }

    pub(crate) fn is_online(&self, app: &AppId) -> bool {
        let link = self.by_app.get(app).and_then(|id| self.links.get(*id));
        link.is_some_and(|link| matches!(link.place, Place::Online(_)) && link.leaving.is_none())
    }
}

/// Registers of one app on one peer that are answered together.
const MAX_JOINED: usize = 16;

fn crossed_payload() -> Payload {
    #[derive(Serialize)]
    struct Crossed {
        crossed: bool,
    }
    Payload::new(&Crossed { crossed: true }).unwrap_or_else(|_| Payload::empty())
}
