use std::ops::Range;

use bytes::Bytes;

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
        let keys = Keys::read(bytes)?;
        let type_name = keys.message_type.text_bytes();
        let type_name = type_name.ok_or(DecodeError::Unusable { key: "type" })?;
        let Some(message_type) = MessageType::from_wire(&type_name) else {
            let name = keys.message_type.smol_str();
            return Ok(Decoded::Unknown {
                envelope: keys.envelope()?,
                type_name: name.ok_or(DecodeError::Unusable { key: "type" })?,
            });
        };
        let envelope = keys.envelope()?;
        let payload = keys
            .payload
            .clone()
            .map(|range| Payload::from_scanned(bytes.slice(range)));
        Ok(match keys.body(message_type, payload) {
            Some(body) => Decoded::Message(Self::from_parts(envelope, body)),
            None => Decoded::Malformed(Malformed {
                envelope,
                message_type,
                bad_target_sub_name: message_type == MessageType::Subscribe,
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
    version: Option<&'a [u8]>,
    payload: Option<Range<usize>>,
    meta: Option<Meta<'a>>,
}

impl<'a> Keys<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut keys = Self::default();
        let mut scanner = Scanner::new(bytes);
        let is_map = each_entry(&mut scanner, MAX_DEPTH, |key, scanner, depth| {
            match key {
                b"v" => {
                    let rest = scanner.rest();
                    let start = scanner.at();
                    scanner.skip_item(depth)?;
                    keys.version = rest.get(..scanner.at() - start);
                }
                b"type" => keys.message_type = Field::read(scanner, depth)?,
                b"id" => keys.id = Field::read(scanner, depth)?,
                b"from" => keys.from = Field::read(scanner, depth)?,
                b"to" => keys.to = Field::read(scanner, depth)?,
                b"t" => keys.time = Field::read(scanner, depth)?,
                b"payload" => {
                    let start = scanner.at();
                    scanner.skip_item(depth)?;
                    keys.payload = Some(start..scanner.at());
                }
                b"meta" => keys.meta = Meta::read(scanner, depth)?,
                _ => scanner.skip_item(depth)?,
            }
            Ok(())
        })?;
        scanner.finish()?;
        if is_map {
            Ok(keys)
        } else {
            Err(DecodeError::NotAMap)
        }
    }

    fn envelope(&self) -> Result<Envelope, DecodeError> {
        let app = |field: Field<'_>| field.text(|name| AppId::from_wire(name).ok()).flatten();
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

    /// `None` if meta or payload do not fit the type.
    fn body(&self, message_type: MessageType, payload: Option<Payload>) -> Option<Body> {
        let meta = self.meta.as_ref()?;
        let any = |payload: Option<Payload>| payload.unwrap_or_else(Payload::undefined);
        Some(match message_type {
            MessageType::Register => {
                let version = read_version(self.version?)?;
                Body::Register(Box::new(Register::from_wire(version, &payload?)?))
            }
            MessageType::Unregister => Body::Unregister,
            MessageType::Subscribe => Body::Subscribe {
                target_sub_name: read_key(payload?.as_cbor(), b"targetSubName")?
                    .smol_str()
                    .filter(|name| !name.is_empty())?,
            },
            MessageType::Unsubscribe => Body::Unsubscribe {
                target_sub_id: read_key(payload?.as_cbor(), b"targetSubId")?.message_id()?,
            },
            MessageType::Request => Body::Request {
                kind: meta.kind.text(RequestKind::from_wire)??,
                target: meta.target.optional(Field::smol_str)?,
                payload: any(payload),
            },
            MessageType::Response => Body::Response(meta.response(any(payload))?),
            MessageType::Signal => Body::Signal {
                parent_id: meta.parent_id.message_id()?,
                signal: meta.signal(|| any(payload))?,
            },
            MessageType::Notify => Body::Notify {
                parent_id: meta.parent_id.message_id()?,
                target_sub_name: meta.target_sub_name.smol_str()?,
                hit_sub_name: meta.hit_sub_name.smol_str()?,
                payload: any(payload),
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
    /// `None` if what comes next is no map.
    fn read(scanner: &mut Scanner<'a>, depth: usize) -> Result<Option<Self>, ScanError> {
        let mut meta = Self::default();
        let is_map = each_entry(scanner, depth, |key, scanner, depth| {
            let field = match key {
                b"kind" => &mut meta.kind,
                b"target" => &mut meta.target,
                b"parentId" => &mut meta.parent_id,
                b"isOk" => &mut meta.is_ok,
                b"whyNotOk" => &mut meta.why_not_ok,
                b"targetSubName" => &mut meta.target_sub_name,
                b"hitSubName" => &mut meta.hit_sub_name,
                b"seq" => &mut meta.seq,
                b"instance" => &mut meta.instance,
                _ => return scanner.skip_item(depth),
            };
            *field = Field::read(scanner, depth)?;
            Ok(())
        })?;
        Ok(is_map.then_some(meta))
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
            kind: self.kind.text(RequestKind::from_wire).flatten(),
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

fn read_version(item: &[u8]) -> Option<Version> {
    Some(Version {
        major: read_key(item, b"major")?.unsigned()?,
        minor: read_key(item, b"minor")?.unsigned()?,
    })
}

/// What `key` holds in the map that `item` is.
fn read_key<'a>(item: &'a [u8], key: &[u8]) -> Option<Field<'a>> {
    let mut found = Field::Absent;
    let mut scanner = Scanner::new(item);
    let is_map = each_entry(&mut scanner, MAX_DEPTH, |entry, scanner, depth| {
        let value = Field::read(scanner, depth)?;
        if entry == key {
            found = value;
        }
        Ok(())
    });
    is_map.is_ok_and(|is_map| is_map).then_some(found)
}
