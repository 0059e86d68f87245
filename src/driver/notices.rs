use std::collections::VecDeque;
use std::sync::Arc;

use nacp_bus::escape_segment;
use nacp_link::Report;
use nacp_proto::{AppId, MessageId, Payload, Signal};
use serde::Serialize;
use smol_str::SmolStr;

use super::Core;
use super::after::After;
use crate::Value;

/// What the node and its streams report, until it is told outside of the lock, in order.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    queue: VecDeque<Notice>,
    /// Whether someone is telling. What comes meanwhile, also from listeners, waits its turn.
    is_telling: bool,
    dropped: u64,
}

#[derive(Debug)]
enum Notice {
    Report(Report),
    Signal { id: MessageId, signal: Signal },
    Overflow(Overflow),
}

/// A stream whose reader is too slow has dropped an item.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overflow {
    #[serde(serialize_with = "as_text")]
    pub(crate) app_id: AppId,
    pub(crate) sub_id: String,
    pub(crate) target_sub_name: SmolStr,
    /// How many this stream has dropped in all.
    pub(crate) dropped: u64,
    pub(crate) reason: &'static str,
}

fn as_text<S: serde::Serializer>(app: &AppId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(app.as_str())
}

/// How many reports wait for slow listeners before the oldest are dropped.
const MAX_NOTICES: usize = 1 << 16;

impl Notices {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn report(&mut self, report: Report) {
        self.push(Notice::Report(report));
    }

    pub(super) fn signal(&mut self, id: &MessageId, signal: &Signal) {
        self.push(Notice::Signal {
            id: id.clone(),
            signal: signal.clone(),
        });
    }

    pub(crate) fn overflow(&mut self, overflow: Overflow) {
        self.push(Notice::Overflow(overflow));
    }

    fn push(&mut self, notice: Notice) {
        if self.queue.len() >= MAX_NOTICES {
            self.queue.pop_front();
            self.dropped += 1;
        }
        self.queue.push_back(notice);
    }
}

/// Rounds of telling before a task of its own goes on with it.
const ROUNDS: usize = 4;

impl Core {
    /// Tells the bus what is to be told, one thing after another, whoever is here first.
    pub(super) fn deliver_notices(self: &Arc<Self>, after: &mut After) {
        if !std::mem::take(&mut after.notices) {
            return;
        }
        if std::mem::replace(&mut self.lock().notices.is_telling, true) {
            return;
        }
        for _ in 0..ROUNDS {
            if !self.deliver_some() {
                return;
            }
        }
        // Whoever this is has other things to do, and there is no end to it.
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            while core.deliver_some() {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Tells what is to be told now. Returns whether there was anything; if not, nobody tells any more.
    fn deliver_some(self: &Arc<Self>) -> bool {
        let (notices, dropped) = {
            let mut state = self.lock();
            let notices = std::mem::take(&mut state.notices.queue);
            state.notices.is_telling = !notices.is_empty();
            (notices, std::mem::take(&mut state.notices.dropped))
        };
        if dropped > 0 {
            tracing::warn!(dropped, "listeners are too slow for the node's reports");
        }
        let is_any = !notices.is_empty();
        notices.into_iter().for_each(|notice| self.deliver(notice));
        is_any
    }

    fn deliver(self: &Arc<Self>, notice: Notice) {
        match notice {
            Notice::Report(report) => {
                let name = report.name();
                let may_leave = self.parts.exposes_internal_events && !report.is_of_notify();
                let value = Value::from(Arc::new(report));
                self.bus.emit(&name, &value);
                if may_leave {
                    self.forward(&name, None, || value.to_payload());
                }
            }
            Notice::Signal { id, signal } => {
                if self.has_audience() {
                    let name = format!("nacp:event:{}:signal", escape_segment(&id.to_smol_str()));
                    self.emit(&name, || signal_payload(signal));
                }
            }
            Notice::Overflow(overflow) => {
                let (app, dropped) = (&overflow.app_id, overflow.dropped);
                tracing::warn!(%app, name = %overflow.target_sub_name, dropped, "stream-overflow");
                if self.has_audience() {
                    let payload = Payload::new(&overflow).unwrap_or_default();
                    self.bus
                        .emit("napp:internal:notify:warning", &payload.into());
                }
            }
        }
    }
}

fn signal_payload(signal: Signal) -> Payload {
    #[derive(Serialize)]
    struct Kind {
        kind: &'static str,
    }
    match signal {
        Signal::Normal(payload) => payload,
        Signal::Pause | Signal::Resume | Signal::Abort => Payload::new(&Kind {
            kind: signal.kind(),
        })
        .unwrap_or_default(),
    }
}
