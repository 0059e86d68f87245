//! `proxy`: a bad line, and what the others make of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::terminal::Terminal;
use crate::support::{Served, closed_port, command, finish, run, signal};

/// A proxy before a served peer; ends with the value.
struct Proxy {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    address: String,
}

impl Proxy {
    fn start(target: &str, faults: &[&str]) -> Self {
        let mut proxy = command();
        proxy
            .args(["proxy", "127.0.0.1:0", target, "--json"])
            .args(faults)
            .stderr(Stdio::null());
        let mut child = proxy.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut proxy = Self {
            child,
            lines,
            address: String::new(),
        };
        proxy.address = proxy.next()["address"].as_str().unwrap().to_owned();
        proxy
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn without_faults_everything_passes_and_is_counted() {
    let served = Served::start();
    let mut proxy = Proxy::start(served.address(), &[]);
    let probe = run(&["probe", &proxy.address, "--resume", "--json"]);
    assert_eq!(probe.code, 0, "{probe:?}");
    assert_eq!(proxy.next()["event"], "opened");
    let mut closed = proxy.next();
    while closed["event"] != "closed" {
        closed = proxy.next();
    }
    assert!(closed["sent"].as_u64().unwrap() > 100, "{closed}");
    assert!(closed["received"].as_u64().unwrap() > 100, "{closed}");
}

#[test]
fn a_delay_shows_in_every_round_trip() {
    let served = Served::start();
    let proxy = Proxy::start(served.address(), &["--delay", "30ms"]);
    let ping = run(&["ping", &proxy.address, "-n", "2", "-i", "1ms", "--json"]);
    assert_eq!(ping.code, 0, "{ping:?}");
    assert!(
        ping.json()["rtt"]["min_ms"].as_f64().unwrap() >= 60.0,
        "{ping:?}"
    );
}

#[test]
fn a_slow_line_takes_its_time() {
    let served = Served::start();
    let proxy = Proxy::start(served.address(), &["--slow", "10000"]);
    let argument = format!("\"{}\"", "x".repeat(1000));
    let call = run(&[
        "call",
        "sink",
        "-t",
        &proxy.address,
        "-d",
        &argument,
        "--json",
    ]);
    assert_eq!(call.code, 0, "{call:?}");
    assert!(
        call.json()["took_ms"].as_f64().unwrap() >= 100.0,
        "{call:?}"
    );
}

#[test]
fn a_cut_ends_a_ping_with_6() {
    let served = Served::start();
    let proxy = Proxy::start(served.address(), &["--cut-after", "200ms"]);
    let ping = run(&["ping", &proxy.address, "-i", "1ms", "--json"]);
    assert_eq!(ping.code, 6, "{ping:?}");
    assert!(ping.json()["received"].as_u64().unwrap() > 0, "{ping:?}");
}

#[test]
fn a_black_hole_ends_a_ping_with_5() {
    let served = Served::start();
    let proxy = Proxy::start(served.address(), &["--blackhole-after", "200ms"]);
    let ping = run(&[
        "ping",
        &proxy.address,
        "-i",
        "1ms",
        "--timeout",
        "1s",
        "--json",
    ]);
    assert_eq!(ping.code, 5, "{ping:?}");
    assert!(ping.json()["received"].as_u64().unwrap() > 0, "{ping:?}");
}

#[test]
fn a_target_that_is_not_there_closes_the_connection() {
    let mut proxy = Proxy::start(&closed_port().to_string(), &[]);
    assert_eq!(run(&["ping", &proxy.address, "-n", "1"]).code, 6);
    assert_eq!(proxy.next()["event"], "opened");
    assert_eq!(proxy.next()["why"], "target-unreachable");
}

#[test]
fn the_key_c_cuts_and_a_subscription_comes_back() {
    let served = Served::start();
    let port = closed_port().to_string();
    let mut terminal = Terminal::start(&["proxy", &port, served.address()]);
    terminal.wait_for("c cut");
    let mut watch = command();
    watch.args(["watch", &port, "-n", "3", "--json"]);
    let mut child = watch.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut state = || -> String {
        let change: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        change["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(), "online");
    terminal.press("c");
    terminal.wait_for("#1 cut");
    assert_eq!((state().as_str(), state().as_str()), ("offline", "online"));
    assert_eq!(finish(child).code, 0);
    for (key, said) in [
        ("b", "black hole on"),
        ("b", "black hole off"),
        ("d", "delay of 200ms on"),
        ("d", "delay of 200ms off"),
        ("s", "16000 bytes a second on"),
        ("s", "16000 bytes a second off"),
    ] {
        terminal.press(key);
        terminal.wait_for(said);
    }
}

#[test]
fn ctrl_c_ends_a_proxy_with_130() {
    let served = Served::start();
    let mut proxy = Proxy::start(served.address(), &[]);
    signal(proxy.child.id(), "INT");
    assert_eq!(
        crate::support::wait(&mut proxy.child, std::time::Duration::from_secs(5)),
        130
    );
}
