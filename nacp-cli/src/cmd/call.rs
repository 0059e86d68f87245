//! One call of an ability or an event.

mod event;

use std::time::Instant;

use nacp::Payload;
use nacp::proto::AppId;
use serde::Serialize;

use crate::args::CallArgs;
use crate::argument::argument;
use crate::dial::{Plan, Session};
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::latency::millis;
use crate::output::Output;
use crate::value;

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    kind: &'static str,
    app: Option<String>,
    /// Of an event: process items that came, and that did not.
    #[serde(flatten)]
    items: Option<event::Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<serde_json::Value>,
    took_ms: f64,
}

/// What to call, with what.
#[derive(Debug)]
struct Call<'a> {
    name: &'a str,
    payload: Payload,
    is_event: bool,
}

pub(crate) async fn run(
    args: CallArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let payload = argument(args.data.as_deref())?;
    let plan = Plan::new(&args.dial, args.target.target.as_ref())?;
    let session = Session::start(&plan, plan.target()?, |builder| builder).await?;
    let began = Instant::now();
    let mut call = Call {
        name: &args.name,
        payload,
        is_event: args.event,
    };
    let mut called = Called {
        name: &args.name,
        kind: "ability",
        app: None,
        items: None,
        result: None,
        took_ms: 0.0,
    };
    let answered = carry_out(&mut call, &mut called, &session, &plan, output, interrupt).await;
    called.took_ms = millis(began.elapsed());
    let told = tell(answered, &mut called, output);
    session.close(interrupt).await;
    told
}

async fn carry_out(
    call: &mut Call<'_>,
    called: &mut Called<'_>,
    session: &Session,
    plan: &Plan,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<Payload, Stop> {
    let deadline = plan.deadline();
    let peer = tokio::select! {
        biased;
        peer = session.connect(deadline) => peer?,
        () = interrupt.times(1) => return Err(Failure::interrupted("connect").into()),
    };
    called.app = Some(peer.as_str().to_owned());
    call.is_event |= is_declared_event(session, &peer, call.name);
    if call.is_event {
        called.kind = "event";
        let mut items = event::Items::default();
        let answered = event::run(call, &peer, session, plan, &mut items, output, interrupt).await;
        called.items = Some(items);
        return answered;
    }
    let request = session
        .node
        .request_raw(&peer, call.name, call.payload.clone());
    tokio::select! {
        biased;
        answered = session.answer("call", deadline, request) => Ok(answered?),
        () = interrupt.times(1) => Err(Failure::interrupted("call").into()),
    }
}

/// Whether the name is that of an event and of no ability.
fn is_declared_event(session: &Session, peer: &AppId, name: &str) -> bool {
    session.node.link(peer).is_some_and(|link| {
        let has = |entries: &[nacp::Entry]| entries.iter().any(|entry| entry.name == name);
        has(&link.decl.events) && !has(&link.decl.abilities)
    })
}

fn tell(
    answered: Result<Payload, Stop>,
    called: &mut Called<'_>,
    output: &mut Output,
) -> Result<(), Stop> {
    match answered {
        Ok(payload) => {
            let result = value::shown(&payload);
            output.human(format_args!("{result:#}"))?;
            called.result = Some(result);
            Ok(output.document("call", called, None)?)
        }
        Err(Stop::Failed(failure)) => {
            output.document("call", called, Some(&failure))?;
            Err(Stop::Told(failure))
        }
        Err(stop) => Err(stop),
    }
}
