use std::{fmt, hash};

use bytes::{BufMut, BytesMut};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use subtle::ConstantTimeEq;

use crate::{
    Payload,
    fields::{Field, each_entry, each_item},
    scan::{MAX_DEPTH, ScanError, Scanner},
    write,
};

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
    /// Length of all names and descriptions together, in bytes: what a limit on declarations counts.
    pub fn text_bytes(&self) -> usize {
        let entries = self.events.iter().chain(&self.abilities);
        entries.map(|entry| entry.name.len() + entry.description.len()).sum()
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

    pub(crate) fn from_wire(version: Version, payload: &Payload) -> Option<Self> {
        let keys = Keys::read(payload)?;
        Some(Self {
            version,
            info: keys.info()?,
            holds: keys.holds?,
            auth: keys.auth,
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
        Keys::read(payload).and_then(Self::from_keys).ok_or(RegisteredError)
    }

    fn from_keys(keys: Keys<'_>) -> Option<Self> {
        Some(Self {
            info: keys.info()?,
            session: keys.session.optional(Field::hex)?.map(Session),
            resumed: keys.resumed.optional(Field::bool)?,
        })
    }
}

fn write_info(out: &mut BytesMut, info: &PeerInfo, more_keys: u8) {
    let own = u8::from(info.instance.is_some()) + u8::from(info.max_message_bytes.is_some());
    out.put_u8(write::MAP | (2 + own + more_keys));
    out.put_slice(b"\x69isGateway");
    write::boolean(out, info.is_gateway);
    out.put_slice(b"\x64decl\xa2\x66events");
    write_entries(out, &info.decl.events);
    out.put_slice(b"\x69abilities");
    write_entries(out, &info.decl.abilities);
    if let Some(Instance(bytes)) = &info.instance {
        out.put_slice(b"\x68instance");
        write::hex(out, bytes);
    }
    if let Some(bytes) = info.max_message_bytes {
        out.put_slice(b"\x6fmaxMessageBytes");
        write::head(out, write::UNSIGNED, bytes);
    }
}

fn write_entries(out: &mut BytesMut, entries: &[Entry]) {
    write::head(out, write::ARRAY, entries.len() as u64);
    for entry in entries {
        out.put_slice(b"\xa2\x64name");
        write::text(out, &entry.name);
        out.put_slice(b"\x6bdescription");
        write::text(out, &entry.description);
    }
}

/// The keys that either payload may have. A list that cannot be read is `None`.
struct Keys<'a> {
    is_gateway: Field<'a>,
    decl: Option<Decl>,
    instance: Field<'a>,
    max_message_bytes: Field<'a>,
    holds: Option<Vec<Session>>,
    auth: Option<Payload>,
    session: Field<'a>,
    resumed: Field<'a>,
}

impl<'a> Keys<'a> {
    fn read(payload: &'a Payload) -> Option<Self> {
        let mut keys = Self {
            is_gateway: Field::Absent,
            decl: Some(Decl::default()),
            instance: Field::Absent,
            max_message_bytes: Field::Absent,
            holds: Some(Vec::new()),
            auth: None,
            session: Field::Absent,
            resumed: Field::Absent,
        };
        let mut scanner = Scanner::new(payload.as_cbor());
        let is_map = each_entry(&mut scanner, MAX_DEPTH, |key, scanner, depth| {
            match key {
                b"isGateway" => keys.is_gateway = Field::read(scanner, depth)?,
                b"decl" => keys.decl = read_decl(scanner, depth)?,
                b"instance" => keys.instance = Field::read(scanner, depth)?,
                b"maxMessageBytes" => keys.max_message_bytes = Field::read(scanner, depth)?,
                b"holds" => keys.holds = read_holds(scanner, depth)?,
                b"auth" => keys.auth = read_auth(payload, scanner, depth)?,
                b"session" => keys.session = Field::read(scanner, depth)?,
                b"resumed" => keys.resumed = Field::read(scanner, depth)?,
                _ => scanner.skip_item(depth)?,
            }
            Ok(())
        });
        is_map.is_ok_and(|is_map| is_map).then_some(keys)
    }

    fn info(&self) -> Option<PeerInfo> {
        Some(PeerInfo {
            is_gateway: self.is_gateway.bool()?,
            decl: self.decl.clone()?,
            instance: self.instance.optional(Field::instance)?,
            max_message_bytes: self.max_message_bytes.optional(Field::unsigned)?,
        })
    }
}

fn read_auth(
    payload: &Payload,
    scanner: &mut Scanner<'_>,
    depth: usize,
) -> Result<Option<Payload>, ScanError> {
    let start = scanner.at();
    let is_absent = Field::read(scanner, depth)?.is_absent();
    let auth = payload.clone().into_bytes().slice(start..scanner.at());
    Ok((!is_absent).then(|| Payload::from_scanned(auth)))
}

/// `Some(None)` before an absent value, which it has passed over.
fn absent(scanner: &mut Scanner<'_>) -> bool {
    scanner.skip_if(&[0xf6]) || scanner.skip_if(&[0xf7])
}

fn read_holds(scanner: &mut Scanner<'_>, depth: usize) -> Result<Option<Vec<Session>>, ScanError> {
    let mut holds = Some(Vec::new());
    if absent(scanner) {
        return Ok(holds);
    }
    let is_array = each_item(scanner, depth, |scanner, depth| {
        let session = Field::read(scanner, depth)?.hex().map(Session);
        push_or_spoil(&mut holds, session);
        Ok(())
    })?;
    Ok(holds.filter(|_| is_array))
}

fn push_or_spoil<T>(list: &mut Option<Vec<T>>, item: Option<T>) {
    match (list.as_mut(), item) {
        (Some(list), Some(item)) => list.push(item),
        _ => *list = None,
    }
}

fn read_decl(scanner: &mut Scanner<'_>, depth: usize) -> Result<Option<Decl>, ScanError> {
    let (mut events, mut abilities) = (Some(Vec::new()), Some(Vec::new()));
    if absent(scanner) {
        return Ok(Some(Decl::default()));
    }
    let is_map = each_entry(scanner, depth, |key, scanner, depth| {
        match key {
            b"events" => events = read_entries(scanner, depth)?,
            b"abilities" => abilities = read_entries(scanner, depth)?,
            _ => scanner.skip_item(depth)?,
        }
        Ok(())
    })?;
    let decl = events.zip(abilities).map(|(events, abilities)| Decl { events, abilities });
    Ok(decl.filter(|_| is_map))
}

fn read_entries(scanner: &mut Scanner<'_>, depth: usize) -> Result<Option<Vec<Entry>>, ScanError> {
    let mut entries = Some(Vec::new());
    if absent(scanner) {
        return Ok(entries);
    }
    let is_array = each_item(scanner, depth, |scanner, depth| {
        let entry = read_entry(scanner, depth)?;
        push_or_spoil(&mut entries, entry);
        Ok(())
    })?;
    Ok(entries.filter(|_| is_array))
}

fn read_entry(scanner: &mut Scanner<'_>, depth: usize) -> Result<Option<Entry>, ScanError> {
    let (mut name, mut description) = (Field::Absent, Field::Absent);
    each_entry(scanner, depth, |key, scanner, depth| {
        match key {
            b"name" => name = Field::read(scanner, depth)?,
            b"description" => description = Field::read(scanner, depth)?,
            _ => scanner.skip_item(depth)?,
        }
        Ok(())
    })?;
    Ok(entry(name, description))
}

fn entry(name: Field<'_>, description: Field<'_>) -> Option<Entry> {
    Some(Entry {
        name: name.smol_str()?,
        description: description.optional(Field::smol_str)?.unwrap_or_default(),
    })
}
