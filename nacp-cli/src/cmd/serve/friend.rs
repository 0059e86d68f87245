use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use nacp::proto::AppId;
use nacp::transport::Address;
use nacp::{Builder, NApp};
use tokio::time::timeout;

use super::{Trouble, abilities};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::target::Target;

/// The peer that `serve` runs and `probe` embeds.
#[derive(Debug)]
pub(crate) struct Friend {
    node: NApp,
}

/// How long a good-bye to all may take.
const FAREWELL: Duration = Duration::from_millis(800);

impl Friend {
    /// One inside this process, on a free port of the loopback.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub(crate) async fn embedded() -> Result<Self, Failure> {
        let app = AppId::new("nacp-cli-embedded");
        let app = app.map_err(|error| Failure::usage(error.to_string()))?;
        let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::start(NApp::builder(app).listen(free_port), Trouble::default()).await
    }

    /// One that listens as the builder says.
    ///
    /// # Errors
    ///
    /// If the operating system does not let it.
    pub(super) async fn start(builder: Builder, trouble: Trouble) -> Result<Self, Failure> {
        let node = abilities::add_to(builder, trouble).start().await.map_err(|error| {
            Failure::local("listen", error.to_string())
                .hint("another program may have this port, or this machine not this address; port 0 is a free one")
        })?;
        Ok(Self { node })
    }

    pub(crate) const fn node(&self) -> &NApp {
        &self.node
    }

    /// Whether it can be reached from this machine alone.
    pub(super) fn is_private(&self) -> bool {
        self.node
            .listen_addrs()
            .iter()
            .all(|addr| addr.ip().is_loopback())
    }

    /// Where it can be reached: `APP@HOST:PORT`.
    ///
    /// # Errors
    ///
    /// If it listens nowhere.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        let addr = self.node.listen_addrs().into_iter().next();
        let addr = addr.ok_or_else(|| Failure::local("listen", "it listens nowhere"))?;
        Ok(Target {
            app: Some(self.node.app_id().clone()),
            address: Address::from(addr),
        })
    }

    /// Says good-bye to everybody, unless the user is in a hurry.
    pub(crate) async fn close(self, interrupt: &Interrupt) {
        tokio::select! {
            _ = timeout(FAREWELL, self.node.terminate()) => {}
            () = interrupt.times(2) => {}
        }
        self.node.terminate_now();
    }
}
