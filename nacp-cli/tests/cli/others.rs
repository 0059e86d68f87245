//! `watch`, `check`, `signal`, `emit`, and contexts.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use nacp::proto::{Body, Outcome, Payload};
use serde_json::{Value, json};

use crate::support::fake_peer::FakePeer;
use crate::support::{Run, Served, closed_port, command, finish, run, server, signal, stay_silent};

/// A folder of its own, gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nacp-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn watch_prints_a_line_for_each_change_and_ends_with_6_at_the_good_bye() {
    let mut served = Served::start();
    let mut child = command()
        .args(["watch", &served.target, "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let online = next();
    assert_eq!(online["schema"], "nacp-cli/watch-change/1");
    assert_eq!(
        (&online["state"], &online["cause"]),
        (&json!("online"), &json!("registered"))
    );
    signal(served.child().id(), "INT");
    let dropped = next();
    assert_eq!(
        (&dropped["state"], &dropped["cause"]),
        (&json!("dropped"), &json!("unregistered"))
    );
    lines.for_each(drop);
    let run = finish(child);
    assert_eq!(run.code, 6, "{run:?}");
}

#[test]
fn watch_ends_when_it_has_enough() {
    let served = Served::start();
    let run = run(&["watch", &served.target, "-n", "1"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("online  nacp-cli-serve (registered)"),
        "{run:?}"
    );
}

fn nagios(args: &[&str]) -> Run {
    run(&[&["check", "--format", "nagios", "--timeout", "1s"], args].concat())
}

#[test]
fn check_speaks_nagios_with_its_exit_codes() {
    let served = Served::start();
    let target = served.target.as_str();
    let ok = nagios(&[target]);
    assert_eq!(ok.code, 0, "{ok:?}");
    assert!(
        ok.stdout
            .starts_with("NACP OK - nacp-cli-serve answers in "),
        "{ok:?}"
    );
    assert!(ok.stdout.contains(" | rtt="), "{ok:?}");
    let slow = nagios(&[target, "-w", "1ns"]);
    assert_eq!(slow.code, 1, "{slow:?}");
    assert!(slow.stdout.starts_with("NACP WARNING - "), "{slow:?}");
    let too_slow = nagios(&[target, "-w", "1ns", "-c", "1ns"]);
    assert_eq!(too_slow.code, 2, "{too_slow:?}");
    let down = nagios(&[&closed_port().to_string()]);
    assert_eq!(down.code, 2, "{down:?}");
    assert!(down.stdout.starts_with("NACP CRITICAL - "), "{down:?}");
    let wrong = nagios(&["nonsense"]);
    assert_eq!(wrong.code, 3, "{wrong:?}");
}

#[test]
fn check_keeps_the_common_exit_codes_in_the_other_forms() {
    let served = Served::start();
    let silent = server(stay_silent).to_string();
    let closed = closed_port().to_string();
    let target = served.target.as_str();
    for (args, code) in [
        (&[target][..], 0),
        (&[target, "-w", "1ns"], 0),
        (&[target, "-c", "1ns"], 1),
        (&[target, "--ability", "add"], 0),
        (&[target, "--ability", "fly"], 1),
        (&[&closed], 3),
        (&[&silent, "--timeout", "300ms"], 5),
    ] {
        for format in ["text", "json", "prometheus"] {
            let run = run(&[&["check", "--format", format], args].concat());
            assert_eq!(run.code, code, "{format} {args:?} {run:?}");
            match format {
                "json" => assert_eq!(run.json()["schema"], "nacp-cli/check/1"),
                "prometheus" => {
                    let up = if code == 3 || code == 5 { 0 } else { 1 };
                    assert!(run.stdout.contains(&format!("\"}} {up}\n")), "{run:?}");
                }
                _ => assert_eq!(run.stdout.lines().count(), 1, "{run:?}"),
            }
        }
    }
}

#[test]
fn signal_is_delivered_as_the_kind_it_was_asked_for() {
    let (sender, signals) = std::sync::mpsc::channel();
    let address = server(move |stream| {
        let mut peer = FakePeer::new(stream, "fake");
        peer.accept();
        while let Some(message) = peer.recv() {
            if let Body::Signal { parent_id, signal } = &message.body {
                let id = parent_id.to_smol_str().to_string();
                sender.send((id, signal.kind())).unwrap();
                peer.ack(&message);
            } else if message.body == Body::Unregister {
                peer.ack(&message);
                peer.answer(&message, Outcome::Ok, Payload::empty());
            }
        }
    });
    let target = format!("fake@{address}");
    for kind in ["pause", "resume", "abort", "normal"] {
        let run = run(&["signal", "-t", &target, "request-1", kind]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (0, "delivered\n"),
            "{run:?}"
        );
        assert_eq!(signals.recv().unwrap(), ("request-1".to_owned(), kind));
    }
    let json = run(&["signal", "-t", &target, "request-1", "pause", "--json"]).json();
    assert_eq!(
        (&json["kind"], &json["delivered"]),
        (&json!("pause"), &json!(true))
    );
    assert_eq!(
        run(&["signal", "-t", &target, "x", "pause", "-d", "1"]).code,
        2
    );
}

#[test]
fn emit_waits_for_a_subscriber_and_delivers_to_it() {
    let mut emit = command();
    emit.args(["emit", "--listen", "127.0.0.1:0", "--as", "source"])
        .stdin(Stdio::piped());
    let mut emitter = emit.spawn().unwrap();
    let mut notes = BufReader::new(emitter.stderr.take().unwrap()).lines();
    let note = notes.next().unwrap().unwrap();
    let target = note.strip_prefix("listening on ").unwrap();
    let sub = command()
        .args(["sub", "-t", target, "a:*", "-n", "2", "--json"])
        .spawn()
        .unwrap();
    let mut input = emitter.stdin.take().unwrap();
    input.write_all(b"a:b 1\n\na:c {\"x\":2}\n").unwrap();
    drop(input);
    let heard = finish(sub);
    assert_eq!(heard.code, 0, "{heard:?}");
    let events: Vec<_> = heard
        .json_lines()
        .into_iter()
        .map(|mut line| line["payload"].take())
        .collect();
    assert_eq!(events, [json!(1), json!({"x": 2})]);
    let emitted = finish(emitter);
    assert_eq!(
        (emitted.code, emitted.stdout.as_str()),
        (0, "2 emitted, 2 delivered\n")
    );
}

#[test]
fn emit_to_a_peer_that_does_not_listen_ends_with_1() {
    let served = Served::start();
    let run = run(&[
        "emit",
        "-t",
        &served.target,
        "a:b",
        "1",
        "--timeout",
        "300ms",
        "--json",
    ]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.json()["error"]["reason"], "not-subscribed");
}

#[test]
fn a_context_names_a_target_and_what_is_typed_comes_before_it() {
    let served = Served::start();
    let folder = Folder::new("context");
    let config = format!(
        "default = \"here\"\n[context.here]\ntarget = \"{}\"\nas = \"me\"\n\
         [context.gone]\ntarget = \"{}\"\n",
        served.target,
        closed_port()
    );
    let config = folder.write("config.toml", &config, 0o644);
    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = command();
        command.args(args).env("NACP_CONFIG", &config);
        command.envs(variables.iter().copied());
        finish(command.spawn().unwrap())
    };
    let probe = with(&["probe", "--json"], &[]);
    assert_eq!(probe.json()["target"], served.target);
    assert_eq!(probe.json()["own"], "me");
    assert_eq!(with(&["ping", "-n1", "--context", "gone"], &[]).code, 3);
    assert_eq!(with(&["ping", "-n1"], &[("NACP_CONTEXT", "gone")]).code, 3);
    assert_eq!(
        with(
            &["ping", "-n1", "--context", "here"],
            &[("NACP_CONTEXT", "gone")]
        )
        .code,
        0
    );
    let closed = closed_port().to_string();
    assert_eq!(with(&["ping", "-n1"], &[("NACP_TARGET", &closed)]).code, 3);
    assert_eq!(
        with(
            &["ping", "-n1", &served.target],
            &[("NACP_TARGET", &closed)]
        )
        .code,
        0
    );
    assert_eq!(with(&["ping", "-n1", "--context", "lost"], &[]).code, 2);
}

#[test]
fn a_flag_comes_before_the_environment_that_before_the_context_and_that_before_the_default() {
    let silent = server(stay_silent).to_string();
    let folder = Folder::new("precedence");
    let context = "[context.c]\nas = \"of-context\"\ntimeout = \"150ms\"\n";
    let config = folder.write("config.toml", context, 0o600);
    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = command();
        command.args(args).env("NACP_CONFIG", &config);
        command.envs(variables.iter().copied());
        finish(command.spawn().unwrap())
    };
    let variables = [
        ("NACP_CONTEXT", "c"),
        ("NACP_AS", "of-environment"),
        ("NACP_TIMEOUT", "250ms"),
        ("NACP_OUTPUT", "json"),
    ];
    let flags = ["--as", "of-flag", "--timeout", "350ms"];
    for (args, variables, own, limit) in [
        (
            vec!["probe", &silent, "--json", "--timeout", "50ms"],
            &[][..],
            "nacp-cli-",
            "50ms",
        ),
        (
            vec!["probe", &silent, "--json", "--context", "c"],
            &[],
            "of-context",
            "150ms",
        ),
        (
            vec!["--context", "c", "--json", "probe", &silent],
            &[],
            "of-context",
            "150ms",
        ),
        (
            vec!["probe", &silent],
            &variables,
            "of-environment",
            "250ms",
        ),
        (
            [&["probe", silent.as_str()], &flags[..]].concat(),
            &variables,
            "of-flag",
            "350ms",
        ),
        (
            [&flags[..], &["probe", silent.as_str()]].concat(),
            &variables,
            "of-flag",
            "350ms",
        ),
    ] {
        let run = with(&args, variables);
        assert_eq!(run.code, 5, "{args:?} {run:?}");
        let document = run.json();
        let known = document["own"].as_str().unwrap();
        assert!(known.starts_with(own), "{args:?} {run:?}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(
            message.ends_with(&format!("within {limit}")),
            "{args:?} {run:?}"
        );
    }
    let human = with(&["explain", "4", "-o", "human"], &variables);
    assert!(human.stdout.starts_with("exit code 4"), "{human:?}");
    let json = with(&["explain", "4"], &variables);
    assert_eq!(json.json()["exit_code"]["code"], 4);
}

