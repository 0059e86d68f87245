//! What the tests of the whole share: two transports, deadlines, and waiting for events.

use std::future::Future;
use std::time::Duration;

use nacp::{AppId, Builder, Events, LinkState, MemoryTransport, NApp, NodeEvent};

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(20);

/// Waits for what must happen, with a deadline.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(result) => result,
        Err(_) => panic!("waited {DEADLINE:?} in vain for {what}"),
    }
}

/// Waits until something is so that no event tells of.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Where nodes meet.
#[derive(Clone)]
pub(crate) enum Net {
    Tcp,
    Memory(MemoryTransport),
}

impl Net {
    /// A node that can dial.
    pub(crate) fn node(&self, app: &str) -> Builder {
        let builder = NApp::builder(app);
        match self {
            Self::Tcp => builder,
            Self::Memory(network) => builder.transport(network.clone()),
        }
    }

    /// A node that listens.
    pub(crate) fn server(&self, app: &str) -> Builder {
        match self {
            Self::Tcp => self.node(app).listen("127.0.0.1:0"),
            Self::Memory(_) => self.node(app).listen(format!("{app}.memory")),
        }
    }
}

/// The target of a node that listens.
pub(crate) fn target(napp: &NApp) -> String {
    format!("{}@{}", napp.app_id().as_str(), napp.listen_addresses()[0])
}

pub(crate) fn app(name: &str) -> AppId {
    AppId::new(name).unwrap()
}

/// Waits until a node sees an app in this state.
pub(crate) async fn sees(napp: &NApp, name: &str, state: LinkState) {
    let name = app(name);
    let mut watch = napp.watch_links();
    if napp
        .link(&name)
        .map_or(LinkState::Dropped, |link| link.state)
        == state
    {
        return;
    }
    within(&format!("{name} to be {state:?}"), async {
        while let Some(change) = watch.next().await {
            if change.app == name && change.state == state {
                return;
            }
        }
        panic!("the node ended");
    })
    .await;
}

/// Waits for a report of this name and reason.
pub(crate) async fn reported(events: &mut Events, name: &str, reason: &str) -> NodeEvent {
    within(&format!("{name} {reason}"), async {
        loop {
            let event = events.next().await.expect("the node ended");
            if &*event.name == name && reason_of(&event).as_deref() == Some(reason) {
                return event;
            }
        }
    })
    .await
}

/// The reason of a report, if it has one.
pub(crate) fn reason_of(event: &NodeEvent) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Reason {
        reason: Option<String>,
    }
    event.value.decode::<Reason>().ok()?.reason
}

/// Runs a test over both transports.
macro_rules! over_both {
    ($($(#[$meta:meta])* async fn $name:ident($net:ident: Net) -> Outcome $body:block)+) => {
        $(
            mod $name {
                use super::*;

                async fn body($net: Net) -> Outcome $body

                #[tokio::test]
                async fn over_tcp() -> Outcome {
                    body(Net::Tcp).await
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn over_tcp_on_two_threads() -> Outcome {
                    body(Net::Tcp).await
                }

                #[tokio::test]
                async fn in_memory() -> Outcome {
                    body(Net::Memory(nacp::MemoryTransport::new())).await
                }
            }
        )+
    };
}
