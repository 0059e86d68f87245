//! `top` on a real terminal, and its frames elsewhere.

use std::io::{BufRead, BufReader};

use nacp::proto::{Body, MessageId, Outcome, Payload};

use insta::{assert_snapshot, with_settings};
use serde_json::{Value, json};

use crate::every;
use crate::support::fake_peer::FakePeer;
use crate::support::terminal::Terminal;
use crate::support::{Served, closed_port, command, finish, run, server, signal};

#[test]
fn top_shows_its_links_on_a_terminal_until_q() {
    let mut served = Served::start();
    let mut terminal = Terminal::start(&["top", &served.target, "-i", "100ms", "--as", "watcher"]);
    terminal.wait_for("nacp-cli-serve");
    let screen = terminal.screen();
    assert!(screen.contains("nacp-cli top  watcher  1 link"), "{screen}");
    for column in [
        "APP", "STATE", "RTT ms", "BACKLOG", "UNACKED", "IN/s", "OUT/s",
    ] {
        assert!(screen.contains(column), "{column} is not in {screen}");
    }
    terminal.wait_for("online");
    served.child().kill().unwrap();
    terminal.wait_for("offline");
    terminal.press("q");
    let (code, _) = terminal.finish();
    assert_eq!(code, 0);
}

#[test]
fn ctrl_c_on_the_terminal_ends_top_with_130_and_gives_the_screen_back() {
    let served = Served::start();
    let mut terminal = Terminal::start(&["top", &served.target, "-i", "100ms"]);
    terminal.wait_for("online");
    terminal.press("\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 130, "{screen}");
    assert!(!screen.contains("BACKLOG"), "{screen}");
}

#[test]
fn top_once_prints_one_frame() {
    let served = Served::start();
    let human = run(&["top", &served.target, "--once"]);
    assert_eq!(human.code, 0, "{human:?}");
    let lines: Vec<_> = human.stdout.lines().collect();
    assert!(
        lines[0].ends_with("OUT/s") && lines[1].contains("nacp-cli-serve"),
        "{human:?}"
    );
    let json = run(&["top", &served.target, "--once", "--json"]).json();
    assert_eq!(json["schema"], "nacp-cli/top/1");
    let link = &json["links"][0];
    assert_eq!(
        (&link["app"], &link["state"]),
        (&json!("nacp-cli-serve"), &json!("online"))
    );
    assert!(link["rtt_ms"].as_f64().unwrap() > 0.0, "{json}");
}

#[test]
fn top_in_a_pipe_prints_a_frame_a_line_and_wants_json_for_it() {
    let served = Served::start();
    assert_eq!(run(&["top", &served.target]).code, 2);
    let mut top = command();
    top.args(["top", &served.target, "--json", "-i", "10ms"]);
    let mut child = top.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = String::new();
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        let frame: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(frame["links"][0]["app"], "nacp-cli-serve");
        shown += &format!("{line}\n");
    }
    with_settings!({filters => every::FILTERS.to_vec(), omit_expression => true}, {
        assert_snapshot!("top_frames", shown);
    });
    signal(child.id(), "INT");
    lines.for_each(drop);
    assert_eq!(finish(child).code, 130);
}

#[test]
fn top_without_a_link_says_why() {
    let run = run(&["top", &closed_port().to_string(), "--once", "--json"]);
    assert_eq!(run.code, 3, "{run:?}");
}

#[test]
fn top_counts_what_was_dropped_by_its_reason() {
    let address = server(|stream| {
        stream.set_nodelay(true).unwrap();
        let mut peer = FakePeer::new(stream, "stray");
        let Some(app) = peer.accept() else { return };
        for _ in 0..2 {
            peer.send(
                &app,
                Body::Notify {
                    parent_id: MessageId::new("nothing-of-yours").unwrap(),
                    target_sub_name: "a:b".into(),
                    hit_sub_name: "a:b".into(),
                    payload: Payload::empty(),
                    seq: None,
                },
            );
        }
        peer.serve(|_| Some((Outcome::Ok, Payload::new(&true).unwrap())));
    });
    let target = format!("stray@{address}");
    let human = run(&["top", &target, "--once"]);
    assert!(human.stdout.contains("2  has-no-consumer"), "{human:?}");
    let json = run(&["top", &target, "--once", "--json"]).json();
    let reason = json!([{"reason": "has-no-consumer", "count": 2}]);
    assert_eq!(json["reasons"], reason);
}
