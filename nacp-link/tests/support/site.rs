use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use nacp_link::{
    Answer, Close, Event, LinkChange, LinkState, MessageReport, Node, PeerId, Report, Request,
    RunningId, Settlement, SubscriptionId, Token,
};
use nacp_link::{StreamId, Verdict};
use nacp_proto::{AppId, Body, MessageId, RequestKind, Signal};
use smol_str::SmolStr;

use super::World;
use super::text::{app, id, payload, text_of};

/// What a node does with the requests that come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serve {
    /// Keeps them: the test answers.
    Keep,
    /// Answers each at once with its own payload.
    Echo,
}

/// A node and everything that it has told.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) serve: Serve,
    /// What the policy says to each register; `None` leaves that to the test.
    pub(crate) verdict: Option<Verdict>,
    /// Every event but settlements and reports, with its time.
    pub(crate) events: Vec<(Duration, Event)>,
    /// Every report, with its time.
    pub(crate) reports: Vec<(Duration, Report)>,
    /// How each token ended; a second settlement of one fails at once.
    pub(crate) settled: HashMap<Token, (Duration, Settlement)>,
    /// Tokens in the order in which they settled.
    pub(crate) order: Vec<Token>,
    /// Requests, signals and process items for the user, by their labels, in order.
    pub(crate) handled: Vec<String>,
    /// Requests not yet answered by the test, by their labels.
    pub(crate) running: HashMap<String, RunningId>,
    /// Remote subscriptions on this node's bus, with their patterns, in the order they were made.
    pub(crate) listeners: Vec<(SubscriptionId, SmolStr)>,
    /// Hits of own subscriptions, by their labels.
    pub(crate) hits: Vec<(StreamId, String)>,
    /// Link changes, one each.
    pub(crate) links: Vec<(Duration, LinkChange)>,
    pub(crate) closes: Vec<(Duration, usize, Close)>,
    pub(crate) registered: Vec<(Duration, PeerId, bool)>,
    pub(super) peers: HashMap<PeerId, (usize, usize)>,
    pub(super) has_work: bool,
    states: BTreeMap<AppId, LinkState>,
}

impl Site {
    pub(super) fn new(node: Node) -> Self {
        Self {
            node,
            serve: Serve::Keep,
            verdict: None,
            events: Vec::new(),
            reports: Vec::new(),
            settled: HashMap::new(),
            order: Vec::new(),
            handled: Vec::new(),
            running: HashMap::new(),
            listeners: Vec::new(),
            hits: Vec::new(),
            links: Vec::new(),
            closes: Vec::new(),
            registered: Vec::new(),
            peers: HashMap::new(),
            has_work: false,
            states: BTreeMap::new(),
        }
    }

    /// A new process in the old one's place; what was collected stays.
    pub(super) fn reborn(&mut self, node: Node) {
        self.node = node;
        self.running.clear();
        self.listeners.clear();
        self.peers.clear();
        self.states.clear();
    }

    pub(super) fn wire_of(&self, peer: PeerId) -> Option<(usize, usize)> {
        self.peers.get(&peer).copied()
    }

    pub(super) fn collect(&mut self, at: Duration, now: Instant, event: Event) {
        self.has_work = true;
        match &event {
            Event::Settled { token, settlement } => {
                let before = self.settled.insert(*token, (at, settlement.clone()));
                assert_eq!(before, None, "{token:?} settles twice: {settlement:?}");
                self.order.push(*token);
                return;
            }
            Event::Report(report) => {
                self.note_signal_error(report);
                self.reports.push((at, report.clone()));
                return;
            }
            Event::Request(requested) => {
                let label = text_of(&requested.payload);
                self.handled.push(label.clone());
                if self.serve == Serve::Echo {
                    let answer = Answer::ok(requested.payload.clone());
                    self.node.respond(now, requested.running, answer, None);
                } else {
                    self.running.insert(label, requested.running);
                }
            }
            Event::Signal { signal, .. } => self.handled.push(signal_label(signal)),
            Event::Process { payload, .. } => self.handled.push(text_of(payload)),
            Event::Notified {
                stream, payload, ..
            } => self.hits.push((*stream, text_of(payload))),
            Event::Subscribed {
                subscription,
                pattern,
                ..
            } => self.listeners.push((*subscription, pattern.clone())),
            Event::Unsubscribed { subscription } => {
                self.listeners.retain(|(known, _)| known != subscription);
            }
            Event::Link(change) => self.change(at, change),
            Event::Authorize(asked) => {
                if let Some(verdict) = self.verdict {
                    self.node.handle_authorized(now, asked.peer, verdict);
                }
            }
            _ => {}
        }
        self.events.push((at, event));
    }

    /// A signal that nothing runs for has been handled all the same.
    fn note_signal_error(&mut self, report: &Report) {
        if let Report::Message {
            kind: MessageReport::SignalError,
            subject,
            ..
        } = report
            && let Some(Body::Signal { signal, .. }) = &subject.body
        {
            self.handled.push(signal_label(signal));
        }
    }

