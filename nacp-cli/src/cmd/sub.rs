//! Events of a peer, as they come.

mod template;

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, SelectAll};
use nacp::proto::AppId;
use nacp::{
    LinkChange, LinkState, LinkWatch, Notification, Reconnect, StreamEnd, SubscribeError,
    Subscription, Undelivered,
};
use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::args::SubArgs;
use crate::dial::{Plan, Session, not_subscribed};
use crate::escape::escaped;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Format, Notes, Output};
use crate::value;

use template::Template;

#[derive(Serialize)]
struct Event<'a> {
    app: &'a str,
    name: &'a str,
    payload: serde_json::Value,
    /// Events before this one that did not arrive; null if the peer does not count.
    missed: Option<u64>,
}

/// What one of the patterns brings, by its index.
enum Heard {
    Event(usize, Notification),
    /// The last of its pattern.
    Ended(usize, StreamEnd),
}

/// What there is to listen with, and what has come.
struct Listening<'a> {
    args: &'a SubArgs,
    template: Option<Template>,
    has_begun: bool,
    count: u64,
    missed: u64,
    patterns: Vec<String>,
    /// Why the first of the patterns that ended did; it gives the exit code, as the same command
    /// would meet it again.
    lost: Option<Failure>,
}

pub(crate) async fn run(
    args: SubArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let template = args.format.as_deref().map(str::parse).transpose();
    let plan = Plan::new(&args.dial, args.target.target.as_ref())?;
    let mut listening = Listening {
        template: template.map_err(Failure::usage)?,
        has_begun: false,
        count: 0,
        missed: 0,
        patterns: args.patterns.clone(),
        lost: None,
        args: &args,
    };
    let keep = |builder: nacp::Builder| builder.reconnect(Reconnect::default());
    let session = Session::start(&plan, plan.target()?, keep).await?;
    let ended = tokio::select! {
        biased;
        ended = listening.go(&session, &plan, output) => ended,
        () = interrupt.times(1) => Err(Failure::interrupted("sub").into()),
    };
    listening.sum_up(output.notes());
    session.close(interrupt).await;
    ended
}

