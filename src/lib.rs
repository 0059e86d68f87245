#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod address;
mod builder;
mod call;
mod channel;
mod closures;
mod connect;
mod context;
mod driver;
mod emit;
mod events;
mod handler;
mod job;
mod links;
mod memory;
mod napp;
mod policy;
mod queue;
mod reconnect;
mod report;
mod run;
mod send;
mod slot;
mod subscription;
mod tcp;

pub use nacp_bus as bus;
pub use nacp_link as link;
pub use nacp_proto as proto;
pub use nacp_transport_tcp as transport;

pub use nacp_bus::ListenerId;
pub use nacp_link::{
    Config, ConfigError, DialError, LinkChange, LinkState, NodeSnapshot, OverflowPolicy, Report,
    StreamEnd, Totals, Undelivered,
};
pub use nacp_proto::{AppId, AppIdError, Decl, Entry, MessageId, Payload, RequestKind, Signal};

pub use address::{IntoAppId, Target, TargetError};
pub use builder::{Builder, StartError};
pub use call::{RawRequest, Request, RequestError};
pub use channel::{Channel, Listener, Transport, TransportError};
pub use closures::{IntoAbility, IntoEvent};
pub use connect::{Connect, ConnectError, ConnectStage};
pub use context::{AbilityContext, EventContext, Interrupted};
pub use emit::{EmitError, ListenError, NotifyError};
pub use events::{Events, NodeEvent, Value};
pub use handler::{AbilityHandler, EventHandler, HandlerError};
pub use job::{Job, JobItem, JobItems, JobRequest, JobResponse};
pub use links::{LinkInfo, LinkWatch};
pub use memory::MemoryTransport;
pub use napp::NApp;
pub use policy::{Allowlist, Applicant, Decision, RegisterPolicy, SharedSecret};
pub use reconnect::{Jitter, Reconnect};
pub use send::{SendError, Sending};
pub use subscription::{Notification, SubscribeError, Subscription};
pub use tcp::TcpTransport;
