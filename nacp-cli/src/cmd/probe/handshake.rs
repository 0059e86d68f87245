use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::stage::{Stage, Stages};
use crate::failure::Failure;
use crate::output::Output;
use crate::trace::{Answer, Connected, Seen, Trace};

/// Shows what a trace tells of the connection so far: `resolve` to `frame`.
pub(super) fn advance(stages: &mut Stages, trace: &Trace, output: &mut Output) -> io::Result<()> {
    let passed = connection(&trace.seen());
    show(passed, stages, output)
}

/// As [`advance`], when there is a link: `resolve` to `ack`.
pub(super) fn finish(stages: &mut Stages, trace: &Trace, output: &mut Output) -> io::Result<()> {
    let mut passed = connection(&trace.seen());
    passed.extend(register(&trace.seen()));
    passed.extend(ack(&trace.seen()));
    show(passed, stages, output)
}

/// As [`advance`], when there is none: up to the stage that failed.
pub(super) fn fail(
    stages: &mut Stages,
    trace: &Trace,
    failure: &Failure,
    output: &mut Output,
) -> io::Result<()> {
    let mut passed = connection(&trace.seen());
    passed.retain(|stage| stage.name != failure.stage);
    if failure.stage == "register" && passed.iter().all(|stage| stage.name != "frame") {
        let silent = Stage::ok("frame", None, "none has come");
        passed.push(silent.warn("the peer takes bytes and sends none"));
    }
    let took = time_in(&trace.seen(), failure.stage);
    passed.push(Stage::failed(failure, took));
    show(passed, stages, output)
}

/// The stage that is under way.
pub(super) fn current(trace: &Trace) -> &'static str {
    let seen = trace.seen();
    match (&seen.resolved, &seen.connected) {
        (None, _) => "resolve",
        (Some(_), None) => "connect",
        (Some(_), Some(_)) => "register",
    }
}

fn show(passed: Vec<Stage>, stages: &mut Stages, output: &mut Output) -> io::Result<()> {
    for stage in passed {
        if !stages.has(stage.name) {
            stages.push(stage, output)?;
        }
    }
    Ok(())
}

fn connection(seen: &Seen) -> Vec<Stage> {
    let steps = [resolve(seen), connect(seen), frame(seen)];
    steps.into_iter().map_while(|stage| stage).collect()
}

/// How long the stage went on that did not end well.
fn time_in(seen: &Seen, stage: &str) -> Option<Duration> {
    let from = match stage {
        "resolve" => seen.began,
        "connect" => seen.resolved.as_ref().map(|resolved| resolved.at),
        _ => seen
            .sent
            .or_else(|| seen.connected.as_ref().map(|connected| connected.at)),
    };
    let answered = seen.handshake.answer.as_ref().map(|answer| answer.at);
    let until = answered
        .filter(|_| stage == "register")
        .unwrap_or_else(Instant::now);
    from.map(|from| until.saturating_duration_since(from))
}

fn resolve(seen: &Seen) -> Option<Stage> {
    let resolved = seen.resolved.as_ref()?;
    let took = resolved.at.checked_duration_since(seen.began?);
    let addrs: Vec<_> = resolved.addrs.iter().map(SocketAddr::to_string).collect();
    Some(Stage::ok("resolve", took, addrs.join(", ")))
}

fn connect(seen: &Seen) -> Option<Stage> {
    let Connected {
        at,
        remote,
        local,
        failed,
    } = seen.connected.as_ref()?;
    let took = at.checked_duration_since(seen.resolved.as_ref()?.at);
    let from = local.map_or_else(String::new, |local| format!(" from {local}"));
    let stage = Stage::ok("connect", took, format!("{remote}{from}"));
    Some(match failed {
        0 => stage,
        _ => stage.warn(format!(
            "{failed} other address(es) of this name did not answer; each costs time at every dial"
        )),
    })
}

fn frame(seen: &Seen) -> Option<Stage> {
    let took = seen
        .handshake
        .first_message?
        .checked_duration_since(seen.sent?);
    Some(Stage::ok("frame", took, "NACT version 1"))
}

fn register(seen: &Seen) -> Option<Stage> {
    let Answer {
        at,
        app,
        outcome,
        version,
    } = seen.handshake.answer.as_ref()?;
    let took = at.checked_duration_since(seen.sent?);
    let info = outcome.as_ref().ok();
    let kind = match info.and_then(|info| info.instance) {
        Some(_) => "native",
        None => "foreign",
    };
    let gateway = match info.is_some_and(|info| info.is_gateway) {
        true => "a gateway",
        false => "no gateway",
    };
    let spoken = version.map_or_else(
        || "of an unknown version".to_owned(),
        |(major, minor)| format!("{major}.{minor}"),
    );
    let stage = Stage::ok(
        "register",
        took,
        format!("{app}, NACP {spoken}, {kind}, {gateway}"),
    );
    Some(match version {
        Some(_) => stage,
        None => stage.warn("its answer has no usable `v`; the protocol asks for {major, minor}"),
    })
}

fn ack(seen: &Seen) -> Option<Stage> {
    seen.handshake.answer.as_ref()?;
    let Some(at) = seen.handshake.ack else {
        let stage = Stage::ok("ack", None, "none came before the answer");
        return Some(
            stage.warn("the peer did not acknowledge the register, as the protocol asks for"),
        );
    };
    Some(Stage::ok("ack", at.checked_duration_since(seen.sent?), ""))
}
