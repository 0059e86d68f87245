mod keys;

use std::{fmt, hash};

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use subtle::ConstantTimeEq;

use crate::{Payload, fields::Field, write};

use keys::{Keys, sessions, write_decl, write_info};

/// The protocol version in `v`. Only a register's is checked, and of it only `major`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the two numbers on the wire")]
pub struct Version {
    /// Another major version is refused.
    pub major: u64,
    /// Any minor version is fine.
    pub minor: u64,
}

impl Version {
    /// What we speak and send: 2.1.
    pub const CURRENT: Self = Self { major: 2, minor: 1 };
}

/// What an app declares to its peers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decl {
    /// The events it can run.
    pub events: Vec<Entry>,
    /// The abilities it has.
    pub abilities: Vec<Entry>,
}

impl Decl {
    /// How many bytes it takes on the wire: what a limit on declarations counts.
    pub fn encoded_len(&self) -> usize {
        let mut out = BytesMut::new();
        write_decl(&mut out, self);
        out.len()
    }
}

/// One declared event or ability.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name to call it by.
    pub name: SmolStr,
    /// What it does, in words; empty if its app gave none.
    #[serde(default)]
    pub description: SmolStr,
}

/// One start of an app: new at every start (specification, section 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instance(pub [u8; 16]);

/// One bind of two apps, a secret between them (specification, section 11).
///
/// `Debug` does not show it, and comparing takes the same time whatever the bytes.
#[derive(Clone, Copy)]
pub struct Session(pub [u8; 16]);

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Session {}

impl hash::Hash for Session {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(..)")
    }
}

/// What both sides of a register tell of themselves.
#[derive(Debug, Clone, Default, PartialEq)]
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

/// The payload does not tell what both sides of a register must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the payload of a register or of its answer")]
pub struct RegisteredError;

impl Register {
    /// The payload as it goes over the wire; the version is not part of it.
    pub fn to_payload(&self) -> Payload {
        let mut out = BytesMut::new();
        let own = u8::from(!self.holds.is_empty()) + u8::from(self.auth.is_some());
        write_info(&mut out, &self.info, own);
        if !self.holds.is_empty() {
            out.put_slice(b"\x65holds");
            write::head(&mut out, write::ARRAY, self.holds.len() as u64);
            for session in &self.holds {
                write::hex(&mut out, &session.0);
            }
        }
        if let Some(auth) = &self.auth {
            out.put_slice(b"\x64auth");
            out.put_slice(auth.as_cbor());
        }
        Payload::from_scanned(out.freeze())
    }

    /// `None` if the payload does not fit.
    pub(crate) fn from_wire(version: Version, payload: &Payload) -> Option<Self> {
        let keys = Keys::read(payload)?;
        let auth = Some(keys.auth).filter(|auth| !auth.is_absent());
        Some(Self {
            version,
            info: keys.info()?,
            holds: keys.holds.optional(sessions)?.unwrap_or_default(),
            auth: auth.map(|auth| payload.part(auth.item())),
        })
    }
}

impl Registered {
    /// The payload as it goes over the wire.
    pub fn to_payload(&self) -> Payload {
        let mut out = BytesMut::new();
        let own = u8::from(self.session.is_some()) + u8::from(self.resumed.is_some());
        write_info(&mut out, &self.info, own);
        if let Some(session) = &self.session {
            out.put_slice(b"\x67session");
            write::hex(&mut out, &session.0);
        }
        if let Some(resumed) = self.resumed {
            out.put_slice(b"\x67resumed");
            write::boolean(&mut out, resumed);
        }
        Payload::from_scanned(out.freeze())
    }

    /// Reads the payload of a good answer to a register.
    ///
    /// # Errors
    ///
    /// If the payload is no map, `isGateway` is missing, or a key of section 3 or 11 of the
    /// specification holds something else than it must. A missing declaration counts as an empty one.
    pub fn from_payload(payload: &Payload) -> Result<Self, RegisteredError> {
        Keys::read(payload)
            .and_then(Self::from_keys)
            .ok_or(RegisteredError)
    }

    fn from_keys(keys: Keys<'_>) -> Option<Self> {
        Some(Self {
            info: keys.info()?,
            session: keys.session.optional(Field::hex)?.map(Session),
            resumed: keys.resumed.optional(Field::bool)?,
        })
    }
}
