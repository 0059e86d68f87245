use nacp::proto::MessageId;
use nacp::{EventContext, HandlerError, Payload, Signal};
use serde::{Deserialize, Serialize};
use tokio::task::coop::consume_budget;

/// How large each event is, in bytes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FloodArgs {
    pub(crate) size: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct Flooded {
    emitted: u64,
}

/// What it holds for each run of it.
const MAX_SIZE: u32 = 16 << 20;

/// No signal asks for more than this: a backlog holds no more by default.
const MAX_CREDIT: u64 = 1024;

/// The name of the events that a run emits.
pub(crate) fn flood_event(request: &MessageId) -> String {
    format!("flood:{}", request.to_smol_str())
}

/// Emits as many events as each number says that is signalled to it, and swallows other signals.
pub(super) async fn flood(
    ctx: EventContext,
    FloodArgs { size }: FloodArgs,
) -> Result<Flooded, HandlerError> {
    if size > MAX_SIZE {
        let message = format!("size: at most {MAX_SIZE} bytes");
        return Err(HandlerError::failed(message));
    }
    let (node, name) = (ctx.napp(), flood_event(ctx.request_id()));
    let payload = Payload::byte_string(vec![0x5a; size as usize]);
    let mut emitted = 0;
    while let Some(signal) = ctx.next_signal().await {
        let Signal::Normal(credit) = signal else {
            continue;
        };
        let credit: u64 = credit.decode().unwrap_or(0);
        for _ in 0..credit.min(MAX_CREDIT) {
            node.emit_raw(&name, payload.clone());
            emitted += 1;
            // What can always be sent at once must not keep the others from running.
            consume_budget().await;
        }
    }
    ctx.check()?;
    Ok(Flooded { emitted })
}
