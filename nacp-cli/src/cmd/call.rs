//! One call of an ability.

use std::time::Instant;

use nacp::Payload;
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
