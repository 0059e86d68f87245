//! Round trips, one after another.

use nacp::Payload;
use nacp::proto::AppId;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::PingArgs;
use crate::dial::{Plan, Session};
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::latency::{Latency, Summary, millis};
use crate::output::{Format, Output};

/// What is told at the end.
#[derive(Debug, Serialize)]
struct Pinged {
    app: Option<String>,
    address: Option<String>,
    sent: u64,
    received: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<Summary>,
}

#[derive(Serialize)]
struct Reply {
    seq: u64,
    rtt_ms: f64,
}

/// A run of pings, as far as it came.
struct Pings<'a> {
    args: &'a PingArgs,
    plan: &'a Plan,
    session: &'a Session,
    /// What each carries.
    beat: Payload,
    latency: Latency,
    done: Pinged,
}

/// A beat, with some bytes more if that was asked for: who does not know them ignores them.
#[derive(Serialize)]
struct Beat<'a> {
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<bytes::Bytes>,
}

pub(crate) async fn run(
    args: PingArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let plan = Plan::new(&args.dial, args.target.as_ref())?;
    let beat = Payload::new(&Beat {
        from: plan.own.as_str(),
        padding: args.size.map(|size| vec![0x5a; size as usize].into()),
    });
    let session = Session::start(&plan, plan.target()?, |b| b.heartbeat_interval(None)).await?;
    let mut pings = Pings {
        args: &args,
        plan: &plan,
        session: &session,
        beat: beat.map_err(|error| Failure::usage(error.to_string()))?,
        latency: Latency::new(),
        done: Pinged {
            app: None,
            address: None,
            sent: 0,
            received: 0,
            rtt: None,
        },
    };
    let ended = tokio::select! {
        biased;
        ended = pings.go(output) => ended,
        () = interrupt.times(1) => Err(Failure::interrupted("ping").into()),
    };
    let told = pings.conclude(ended, output);
    session.close(interrupt).await;
    told
}

impl Pings<'_> {
    async fn go(&mut self, output: &mut Output) -> Result<(), Stop> {
        let peer = self.session.connect(self.plan.deadline()).await?;
        self.done.app = Some(peer.as_str().to_owned());
        self.done.address = self.address();
        let at = self.done.address.as_deref().unwrap_or_default();
        output.human(format_args!("pinging {peer} at {at}"))?;
        output.row(&[&"seq", &"rtt_ms"])?;
        let mut ticks = interval(self.args.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.args.count.is_none_or(|count| self.done.sent < count) {
            ticks.tick().await;
            self.one(&peer, output).await?;
        }
        Ok(())
    }

    async fn one(&mut self, peer: &AppId, output: &mut Output) -> Result<(), Stop> {
        self.done.sent += 1;
        let seq = self.done.sent;
        let deadline = Instant::now() + self.plan.timeout;
        let began = Instant::now();
        let call = self
            .session
            .node
            .request_raw(peer, "NApp.heartbeat", self.beat.clone());
        self.session.answer("ping", deadline, call).await?;
        let rtt = began.elapsed();
        self.done.received += 1;
        self.latency.record(rtt);
        let rtt_ms = millis(rtt);
        match output.format() {
            Format::Human => output.human(format_args!(
                "reply from {peer}: seq={seq} time={rtt_ms:.3} ms"
            ))?,
            Format::Csv => output.row(&[&seq, &rtt_ms])?,
            Format::Ndjson => output.record("ping-reply", Reply { seq, rtt_ms })?,
            Format::Json => {}
        }
        Ok(())
    }

    fn address(&self) -> Option<String> {
        let seen = self.session.trace.seen();
        seen.connected
            .as_ref()
            .map(|connected| connected.remote.to_string())
    }

    fn conclude(&mut self, ended: Result<(), Stop>, output: &mut Output) -> Result<(), Stop> {
        let failure = match ended {
            Ok(()) => None,
            Err(Stop::Failed(failure) | Stop::Told(failure)) => Some(failure),
            Err(stop) => return Err(stop),
        };
        if (failure.as_ref()).is_some_and(|failure| failure.exit == Exit::Interrupted) {
            // The one under way is neither answered nor lost.
            self.done.sent = self.done.received;
        }
        self.done.rtt = self.latency.summary();
        self.summary(output)?;
        output.document("ping", &self.done, failure.as_ref())?;
        failure.map_or(Ok(()), |failure| Err(Stop::Told(failure)))
    }

    fn summary(&self, output: &mut Output) -> std::io::Result<()> {
        let Pinged {
            app,
            sent,
            received,
            rtt,
            ..
        } = &self.done;
        let Some(app) = app else {
            return Ok(());
        };
        let app = crate::escape::escaped(app);
        #[expect(clippy::cast_precision_loss, reason = "a share in whole percents")]
        let lost = (sent - received) as f64 * 100.0 / (*sent).max(1) as f64;
        output.human(format_args!(
            "--- {app} ---\n{sent} sent, {received} received, {lost:.0} % lost"
        ))?;
        match rtt {
            Some(rtt) => output.human(format_args!("round trip {rtt}"))?,
            None => return Ok(()),
        }
        if self.args.histogram {
            for line in self.latency.histogram() {
                output.human(line)?;
            }
        }
        Ok(())
    }
}
