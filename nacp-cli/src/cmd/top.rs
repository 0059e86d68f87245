//! The links of a node, live.

mod frame;
mod screen;

use std::future::IntoFuture;
use std::io::IsTerminal;
use std::time::Duration;

use nacp::{NApp, Reconnect};
use tokio::time::{Instant, interval, timeout, timeout_at};

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
    let node = start(&args, &plan).await?;
    let ended = tokio::select! {
        biased;
        ended = show(&args, &plan, &node, output) => ended,
        () = interrupt.times(1) => Err(Failure::interrupted("top").into()),
    };
    let _ = timeout(Duration::from_millis(800), node.terminate()).await;
    node.terminate_now();
    ended
}

async fn start(args: &TopArgs, plan: &Plan) -> Result<NApp, Failure> {
    let mut builder = NApp::builder(plan.own.clone())
        .reconnect(Reconnect::default())
        .heartbeat_interval(Some(args.interval.max(Duration::from_millis(100))))
        .tcp(|options| options.connect_timeout(plan.connect_timeout));
    if let Some(address) = &args.listen {
        builder = builder.listen(address);
    }
    if let Some(secret) = &plan.auth {
        builder = builder.auth(secret.reveal());
    }
    builder
        .start()
        .await
        .map_err(|error| Failure::local("start", error.to_string()))
}

/// The first links must come about; later ones are made again for ever.
async fn connect(args: &TopArgs, plan: &Plan, node: &NApp) -> Result<(), Failure> {
    let mut targets = args.targets.clone();
    if targets.is_empty() && args.listen.is_none() {
        targets.push(plan.target()?);
    }
    let deadline = plan.deadline();
    for target in targets {
        let mut wanted = nacp::Target::from(&target.address);
        if let Some(app) = &target.app {
            wanted = wanted.expect(app.clone());
        }
        let connecting = node.connect(wanted).into_future();
        if !matches!(timeout_at(deadline, connecting).await, Ok(Ok(_))) {
            // Once more, to be told what is wrong.
            let again = Plan {
                timeout: Duration::from_secs(1).min(plan.timeout),
                ..plan.clone()
            };
            let session = Session::start(&again, target, |builder| builder).await?;
            session.connect(again.deadline()).await?;
        }
    }
    Ok(())
}

async fn show(args: &TopArgs, plan: &Plan, node: &NApp, output: &mut Output) -> Result<(), Stop> {
    connect(args, plan, node).await?;
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
