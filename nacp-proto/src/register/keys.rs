//! The keys of a register's payload and of its answer's, read and written.

use bytes::{BufMut, BytesMut};

use crate::{
    Decl, Entry, Instance, Payload, PeerInfo, Session,
    fields::{Field, each_entry, each_item},
    scan::{MAX_DEPTH, ScanError, Scanner},
    write,
};

/// Opens the map and writes what both payloads have; `more_keys` follow by the caller.
pub(super) fn write_info(out: &mut BytesMut, info: &PeerInfo, more_keys: u8) {
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
pub(super) struct Keys<'a> {
    is_gateway: Field<'a>,
    decl: Option<Decl>,
    instance: Field<'a>,
    max_message_bytes: Field<'a>,
    pub(super) holds: Option<Vec<Session>>,
    pub(super) auth: Option<Payload>,
    pub(super) session: Field<'a>,
    pub(super) resumed: Field<'a>,
}

impl<'a> Keys<'a> {
    /// `None` if the payload is no map.
    pub(super) fn read(payload: &'a Payload) -> Option<Self> {
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

    pub(super) fn info(&self) -> Option<PeerInfo> {
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

/// Goes past null or undefined.
fn skip_absent(scanner: &mut Scanner<'_>) -> bool {
    scanner.skip_if(&[0xf6]) || scanner.skip_if(&[0xf7])
}

fn read_holds(scanner: &mut Scanner<'_>, depth: usize) -> Result<Option<Vec<Session>>, ScanError> {
    let mut holds = Some(Vec::new());
    if skip_absent(scanner) {
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
    if skip_absent(scanner) {
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
    let decl = events
        .zip(abilities)
        .map(|(events, abilities)| Decl { events, abilities });
    Ok(decl.filter(|_| is_map))
}

fn read_entries(scanner: &mut Scanner<'_>, depth: usize) -> Result<Option<Vec<Entry>>, ScanError> {
    let mut entries = Some(Vec::new());
    if skip_absent(scanner) {
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
