//! Events: started by `call`, heard by `sub`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use nacp::Builder;
use nacp::proto::{Body, Instance, MessageType, Outcome, Payload, PeerInfo, Registered, Session};

use crate::support::fake_peer::FakePeer;
use crate::support::native::NativePeer;
use crate::support::terminal::Terminal;
use crate::support::{Served, command, finish, run, server, signal};

/// What is waited for comes within this time.
const PATIENCE: Duration = Duration::from_secs(30);

type Lines = std::io::Lines<BufReader<ChildStdout>>;

fn start(args: &[&str]) -> (Child, Lines) {
    let mut child = command().args(args).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn line(lines: &mut Lines) -> String {
    lines.next().unwrap().unwrap()
}

fn document(lines: &mut Lines) -> Value {
    serde_json::from_str(&line(lines)).unwrap()
}

#[test]
fn call_of_an_event_shows_its_items_and_then_its_answer() {
    let served = Served::start();
    let args = [
        "call",
        "-t",
        &served.target,
        "countdown",
        "-d",
        r#"{"from":2,"ms":1}"#,
    ];
    let human = run(&args);
    assert_eq!(human.code, 0, "{human:?}");
    let items = "{\"left\":2}\n{\"left\":1}\n{\"left\":0}\n";
    assert_eq!(human.stdout, format!("{items}{{\n  \"counted\": 3\n}}\n"));
    let json = run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(
        (&json["kind"], &json["item_count"]),
        (&json!("event"), &json!(3))
    );
    assert_eq!(
        (&json["missed"], &json["result"]),
        (&json!(0), &json!({"counted": 3}))
    );
    let lines = run(&[&args[..], &["-o", "ndjson"]].concat()).json_lines();
    let schemas: Vec<_> = lines
        .iter()
        .map(|line| line["schema"].as_str().unwrap())
        .collect();
    let item = "nacp-cli/call-item/1";
    assert_eq!(schemas, [item, item, item, "nacp-cli/call/1"]);
    assert_eq!(lines[0]["item"], json!({"left": 2}));
}

#[test]
fn ctrl_c_aborts_an_event_and_its_answer_makes_the_code_1() {
    let served = Served::start();
    let argument = r#"{"from":1000000,"ms":1}"#;
    let (child, mut lines) = start(&["call", "-t", &served.target, "countdown", "-d", argument]);
    assert_eq!(line(&mut lines), r#"{"left":1000000}"#);
    signal(child.id(), "INT");
    lines.for_each(drop);
    let run = finish(child);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("aborted by the caller"), "{run:?}");
}

#[test]
fn an_event_that_falls_silent_times_out() {
    let served = Served::start();
    let argument = r#"{"from":1,"ms":600000}"#;
    let call = ["call", "-t", &served.target, "countdown", "-d", argument];
    let run = run(&[&call[..], &["--timeout", "500ms"]].concat());
    assert_eq!(run.code, 5, "{run:?}");
    assert_eq!(run.stdout, "{\"left\":1}\n");
    assert!(run.took < Duration::from_millis(2500), "{run:?}");
}

#[test]
fn keys_pause_resume_and_abort_an_event_in_a_terminal() {
    let served = Served::start();
    let argument = r#"{"from":100000000,"ms":1}"#;
    let mut terminal =
        Terminal::start(&["call", "-t", &served.target, "countdown", "-d", argument]);
    terminal.wait_for("p pause, r resume, a abort");
    terminal.wait_for(r#"{"left":99999"#);
    terminal.press("p");
    terminal.wait_for("paused");
    terminal.press("r");
    terminal.wait_for("resumed");
    terminal.press("a");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("aborted by the caller"), "{screen}");
}

#[test]
fn sub_prints_what_a_peer_emits_until_it_has_enough() {
    let served = Served::start();
    let args = ["sub", "-t", &served.target, "clock:*", "-n", "2"];
    let human = run(&args);
    assert_eq!(human.code, 0, "{human:?}");
    let names: Vec<_> = human
        .stdout
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["clock:tick", "clock:tick"]);
    assert!(human.stderr.contains("2 events, 0 missed"), "{human:?}");
    let lines = run(&[&args[..], &["--json"]].concat()).json_lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["schema"], "nacp-cli/sub-event/1");
    assert_eq!(
        (&lines[0]["app"], &lines[0]["name"]),
        (&json!("nacp-cli-serve"), &json!("clock:tick"))
    );
    let template = run(&[
        &args[..4],
        &["-n", "1", "--format", "{app}/{name} via {pattern}"],
    ]
    .concat());
    assert_eq!(template.stdout, "nacp-cli-serve/clock:tick via clock:*\n");
}

