use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::exit::Exit;

/// Ctrl-C, or the system's request to end, as often as it came.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    times: watch::Receiver<u32>,
    /// Somebody has noticed and is ending the run.
    noticed: Arc<AtomicBool>,
}

/// How long a run may go on that does not notice, because it hangs in a write to a pipe that
/// nobody reads.
const PATIENCE: Duration = Duration::from_secs(1);

impl Interrupt {
    /// Catches the signals from now on. Needs a runtime with a thread beside the caller's.
    ///
    /// # Errors
    ///
    /// If the operating system does not let us.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let (sender, times) = watch::channel(0);
        let noticed = Arc::new(AtomicBool::new(false));
        let mut signals = Signals::new()?;
        let seen = Arc::clone(&noticed);
        tokio::spawn(async move {
            while signals.recv().await {
                sender.send_modify(|times| *times += 1);
                let count = *sender.borrow();
                tokio::spawn(end_if_unnoticed(Arc::clone(&seen), count));
            }
        });
        Ok(Self { times, noticed })
    }

    /// Waits until it has come so many times.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the count stays.
    pub(crate) async fn times(&self, times: u32) {
        let mut receiver = self.times.clone();
        if receiver.wait_for(|count| *count >= times).await.is_err() {
            std::future::pending::<()>().await;
        }
        self.noticed.store(true, Ordering::Relaxed);
    }
}

async fn end_if_unnoticed(noticed: Arc<AtomicBool>, count: u32) {
    sleep(PATIENCE).await;
    if !noticed.load(Ordering::Relaxed) || count > 2 {
        std::process::exit(Exit::Interrupted.number().into());
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn recv(&mut self) -> bool {
        tokio::select! {
            came = self.interrupt.recv() => came.is_some(),
            came = self.terminate.recv() => came.is_some(),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "as on the systems that can refuse"
    )]
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn recv(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
