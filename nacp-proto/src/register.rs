use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::Payload;

/// The protocol version in `v`. Only a register's is checked, and of it only `major`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Another major version is refused.
    pub major: u64,
    /// Any minor version is fine.
    pub minor: u64,
}

/// What an app declares to its peers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decl {
    /// The events it can run.
    pub events: Vec<Entry>,
    /// The abilities it has.
    pub abilities: Vec<Entry>,
}

/// One declared event or ability.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name to call it by.
    pub name: SmolStr,
    /// What it does, in words.
    pub description: SmolStr,
}

/// One start of an app: new at every start (specification, section 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instance(pub [u8; 16]);

/// One bind of two apps, a secret between them (specification, section 11).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Session(pub [u8; 16]);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(..)")
    }
}

/// What both sides of a register tell of themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerInfo {
    /// Whether it forwards messages between other apps.
    pub is_gateway: bool,
    /// What it declares.
    pub decl: Decl,
    /// Its instance; `None` for a foreign peer.
    pub instance: Option<Instance>,
    /// The largest message it takes, in bytes; `None` for a foreign peer.
    pub max_message_bytes: Option<u64>,
}

/// The content of a `register`.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    /// The protocol version of the dialling side.
    pub version: Version,
    /// What the dialling side tells of itself.
    pub info: PeerInfo,
    /// The sessions that its offline link answers to; empty if it keeps none.
    pub holds: Vec<Session>,
    /// Its credential, for the accepting side's policy.
    pub auth: Option<Payload>,
}

/// The payload of a successful response to a `register`.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    /// What the accepting side tells of itself.
    pub info: PeerInfo,
    /// The session of this bind; `None` from a foreign peer.
    pub session: Option<Session>,
    /// Whether the accepting side goes on with one of the sessions in `holds`.
    pub resumed: Option<bool>,
}