#[test]
fn a_credential_is_sent_from_a_private_file_only() {
    let (sender, credentials) = std::sync::mpsc::channel();
    let address = server(move |stream| {
        let mut peer = FakePeer::new(stream, "strict");
        let Some(register) = peer.recv() else { return };
        if let Body::Register(content) = &register.body {
            let auth = content
                .auth
                .as_ref()
                .map(|auth| auth.decode::<String>().unwrap());
            sender.send(auth).unwrap();
        }
    });
    let folder = Folder::new("secret");
    let open = folder.write("open", "s3cret\n", 0o644);
    let private = folder.write("private", "s3cret\n", 0o600);
    let target = format!("strict@{address}");
    let with = |file: &PathBuf| {
        run(&[
            "ping",
            &target,
            "--auth-file",
            file.to_str().unwrap(),
            "--timeout",
            "1s",
        ])
    };
    let refused = with(&open);
    assert_eq!(refused.code, 8, "{refused:?}");
    assert!(refused.stderr.contains("chmod 600"), "{refused:?}");
    let sent = with(&private);
    assert_eq!(sent.code, 6, "{sent:?}");
    assert_eq!(credentials.recv().unwrap().as_deref(), Some("s3cret"));
    assert!(!format!("{refused:?}{sent:?}").contains("s3cret"));
}

