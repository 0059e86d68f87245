//! T-31: every command that dials, against every peer that is not well: one exit code, whatever the form, in
//! its time.

use std::io::{Read, Write};
use std::time::Duration;

use nacp::proto::{Body, Outcome, Payload};

use crate::support::fake_peer::FakePeer;
use crate::support::{Run, Served, closed_port, command, finish, run, server, signal, stay_silent};

/// The commands that dial, with what they are to do at TARGET.
const DIALLING: &[&[&str]] = &[
    &["probe", "TARGET"],
    &["ping", "TARGET", "-n", "1"],
    &["check", "TARGET"],
    &["watch", "TARGET"],
    &["top", "TARGET", "--once"],
    &["call", "-t", "TARGET", "echo"],
    &["signal", "-t", "TARGET", "request-1", "pause"],
    &["sub", "-t", "TARGET", "a:b"],
    &["emit", "-t", "TARGET", "a:b"],
    &["bench", "rtt", "TARGET"],
];

const NO_DIAL: [&str; 6] = ["serve", "proxy", "decode", "explain", "completions", "man"];

/// Runs a command for people and as JSON, into a pipe and into a file.
fn in_every_form(args: &[&str], code: i32) -> Vec<Run> {
    let mut runs = Vec::new();
    for form in [&[][..], &["--json"], &["-o", "ndjson"]] {
        let run = run(&[args, form].concat());
        assert_eq!(run.code, code, "{args:?} {form:?}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{args:?} {run:?}");
        if form.is_empty() {
            assert!(!run.stdout.contains("error:"), "{args:?} {run:?}");
        } else {
            let last = run.json_or_last_line();
            assert_eq!(last["exit"], code, "{args:?} {run:?}");
            assert_eq!(last["ok"], false, "{args:?} {run:?}");
            let message = &last["error"]["message"];
            assert!(message.as_str().is_some_and(|text| !text.is_empty()));
        }
        runs.push(run);
    }
    runs
}

/// Lets all commands that dial meet a peer, beside each other.
fn each_dialling(target: &str, code: i32, said: &str) {
    std::thread::scope(|scope| {
        for args in DIALLING {
            let args: Vec<_> = args
                .iter()
                .map(|arg| if *arg == "TARGET" { target } else { arg })
                .chain(["--timeout", "500ms"])
                .collect();
            scope.spawn(move || {
                for run in in_every_form(&args, code) {
                    assert!(run.stderr.starts_with("error: "), "{args:?} {run:?}");
                    assert!(run.stderr.contains(said), "{said}: {args:?} {run:?}");
                    assert!(run.took < Duration::from_millis(1500), "{args:?} {run:?}");
                }
            });
        }
    });
}

#[test]
fn t31_every_command_is_here() {
    for command in crate::help::commands() {
        let dials = DIALLING.iter().any(|args| args[0] == command);
        assert!(dials || NO_DIAL.contains(&command.as_str()), "{command}");
    }
}

#[test]
fn t31_line_2_what_cannot_be_read_ends_with_2() {
    for command in crate::help::commands() {
        in_every_form(&[&command, "--frobnicate"], 2);
    }
    for args in DIALLING {
        let address = |address: &'static str| -> Vec<&str> {
            let fill = |arg: &&'static str| if *arg == "TARGET" { address } else { *arg };
            args.iter().map(fill).collect()
        };
        for bad in ["host", "host:x", "::1:7000", "host:0"] {
            in_every_form(&address(bad), 2);
        }
    }
    for missing in [
        &["call"][..],
        &["sub"],
        &["signal", "x"],
        &["bench"],
        &["proxy", "h:1"],
    ] {
        in_every_form(missing, 2);
    }
}

#[test]
fn t31_line_3_what_cannot_be_reached_ends_with_3() {
    each_dialling(&closed_port().to_string(), 3, "refused");
    each_dialling("no-such-host.invalid:7420", 3, "resolve");
}

#[test]
fn t31_line_4_what_stays_silent_ends_with_5() {
    each_dialling(&server(stay_silent).to_string(), 5, "no answer");
}

#[test]
fn t31_line_4_an_http_server_ends_with_7() {
    let http = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        stay_silent(stream);
    });
    each_dialling(&http.to_string(), 7, "an HTTP server answers there");
}

#[test]
fn t31_line_4_garbage_and_a_close_at_once_end_with_7() {
    let garbage = server(|stream| {
        let mut peer = FakePeer::new(stream, "mad");
        peer.recv();
        peer.write(&[0x9e; 64]);
    });
    each_dialling(&garbage.to_string(), 7, "not a NACP peer");
}

#[test]
fn t31_line_5_a_refused_register_ends_with_4() {
    let strict = server(|stream| FakePeer::new(stream, "strict").refuse("unauthorized"));
    each_dialling(&format!("strict@{strict}"), 4, "unauthorized");
}

#[test]
fn t31_line_5_another_app_stays_silent_and_ends_with_5() {
    let served = Served::start();
    let target = format!("weather@{}", served.address());
    each_dialling(&target, 5, "no answer");
}

