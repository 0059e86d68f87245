//! What nodes have told, to be compared.

use std::time::Duration;

use nacp_link::{Close, LinkState, MessageReport, Report, Token};

use super::{World, app, text};

impl World {
    /// How a send or call ended, in a few words; `pending` if it did not.
    pub(crate) fn outcome(&self, site: usize, token: Token) -> String {
        match self.sites[site].settled.get(&token) {
            Some((_, settlement)) => text::settlement(settlement),
            None => "pending".to_owned(),
        }
    }

    pub(crate) fn outcomes(&self, site: usize, tokens: &[Token]) -> Vec<String> {
        tokens
            .iter()
            .map(|token| self.outcome(site, *token))
            .collect()
    }

    /// When a send or call ended.
    pub(crate) fn settled_at(&self, site: usize, token: Token) -> Option<Duration> {
        self.sites[site].settled.get(&token).map(|(at, _)| *at)
    }

    /// The labels of what the user of a node was given, in order.
    pub(crate) fn handled(&self, site: usize) -> Vec<&str> {
        self.sites[site]
            .handled
            .iter()
            .map(String::as_str)
            .collect()
    }

    /// The state of a link; `None` if there is no record of the app.
    pub(crate) fn state(&self, site: usize, to: &str) -> Option<LinkState> {
        self.sites[site].node.link(&app(to)).map(|link| link.state)
    }

    /// The changes of a link, in milliseconds, in the specification's words.
    pub(crate) fn changes(&self, site: usize, of: &str) -> Vec<(u128, &'static str)> {
        self.sites[site]
            .links
            .iter()
            .filter(|(_, change)| change.app.as_str() == of)
            .map(|(at, change)| (at.as_millis(), word(change.state)))
            .collect()
    }

    /// Reports about messages: their time in milliseconds, name, reason and message's label.
    pub(crate) fn reported(&self, site: usize, kind: MessageReport) -> Vec<(u128, &'static str)> {
        self.sites[site]
            .reports
            .iter()
            .filter_map(|(at, report)| match report {
                Report::Message {
                    kind: found,
                    reason,
                    ..
                } if *found == kind => Some((at.as_millis(), reason.as_str())),
                _ => None,
            })
            .collect()
    }

    /// Reasons of the reports about messages, each with the label or type of the message.
    pub(crate) fn reported_of(&self, site: usize, kind: MessageReport) -> Vec<String> {
        self.sites[site]
            .reports
            .iter()
            .filter_map(|(_, report)| match report {
                Report::Message {
                    kind: found,
                    reason,
                    subject,
                    ..
                } if *found == kind => {
                    let label = self.labels.get(&subject.envelope.id);
                    let label = label.map_or(subject.type_name.as_str(), String::as_str);
                    Some(format!("{reason} {label}"))
                }
                _ => None,
            })
            .collect()
    }

    /// Why peers were closed for a fault, in order.
    pub(crate) fn peer_errors(&self, site: usize) -> Vec<(u128, &'static str)> {
        self.sites[site]
            .reports
            .iter()
            .filter_map(|(at, report)| match report {
                Report::PeerError { reason, .. } => Some((at.as_millis(), *reason)),
                _ => None,
            })
            .collect()
    }

    /// Reasons of `nacp:internal:register:error`, in order.
    pub(crate) fn register_errors(&self, site: usize) -> Vec<(u128, String)> {
        self.sites[site]
            .reports
            .iter()
            .filter_map(|(at, report)| match report {
                Report::RegisterError { reason, .. } => {
                    Some((at.as_millis(), reason.as_str().to_owned()))
                }
                _ => None,
            })
            .collect()
    }

    /// Reasons of `nacp:internal:register:warning`, in order.
    pub(crate) fn register_warnings(&self, site: usize) -> Vec<(u128, &'static str)> {
        self.sites[site]
            .reports
            .iter()
            .filter_map(|(at, report)| match report {
                Report::RegisterWarning { reason, .. } => Some((at.as_millis(), reason.as_str())),
                _ => None,
            })
            .collect()
    }

    /// `nacp:internal:napp:success` of an app, in order: time, reason, resumed.
    pub(crate) fn app_reports(
        &self,
        site: usize,
        of: &str,
    ) -> Vec<(u128, &'static str, Option<bool>)> {
        self.sites[site]
            .reports
            .iter()
            .filter_map(|(at, report)| match report {
                Report::App {
                    app,
                    reason,
                    resumed,
                    ..
                } if app.as_str() == of => Some((at.as_millis(), reason.as_str(), *resumed)),
                _ => None,
            })
            .collect()
    }

    /// How a node closed a wire, with the time in milliseconds.
    pub(crate) fn closed(&self, site: usize, wire: usize) -> Vec<(u128, Close)> {
        self.sites[site]
            .closes
            .iter()
            .filter(|(_, closed, _)| *closed == wire)
            .map(|(at, _, how)| (at.as_millis(), *how))
            .collect()
    }

    /// Nothing waits anywhere in a node.
    pub(crate) fn assert_at_rest(&self, site: usize) {
        let snapshot = self.sites[site].node.snapshot();
        let tables = [snapshot.backlog, snapshot.submitted, snapshot.ack_pending];
        let held = tables.map(|table| (table.count, table.bytes));
        assert_eq!(held, [(0, 0); 3], "records are left in node {site}");
        let waiting = (snapshot.blocked, snapshot.calls, snapshot.running);
        assert_eq!(waiting, (0, 0, 0), "waiters are left in node {site}");
    }
}

const fn word(state: LinkState) -> &'static str {
    match state {
        LinkState::Online => "online",
        LinkState::Offline => "offline",
        LinkState::Dropped => "dropped",
    }
}
