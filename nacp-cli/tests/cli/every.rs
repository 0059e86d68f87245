//! Every command in every form: for people, as JSON, as lines, as a table; in a pipe, in a closed one, and
//! on a full disk. A command that is not in the table fails the first test.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use insta::{assert_snapshot, with_settings};
use nacp::proto::Body;
use serde_json::Value;

use crate::help;
use crate::look;
use crate::support::fake_peer::FakePeer;
use crate::support::{Run, Served, closed_port, command, finish, run, server, signal};

/// One way to use a command.
struct Case {
    /// The command, and what is special about this use of it.
    name: &'static str,
    /// SERVED, LISTENER, CLOSED and USED are addresses; FRAMES are a message in two of them.
    args: &'static [&'static str],
    input: &'static [u8],
    /// It goes on until Ctrl-C: what happens to it, after how many lines of JSON it is enough.
    goes_on: Option<(Meets, usize)>,
    /// The exit code, but for what goes on.
    code: i32,
    /// Whether its results have the form of a table.
    has_table: bool,
}

/// What happens to what listens at an address.
type Meets = fn(&str);

impl Case {
    const fn new(name: &'static str, args: &'static [&'static str]) -> Self {
        Self {
            name,
            args,
            input: b"",
            goes_on: None,
            code: 0,
            has_table: false,
        }
    }

    const fn input(mut self, input: &'static [u8]) -> Self {
        self.input = input;
        self
    }

    const fn goes_on(mut self, meets: Meets, lines: usize) -> Self {
        self.goes_on = Some((meets, lines));
        self
    }

    const fn fails(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    const fn table(mut self) -> Self {
        self.has_table = true;
        self
    }

    fn command(&self) -> &'static str {
        self.args[0]
    }
}

const CASES: &[Case] = &[
    Case::new("probe", &["probe", "SERVED", "-n", "2"]).table(),
    Case::new(
        "probe, all of it",
        &[
            "probe",
            "SERVED",
            "-n",
            "2",
            "--resume",
            "--ability",
            "echo",
        ],
    )
    .table(),
    Case::new("probe, failed", &["probe", "CLOSED"])
        .fails(3)
        .table(),
    Case::new("ping", &["ping", "SERVED", "-n", "2", "-i", "1ms"]).table(),
    Case::new("ping, failed", &["ping", "CLOSED"])
        .fails(3)
        .table(),
    Case::new("check", &["check", "SERVED", "-w", "1h", "-c", "2h"]),
    Case::new("check, warning", &["check", "SERVED", "-w", "1ns"]),
    Case::new("check, failed", &["check", "CLOSED"]).fails(3),
    Case::new("watch", &["watch", "SERVED", "-n", "1"]).table(),
    Case::new("watch, failed", &["watch", "CLOSED"])
        .fails(3)
        .table(),
    Case::new("top", &["top", "SERVED", "--once"]).table(),
    Case::new("top, failed", &["top", "CLOSED", "--once"])
        .fails(3)
        .table(),
    Case::new(
        "call",
        &["call", "-t", "SERVED", "add", "-d", r#"{"a":1,"b":2}"#],
    ),
    Case::new(
        "call, an event",
        &[
            "call",
            "-t",
            "SERVED",
            "countdown",
            "-d",
            r#"{"from":1,"ms":1}"#,
        ],
    ),
    Case::new("call, failed", &["call", "-t", "SERVED", "fail"]).fails(1),
    Case::new("signal", &["signal", "-t", "SERVED", "request-1", "pause"]),
    Case::new(
        "signal, failed",
        &["signal", "-t", "CLOSED", "request-1", "pause"],
    )
    .fails(3),
    Case::new("sub", &["sub", "-t", "SERVED", "clock:*", "-n", "1"]).table(),
    Case::new("sub, failed", &["sub", "-t", "SERVED", "nacp:internal:*:*"])
        .fails(1)
        .table(),
    Case::new("emit", &["emit", "-t", "LISTENER"]).input(b"a:b 1\na:c {\"x\":2}\n"),
    Case::new("emit, failed", &["emit", "-t", "CLOSED", "a:b"]).fails(3),
    Case::new("serve", &["serve", "127.0.0.1:0"]).goes_on(visit, 3),
    Case::new("serve, failed", &["serve", "USED"]).fails(8),
    Case::new("bench", &["bench", "rtt", "SERVED", "-d", "5ms"]).table(),
    Case::new("bench, failed", &["bench", "rtt", "CLOSED"])
        .fails(3)
        .table(),
    Case::new("proxy", &["proxy", "127.0.0.1:0", "SERVED"]).goes_on(pass, 3),
    Case::new("proxy, failed", &["proxy", "USED", "127.0.0.1:1"]).fails(8),
    Case::new("decode", &["decode", "-x", "a1616101 01"]),
    Case::new("decode, frames", &["decode", "-x", "FRAMES"]),
    Case::new("decode, failed", &["decode", "-x", "a161"]).fails(7),
    Case::new("explain", &["explain", "appId-in-use"]).table(),
    Case::new("explain, a code", &["explain", "4"]).table(),
    Case::new("explain, failed", &["explain", "appid-in-us"])
        .fails(2)
        .table(),
    Case::new("completions", &["completions", "bash"]),
    Case::new("completions, failed", &["completions", "tcsh"]).fails(2),
    Case::new("man", &["man"]),
    Case::new("man, failed", &["man", "--dir", "/dev/null/man"]).fails(8),
];

/// The peers that the cases meet.
struct World {
    served: Served,
    listener: String,
    closed: String,
}

impl World {
    fn new() -> Self {
        let listener = server(|stream| {
            let mut peer = FakePeer::new(stream, "listener");
            let Some(app) = peer.accept() else { return };
            for pattern in ["a:b", "a:c"] {
                let target_sub_name = pattern.into();
                peer.send(&app, Body::Subscribe { target_sub_name });
            }
            peer.serve(|_| None);
        });
        Self {
            served: Served::start(),
            listener: format!("listener@{listener}"),
            closed: closed_port().to_string(),
        }
    }

    fn args(&self, case: &Case) -> Vec<String> {
        let arg = |arg: &&str| match *arg {
            // The proxy is asked for an address, the others for a target.
            "SERVED" if case.command() == "proxy" => self.served.address().to_owned(),
            "SERVED" => self.served.target.clone(),
            "USED" => self.served.address().to_owned(),
            "LISTENER" => self.listener.clone(),
            "CLOSED" => self.closed.clone(),
            "FRAMES" => hex::encode(look::frames(64)),
            other => other.to_owned(),
        };
        case.args.iter().map(arg).collect()
    }

    /// Runs a case to its end, or until it has printed enough.
    fn run(&self, case: &Case, form: &[&str]) -> Run {
        let mut command = command();
        command.args(self.args(case)).args(form);
        if !case.input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(case.input).unwrap();
        }
        let Some((meets, lines)) = case.goes_on else {
            return finish(child);
        };
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        stdout.read_line(&mut text).unwrap();
        let begins_with = text.clone();
        if !begins_with.is_empty() {
            meets(&address_in(&begins_with));
            let lines = if form.is_empty() { 1 } else { lines };
            for _ in 1..lines {
                stdout.read_line(&mut text).unwrap();
            }
            signal(child.id(), "INT");
        }
        std::io::Read::read_to_string(&mut stdout, &mut text).unwrap();
        let run = finish(child);
        Run {
            stdout: text,
            ..run
        }
    }
}

/// Where something listens, by the first line that it printed in whatever form.
fn address_in(line: &str) -> String {
    let port = line.split("127.0.0.1:").nth(1).unwrap();
    let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
    format!("127.0.0.1:{digits}")
}

/// A visitor that comes and goes.
fn visit(address: &str) {
    let visit = run(&["ping", "-n", "1", "--as", "visitor", address]);
    assert_eq!(visit.code, 0, "{visit:?}");
}

/// A connection through a proxy.
fn pass(address: &str) {
    visit(address);
}

fn expected(case: &Case) -> i32 {
    if case.goes_on.is_some() {
        130
    } else {
        case.code
    }
}

#[test]
fn every_command_is_in_the_table_going_well_and_failing() {
    for command in help::commands() {
        let of_it = || CASES.iter().filter(|case| case.command() == command);
        assert!(of_it().any(|case| case.code == 0), "{command} is missing");
        assert!(of_it().any(|case| case.code != 0), "{command} never fails");
    }
}

#[test]
fn for_people_results_are_on_standard_output_words_on_standard_error_and_nothing_is_coloured() {
    let world = World::new();
    for case in CASES {
        let run = world.run(case, &[]);
        assert_eq!(run.code, expected(case), "{}: {run:?}", case.name);
        if case.code == 0 {
            assert!(!run.stdout.is_empty(), "{}: {run:?}", case.name);
            assert!(!run.stderr.contains("error:"), "{}: {run:?}", case.name);
        } else {
            assert!(run.stderr.contains("error: "), "{}: {run:?}", case.name);
            assert!(!run.stdout.contains("error: "), "{}: {run:?}", case.name);
        }
        for text in [&run.stdout, &run.stderr] {
            assert!(!text.contains('\u{1b}'), "{}: {run:?}", case.name);
            assert!(!text.contains("panicked"), "{}: {run:?}", case.name);
        }
    }
}

/// What differs from run to run, made alike.
pub(crate) const FILTERS: [(&str, &str); 14] = [
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"nacp-cli-[0-9a-f]{8}\b", "nacp-cli-RANDOM"),
    (r"\d\d\d\d-\d\d-\d\dT[0-9:.]+Z", "TIME"),
    (r"(min|p50|p99|max) \d+\.\d+", "$1 TIME"),
    (r"\d+\.\d+ ?(ms|µs)\b", "TIME ms"),
    (r"took \d+(\.\d+)?(ns|µs|ms|s)", "took TIME"),
    (r#"("(?:[a-z0-9]+_)?ms": ?)\d+(\.\d+)?(e-\d+)?"#, "${1}TIME"),
    (
        r#"("(?:seconds|(?:mib_|in_|out_)?per_second)": ?)\d+(\.\d+)?"#,
        "${1}NUMBER",
    ),
    (r#"("messages_(?:in|out)": ?)\d+"#, "${1}NUMBER"),
    (r#"("(?:sent|received)": ?)\d{3,}"#, "${1}NUMBER"),
    (r#"("count": ?)\d+(,\s*"per_second)"#, "${1}NUMBER$2"),
    (
        r#"("app": ?"nacp-cli-serve",\s*"name": ?"clock:tick",\s*"payload": ?)\d+"#,
        "${1}NUMBER",
    ),
    (r#"("script": ?)".*""#, r#"$1"SCRIPT""#),
    (r#"("page": ?)".*""#, r#"$1"PAGE""#),
];

#[test]
fn as_json_every_command_prints_documents_with_a_schema_that_stay_as_they_are() {
    let world = World::new();
    for command in help::commands() {
        let mut shown = String::new();
        for case in CASES.iter().filter(|case| case.command() == command) {
            for form in [&["--json"][..], &["-o", "ndjson"]] {
                let run = world.run(case, form);
                assert_eq!(run.code, expected(case), "{}: {run:?}", case.name);
                documents_of(case, form, &run);
                let (args, form) = (case.args.join(" "), form.join(" "));
                shown += &format!("$ nacp-cli {args} {form}\n{}\n", run.stdout);
            }
        }
        with_settings!({filters => FILTERS.to_vec(), omit_expression => true}, {
            assert_snapshot!(command, shown);
        });
    }
}

/// The documents of a run, which are well-formed and tell its exit code.
fn documents_of(case: &Case, form: &[&str], run: &Run) -> Vec<Value> {
    let name = case.name;
    let documents = if form == ["--json"] && case.goes_on.is_none() && !is_stream(case) {
        vec![run.json()]
    } else {
        run.json_lines()
    };
    assert!(!documents.is_empty(), "{name}: {run:?}");
    for document in &documents {
        let schema = document["schema"].as_str().unwrap();
        assert!(schema.starts_with("nacp-cli/"), "{name}: {schema}");
    }
    let last = documents.last().unwrap();
    if !is_stream(case) || run.code != 0 {
        assert_eq!(last["exit"], run.code, "{name}: {run:?}");
        assert_eq!(last["ok"], run.code == 0, "{name}: {run:?}");
        assert_eq!(last["error"].is_object(), run.code != 0, "{name}: {run:?}");
    }
    documents
}

/// Whether it prints a document for each thing that happens.
fn is_stream(case: &Case) -> bool {
    matches!(case.command(), "watch" | "sub" | "serve" | "proxy")
}

#[test]
fn a_table_has_a_head_and_rows_and_who_has_none_refuses_it() {
    let world = World::new();
    for case in CASES {
        if case.has_table {
            let run = world.run(case, &["-o", "csv"]);
            assert_eq!(run.code, expected(case), "{}: {run:?}", case.name);
            let columns: Vec<_> = run.stdout.lines().map(columns).collect();
            assert!(columns.iter().all(|count| *count == columns[0]), "{run:?}");
            assert!(
                columns.len() > 1 || case.code != 0,
                "{}: {run:?}",
                case.name
            );
        } else if case.code == 0 {
            let refused = run(&with(&world.args(case), &["-o", "csv"]));
            assert_eq!(refused.code, 2, "{}: {refused:?}", case.name);
            assert_eq!(refused.stdout, "", "{}", case.name);
            let said = format!("error: {} has no csv form\n", case.command());
            assert!(refused.stderr.starts_with(&said), "{refused:?}");
        }
    }
}

/// How many cells a row has; a comma inside of quotes is none.
fn columns(row: &str) -> usize {
    let outside = row.split('"').step_by(2);
    1 + outside.map(|part| part.matches(',').count()).sum::<usize>()
}

fn with<'a>(args: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let args = args.iter().map(String::as_str);
    args.chain(more.iter().copied()).collect()
}

#[test]
fn t32_a_closed_pipe_is_success_for_every_command_in_every_form() {
    let world = World::new();
    for case in CASES.iter().filter(|case| case.code == 0) {
        for form in FORMS {
            if form == ["-o", "csv"] && !case.has_table {
                continue;
            }
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let run = world.run_into(case, form, writer);
            assert_eq!(run.code, 0, "{} {form:?}: {run:?}", case.name);
            assert!(!run.stderr.contains("panicked"), "{}: {run:?}", case.name);
            assert!(!run.stderr.contains("error:"), "{}: {run:?}", case.name);
        }
    }
}

#[test]
fn t32_a_full_disk_is_an_error_for_every_command_in_every_form() {
    let world = World::new();
    for case in CASES.iter().filter(|case| case.code == 0) {
        for form in FORMS {
            if form == ["-o", "csv"] && !case.has_table {
                continue;
            }
            let full = File::options().write(true).open("/dev/full").unwrap();
            let run = world.run_into(case, form, full);
            assert_eq!(run.code, 8, "{} {form:?}: {run:?}", case.name);
            assert!(run.stderr.contains("cannot write the output"), "{run:?}");
        }
    }
}

const FORMS: [&[&str]; 4] = [&[], &["--json"], &["-o", "ndjson"], &["-o", "csv"]];

impl World {
    /// Runs a case whose output goes where nothing can be written.
    fn run_into(&self, case: &Case, form: &[&str], into: impl Into<Stdio>) -> Run {
        let mut command = command();
        command.args(self.args(case)).args(form).stdout(into);
        if !case.input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(case.input).unwrap();
        }
        finish(child)
    }
}

#[test]
fn the_page_about_json_has_every_schema_and_every_field_and_no_others() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md"));
    let page = page.unwrap();
    let world = World::new();
    let mut met = std::collections::BTreeSet::new();
    for case in CASES {
        let form = &["-o", "ndjson"];
        for document in documents_of(case, form, &world.run(case, form)) {
            let schema = document["schema"].as_str().unwrap().to_owned();
            check_fields(&page, &schema, &document);
            met.insert(schema);
        }
    }
    let words = page.split(|c: char| !c.is_ascii_alphanumeric() && !"-/".contains(c));
    let told = words.filter(|word| word.starts_with("nacp-cli/") && word.ends_with("/1"));
    let mut told: std::collections::BTreeSet<_> = told.map(str::to_owned).collect();
    // For people it needs a terminal: the tests of `top` look at it.
    assert!(told.remove("nacp-cli/top-frame/1"));
    assert_eq!(met, told);
}

/// Names from elsewhere are no fields: what a call answers, and what an app is called.
fn check_fields(page: &str, schema: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_told = page.contains(&format!("`{name}`"));
                assert!(is_told, "{name} of {schema} is not in the page");
                let is_theirs = matches!(name.as_str(), "result" | "payload" | "item" | "value");
                if !is_theirs && !matches!(name.as_str(), "abilities" | "events") {
                    check_fields(page, schema, value);
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| check_fields(page, schema, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
