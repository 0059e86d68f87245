use bytes::Bytes;
use nacp_link::{Connect, DialId, Lane, Origin, Token};
use nacp_proto::{
    AppId, Body, Decl, Instance, Message, MessageId, Payload, PeerInfo, Register, Registered,
    Response, Session, Signal, Version,
};
use smol_str::SmolStr;

use super::{ACCEPTOR, DIALLER, End, Parcel, Wire, World, app, id, payload};

/// The test itself at one end of a wire, with full control over what it says.
#[derive(Debug, Clone)]
pub(crate) struct Hand {
    pub(crate) wire: usize,
    /// The hand's end.
    pub(crate) end: usize,
    /// Who the hand says that it is.
    pub(crate) app: AppId,
    /// The node at the other end.
    pub(crate) node: AppId,
    /// Its instance; `None` speaks like the reference.
    pub(crate) instance: Option<Instance>,
    pub(crate) holds: Vec<Session>,
    pub(crate) is_gateway: bool,
    pub(crate) max_message_bytes: Option<u64>,
}

/// What a hand does by itself with what it hears.
pub(super) fn handle(world: &mut World, wire: usize, end: usize, entry: usize) {
    let crossing = &world.log[entry];
    let Some(decoded) = &crossing.decoded else {
        return;
    };
    let reliable = decoded
        .message_type()
        .is_some_and(|known| known.is_reliable());
    if reliable && world.wires[wire].ways[end].intake == super::Intake::Open && world.acks(wire) {
        let envelope = decoded.envelope();
        let parent_id = envelope.id.clone();
        let (from, to) = (envelope.to.clone(), envelope.from.clone());
        let ack = Message::new(world.fresh_id(), from, to, Body::Ack { parent_id });
        world.put(wire, end, Lane::Control, ack.encode().to_bytes());
    }
}

impl World {
    /// Connects to a node as a stranger; nothing is said yet.
    pub(crate) fn hand(&mut self, site: usize, name: &str) -> Hand {
        let wire = self.wires.len();
        self.wires.push(Wire::new());
        self.join(wire, ACCEPTOR, site, Origin::Accepted);
        self.hand_at(wire, DIALLER, site, name)
    }

    /// Connects to a node and registers, natively; the node must agree at once.
    pub(crate) fn native(&mut self, site: usize, name: &str) -> Hand {
        let hand = self.hand(site, name);
        hand.register(self);
        self.run();
        assert!(hand.registered(self).is_some(), "{:?}", hand.heard(self));
        hand.ack_last_response(self);
        self.run();
        hand
    }

    /// Connects to a node and registers as the reference does; the node must agree at once.
    pub(crate) fn foreign(&mut self, site: usize, name: &str) -> Hand {
        let mut hand = self.hand(site, name);
        hand.instance = None;
        hand.max_message_bytes = None;
        hand.register(self);
        self.run();
        assert!(hand.registered(self).is_some(), "{:?}", hand.heard(self));
        hand.ack_last_response(self);
        self.run();
        hand
    }

    /// A node dials the hand; nothing is answered yet.
    pub(crate) fn dialled_by(&mut self, site: usize, name: &str) -> (Hand, Token) {
        self.dialled(site, Some(app(name)), name)
    }

    /// A node dials whoever answers, and the hand does.
    pub(crate) fn dialled_unnamed(&mut self, site: usize, name: &str) -> (Hand, Token) {
        self.dialled(site, None, name)
    }

    fn dialled(&mut self, site: usize, target: Option<AppId>, name: &str) -> (Hand, Token) {
        let token = self.token();
        let connect = self.node(site).connect(target, None, Some(token));
        let Connect::Dial(dial) = connect else {
            panic!("expected a dial, got {connect:?}");
        };
        (self.dialled_for(site, dial, name), token)
    }

