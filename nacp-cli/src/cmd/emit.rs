//! Events for peers that have subscribed to us.

use std::sync::Arc;

use nacp::proto::AppId;
use nacp::{Builder, NApp, NotifyError, Payload};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::args::EmitArgs;
use crate::argument::argument;
use crate::dial::{Plan, Session};
use crate::escape::escaped;
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::value;

#[derive(Default, Serialize)]
struct Emitted {
    /// Events that somebody had subscribed to.
    emitted: u64,
    /// Subscriptions that they hit, together.
    delivered: u64,
}

/// Where the events come from.
enum Source {
    One(String, Payload),
    Lines,
}

/// A node that emits.
struct Emitter<'a> {
    node: &'a NApp,
    /// Told each time that something was answered, a subscribe maybe.
    answered: Arc<Notify>,
    plan: &'a Plan,
    done: Emitted,
}

pub(crate) async fn run(
    args: EmitArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let source = match &args.name {
        Some(name) => Source::One(name.clone(), argument(args.data.as_deref())?),
        None => Source::Lines,
    };
    let plan = Plan::new(&args.dial, args.target.target.as_ref())?;
    let listen = args.listen.clone();
    let configure = |builder: Builder| match &listen {
        Some(address) => builder.listen(address),
        None => builder,
    };
    let session = Session::start(&plan, plan.target()?, configure).await?;
    let mut emitter = Emitter::new(&session.node, &plan)?;
    let emitting = async {
        let peer = match &listen {
            None => Some(session.connect(plan.deadline()).await?),
            Some(_) => {
                for address in session.node.listen_addresses() {
                    let app = session.node.app_id();
                    output
                        .notes()
                        .note(format_args!("listening on {app}@{address}"));
                }
                None
            }
        };
        emitter.all(source, peer.as_ref()).await
    };
    let ended = tokio::select! {
        biased;
        ended = emitting => ended,
        () = interrupt.times(1) => Err(Failure::interrupted("emit")),
    };
    let done = emitter.done;
    session.close(interrupt).await;
    let is_summed_up = match &ended {
        Ok(()) => true,
        Err(failure) => failure.exit == Exit::Interrupted,
    };
    if is_summed_up {
        let Emitted { emitted, delivered } = &done;
        output.human(format_args!("{emitted} emitted, {delivered} delivered"))?;
    }
    output.document("emit", done, ended.as_ref().err())?;
    ended.map_err(Stop::Told)
}

impl<'a> Emitter<'a> {
    fn new(node: &'a NApp, plan: &'a Plan) -> Result<Self, Failure> {
        let answered = Arc::new(Notify::new());
        let told = Arc::clone(&answered);
        // When the answer to a subscribe leaves, its subscription is in the books.
        let listener = node.listen("nacp:outbound:response", move |_| told.notify_one());
        listener.map_err(|error| Failure::local("emit", error.to_string()))?;
        Ok(Self {
            node,
            answered,
            plan,
            done: Emitted::default(),
        })
    }

    async fn all(&mut self, source: Source, peer: Option<&AppId>) -> Result<(), Failure> {
        match source {
            Source::One(name, payload) => self.emit(&name, payload, peer).await,
            Source::Lines => {
                let mut lines = BufReader::new(tokio::io::stdin()).lines();
                let unreadable = |error: std::io::Error| {
                    Failure::usage(format!("cannot read standard input: {error}"))
                };
                while let Some(line) = lines.next_line().await.map_err(unreadable)? {
                    if line.trim().is_empty() {
                        continue;
                    }
                    let (name, payload) = read(&line)?;
                    self.emit(&name, payload, peer).await?;
                }
                Ok(())
            }
        }
    }

    /// Emits one event, as soon as somebody has subscribed to it.
    async fn emit(
        &mut self,
        name: &str,
        payload: Payload,
        peer: Option<&AppId>,
    ) -> Result<(), Failure> {
        let deadline = self.plan.deadline();
        loop {
            let hits = match peer {
                Some(peer) => self.notify(peer, name, &payload, deadline).await?,
                None => self.node.emit_raw(name, payload.clone()),
            };
            if hits > 0 {
                self.done.emitted += 1;
                self.done.delivered += hits as u64;
                return Ok(());
            }
            if timeout_at(deadline, self.answered.notified())
                .await
                .is_err()
            {
                return Err(self.nobody(name));
            }
        }
    }

    async fn notify(
        &self,
        peer: &AppId,
        name: &str,
        payload: &Payload,
        deadline: Instant,
    ) -> Result<usize, Failure> {
        let value = payload.to_value();
        let value = value.map_err(|error| Failure::usage(error.to_string()))?;
        match timeout_at(deadline, self.node.notify(peer, name, &value)).await {
            Ok(Ok(hits)) => Ok(hits),
            Ok(Err(NotifyError::NotSubscribed)) => Ok(0),
            Ok(Err(error)) => Err(Failure::new(
                Exit::LinkLost,
                "emit",
                "peer-gone",
                format!("{} was not delivered: {error}", escaped(name)),
            )),
            Err(_) => Err(Failure::timed_out(
                "emit",
                "the event was not taken in time",
            )),
        }
    }

    fn nobody(&self, name: &str) -> Failure {
        let limit = self.plan.timeout;
        let message = format!(
            "nobody has subscribed to {} within {limit:?}",
            escaped(name)
        );
        Failure::new(Exit::SaidNo, "emit", "not-subscribed", message)
            .hint("the peer must subscribe to this app, under the AppId of --as")
    }
}

fn read(line: &str) -> Result<(String, Payload), Failure> {
    let line = line.trim();
    let (name, data) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let payload = value::payload(data)
        .map_err(|error| Failure::usage(format!("{}: the value is {error}", escaped(name))))?;
    Ok((name.to_owned(), payload))
}
