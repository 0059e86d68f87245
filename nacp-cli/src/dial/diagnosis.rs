//! What a failed attempt to connect means: the stage at which it failed, what is wrong there, and
//! what to try.

use std::io;
use std::time::Duration;

use nacp::proto::FrameHeader;
use nacp::transport::{Attempt, ConnectError as TcpError};

use crate::escape::escaped;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::target::Target;
use crate::trace::{Answer, Fault, Handshake, Seen, stranger};

/// How an attempt ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Whether its time was up. If not, something ended it.
    pub(super) is_late: bool,
    pub(super) limit: Duration,
}

/// No address came of the name, or none of its addresses could be connected to.
pub(crate) fn unreachable(error: &TcpError, limit: Duration) -> Failure {
    match error {
        TcpError::Resolve { host, source } => Failure::new(
            Exit::CannotConnect,
            "resolve",
            "unresolvable",
            format!("cannot resolve {}: {source}", escaped(host)),
        )
        .hint(
            "check the spelling, /etc/hosts and the DNS server; an address in numbers needs none",
        ),
        TcpError::ResolveTimeout { host } => Failure::new(
            Exit::CannotConnect,
            "resolve",
            "unresolvable",
            format!("{} was not resolved within {limit:?}", escaped(host)),
        )
        .hint(NO_RESOLVER),
        TcpError::Unreachable { attempts } => not_connected(error, attempts),
        TcpError::PortZero | _ => Failure::new(
            Exit::CannotConnect,
            "connect",
            "unreachable",
            error.to_string(),
        ),
    }
}

fn not_connected(error: &TcpError, attempts: &[Attempt]) -> Failure {
    let kind = attempts.last().map(|attempt| attempt.error.kind());
    let (reason, hint) = match kind {
        Some(io::ErrorKind::ConnectionRefused) => (
            "connection-refused",
            "nothing listens there: is the peer running, on this port? `nacp-cli serve` runs one",
        ),
        Some(io::ErrorKind::TimedOut) => ("connect-timeout", NO_ANSWER),
        _ => (
            "unreachable",
            "check the address and this machine's network",
        ),
    };
    let message = match attempts {
        [only] => format!("cannot connect to {}: {}", only.addr, only.error),
        _ => error.to_string(),
    };
    Failure::new(Exit::CannotConnect, "connect", reason, message).hint(hint)
}

/// Why there is no link, by what was seen of the attempt and how that ended.
pub(super) fn diagnose(seen: &Seen, target: &Target, end: End) -> Failure {
    if let Some(failure) = &seen.unreachable {
        return failure.clone();
    }
    if seen.connected.is_none() {
        return too_late(seen, target, end.limit);
    }
    match &seen.handshake.answer {
        Some(answer) => refused(answer, target),
        None => unanswered(seen, target, end),
    }
}

/// The limit of the run passed before the connection stood.
fn too_late(seen: &Seen, target: &Target, limit: Duration) -> Failure {
    let failure =
        |stage, reason, message| Failure::new(Exit::CannotConnect, stage, reason, message);
    let address = &target.address;
    match seen.resolved {
        Some(_) => {
            let message = format!("cannot connect to {address}: no answer within {limit:?}");
            failure("connect", "connect-timeout", message).hint(NO_ANSWER)
        }
        None => {
            let message = format!("{address} was not resolved within {limit:?}");
            failure("resolve", "unresolvable", message).hint(NO_RESOLVER)
        }
    }
}

/// What to try when a connect gets no answer at all.
const NO_ANSWER: &str = "no answer at all: a wrong address, a machine that is down, or a firewall";

/// What to try when the resolver gets none.
const NO_RESOLVER: &str = "the DNS server does not answer; try an address in numbers";

/// The peer answered, and there is no link all the same.
fn refused(answer: &Answer, target: &Target) -> Failure {
    let failure = |reason: &str, message| Failure::new(Exit::Refused, "register", reason, message);
    match (&answer.outcome, &target.app) {
        (Err(why), _) => failure(
            why,
            format!("the peer refused the register: {}", escaped(why)),
        )
        .explained(),
        (Ok(_), Some(app)) if *app != answer.app => {
            let message = format!("{} answered instead of {app}", answer.app);
            failure("expect-mismatch", message)
        }
        (Ok(info), _) if info.is_gateway => {
            failure("multi-gateway", "the peer is a second gateway".to_owned()).explained()
        }
        (Ok(_), _) => failure("malformed", "the peer's answer cannot be used".to_owned()),
    }
}

