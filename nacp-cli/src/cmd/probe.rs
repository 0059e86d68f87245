//! The diagnosis of a peer, stage by stage.

mod handshake;
mod report;
mod stage;
mod stages;

use crate::args::ProbeArgs;
use crate::cmd::serve::Friend;
use crate::dial::Plan;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Output, Tone};

use report::Report;
use stages::Probe;

pub(crate) async fn run(
    args: ProbeArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let mut plan = Plan::new(&args.dial, args.target.as_ref())?;
    let friend = match &plan.target {
        Some(_) => None,
        None => Some(Friend::embedded().await?),
    };
    if let Some(friend) = &friend {
        plan.target = Some(friend.target()?);
    }
    let target = plan.target()?;
    let whose = if friend.is_some() {
        ", a peer inside this process"
    } else {
        ""
    };
    output.human(format_args!("probing {target}{whose}"))?;
    let mut probe = Probe::start(&plan, target, args.count).await?;
    let ended = tokio::select! {
        biased;
        ended = probe.go(output) => ended,
        () = interrupt.times(1) => probe.interrupted(output),
    };
    let report = Report::new(&probe, &plan, friend.is_some(), ended.as_ref().err());
    let failure = match ended {
        Ok(()) => Ok(()),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(other) => {
            probe.close(interrupt).await;
            return Err(other);
        }
    };
    probe.close(interrupt).await;
    conclude(&report, failure, output)
}

fn conclude(report: &Report, ended: Result<(), Failure>, output: &mut Output) -> Result<(), Stop> {
    match ended {
        Ok(()) => {
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
            Ok(output.document("probe", report, None)?)
        }
        Err(failure) => {
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
    }
}
