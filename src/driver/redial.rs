use std::sync::Arc;
use std::time::{Duration, Instant};

use nacp_link::{Cause, DialError, LinkChange, LinkState};
use nacp_proto::{AppId, Payload};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::after::After;
use super::state::State;
use super::{Core, now};
use crate::{ConnectError, Reconnect, Target};

/// Keeps one dialled app online.
pub(crate) struct Keeper {
    target: Target,
    auth: Option<Payload>,
    reconnect: Reconnect,
    /// Before the next attempt.
    wait: Duration,
    online_since: Option<Instant>,
    /// Whether a task is at it.
    is_dialling: bool,
    given_up: CancellationToken,
    _give_up: DropGuard,
}

/// The next attempt to get an app online.
struct Attempt {
    target: Target,
    auth: Option<Payload>,
    delay: Duration,
    given_up: CancellationToken,
}

impl Core {
    /// Keeps an app online from now on.
    pub(crate) fn keep_online(
        self: &Arc<Self>,
        app: AppId,
        target: Target,
        reconnect: Reconnect,
        auth: Option<Payload>,
    ) {
        self.feed_keeper(|state, after| {
            let is_online = state.is_online(&app);
            let given_up = CancellationToken::new();
            let keeper = Keeper {
                target: target.expect(app.clone()),
                auth,
                wait: reconnect.shortest,
                reconnect,
                online_since: is_online.then(now),
                is_dialling: !is_online,
                _give_up: given_up.clone().drop_guard(),
                given_up,
            };
            state.keepers.insert(app.clone(), keeper);
            if !is_online {
                after.redials.push(app);
            }
        });
    }

    fn feed_keeper(self: &Arc<Self>, change: impl FnOnce(&mut State, &mut After)) {
        let mut after = After::default();
        change(&mut self.lock(), &mut after);
        self.finish(&mut after);
    }

    /// Tries to get an app online until it is, in a task of its own.
    pub(super) fn redial(self: &Arc<Self>, app: AppId) {
        let core = Arc::clone(self);
        self.spawn(async move {
            while let Some(attempt) = core.next_attempt(&app) {
                let given_up = attempt.given_up.clone();
                let tried = given_up.run_until_cancelled(core.attempt(&app, attempt));
                if tried.await.is_none() {
                    return;
                }
            }
        });
    }

    fn next_attempt(&self, app: &AppId) -> Option<Attempt> {
        let mut state = self.lock();
        let is_online = state.is_online(app);
        let keeper = state.keepers.get_mut(app)?;
        keeper.is_dialling = !is_online;
        if is_online {
            return None;
        }
        let delay = keeper.reconnect.draw(keeper.wait, random());
        keeper.wait = keeper.reconnect.next(keeper.wait);
        Some(Attempt {
            target: keeper.target.clone(),
            auth: keeper.auth.clone(),
            delay,
            given_up: keeper.given_up.clone(),
        })
    }

    async fn attempt(self: &Arc<Self>, app: &AppId, attempt: Attempt) {
        tokio::time::sleep(attempt.delay).await;
        let connecting = self.connect(&attempt.target, attempt.auth, None);
        if let Err(error) = connecting.online().await {
            tracing::debug!(%app, %error, "cannot connect again");
            if is_final(&error) {
                tracing::warn!(%app, %error, "does not try to connect again");
                self.lock().keepers.remove(app);
            }
        }
    }
}

impl State {
    fn is_online(&self, app: &AppId) -> bool {
        self.node
            .link(app)
            .is_some_and(|link| link.state == LinkState::Online)
    }

    /// Keeps an app online no longer.
    pub(crate) fn give_up(&mut self, app: &AppId) {
        self.keepers.remove(app);
    }

    /// What a change of a link means for whoever keeps it.
    pub(super) fn keep(&mut self, change: &LinkChange, after: &mut After) {
        if matches!(change.cause, Cause::Disconnecting | Cause::Terminated) {
            self.keepers.remove(&change.app);
        }
        let Some(keeper) = self.keepers.get_mut(&change.app) else {
            return;
        };
        if change.state == LinkState::Online {
            keeper.online_since = Some(now());
            return;
        }
        if let Some(since) = keeper.online_since.take() {
            let lived = now().saturating_duration_since(since);
            if lived >= keeper.wait.max(keeper.reconnect.stable_after) {
                keeper.wait = keeper.reconnect.shortest;
            }
        }
        if !std::mem::replace(&mut keeper.is_dialling, true) {
            after.redials.push(change.app.clone());
        }
    }
}

/// Whether waiting cannot heal it.
fn is_final(error: &ConnectError) -> bool {
    match error {
        ConnectError::Handshake(DialError::Refused { why }) => {
            matches!(
                why.as_str(),
                "version-mismatch" | "unauthorized" | "dual-gateway"
            )
        }
        ConnectError::Handshake(error) => *error == DialError::Terminated,
        ConnectError::Target(_) | ConnectError::Transport(_) | ConnectError::Fault { .. } => false,
    }
}

/// From 0 to 1.
fn random() -> f64 {
    // Without a source of randomness the whole wait is the safe one.
    getrandom::u64().map_or(1.0, |bits| (bits >> 11) as f64 / (1u64 << 53) as f64)
}
