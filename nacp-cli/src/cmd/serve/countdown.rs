use std::time::Duration;

use nacp::{EventContext, HandlerError, Signal};
use serde::{Deserialize, Serialize};
use tokio::task::coop::consume_budget;
use tokio::time::sleep;

/// What to count down from, and how fast.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct Countdown {
    from: u64,
    ms: u64,
}

impl Default for Countdown {
    fn default() -> Self {
        Self { from: 5, ms: 500 }
    }
}

#[derive(Debug, Serialize)]
struct Left {
    left: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Counted {
    counted: u64,
}

/// Sends each number, and waits between two. A pause holds it, an abort ends it, and a number as a
/// signal is where it goes on from.
pub(super) async fn countdown(
    ctx: EventContext,
    Countdown { from, ms }: Countdown,
) -> Result<Counted, HandlerError> {
    let mut left = from;
    let mut counted = 0;
    loop {
        ctx.pause_point().await?;
        ctx.process(&Left { left }).await?;
        counted += 1;
        if left == 0 {
            return Ok(Counted { counted });
        }
        left -= 1;
        if ms == 0 {
            // What can always be sent at once must not keep the others from running.
            consume_budget().await;
            continue;
        }
        let pause = sleep(Duration::from_millis(ms));
        let mut pause = std::pin::pin!(pause);
        loop {
            tokio::select! {
                biased;
                why = ctx.interrupted() => return Err(why.into()),
                signal = ctx.next_signal() => if let Some(Signal::Normal(payload)) = signal {
                    left = payload.decode().unwrap_or(left);
                },
                () = &mut pause => break,
            }
        }
    }
}
