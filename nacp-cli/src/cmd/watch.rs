//! The life of one link.

use std::time::SystemTime;

use nacp::link::Cause;
use nacp::{Builder, LinkChange, LinkState, LinkWatch, Reconnect};
use serde::Serialize;

use crate::args::WatchArgs;
use crate::dial::{Plan, Session};
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Format, Output, Tone};

#[derive(Serialize)]
struct Change {
    time: String,
    app: String,
    state: &'static str,
    cause: &'static str,
    /// Of `online`: whether an earlier link went on.
    resumed: Option<bool>,
    gateway: bool,
}

pub(crate) async fn run(
    args: WatchArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let plan = Plan::new(&args.dial, args.target.as_ref())?;
    let keep = |builder: Builder| builder.reconnect(Reconnect::default());
    let session = Session::start(&plan, plan.target()?, keep).await?;
    let mut changes = session.node.watch_links();
    let ended = tokio::select! {
        biased;
        ended = watch(&session, &plan, &mut changes, args.count, output) => ended,
        () = interrupt.times(1) => Err(Failure::interrupted("watch").into()),
    };
    session.close(interrupt).await;
    ended
}

async fn watch(
    session: &Session,
    plan: &Plan,
    changes: &mut LinkWatch,
    count: Option<u64>,
    output: &mut Output,
) -> Result<(), Stop> {
    session.connect(plan.deadline()).await?;
    output.row(&[&"time", &"app", &"state", &"cause"])?;
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        let Some(change) = changes.next().await else {
            return Err(Failure::local("watch", "the node has ended").into());
        };
        show(&change, output)?;
        shown += 1;
        if change.state == LinkState::Dropped {
            let message = format!("the link to {} is dropped", change.app);
            return Err(Failure::new(Exit::LinkLost, "watch", "peer-gone", message).into());
        }
    }
    Ok(())
}

fn show(change: &LinkChange, output: &mut Output) -> std::io::Result<()> {
    let (tone, state) = match change.state {
        LinkState::Online => (Tone::Good, "online"),
        LinkState::Offline => (Tone::Doubtful, "offline"),
        LinkState::Dropped => (Tone::Bad, "dropped"),
    };
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let cause = cause(change.cause);
    let app = &change.app;
    match output.format() {
        Format::Human => {
            let resumed = match change.resumed {
                Some(true) => ", resumed",
                Some(false) | None => "",
            };
            let word = tone.paint(format!("{state:<7}"));
            output.human(format_args!("{time} {word} {app} ({cause}{resumed})"))
        }
        Format::Csv => output.row(&[&time, app, &state, &cause]),
        Format::Json | Format::Ndjson => output.record(
            "watch-change",
            Change {
                time,
                app: app.as_str().to_owned(),
                state,
                cause,
                resumed: change.resumed,
                gateway: change.is_gateway,
            },
        ),
    }
}

const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Registered => "registered",
        Cause::Disconnected => "disconnected",
        Cause::AckTimeout => "ack-timeout",
        Cause::BeatTimeout => "beat-timeout",
        Cause::TakenOver => "taken-over",
        Cause::GraceEnded => "grace-ended",
        Cause::Unregistered => "unregistered",
        Cause::Disconnecting => "disconnecting",
        Cause::Terminated => "terminated",
        _ => "unknown",
    }
}
