//! `bench`: what it prints; never how fast something is.

use std::time::Duration;

use serde_json::json;

use crate::support::fake_peer::FakePeer;
use crate::support::native::NativePeer;
use crate::support::terminal::Terminal;
use crate::support::{Served, closed_port, command, finish, run, server, signal};

#[test]
fn every_mode_measures_something() {
    let served = Served::start();
    for mode in ["rtt", "throughput", "signal", "notify", "large"] {
        let args = [
            "bench",
            mode,
            &served.target,
            "-d",
            "50ms",
            "--size",
            "1000",
        ];
        let human = run(&args);
        assert_eq!(
            (human.code, human.stderr.as_str()),
            (0, ""),
            "{mode} {human:?}"
        );
        assert!(human.stdout.starts_with(&format!("{mode}: ")), "{human:?}");
        let json = run(&[&args[..], &["--json"]].concat()).json();
        assert_eq!(json["schema"], "nacp-cli/bench/1");
        assert_eq!(json["mode"], mode);
        assert!(json["count"].as_u64().unwrap() > 0, "{json}");
        assert!(
            json["latency"]["p99_ms"].as_f64().unwrap()
                >= json["latency"]["p50_ms"].as_f64().unwrap()
        );
    }
}

#[test]
fn a_result_can_be_a_row() {
    let run = run(&["bench", "rtt", "-d", "20ms", "-o", "csv"]);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{run:?}");
    assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    assert!(lines[1].starts_with("rtt,1,"), "{run:?}");
}

#[test]
fn an_open_loop_makes_as_many_as_were_due() {
    let run = run(&["bench", "rtt", "-d", "100ms", "--rate", "200", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(
        (&run.json()["count"], &run.json()["rate"]),
        (&json!(20), &json!(200))
    );
}

#[test]
fn a_stall_counts_for_every_request_that_it_delayed() {
    // The peer answers the first beat after 100 ms and reads nothing meanwhile: the five that
    // were due in that time have waited too.
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "stalls");
        peer.accept();
        let stalled = std::cell::Cell::new(false);
        peer.serve(|_| {
            if !stalled.replace(true) {
                std::thread::sleep(Duration::from_millis(100));
            }
            Some((nacp::proto::Outcome::Ok, nacp::Payload::new(&true).unwrap()))
        });
    });
    let target = format!("stalls@{address}");
    let run = run(&[
        "bench", "rtt", &target, "-d", "100ms", "--rate", "50", "--json",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let latency = &run.json()["latency"];
    assert_eq!(run.json()["count"], 5);
    assert!(latency["max_ms"].as_f64().unwrap() >= 100.0, "{latency}");
    assert!(latency["p50_ms"].as_f64().unwrap() >= 40.0, "{latency}");
}

#[test]
fn a_result_that_is_worse_than_a_saved_one_ends_with_1() {
    let served = Served::start();
    let folder = std::env::temp_dir();
    let path = |name: &str| folder.join(format!("nacp-cli-bench-{}-{name}", std::process::id()));
    let (saved, better) = (path("saved"), path("better"));
    let (saved, better) = (saved.to_str().unwrap(), better.to_str().unwrap());
    let args = ["bench", "rtt", &served.target, "-d", "20ms"];
    assert_eq!(run(&[&args[..], &["--save", saved]].concat()).code, 0);
    let mut result: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(saved).unwrap()).unwrap();
    result["latency"]["p50_ms"] = json!(1e9);
    result["per_second"] = json!(1e-9);
    std::fs::write(saved, result.to_string()).unwrap();
    assert_eq!(run(&[&args[..], &["--compare", saved]].concat()).code, 0);
    result["per_second"] = json!(1e9);
    std::fs::write(better, result.to_string()).unwrap();
    let worse = run(&[&args[..], &["--compare", better, "--json"]].concat());
    assert_eq!(worse.code, 1, "{worse:?}");
    assert_eq!(worse.json()["error"]["reason"], "regressed");
    std::fs::remove_file(saved).unwrap();
    std::fs::remove_file(better).unwrap();
    assert_eq!(
        run(&[&args[..], &["--compare", "/nonexistent"]].concat()).code,
        2
    );
}

#[test]
fn a_bench_that_cannot_connect_says_why() {
    let run = run(&["bench", "rtt", &closed_port().to_string(), "--json"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert_eq!(run.json()["error"]["reason"], "connection-refused");
}

#[test]
fn ctrl_c_ends_a_bench_with_what_was_measured_so_far_and_130() {
    let (sender, calls) = std::sync::mpsc::channel();
    let peer = NativePeer::start("counts", |builder| {
        builder.ability_raw("echo", move |_, payload| {
            let sender = sender.clone();
            async move {
                // Nobody listens any more at the end.
                let _ = sender.send(());
                Ok(payload)
            }
        })
    });
    let saved = std::env::temp_dir().join(format!("nacp-cli-not-saved-{}", std::process::id()));
    for more in [&[][..], &["--json"], &["--rate", "100"]] {
        let mut bench = command();
        bench.args(["bench", "rtt", &peer.target(), "-d", "1h", "--save"]);
        let child = bench.arg(&saved).args(more).spawn().unwrap();
        // The second is called when the first has been measured.
        for _ in 0..2 {
            calls.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        signal(child.id(), "INT");
        let run = finish(child);
        assert_eq!(run.code, 130, "{run:?}");
        if more == ["--json"] {
            assert_eq!(run.json()["exit"], 130, "{run:?}");
            assert!(run.json()["count"].as_u64().unwrap() > 0, "{run:?}");
        } else {
            assert!(run.stdout.starts_with("rtt: echo at counts"), "{run:?}");
        }
        assert!(!saved.exists());
        while calls.try_recv().is_ok() {}
    }
}

#[test]
fn a_bar_moves_on_a_terminal_unless_that_is_not_wanted() {
    let bar = "\u{2588}";
    let args = ["bench", "rtt", "-d", "500ms"];
    let mut terminal = Terminal::start(&args);
    terminal.wait_for(bar);
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    for quiet in ["--no-progress", "-q"] {
        let terminal = Terminal::start(&[&args[..], &[quiet]].concat());
        let (code, screen, bytes) = terminal.finish_with_bytes();
        assert_eq!(code, 0, "{screen}");
        assert!(!bytes.contains(bar), "{screen}");
    }
}
