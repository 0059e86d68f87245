use std::net::SocketAddr;

use async_trait::async_trait;
use nacp_transport_tcp::{Address, AddressError, Options, connect};

use crate::{Channel, Listener, Transport, TransportError};

/// NACT over TCP. Addresses are those of [`Address`]: `HOST:PORT`, `1.2.3.4:PORT`, `[IPv6]:PORT`.
#[derive(Debug, Clone, Default)]
pub struct TcpTransport {
    options: Options,
}

impl TcpTransport {
    /// A transport whose connections behave so.
    pub const fn new(options: Options) -> Self {
        Self { options }
    }
}

#[async_trait]
impl Transport for TcpTransport {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        let address: Address = address.parse().map_err(misread(address))?;
        Ok(connect(&address, &self.options).await?.into())
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        let address = Address::to_listen_on(address).map_err(misread(address))?;
        let listener = nacp_transport_tcp::Listener::bind(&address, self.options.clone()).await?;
        Ok(Box::new(TcpListener { listener }))
    }
}

fn misread(address: &str) -> impl FnOnce(AddressError) -> TransportError + '_ {
    move |source| TransportError::Address {
        address: address.to_owned(),
        source,
    }
}

#[derive(Debug)]
struct TcpListener {
    listener: nacp_transport_tcp::Listener,
}

#[async_trait]
impl Listener for TcpListener {
    async fn accept(&mut self) -> Option<Channel> {
        Some(self.listener.accept().await.into())
    }

    fn local_address(&self) -> String {
        Address::from(self.listener.local_addr()).to_string()
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        Some(self.listener.local_addr())
    }
}
