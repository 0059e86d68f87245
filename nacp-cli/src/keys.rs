//! Single keys from a terminal, without waiting for a line.

use tokio::sync::mpsc;

/// The terminal's keys; put back as they were when this is dropped.
#[derive(Debug)]
pub(crate) struct Keys {
    receiver: mpsc::Receiver<char>,
    #[cfg(unix)]
    _mode: unix::Mode,
}

impl Keys {
    /// Listens, if standard input is a terminal that is ours; `None` if not.
    #[cfg(unix)]
    pub(crate) fn listen() -> Option<Self> {
        let mode = unix::Mode::set()?;
        let (sender, receiver) = mpsc::channel(16);
        // Nothing ends a read from a terminal but the end of the process.
        std::thread::spawn(move || unix::read(&sender));
        Some(Self {
            receiver,
            _mode: mode,
        })
    }

    /// There is no such thing here.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> Option<Self> {
        None
    }

    /// The next key; never, once there are no more.
    pub(crate) async fn next(&mut self) -> char {
        match self.receiver.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{IsTerminal, Read, stdin};

    use rustix::process::getpgrp;
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
    use tokio::sync::mpsc;

    /// Keys come at once and are not shown; Ctrl-C stays what it is.
    #[derive(Debug)]
    pub(super) struct Mode(Termios);

    impl Mode {
        pub(super) fn set() -> Option<Self> {
            let stdin = stdin();
            // A job in the background would be stopped for touching its terminal.
            let is_ours = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
            if !stdin.is_terminal() || !is_ours {
                return None;
            }
            let before = tcgetattr(&stdin).ok()?;
            let mut now = before.clone();
            now.local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(&stdin, OptionalActions::Now, &now).ok()?;
            Some(Self(before))
        }
    }

    impl Drop for Mode {
        fn drop(&mut self) {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
        }
    }

    pub(super) fn read(sender: &mpsc::Sender<char>) {
        for byte in stdin().lock().bytes() {
            let Ok(byte) = byte else { return };
            if sender.blocking_send(char::from(byte)).is_err() {
                return;
            }
        }
    }
}