#[test]
fn t31_a_peer_that_hangs_up_ends_with_6() {
    let rude = server(|stream| {
        FakePeer::new(stream, "rude").recv();
    });
    each_dialling(&rude.to_string(), 6, "closed the connection");
}

#[test]
fn t31_line_6_a_peer_that_says_no_ends_with_1() {
    let served = Served::start();
    let no = server(|stream| {
        stream.set_nodelay(true).unwrap();
        let mut peer = FakePeer::new(stream, "no");
        peer.accept();
        peer.serve(|_| {
            let why = Some("no-processor".into());
            Some((Outcome::NotOk { why }, Payload::empty()))
        });
    });
    let (well, no) = (served.target.as_str(), format!("no@{no}"));
    for args in [
        &["call", "-t", well, "fail"][..],
        &["call", "-t", well, "nothing-of-the-kind"],
        &["call", "-t", well, "nothing-of-the-kind", "--event"],
        &["probe", well, "--ability", "fail"],
        &["check", well, "-c", "1ns"],
        &["check", well, "--ability", "fly"],
        &["sub", "-t", well, "nacp:internal:*:*"],
        &["emit", "-t", well, "a:b", "--timeout", "200ms"],
        &["ping", &no, "-n", "1"],
        &["check", &no],
        &["bench", "rtt", &no],
        &["bench", "signal", &no],
        &["bench", "notify", &no],
    ] {
        in_every_form(args, 1);
    }
}

#[test]
fn t31_line_7_a_limit_that_passes_while_the_peer_works_ends_with_5() {
    let stuck = server(|stream| {
        let mut peer = FakePeer::new(stream, "stuck");
        peer.accept();
        peer.serve(|_| None);
    });
    let target = &format!("stuck@{stuck}");
    std::thread::scope(|scope| {
        for args in [
            &["probe", target][..],
            &["ping", target, "-n", "1"],
            &["check", target],
            &["call", "-t", target, "echo"],
            &["call", "-t", target, "echo", "--event"],
            &["bench", "rtt", target],
        ] {
            let args = [args, &["--timeout", "300ms"]].concat();
            scope.spawn(move || {
                for run in in_every_form(&args, 5) {
                    assert!(run.took < Duration::from_millis(1300), "{args:?} {run:?}");
                }
            });
        }
    });
}

#[test]
fn t31_line_8_ctrl_c_while_waiting_ends_with_130() {
    for args in DIALLING {
        for form in [&[][..], &["--json"]] {
            let (came, connected) = std::sync::mpsc::channel();
            let address = server(move |mut stream| {
                // The register has come: its answer is waited for.
                stream.read_exact(&mut [0; 32]).unwrap();
                came.send(()).unwrap();
                stay_silent(stream);
            });
            let address = address.to_string();
            let args = args.iter().map(|arg| match *arg {
                "TARGET" => address.as_str(),
                other => other,
            });
            let child = command().args(args.clone()).args(form).spawn().unwrap();
            connected.recv_timeout(Duration::from_secs(30)).unwrap();
            signal(child.id(), "INT");
            let run = finish(child);
            let args: Vec<_> = args.collect();
            assert_eq!(run.code, 130, "{args:?} {run:?}");
            assert!(run.took < Duration::from_secs(2), "{args:?} {run:?}");
            assert!(run.stderr.contains("interrupted"), "{args:?} {run:?}");
            if !form.is_empty() {
                let last = run.json_or_last_line();
                assert_eq!(last["exit"], 130, "{args:?} {run:?}");
            }
        }
    }
}

#[test]
fn t31_line_9_a_peer_that_goes_away_in_the_middle_ends_with_6() {
    for args in [
        &["ping", "TARGET"][..],
        &["watch", "TARGET"],
        &["sub", "-t", "TARGET", "a:b"],
        &["call", "-t", "TARGET", "echo"],
        &["bench", "rtt", "TARGET"],
        &["probe", "TARGET"],
        &["check", "TARGET"],
    ] {
        // It says good-bye as soon as it has registered the caller.
        let leaving = server(|stream| {
            let mut peer = FakePeer::new(stream, "leaving");
            let Some(app) = peer.accept() else { return };
            peer.send(&app, Body::Unregister);
            while peer.recv().is_some_and(|message| {
                let is_answer = matches!(message.body, Body::Response(_));
                !is_answer
            }) {}
        });
        let target = format!("leaving@{leaving}");
        let args: Vec<_> = args
            .iter()
            .map(|arg| if *arg == "TARGET" { &target } else { *arg })
            .collect();
        in_every_form(&args, 6);
    }
}

#[test]
fn t31_local_problems_end_with_8() {
    let served = Served::start();
    let used = served.address();
    for args in [
        &["serve", used][..],
        &["proxy", used, "h:1"],
        &["emit", "--listen", used, "a:b"],
        &["top", "--listen", used, "--once"],
        &["probe", "--report", "/nonexistent/report.md"],
        &["bench", "rtt", "-d", "5ms", "--save", "/nonexistent/result"],
        &["ping", "h:1", "--auth-file", "/nonexistent/token"],
        &["man", "--dir", "/dev/null/man"],
    ] {
        in_every_form(args, 8);
    }
}
