use bytes::Bytes;
use smol_str::SmolStr;

use crate::{
    AppId, Body, Decoded, Envelope, Malformed, Message, MessageType, Outcome, Payload, Register,
    RequestKind, Response, Signal, Version,
    fields::{Field, each_entry},
    scan::{MAX_DEPTH, ScanError, Scanner},
};

/// Why bytes are no message at all; the peer that sent them is closed (specification, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not one CBOR item.
    #[error("the message is not well-formed cbor: {0}")]
    NotWellFormed(#[from] ScanError),
    /// An item, but no map.
    #[error("the message is not a map")]
    NotAMap,
    /// A map without the keys that every message must have.
    #[error("the message has no usable `{key}`")]
    Unusable {
        /// `type`, `id`, `from` or `to`.
        key: &'static str,
    },
}

impl DecodeError {
    /// The reason to report it with (specification, section 2).
    pub const fn reason(self) -> &'static str {
        "decode-failed"
    }
}

impl Message {
    /// Reads the bytes of one whole message. Its payload is a part of `bytes`, not a copy.
    ///
    /// Accepts every well-formed CBOR: any order of keys, any width of numbers, indefinite lengths.
    /// Nothing is reserved because a length says so, and nesting is bounded.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if there is no message with a usable envelope in the bytes. What has an
    /// envelope and is wrong in its meta or payload comes out as [`Decoded::Malformed`].
    pub fn decode(bytes: &Bytes) -> Result<Decoded, DecodeError> {
        let mut keys = Keys::default();
        keys.read(bytes)?;
        let type_name = keys.message_type.text_bytes();
        let type_name = type_name.ok_or(DecodeError::Unusable { key: "type" })?;
        let Some(message_type) = MessageType::from_wire(&type_name) else {
            let type_name = keys.message_type.smol_str();
            return Ok(Decoded::Unknown {
                envelope: keys.envelope()?,
                type_name: type_name.ok_or(DecodeError::Unusable { key: "type" })?,
            });
        };
        let Envelope { id, from, to, time } = keys.envelope()?;
        Ok(match keys.body(message_type, bytes) {
            Some(body) => Decoded::Message(Self {
                id,
                from,
                to,
                time,
                body,
            }),
            None => Decoded::Malformed(Malformed {
                envelope: Envelope { id, from, to, time },
                message_type,
                bad_target_sub_name: message_type == MessageType::Subscribe
                    && keys.target_sub_name().is_none(),
            }),
        })
    }
}

/// What the known keys of a message hold. Of a key that is there twice, the last counts.
#[derive(Default)]
struct Keys<'a> {
    message_type: Field<'a>,
    id: Field<'a>,
    from: Field<'a>,
    to: Field<'a>,
    time: Field<'a>,
    version: Field<'a>,
    payload: Field<'a>,
    meta: Meta<'a>,
    has_meta: bool,
}

/// How `v` and the next key lie in nearly every message: in ours, and in those of the reference.
const USUAL_VERSIONS: [&[u8]; 2] = [
    b"\x61v\xa2\x65major\x02\x65minor\x01\x64type",
    b"\x61v\xb9\x00\x02\x65major\x02\x65minor\x01\x64type",
];
const USUAL_VERSION: &[u8] = b"\xa2\x65major\x02\x65minor\x01";

impl<'a> Keys<'a> {
    fn read(&mut self, bytes: &'a [u8]) -> Result<(), DecodeError> {
        let mut scanner = Scanner::new(bytes);
        if self.read_usual(&mut scanner).is_some() && scanner.finish().is_ok() {
            return Ok(());
        }
        *self = Self::default();
        self.read_any(bytes)
    }

    /// The short way through a message whose keys lie in the usual order; `None` if they do not.
    fn read_usual(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        let depth = MAX_DEPTH - 1;
        let begins = |scanner: &mut Scanner<'a>, key| scanner.skip_if(key).then_some(());
        let has_payload = scanner.skip_if(b"\xa8") || scanner.skip_if(b"\xb9\x00\x08");
        if !has_payload && !scanner.skip_if(b"\xa7") {
            begins(scanner, b"\xb9\x00\x07")?;
        }
        USUAL_VERSIONS
            .iter()
            .find(|version| scanner.skip_if(version))?;
        self.version = Field::of_item(USUAL_VERSION);
        self.message_type = Field::read_short_text(scanner)?;
        begins(scanner, b"\x62id")?;
        self.id = Field::read_short_text(scanner)?;
        begins(scanner, b"\x64from")?;
        self.from = Field::read_short_text(scanner)?;
        begins(scanner, b"\x62to")?;
        self.to = Field::read_short_text(scanner)?;
        begins(scanner, b"\x61t")?;
        self.time = Field::read(scanner, depth).ok()?;
        if has_payload {
            begins(scanner, b"\x67payload")?;
            self.payload = Field::read(scanner, depth).ok()?;
        }
        begins(scanner, b"\x64meta")?;
        self.has_meta = self.meta.read(scanner, depth).ok()?;
        Some(())
    }

    fn read_any(&mut self, bytes: &'a [u8]) -> Result<(), DecodeError> {
        let mut scanner = Scanner::new(bytes);
        let is_map = each_entry(&mut scanner, MAX_DEPTH, |key, scanner, depth| {
            match key {
                b"v" => self.version = Field::read(scanner, depth)?,
                b"type" => self.message_type = Field::read(scanner, depth)?,
                b"id" => self.id = Field::read(scanner, depth)?,
                b"from" => self.from = Field::read(scanner, depth)?,
                b"to" => self.to = Field::read(scanner, depth)?,
                b"t" => self.time = Field::read(scanner, depth)?,
                b"payload" => self.payload = Field::read(scanner, depth)?,
                b"meta" => {
                    self.meta = Meta::default();
                    self.has_meta = self.meta.read(scanner, depth)?;
                }
                _ => scanner.skip_item(depth)?,
            }
            Ok(())
        })?;
        scanner.finish()?;
        if is_map {
            Ok(())
        } else {
            Err(DecodeError::NotAMap)
        }
    }

