//! A signal for an event that somebody has started.

use nacp::proto::{MessageId, Signal};
use serde::Serialize;
use tokio::time::timeout_at;

use crate::args::{SignalArgs, SignalKind};
use crate::argument::argument;
use crate::dial::{Plan, Session};
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::Output;

#[derive(Serialize)]
struct Signalled<'a> {
    request: &'a str,
    kind: &'static str,
    delivered: bool,
}

pub(crate) async fn run(
    args: SignalArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let (id, signal) = read(&args)?;
    let kind = signal.kind();
    let plan = Plan::new(&args.dial, args.target.target.as_ref())?;
    let session = Session::start(&plan, plan.target()?, |builder| builder).await?;
    let sent = tokio::select! {
        biased;
        sent = send(&session, &plan, id, signal) => sent,
        () = interrupt.times(1) => Err(Failure::interrupted("signal")),
    };
    session.close(interrupt).await;
    let signalled = Signalled {
        request: &args.request,
        kind,
        delivered: sent.is_ok(),
    };
    if sent.is_ok() {
        output.human("delivered")?;
    }
    output.document("signal", signalled, sent.as_ref().err())?;
    sent.map_err(Stop::Told)
}

fn read(args: &SignalArgs) -> Result<(MessageId, Signal), Failure> {
    let id = MessageId::new(&args.request)
        .map_err(|error| Failure::usage(format!("the request id: {error}")))?;
    let signal = match args.kind {
        SignalKind::Normal => Signal::Normal(argument(args.data.as_deref())?),
        _ if args.data.is_some() => {
            return Err(Failure::usage("only a normal signal carries data"));
        }
        SignalKind::Pause => Signal::Pause,
        SignalKind::Resume => Signal::Resume,
        SignalKind::Abort => Signal::Abort,
    };
    Ok((id, signal))
}

async fn send(
    session: &Session,
    plan: &Plan,
    id: MessageId,
    signal: Signal,
) -> Result<(), Failure> {
    let deadline = plan.deadline();
    let peer = session.connect(deadline).await?;
    let sending = timeout_at(deadline, session.node.signal(&peer, id, signal));
    let lost = |reason: String| {
        let message = format!("the signal was not delivered: {reason}");
        Failure::new(Exit::LinkLost, "signal", "transport-error", message)
    };
    tokio::select! {
        biased;
        sent = sending => match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(lost(error.to_string())),
            Err(_) => Err(Failure::timed_out("signal", "it was not acknowledged in time")),
        },
        () = session.lost() => Err(lost("the connection has ended".to_owned())),
    }
}
