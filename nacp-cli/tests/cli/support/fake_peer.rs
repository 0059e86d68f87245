//! A peer that does what a test says, message by message.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use bytes::BufMut;
use nacp::proto::{
    AppId, Body, ChunkSize, Chunker, Decoded, FrameDecoder, Message, MessageId, MsgId, Outcome,
    Payload, PeerInfo, ReassemblyLimits, Registered, Response,
};

/// The accepting side of one connection.
#[derive(Debug)]
pub(crate) struct FakePeer {
    stream: TcpStream,
    decoder: FrameDecoder,
    sent: u8,
    app: AppId,
    /// What it answers to a subscribe or an unsubscribe.
    subscriptions: Outcome,
}

impl FakePeer {
    pub(crate) fn new(stream: TcpStream, app: &str) -> Self {
        Self {
            stream,
            decoder: FrameDecoder::new(ReassemblyLimits::default()),
            sent: 0,
            app: AppId::new(app).unwrap(),
            subscriptions: Outcome::Ok,
        }
    }

    /// From now on refuses each subscribe.
    pub(crate) fn refuse_subscriptions(&mut self, why: &str) {
        let why = Some(why.into());
        self.subscriptions = Outcome::NotOk { why };
    }

    /// The next message; `None` when the other side has closed.
    pub(crate) fn recv(&mut self) -> Option<Message> {
        loop {
            if let Some(bytes) = self.decoder.poll_message(Instant::now()).unwrap() {
                let Decoded::Message(message) = Message::decode(&bytes).unwrap() else {
                    panic!("a message of ours is malformed");
                };
                return Some(message);
            }
            let mut buffer = [0; 4096];
            let read = self
                .stream
                .read(&mut buffer)
                .ok()
                .filter(|read| *read > 0)?;
            let mut rest = &buffer[..read];
            while !rest.is_empty() {
                let mut room = self.decoder.read_buf();
                let part = rest.len().min(room.remaining_mut());
                room.put_slice(&rest[..part]);
                rest = &rest[part..];
            }
        }
    }

    pub(crate) fn send(&mut self, to: &AppId, body: Body) {
        self.sent += 1;
        let id = MessageId::new(&format!("fake-{}", self.sent)).unwrap();
        let message = Message::new(id, self.app.clone(), to.clone(), body);
        let chunker = Chunker::new(message.encode(), MsgId([self.sent; 16])).unwrap();
        for frame in chunker.frames(ChunkSize::MAX) {
            self.write(&frame.header.to_bytes());
            self.write(&frame.body.to_bytes());
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // The other side may have seen enough already.
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn ack(&mut self, message: &Message) {
        let parent_id = message.id.clone();
        self.send(&message.from, Body::Ack { parent_id });
    }

    pub(crate) fn answer(&mut self, message: &Message, outcome: Outcome, payload: Payload) {
        let kind = if let Body::Request { kind, .. } = &message.body {
            Some(*kind)
        } else {
            None
        };
        let response = Response {
            outcome,
            kind,
            ..Response::ok(message.id.clone(), payload)
        };
        self.send(&message.from, Body::Response(response));
    }

    /// Refuses the register that comes first, and reads on until the other side closes.
    pub(crate) fn refuse(mut self, why: &str) {
        if let Some(register) = self.recv() {
            self.ack(&register);
            let why = Some(why.into());
            self.answer(&register, Outcome::NotOk { why }, Payload::empty());
        }
        while self.recv().is_some() {}
    }

    /// Accepts the register that comes first, as a peer of the reference would; what it came from.
    pub(crate) fn accept(&mut self) -> Option<AppId> {
        self.accept_as(Registered {
            info: PeerInfo::default(),
            session: None,
            resumed: None,
        })
    }

    /// Accepts the register that comes first with this answer; what it came from.
    pub(crate) fn accept_as(&mut self, registered: Registered) -> Option<AppId> {
        let register = self.recv()?;
        self.ack(&register);
        self.answer(&register, Outcome::Ok, registered.to_payload());
        Some(register.from)
    }

    /// Goes on as a well-behaved peer, but that `treat` is asked first about each request; it
    /// answers `None` to leave the request unanswered.
    pub(crate) fn serve(mut self, treat: impl Fn(&str) -> Option<(Outcome, Payload)>) {
        while let Some(message) = self.recv() {
            match &message.body {
                Body::Ack { .. } | Body::Notify { .. } => {}
                Body::Request { target, .. } => {
                    self.ack(&message);
                    if let Some((outcome, payload)) = treat(target.as_deref().unwrap_or_default()) {
                        self.answer(&message, outcome, payload);
                    }
                }
                Body::Unregister => {
                    self.ack(&message);
                    self.answer(&message, Outcome::Ok, Payload::empty());
                    return;
                }
                Body::Subscribe { .. } | Body::Unsubscribe { .. } => {
                    self.ack(&message);
                    let outcome = self.subscriptions.clone();
                    self.answer(&message, outcome, Payload::empty());
                }
                Body::Register(_) | Body::Response(_) | Body::Signal { .. } => self.ack(&message),
            }
        }
    }
}
