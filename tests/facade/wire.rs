//! Connections in memory that break in every way a network does, also in virtual time.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use nacp::link::Trust;
use nacp::transport::Options;
use nacp::{Channel, Listener, Transport, TransportError};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

use crate::faults::Faults;

/// A network in memory. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Network>>);

#[derive(Debug, Default)]
struct Network {
    listeners: HashMap<String, mpsc::UnboundedSender<DuplexStream>>,
    /// Addresses that lead to another one over a line of their own.
    lines: HashMap<String, (String, Arc<Faults>)>,
}

/// Where every dial waits without end.
pub(crate) const VOID: &str = "void";

/// Bytes in flight in each of the two halves of a connection: a small buffer.
const CAPACITY: usize = 16 << 10;

impl Wire {
    /// A line to an address with faults of its own, and the address to dial for it.
    pub(crate) fn line_to(&self, address: &str) -> (String, Arc<Faults>) {
        let mut network = self.0.lock().unwrap();
        let alias = format!("{address}#{}", network.lines.len());
        let faults = Arc::new(Faults::default());
        let line = (address.to_owned(), Arc::clone(&faults));
        network.lines.insert(alias.clone(), line);
        (alias, faults)
    }

    /// The near end of a new connection.
    pub(crate) fn connect(&self, address: &str) -> io::Result<DuplexStream> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let network = self.0.lock().unwrap();
        let line = network.lines.get(address);
        let address = line.map_or(address, |(address, _)| address);
        let listener = network.listeners.get(address).ok_or_else(refused)?;
        let (near, far) = duplex(CAPACITY);
        let far = match line {
            None => far,
            Some((_, faults)) => {
                let number = faults.accept().ok_or_else(refused)?;
                let (onward, far_end) = duplex(CAPACITY);
                tokio::spawn(Arc::clone(faults).join(number, far, onward));
                far_end
            }
        };
        listener.send(far).map_err(|_| refused())?;
        Ok(near)
    }

    /// The far ends of connections to an address.
    pub(crate) fn accept_at(&self, address: &str) -> mpsc::UnboundedReceiver<DuplexStream> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listeners = &mut self.0.lock().unwrap().listeners;
        listeners.insert(address.to_owned(), sender);
        receiver
    }
}

fn channel(stream: DuplexStream) -> Channel {
    Channel::from_io(stream, &Options::default()).trust(Trust::Proven)
}

#[async_trait]
impl Transport for Wire {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        if address == VOID {
            std::future::pending().await
        }
        Ok(channel(self.connect(address)?))
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        Ok(Box::new(WireListener {
            address: address.to_owned(),
            accepted: self.accept_at(address),
        }))
    }
}

#[derive(Debug)]
struct WireListener {
    address: String,
    accepted: mpsc::UnboundedReceiver<DuplexStream>,
}

#[async_trait]
impl Listener for WireListener {
    async fn accept(&mut self) -> Option<Channel> {
        self.accepted.recv().await.map(channel)
    }

    fn local_address(&self) -> String {
        self.address.clone()
    }
}