    /// The connection of an attempt leads to the hand.
    pub(crate) fn dialled_for(&mut self, site: usize, dial: DialId, name: &str) -> Hand {
        let wire = self.wires.len();
        self.wires.push(Wire::new());
        self.join(wire, DIALLER, site, Origin::Dialled(dial));
        self.hand_at(wire, ACCEPTOR, site, name)
    }

    fn hand_at(&mut self, wire: usize, end: usize, site: usize, name: &str) -> Hand {
        self.wires[wire].ends[end] = End::Hand;
        let mut instance = [0; 16];
        let bytes = name.as_bytes();
        let len = bytes.len().min(16);
        instance[..len].copy_from_slice(&bytes[..len]);
        Hand {
            wire,
            end,
            app: app(name),
            node: self.app_of(site),
            instance: Some(Instance(instance)),
            holds: Vec::new(),
            is_gateway: false,
            max_message_bytes: Some(2 << 30),
        }
    }

    /// An id that nobody has used.
    pub(crate) fn fresh_id(&mut self) -> MessageId {
        let token = self.token();
        id(&format!("hand-{}", token.0))
    }

    fn acks(&self, wire: usize) -> bool {
        self.wires[wire].acks
    }
}

impl Hand {
    /// Sends a message of its own to the node.
    pub(crate) fn say(&self, world: &mut World, body: Body) -> MessageId {
        let fresh = world.fresh_id();
        self.say_with(world, fresh.clone(), body);
        fresh
    }

    pub(crate) fn say_with(&self, world: &mut World, id: MessageId, body: Body) {
        self.say_as(world, id, &self.app, &self.node, body);
    }

    pub(crate) fn say_as(
        &self,
        world: &mut World,
        id: MessageId,
        from: &AppId,
        to: &AppId,
        body: Body,
    ) {
        let message = Message::new(id, from.clone(), to.clone(), body);
        self.say_bytes(world, message.encode().to_bytes());
    }

    /// Sends whatever this JSON is as CBOR, with the envelope's keys filled in.
    pub(crate) fn say_json(&self, world: &mut World, mut json: serde_json::Value) {
        let fresh = world.fresh_id().to_smol_str();
        let map = json.as_object_mut().unwrap();
        for (key, value) in [
            ("id", fresh.as_str()),
            ("from", self.app.as_str()),
            ("to", self.node.as_str()),
        ] {
            map.entry(key).or_insert_with(|| value.into());
        }
        self.say_bytes(world, Payload::new(&json).unwrap().into_bytes());
    }

    pub(crate) fn say_bytes(&self, world: &mut World, bytes: Bytes) {
        world.put(self.wire, self.end, Lane::Bulk, bytes);
    }

