//! Measuring a peer.

mod compare;
mod load;
mod measure;
mod result;

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nacp::proto::AppId;
use nacp::{Builder, NApp, Reconnect};
use tokio::runtime::Runtime;
use tokio::time::{timeout, timeout_at};

use crate::args::BenchArgs;
use crate::cmd::serve::Friend;
use crate::dial::{Plan, Session};
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Notes, Output};

use load::Load;
use measure::Measure;
use result::Measured;

pub(crate) async fn run(
    args: BenchArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let before = args.compare.as_deref().map(compare::read).transpose()?;
    let mut plan = Plan::new(&args.dial, args.target.as_ref())?;
    let far = match &plan.target {
        Some(_) => None,
        None => Some(Far::start().await?),
    };
    if let Some(far) = &far {
        plan.target = Some(far.friend.target()?);
    }
    let node = start(&plan).await?;
    let ended = measure(&args, &plan, &node, interrupt, output.notes()).await;
    // What is in flight is not waited for.
    let _ = timeout(Duration::from_millis(500), node.terminate()).await;
    node.terminate_now();
    drop(far);
    let (measured, is_whole) = ended?;
    for line in measured.lines() {
        output.human(line)?;
    }
    measured.rows(output)?;
    let failure = if is_whole {
        if let Some(path) = &args.save {
            compare::write(path, &measured)?;
        }
        before.and_then(|before| compare::compare(&before, &measured, args.max_regress))
    } else {
        Some(Failure::interrupted("bench"))
    };
    output.document("bench", &measured, failure.as_ref())?;
    match failure {
        Some(failure) => Err(Stop::Told(failure)),
        None => Ok(()),
    }
}

/// A peer inside this process, on threads of its own, as another process would have.
struct Far {
    friend: Friend,
    runtime: Option<Runtime>,
}

impl Far {
    async fn start() -> Result<Self, Failure> {
        let failure = |error: String| Failure::local("runtime", error);
        let runtime = crate::run::runtime().map_err(|error| failure(error.to_string()))?;
        let friend = runtime.spawn(Friend::embedded()).await;
        let friend = friend.map_err(|error| failure(error.to_string()))??;
        Ok(Self {
            friend,
            runtime: Some(runtime),
        })
    }
}

impl Drop for Far {
    /// A runtime must not be waited for inside of another.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Its connections are not looked into: that would be measured too.
async fn start(plan: &Plan) -> Result<NApp, Failure> {
    let mut builder = NApp::builder(plan.own.clone())
        .reconnect(Reconnect::off())
        .heartbeat_interval(None)
        .tcp(|options| options.connect_timeout(plan.connect_timeout));
    if let Some(secret) = &plan.auth {
        builder = builder.auth(secret.reveal());
    }
    builder
        .start()
        .await
        .map_err(|error| Failure::local("start", error.to_string()))
}

/// A link that nobody looks into, after one that was: if that fails, it is known why.
async fn connect(plan: &Plan, node: &NApp, interrupt: &Interrupt) -> Result<AppId, Failure> {
    let target = plan.target()?;
    let address = target.address.clone();
    let deadline = plan.deadline();
    let session = Session::start(plan, target, |builder: Builder| builder).await?;
    let looked = session.connect(deadline).await;
    session.close(interrupt).await;
    let wanted = nacp::Target::from(&address).expect(looked?);
    match timeout_at(deadline, node.connect(wanted).into_future()).await {
        Ok(Ok(peer)) => Ok(peer),
        Ok(Err(error)) => {
            let message = format!("the link did not come about again: {error}");
            Err(Failure::new(
                Exit::LinkLost,
                "register",
                "peer-gone",
                message,
            ))
        }
        Err(_) => Err(Failure::timed_out(
            "register",
            "the link did not come about again in time",
        )),
    }
}

/// What was measured, and whether for as long as was asked for.
async fn measure(
    args: &BenchArgs,
    plan: &Plan,
    node: &NApp,
    interrupt: &Interrupt,
    notes: Notes,
) -> Result<(Measured, bool), Failure> {
    let (peer, load) = tokio::select! {
        biased;
        prepared = prepare(args, plan, node, interrupt) => prepared?,
        () = interrupt.times(1) => return Err(Failure::interrupted("bench")),
    };
    let load = Arc::new(load);
    let bar = progress(args, notes);
    let measure = Measure {
        duration: args.duration,
        concurrency: args.concurrency.unwrap_or_else(|| load.concurrency()),
        rate: args.rate,
        limit: plan.timeout,
        bar: &bar,
    };
    let taken = measure.run(&load, interrupt).await?;
    bar.finish_and_clear();
    if taken.latency.summary().is_none() {
        return Err(Failure::interrupted("bench"));
    }
    let measured = Measured::new(args, &measure, &load, &peer, &taken);
    Ok((measured, taken.is_whole))
}

async fn prepare(
    args: &BenchArgs,
    plan: &Plan,
    node: &NApp,
    interrupt: &Interrupt,
) -> Result<(AppId, Load), Failure> {
    let peer = connect(plan, node, interrupt).await?;
    let load = timeout_at(plan.deadline(), Load::new(args, node, &peer)).await;
    let late = |_| Failure::timed_out("bench", "the peer does not begin");
    Ok((peer, load.map_err(late)??))
}

/// A bar on a terminal; nothing in a pipe.
fn progress(args: &BenchArgs, notes: Notes) -> ProgressBar {
    let length = u64::try_from(args.duration.as_millis()).unwrap_or(u64::MAX);
    let bar = ProgressBar::new(length);
    if !notes.has_progress() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {msg}") {
        bar.set_style(style);
    }
    bar
}
