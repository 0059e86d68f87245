//! Plays a recording with a node in the place of one of its apps.

use std::collections::HashMap;

use bytes::Bytes;
use nacp_link::{Connect, Event, Node, RunningId, StreamId, SubscriptionId};
use nacp_proto::{Body, Decoded, Message, MessageId, Outcome, Payload};

use crate::recording::{Case, Conn, Moment, Recording, Side, What};
use crate::roles::{Options, Role};
use crate::shape::{decode, is_beat, is_sentinel, replace, shape, show};
use crate::support::{Hand, World, ms};

/// How long a beat may come later than it was recorded.
const JITTER_MS: u64 = 100;

/// A node in the place of one app.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) world: World,
    app: String,
    /// Connections of the app, by link; `None` takes every one.
    conns: Option<&'static [(&'static str, &'static [u64])]>,
    wires: HashMap<Conn, Open>,
    /// Recorded ids of the app's messages, and the node's in their place.
    pub(crate) ids: HashMap<String, String>,
    labels: HashMap<MessageId, String>,
    pub(crate) running: HashMap<MessageId, RunningId>,
    pub(crate) subscriptions: HashMap<MessageId, SubscriptionId>,
    pub(crate) streams: HashMap<MessageId, StreamId>,
    events_seen: usize,
    served: usize,
    /// Places of what the node was told to do before its time came, because the app was offline.
    pub(crate) ahead: Vec<usize>,
    /// Recorded messages that the node has not sent yet, with their connection and shape.
    missing: Vec<(Conn, Message)>,
    differences: Vec<String>,
    registered_before: bool,
}

#[derive(Debug)]
struct Open {
    hand: Hand,
    /// Which of the node's messages on this connection were recorded as well.
    matched: Vec<usize>,
}

impl Play {
    pub(crate) fn new(role: &Role) -> Self {
        Self::with(role.app, role.options, Some(role.conns), false)
    }

    /// `srv` with a hand-made peer `raw`.
    pub(crate) fn of_case(case: &Case) -> Self {
        let options = if case.recording.name.ends_with("at-gateway") {
            Options::GATEWAY
        } else {
            Options::NONE
        };
        Self::with("srv", options, None, case.registered_before)
    }

    fn with(
        name: &str,
        options: Options,
        conns: Option<&'static [(&'static str, &'static [u64])]>,
        registered_before: bool,
    ) -> Self {
        Self {
            world: World::with([options.config(name)]),
            app: name.to_owned(),
            conns,
            wires: HashMap::new(),
            ids: HashMap::new(),
            labels: HashMap::new(),
            running: HashMap::new(),
            subscriptions: HashMap::new(),
            streams: HashMap::new(),
            events_seen: 0,
            served: 0,
            ahead: Vec::new(),
            missing: Vec::new(),
            differences: Vec::new(),
            registered_before,
        }
    }

    pub(crate) fn node(&mut self) -> &mut Node {
        &mut self.world.sites[0].node
    }

    /// Plays all of it; one line for each difference.
    pub(crate) fn run(mut self, recording: &Recording) -> Vec<String> {
        if self.conns.is_none() {
            self.open_case(recording);
        }
        for (place, moment) in recording.moments.iter().enumerate() {
            if self.takes_part(&moment.conn) {
                self.world.advance_to(ms(moment.at_ms).max(self.world.at()));
                self.serve_sentinels();
                self.play(recording, place, moment);
                self.serve_sentinels();
            }
        }
        self.finish();
        let who = format!("{} {}", recording.name, self.app);
        self.differences
            .iter()
            .map(|line| format!("{who}: {line}"))
            .collect()
    }

    pub(crate) fn takes_part(&self, (link, number): &Conn) -> bool {
        self.conns.is_none_or(|conns| {
            conns
                .iter()
                .any(|(known, numbers)| known == link && numbers.contains(number))
        })
    }

    pub(crate) fn side(&self, (link, _): &Conn, recording: &Recording, conn: &Conn) -> Side {
        let server = link.rsplit('-').next() == Some(&self.app);
        let dials = recording
            .moments
            .iter()
            .find_map(|moment| match &moment.what {
                What::Said {
                    by: Side::Client,
                    bytes,
                    ..
                } if moment.conn == *conn => {
                    decode(bytes).map(|message| message.from.as_str() == self.app)
                }
                _ => None,
            });
        if server && dials != Some(true) {
            Side::Server
        } else {
            Side::Client
        }
    }

    fn play(&mut self, recording: &Recording, place: usize, moment: &Moment) {
        let own = self.side(&moment.conn, recording, &moment.conn);
        match &moment.what {
            What::Connect => self.connect(recording, &moment.conn, own),
            What::End { by } => {
                if *by != own
                    && let Some(open) = self.wires.get(&moment.conn)
                {
                    let (wire, end) = (open.hand.wire, 1 - open.hand.end);
                    self.world.notice(wire, end, None);
                    self.world.run();
                }
                self.do_ahead(recording, place, &moment.conn);
            }
            What::Said {
                by,
                bytes,
                forwarded,
            } => {
                if *by == own {
                    self.expect(place, &moment.conn, bytes);
                } else if *forwarded {
                    self.feed(&moment.conn, bytes);
                }
            }
        }
    }

