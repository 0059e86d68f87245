//! The binary against a peer that is well: what it prints, in each form.

use crate::support::fake_peer::FakePeer;
use crate::support::{Served, command, finish, run, run_with_input, server, signal};

use insta::{assert_snapshot, with_settings};
use nacp::proto::{Outcome, Payload};
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// What differs from run to run, made alike.
const FILTERS: [(&str, &str); 6] = [
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"nacp-cli-[0-9a-f]{8}\b", "nacp-cli-RANDOM"),
    (r" +\d+\.\d{3} ms  ", "  TIME ms  "),
    (r"\d+\.\d+ ms", "TIME ms"),
    (r"(min|p50|p99|max) \d+\.\d+", "$1 TIME"),
    (r#"("(?:[a-z0-9]+_)?ms": )\d+(\.\d+)?(e-\d+)?"#, "${1}TIME"),
];

macro_rules! assert_output {
    ($name:literal, $output:expr) => {
        with_settings!({filters => FILTERS.to_vec(), omit_expression => true}, {
            assert_snapshot!($name, $output);
        });
    };
}

#[test]
fn probe_without_a_target_probes_a_peer_of_its_own() {
    let human = run(&["probe"]);
    assert_eq!((human.code, human.stderr.as_str()), (0, ""), "{human:?}");
    assert_output!("probe_human", human.stdout);
    let json = run(&["probe", "--json"]);
    assert_eq!((json.code, json.stderr.as_str()), (0, ""), "{json:?}");
    assert_output!("probe_json", json.stdout);
}

#[test]
fn probe_learns_the_name_of_a_peer_and_ends_with_a_good_bye() {
    let served = Served::start();
    let run = run(&["probe", served.address(), "--json", "-n", "3"]);
    assert_eq!(run.code, 0, "{run:?}");
    let document = run.json();
    assert_eq!(document["peer"]["app"], "nacp-cli-serve");
    assert_eq!(document["embedded"], false);
    assert_eq!(document["heartbeat"]["count"], 3);
    let stages = document["stages"].as_array().unwrap().iter();
    let names: Vec<_> = stages
        .clone()
        .map(|stage| stage["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "resolve",
            "connect",
            "frame",
            "register",
            "ack",
            "introduce",
            "heartbeat",
            "subscribe",
            "good-bye"
        ]
    );
    assert!(
        stages.clone().all(|stage| stage["status"] == "ok"),
        "{document}"
    );
}

#[test]
fn a_failed_probe_shows_what_it_found_in_both_forms() {
    let address = server(|stream| FakePeer::new(stream, "strict").refuse("appId-in-use"));
    let target = format!("strict@{address}");
    let human = run(&["probe", &target]);
    assert_output!("probe_refused_human", human.stdout);
    assert_output!("probe_refused_stderr", human.stderr);
    assert_output!(
        "probe_refused_json",
        run(&["probe", &target, "--json"]).stdout
    );
}

#[test]
fn a_foreign_peer_without_an_ack_gets_a_warning() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "old");
        if let Some(register) = peer.recv() {
            let registered = nacp::proto::Registered {
                info: nacp::proto::PeerInfo::default(),
                session: None,
                resumed: None,
            };
            peer.answer(&register, Outcome::Ok, registered.to_payload());
        }
        peer.serve(|target| {
            let payload = match target {
                "NApp.heartbeat" => Payload::new(&true).unwrap(),
                _ => Payload::new(&nacp::Decl::default()).unwrap(),
            };
            Some((Outcome::Ok, payload))
        });
    });
    let run = run(&["probe", &format!("old@{address}"), "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let document = run.json();
    assert_eq!(document["peer"]["native"], false);
    assert_eq!(document["stages"][4]["name"], "ack");
    assert_eq!(document["stages"][4]["status"], "warn");
}

#[test]
fn an_ability_name_with_control_characters_is_shown_escaped() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "a\u{1b}]0;x\u{7}b");
        peer.accept();
        peer.serve(|target| {
            let entry = nacp::Entry {
                name: "rm\u{1b}[2J".into(),
                description: "".into(),
            };
            let decl = nacp::Decl {
                abilities: vec![entry],
                ..nacp::Decl::default()
            };
            Some((
                Outcome::Ok,
                match target {
                    "NApp.heartbeat" => Payload::new(&true).unwrap(),
                    _ => Payload::new(&decl).unwrap(),
                },
            ))
        });
    });
    for args in [&["probe"][..], &["probe", "--json"], &["ping", "-n", "1"]] {
        let run = run(&[args, &[&address.to_string()]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert!(
            !run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'),
            "{run:?}"
        );
    }
    let human = run(&["probe", &address.to_string()]);
    assert!(human.stdout.contains(r"rm\u{1b}[2J"), "{human:?}");
}

#[test]
fn a_peer_that_does_not_answer_a_beat_times_out_at_the_heartbeat() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "deaf");
        peer.accept();
        peer.serve(|target| match target {
            "NApp.introduce" => Some((Outcome::Ok, Payload::new(&nacp::Decl::default()).unwrap())),
            _ => None,
        });
    });
    let run = run(&["probe", &address.to_string(), "--timeout", "1s", "--json"]);
    assert_eq!(run.code, 5, "{run:?}");
    assert_eq!(run.json()["failed"], "heartbeat");
    assert!(run.took < Duration::from_secs(2), "{run:?}");
}

