//! Registering, the dialling side (specification, section 4.1).

use std::time::Instant;

use nacp_proto::{
    AppId, Body, MessageId, Outcome, Payload, Register, Registered, Response, Version,
};
use serde::Deserialize;
use smol_str::SmolStr;
use thiserror::Error;

use crate::connection::Trust;
use crate::node::Node;
use crate::peer::Stage;
use crate::session::Binding;
use crate::timers::{Timer, TimerHandle};
use crate::{Cause, Close, DialId, PeerId, Settlement, Token};

/// Why an attempt to register with an app failed (specification, section 4.1).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DialError {
    /// No answer came in time. A TypeScript peer stays silent to a wrong AppId and to `*`.
    #[error("response-timeout")]
    ResponseTimeout,
    /// Another app answered than the one expected.
    #[error("expect-mismatch: {found} answered")]
    ExpectMismatch {
        /// Who answered.
        found: AppId,
    },
    /// The other side is a gateway, and this node has one.
    #[error("multi-gateway")]
    MultiGateway,
    /// The connection could not be made, or ended before the answer.
    #[error("transport-closed")]
    TransportClosed,
    /// The other side said no.
    #[error("{why}")]
    Refused {
        /// Its `whyNotOk`.
        why: SmolStr,
    },
    /// This node ended, or gave the app up.
    #[error("terminated")]
    Terminated,
}

impl DialError {
    const fn refused(why: &'static str) -> Self {
        Self::Refused {
            why: SmolStr::new_static(why),
        }
    }

    /// The reason in the specification's words; of a refusal, the other side's.
    pub fn as_str(&self) -> &str {
        match self {
            Self::ResponseTimeout => "response-timeout",
            Self::ExpectMismatch { .. } => "expect-mismatch",
            Self::MultiGateway => "multi-gateway",
            Self::TransportClosed => "transport-closed",
            Self::Refused { why } => why,
            Self::Terminated => "terminated",
        }
    }
}

/// What a call of [`Node::connect`] leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a dial that nobody makes never ends"]
pub enum Connect {
    /// The app is online, or the node has ended: the token is settled.
    Settled,
    /// An attempt is under way; the token settles with it.
    Joined,
    /// Make a connection, then call [`Node::handle_connected`] or [`Node::handle_dial_failed`].
    Dial(DialId),
}

/// One attempt of ours.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) target: Option<AppId>,
    pub(crate) auth: Option<Payload>,
    pub(crate) tokens: Vec<Token>,
    /// The connection that our register went out on.
    pub(crate) peer: Option<PeerId>,
    pub(crate) timer: TimerHandle,
    /// The node's binds when our register went out.
    pub(crate) binds: u64,
    /// Refused because the other side dials us: its register is waited for.
    pub(crate) crossed: bool,
}

impl Node {
    /// Wants an app online; without a `target`, whoever answers at the address that is dialled.
    ///
    /// The token settles as [`Settlement::Connected`] or [`Settlement::DialFailed`]. `auth` goes
    /// out with the register, but never to an unnamed target.
    pub fn connect(
        &mut self,
        target: Option<AppId>,
        auth: Option<Payload>,
        token: Option<Token>,
    ) -> Connect {
        if !self.is_running() {
            self.settle(token, Settlement::DialFailed(DialError::Terminated));
            return Connect::Settled;
        }
        if let Some(app) = target.as_ref().filter(|app| self.is_online(app)) {
            self.settle(token, Settlement::Connected(app.clone()));
            return Connect::Settled;
        }
        let known = target
            .as_ref()
            .and_then(|app| self.dial_of.get(app))
            .and_then(|id| self.dials.get_mut(*id));
        if let Some(dial) = known {
            dial.tokens.extend(token);
            return Connect::Joined;
        }
        let tokens = token.into_iter().collect();
        let dial = Dial {
            target: target.clone(),
            auth,
            tokens,
            peer: None,
            timer: None,
            binds: 0,
            crossed: false,
        };
        let id = self.dials.insert(dial);
        if let Some(app) = target {
            self.dial_of.insert(app, id);
        }
        Connect::Dial(id)
    }

