//! The diagnosis of a peer, stage by stage.

mod bug_report;
mod handshake;
mod link;
mod report;
mod resume;
mod stage;
mod stages;

use std::fs;
use std::path::Path;

use nacp::Payload;
use tokio::time::sleep;

use crate::args::ProbeArgs;
use crate::argument::argument;
use crate::cmd::serve::Friend;
use crate::dial::Plan;
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Output, Tone};

use report::Report;
use stages::Probe;

/// What to probe, and how far to go.
#[derive(Debug)]
struct Scope {
    plan: Plan,
    embedded: bool,
    /// Heartbeat round trips.
    count: u32,
    call: Option<Call>,
    resume: bool,
}

#[derive(Debug)]
struct Call {
    name: String,
    payload: Payload,
}

pub(crate) async fn run(
    args: ProbeArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let mut scope = Scope::new(&args)?;
    let friend = match &scope.plan.target {
        Some(_) => None,
        None => Some(Friend::embedded().await?),
    };
    if let Some(friend) = &friend {
        scope.plan.target = Some(friend.target()?);
        scope.embedded = true;
    }
    output.row(&[&"stage", &"status", &"ms", &"detail", &"hint"])?;
    let Some(pause) = args.watch else {
        return once(&scope, args.report.as_deref(), output, interrupt).await;
    };
    let (mut made, mut failed) = (0_u64, 0_u64);
    loop {
        let ended = once(&scope, args.report.as_deref(), output, interrupt).await;
        let is_last = match ended {
            Ok(()) => false,
            Err(Stop::Told(failure)) if failure.exit == Exit::Interrupted => true,
            Err(Stop::Told(failure)) if !failure.ends_everything() => {
                failed += 1;
                false
            }
            Err(stop) => return Err(stop),
        };
        made += u64::from(!is_last);
        let is_over = is_last
            || tokio::select! {
                () = sleep(pause) => false,
                () = interrupt.times(1) => true,
            };
        if is_over {
            output.human(format_args!("{made} probes, {failed} failed"))?;
            return Err(Stop::Told(Failure::interrupted("probe")));
        }
        output.human("")?;
    }
}

impl Scope {
    fn new(args: &ProbeArgs) -> Result<Self, Failure> {
        let call = match &args.ability {
            None => None,
            Some(name) => Some(Call {
                name: name.clone(),
                payload: argument(args.data.as_deref())?,
            }),
        };
        Ok(Self {
            plan: Plan::new(&args.dial, args.target.as_ref())?,
            embedded: false,
            count: args.count,
            call,
            resume: args.resume,
        })
    }
}

async fn once(
    scope: &Scope,
    report_to: Option<&Path>,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let target = scope.plan.target()?;
    let whose = if scope.embedded {
        ", a peer inside this process"
    } else {
        ""
    };
    output.human(format_args!("probing {target}{whose}"))?;
    let mut probe = Probe::start(scope, target).await?;
    let ended = tokio::select! {
        biased;
        ended = probe.go(output) => ended,
        () = interrupt.times(1) => probe.interrupted(output),
    };
    let report = Report::new(&probe, scope, ended.as_ref().err());
    probe.close(interrupt).await;
    let failure = match ended {
        Ok(()) => None,
        Err(Stop::Failed(failure)) => Some(failure),
        Err(stop) => return Err(stop),
    };
    if let Some(path) = report_to {
        write_to(path, &bug_report::text(&report, failure.as_ref()))?;
    }
    conclude(&report, failure, output)
}

fn write_to(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::local(
            "report",
            format!("cannot write {}: {error}", path.display()),
        )
    })
}

fn conclude(report: &Report, failure: Option<Failure>, output: &mut Output) -> Result<(), Stop> {
    let Some(failure) = failure else {
        let (tone, verdict) = match report.warnings() {
            0 => (Tone::Good, "the peer is well".to_owned()),
            1 => (
                Tone::Doubtful,
                "the peer answers, with 1 warning".to_owned(),
            ),
            many => (
                Tone::Doubtful,
                format!("the peer answers, with {many} warnings"),
            ),
        };
        output.human(format_args!(
            "{}, {:.1} ms in all",
            tone.paint(verdict),
            report.took_ms()
        ))?;
        return Ok(output.document("probe", report, None)?);
    };
    output.human(format_args!(
        "{} at {}, exit code {}: {}",
        Tone::Bad.paint("FAIL"),
        failure.stage,
        failure.exit.number(),
        failure.exit.meaning()
    ))?;
    output.document("probe", report, Some(&failure))?;
    Err(Stop::Told(failure))
}