    /// Only legal transitions, one event each.
    fn change(&mut self, at: Duration, change: &LinkChange) {
        let before = self.states.get(&change.app).copied();
        let before = before.unwrap_or(LinkState::Dropped);
        let legal = matches!(
            (before, change.state),
            (LinkState::Dropped | LinkState::Offline, LinkState::Online)
                | (LinkState::Online, LinkState::Offline | LinkState::Dropped)
                | (LinkState::Offline, LinkState::Dropped)
        );
        assert!(legal, "{before:?} to {change:?} at {at:?}");
        self.states.insert(change.app.clone(), change.state);
        self.links.push((at, change.clone()));
    }
}

fn signal_label(signal: &Signal) -> String {
    match signal {
        Signal::Normal(payload) => text_of(payload),
        control => control.kind().to_owned(),
    }
}

/// What nodes are told to do, and what they have told.
impl World {
    /// Sends a signal called by its text.
    pub(crate) fn signal(&mut self, site: usize, to: &str, label: &str) -> Token {
        let (now, token) = (self.now(), self.token());
        let signal = Signal::Normal(payload(label));
        self.node(site)
            .signal(now, &app(to), id("some-run"), signal, Some(token));
        token
    }

    /// Sends several signals, called by a letter and a number.
    pub(crate) fn signals(
        &mut self,
        site: usize,
        to: &str,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Vec<Token> {
        numbers
            .into_iter()
            .map(|number| self.signal(site, to, &format!("m{number}")))
            .collect()
    }

    /// Calls an ability with a text.
    pub(crate) fn request(&mut self, site: usize, to: &str, label: &str) -> Token {
        self.ask(site, to, label, RequestKind::Ability, None).0
    }

    /// Starts an event with a text.
    pub(crate) fn start(&mut self, site: usize, to: &str, label: &str) -> (Token, MessageId) {
        let (token, request) = self.ask(site, to, label, RequestKind::Event, None);
        (token, request.unwrap())
    }

    pub(crate) fn ask(
        &mut self,
        site: usize,
        to: &str,
        label: &str,
        kind: RequestKind,
        limit: Option<Duration>,
    ) -> (Token, Option<MessageId>) {
        let (now, token) = (self.now(), self.token());
        let request = Request {
            to: app(to),
            kind,
            target: SmolStr::new_static("work"),
            payload: payload(label),
            limit,
        };
        (token, self.node(site).request(now, request, Some(token)))
    }

    pub(crate) fn subscribe(
        &mut self,
        site: usize,
        to: &str,
        pattern: &str,
    ) -> (Token, Option<StreamId>) {
        let (now, token) = (self.now(), self.token());
        let stream = self
            .node(site)
            .subscribe(now, &app(to), SmolStr::new(pattern), Some(token));
        (token, stream)
    }

    pub(crate) fn unsubscribe(&mut self, site: usize, stream: StreamId) -> Token {
        let (now, token) = (self.now(), self.token());
        self.node(site).unsubscribe(now, stream, Some(token));
        token
    }

    /// An event on a node's bus: every remote subscription that it hits gets a notify.
    pub(crate) fn emit(&mut self, site: usize, name: &str, label: &str) -> Vec<Token> {
        let hit: Vec<_> = self.sites[site]
            .listeners
            .iter()
            .filter(|(_, pattern)| matches(pattern, name))
            .map(|(subscription, _)| *subscription)
            .collect();
        hit.into_iter()
            .map(|subscription| self.notify(site, subscription, name, label))
            .collect()
    }

    pub(crate) fn notify(
        &mut self,
        site: usize,
        subscription: SubscriptionId,
        name: &str,
        label: &str,
    ) -> Token {
        let (now, token) = (self.now(), self.token());
        let name = SmolStr::new(name);
        self.node(site)
            .notify(now, subscription, &name, payload(label), Some(token));
        token
    }

    /// Answers the request of this label well, with the label.
    pub(crate) fn answer(&mut self, site: usize, label: &str) -> Token {
        self.answer_with(site, label, Answer::ok(payload(label)))
    }

    pub(crate) fn answer_with(&mut self, site: usize, label: &str, answer: Answer) -> Token {
        let (now, token) = (self.now(), self.token());
        let running = self.sites[site].running[label];
        self.node(site).respond(now, running, answer, Some(token));
        token
    }

    /// Sends one process item of the event of this label.
    pub(crate) fn process(&mut self, site: usize, event: &str, label: &str) -> Token {
        let (now, token) = (self.now(), self.token());
        let running = self.sites[site].running[event];
        self.node(site)
            .process(now, running, payload(label), Some(token));
        token
    }

    pub(crate) fn disconnect(&mut self, site: usize, from: &str) -> Token {
        let (now, token) = (self.now(), self.token());
        self.node(site).disconnect(now, &app(from), Some(token));
        token
    }

    pub(crate) fn terminate(&mut self, site: usize) -> Token {
        let (now, token) = (self.now(), self.token());
        self.node(site).terminate(now, Some(token));
        token
    }
}

/// Whether a name hits a pattern: segments joined by `:`, of which `*` stands for any one.
fn matches(pattern: &str, name: &str) -> bool {
    let (wanted, given): (Vec<_>, Vec<_>) =
        (pattern.split(':').collect(), name.split(':').collect());
    wanted.len() == given.len()
        && wanted
            .iter()
            .zip(&given)
            .all(|(wanted, given)| *wanted == "*" || wanted == given)
}
