//! The NACP node without I/O: links, timers, replay, routing, sessions.
#![warn(missing_docs)]

mod accept;
mod admission;
mod answers;
mod beat;
mod calls;
mod config;
mod connection;
mod dial;
mod ending;
mod event;
mod exposure;
mod ids;
mod incoming;
mod lifecycle;
mod link;
mod load;
mod moving;
mod node;
mod offline;
mod peer;
mod record;
mod relay;
mod remote;
mod report;
mod reporting;
mod sentinel;
mod served;
mod session;
mod snapshot;
mod submission;
mod subscribed;
mod subscribing;
mod takeover;
mod timers;
mod transmit;
mod undelivered;

pub use accept::Verdict;
pub use calls::Request;
pub use config::{Admittance, Config, ConfigError, OverflowPolicy};
pub use connection::{Origin, Trust};
pub use dial::{Connect, DialError};
pub use event::{
    Answered, Authorize, Cause, Event, LinkChange, LinkState, Requested, Settlement, StreamEnd,
};
pub use ids::{DialId, PeerId, RunningId, StreamId, SubscriptionId, Token};
pub use node::Node;
pub use peer::Inbound;
pub use report::{Interest, MessageReport, Reason, Report, Subject};
pub use served::Answer;
pub use snapshot::{LinkSnapshot, NodeSnapshot, Table, Totals};
pub use transmit::{Accepted, Close, Content, Lane, Transmit};
pub use undelivered::Undelivered;
