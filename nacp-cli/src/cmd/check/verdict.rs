use std::fmt::{self, Write};
use std::time::Duration;

use nacp::proto::AppId;
use serde::Serialize;

use crate::args::CheckArgs;
use crate::escape::escaped;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::latency::millis;

/// How well the peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warning,
    Critical,
    Unknown,
}

/// What a check found.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    target: String,
    app: Option<String>,
    level: Level,
    /// The slowest beat.
    rtt_ms: Option<f64>,
    warn_ms: Option<f64>,
    critical_ms: Option<f64>,
    /// Why the level is not `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip)]
    failure: Option<Failure>,
}

impl Level {
    /// The exit code in Nagios's sense.
    pub(super) const fn nagios(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl Verdict {
    pub(super) fn new(args: &CheckArgs, target: String) -> Self {
        Self {
            target,
            app: None,
            level: Level::Ok,
            rtt_ms: None,
            warn_ms: args.warn.map(millis),
            critical_ms: args.critical.map(millis),
            why: None,
            failure: None,
        }
    }

    /// There was nothing to look at.
    pub(super) fn unknown(args: &CheckArgs, failure: Failure) -> Self {
        let target = args
            .target
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let mut verdict = Self::new(args, target);
        verdict.fail(failure);
        verdict
    }

    pub(super) fn connected(&mut self, peer: &AppId) {
        self.app = Some(peer.as_str().to_owned());
    }

    pub(super) fn measured(&mut self, slowest: Duration) {
        self.rtt_ms = Some(millis(slowest));
    }

    pub(super) fn raise(&mut self, level: Level, why: String) {
        self.level = level;
        self.why = Some(why);
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        let level = match failure.exit {
            Exit::Usage | Exit::Local | Exit::Interrupted => Level::Unknown,
            Exit::Fine
            | Exit::SaidNo
            | Exit::CannotConnect
            | Exit::Refused
            | Exit::TimedOut
            | Exit::LinkLost
            | Exit::Violation => Level::Critical,
        };
        self.raise(level, failure.message.clone());
        self.failure = Some(failure);
    }

    pub(super) const fn level(&self) -> Level {
        self.level
    }

    pub(super) const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    pub(super) fn into_failure(self) -> Option<Failure> {
        self.failure
    }

    /// One line, with performance data behind the bar.
    pub(super) fn nagios(&self) -> String {
        let what = self.to_string().replace('|', "/");
        let Some(rtt) = self.rtt_ms else {
            return format!("NACP {what}");
        };
        let limit = |ms: Option<f64>| ms.map_or_else(String::new, |ms| ms.to_string());
        let (warn, critical) = (limit(self.warn_ms), limit(self.critical_ms));
        format!("NACP {what} | rtt={rtt}ms;{warn};{critical};0")
    }

    /// The text format of Prometheus.
    pub(super) fn prometheus(&self) -> String {
        let quoted = |text: &str| {
            text.replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n")
        };
        let app = self.app.as_deref().unwrap_or_default();
        let labels = format!(
            "{{target=\"{}\",app=\"{}\"}}",
            quoted(&self.target),
            quoted(app)
        );
        let up = u8::from(self.rtt_ms.is_some());
        let level = self.level.nagios();
        let mut text = format!(
            "# HELP nacp_up Whether the peer answered all beats.\n# TYPE nacp_up gauge\n\
             nacp_up{labels} {up}\n\
             # HELP nacp_check_level 0 ok, 1 warning, 2 critical, 3 unknown.\n\
             # TYPE nacp_check_level gauge\nnacp_check_level{labels} {level}\n"
        );
        if let Some(rtt) = self.rtt_ms {
            let seconds = rtt / 1e3;
            // Writing into a string does not fail.
            let _ = writeln!(
                text,
                "# HELP nacp_rtt_seconds The slowest beat.\n# TYPE nacp_rtt_seconds gauge\n\
                 nacp_rtt_seconds{labels} {seconds}"
            );
        }
        text
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.app.as_deref().unwrap_or(&self.target);
        write!(f, "{} - {}", self.level.word(), escaped(who))?;
        match (&self.why, self.rtt_ms) {
            (Some(why), _) => write!(f, ": {why}"),
            (None, Some(rtt)) => write!(f, " answers in {rtt} ms"),
            (None, None) => Ok(()),
        }
    }
}
