//! The same without the protocol: what any design can reach at most.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

pub(crate) type Codec = Framed<TcpStream, LengthDelimitedCodec>;

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

async fn dial(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// An echo, one message and one flush at a time.
pub(crate) async fn serve_codec() -> SocketAddr {
    let (listener, addr) = listen().await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut framed = Codec::new(stream, LengthDelimitedCodec::new());
        while let Some(Ok(message)) = framed.next().await {
            if framed.send(message.freeze()).await.is_err() {
                break;
            }
        }
    });
    addr
}

pub(crate) async fn dial_codec(addr: SocketAddr) -> Codec {
    Codec::new(dial(addr).await, LengthDelimitedCodec::new())
}

pub(crate) async fn echo_codec(codec: &mut Codec) {
    codec.send(Bytes::from_static(&[7; 64])).await.unwrap();
    codec.next().await.unwrap().unwrap();
}

/// A frame is its number and 64 bytes.
const FRAME: usize = 8 + 64;

/// Answers every frame that a read brought in one write.
pub(crate) async fn serve_by_hand() -> SocketAddr {
    let (listener, addr) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut buffer = BytesMut::with_capacity(64 << 10);
        while let Ok(1..) = stream.read_buf(&mut buffer).await {
            let whole = buffer.len() / FRAME * FRAME;
            let answers = buffer.split_to(whole);
            if stream.write_all(&answers).await.is_err() {
                break;
            }
            buffer.reserve(64 << 10);
        }
    });
    addr
}

/// Calls by number: a batching writer task, a reader task that wakes whoever waits.
#[derive(Default)]
pub(crate) struct Calls {
    shared: Mutex<Shared>,
    wake: Notify,
}

#[derive(Default)]
struct Shared {
    next: u64,
    out: BytesMut,
    waiting: HashMap<u64, oneshot::Sender<[u8; 64]>>,
}

impl Calls {
    pub(crate) async fn call(&self, body: [u8; 64]) -> [u8; 64] {
        let answer = {
            let (sender, receiver) = oneshot::channel();
            let mut shared = self.shared.lock().unwrap();
            shared.next += 1;
            let number = shared.next;
            shared.waiting.insert(number, sender);
            shared.out.put_u64(number);
            shared.out.put_slice(&body);
            receiver
        };
        self.wake.notify_one();
        answer.await.unwrap()
    }
}

pub(crate) async fn dial_by_hand(addr: SocketAddr) -> Arc<Calls> {
    let (mut reading, mut writing) = dial(addr).await.into_split();
    let calls = Arc::new(Calls::default());
    let shared = Arc::clone(&calls);
    tokio::spawn(async move {
        loop {
            shared.wake.notified().await;
            let batch = std::mem::take(&mut shared.shared.lock().unwrap().out);
            if writing.write_all(&batch).await.is_err() {
                break;
            }
        }
    });
    let shared = Arc::clone(&calls);
    tokio::spawn(async move {
        let mut buffer = BytesMut::with_capacity(64 << 10);
        while let Ok(1..) = reading.read_buf(&mut buffer).await {
            let mut settled = Vec::with_capacity(buffer.len() / FRAME);
            {
                let mut shared = shared.shared.lock().unwrap();
                while buffer.len() >= FRAME {
                    let number = buffer.get_u64();
                    let mut body = [0; 64];
                    buffer.copy_to_slice(&mut body);
                    settled.extend(shared.waiting.remove(&number).map(|sender| (sender, body)));
                }
            }
            for (sender, body) in settled {
                // The caller may have gone.
                let _ = sender.send(body);
            }
            buffer.reserve(64 << 10);
        }
    });
    calls
}
