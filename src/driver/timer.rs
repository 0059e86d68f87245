use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::Core;

/// Calls the node when its next deadline is due.
pub(super) async fn run(core: Arc<Core>) {
    loop {
        let next = {
            let mut state = core.lock();
            state.armed = state.node.poll_timeout();
            state.armed
        };
        match next {
            None => core.timer.notified().await,
            Some(due) => tokio::select! {
                biased;
                () = core.timer.notified() => {}
                () = sleep_until(Instant::from_std(due)) => core.fire(),
            },
        }
    }
}

impl Core {
    fn fire(self: &Arc<Self>) {
        self.turn(|state, now| {
            state.armed = None;
            state.node.handle_timeout(now);
        });
    }
}
