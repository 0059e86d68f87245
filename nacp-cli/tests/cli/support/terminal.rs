//! A real terminal for the binary.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

/// The binary in a pseudo-terminal, and the screen it has drawn.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: Parser,
    _master: Box<dyn MasterPty + Send>,
}

/// What is waited for comes within this time.
const PATIENCE: Duration = Duration::from_secs(30);

impl Terminal {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// With variables in its environment.
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let (rows, cols) = (24, 100);
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(super::command().get_program());
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env("NACP_CONFIG", "/nonexistent/nacp-cli.toml");
        command.env_remove("NO_COLOR");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys: pair.master.take_writer().unwrap(),
            output,
            screen: Parser::new(rows, cols, 1000),
            _master: pair.master,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What the screen shows, without trailing white space.
    pub(crate) fn screen(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen shows a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn wait_until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(&self.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(error) => panic!("{what} did not come ({error}): {}", self.screen()),
            }
        }
    }

    /// The exit code, and the screen at the end.
    pub(crate) fn finish(self) -> (u32, String) {
        let (code, screen, _) = self.finish_with_bytes();
        (code, screen)
    }

    /// The exit code, the screen at the end, and all that came in between.
    pub(crate) fn finish_with_bytes(mut self) -> (u32, String, String) {
        let deadline = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        while let Ok(bytes) = self
            .output
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.screen.process(&bytes);
            all.extend(bytes);
        }
        let status = self.child.wait().unwrap();
        let all = String::from_utf8_lossy(&all).into_owned();
        (status.exit_code(), self.screen(), all)
    }
}