#[test]
fn a_context_refers_to_its_credential_and_never_holds_it() {
    let (sender, credentials) = std::sync::mpsc::channel();
    let address = server(move |stream| {
        let mut peer = FakePeer::new(stream, "strict");
        let Some(register) = peer.recv() else { return };
        if let Body::Register(content) = &register.body {
            let auth = content.auth.as_ref();
            let auth = auth.map(|auth| auth.decode::<String>().unwrap());
            sender.send(auth).unwrap();
        }
    });
    let folder = Folder::new("reference");
    folder.write("token", "of-file\n", 0o600);
    folder.write("open-token", "of-open-file\n", 0o640);
    let context = |name: &str, reference: &str| {
        format!("[context.{name}]\ntarget = \"strict@{address}\"\n{reference}\n")
    };
    let config = [
        context("file", "auth-file = \"token\""),
        context("open", "auth-file = \"open-token\""),
        context("env", "auth-env = \"TOKEN_OF_LIVE\""),
    ];
    let config = folder.write("config.toml", &config.concat(), 0o644);
    let with = |context: &str, variables: &[(&str, &str)]| {
        let mut command = command();
        command.args(["ping", "-n1", "--timeout", "1s", "--context", context]);
        command.env("NACP_CONFIG", &config);
        command.envs(variables.iter().copied());
        finish(command.spawn().unwrap())
    };
    assert_eq!(with("file", &[]).code, 6);
    assert_eq!(credentials.recv().unwrap().as_deref(), Some("of-file"));
    assert_eq!(with("env", &[("TOKEN_OF_LIVE", "of-variable")]).code, 6);
    assert_eq!(credentials.recv().unwrap().as_deref(), Some("of-variable"));
    assert_eq!(with("file", &[("NACP_AUTH", "of-environment")]).code, 6);
    let sent = credentials.recv().unwrap();
    assert_eq!(sent.as_deref(), Some("of-environment"));
    for (context, said) in [("open", "chmod 600"), ("env", "has no TOKEN_OF_LIVE")] {
        let refused = with(context, &[]);
        assert_eq!(refused.code, 8, "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    folder.write("config.toml", "[context.a]\nauth = \"s3cret\"\n", 0o600);
    let held = with("a", &[]);
    assert_eq!(held.code, 2, "{held:?}");
}
