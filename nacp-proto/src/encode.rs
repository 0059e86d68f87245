use bytes::{BufMut, Bytes, BytesMut};

use crate::{
    Body, Encoded, Instance, Message, MessageId, Outcome, Payload, RequestKind, Response, Signal,
    Version, write,
};

/// Payloads up to this many bytes are copied between the parts of the map around them; beyond, the
/// copy costs more than a third piece in a vectored write.
const JOINED_PAYLOAD: usize = 4096;

/// Room for everything in a message but the texts of its sender and destination, names and payload.
const FIXED_ROOM: usize = 256;

impl Message {
    /// The message's bytes (specification, section 3). Encode once and keep the result: a replay
    /// must send the same bytes.
    ///
    /// A payload of more than 4 KiB is not copied but becomes the middle piece.
    ///
    /// ```
    /// use nacp_proto::{AppId, Body, Message, MessageId, Payload, RequestKind};
    ///
    /// let message = Message {
    ///     id: MessageId::sequenced(1, 0x0123_4567_89ab_cdef),
    ///     from: AppId::new("a")?,
    ///     to: AppId::new("b")?,
    ///     time: Some(1_700_000_000_000.0),
    ///     body: Body::Request {
    ///         kind: RequestKind::Ability,
    ///         target: Some("echo".into()),
    ///         payload: Payload::new("hello")?,
    ///     },
    /// };
    /// let bytes = message.encode().to_bytes();
    /// assert_eq!(Message::decode(&bytes)?.into_message(), Some(message));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(&self) -> Encoded {
        match self.body.payload() {
            Some(payload) if payload.len() > JOINED_PAYLOAD => self.encode_around(payload),
            _ => {
                let mut out = BytesMut::with_capacity(self.room_with_payload());
                self.write(&mut out);
                Encoded::from(out.freeze())
            }
        }
    }

    /// Appends the message's bytes to `out`. Allocates only if `out` has no room for them: their
    /// number and 256 more always suffice.
    pub fn encode_into(&self, out: &mut BytesMut) {
        out.reserve(self.room_with_payload());
        self.write(out);
    }

    fn write(&self, out: &mut BytesMut) {
        self.write_head(out);
        self.write_payload(out);
        self.write_meta(out);
    }

    fn encode_around(&self, payload: &Payload) -> Encoded {
        let mut out = BytesMut::with_capacity(self.room());
        self.write_head(&mut out);
        let head = out.len();
        self.write_meta(&mut out);
        let ends: Bytes = out.freeze();
        Encoded::from_pieces(
            ends.slice(..head),
            payload.clone().into_bytes(),
            ends.slice(head..),
        )
    }

    /// Upper bound of everything but a user's payload.
    fn room(&self) -> usize {
        let names = match &self.body {
            Body::Register(_) | Body::Unregister => 0,
            Body::Subscribe { target_sub_name } => target_sub_name.len(),
            Body::Unsubscribe { target_sub_id } => target_sub_id.text_len(),
            Body::Request { target, .. } => target.as_ref().map_or(0, |target| target.len()),
            Body::Response(response) => response.parent_id.text_len() + response.outcome.why_len(),
            Body::Signal { parent_id, .. } | Body::Ack { parent_id } => parent_id.text_len(),
            Body::Notify {
                parent_id,
                target_sub_name,
                hit_sub_name,
                ..
            } => parent_id.text_len() + target_sub_name.len() + hit_sub_name.len(),
        };
        let apps = self.from.as_str().len() + self.to.as_str().len();
        FIXED_ROOM + self.id.text_len() + apps + names
    }

    fn room_with_payload(&self) -> usize {
        self.room() + self.body.payload().map_or(0, Payload::len)
    }

    /// Everything before the payload, its key included.
    fn write_head(&self, out: &mut BytesMut) {
        let keys = 6 + u8::from(self.time.is_some()) + u8::from(self.body.has_payload());
        out.put_u8(write::MAP | keys);
        if let Body::Register(register) = &self.body {
            write_version(out, register.version);
            out.put_slice(b"\x64type");
        } else {
            out.put_slice(b"\x61v\xa2\x65major\x02\x65minor\x01\x64type");
        }
        write::text(out, self.message_type().as_str());
        out.put_slice(b"\x62id");
        write_id(out, &self.id);
        out.put_slice(b"\x64from");
        write::text(out, self.from.as_str());
        out.put_slice(b"\x62to");
        write::text(out, self.to.as_str());
        if let Some(time) = self.time {
            out.put_slice(b"\x61t");
            write::float(out, time);
        }
        if self.body.has_payload() {
            out.put_slice(b"\x67payload");
        }
    }

    fn write_payload(&self, out: &mut BytesMut) {
        match &self.body {
            Body::Register(register) => out.put_slice(register.to_payload().as_cbor()),
            Body::Unregister => out.put_u8(write::MAP),
            Body::Subscribe { target_sub_name } => {
                out.put_slice(b"\xa1\x6dtargetSubName");
                write::text(out, target_sub_name);
            }
            Body::Unsubscribe { target_sub_id } => {
                out.put_slice(b"\xa1\x6btargetSubId");
                write_id(out, target_sub_id);
            }
            Body::Request { .. }
            | Body::Response(_)
            | Body::Signal { .. }
            | Body::Notify { .. }
            | Body::Ack { .. } => {
                if let Some(payload) = self.body.payload() {
                    out.put_slice(payload.as_cbor());
                }
            }
        }
    }

    fn write_meta(&self, out: &mut BytesMut) {
        out.put_slice(b"\x64meta");
        match &self.body {
            Body::Register(_)
            | Body::Unregister
            | Body::Subscribe { .. }
            | Body::Unsubscribe { .. } => out.put_u8(write::MAP),
            Body::Request { kind, target, .. } => {
                out.put_u8(write::MAP | (1 + u8::from(target.is_some())));
                write_kind(out, *kind);
                write_name(out, b"\x66target", target.as_deref());
            }
            Body::Response(response) => write_response_meta(out, response),
            Body::Signal { parent_id, signal } => {
                write_parent(out, 2, parent_id);
                out.put_slice(b"\x64kind");
                write::text(out, signal.kind());
            }
            Body::Notify {
                parent_id,
                target_sub_name,
                hit_sub_name,
                seq,
                ..
            } => {
                write_parent(out, 3 + u8::from(seq.is_some()), parent_id);
                write_name(out, b"\x6dtargetSubName", Some(target_sub_name));
                write_name(out, b"\x6ahitSubName", Some(hit_sub_name));
                write_seq(out, *seq);
            }
            Body::Ack { parent_id } => write_parent(out, 1, parent_id),
        }
    }
}

