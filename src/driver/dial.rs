use std::sync::Arc;

use nacp_link::{Connect, DialId, Origin};
use nacp_proto::{AppId, Payload};

use super::{Core, Waiter, WaiterKey};
use crate::slot::Slot;
use crate::{Channel, ConnectError, Target};

impl Core {
    /// Begins an attempt to get a target online, or joins one. It goes on by itself.
    pub(crate) fn connect(
        self: &Arc<Self>,
        target: &Target,
        auth: Option<Payload>,
        over: Option<Channel>,
    ) -> Connecting {
        let slot = Arc::new(Slot::new());
        let (key, connect) = self.turn(|state, _| {
            let key = state.waiters.insert(Waiter::Connect(Arc::clone(&slot)));
            let app = target.app().cloned();
            (key, state.node.connect(app, auth, Some(key.token())))
        });
        match (connect, over) {
            (Connect::Dial(dial), Some(channel)) => {
                self.attach(channel, Origin::Dialled(dial));
            }
            (Connect::Dial(dial), None) => {
                let (core, address) = (Arc::clone(self), target.address().to_owned());
                self.spawn(async move { core.dial(dial, &address).await });
            }
            (_, _) => {}
        }
        Connecting {
            core: Arc::clone(self),
            key,
            slot,
        }
    }

    async fn dial(self: &Arc<Self>, dial: DialId, address: &str) {
        let channel = self.parts.transport.dial(address).await;
        match channel {
            Ok(channel) => self.attach(channel, Origin::Dialled(dial)),
            Err(fault) => self.turn(|state, now| {
                tracing::debug!(address, %fault, "dial failed");
                state.dial_fault = Some(ConnectError::Transport(Arc::new(fault)));
                state.node.handle_dial_failed(now, dial);
            }),
        }
    }
}

/// An attempt that is waited for.
pub(crate) struct Connecting {
    core: Arc<Core>,
    key: WaiterKey,
    slot: Arc<Slot<Result<AppId, ConnectError>>>,
}

impl Connecting {
    pub(crate) async fn online(self) -> Result<AppId, ConnectError> {
        std::future::poll_fn(|cx| self.slot.poll(cx)).await
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.core.forget_waiter(self.key);
    }
}
