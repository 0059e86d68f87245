//! `serve`: where it listens, what it reports, and who may not come in twice.

use std::io::{BufRead, BufReader};

use nacp::Payload;

use crate::support::native::NativePeer;
use crate::support::{Served, command, finish, run, signal};

#[test]
fn serve_tells_where_it_listens_in_a_form_that_can_be_dialled() {
    for listen in [
        "127.0.0.1:0",
        "[::1]:0",
        "0.0.0.0:0",
        "[::]:0",
        "localhost:0",
    ] {
        let served = Served::start_with(&[listen, "--as", "a@b"]);
        assert!(served.target.starts_with("a@b@"), "{}", served.target);
        let run = run(&["ping", "-n", "1", &served.target]);
        assert_eq!(run.code, 0, "{listen} {run:?}");
    }
}

#[test]
fn serve_reports_links_as_json_lines() {
    let mut serve = command();
    serve.args(["serve", "127.0.0.1:0", "--json"]);
    let mut child = serve.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let listening = next();
    assert_eq!(listening["schema"], "nacp-cli/serve-event/1");
    assert_eq!(listening["event"], "listening");
    let target = listening["target"].as_str().unwrap();
    assert_eq!(run(&["ping", "-n", "1", target, "--as", "visitor"]).code, 0);
    let (online, dropped) = (next(), next());
    assert_eq!(
        (&online["app"], &online["state"]),
        (&"visitor".into(), &"online".into())
    );
    assert_eq!(
        (&dropped["app"], &dropped["state"]),
        (&"visitor".into(), &"dropped".into())
    );
    signal(child.id(), "INT");
    assert_eq!(finish(child).code, 130);
}

#[test]
fn a_port_in_use_is_a_local_problem() {
    let served = Served::start();
    let run = run(&["serve", served.address()]);
    assert_eq!(run.code, 8, "{run:?}");
    assert!(run.stderr.contains("cannot listen"), "{run:?}");
}

#[test]
fn two_runs_under_one_app_id_are_told_so() {
    let served = Served::start();
    let mut first = command()
        .args(["ping", &served.target, "--as", "twin"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("seq=1") {}
    let second = run(&[
        "call",
        "echo",
        "-t",
        &served.target,
        "--as",
        "twin",
        "--json",
    ]);
    signal(first.id(), "INT");
    assert_eq!(finish(first).code, 130);
    assert_eq!(second.code, 4, "{second:?}");
    assert_eq!(second.json()["error"]["reason"], "appId-in-use");
    assert!(
        second.json()["error"]["heals"]
            .as_str()
            .unwrap()
            .contains("2 s"),
        "{second:?}"
    );
}

#[test]
fn serve_is_slow_or_fails_if_it_is_asked_to() {
    let slow = Served::start_with(&["127.0.0.1:0", "--latency", "50ms"]);
    let call = run(&["call", "echo", "-t", &slow.target, "--json"]);
    assert!(call.json()["took_ms"].as_f64().unwrap() >= 50.0, "{call:?}");
    let failing = Served::start_with(&["127.0.0.1:0", "--error-rate", "100%"]);
    let call = run(&["call", "echo", "-t", &failing.target]);
    assert_eq!(call.code, 1, "{call:?}");
    assert!(call.stderr.contains("as --error-rate asks for"), "{call:?}");
}

#[test]
fn serve_forwards_between_its_apps_as_a_gateway() {
    let gateway = Served::start_with(&["127.0.0.1:0", "--gateway"]);
    let probe = run(&["probe", &gateway.target, "--json"]);
    assert_eq!(probe.json()["peer"]["gateway"], true, "{probe:?}");
    let near = NativePeer::start("near", |builder| builder);
    let far = NativePeer::start("far", |builder| {
        builder.ability_raw("mirror", async |_, payload| Ok(payload))
    });
    for peer in [&near, &far] {
        let connecting = peer.node.connect(gateway.address());
        peer.runtime.block_on(async { connecting.await.unwrap() });
    }
    let sent = Payload::new(&7).unwrap();
    let request = near.node.request_raw("far", "mirror", sent.clone());
    let answer = near.runtime.block_on(async { request.await.unwrap() });
    assert_eq!(answer, sent);
}