    fn envelope(&self) -> Result<Envelope, DecodeError> {
        let app = |field: Field<'_>| field.text(|name| AppId::from_wire(name).ok());
        Ok(Envelope {
            id: self
                .id
                .message_id()
                .ok_or(DecodeError::Unusable { key: "id" })?,
            from: app(self.from).ok_or(DecodeError::Unusable { key: "from" })?,
            to: app(self.to).ok_or(DecodeError::Unusable { key: "to" })?,
            time: self.time.number(),
        })
    }

    /// The payload, which stays in `bytes`; undefined if the key is missing.
    fn payload(&self, bytes: &Bytes) -> Payload {
        if self.payload.item().is_empty() {
            return Payload::undefined();
        }
        Payload::from_scanned(bytes.slice_ref(self.payload.item()))
    }

    /// The name that a subscribe asks for.
    fn target_sub_name(&self) -> Option<SmolStr> {
        let name = read_key(self.payload, b"targetSubName")?.smol_str()?;
        Some(name).filter(|name| !name.is_empty())
    }

    /// `None` if meta or payload do not fit the type.
    fn body(&self, message_type: MessageType, bytes: &Bytes) -> Option<Body> {
        let meta = self.has_meta.then_some(&self.meta)?;
        Some(match message_type {
            MessageType::Register => {
                let version = read_version(self.version)?;
                Body::Register(Box::new(Register::from_wire(
                    version,
                    &self.payload(bytes),
                )?))
            }
            MessageType::Unregister => Body::Unregister,
            MessageType::Subscribe => Body::Subscribe {
                target_sub_name: self.target_sub_name()?,
            },
            MessageType::Unsubscribe => Body::Unsubscribe {
                target_sub_id: read_key(self.payload, b"targetSubId")?.message_id()?,
            },
            MessageType::Request => Body::Request {
                kind: RequestKind::from_wire(&meta.kind.text_bytes()?)?,
                target: meta.target.optional(Field::smol_str)?,
                payload: self.payload(bytes),
            },
            MessageType::Response => Body::Response(meta.response(self.payload(bytes))?),
            MessageType::Signal => Body::Signal {
                parent_id: meta.parent_id.message_id()?,
                signal: meta.signal(|| self.payload(bytes))?,
            },
            MessageType::Notify => Body::Notify {
                parent_id: meta.parent_id.message_id()?,
                target_sub_name: meta.target_sub_name.smol_str()?,
                hit_sub_name: meta.hit_sub_name.smol_str()?,
                payload: self.payload(bytes),
                seq: meta.seq.optional(Field::unsigned)?,
            },
            MessageType::Ack => Body::Ack {
                parent_id: meta.parent_id.message_id()?,
            },
        })
    }
}

/// What the known keys of a meta hold, whatever the message's type turns out to be.
#[derive(Default)]
struct Meta<'a> {
    kind: Field<'a>,
    target: Field<'a>,
    parent_id: Field<'a>,
    is_ok: Field<'a>,
    why_not_ok: Field<'a>,
    target_sub_name: Field<'a>,
    hit_sub_name: Field<'a>,
    seq: Field<'a>,
    instance: Field<'a>,
}

impl<'a> Meta<'a> {
    /// `false` if what comes next is no map.
    fn read(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<bool, ScanError> {
        each_entry(scanner, depth, |key, scanner, depth| {
            let field = match key {
                b"kind" => &mut self.kind,
                b"target" => &mut self.target,
                b"parentId" => &mut self.parent_id,
                b"isOk" => &mut self.is_ok,
                b"whyNotOk" => &mut self.why_not_ok,
                b"targetSubName" => &mut self.target_sub_name,
                b"hitSubName" => &mut self.hit_sub_name,
                b"seq" => &mut self.seq,
                b"instance" => &mut self.instance,
                _ => return scanner.skip_item(depth),
            };
            *field = Field::read(scanner, depth)?;
            Ok(())
        })
    }

    fn response(&self, payload: Payload) -> Option<Response> {
        let outcome = if self.is_ok.bool()? {
            Outcome::Ok
        } else {
            Outcome::NotOk {
                why: self.why_not_ok.optional(Field::smol_str)?,
            }
        };
        Some(Response {
            parent_id: self.parent_id.message_id()?,
            outcome,
            // The reference echoes the kind of a request that it did not know.
            kind: self
                .kind
                .text_bytes()
                .and_then(|kind| RequestKind::from_wire(&kind)),
            payload,
            seq: self.seq.optional(Field::unsigned)?,
            instance: self.instance.optional(Field::instance)?,
        })
    }

    fn signal(&self, payload: impl FnOnce() -> Payload) -> Option<Signal> {
        match self.kind.text_bytes()?.as_ref() {
            b"normal" => Some(Signal::Normal(payload())),
            b"pause" => Some(Signal::Pause),
            b"resume" => Some(Signal::Resume),
            b"abort" => Some(Signal::Abort),
            _ => None,
        }
    }
}

fn read_version(version: Field<'_>) -> Option<Version> {
    Some(Version {
        major: read_key(version, b"major")?.unsigned()?,
        minor: read_key(version, b"minor")?.unsigned()?,
    })
}

/// What `key` holds in a map; `None` if it is no map.
fn read_key<'a>(map: Field<'a>, key: &[u8]) -> Option<Field<'a>> {
    let mut found = Field::default();
    map.entries(|entry, value| {
        if entry == key {
            found = value;
        }
    })?;
    Some(found)
}