#[test]
fn a_peer_that_closes_in_the_middle_loses_the_link_at_that_stage() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "brief");
        peer.accept();
        while let Some(message) = peer.recv() {
            if message.message_type().as_str() == "request" {
                return;
            }
        }
    });
    let run = run(&["probe", &address.to_string(), "--json"]);
    assert_eq!(run.code, 6, "{run:?}");
    assert_eq!(run.json()["failed"], "introduce");
}

#[test]
fn call_prints_the_answer_and_nothing_else() {
    let served = Served::start();
    let call = |args: &[&str]| run(&[&["call", "-t", &served.target], args].concat());
    let added = call(&["add", "-d", r#"{"a":1,"b":2}"#]);
    assert_eq!(
        (added.code, added.stdout.as_str(), added.stderr.as_str()),
        (0, "3\n", "")
    );
    assert_output!(
        "call_json",
        call(&["add", "-d", r#"{"a":1,"b":2.5}"#, "--json"]).stdout
    );
    let echoed = call(&["echo", "-d", r#"{"$bytes":"00ff"}"#]);
    assert_eq!(echoed.stdout, "{\n  \"$bytes\": \"00ff\"\n}\n");
    assert_eq!(
        call(&["sink", "-d", r#"{"$bytes":"00ff"}"#]).stdout,
        "{\n  \"bytes\": 2\n}\n"
    );
    assert_eq!(call(&["sleep", "-d", r#"{"ms":1}"#]).code, 0);
}

#[test]
fn call_takes_its_argument_from_standard_input_and_from_a_file() {
    let served = Served::start();
    let args = ["call", "-t", &served.target, "echo", "-d", "-"];
    let run = run_with_input(&args, b"[1, 2]");
    assert_eq!(run.stdout, "[\n  1,\n  2\n]\n", "{run:?}");
    let file = std::env::temp_dir().join(format!("nacp-cli-{}.json", std::process::id()));
    std::fs::write(&file, "\"from a file\"").unwrap();
    let at = format!("@{}", file.display());
    let from_file = crate::support::run(&["call", "-t", &served.target, "echo", "-d", &at]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(from_file.stdout, "\"from a file\"\n", "{from_file:?}");
}

#[test]
fn t31_a_peer_that_says_no_ends_with_1_and_tells_why() {
    let served = Served::start();
    for (args, reason, text) in [
        (&["fail"][..], "processor-failed", "as asked for"),
        (
            &["fail", "-d", r#"{"error":"on\u001b purpose"}"#],
            "processor-failed",
            r"on\u{1b} purpose",
        ),
        (
            &["nothing"],
            "processor-failed",
            "no ability handler registered",
        ),
        (
            &["add", "-d", "[]"],
            "processor-rejected",
            "cannot read the argument",
        ),
    ] {
        let args = [&["call", "-t", &served.target], args].concat();
        let human = run(&args);
        assert_eq!(human.code, 1, "{human:?}");
        assert_eq!(human.stdout, "");
        assert!(human.stderr.contains(text), "{text:?} is not in {human:?}");
        let json = run(&[&args[..], &["--json"]].concat());
        assert_eq!(json.code, 1, "{json:?}");
        assert_eq!(json.json()["error"]["reason"], reason);
    }
}

#[test]
fn t31_a_call_that_takes_too_long_ends_with_5_within_its_limit_and_a_second() {
    let served = Served::start();
    let args = [
        "call",
        "-t",
        &served.target,
        "sleep",
        "-d",
        r#"{"ms":60000}"#,
        "--timeout",
        "500ms",
    ];
    let run = run(&args);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.took < Duration::from_millis(1500), "{run:?}");
}

#[test]
fn ping_counts_and_sums_up_in_each_form() {
    let served = Served::start();
    let ping =
        |form: &[&str]| run(&[&["ping", &served.target, "-n", "3", "-i", "5ms"], form].concat());
    assert_output!("ping_human", ping(&[]).stdout);
    assert_output!("ping_json", ping(&["--json"]).stdout);
    let lines = ping(&["-o", "ndjson"]).json_lines();
    let schemas: Vec<_> = lines
        .iter()
        .map(|line| line["schema"].as_str().unwrap())
        .collect();
    let reply = "nacp-cli/ping-reply/1";
    assert_eq!(schemas, [reply, reply, reply, "nacp-cli/ping/1"]);
    let csv = ping(&["-o", "csv"]).stdout;
    let rows: Vec<_> = csv
        .lines()
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(rows, ["seq", "1", "2", "3"]);
}

#[test]
fn ping_takes_a_size_and_shows_a_histogram() {
    let served = Served::start();
    let run = run(&[
        "ping",
        &served.target,
        "-n",
        "3",
        "-i",
        "1ms",
        "--size",
        "100000",
        "-H",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let bars: Vec<_> = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("  up to "))
        .collect();
    let counted: u64 = bars
        .iter()
        .map(|bar| {
            bar.split_whitespace()
                .nth(4)
                .unwrap()
                .parse::<u64>()
                .unwrap()
        })
        .sum();
    assert_eq!(counted, 3, "{run:?}");
    assert!(bars.iter().any(|bar| bar.ends_with("########")), "{run:?}");
}

#[test]
fn ctrl_c_ends_a_ping_with_its_summary_and_130() {
    let served = Served::start();
    let mut child = command()
        .args(["ping", "-i", "1ms", &served.target])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines
            .next()
            .unwrap()
            .unwrap()
            .starts_with("pinging nacp-cli-serve at 127.0.0.1:")
    );
    assert!(lines.next().unwrap().unwrap().contains("seq=1"));
    signal(child.id(), "INT");
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(
        rest.iter().any(|line| line.ends_with("0 % lost")),
        "{rest:?}"
    );
    assert!(
        rest.last().unwrap().starts_with("round trip min"),
        "{rest:?}"
    );
    assert_eq!(finish(child).code, 130);
}

#[test]
fn t31_a_peer_that_goes_away_in_the_middle_of_a_ping_ends_it_with_6() {
    let mut served = Served::start();
    let mut child = command()
        .args(["ping", "-i", "1ms", &served.target])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("seq=1") {}
    served.child().kill().unwrap();
    lines.for_each(drop);
    let run = finish(child);
    assert_eq!(run.code, 6, "{run:?}");
}

#[test]
fn probe_goes_further_when_it_is_asked_to() {
    let served = Served::start();
    let args = [
        "probe",
        &served.target,
        "--resume",
        "--ability",
        "add",
        "-d",
        r#"{"a":1,"b":2}"#,
    ];
    let human = run(&args);
    assert_eq!(human.code, 0, "{human:?}");
    assert_output!("probe_everything_human", human.stdout);
    let json = run(&[&args[..], &["--json"]].concat());
    assert_eq!(json.code, 0, "{json:?}");
    assert_eq!(json.json()["resume"]["resumed"], true);
    assert_eq!(json.json()["resume"]["replayed"], 1);
}

#[test]
fn probe_of_an_ability_that_fails_ends_with_1_at_the_call() {
    let run = run(&["probe", "--ability", "fail", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.json()["failed"], "call");
    assert_eq!(run.json()["error"]["reason"], "processor-failed");
}

#[test]
fn a_report_for_a_bug_tracker_has_the_stages_and_no_payload() {
    let file = std::env::temp_dir().join(format!("nacp-cli-report-{}.md", std::process::id()));
    let path = file.to_str().unwrap();
    let args = [
        "probe",
        "--report",
        path,
        "--ability",
        "echo",
        "-d",
        "\"s3cret\"",
    ];
    let probe = run(&args);
    let report = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(probe.code, 0, "{probe:?}");
    assert!(!report.contains("s3cret"), "{report}");
    for stage in [
        "resolve",
        "connect",
        "frame",
        "register",
        "heartbeat",
        "call",
        "good-bye",
    ] {
        assert!(
            report.contains(&format!("| {stage} | ok |")),
            "{stage} is not in {report}"
        );
    }
    assert_eq!(
        run(&["probe", "--report", "/nonexistent/report.md"]).code,
        8
    );
}

#[test]
fn a_watching_probe_goes_on_over_failures_and_ends_with_130() {
    let address = crate::support::closed_port().to_string();
    let mut probe = command();
    probe
        .args(["probe", &address, "--watch=1ms", "--json"])
        .stderr(std::process::Stdio::null());
    let mut child = probe.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let document: serde_json::Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(document["exit"], 3);
    }
    signal(child.id(), "INT");
    lines.for_each(drop);
    assert_eq!(finish(child).code, 130);
}
