//! The links of a node, live.

mod frame;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use nacp::{Builder, NApp, Reconnect};
use tokio::time::{Instant, interval, timeout_at};

use crate::args::TopArgs;
use crate::dial::{Plan, Session};
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::Output;

use frame::Frame;
use screen::Screen;

pub(crate) async fn run(
    args: TopArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let plan = Plan::new(&args.dial, args.targets.first())?;
    if !args.once && !std::io::stdout().is_terminal() && output.is_human() {
        return Err(Failure::usage("standard output is no terminal")
            .hint("--once prints one frame; --json prints one a line")
            .into());
    }
    let mut session = start(&args, &plan).await?;
    let ended = tokio::select! {
        biased;
        ended = show(&args, &plan, &mut session, output) => ended,
        () = interrupt.times(1) => Err(Failure::interrupted("top").into()),
    };
    session.close(interrupt).await;
    ended
}

async fn start(args: &TopArgs, plan: &Plan) -> Result<Session, Failure> {
    let configure = |builder: Builder| {
        let beats = args.interval.max(Duration::from_millis(100));
        let builder = builder
            .reconnect(Reconnect::default())
            .heartbeat_interval(Some(beats));
        match &args.listen {
            Some(address) => builder.listen(address),
            None => builder,
        }
    };
    Session::start(plan, plan.target()?, configure).await
}

/// The first links must come about; later ones are made again for ever.
async fn connect(args: &TopArgs, plan: &Plan, session: &mut Session) -> Result<(), Failure> {
    let mut targets = args.targets.clone();
    if targets.is_empty() && args.listen.is_none() {
        targets.push(plan.target()?);
    }
    let deadline = plan.deadline();
    for target in targets {
        session.target = target;
        session.connect(deadline).await?;
    }
    Ok(())
}

async fn show(
    args: &TopArgs,
    plan: &Plan,
    session: &mut Session,
    output: &mut Output,
) -> Result<(), Stop> {
    connect(args, plan, session).await?;
    let node = &session.node;
    if args.once {
        measured(node, plan).await;
        let frame = Frame::take(node, None);
        for line in frame.lines() {
            output.human(line)?;
        }
        frame::head_row(output)?;
        frame.rows(output)?;
        return Ok(output.document("top", &frame, None)?);
    }
    if !output.is_human() {
        return stream(args, node, output).await;
    }
    let mut screen = Screen::open()?;
    let ended = live(args, node, &mut screen).await;
    screen.close();
    ended
}

/// Waits until each link has been measured once, or for a second.
async fn measured(node: &NApp, plan: &Plan) {
    for link in node.links() {
        let deadline = Instant::now() + Duration::from_secs(1).min(plan.timeout);
        let _ = timeout_at(deadline, node.heartbeat(&link.app)).await;
    }
}

async fn stream(args: &TopArgs, node: &NApp, output: &mut Output) -> Result<(), Stop> {
    let mut ticks = interval(args.interval);
    let mut before = None;
    frame::head_row(output)?;
    loop {
        ticks.tick().await;
        let frame = Frame::take(node, before.as_ref());
        frame.rows(output)?;
        output.record("top-frame", &frame)?;
        before = Some(frame);
    }
}

async fn live(args: &TopArgs, node: &NApp, screen: &mut Screen) -> Result<(), Stop> {
    let mut ticks = interval(args.interval);
    let mut before = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let frame = Frame::take(node, before.as_ref());
                screen.draw(&frame)?;
                before = Some(frame);
            }
            key = screen.key() => match key {
                'q' | '\u{1b}' => return Ok(()),
                '\u{3}' => return Err(Failure::interrupted("top").into()),
                _ => {}
            },
        }
    }
}
