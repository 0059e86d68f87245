//! One call of an ability.

use std::io::Read;
use std::time::Instant;

use nacp::Payload;
use serde::Serialize;

use crate::args::CallArgs;
use crate::dial::{Plan, Session};
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::latency::millis;
use crate::output::Output;
use crate::value;

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    app: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<serde_json::Value>,
    took_ms: f64,
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
    let mut app = None;
    let calling = async {
        let deadline = plan.deadline();
        let peer = session.connect(deadline).await?;
        app = Some(peer.as_str().to_owned());
        let call = session.node.request_raw(&peer, &args.name, payload);
        session.answer("call", deadline, call).await
    };
    let answered = tokio::select! {
        biased;
        answered = calling => answered,
        () = interrupt.times(1) => Err(Failure::interrupted("call")),
    };
    let mut called = Called {
        name: &args.name,
        app,
        result: None,
        took_ms: millis(began.elapsed()),
    };
    let told = tell(answered, &mut called, output);
    session.close(interrupt).await;
    told
}

fn tell(
    answered: Result<Payload, Failure>,
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
        Err(failure) => {
            output.document("call", called, Some(&failure))?;
            Err(Stop::Told(failure))
        }
    }
}

/// JSON, `@FILE`, or `-` for standard input.
fn argument(data: Option<&str>) -> Result<Payload, Failure> {
    let text = match data {
        None => return Ok(Payload::empty()),
        Some("-" | "@-") => standard_input()?,
        Some(data) => match data.strip_prefix('@') {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?,
            None => data.to_owned(),
        },
    };
    value::payload(&text).map_err(|error| Failure::usage(format!("the argument is {error}")))
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    match std::io::stdin().lock().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!(
            "cannot read standard input: {error}"
        ))),
    }
}
