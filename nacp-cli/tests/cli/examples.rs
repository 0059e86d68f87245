//! The examples of the helps, as they stand there, against peers that have what they ask for.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nacp::{Builder, EventContext, HandlerError, Payload};

use crate::help;
use crate::support::native::NativePeer;
use crate::support::{Run, command, finish, run, signal};

/// The peers and files that the examples name.
struct World {
    weather: NativePeer,
    store: NativePeer,
    folder: PathBuf,
}

impl World {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("nacp-cli-examples-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
        write("record.json", b"{}");
        write("body.cbor", &[0xa1, 0x61, 0x61, 0xf5]);
        write("capture.bin", &crate::look::frames(64));
        Self {
            weather: busy("weather"),
            store: busy("store"),
            folder,
        }
    }

    /// The example with the addresses and names that there are here.
    fn here(&self, example: &str) -> String {
        let (weather, store) = (self.weather.address(), self.store.address());
        let mut line = example.to_owned();
        for (there, here) in [
            // What listens does so on a free port.
            ("serve '[::]:7420'", "serve '[::]:0'".to_owned()),
            ("127.0.0.1:7421 ", "127.0.0.1:0 ".to_owned()),
            ("0.0.0.0:7430", "127.0.0.1:0".to_owned()),
            ("/usr/share/man/man1", "man".to_owned()),
            ("log@host:7420", self.weather.target()),
            ("host:7421", store),
            ("[::1]:7420", weather.clone()),
            ("host:7420", weather.clone()),
            ("127.0.0.1:7420", weather),
        ] {
            line = line.replace(there, &here);
        }
        if line == "nacp-cli serve" {
            line.push_str(" 127.0.0.1:0");
        }
        if line == "nacp-cli top" || line.starts_with("nacp-cli top ") && !line.contains("--once") {
            // Its screen is for a terminal.
            line.push_str(" --once");
        }
        if line.starts_with("nacp-cli bench") {
            line.push_str(" -d 5ms");
        }
        line
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A peer with all that the examples call, which emits what they listen to, and listens to what they
/// emit.
fn busy(app: &str) -> NativePeer {
    let countdown = async |_: EventContext, _| Ok::<_, HandlerError>(Payload::empty());
    let abilities = |builder: Builder| {
        let names = ["add", "today", "store", "sum"];
        names
            .into_iter()
            .fold(builder, |builder, name| {
                builder.ability_raw(name, async |_, payload| Ok(payload))
            })
            .event_raw("countdown", countdown)
    };
    let peer = NativePeer::start(app, abilities);
    let node = peer.node.clone();
    let mut changes = node.watch_links();
    peer.runtime.spawn(async move {
        while let Some(change) = changes.next().await {
            // To none of them but `emit` is it of use.
            let node = node.clone();
            tokio::spawn(async move {
                for pattern in ["job:7:done", "a:b", "a:c"] {
                    if let Ok(mut events) = node.subscribe(change.app.clone(), pattern).await {
                        tokio::spawn(async move { while events.next().await.is_some() {} });
                    }
                }
            });
        }
    });
    let node = peer.node.clone();
    peer.runtime.spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(10));
        loop {
            pace.tick().await;
            for name in ["clock:tick", "login:new"] {
                node.emit(name, &1).unwrap();
            }
        }
    });
    peer
}

/// The lines below "Examples:", without what explains them.
fn examples(command: &str) -> Vec<String> {
    let help = run(&[command, "--help"]);
    let (_, after) = help.stdout.split_once("\nExamples:\n").unwrap();
    let lines = after.lines().take_while(|line| line.starts_with("  "));
    let lines = lines.map(|line| {
        let line = line.trim_start();
        line.split_once("  ").map_or(line, |(example, _)| example)
    });
    lines.map(str::to_owned).collect()
}

/// What comes before the program in a pipe, and its own arguments; what comes after it is not ours.
fn parts(line: &str) -> (Option<&str>, &str) {
    let (before, own) = match line.split_once("| nacp-cli ") {
        Some((before, own)) => (Some(before), own),
        None => (None, line.strip_prefix("nacp-cli ").unwrap()),
    };
    let own = own.split(" | ").next().unwrap_or(own);
    (before, own.split(" > ").next().unwrap_or(own))
}

fn shell(line: &str, folder: &Path) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).current_dir(folder);
    shell
}

/// Runs an example until it has ended or has printed something, and then ends it.
fn carry_out(line: &str, world: &World) -> Run {
    let (before, own) = parts(line);
    let input = before.map(|before| shell(before, &world.folder).output().unwrap().stdout);
    let mut shell = shell(&format!("exec \"$cli\" {own}"), &world.folder);
    shell
        .env("cli", command().get_program())
        .env("NO_COLOR", "1")
        .env("NACP_CONFIG", "/nonexistent/nacp-cli.toml")
        .env("NACP_TARGET", world.weather.address())
        .env("NACP_TIMEOUT", "2s")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&input.unwrap_or_default()).unwrap();
    drop(stdin);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    let goes_on = own.starts_with("serve")
        || own.starts_with("proxy")
        || own.starts_with("watch")
        || own.starts_with("sub")
        || own.starts_with("ping");
    if goes_on {
        signal(child.id(), "INT");
    }
    std::io::Read::read_to_string(&mut stdout, &mut first).unwrap();
    let run = finish(child);
    Run {
        stdout: first,
        ..run
    }
}

#[test]
fn the_three_commands_of_the_welcome_work() {
    let world = World::new();
    let welcome = run(&[]);
    let commands = welcome.stdout.lines().map(str::trim_start);
    let commands = commands.filter(|line| line.starts_with("nacp-cli ") && line.contains("  "));
    let commands: Vec<_> = commands.collect();
    assert_eq!(commands.len(), 3, "{welcome:?}");
    for line in commands {
        let example = line.split_once("  ").unwrap().0;
        let run = carry_out(&world.here(example), &world);
        assert!(matches!(run.code, 0 | 130), "{example}: {run:?}");
        assert!(!run.stdout.is_empty(), "{example}: {run:?}");
    }
}

#[test]
fn every_example_of_every_help_works() {
    let world = World::new();
    for command in help::commands() {
        let examples = examples(&command);
        assert!(!examples.is_empty(), "{command}");
        for example in examples {
            let line = world.here(&example);
            let run = carry_out(&line, &world);
            // Nobody comes to where one listens, and two runs of one bench may differ by anything.
            let may_fail = line.contains("--listen") || line.contains("--compare");
            let is_well = matches!(run.code, 0 | 130) || may_fail && run.code == 1;
            assert!(is_well, "{example}: {line}: {run:?}");
            assert!(!run.stdout.is_empty() || line.contains("--dir") || may_fail);
        }
    }
}
