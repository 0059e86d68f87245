//! The test itself at one end of a connection, with full control over what it says.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use nacp::proto::{
    Body, Instance, Message, MessageId, Outcome, Payload, PeerInfo, Register, Registered, Response,
    Session, Signal, Version,
};
use nacp::transport::{Close, Connection, Lane, Options, Receiver, Sender};
use nacp::{AppId, RequestKind};

use crate::support::{app, within};

/// A peer that says and does nothing by itself.
pub(crate) struct Hand {
    /// Who it says that it is.
    pub(crate) app: AppId,
    /// The node at the other end.
    pub(crate) node: AppId,
    pub(crate) info: PeerInfo,
    pub(crate) sender: Sender,
    receiver: Receiver,
    heard: VecDeque<Message>,
}

/// Ids that no other message of this process has.
pub(crate) fn fresh_id() -> MessageId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    MessageId::new(&format!("by-hand-{next}")).unwrap()
}

pub(crate) fn id(text: &str) -> MessageId {
    MessageId::new(text).unwrap()
}

impl Hand {
    pub(crate) fn new(name: &str, node: &str, connection: Connection) -> Self {
        let (sender, mut receiver, writer) = connection.split();
        receiver.registered();
        tokio::spawn(writer.run(|_| ()));
        let info = PeerInfo {
            instance: Some(Instance([7; 16])),
            max_message_bytes: Some(2 << 30),
            ..PeerInfo::default()
        };
        Self {
            app: app(name),
            node: app(node),
            info,
            sender,
            receiver,
            heard: VecDeque::new(),
        }
    }

    pub(crate) fn over(
        name: &str,
        node: &str,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::new(name, node, Connection::from_io(stream, &Options::default()))
    }

    /// Another start of the same app.
    pub(crate) fn instance(mut self, byte: u8) -> Self {
        self.info.instance = Some(Instance([byte; 16]));
        self
    }

    pub(crate) fn gateway(mut self) -> Self {
        self.info.is_gateway = true;
        self
    }

    /// A message to the node.
    pub(crate) fn message(&self, id: MessageId, body: Body) -> Message {
        Message::new(id, self.app.clone(), self.node.clone(), body)
    }

