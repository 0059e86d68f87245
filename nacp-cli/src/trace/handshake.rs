use std::time::Instant;

use bytes::BufMut;
use nacp::proto::ciborium::Value;
use nacp::proto::{
    AppId, Body, DecodeError, Decoded, FrameDecoder, FrameError, Message, Outcome, PeerInfo,
    ReassemblyLimits, Registered, Response,
};

/// The first messages of the other side, up to its answer to the register.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    pub(crate) first_byte: Option<Instant>,
    pub(crate) first_message: Option<Instant>,
    pub(crate) ack: Option<Instant>,
    pub(crate) answer: Option<Answer>,
    pub(crate) fault: Option<Fault>,
    /// The first bytes as they came, to tell what speaks there if it is not NACP.
    pub(crate) first_bytes: Vec<u8>,
    decoder: Option<FrameDecoder>,
    /// How many bytes came, as long as there was something to look for.
    pub(crate) fed: usize,
}

/// The answer to the register.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) at: Instant,
    /// Who answered.
    pub(crate) app: AppId,
    /// What the app tells of itself; the reason, if it refused.
    pub(crate) outcome: Result<PeerInfo, String>,
    /// Major and minor, where they could be read.
    pub(crate) version: Option<(u64, u64)>,
}

/// Why what came is not NACP.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Frame(FrameError),
    Message(DecodeError),
}

/// More first bytes than this tell nothing more.
const FIRST_BYTES: usize = 64;

/// An answer to a register with larger declarations is not looked into.
const MOST: usize = 2 << 20;

impl Fault {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Frame(error) => error.reason(),
            Self::Message(error) => error.reason(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frame(error) => error.fmt(f),
            Self::Message(error) => error.fmt(f),
        }
    }
}

impl Handshake {
    /// Whether there is nothing more to look for.
    pub(super) const fn is_over(&self) -> bool {
        self.answer.is_some() || self.fault.is_some() || self.fed > MOST
    }

    pub(super) fn read(&mut self, now: Instant, mut bytes: &[u8]) {
        self.first_byte.get_or_insert(now);
        let room = FIRST_BYTES.saturating_sub(self.first_bytes.len());
        self.first_bytes.extend(bytes.iter().take(room));
        self.fed += bytes.len();
        let decoder = self.decoder.take();
        let mut decoder = decoder.unwrap_or_else(|| FrameDecoder::new(ReassemblyLimits::default()));
        while !bytes.is_empty() && !self.is_over() {
            let mut room = decoder.read_buf();
            let part = bytes.len().min(room.remaining_mut());
            let (now_read, rest) = bytes.split_at(part);
            room.put_slice(now_read);
            bytes = rest;
            self.messages(now, &mut decoder);
        }
        self.decoder = Some(decoder).filter(|_| !self.is_over());
    }

    fn messages(&mut self, now: Instant, decoder: &mut FrameDecoder) {
        while !self.is_over() {
            match decoder.poll_message(now) {
                Ok(Some(message)) => self.message(now, &message),
                Ok(None) => return,
                Err(error) => self.fault = Some(Fault::Frame(error)),
            }
        }
    }

    fn message(&mut self, now: Instant, bytes: &bytes::Bytes) {
        let decoded = match Message::decode(bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.fault = Some(Fault::Message(error));
                return;
            }
        };
        self.first_message.get_or_insert(now);
        let Decoded::Message(message) = decoded else {
            return;
        };
        if matches!(message.body, Body::Ack { .. }) {
            self.ack.get_or_insert(now);
        }
        if let Body::Response(response) = message.body {
            self.answer = Some(Answer {
                at: now,
                app: message.from,
                outcome: outcome(response),
                version: version(bytes),
            });
        }
    }
}

fn outcome(response: Response) -> Result<PeerInfo, String> {
    match response.outcome {
        Outcome::Ok => {
            let registered = Registered::from_payload(&response.payload);
            Ok(registered
                .map(|registered| registered.info)
                .unwrap_or_default())
        }
        Outcome::NotOk { why } => Err(why.map(String::from).unwrap_or_default()),
    }
}

/// The `v` of a message, which the node reads of a register alone.
fn version(message: &[u8]) -> Option<(u64, u64)> {
    let value: Value = nacp::proto::ciborium::from_reader(message).ok()?;
    let version = value
        .as_map()?
        .iter()
        .find(|(key, _)| key.as_text() == Some("v"));
    let numbers = version?.1.as_map()?;
    let number = |name| {
        let (_, value) = numbers
            .iter()
            .find(|(key, _)| key.as_text() == Some(name))?;
        if let Value::Integer(integer) = value {
            return u64::try_from(i128::from(*integer)).ok();
        }
        let float = value.as_float().filter(|float| float.fract() == 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, small and not below zero"
        )]
        (0.0..1e9).contains(&float).then_some(float as u64)
    };
    Some((number("major")?, number("minor")?))
}
