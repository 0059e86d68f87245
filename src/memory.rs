mod line;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use nacp_link::Trust;
use nacp_transport_tcp::Options;
use tokio::sync::mpsc;

use self::line::{Line, LineEnd, line};
use crate::{Channel, Listener, Transport, TransportError};

/// Connections inside one process, for tests: no sockets, so the clock of the runtime can be paused.
///
/// An address is any text. Clones share one set of listeners; nodes that are to meet get clones.
/// All ends are proven.
///
/// ```
/// use nacp::{MemoryTransport, NApp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = MemoryTransport::new();
/// let echo = NApp::builder("echo")
///     .transport(network.clone())
///     .listen("here")
///     .ability("echo", async |text: String| Ok::<_, nacp::HandlerError>(text))
///     .start()
///     .await?;
/// let app = NApp::builder("app").transport(network).start().await?;
/// app.connect("here").await?;
/// let text: String = app.request("echo", "echo", "hello").await?;
/// assert_eq!(text, "hello");
/// # drop(echo);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryTransport {
    network: Arc<Mutex<Network>>,
    options: Options,
    capacity: Option<usize>,
}

#[derive(Debug, Default)]
struct Network {
    listeners: HashMap<String, mpsc::Sender<LineEnd>>,
    lines: Vec<Weak<Line>>,
}

/// Bytes in flight in each direction, about what a socket's buffers hold.
const CAPACITY: usize = 64 << 10;

/// Connections that wait to be accepted.
const BACKLOG: usize = 128;

impl MemoryTransport {
    /// A network of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// How connections made by this clone behave.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Bytes in flight in each direction of connections dialled by this clone. Default 64 KiB.
    #[must_use]
    pub const fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Breaks every connection there is, as a cut cable does that both ends notice. Bytes on their
    /// way are lost. Connections made later work.
    pub fn cut(&self) {
        let lines = std::mem::take(&mut self.lock().lines);
        lines
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|line| line.cut());
    }

    fn lock(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn channel(&self, stream: LineEnd) -> Channel {
        Channel::from_io(stream, &self.options)
            .trust(Trust::Proven)
            .remote("memory")
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        let listener = self.lock().listeners.get(address).cloned();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listener = listener.ok_or_else(refused)?;
        let (ours, theirs, line) = line(self.capacity.unwrap_or(CAPACITY));
        {
            let mut network = self.lock();
            network.lines.retain(|line| line.strong_count() > 0);
            network.lines.push(line);
        }
        listener.send(theirs).await.map_err(|_| refused())?;
        Ok(self.channel(ours))
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        let (sender, accepted) = mpsc::channel(BACKLOG);
        let mut network = self.lock();
        let listeners = &mut network.listeners;
        if listeners
            .get(address)
            .is_some_and(|known| !known.is_closed())
        {
            return Err(io::Error::from(io::ErrorKind::AddrInUse).into());
        }
        listeners.insert(address.to_owned(), sender);
        drop(network);
        Ok(Box::new(MemoryListener {
            transport: self.clone(),
            address: address.to_owned(),
            accepted,
        }))
    }
}

#[derive(Debug)]
struct MemoryListener {
    transport: MemoryTransport,
    address: String,
    accepted: mpsc::Receiver<LineEnd>,
}

#[async_trait]
impl Listener for MemoryListener {
    async fn accept(&mut self) -> Option<Channel> {
        let stream = self.accepted.recv().await?;
        Some(self.transport.channel(stream))
    }

    fn local_address(&self) -> String {
        self.address.clone()
    }
}

impl Drop for MemoryListener {
    fn drop(&mut self) {
        self.accepted.close();
        let listeners = &mut self.transport.lock().listeners;
        if listeners
            .get(&self.address)
            .is_some_and(mpsc::Sender::is_closed)
        {
            listeners.remove(&self.address);
        }
    }
}