    /// The peers of a hand-made case connect, and register if they had.
    fn open_case(&mut self, recording: &Recording) {
        for moment in &recording.moments {
            if self.wires.contains_key(&moment.conn) {
                continue;
            }
            let name = if moment.conn.1 == 1 { "raw" } else { "cli" };
            let mut hand = self.world.hand(0, name);
            hand.instance = None;
            hand.max_message_bytes = None;
            if self.registered_before {
                hand.register(&mut self.world);
                self.world.run();
                hand.ack_last_response(&mut self.world);
                self.world.run();
            }
            let matched = if self.registered_before {
                vec![0, 1]
            } else {
                Vec::new()
            };
            self.wires
                .insert(moment.conn.clone(), Open { hand, matched });
        }
    }

    fn connect(&mut self, recording: &Recording, conn: &Conn, own: Side) {
        let first = recording
            .moments
            .iter()
            .find_map(|moment| match &moment.what {
                What::Said {
                    by: Side::Client,
                    bytes,
                    ..
                } if moment.conn == *conn => decode(bytes),
                _ => None,
            });
        let Some(register) = first else {
            return;
        };
        let hand = if own == Side::Server {
            self.world.hand(0, register.from.as_str())
        } else {
            let target = Some(register.to.clone());
            let Connect::Dial(dial) = self.node().connect(target, None, None) else {
                self.differences
                    .push(format!("{} does not dial", show(conn)));
                return;
            };
            self.world.dialled_for(0, dial, register.to.as_str())
        };
        self.wires.insert(
            conn.clone(),
            Open {
                hand,
                matched: Vec::new(),
            },
        );
        self.world.run();
    }

    /// What the app was sent.
    fn feed(&mut self, conn: &Conn, bytes: &Bytes) {
        let bytes = self.translate(bytes);
        let Some(open) = self.wires.get(conn) else {
            return;
        };
        let hand = open.hand.clone();
        if !hand.is_open(&self.world) {
            return;
        }
        if let Some(message) = decode(&bytes) {
            self.label(&message);
        }
        hand.say_bytes(&mut self.world, bytes.clone());
        self.world.run();
        self.learn(decode(&bytes));
    }

    /// Remembers what the node calls the things that the app's peer asked for.
    fn learn(&mut self, message: Option<Message>) {
        let new: Vec<Event> = self.world.sites[0].events[self.events_seen..]
            .iter()
            .map(|(_, event)| event.clone())
            .collect();
        self.events_seen += new.len();
        for event in new {
            match event {
                Event::Request(requested) => {
                    self.running.insert(requested.id.clone(), requested.running);
                }
                Event::Subscribed { subscription, .. } => {
                    if let Some(message) = &message {
                        self.subscriptions.insert(message.id.clone(), subscription);
                    }
                }
                _ => {}
            }
        }
    }

    /// What the app sent: the node sends it too, of itself or because it is told to.
    fn expect(&mut self, place: usize, conn: &Conn, bytes: &Bytes) {
        let Some(recorded) = decode(bytes) else {
            self.differences.push(format!("{} unreadable", show(conn)));
            return;
        };
        if self.matches(conn, &recorded) {
            return;
        }
        if !self.ahead.contains(&place)
            && !self.ids.contains_key(recorded.id.to_smol_str().as_str())
        {
            self.act(&recorded);
            self.world.run();
            self.learn(None);
            if self.matches(conn, &recorded) {
                return;
            }
        }
        if is_beat(&recorded) {
            for _ in 0..JITTER_MS {
                self.world.advance(ms(1));
                if self.matches(conn, &recorded) {
                    return;
                }
            }
        }
        self.missing.push((conn.clone(), recorded));
    }

    /// Whether the node has sent this recorded message on this connection.
    fn matches(&mut self, conn: &Conn, recorded: &Message) -> bool {
        let wanted = shape(&self.translated(recorded));
        let Some(open) = self.wires.get_mut(conn) else {
            return false;
        };
        let found = self
            .world
            .crossings_since(0, open.hand.wire, 1 - open.hand.end)
            .enumerate()
            .filter(|(place, _)| !open.matched.contains(place))
            .find_map(|(place, crossing)| {
                let message = crossing.message();
                (shape(message) == wanted).then(|| (place, message.clone()))
            });
        let Some((place, message)) = found else {
            return false;
        };
        if open.matched.iter().any(|earlier| *earlier > place) {
            let line = format!("{} out of order: {}", show(conn), self.line(&message));
            self.differences.push(line);
        }
        if let Some(open) = self.wires.get_mut(conn) {
            open.matched.push(place);
        }
        let (theirs, ours) = (recorded.id.to_smol_str(), message.id.to_smol_str());
        self.ids.insert(theirs.to_string(), ours.to_string());
        self.label(&message);
        true
    }

