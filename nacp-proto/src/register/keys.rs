//! The keys of a register's payload and of its answer's, read and written.

use bytes::{BufMut, BytesMut};

use crate::{Decl, Entry, Instance, Payload, PeerInfo, Session, fields::Field, write};

/// Opens the map and writes what both payloads have; `more_keys` follow by the caller.
pub(super) fn write_info(out: &mut BytesMut, info: &PeerInfo, more_keys: u8) {
    let own = u8::from(info.instance.is_some()) + u8::from(info.max_message_bytes.is_some());
    out.put_u8(write::MAP | (2 + own + more_keys));
    out.put_slice(b"\x69isGateway");
    write::boolean(out, info.is_gateway);
    out.put_slice(b"\x64decl");
    write_decl(out, &info.decl);
    if let Some(Instance(bytes)) = &info.instance {
        out.put_slice(b"\x68instance");
        write::hex(out, bytes);
    }
    if let Some(bytes) = info.max_message_bytes {
        out.put_slice(b"\x6fmaxMessageBytes");
        write::head(out, write::UNSIGNED, bytes);
    }
}

pub(super) fn write_decl(out: &mut BytesMut, decl: &Decl) {
    out.put_slice(b"\xa2\x66events");
    write_entries(out, &decl.events);
    out.put_slice(b"\x69abilities");
    write_entries(out, &decl.abilities);
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

/// The keys that either payload may have.
#[derive(Default)]
pub(super) struct Keys<'a> {
    is_gateway: Field<'a>,
    decl: Field<'a>,
    instance: Field<'a>,
    max_message_bytes: Field<'a>,
    pub(super) holds: Field<'a>,
    pub(super) auth: Field<'a>,
    pub(super) session: Field<'a>,
    pub(super) resumed: Field<'a>,
}

impl<'a> Keys<'a> {
    /// `None` if the payload is no map.
    pub(super) fn read(payload: &'a Payload) -> Option<Self> {
        let mut keys = Self::default();
        Field::of(payload).entries(|key, value| {
            let field = match key {
                b"isGateway" => &mut keys.is_gateway,
                b"decl" => &mut keys.decl,
                b"instance" => &mut keys.instance,
                b"maxMessageBytes" => &mut keys.max_message_bytes,
                b"holds" => &mut keys.holds,
                b"auth" => &mut keys.auth,
                b"session" => &mut keys.session,
                b"resumed" => &mut keys.resumed,
                _ => return,
            };
            *field = value;
        })?;
        Some(keys)
    }

    /// `None` if a key is missing that must be there, or one holds something that it must not.
    pub(super) fn info(&self) -> Option<PeerInfo> {
        Some(PeerInfo {
            is_gateway: self.is_gateway.bool()?,
            decl: self.decl.optional(decl)?.unwrap_or_default(),
            instance: self.instance.optional(Field::instance)?,
            max_message_bytes: self.max_message_bytes.optional(Field::unsigned)?,
        })
    }
}

pub(super) fn sessions(list: Field<'_>) -> Option<Vec<Session>> {
    list.items(|item| item.hex().map(Session))
}

fn decl(map: Field<'_>) -> Option<Decl> {
    let (mut events, mut abilities) = (Field::default(), Field::default());
    map.entries(|key, value| match key {
        b"events" => events = value,
        b"abilities" => abilities = value,
        _ => {}
    })?;
    let entries = |list: Field<'_>| list.optional(|list| list.items(entry));
    Some(Decl {
        events: entries(events)?.unwrap_or_default(),
        abilities: entries(abilities)?.unwrap_or_default(),
    })
}

fn entry(map: Field<'_>) -> Option<Entry> {
    let (mut name, mut description) = (Field::default(), Field::default());
    map.entries(|key, value| match key {
        b"name" => name = value,
        b"description" => description = value,
        _ => {}
    })?;
    Some(Entry {
        name: name.smol_str()?,
        description: description.optional(Field::smol_str)?.unwrap_or_default(),
    })
}
