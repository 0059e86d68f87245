//! What the tests of this crate share.

use std::time::Duration;

use bytes::Bytes;
use nacp_proto::{
    AppId, Body, ChunkSize, Chunker, Decoded, Encoded, Message, MessageId, MsgId, Payload,
    RequestKind,
};
use nacp_transport_tcp::{
    Accepted, Address, Connection, Fault, Inbound, Listener, Options, Receiver, Sender, WriterTask,
    connect,
};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything that is waited for in real time.
const DEADLINE: Duration = Duration::from_secs(20);

/// One end of a connection with its writer task running.
pub(crate) struct End {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// What the writer task has told last.
    pub(crate) accepted: watch::Receiver<Accepted>,
    pub(crate) writer: JoinHandle<Result<(), Fault>>,
}

impl End {
    pub(crate) fn new(connection: Connection) -> Self {
        let (sender, receiver, writer) = connection.split();
        let (accepted, writer) = spawn(writer);
        Self {
            sender,
            receiver,
            accepted,
            writer,
        }
    }

    pub(crate) fn over(stream: DuplexStream, options: &Options) -> Self {
        Self::new(Connection::from_io(stream, options))
    }

    pub(crate) fn send(&self, message: &Bytes) {
        self.queue(message);
        self.sender.flush();
    }

    pub(crate) fn queue(&self, message: &Bytes) {
        self.sender
            .queue(nacp_transport_tcp::Lane::Bulk, message.clone().into())
            .unwrap();
    }

    pub(crate) async fn recv(&mut self) -> Option<Vec<Inbound>> {
        self.try_recv().await.unwrap()
    }

    /// The next messages; `None` at the end.
    pub(crate) async fn try_recv(&mut self) -> Result<Option<Vec<Inbound>>, Fault> {
        recv(&mut self.receiver).await
    }

    /// The next `count` messages as bytes.
    pub(crate) async fn recv_many(&mut self, count: usize) -> Vec<Bytes> {
        let mut came = Vec::new();
        while came.len() < count {
            let batch = self.recv().await.expect("more messages");
            came.extend(batch.into_iter().map(|message| message.bytes));
        }
        came
    }

    pub(crate) async fn accepted_bulk(&mut self, count: u64) {
        let sender = self.sender.clone();
        let told = self.accepted.wait_for(|_| sender.accepted().bulk >= count);
        soon(told).await.unwrap();
    }
}

pub(crate) fn spawn(
    writer: WriterTask,
) -> (watch::Receiver<Accepted>, JoinHandle<Result<(), Fault>>) {
    let (tell, told) = watch::channel(Accepted::default());
    (
        told,
        tokio::spawn(writer.run(move |accepted| {
            let _ = tell.send(accepted);
        })),
    )
}

/// The next batch that has messages in it.
pub(crate) async fn recv(receiver: &mut Receiver) -> Result<Option<Vec<Inbound>>, Fault> {
    loop {
        match receiver.recv().await? {
            Some(batch) if batch.messages.is_empty() => {}
            Some(batch) => return Ok(Some(batch.messages.drain(..).collect())),
            None => return Ok(None),
        }
    }
}

/// Waits, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("it happens in time")
}

/// Two ends over TCP; the second has accepted.
pub(crate) async fn tcp_pair(options: &Options) -> (End, End) {
    let listener = listen("127.0.0.1:0", options).await;
    let address = listener.local_addr().into();
    let (dialled, accepted) =
        soon(async { tokio::join!(connect(&address, options), listener.accept()) }).await;
    (End::new(dialled.unwrap()), End::new(accepted))
}

pub(crate) async fn listen(address: &str, options: &Options) -> Listener {
    Listener::bind(&Address::to_listen_on(address).unwrap(), options.clone())
        .await
        .unwrap()
}

/// Two ends in memory, with so much room in between.
pub(crate) fn memory_pair(room: usize, options: &Options) -> (End, End) {
    let (near, far) = duplex(room);
    (End::over(near, options), End::over(far, options))
}

/// A message that is like no other of another number, with so many bytes of payload.
pub(crate) fn message(number: u64, payload_len: usize) -> Message {
    let mut payload = (number.wrapping_mul(31))
        .to_le_bytes()
        .repeat(payload_len / 8 + 1);
    payload.truncate(payload_len);
    Message {
        id: MessageId::sequenced(number, number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        from: AppId::new("near").unwrap(),
        to: AppId::new("far").unwrap(),
        time: None,
        body: Body::Request {
            kind: RequestKind::Ability,
            target: Some("sink".into()),
            payload: Payload::byte_string(payload),
        },
    }
}

pub(crate) fn encoded(number: u64, payload_len: usize) -> Bytes {
    message(number, payload_len).encode().to_bytes()
}

pub(crate) fn ack(number: u64) -> Message {
    Message {
        body: Body::Ack {
            parent_id: MessageId::sequenced(number, 0),
        },
        ..message(number, 0)
    }
}

/// The number that a message was made with.
pub(crate) fn number_of(inbound: &Inbound) -> u64 {
    match &inbound.decoded {
        Decoded::Message(message) => message.id.sequence().unwrap(),
        other @ (Decoded::Malformed(_) | Decoded::Unknown { .. }) => {
            panic!("not a good message: {other:?}")
        }
    }
}

/// Whole frames of one message, as they go over the wire.
pub(crate) fn framed(message: impl Into<Encoded>, chunk_size: u32) -> Vec<u8> {
    let chunker = Chunker::new(message.into(), MsgId([7; 16])).unwrap();
    let mut bytes = Vec::new();
    for frame in chunker.frames(ChunkSize::new(chunk_size).unwrap()) {
        bytes.extend_from_slice(&frame.header.to_bytes());
        bytes.extend_from_slice(&frame.body.to_bytes());
    }
    bytes
}