    /// Sentinels are ours: the peer of the recording answers them as any reference peer would.
    fn serve_sentinels(&mut self) {
        loop {
            let next = self.world.log[self.served..].iter().position(|crossing| {
                crossing
                    .decoded
                    .as_ref()
                    .is_some_and(|decoded| match decoded {
                        Decoded::Message(message) => {
                            message.from.as_str() == self.app && is_sentinel(message, &self.ids)
                        }
                        Decoded::Malformed(_) | Decoded::Unknown { .. } => false,
                    })
            });
            let Some(next) = next else {
                return;
            };
            self.served += next + 1;
            let crossing = self.world.log[self.served - 1].clone();
            let message = crossing.message().clone();
            let hand = self
                .wires
                .values()
                .find(|open| open.hand.wire == crossing.wire);
            let Some(hand) = hand
                .map(|open| open.hand.clone())
                .filter(|hand| hand.is_open(&self.world))
            else {
                continue;
            };
            if self.streams_recorded(&message) {
                continue;
            }
            hand.ack(&mut self.world, &message.id);
            let response = nacp_proto::Response::ok(message.id, Payload::empty());
            let answer = hand.say(&mut self.world, Body::Response(response));
            self.labels
                .insert(answer, "the answer (sentinel)".to_owned());
            self.world.run();
        }
    }

    /// Whether a subscribe or unsubscribe of the node was one that it was told to send.
    fn streams_recorded(&self, message: &Message) -> bool {
        match &message.body {
            Body::Subscribe { target_sub_name } => !target_sub_name.starts_with("nacp:sentinel"),
            Body::Unsubscribe { target_sub_id } => self
                .ids
                .values()
                .any(|known| *known == target_sub_id.to_smol_str().as_str()),
            _ => true,
        }
    }

    fn finish(&mut self) {
        self.world.advance(ms(JITTER_MS));
        self.serve_sentinels();
        for (conn, recorded) in std::mem::take(&mut self.missing) {
            if !self.matches(&conn, &recorded) {
                let message = self.translated(&recorded);
                let line = self.line(&message);
                self.differences.push(format!("{} - {line}", show(&conn)));
            }
        }
        let mut conns: Vec<_> = self.wires.keys().cloned().collect();
        conns.sort();
        for conn in conns {
            let open = &self.wires[&conn];
            let extra: Vec<_> = self
                .world
                .crossings_since(0, open.hand.wire, 1 - open.hand.end)
                .enumerate()
                .filter(|(place, _)| !open.matched.contains(place))
                .map(|(_, crossing)| crossing.message().clone())
                .collect();
            for message in extra {
                self.label(&message);
                let line = self.line(&message);
                self.differences.push(format!("{} + {line}", show(&conn)));
            }
        }
    }

    /// The bytes with the node's ids in the place of the app's.
    fn translate(&self, bytes: &Bytes) -> Bytes {
        let mut translated = bytes.to_vec();
        for (theirs, ours) in &self.ids {
            if theirs.len() == ours.len() && theirs != ours {
                replace(&mut translated, theirs.as_bytes(), ours.as_bytes());
            }
        }
        translated.into()
    }

    pub(crate) fn translated(&self, recorded: &Message) -> Message {
        let bytes = self.translate(&recorded.encode().to_bytes());
        decode(&bytes).unwrap()
    }

    fn label(&mut self, message: &Message) {
        let line = self.line(message);
        self.labels.insert(message.id.clone(), line);
    }

    /// A message in a few words.
    fn line(&self, message: &Message) -> String {
        let of = |id: &MessageId| {
            let known = self.labels.get(id).map(String::as_str);
            known.unwrap_or("something unknown").to_owned()
        };
        match &message.body {
            Body::Register(_) => "register".to_owned(),
            Body::Unregister => "unregister".to_owned(),
            Body::Subscribe { target_sub_name } if target_sub_name.starts_with("nacp:sentinel") => {
                "subscribe (sentinel)".to_owned()
            }
            Body::Subscribe { target_sub_name } => format!("subscribe {target_sub_name}"),
            Body::Unsubscribe { target_sub_id } => format!("end of {}", of(target_sub_id)),
            Body::Request { target, .. } => {
                format!("request {}", target.as_deref().unwrap_or("without target"))
            }
            Body::Response(response) => match &response.outcome {
                Outcome::Ok => format!("answer to {}", of(&response.parent_id)),
                Outcome::NotOk { why } => {
                    format!(
                        "{} to {}",
                        why.as_deref().unwrap_or("no"),
                        of(&response.parent_id)
                    )
                }
            },
            Body::Signal { signal, .. } => format!("signal {}", signal.kind()),
            Body::Notify { parent_id, .. } => format!("notify for {}", of(parent_id)),
            Body::Ack { parent_id } => format!("ack of {}", of(parent_id)),
        }
    }
}