impl Outcome {
    fn why_len(&self) -> usize {
        match self {
            Self::NotOk { why: Some(why) } => why.len(),
            Self::Ok | Self::NotOk { why: None } => 0,
        }
    }
}

impl Body {
    /// The user's payload: of a request, a response, a notify, or a normal signal.
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Request { payload, .. }
            | Self::Notify { payload, .. }
            | Self::Response(Response { payload, .. })
            | Self::Signal {
                signal: Signal::Normal(payload),
                ..
            } => Some(payload),
            Self::Register(_)
            | Self::Unregister
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::Signal { .. }
            | Self::Ack { .. } => None,
        }
    }

    const fn has_payload(&self) -> bool {
        match self {
            Self::Signal { signal, .. } => matches!(signal, Signal::Normal(_)),
            Self::Ack { .. } => false,
            Self::Register(_)
            | Self::Unregister
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::Request { .. }
            | Self::Response(_)
            | Self::Notify { .. } => true,
        }
    }
}

fn write_version(out: &mut BytesMut, version: Version) {
    out.put_slice(b"\x61v\xa2\x65major");
    write::head(out, write::UNSIGNED, version.major);
    out.put_slice(b"\x65minor");
    write::head(out, write::UNSIGNED, version.minor);
}

fn write_id(out: &mut BytesMut, id: &MessageId) {
    match id.uuid_text() {
        Some(text) => {
            let mut item = [0; 2 + MessageId::UUID_TEXT_LEN];
            item[..2].copy_from_slice(b"\x78\x24");
            item[2..].copy_from_slice(&text);
            out.put_slice(&item);
        }
        None => write::text(out, id.text_in(&mut [0; MessageId::UUID_TEXT_LEN])),
    }
}

fn write_kind(out: &mut BytesMut, kind: RequestKind) {
    out.put_slice(b"\x64kind");
    write::text(out, kind.as_str());
}

fn write_name(out: &mut BytesMut, key: &[u8], name: Option<&str>) {
    if let Some(name) = name {
        out.put_slice(key);
        write::text(out, name);
    }
}

fn write_seq(out: &mut BytesMut, seq: Option<u64>) {
    if let Some(seq) = seq {
        out.put_slice(b"\x63seq");
        write::head(out, write::UNSIGNED, seq);
    }
}

/// Opens a meta of `keys` keys, of which `parentId` is the first.
fn write_parent(out: &mut BytesMut, keys: u8, parent_id: &MessageId) {
    out.put_u8(write::MAP | keys);
    out.put_slice(b"\x68parentId");
    write_id(out, parent_id);
}

fn write_response_meta(out: &mut BytesMut, response: &Response) {
    let why = match &response.outcome {
        Outcome::Ok => None,
        Outcome::NotOk { why } => why.as_deref(),
    };
    let optional = [
        why.is_some(),
        response.kind.is_some(),
        response.seq.is_some(),
        response.instance.is_some(),
    ];
    let keys = optional.into_iter().map(u8::from).sum::<u8>();
    write_parent(out, 2 + keys, &response.parent_id);
    out.put_slice(b"\x64isOk");
    write::boolean(out, response.outcome == Outcome::Ok);
    write_name(out, b"\x68whyNotOk", why);
    if let Some(kind) = response.kind {
        write_kind(out, kind);
    }
    write_seq(out, response.seq);
    if let Some(Instance(bytes)) = response.instance {
        out.put_slice(b"\x68instance");
        write::hex(out, &bytes);
    }
}
