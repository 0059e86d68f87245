use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use nacp_link::Trust;
use nacp_transport_tcp::Options;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

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
    listeners: Arc<Mutex<HashMap<String, mpsc::Sender<DuplexStream>>>>,
    options: Options,
    capacity: Option<usize>,
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<DuplexStream>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn channel(&self, stream: DuplexStream) -> Channel {
        Channel::from_io(stream, &self.options)
            .trust(Trust::Proven)
            .remote("memory")
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        let listener = self.lock().get(address).cloned();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let listener = listener.ok_or_else(refused)?;
        let (ours, theirs) = duplex(self.capacity.unwrap_or(CAPACITY));
        listener.send(theirs).await.map_err(|_| refused())?;
        Ok(self.channel(ours))
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        let (sender, accepted) = mpsc::channel(BACKLOG);
        let mut listeners = self.lock();
        if listeners
            .get(address)
            .is_some_and(|known| !known.is_closed())
        {
            return Err(io::Error::from(io::ErrorKind::AddrInUse).into());
        }
        listeners.insert(address.to_owned(), sender);
        drop(listeners);
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
    accepted: mpsc::Receiver<DuplexStream>,
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
        let mut listeners = self.transport.lock();
        if listeners
            .get(&self.address)
            .is_some_and(mpsc::Sender::is_closed)
        {
            listeners.remove(&self.address);
        }
    }
}