    /// Says all of it in one write, in this order.
    pub(crate) fn say(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            // The node may have closed.
            let _ = self.sender.queue(Lane::Bulk, message.encode());
        }
        self.sender.flush();
    }

    /// Says one thing under a fresh id.
    pub(crate) fn tell(&self, body: Body) -> MessageId {
        let id = fresh_id();
        self.say([self.message(id.clone(), body)]);
        id
    }

    pub(crate) fn ack(&self, parent_id: MessageId) {
        self.tell(Body::Ack { parent_id });
    }

    /// Acknowledges a message, and answers it.
    pub(crate) fn answer(&self, parent_id: &MessageId, response: Response) {
        self.say([
            self.message(fresh_id(), ack_of(parent_id)),
            self.message(fresh_id(), Body::Response(response)),
        ]);
    }

    /// The next message, without a deadline; `None` at the end.
    pub(crate) async fn listen(&mut self) -> Option<Message> {
        while self.heard.is_empty() {
            let batch = self.receiver.recv().await.ok()??;
            let messages = batch.messages.drain(..);
            self.heard
                .extend(messages.filter_map(|inbound| inbound.decoded.into_message()));
        }
        self.heard.pop_front()
    }

    /// The next message.
    pub(crate) async fn hear(&mut self) -> Message {
        within("a message", self.listen())
            .await
            .expect("the node closed")
    }

    /// The next message that `pick` takes; what comes before it is passed over.
    pub(crate) async fn hear_that<T>(&mut self, mut pick: impl FnMut(&Message) -> Option<T>) -> T {
        loop {
            if let Some(picked) = pick(&self.hear().await) {
                return picked;
            }
        }
    }

    /// The next response to this id, acknowledged.
    pub(crate) async fn answer_to(&mut self, id: &MessageId) -> Response {
        let (own, response) = self
            .hear_that(|message| {
                let response = response_to(message, id)?;
                Some((message.id.clone(), response.clone()))
            })
            .await;
        self.ack(own);
        response
    }

    /// Waits until the node has read and answered what was said until now.
    pub(crate) async fn is_answered(&mut self) -> bool {
        let beat = request(RequestKind::Ability, "NApp.heartbeat", Payload::empty());
        let beat = self.tell(beat);
        self.answer_to(&beat).await.outcome.is_ok()
    }

    /// Reads to the end of the connection; what came of it.
    pub(crate) async fn rest(&mut self) -> Vec<Message> {
        let mut rest = Vec::new();
        while let Some(message) = within("the end", self.listen()).await {
            rest.push(message);
        }
        rest
    }

    pub(crate) fn register_message(&self, id: MessageId, holds: &[Session]) -> Message {
        let register = Register {
            version: Version::CURRENT,
            info: self.info.clone(),
            holds: holds.to_vec(),
            auth: None,
        };
        self.message(id, Body::Register(Box::new(register)))
    }

    /// Registers, and acknowledges the answer; `Err` is `whyNotOk`.
    pub(crate) async fn register(&mut self, holds: &[Session]) -> Result<Registered, String> {
        let id = fresh_id();
        self.say([self.register_message(id.clone(), holds)]);
        self.registered(&id).await
    }

    /// The answer to a register.
    pub(crate) async fn registered(&mut self, id: &MessageId) -> Result<Registered, String> {
        let response = self.answer_to(id).await;
        match response.outcome {
            Outcome::Ok => Ok(Registered::from_payload(&response.payload).unwrap()),
            Outcome::NotOk { why } => Err(why.unwrap_or_default().into()),
        }
    }

    /// The register of a node that has dialled.
    pub(crate) async fn asked(&mut self) -> (MessageId, Register) {
        let (id, from, register) = self
            .hear_that(|message| {
                let Body::Register(register) = &message.body else {
                    return None;
                };
                Some((
                    message.id.clone(),
                    message.from.clone(),
                    (**register).clone(),
                ))
            })
            .await;
        self.node = from;
        (id, register)
    }

    /// The answer that lets a node in.
    pub(crate) fn admission(&self, register: &MessageId, resumed: bool, session: u8) -> Message {
        let registered = Registered {
            info: self.info.clone(),
            session: Some(Session([session; 16])),
            resumed: Some(resumed),
        };
        let response = Response::ok(register.clone(), registered.to_payload());
        self.message(fresh_id(), Body::Response(response))
    }

    /// Lets a node in that has dialled.
    pub(crate) async fn admit(&mut self, resumed: bool, session: u8) -> Register {
        let (id, register) = self.asked().await;
        self.say([
            self.message(fresh_id(), ack_of(&id)),
            self.admission(&id, resumed, session),
        ]);
        register
    }

    /// Ends the connection so that the node notices.
    pub(crate) fn cut(self) {
        self.sender.close(Close::Abort);
    }
}

/// The response to this id, if the message is it.
pub(crate) fn response_to<'a>(message: &'a Message, id: &MessageId) -> Option<&'a Response> {
    let Body::Response(response) = &message.body else {
        return None;
    };
    (response.parent_id == *id).then_some(response)
}

pub(crate) fn ack_of(parent_id: &MessageId) -> Body {
    Body::Ack {
        parent_id: parent_id.clone(),
    }
}

pub(crate) fn signal_to(event: &MessageId, value: u32) -> Body {
    Body::Signal {
        parent_id: event.clone(),
        signal: Signal::Normal(Payload::new(&value).unwrap()),
    }
}

pub(crate) fn request(kind: RequestKind, target: &str, payload: Payload) -> Body {
    Body::Request {
        kind,
        target: Some(target.into()),
        payload,
    }
}