impl Listening<'_> {
    async fn go(
        &mut self,
        session: &Session,
        plan: &Plan,
        output: &mut Output,
    ) -> Result<(), Stop> {
        let deadline = plan.deadline();
        let peer = session.connect(deadline).await?;
        let mut changes = session.node.watch_links();
        let mut events = self.subscribe(session, &peer, deadline).await?;
        output.notes().note(format_args!("listening at {peer}"));
        self.has_begun = true;
        if self.template.is_none() {
            output.row(&[&"name", &"missed", &"payload"])?;
        }
        let mut silence_ends = self.silence_ends();
        while self.args.count.is_none_or(|count| self.count < count) {
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(Heard::Event(pattern, event)) => {
                        silence_ends = self.silence_ends();
                        self.show(pattern, &event, output)?;
                    }
                    Some(Heard::Ended(pattern, end)) => {
                        self.lose(pattern, end, &peer, output.notes());
                    }
                    None => break,
                },
                change = changes.next() => told(change, &mut changes, output.notes()),
                () = wait_until(silence_ends) => return self.silent(),
            }
        }
        self.result()
    }

    async fn subscribe(
        &self,
        session: &Session,
        peer: &AppId,
        deadline: Instant,
    ) -> Result<SelectAll<BoxStream<'static, Heard>>, Failure> {
        let mut events = SelectAll::new();
        for (index, pattern) in self.patterns.iter().enumerate() {
            let subscribing = session.node.subscribe(peer, pattern);
            let subscribed: Subscription = match timeout_at(deadline, subscribing).await {
                Ok(subscribed) => {
                    subscribed.map_err(|error| not_subscribed("subscribe", &error))?
                }
                Err(_) => {
                    return Err(Failure::timed_out(
                        "subscribe",
                        "no answer to the subscribe",
                    ));
                }
            };
            events.push(heard(index, subscribed));
        }
        Ok(events)
    }

    fn silence_ends(&self) -> Option<Instant> {
        self.args.idle.map(|idle| Instant::now() + idle)
    }

    /// The silence that was asked for; a failure only if nothing had come at all.
    fn silent(&mut self) -> Result<(), Stop> {
        self.result()?;
        let idle = self.args.idle.unwrap_or(Duration::ZERO);
        match self.count {
            0 => Err(Failure::timed_out("sub", format!("nothing came within {idle:?}")).into()),
            _ => Ok(()),
        }
    }

    /// A pattern has ended. That is told at once; of the only one, the end of the command tells it.
    fn lose(&mut self, pattern: usize, end: StreamEnd, peer: &AppId, notes: Notes) {
        let pattern = self.patterns.get(pattern).map_or("", String::as_str);
        let failure = lost(pattern, end, peer);
        if self.patterns.len() > 1 {
            notes.failure("sub", &failure);
        }
        self.lost.get_or_insert(failure);
    }

    fn result(&mut self) -> Result<(), Stop> {
        self.lost.take().map_or(Ok(()), |lost| Err(lost.into()))
    }

    fn show(
        &mut self,
        pattern: usize,
        event: &Notification,
        output: &mut Output,
    ) -> std::io::Result<()> {
        self.count += 1;
        let missed = event.missed.unwrap_or(0);
        self.missed += missed;
        if missed > 0 {
            output
                .notes()
                .note(format_args!("{missed} events are missing here"));
        }
        let payload = value::shown(&event.payload);
        if let Some(template) = &self.template {
            let pattern = self.patterns.get(pattern).map_or("", String::as_str);
            return output.plain(template.fill(event, &payload, pattern));
        }
        match output.format() {
            Format::Human => output.human(format_args!("{} {payload}", escaped(&event.name))),
            Format::Csv => output.row(&[&escaped(&event.name), &missed, &payload]),
            Format::Json | Format::Ndjson => output.record(
                "sub-event",
                Event {
                    app: event.from.as_str(),
                    name: &event.name,
                    payload,
                    missed: event.missed,
                },
            ),
        }
    }

    fn sum_up(&self, notes: Notes) {
        if !self.has_begun {
            return;
        }
        let events = if self.count == 1 { "event" } else { "events" };
        notes.note(format_args!(
            "{} {events}, {} missed",
            self.count, self.missed
        ));
    }
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The events of a subscription, and then why it has ended.
fn heard(index: usize, subscription: Subscription) -> BoxStream<'static, Heard> {
    let heard = stream::unfold(Some(subscription), move |subscription| async move {
        let mut subscription = subscription?;
        match subscription.next().await {
            Some(event) => Some((Heard::Event(index, event), Some(subscription))),
            None => {
                let end = subscription.ended();
                let end = end.unwrap_or(StreamEnd::Undelivered(Undelivered::Terminated));
                Some((Heard::Ended(index, end), None))
            }
        }
    });
    heard.boxed()
}

/// Tells how the link fares. The stream of changes ends with the node, and the events do too.
fn told(change: Option<LinkChange>, _: &mut LinkWatch, notes: Notes) {
    let Some(LinkChange {
        app,
        state,
        resumed,
        ..
    }) = change
    else {
        return;
    };
    match (state, resumed) {
        (LinkState::Online, Some(false)) => notes.note(format_args!(
            "{app} is back, without what it knew of this link; subscribing again"
        )),
        (LinkState::Online, _) => notes.note(format_args!("{app} is back")),
        (LinkState::Offline, _) => notes.note(format_args!("{app} is offline; reconnecting")),
        (LinkState::Dropped, _) => notes.note(format_args!("{app} is gone")),
    }
}

/// Why nothing more comes of a pattern.
fn lost(pattern: &str, end: StreamEnd, peer: &AppId) -> Failure {
    let (error, why) = match end {
        StreamEnd::Refused { why } => {
            let word = escaped(why.as_deref().unwrap_or("without a reason"));
            let told = format!("{peer} refused to subscribe it again: {word}");
            (SubscribeError::Rejected { why }, told)
        }
        StreamEnd::Undelivered(reason @ Undelivered::PeerGone) => {
            let told = format!("the link to {peer} is dropped");
            (SubscribeError::Undelivered(reason), told)
        }
        StreamEnd::Undelivered(reason) => {
            let told = format!("it could not be subscribed again: {reason}");
            (SubscribeError::Undelivered(reason), told)
        }
        _ => {
            let reason = Undelivered::Terminated;
            (SubscribeError::Undelivered(reason), reason.to_string())
        }
    };
    let mut failure = not_subscribed("sub", &error);
    failure.message = format!("{} has ended: {why}", escaped(pattern));
    failure
}