#[test]
fn sub_stops_after_silence() {
    let served = Served::start();
    let run = run(&[
        "sub",
        "-t",
        &served.target,
        "nothing:here",
        "--idle",
        "100ms",
    ]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.stderr.contains("nothing came within 100ms"), "{run:?}");
}

#[test]
fn a_pattern_that_may_not_be_heard_is_refused_with_its_reason() {
    let served = Served::start();
    let run = run(&["sub", "-t", &served.target, "nacp:internal:*:*", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.json()["error"]["reason"], "not-exposed");
}

#[test]
fn t31_sub_ends_with_6_when_the_peer_says_good_bye() {
    let mut served = Served::start();
    let (child, mut lines) = start(&["sub", "-t", &served.target, "clock:*", "--json"]);
    assert_eq!(document(&mut lines)["name"], "clock:tick");
    signal(served.child().id(), "INT");
    lines.for_each(drop);
    let run = finish(child);
    assert_eq!(run.code, 6, "{run:?}");
}

#[test]
fn sub_survives_a_restart_of_the_peer_and_says_so() {
    let mut served = Served::start();
    let address = served.address().to_owned();
    let mut sub = command();
    sub.args(["sub", "-t", &served.target, "clock:*", "--json"]);
    let mut child = sub.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    document(&mut lines);
    served.child().kill().unwrap();
    let mut note = |what: &str| while !notes.next().unwrap().unwrap().contains(what) {};
    note("is offline; reconnecting");
    let _again = Served::start_with(&[&address]);
    note("is back, without what it knew of this link");
    assert_eq!(document(&mut lines)["name"], "clock:tick");
    signal(child.id(), "INT");
    lines.for_each(drop);
    assert_eq!(finish(child).code, 130);
}

#[test]
fn sub_says_that_the_session_is_lost_where_the_peer_is_the_same_instance() {
    let connections = AtomicU8::new(0);
    let address = server(move |stream| {
        let nth = connections.fetch_add(1, Ordering::SeqCst);
        let mut peer = FakePeer::new(stream, "forgetful");
        peer.accept_as(Registered {
            info: PeerInfo {
                instance: Some(Instance([7; 16])),
                max_message_bytes: Some(1 << 20),
                ..PeerInfo::default()
            },
            session: Some(Session([nth; 16])),
            resumed: Some(false),
        });
        if nth > 0 {
            peer.refuse_subscriptions("limit-reached");
            return peer.serve(|_| None);
        }
        while let Some(message) = peer.recv() {
            peer.ack(&message);
            if matches!(message.body, Body::Subscribe { .. }) {
                peer.answer(&message, Outcome::Ok, Payload::empty());
                return;
            }
        }
    });
    let target = format!("forgetful@{address}");
    let run = run(&["sub", "-t", &target, "clock:*", "--json"]);
    let back = "forgetful is back, without what it knew of this link; subscribing again\n";
    assert!(run.stderr.contains(back), "{run:?}");
    assert!(!run.stderr.contains("new instance"), "{run:?}");
    assert_eq!(run.code, 1, "{run:?}");
    let error = &run.json()["error"];
    assert_eq!(error["reason"], "limit-reached");
    let message = "clock:* has ended: forgetful refused to subscribe it again: limit-reached";
    assert_eq!(error["message"], message);
    assert_eq!(run.stderr.matches(message).count(), 1, "{run:?}");
}

/// A pattern that only a peer with `expose_internal_events` grants.
const GUARDED: &str = "nacp:internal:gateway:error";

#[test]
fn sub_tells_a_pattern_that_is_refused_after_a_restart_and_goes_on_with_the_others() {
    let first = NativePeer::start("narrow", Builder::expose_internal_events);
    let address = first.address();
    let mut sub = command();
    sub.args(["sub", "-t", &first.target(), "job:done", GUARDED]);
    let mut child = sub
        .args(["-n", "1", "--idle", "30s", "--json"])
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut told = |what: &str| loop {
        let line = errors.next().unwrap().unwrap();
        if line.contains(what) {
            return line;
        }
    };
    told("listening at narrow");
    first.node.terminate_now();
    drop(first);
    let second = NativePeer::start("narrow", |builder| builder.listen(&address));
    let ended = format!("{GUARDED} has ended: narrow refused to subscribe it again: not-exposed");
    assert_eq!(told(" has ended"), format!("error: {ended}"));
    assert_eq!(second.node.emit("job:done", &7).unwrap(), 1);
    let run = finish(child);
    assert_eq!(run.code, 1, "{run:?}");
    let lines = run.json_lines();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert_eq!(
        (&lines[0]["name"], &lines[0]["payload"]),
        (&json!("job:done"), &json!(7))
    );
    assert_eq!(
        (&lines[1]["schema"], &lines[1]["exit"]),
        (&json!("nacp-cli/sub/1"), &json!(1))
    );
    assert_eq!(lines[1]["error"]["reason"], "not-exposed");
    assert_eq!(lines[1]["error"]["message"], ended);
}

#[test]
fn sub_of_several_patterns_tells_each_that_the_end_of_the_link_ends() {
    let mut served = Served::start();
    let patterns = ["clock:*", "job:*"];
    let (child, mut lines) =
        start(&[&["sub", "--quiet", "-t", &served.target][..], &patterns].concat());
    line(&mut lines);
    signal(served.child().id(), "INT");
    lines.for_each(drop);
    let run = finish(child);
    assert_eq!(run.code, 6, "{run:?}");
    for pattern in patterns {
        let told = format!("error: {pattern} has ended: the link to nacp-cli-serve is dropped");
        assert!(run.stderr.contains(&told), "{run:?}");
    }
}

#[test]
fn t32_sub_ends_when_the_reader_of_its_pipe_has_gone() {
    let served = Served::start();
    for form in [&[][..], &["--json"], &["-o", "csv"]] {
        let (child, mut lines) = start(&[&["sub", "-t", &served.target, "clock:*"], form].concat());
        line(&mut lines);
        drop(lines);
        let run = finish(child);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(!run.stderr.contains("panicked"), "{run:?}");
    }
}

#[test]
fn t32_a_reader_that_sleeps_slows_the_output_and_not_the_link() {
    let served = Served::start();
    let argument = r#"{"from":3000000,"ms":0}"#;
    let mut call = command();
    call.args([
        "call",
        "-t",
        &served.target,
        "--as",
        "reader",
        "countdown",
        "-d",
        argument,
    ]);
    call.stderr(Stdio::null());
    let mut child = call.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 64]).unwrap();
    // Nothing is read any more: its output is stuck, and the peer finds its link as it was.
    let alive = run(&[
        "call",
        "-t",
        &served.target,
        "--as",
        "reader",
        "echo",
        "--json",
    ]);
    assert_eq!(alive.code, 4, "{alive:?}");
    assert_eq!(alive.json()["error"]["reason"], "appId-in-use");
    drop(stdout);
    assert_eq!(finish(child).code, 0);
}

