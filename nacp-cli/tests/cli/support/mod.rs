//! The binary under test, and peers for it to meet.

pub(crate) mod fake_peer;
pub(crate) mod native;
pub(crate) mod terminal;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

/// What one run of the binary left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Run {
    /// The one JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.stdout))
    }

    /// The one JSON document, or the last of a stream.
    pub(crate) fn json_or_last_line(&self) -> Value {
        let whole = serde_json::from_str(&self.stdout);
        whole.unwrap_or_else(|_| self.json_lines().pop().unwrap())
    }

    /// One JSON document a line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The binary, without anything in its environment that would change what it does.
pub(crate) fn command() -> Command {
    let binary = cargo_bin_cmd!("nacp-cli").get_program().to_owned();
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NACP_") {
            command.env_remove(name);
        }
    }
    command.env_remove("RUST_LOG").env("NO_COLOR", "1");
    command.env("NACP_CONFIG", "/nonexistent/nacp-cli.toml");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the binary to its end, which must come within a minute.
pub(crate) fn run(args: &[&str]) -> Run {
    finish(command().args(args).spawn().unwrap())
}

/// Runs the binary with a text on its standard input.
pub(crate) fn run_with_input(args: &[&str], input: &[u8]) -> Run {
    let mut child = command().args(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    finish(child)
}

/// Waits for a child and takes what it wrote.
pub(crate) fn finish(mut child: Child) -> Run {
    let began = Instant::now();
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let status = wait(&mut child, Duration::from_secs(60));
    let text = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
        let bytes = reader
            .map(|reader| reader.join().unwrap())
            .unwrap_or_default();
        String::from_utf8(bytes).unwrap()
    };
    Run {
        code: status,
        stdout: text(stdout),
        stderr: text(stderr),
        took: began.elapsed(),
    }
}

fn drain(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// The exit code of a child that must end within `limit`; 128 and the signal if one killed it.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let pid = child.id();
    let (done, watched) = std::sync::mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if watched.recv_timeout(limit).is_err() {
            signal(pid, "KILL");
        }
    });
    let status = child.wait().unwrap();
    let _ = done.send(());
    watchdog.join().unwrap();
    assert_ne!(
        status.signal(),
        Some(9),
        "it had to be killed after {limit:?}"
    );
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap())
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(sent.unwrap().success());
}

/// `nacp-cli serve` on a free port; ends with the value.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    /// `APP@HOST:PORT`.
    pub(crate) target: String,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::start_with(&["127.0.0.1:0"])
    }

    pub(crate) fn start_with(args: &[&str]) -> Self {
        let mut command = command();
        command.arg("serve").args(args).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut target = String::new();
        lines.read_line(&mut target).unwrap();
        let target = target.trim_end().to_owned();
        assert!(target.contains('@'), "{target:?}");
        Self { child, target }
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.target.rsplit_once('@').unwrap().1
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP server on a free port that treats each connection so, in a thread of its own.
pub(crate) fn server(treat: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let treat = std::sync::Arc::new(treat);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let treat = std::sync::Arc::clone(&treat);
            thread::spawn(move || treat(stream.unwrap()));
        }
    });
    address
}

/// Reads until the other side ends, and says nothing.
pub(crate) fn stay_silent(mut stream: TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// A port with nothing behind it.
pub(crate) fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}
