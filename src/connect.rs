use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use nacp_link::DialError;
use nacp_proto::{AppId, Payload};
use nacp_transport_tcp::{AddressError, ConnectError as TcpError};
use thiserror::Error;

use crate::driver::Core;
use crate::{Channel, Reconnect, Target, TargetError, TransportError};

/// Why an app did not come online.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The target makes no sense.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// There is no connection.
    #[error(transparent)]
    Transport(Arc<TransportError>),
    /// The connection was closed before the register was answered, for a fault of the other side: it
    /// does not speak the protocol, or not this version of it.
    #[error("the other side does not speak the protocol: {reason}")]
    Fault {
        /// The fault, in the words of the specification, section 2.
        reason: &'static str,
    },
    /// The register was refused, or not answered.
    #[error("cannot register: {0}")]
    Handshake(DialError),
}

/// How far a connect came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ConnectStage {
    /// The address cannot be understood.
    Address,
    /// Its name is not resolved.
    Resolve,
    /// No connection is made.
    Connect,
    /// The register does not go well.
    Handshake,
}

impl ConnectError {
    /// The stage that failed.
    pub fn stage(&self) -> ConnectStage {
        match self {
            Self::Target(_) => ConnectStage::Address,
            Self::Transport(error) => match &**error {
                TransportError::Address { .. } | TransportError::Connect(TcpError::PortZero) => {
                    ConnectStage::Address
                }
                TransportError::Connect(
                    TcpError::Resolve { .. } | TcpError::ResolveTimeout { .. },
                ) => ConnectStage::Resolve,
                TransportError::Connect(_) | TransportError::Io(_) | TransportError::Other(_) => {
                    ConnectStage::Connect
                }
            },
            Self::Fault { .. } | Self::Handshake(_) => ConnectStage::Handshake,
        }
    }

    /// Whether it failed for want of time.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Transport(error) => match &**error {
                TransportError::Connect(error) => error.is_timeout(),
                TransportError::Io(error) => error.kind() == std::io::ErrorKind::TimedOut,
                TransportError::Address { .. } | TransportError::Other(_) => false,
            },
            Self::Handshake(error) => *error == DialError::ResponseTimeout,
            Self::Target(_) | Self::Fault { .. } => false,
        }
    }

    /// What is wrong with the address, if that is it.
    pub fn address_error(&self) -> Option<&AddressError> {
        match self {
            Self::Transport(error) => match &**error {
                TransportError::Address { source, .. } => Some(source),
                TransportError::Connect(_) | TransportError::Io(_) | TransportError::Other(_) => {
                    None
                }
            },
            Self::Target(_) | Self::Fault { .. } | Self::Handshake(_) => None,
        }
    }
}

/// A wish to have an app online. Await it; it completes with the app's name once the app is.
///
/// One attempt is made, or one under way is joined. Afterwards the link is kept as
/// [`Reconnect`] says. An app that is online already completes it at once.
///
/// # Cancel safety
///
/// An attempt that has begun goes on.
#[must_use = "nothing is done before it is awaited"]
pub struct Connect {
    core: Arc<Core>,
    target: Result<Target, TargetError>,
    auth: Option<Payload>,
    reconnect: Reconnect,
    over: Option<Channel>,
}

impl Connect {
    pub(crate) fn new(core: Arc<Core>, target: Result<Target, TargetError>) -> Self {
        Self {
            target,
            auth: core.parts.auth.clone(),
            reconnect: core.parts.reconnect.clone(),
            over: None,
            core,
        }
    }

    /// Expects this app there.
    pub fn expect(mut self, app: AppId) -> Self {
        self.target = self.target.map(|target| target.expect(app));
        self
    }

    /// The credential for the other side's policy, in place of the builder's. It is never sent to a
    /// target without an app, nor when the link to whoever answered there is made again.
    pub fn auth(mut self, auth: Payload) -> Self {
        self.auth = Some(auth);
        self
    }

    /// How the link is made again when it goes down, in place of the builder's.
    pub fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Uses a connection that is there, for the first attempt.
    pub fn over(mut self, channel: impl Into<Channel>) -> Self {
        self.over = Some(channel.into());
        self
    }

    async fn online(self) -> Result<AppId, ConnectError> {
        let target = self.target?;
        // Whoever answered at an address alone has only said who it is.
        let auth = self.auth.filter(|_| target.app().is_some());
        let connecting = self.core.connect(&target, auth.clone(), self.over);
        let app = connecting.online().await?;
        if self.reconnect.enabled {
            self.core
                .keep_online(app.clone(), target, self.reconnect, auth);
        }
        Ok(app)
    }
}

impl IntoFuture for Connect {
    type Output = Result<AppId, ConnectError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.online())
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}
