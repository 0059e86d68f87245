//! One look at a peer, with a verdict.

mod verdict;

use std::time::Duration;

use nacp::proto::AppId;

use crate::args::{CheckArgs, CheckFormat};
use crate::dial::{Plan, Session};
use crate::escape::escaped;
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Format, Output};

use verdict::{Level, Verdict};

pub(crate) async fn run(
    args: CheckArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let format = match (args.format, output.format()) {
        (Some(format), _) => format,
        (None, Format::Json | Format::Ndjson) => CheckFormat::Json,
        (None, Format::Human | Format::Csv) => CheckFormat::Text,
    };
    if format == CheckFormat::Json && output.is_human() {
        output.set_format(Format::Json);
    }
    let verdict = match judge(&args, interrupt).await {
        Ok(verdict) => verdict,
        Err(failure) if failure.exit == Exit::Usage && format != CheckFormat::Nagios => {
            return Err(failure.into());
        }
        Err(failure) => Verdict::unknown(&args, failure),
    };
    match format {
        CheckFormat::Text => output.plain(&verdict)?,
        CheckFormat::Json => output.document("check", &verdict, verdict.failure())?,
        CheckFormat::Nagios => {
            output.plain(verdict.nagios())?;
            return Err(Stop::Status(verdict.level().nagios()));
        }
        CheckFormat::Prometheus => output.plain(verdict.prometheus().trim_end())?,
    }
    match verdict.into_failure() {
        Some(failure) => Err(Stop::Told(failure)),
        None => Ok(()),
    }
}

async fn judge(args: &CheckArgs, interrupt: &Interrupt) -> Result<Verdict, Failure> {
    let plan = Plan::new(&args.dial, args.target.as_ref())?;
    let target = plan.target()?;
    let mut verdict = Verdict::new(args, target.to_string());
    let session = Session::start(&plan, target, |b| b.heartbeat_interval(None)).await?;
    let looked = tokio::select! {
        biased;
        looked = look(args, &session, &plan, &mut verdict) => looked,
        () = interrupt.times(1) => Err(Failure::interrupted("check")),
    };
    session.close(interrupt).await;
    if let Err(failure) = looked {
        verdict.fail(failure);
    }
    Ok(verdict)
}

async fn look(
    args: &CheckArgs,
    session: &Session,
    plan: &Plan,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let deadline = plan.deadline();
    let peer = session.connect(deadline).await?;
    verdict.connected(&peer);
    let mut slowest = Duration::ZERO;
    for _ in 0..args.count {
        let beat = session.node.heartbeat(&peer);
        slowest = slowest.max(session.answer("heartbeat", deadline, beat).await?);
    }
    verdict.measured(slowest);
    has_abilities(args, session, &peer)?;
    if let Some(limit) = args.critical.filter(|limit| slowest > *limit) {
        let message = format!("a beat took {slowest:?}, more than {limit:?}");
        return Err(Failure::new(Exit::SaidNo, "heartbeat", "too-slow", message));
    }
    if let Some(limit) = args.warn.filter(|limit| slowest > *limit) {
        verdict.raise(
            Level::Warning,
            format!("a beat took {slowest:?}, more than {limit:?}"),
        );
    }
    Ok(())
}

fn has_abilities(args: &CheckArgs, session: &Session, peer: &AppId) -> Result<(), Failure> {
    let decl = session
        .node
        .link(peer)
        .map(|link| link.decl)
        .unwrap_or_default();
    let lacks = |name: &&String| {
        decl.abilities
            .iter()
            .all(|known| known.name != name.as_str())
    };
    match args.ability.iter().find(lacks) {
        None => Ok(()),
        Some(name) => {
            let message = format!("{peer} does not declare the ability {}", escaped(name));
            Err(Failure::new(
                Exit::SaidNo,
                "introduce",
                "no-such-ability",
                message,
            ))
        }
    }
}