    /// Whether the hand ACKs every reliable message that it hears from now on.
    pub(crate) fn ack_all(&self, world: &mut World, acks: bool) {
        world.wires[self.wire].acks = acks;
    }

    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo {
            is_gateway: self.is_gateway,
            decl: Decl::default(),
            instance: self.instance,
            max_message_bytes: self.max_message_bytes,
        }
    }

    pub(crate) fn register_body(&self) -> Body {
        Body::Register(Box::new(Register {
            version: Version::CURRENT,
            info: self.info(),
            holds: self.holds.clone(),
            auth: None,
        }))
    }

    pub(crate) fn register(&self, world: &mut World) -> MessageId {
        let body = self.register_body();
        self.say(world, body)
    }

    /// Answers the last register of the node well; `session` and `resumed` as given.
    pub(crate) fn admit(
        &self,
        world: &mut World,
        session: Option<Session>,
        resumed: Option<bool>,
    ) -> MessageId {
        let parent_id = self.last_id(world, "register");
        self.ack(world, &parent_id);
        let registered = Registered {
            info: self.info(),
            session,
            resumed,
        };
        let response = Response::ok(parent_id, registered.to_payload());
        self.say(world, Body::Response(response))
    }

    /// Answers the last register of the node with a no.
    pub(crate) fn refuse(&self, world: &mut World, why: &str) {
        let parent_id = self.last_id(world, "register");
        self.ack(world, &parent_id);
        self.say(world, Body::Response(Response::not_ok(parent_id, why)));
    }

    pub(crate) fn ack(&self, world: &mut World, parent_id: &MessageId) {
        let parent_id = parent_id.clone();
        self.say(world, Body::Ack { parent_id });
    }

    /// ACKs the last message with this line.
    pub(crate) fn ack_line(&self, world: &mut World, line: &str) {
        let parent_id = self.last_id(world, line);
        self.ack(world, &parent_id);
    }

    pub(crate) fn ack_last_response(&self, world: &mut World) {
        self.ack_line(world, "answer register");
    }

    /// Answers the last message with this line well, with a text.
    pub(crate) fn respond(&self, world: &mut World, line: &str, text: &str) -> MessageId {
        let parent_id = self.last_id(world, line);
        self.say(
            world,
            Body::Response(Response::ok(parent_id, payload(text))),
        )
    }

    /// Answers the last beat.
    pub(crate) fn answer_beat(&self, world: &mut World) {
        let parent_id = self.last_id(world, "beat");
        let yes = Payload::new(&true).unwrap();
        self.say(world, Body::Response(Response::ok(parent_id, yes)));
    }

    pub(crate) fn signal(&self, world: &mut World, label: &str) -> MessageId {
        let signal = Signal::Normal(payload(label));
        let parent_id = id("some-run");
        self.say(world, Body::Signal { parent_id, signal })
    }

    pub(crate) fn subscribe(&self, world: &mut World, pattern: &str) -> MessageId {
        let target_sub_name = SmolStr::new(pattern);
        self.say(world, Body::Subscribe { target_sub_name })
    }

    /// A hit of the node's subscription.
    pub(crate) fn notify(&self, world: &mut World, of: &MessageId, pattern: &str, label: &str) {
        let name = SmolStr::new(pattern);
        self.say(
            world,
            Body::Notify {
                parent_id: of.clone(),
                target_sub_name: name.clone(),
                hit_sub_name: name,
                payload: payload(label),
                seq: None,
            },
        );
    }

    /// The hand closes its end; the node is told.
    pub(crate) fn hang_up(&self, world: &mut World) {
        world.wires[self.wire].gone[self.end] = true;
        world.dispatch(self.wire, self.end, Parcel::End { fault: None });
    }

    /// Whether the wire still stands at the hand's end.
    pub(crate) fn is_open(&self, world: &World) -> bool {
        !world.wires[self.wire].gone[self.end]
    }

    /// The lines of everything that the node has said.
    pub(crate) fn heard<'a>(&self, world: &'a World) -> Vec<&'a str> {
        world.said(self.wire, 1 - self.end)
    }

    pub(crate) fn heard_since<'a>(&self, world: &'a World, mark: usize) -> Vec<&'a str> {
        world.said_since(mark, self.wire, 1 - self.end)
    }

    /// The last message of the node with this line.
    pub(crate) fn last<'a>(&self, world: &'a World, line: &str) -> &'a Message {
        world
            .crossings_since(0, self.wire, 1 - self.end)
            .filter(|crossing| crossing.line == line)
            .last()
            .unwrap_or_else(|| panic!("no `{line}` in {:?}", self.heard(world)))
            .message()
    }

    pub(crate) fn last_id(&self, world: &World, line: &str) -> MessageId {
        self.last(world, line).id.clone()
    }

    /// The node's last good answer to a register of the hand.
    pub(crate) fn registered(&self, world: &World) -> Option<Registered> {
        world
            .crossings_since(0, self.wire, 1 - self.end)
            .filter(|crossing| crossing.line == "answer register")
            .last()
            .map(|crossing| match &crossing.message().body {
                Body::Response(response) => Registered::from_payload(&response.payload).unwrap(),
                other => panic!("not a response: {other:?}"),
            })
    }

    /// The session of the hand's bind.
    pub(crate) fn session(&self, world: &World) -> Session {
        self.registered(world).unwrap().session.unwrap()
    }
}