#[test]
fn an_event_that_does_not_answer_an_abort_is_left_by_a_second_ctrl_c_and_ends_with_130() {
    for form in [&[][..], &["--json"]] {
        let (sender, came) = std::sync::mpsc::channel();
        let address = server(move |stream| {
            let mut peer = FakePeer::new(stream, "stubborn");
            peer.accept();
            while let Some(message) = peer.recv() {
                peer.ack(&message);
                sender.send(message.message_type()).unwrap();
            }
        });
        let target = format!("stubborn@{address}");
        let mut call = command();
        call.args(["call", "-t", &target, "work", "--event"])
            .args(form);
        let child = call.spawn().unwrap();
        let wait_for = |wanted| while came.recv_timeout(PATIENCE).unwrap() != wanted {};
        wait_for(MessageType::Request);
        signal(child.id(), "INT");
        wait_for(MessageType::Signal);
        signal(child.id(), "INT");
        let run = finish(child);
        assert_eq!(run.code, 130, "{run:?}");
        assert!(run.took < Duration::from_secs(2), "{run:?}");
        assert!(run.stderr.contains("aborting; Ctrl-C once more leaves it"));
        if !form.is_empty() {
            assert_eq!(run.json()["exit"], 130);
        }
    }
}

#[test]
fn what_a_payload_says_does_not_reach_the_terminal_as_a_command() {
    let served = Served::start();
    let data = "\"a\u{9b}2J\u{202e}\"";
    for form in [&[][..], &["--json"]] {
        let args = ["call", "-t", &served.target, "echo", "-d", data];
        let run = run(&[&args[..], form].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.contains(r"a\u009b2J\u202e"), "{run:?}");
    }
}
