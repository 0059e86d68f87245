//! A node of the library in the test's own process.

use std::time::Duration;

use nacp::link::Cause;
use nacp::{Builder, LinkState, LinkWatch, NApp};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// A node that listens on a free port, with a runtime of its own.
pub(crate) struct NativePeer {
    pub(crate) runtime: Runtime,
    pub(crate) node: NApp,
}

/// What is waited for comes within this time.
const PATIENCE: Duration = Duration::from_secs(30);

impl NativePeer {
    pub(crate) fn start(app: &str, configure: impl FnOnce(Builder) -> Builder) -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let builder = configure(NApp::builder(app).listen("127.0.0.1:0"));
        let node = runtime.block_on(builder.start()).unwrap();
        Self { runtime, node }
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> String {
        self.node.listen_addrs()[0].to_string()
    }

    /// `APP@HOST:PORT`.
    pub(crate) fn target(&self) -> String {
        format!("{}@{}", self.node.app_id(), self.address())
    }

    /// Waits for the next change to a state; its cause.
    pub(crate) fn wait_for(&self, changes: &mut LinkWatch, state: LinkState) -> Cause {
        let waiting = async {
            loop {
                let change = changes.next().await.unwrap();
                if change.state == state {
                    return change.cause;
                }
            }
        };
        let waited = self
            .runtime
            .block_on(async { timeout(PATIENCE, waiting).await });
        waited.unwrap()
    }
}
