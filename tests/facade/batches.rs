//! Requests that come in one read, beside handlers that never give way (specification, section 8:
//! handlers run concurrently and never hold up the link).

use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use nacp::{HandlerError, NApp, RequestError};
use tokio::runtime::Runtime;

use crate::faults::Flow;
use crate::support::{Line, Net, Outcome, quick, within};

type Answer = Pin<Box<dyn Future<Output = Result<u32, RequestError>>>>;

/// A server on two threads of its own, and a client at the end of a line that can hold back.
struct Site {
    far: Runtime,
    _server: NApp,
    client: NApp,
    line: Line,
    /// Ends what `block` does when it is dropped.
    release: Sender<()>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a handler that works without giving way; nothing waits for it"
)]
async fn site() -> Result<Site, Box<dyn std::error::Error>> {
    let far = std::thread::spawn(|| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build()
    });
    let far = far.join().unwrap()?;
    let (release, held) = channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let both = Arc::new(Barrier::new(2));
    let server = Net::Tcp
        .server("server")
        .ability("block", move |n: u32| {
            let held = Arc::clone(&held);
            async move {
                // As a badly written handler does; the test ends it.
                let _ = held.lock().unwrap().recv_timeout(Duration::from_secs(15));
                Ok::<_, HandlerError>(n)
            }
        })
        .ability("meet", move |n: u32| {
            let both = Arc::clone(&both);
            async move {
                both.wait();
                Ok::<_, HandlerError>(n)
            }
        })
        .ability("work", async |n: u32| {
            std::thread::sleep(Duration::from_millis(2));
            Ok::<_, HandlerError>(n)
        })
        .ability("later", async |n: u32| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok::<_, HandlerError>(n)
        })
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n));
    let server = far.spawn(server.start()).await??;
    let line = Net::Tcp.line_to(&server).await;
    let client = NApp::builder("client").reconnect(quick()).start().await?;
    client.connect(line.target()).await?;
    Ok(Site {
        far,
        _server: server,
        client,
        line,
        release,
    })
}

impl Site {
    /// Sends a request for each ability, with its place as the value, so that they come in one read.
    async fn send(&self, abilities: &[&str]) -> Vec<Answer> {
        self.line.up(Flow::Hold);
        let mut answers = Vec::new();
        for (ability, n) in abilities.iter().zip(0_u32..) {
            let request = self.client.request::<u32>("server", ability, &n);
            let mut answer: Answer = Box::pin(request.into_future());
            assert!(futures_util::poll!(&mut answer).is_pending());
            answers.push(answer);
        }
        self.line.up(Flow::Pass);
        answers
    }

    /// Waits for all answers but that of the request at `blocked`, which comes when it is released.
    async fn answered_beside(self, blocked: usize, mut answers: Vec<Answer>) -> Outcome {
        let mut blocking = answers.remove(blocked);
        let others = (0..).filter(|n| *n != blocked as u32);
        for (n, answer) in others.zip(answers) {
            assert_eq!(within("an answer", answer).await?, n);
        }
        within("a beat", self.client.heartbeat("server")).await?;
        assert!(futures_util::poll!(&mut blocking).is_pending());
        drop(self.release);
        assert_eq!(within("the last answer", blocking).await?, blocked as u32);
        self.far.shutdown_background();
        Ok(())
    }
}

#[tokio::test]
async fn requests_behind_one_that_blocks_are_served() -> Outcome {
    let site = site().await?;
    let abilities = [&["block"][..], &["echo"; 50]].concat();
    let answers = site.send(&abilities).await;
    site.answered_beside(0, answers).await
}

#[tokio::test]
async fn answers_given_before_a_handler_blocks_leave_at_once() -> Outcome {
    let site = site().await?;
    let answers = site.send(&["work", "echo", "work", "echo", "block"]).await;
    site.answered_beside(4, answers).await
}

#[tokio::test]
async fn a_handler_that_gave_way_goes_on_while_the_next_one_blocks() -> Outcome {
    let site = site().await?;
    let answers = site.send(&["later", "later", "block", "later"]).await;
    site.answered_beside(2, answers).await
}

#[tokio::test]
async fn requests_behind_one_that_blocks_are_served_although_their_connection_ends() -> Outcome {
    let site = site().await?;
    let abilities = [&["block"][..], &["echo"; 50]].concat();
    let answers = site.send(&abilities).await;
    site.line.cut();
    site.answered_beside(0, answers).await
}

#[tokio::test]
async fn handlers_that_wait_for_each_other_on_their_threads_meet() -> Outcome {
    let site = site().await?;
    for (n, answer) in (0..).zip(site.send(&["meet", "meet", "echo"]).await) {
        assert_eq!(within("an answer", answer).await?, n);
    }
    site.far.shutdown_background();
    Ok(())
}

#[tokio::test]
async fn a_row_of_handlers_that_take_long_is_answered_in_full() -> Outcome {
    let site = site().await?;
    for (n, answer) in (0..).zip(site.send(&["work"; 200]).await) {
        assert_eq!(within("an answer", answer).await?, n);
    }
    site.far.shutdown_background();
    Ok(())
}
