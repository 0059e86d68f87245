//! A bad line between two peers.

mod faults;
mod pipe;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nacp::transport::{Address, resolve};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::args::ProxyArgs;
use crate::dial::CONNECT_TIMEOUT;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::keys::Keys;
use crate::output::Output;

use faults::Faults;
use pipe::{Ended, Line};

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Record {
    Listening {
        address: String,
        target: String,
    },
    Opened {
        connection: u64,
        peer: String,
    },
    Closed {
        connection: u64,
        why: &'static str,
        sent: u64,
        received: u64,
    },
}

/// Before the next connection is accepted, when the last could not be for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// News of connections that are not read yet.
const NEWS: usize = 256;

pub(crate) async fn run(
    args: ProxyArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let listener = listen(&args.listen).await?;
    let local = listener
        .local_addr()
        .map_err(|error| Failure::local("listen", error.to_string()))?;
    output.human(Address::from(local))?;
    let listening = Record::Listening {
        address: Address::from(local).to_string(),
        target: args.target.to_string(),
    };
    output.record("proxy-event", listening)?;
    let (faults, watched) = watch::channel(Faults::new(&args));
    let (sender, mut news) = mpsc::channel(NEWS);
    let accepting = accept_all(listener, Arc::new(args), watched, sender);
    let mut accepting = std::pin::pin!(accepting);
    let mut keys = Keys::listen();
    if keys.is_some() {
        output
            .notes()
            .note("keys: c cut, b black hole, d delay, s slow");
    }
    loop {
        tokio::select! {
            biased;
            () = interrupt.times(1) => return Err(Failure::interrupted("proxy").into()),
            Some(record) = news.recv() => tell(&record, output)?,
            key = next(&mut keys) => {
                let mut now = None;
                faults.send_modify(|faults| now = faults.press(key));
                if let Some(now) = now {
                    output.notes().note(now);
                }
            }
            () = &mut accepting => {}
        }
    }
}

async fn listen(address: &Address) -> Result<TcpListener, Failure> {
    let failure =
        |error: String| Failure::local("listen", format!("cannot listen on {address}: {error}"));
    TcpListener::bind(address.to_string())
        .await
        .map_err(|error| failure(error.to_string()))
}

async fn accept_all(
    listener: TcpListener,
    args: Arc<ProxyArgs>,
    faults: watch::Receiver<Faults>,
    news: mpsc::Sender<Record>,
) {
    let mut connection = 0;
    loop {
        // What goes wrong with one connection is no concern of the others.
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        connection += 1;
        let (args, faults, news) = (Arc::clone(&args), faults.clone(), news.clone());
        tokio::spawn(async move {
            carry(connection, stream, peer, &args, faults, &news).await;
        });
    }
}

async fn carry(
    connection: u64,
    near: TcpStream,
    peer: SocketAddr,
    args: &ProxyArgs,
    faults: watch::Receiver<Faults>,
    news: &mpsc::Sender<Record>,
) {
    let peer = peer.to_string();
    // Nobody listens any more when the program ends.
    let _ = news.send(Record::Opened { connection, peer }).await;
    let limit = args.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let dialled = timeout(limit, dial(&args.target)).await;
    let ended = match dialled.unwrap_or_else(|late| Err(late.into())) {
        Ok(far) => Line { near, far, faults }.carry(args).await,
        Err(_) => Ended::unreachable(),
    };
    let Ended {
        why,
        sent,
        received,
    } = ended;
    let closed = Record::Closed {
        connection,
        why,
        sent,
        received,
    };
    let _ = news.send(closed).await;
}

async fn dial(target: &Address) -> std::io::Result<TcpStream> {
    let addrs = resolve(target).await.map_err(std::io::Error::other)?;
    TcpStream::connect(&addrs[..]).await
}

fn tell(record: &Record, output: &mut Output) -> std::io::Result<()> {
    if output.is_human() {
        match record {
            Record::Listening { .. } => {}
            Record::Opened { connection, peer } => {
                output
                    .notes()
                    .note(format_args!("#{connection} opened by {peer}"));
            }
            Record::Closed {
                connection,
                why,
                sent,
                received,
            } => output.notes().note(format_args!(
                "#{connection} {why}; {sent} bytes there, {received} back"
            )),
        }
    }
    output.record("proxy-event", record)
}

async fn next(keys: &mut Option<Keys>) -> char {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