/// The connection stands, or stood, and what came over it is no answer.
fn unanswered(seen: &Seen, target: &Target, end: End) -> Failure {
    let handshake = &seen.handshake;
    if let Some(fault) = handshake.fault {
        return violation(fault, &handshake.first_bytes);
    }
    let is_torn = handshake.first_byte.is_some() && handshake.first_message.is_none();
    match (is_torn, end.is_late) {
        (true, true) if stranger(&handshake.first_bytes).is_none() => {
            unfinished(handshake, end.limit)
        }
        (true, _) => torn(&handshake.first_bytes),
        (false, true) if handshake.ack.is_some() => undecided(end.limit),
        (false, true) => silent(target, end.limit),
        (false, false) => closed(),
    }
}

/// What came breaks a rule of the framing or of the messages.
fn violation(fault: Fault, first_bytes: &[u8]) -> Failure {
    let failure = |message| Failure::new(Exit::Violation, "frame", fault.reason(), message);
    match stranger(first_bytes) {
        Some(stranger) => failure(format!("not a NACP peer: {stranger} answers there"))
            .hint("this port belongs to another program; check the port number"),
        None => failure(format!(
            "not a NACP peer: {fault}; the first bytes are {}",
            shown(first_bytes)
        )),
    }
}

/// What came breaks no rule so far, and the rest of it did not come in time.
fn unfinished(handshake: &Handshake, limit: Duration) -> Failure {
    let header = handshake.first_bytes.first_chunk();
    let header = header.and_then(|header| FrameHeader::parse(header).ok());
    let came = handshake.fed;
    let message = match header {
        Some(header) => format!(
            "an unfinished message of {} bytes, {} came within {limit:?}",
            header.total_size(),
            came.saturating_sub(FrameHeader::LEN)
        ),
        None => format!(
            "an unfinished frame header, {came} of {} bytes came within {limit:?}: {}",
            FrameHeader::LEN,
            shown(&handshake.first_bytes)
        ),
    };
    Failure::new(Exit::TimedOut, "frame", "incomplete-frame", message).hint(
        "the peer is slow or stuck in the middle of a message, or the port belongs to no NACP peer",
    )
}

/// Some bytes came, too few for a frame.
fn torn(first_bytes: &[u8]) -> Failure {
    let failure = |message| Failure::new(Exit::Violation, "frame", "incomplete-frame", message);
    match stranger(first_bytes) {
        Some(stranger) => failure(format!("not a NACP peer: {stranger} answers there"))
            .hint("this port belongs to another program; check the port number"),
        None => failure(format!("no whole frame came, only {}", shown(first_bytes)))
            .hint("check that the port belongs to a NACP peer"),
    }
}

fn closed() -> Failure {
    Failure::new(
        Exit::LinkLost,
        "register",
        "transport-closed",
        "the peer closed the connection before it answered the register",
    )
}

/// The register has come there, and nothing came of it.
fn undecided(limit: Duration) -> Failure {
    let message =
        format!("the peer has acknowledged the register and did not answer it within {limit:?}");
    Failure::new(Exit::TimedOut, "register", "response-timeout", message).hint(
        "the app is there and does not decide: is it busy or stuck? Its log should tell; a longer \
         --timeout gives it more time",
    )
}

fn silent(target: &Target, limit: Duration) -> Failure {
    let message = format!("no answer to the register within {limit:?}");
    let failure = Failure::new(Exit::TimedOut, "register", "response-timeout", message);
    failure.hint(match &target.app {
        Some(app) => format!(
            "an app by another name stays silent: is {app} the right one? Without `{app}@` native \
             peers tell theirs; or the port belongs to no NACP peer"
        ),
        None => "a peer of the TypeScript implementation answers to its own AppId alone: name it, \
                 APP@HOST:PORT; or the port belongs to no NACP peer"
            .to_owned(),
    })
}

fn shown(bytes: &[u8]) -> String {
    let printable = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\r' | b'\n');
    if !bytes.is_empty() && bytes.iter().all(printable) {
        return format!("{:?}", String::from_utf8_lossy(bytes));
    }
    let few = bytes.iter().take(16).map(|byte| format!("{byte:02x}"));
    few.collect::<Vec<_>>().join(" ")
}
