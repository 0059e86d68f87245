use std::io;
use std::time::{Instant, SystemTime};

use nacp::link::Table;
use nacp::{LinkInfo, LinkState, NApp};
use serde::Serialize;

use crate::escape::escaped;
use crate::latency::{millis, round};
use crate::output::Output;

/// A node and its links at one moment.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Frame {
    time: String,
    pub(super) own: String,
    #[serde(skip)]
    at: Instant,
    pub(super) links: Vec<Link>,
    /// What was reported for which reason, since the start.
    pub(super) reasons: Vec<Reported>,
}

/// One link.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Link {
    pub(super) app: String,
    pub(super) state: &'static str,
    pub(super) gateway: bool,
    native: bool,
    /// Of the last beat.
    pub(super) rtt_ms: Option<f64>,
    pub(super) backlog: Waiting,
    pub(super) ack_pending: Waiting,
    messages_in: u64,
    messages_out: u64,
    /// Messages a second since the frame before.
    pub(super) in_per_second: Option<f64>,
    pub(super) out_per_second: Option<f64>,
    pub(super) replayed: u64,
}

/// Records of a table.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Waiting {
    pub(super) count: usize,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Reported {
    pub(super) reason: &'static str,
    pub(super) count: u64,
}

impl From<Table> for Waiting {
    fn from(table: Table) -> Self {
        Self {
            count: table.count,
            bytes: table.bytes,
        }
    }
}

impl Frame {
    /// Looks at a node; rates are since the frame before.
    pub(super) fn take(node: &NApp, before: Option<&Self>) -> Self {
        let at = Instant::now();
        let mut links = node.links();
        links.sort_by(|one, other| one.app.cmp(&other.app));
        let reasons = node.totals();
        Self {
            time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            own: node.app_id().as_str().to_owned(),
            at,
            links: links
                .iter()
                .map(|link| Link::new(link, at, before))
                .collect(),
            reasons: reasons
                .reasons()
                .map(|(reason, count)| Reported {
                    reason: reason.as_str(),
                    count,
                })
                .collect(),
        }
    }

    /// A row for each link.
    pub(super) fn rows(&self, output: &mut Output) -> io::Result<()> {
        let rate = |rate: Option<f64>| rate.map_or_else(String::new, |rate| rate.to_string());
        for link in &self.links {
            output.row(&[
                &self.time,
                &escaped(&link.app),
                &link.state,
                &link.gateway,
                &link.native,
                &rate(link.rtt_ms),
                &link.backlog.count,
                &link.backlog.bytes,
                &link.ack_pending.count,
                &link.ack_pending.bytes,
                &link.messages_in,
                &link.messages_out,
                &rate(link.in_per_second),
                &rate(link.out_per_second),
                &link.replayed,
            ])?;
        }
        Ok(())
    }

    /// For people without a screen.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            HEAD.map(|(name, width)| format!("{name:>width$}"))
                .join("  "),
        ];
        lines.extend(self.links.iter().map(Link::line));
        lines.extend(
            self.reasons
                .iter()
                .map(|Reported { reason, count }| format!("{count:>8}  {reason}")),
        );
        lines
    }
}

/// The head of [`Frame::rows`].
pub(super) fn head_row(output: &mut Output) -> io::Result<()> {
    output.row(&[
        &"time",
        &"app",
        &"state",
        &"gateway",
        &"native",
        &"rtt_ms",
        &"backlog_count",
        &"backlog_bytes",
        &"ack_pending_count",
        &"ack_pending_bytes",
        &"messages_in",
        &"messages_out",
        &"in_per_second",
        &"out_per_second",
        &"replayed",
    ])
}

/// The columns and their width.
pub(super) const HEAD: [(&str, usize); 9] = [
    ("APP", 24),
    ("STATE", 7),
    ("RTT ms", 9),
    ("BACKLOG", 8),
    ("BYTES", 10),
    ("UNACKED", 8),
    ("BYTES", 10),
    ("IN/s", 8),
    ("OUT/s", 8),
];

impl Link {
    fn new(link: &LinkInfo, at: Instant, before: Option<&Frame>) -> Self {
        let earlier = before.and_then(|before| {
            let same = before
                .links
                .iter()
                .find(|known| known.app == link.app.as_str())?;
            Some((same, at.saturating_duration_since(before.at).as_secs_f64()))
        });
        #[expect(clippy::cast_precision_loss, reason = "a rate to three digits")]
        let rate = |now: u64, then: fn(&Self) -> u64| {
            let (earlier, seconds) = earlier?;
            Some(round(now.saturating_sub(then(earlier)) as f64 / seconds))
        };
        Self {
            app: link.app.as_str().to_owned(),
            state: match link.state {
                LinkState::Online => "online",
                LinkState::Offline => "offline",
                LinkState::Dropped => "dropped",
            },
            gateway: link.is_gateway,
            native: link.is_native,
            rtt_ms: link.round_trip.map(millis),
            backlog: link.backlog.into(),
            ack_pending: link.ack_pending.into(),
            messages_in: link.messages_in,
            messages_out: link.messages_out,
            in_per_second: rate(link.messages_in, |link| link.messages_in),
            out_per_second: rate(link.messages_out, |link| link.messages_out),
            replayed: link.replayed,
        }
    }

    /// Its cells, in the order of [`HEAD`].
    pub(super) fn cells(&self) -> [String; 9] {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        [
            escaped(&self.app),
            self.state.to_owned(),
            number(self.rtt_ms, 3),
            self.backlog.count.to_string(),
            self.backlog.bytes.to_string(),
            self.ack_pending.count.to_string(),
            self.ack_pending.bytes.to_string(),
            number(self.in_per_second, 1),
            number(self.out_per_second, 1),
        ]
    }

    fn line(&self) -> String {
        let cells = self.cells();
        let padded = cells
            .iter()
            .zip(HEAD)
            .map(|(cell, (_, width))| format!("{cell:>width$}"));
        padded.collect::<Vec<_>>().join("  ")
    }
}
