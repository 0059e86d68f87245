//! What happens to a run whose output goes nowhere, or that is interrupted.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use nacp::LinkState;
use nacp::link::Cause;

use crate::support::fake_peer::FakePeer;
use crate::support::native::NativePeer;
use crate::support::{Served, command, finish, run, server, signal, stay_silent, wait};

/// Runs a shell line in which `$cli` is the binary.
fn shell(line: &str) -> crate::support::Run {
    let binary = command().get_program().to_owned();
    let mut shell = Command::new("bash");
    shell
        .args(["-o", "pipefail", "-c", line])
        .env("cli", binary)
        .env("NO_COLOR", "1");
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(shell.spawn().unwrap())
}

#[test]
fn t32_a_closed_pipe_is_success() {
    let served = Served::start();
    let target = &served.target;
    for line in [
        "$cli --help | true".to_owned(),
        "$cli probe --help | true".to_owned(),
        "$cli probe | true".to_owned(),
        "$cli probe --json | true".to_owned(),
        format!("$cli ping -i 10ms {target} | head -n 1"),
        format!("$cli ping -i 10ms -o ndjson {target} | head -n 1"),
        format!("$cli sub -t {target} 'clock:*' | head -n 1"),
        format!("$cli watch {target} -n 1 | true"),
    ] {
        let run = shell(&line);
        assert_eq!(run.code, 0, "{line}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{line}: {run:?}");
    }
}

#[test]
fn t32_closed_streams_are_no_panic() {
    for line in [
        "$cli probe >&-",
        "$cli probe 2>&-",
        "$cli probe >&- 2>&-",
        "$cli probe --json >&- 2>&-",
        "$cli probe localhost:1 2>&-; test $? = 3",
        "$cli probe localhost:1 --json >&- 2>&-; test $? = 3",
    ] {
        let run = shell(line);
        assert_eq!(run.code, 0, "{line}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{line}: {run:?}");
    }
}

#[test]
fn t32_a_full_disk_is_an_error() {
    for args in [
        &["probe"][..],
        &["probe", "--json"],
        &["--help"],
        &["explain"],
        &[],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = finish(command().args(args).stdout(full).spawn().unwrap());
        assert_eq!(run.code, 8, "{args:?} {run:?}");
        assert!(
            run.stderr.contains("cannot write the output"),
            "{args:?} {run:?}"
        );
    }
}

#[test]
fn t31_the_code_is_the_same_in_a_pipe_and_in_a_file() {
    for (tail, code) in [("probe", 0), ("probe localhost:1", 3), ("probe x", 2)] {
        for form in ["", " --json"] {
            for into in [" | cat >/dev/null", " >/dev/null"] {
                let line = format!("$cli {tail}{form}{into}");
                assert_eq!(shell(&line).code, code, "{line}");
            }
        }
    }
}

#[test]
fn ctrl_c_while_waiting_ends_with_130_within_a_second_also_in_json() {
    for form in [&[][..], &["--json"]] {
        let (came, connected) = std::sync::mpsc::channel();
        let address = server(move |mut stream| {
            // The register has come: the probe waits for its answer.
            let mut first = [0; 32];
            stream.read_exact(&mut first).unwrap();
            came.send(()).unwrap();
            stay_silent(stream);
        });
        let mut probe = command();
        probe.arg("probe").arg(address.to_string()).args(form);
        let child = probe.spawn().unwrap();
        connected.recv_timeout(Duration::from_secs(30)).unwrap();
        signal(child.id(), "INT");
        let run = finish(child);
        assert_eq!(run.code, 130, "{run:?}");
        assert!(run.took < Duration::from_secs(2), "{run:?}");
        assert!(run.stderr.contains("interrupted"), "{run:?}");
        if !form.is_empty() {
            assert_eq!(run.json()["exit"], 130);
            assert_eq!(run.json()["failed"], "register");
        }
    }
}

#[test]
fn ctrl_c_says_good_bye_to_the_peer() {
    let (ended, end) = std::sync::mpsc::channel();
    let address = server(move |stream| {
        let mut peer = FakePeer::new(stream, "fake");
        peer.accept();
        let mut said = Vec::new();
        while let Some(message) = peer.recv() {
            said.push(message.message_type().as_str().to_owned());
            if said.last().is_some_and(|last| last == "request") {
                peer.ack(&message);
                ended.send(said.clone()).unwrap();
            } else if said.last().is_some_and(|last| last == "unregister") {
                ended.send(said.clone()).unwrap();
                peer.ack(&message);
                peer.answer(
                    &message,
                    nacp::proto::Outcome::Ok,
                    nacp::proto::Payload::empty(),
                );
            }
        }
    });
    let call = command()
        .args(["call", "wait", "-t", &format!("fake@{address}")])
        .spawn()
        .unwrap();
    end.recv_timeout(Duration::from_secs(30)).unwrap();
    signal(call.id(), "INT");
    loop {
        let said = end.recv_timeout(Duration::from_secs(30)).unwrap();
        if said.iter().any(|word| word == "unregister") {
            break;
        }
    }
    let run = finish(call);
    assert_eq!(run.code, 130, "{run:?}");
    assert!(run.took < Duration::from_secs(2), "{run:?}");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_peer_that_is_silent() {
    let (came, called) = std::sync::mpsc::channel();
    let address = server(move |stream| {
        let mut peer = FakePeer::new(stream, "fake");
        peer.accept();
        while let Some(message) = peer.recv() {
            if message.message_type().as_str() == "request" {
                came.send(()).unwrap();
            }
        }
    });
    let call = command()
        .args(["call", "wait", "-t", &format!("fake@{address}")])
        .spawn()
        .unwrap();
    called.recv_timeout(Duration::from_secs(30)).unwrap();
    signal(call.id(), "INT");
    signal(call.id(), "TERM");
    let run = finish(call);
    assert_eq!(run.code, 130, "{run:?}");
    assert!(run.took < Duration::from_secs(2), "{run:?}");
}

#[test]
fn the_system_s_request_to_end_is_obeyed_by_serve() {
    let mut served = Served::start();
    signal(served.child().id(), "TERM");
    assert_eq!(wait(served.child(), Duration::from_secs(5)), 130);
}

#[test]
fn sigpipe_is_left_as_an_error_of_the_write() {
    let run = shell("trap '' PIPE; $cli probe | true");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stderr, "", "{run:?}");
}

