use nacp::proto::{AppId, Signal};
use nacp::{JobItem, JobItems, JobResponse, Payload};
use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Call;
use crate::dial::{Plan, Session};
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::keys::Keys;
use crate::output::{Format, Output};
use crate::value;

/// What came before the answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Items {
    #[serde(rename = "item_count")]
    count: u64,
    /// Items that did not arrive; null if the peer does not count.
    missed: Option<u64>,
}

#[derive(Serialize)]
struct Item {
    item: serde_json::Value,
    missed: Option<u64>,
}

/// Runs an event to its end, and shows its items on the way.
pub(super) async fn run(
    call: &Call<'_>,
    peer: &AppId,
    session: &Session,
    plan: &Plan,
    items: &mut Items,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<Payload, Stop> {
    let running = session.node.run_raw(peer, call.name, call.payload.clone());
    let job = timeout_at(plan.deadline(), running).await;
    let late = |_| Failure::timed_out("call", "the request could not be sent in time");
    let job = job
        .map_err(late)?
        .map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(id) = job.id() {
        output
            .notes()
            .note(format_args!("request {}", id.to_smol_str()));
    }
    let (stream, response) = job.split();
    let mut running = Running {
        session,
        plan,
        stream,
        response,
        interrupt,
        is_aborted: false,
        silence_ends: plan.deadline(),
    };
    running.items(items, output).await?;
    running.answer().await
}

/// An event under way.
struct Running<'a> {
    session: &'a Session,
    plan: &'a Plan,
    stream: JobItems,
    response: JobResponse,
    interrupt: &'a Interrupt,
    /// Whether Ctrl-C has aborted it.
    is_aborted: bool,
    silence_ends: Instant,
}

impl Running<'_> {
    /// Shows items until there are no more; the answer has come then, or the link is lost.
    async fn items(&mut self, items: &mut Items, output: &mut Output) -> Result<(), Stop> {
        let mut keys = Keys::listen().filter(|_| output.is_human());
        if keys.is_some() {
            output.notes().note("keys: p pause, r resume, a abort");
        }
        loop {
            tokio::select! {
                biased;
                () = self.interrupt.times(if self.is_aborted { 2 } else { 1 }) => {
                    self.interrupted(output).await?;
                }
                item = self.stream.next() => match item {
                    None => return Ok(()),
                    Some(item) => {
                        self.silence_ends = self.plan.deadline();
                        show(item, items, output)?;
                    }
                },
                key = next(&mut keys) => self.pressed(key, output).await,
                () = self.session.lost() => return Err(self.lost().into()),
                () = sleep_until(self.silence_ends) => return Err(self.too_quiet().into()),
            }
        }
    }

    /// The first time it is aborted, and its answer is waited for; the second time it is left.
    async fn interrupted(&mut self, output: &Output) -> Result<(), Failure> {
        if self.is_aborted {
            return Err(Failure::interrupted("call"));
        }
        self.is_aborted = true;
        output.notes().note("aborting; Ctrl-C once more leaves it");
        self.send(Signal::Abort, output).await;
        Ok(())
    }

    async fn pressed(&mut self, key: char, output: &Output) {
        let (signal, what) = match key {
            'p' => (Signal::Pause, "paused"),
            'r' => (Signal::Resume, "resumed"),
            'a' => (Signal::Abort, "aborted"),
            _ => return,
        };
        if self.send(signal, output).await {
            output.notes().note(what);
        }
        self.silence_ends = self.plan.deadline();
    }

    /// Whether the peer has it.
    async fn send(&self, signal: Signal, output: &Output) -> bool {
        let sending = self.response.send(signal);
        let result = tokio::select! {
            result = sending => result.map_err(|error| error.to_string()),
            () = self.session.lost() => Err("the connection has ended".to_owned()),
            () = sleep_until(self.plan.deadline()) => Err("no answer".to_owned()),
        };
        if let Err(error) = &result {
            output
                .notes()
                .note(format_args!("the signal was not delivered: {error}"));
        }
        result.is_ok()
    }

    async fn answer(mut self) -> Result<Payload, Stop> {
        let answer = self.response.response_raw();
        let answered = self
            .session
            .answer("call", self.plan.deadline(), answer)
            .await;
        match answered {
            Ok(_) if self.is_aborted => Err(Failure::new(
                Exit::SaidNo,
                "call",
                "aborted",
                "aborted by Ctrl-C; the event had ended well all the same",
            )
            .into()),
            answered => Ok(answered?),
        }
    }

    fn lost(&self) -> Failure {
        self.session.ended("call")
    }

    fn too_quiet(&self) -> Failure {
        let limit = self.plan.timeout;
        Failure::timed_out(
            "call",
            format!("neither an item nor the answer came within {limit:?}"),
        )
    }
}

async fn next(keys: &mut Option<Keys>) -> char {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

fn show(item: JobItem, items: &mut Items, output: &mut Output) -> std::io::Result<()> {
    items.count += 1;
    if let Some(missed) = item.missed {
        items.missed = Some(items.missed.unwrap_or(0) + missed);
        if missed > 0 {
            output
                .notes()
                .note(format_args!("{missed} items are missing here"));
        }
    }
    let shown = value::shown(&item.payload);
    match output.format() {
        Format::Human => output.human(shown),
        Format::Ndjson => {
            let missed = item.missed;
            output.record(
                "call-item",
                Item {
                    item: shown,
                    missed,
                },
            )
        }
        Format::Json | Format::Csv => Ok(()),
    }
}