    /// The connection for an attempt could not be made.
    pub fn handle_dial_failed(&mut self, now: Instant, dial: DialId) {
        self.fail_dial(now, dial, DialError::TransportClosed);
        self.settle_room();
    }

    /// The connection of an attempt is there: our register goes out.
    pub(crate) fn send_register(&mut self, now: Instant, peer: PeerId, id: DialId) {
        let Some(dial) = self
            .dials
            .get_mut(id)
            .filter(|dial| dial.peer.is_none() && !dial.crossed)
        else {
            return self.close_peer(peer, Close::Abort);
        };
        let (target, auth) = (dial.target.clone(), dial.auth.take());
        dial.peer = Some(peer);
        dial.binds = self.binds;
        dial.timer = self
            .timers
            .arm(now, self.config.response_timeout, Timer::RegisterAnswer(id));
        let kept = target
            .as_ref()
            .and_then(|app| self.by_app.get(app))
            .and_then(|link| self.links.get(*link));
        let register = Register {
            version: Version::CURRENT,
            info: self.own_info(),
            holds: kept
                .filter(|link| link.leaving.is_none())
                .map(|link| link.session.list())
                .unwrap_or_default(),
            auth: auth.filter(|_| target.as_ref().is_some_and(|app| !app.is_any())),
        };
        let to = target.unwrap_or_else(AppId::any);
        let register = self.send_control(now, peer, &to, Body::Register(Box::new(register)));
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.stage = Stage::Registering { dial: id, register };
        }
    }

    /// The answer to our register.
    pub(crate) fn handle_register_answer(
        &mut self,
        now: Instant,
        peer: PeerId,
        dial: DialId,
        (id, from, response): (MessageId, AppId, Response),
    ) {
        let expected = self.dials.get(dial).and_then(|dial| dial.target.clone());
        self.acknowledge(now, peer, &from, &id);
        if expected.is_some_and(|expected| expected != from) {
            return self.fail_dial(now, dial, DialError::ExpectMismatch { found: from });
        }
        if let Outcome::NotOk { why } = response.outcome {
            let why = why.unwrap_or_else(|| SmolStr::new_static("malformed"));
            let is_crossed = why == "appId-in-use" && has_crossed(&response.payload);
            return if is_crossed {
                self.wait_for_crossing(peer, dial, from)
            } else {
                self.fail_dial(now, dial, DialError::Refused { why })
            };
        }
        match Registered::from_payload(&response.payload) {
            Ok(registered) => self.registered(now, peer, dial, from, registered),
            Err(_) => self.fail_dial(now, dial, DialError::refused("malformed")),
        }
    }

    /// The other side dials us at the same time, and its attempt is the one that counts.
    fn wait_for_crossing(&mut self, peer: PeerId, id: DialId, app: AppId) {
        self.close_peer(peer, Close::Flush);
        if self.is_online(&app) {
            return self.finish_dials(&app, None, Some(id));
        }
        let Some(dial) = self.dials.get_mut(id) else {
            return;
        };
        dial.peer = None;
        dial.crossed = true;
        if dial.target.is_some() {
            return;
        }
        // Whoever it was at has told its name.
        match self.dial_of.get(&app).copied() {
            Some(named) => self.join_dials(id, named),
            None => {
                dial.target = Some(app.clone());
                self.dial_of.insert(app, id);
            }
        }
    }

    /// Ends an attempt with another one at the same app.
    fn join_dials(&mut self, id: DialId, named: DialId) {
        let Some(mut dial) = self.dials.remove(id) else {
            return;
        };
        self.timers.disarm(&mut dial.timer);
        if let Some(named) = self.dials.get_mut(named) {
            named.tokens.append(&mut dial.tokens);
        }
    }

    fn registered(
        &mut self,
        now: Instant,
        peer: PeerId,
        dial: DialId,
        app: AppId,
        registered: Registered,
    ) {
        let Registered {
            info,
            session,
            resumed,
        } = registered;
        if app.is_any() {
            return self.fail_dial(now, dial, DialError::refused("malformed"));
        }
        if app == self.config.app_id {
            return self.fail_dial(now, dial, DialError::refused("appId-in-use"));
        }
        if self.is_second_gateway(&app, info.is_gateway) && !self.config.multi_gateway_downgrade {
            return self.fail_dial(now, dial, DialError::MultiGateway);
        }
        if info.decl.encoded_len() > self.config.max_decl_bytes || self.has_no_link_for(&app) {
            return self.fail_dial(now, dial, DialError::refused("limit-reached"));
        }
        if self.is_overtaken(dial, &app) {
            return if self.is_online(&app) {
                self.finish_dials(&app, None, Some(dial))
            } else {
                self.fail_dial(now, dial, DialError::TransportClosed)
            };
        }
        let link = self.by_app.get(&app).copied();
        if let Some((link, old)) = link.and_then(|link| Some((link, self.peer_of(link)?))) {
            // Whoever waits to take over would be bound by the end of the old peer.
            self.refuse_contender(now, link);
            self.lose_peer(now, old, Cause::TakenOver, Close::Abort);
        }
        let kept = self.by_app.get(&app).and_then(|id| self.links.get(*id));
        let resumed = kept.is_some_and(|link| match (link.info.instance, info.instance) {
            _ if self.config.letter.resume_any_instance => true,
            (Some(before), Some(after)) => before == after && resumed == Some(true),
            (None, _) => true,
            (Some(_), None) => false,
        });
        let proven = self
            .peers
            .get(peer)
            .is_some_and(|peer| peer.trust == Trust::Proven);
        let bound = self.bind(Binding {
            peer,
            app,
            info,
            session,
            resumed,
            held: None,
            proven,
            dialled: true,
        });
        self.finish_bind(now, bound);
    }

    /// Whether an app has come online by another way since our register went out. That ends an
    /// attempt at it by name; one at whoever answers learns only now whom it was at, and the bind
    /// that it is told of may be over at the other side.
    fn is_overtaken(&self, dial: DialId, app: &AppId) -> bool {
        let link = self.by_app.get(app).and_then(|id| self.links.get(*id));
        let dial = self.dials.get(dial);
        link.zip(dial)
            .is_some_and(|(link, dial)| link.bind > dial.binds)
    }

    pub(crate) fn register_timed_out(&mut self, now: Instant, dial: DialId) {
        let is_crossed = self.dials.get(dial).is_some_and(|dial| dial.crossed);
        let error = if is_crossed {
            DialError::refused("appId-in-use")
        } else {
            DialError::ResponseTimeout
        };
        self.fail_dial(now, dial, error);
    }

    /// Ends an attempt. Whatever the link was before, it still is.
    pub(crate) fn fail_dial(&mut self, now: Instant, id: DialId, error: DialError) {
        let Some(mut dial) = self.dials.remove(id) else {
            return;
        };
        self.timers.disarm(&mut dial.timer);
        self.report_register_error(dial.peer, dial.target.as_ref(), error.clone());
        if let Some(peer) = dial.peer {
            self.close_peer(peer, Close::Flush);
        }
        for token in dial.tokens {
            self.settle(Some(token), Settlement::DialFailed(error.clone()));
        }
        if let Some(app) = dial.target {
            self.dial_of.remove(&app);
            self.end_late_grace(now, &app);
        }
    }

    /// An app is online: its own attempt and the one that `peer` came from have succeeded.
    pub(crate) fn finish_dials(&mut self, app: &AppId, peer: Option<PeerId>, dial: Option<DialId>) {
        let named = self.dial_of.remove(app);
        for id in named
            .into_iter()
            .chain(dial.filter(|dial| Some(*dial) != named))
        {
            let Some(mut dial) = self.dials.remove(id) else {
                continue;
            };
            self.timers.disarm(&mut dial.timer);
            if let Some(own) = dial.peer.filter(|own| Some(*own) != peer) {
                self.close_peer(own, Close::Flush);
            }
            for token in dial.tokens {
                self.settle(Some(token), Settlement::Connected(app.clone()));
            }
        }
    }
}

fn has_crossed(payload: &Payload) -> bool {
    #[derive(Deserialize)]
    struct Crossed {
        crossed: bool,
    }
    payload
        .decode::<Crossed>()
        .is_ok_and(|payload| payload.crossed)
}
