//! What is typed wrong is found before anything is dialled.

use crate::support::run;
use crate::support::terminal::Terminal;

#[test]
fn without_arguments_three_commands_are_shown_that_work() {
    let run = run(&[]);
    assert_eq!(run.code, 0);
    assert_eq!(run.stderr, "");
    let commands: Vec<_> = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("  nacp-cli "))
        .collect();
    assert_eq!(commands.len(), 3, "{run:?}");
}

#[test]
fn what_cannot_be_is_a_usage_error_in_both_forms() {
    for args in [
        &["frobnicate"][..],
        &["probe", "--frobnicate"],
        &["probe", "host"],
        &["probe", "host:0"],
        &["probe", "host:65536"],
        &["probe", "::1:7000"],
        &["probe", "@host:7000"],
        &["probe", "h:1", "--timeout", "0"],
        &["probe", "h:1", "--as", "*"],
        &["probe", "h:1", "--as", ""],
        &["call"],
        &["call", "x", "-d", "{"],
        &["call", "x", "-d", "@/nonexistent"],
        &["serve", "host:x"],
        &["ping", "h:1", "-i", "never"],
        &["explain", "nothing-of-the-kind"],
        &["bench", "rtt", "-c", "0"],
        &["sub"],
        &["sub", "a", "--format", "{nmae}"],
        &["signal", "x", "stop"],
        &["serve", "127.0.0.1:0", "--error-rate", "2"],
        &["proxy", "127.0.0.1:0"],
        &["completions", "tcsh"],
    ] {
        let human = run(args);
        assert_eq!(human.code, 2, "{args:?} {human:?}");
        assert_eq!(human.stdout, "", "{args:?}");
        assert!(human.stderr.starts_with("error: "), "{args:?} {human:?}");

        let json = run(&[args, &["--json"]].concat());
        assert_eq!(json.code, 2, "{args:?} {json:?}");
        let document = json.json();
        assert_eq!(document["exit"], 2, "{args:?}");
        assert_eq!(document["ok"], false, "{args:?}");
        assert!(
            document["error"]["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        assert!(json.stderr.starts_with("error: "), "{args:?} {json:?}");
    }
}

#[test]
fn an_ambiguous_address_is_answered_with_what_to_write() {
    let run = run(&["probe", "::1:7000"]);
    assert!(run.stderr.contains("[::1]:7000"), "{run:?}");
}

#[test]
fn an_app_id_of_256_bytes_is_refused_and_one_of_255_is_not() {
    let long = "a".repeat(256);
    assert_eq!(run(&["probe", "h.invalid:1", "--as", &long]).code, 2);
    assert_eq!(run(&["probe", "h.invalid:1", "--as", &long[1..]]).code, 3);
}

#[test]
fn a_log_goes_to_standard_error_and_has_no_colour_in_a_pipe() {
    let run = run(&["probe", "-vvv", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.json()["ok"], true);
    assert!(run.stderr.contains("DEBUG"), "{run:?}");
    assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
}

#[test]
fn each_v_tells_more_links_then_messages_then_frames() {
    for (flag, levels) in [("-v", 1), ("-vv", 2), ("-vvv", 3)] {
        let log = run(&["probe", flag]).stderr;
        let links = log.matches("nact:peer:connect").count();
        let messages = log.matches("message_type=Some(Register)").count();
        let frames = log.matches("frame direction=\"out\"").count();
        assert_eq!(links, 2, "both sides of one connection: {log}");
        assert_eq!(messages, usize::from(levels > 1), "{log}");
        assert_eq!(frames > 0, levels > 2, "{log}");
    }
    // Each message to the peer is in one frame, which says how long it is.
    let log = run(&["probe", "-vvv"]).stderr;
    let register = log
        .lines()
        .find(|line| line.contains("frame direction=\"out\""));
    assert!(register.unwrap().contains(" offset=0 body="), "{log}");
}

#[test]
fn colour_is_for_terminals_and_for_who_asks() {
    let mut plain = crate::support::command();
    plain.args(["probe", "-v"]).env_remove("NO_COLOR");
    let plain = crate::support::finish(plain.spawn().unwrap());
    assert!(plain.stderr.contains("DEBUG"), "{plain:?}");
    for text in [&plain.stdout, &plain.stderr] {
        assert!(!text.contains('\u{1b}'), "{plain:?}");
    }
    let asked = run(&["probe", "-v", "--color", "always"]);
    for text in [&asked.stdout, &asked.stderr] {
        assert!(text.contains("\u{1b}["), "{asked:?}");
    }
    for (variables, is_coloured) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let terminal = Terminal::start_with(&["explain", "4"], variables);
        let (code, screen, bytes) = terminal.finish_with_bytes();
        assert_eq!(code, 0, "{screen}");
        assert_eq!(bytes.contains("\u{1b}[1m"), is_coloured, "{bytes:?}");
    }
    let quiet = run(&["-q", "probe", "localhost:1"]);
    assert!(quiet.stderr.starts_with("error: "), "{quiet:?}");
}