#[test]
fn a_probe_that_goes_well_says_nothing_on_standard_error() {
    let run = run(&["probe", "--json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

/// A peer that emits `x:y` with numbers, a thousand a second.
fn busy_peer() -> NativePeer {
    let peer = NativePeer::start("busy", |builder| builder);
    let node = peer.node.clone();
    peer.runtime.spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(1));
        for number in 0_u64.. {
            pace.tick().await;
            node.emit("x:y", &number).unwrap();
        }
    });
    peer
}

#[test]
fn t32_line_1_a_reader_that_has_enough_ends_it_and_the_peer_hears_a_good_bye() {
    let peer = busy_peer();
    let mut changes = peer.node.watch_links();
    let target = peer.target();
    for line in [
        format!("$cli sub -t {target} 'x:*' | head -n 1"),
        format!("$cli sub -t {target} 'x:*' --json | head -n 1"),
        format!("$cli sub -t {target} 'x:*' -o csv | head -n 1"),
        format!("$cli ping -i 1ms {target} | head -n 1"),
        format!("$cli ping -i 1ms -o ndjson {target} | head -n 1"),
        format!("$cli top -i 100ms --json {target} | head -n 1"),
        format!("$cli watch {target} | true"),
        format!("$cli watch --json {target} | true"),
    ] {
        let run = shell(&line);
        assert_eq!(run.code, 0, "{line}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{line}: {run:?}");
        assert!(!run.stderr.contains("error:"), "{line}: {run:?}");
        assert!(run.took < Duration::from_secs(2), "{line}: {run:?}");
        let cause = peer.wait_for(&mut changes, LinkState::Dropped);
        assert_eq!(cause, Cause::Unregistered, "{line}");
    }
}

#[derive(serde::Serialize)]
struct Numbered {
    number: u64,
    padding: bytes::Bytes,
}

/// Emits as many events as that, no faster than the app at the other end takes them.
fn emit(peer: &NativePeer, numbers: std::ops::Range<u64>) {
    peer.runtime.block_on(async {
        for number in numbers {
            let padding = vec![0; 4096].into();
            let hit = peer.node.emit("x:y", &Numbered { number, padding });
            hit.unwrap();
            if number % 256 == 0 {
                // What is answered behind them shows that they have come.
                peer.node.heartbeat("reader").await.unwrap();
            }
        }
        peer.node.heartbeat("reader").await.unwrap();
    });
}

#[test]
#[cfg(target_os = "linux")]
fn t32_line_5_a_reader_that_sleeps_costs_no_beat_and_no_memory_and_what_is_dropped_is_counted() {
    let peer = NativePeer::start("busy", |builder| builder);
    let mut changes = peer.node.watch_links();
    let mut sub = command();
    sub.args([
        "sub",
        "-t",
        &peer.target(),
        "x:*",
        "--as",
        "reader",
        "--json",
    ]);
    let mut child = sub.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(notes.next().unwrap().unwrap(), "listening at busy");

    // Nobody reads its output: far more than a pipe and a stream hold comes, twice.
    emit(&peer, 0..3_000);
    let before = most_memory(child.id());
    emit(&peer, 3_000..13_000);
    // The kernel's count is off by some pages either way.
    let grown = most_memory(child.id()).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB more for 40 MB of events");
    let states = peer.node.link(&"reader".parse().unwrap()).unwrap().state;
    assert_eq!(states, LinkState::Online);

    // Whatever did not come is counted by what came next.
    let mut expected = 0;
    while expected < 13_000 {
        let line = lines.next().unwrap().unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        let number = event["payload"]["number"].as_u64().unwrap();
        assert_eq!(number, expected + event["missed"].as_u64().unwrap());
        expected = number + 1;
    }
    signal(child.id(), "INT");
    lines.for_each(drop);
    notes.for_each(drop);
    assert_eq!(finish(child).code, 130);
    let cause = peer.wait_for(&mut changes, LinkState::Dropped);
    assert_eq!(cause, Cause::Unregistered);
}

/// The most that a process has had in memory, in KiB.
#[cfg(target_os = "linux")]
fn most_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}
