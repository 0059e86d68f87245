//! Frames and messages made by hand, hostile or odd: each ends as our specification says.

use bytes::BufMut;
use nacp_proto::{FrameDecoder, FrameError, Message, ReassemblyLimits};

use crate::{
    messages::no_good,
    recordings::{Recording, now, of_file},
};

/// What came of the bytes of a client, in order, up to the fault that closes its connection.
fn outcomes(recording: &Recording) -> Vec<String> {
    let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
    let mut outcomes = Vec::new();
    for bytes in sent(recording) {
        if let Err(fault) = feed(&mut decoder, &bytes, &mut outcomes) {
            outcomes.push(fault);
            return outcomes;
        }
    }
    let end = match recording.name.as_str() {
        "fin-mid-frame" => decoder.handle_end(),
        "reassembly-timeout" => decoder.handle_timeout(decoder.poll_timeout().unwrap()),
        _ => Ok(()),
    };
    match end {
        Err(error) => outcomes.push(error.reason().to_owned()),
        Ok(()) if decoder.unfinished_messages() > 0 => outcomes.push("unfinished".to_owned()),
        Ok(()) => {}
    }
    outcomes
}

fn feed(
    decoder: &mut FrameDecoder,
    mut bytes: &[u8],
    outcomes: &mut Vec<String>,
) -> Result<(), String> {
    let reason = |error: FrameError| error.reason().to_owned();
    while !bytes.is_empty() {
        let mut room = decoder.read_buf();
        let (now_fits, later) = bytes.split_at(bytes.len().min(room.remaining_mut()));
        room.put_slice(now_fits);
        bytes = later;
        while let Some(message) = decoder.poll_message(now()).map_err(reason)? {
            match (no_good(&message), Message::decode(&message)) {
                (Some(_), Err(error)) => return Err(error.reason().to_owned()),
                (Some(outcome), Ok(_)) => outcomes.push(outcome),
                (None, decoded) => {
                    let message_type = decoded.unwrap().message_type().unwrap();
                    outcomes.push(message_type.to_string());
                    decoder.handle_registered();
                }
            }
        }
    }
    Ok(())
}

/// The bytes that the client of a case wrote. Of what was no frame the recording has only words.
fn sent(recording: &Recording) -> Vec<Vec<u8>> {
    let header = |frame_size: u32| {
        let sizes = [0, 161, frame_size].map(u32::to_be_bytes).concat();
        [[0x77; 16].as_slice(), &sizes, &[0, 0, 0xcf, 1]].concat()
    };
    match recording.name.as_str() {
        "frame-size-31" => vec![header(31)],
        "frame-size-over-2GiB" => vec![header(0x8000_0001)],
        "http-request" => vec![b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()],
        "fin-mid-frame" => vec![[header(193), vec![0xa8; 80]].concat()],
        _ => {
            let frames = recording.steps.iter().filter(|step| step.from_client);
            frames
                .map(|step| [&step.header_bytes, &step.body.clone().unwrap()[..]].concat())
                .collect()
        }
    }
}

fn recorded_fault(recording: &Recording) -> Option<String> {
    let events = recording.outcome.as_array().unwrap();
    let fault = events
        .iter()
        .find(|event| event["what"] == "bus nact:peer:error")?;
    Some(fault["data"]["reason"].as_str().unwrap().to_owned())
}

/// The cases in their order: what comes of the client's bytes, and, where the reference makes something
/// else of them, what it does.
const OUTCOMES: [(&str, &[&str], &str); 55] = [
    ("bad-magic", &["bad-magic"], ""),
    ("bad-version", &["version-mismatch"], ""),
    ("frame-size-31", &["frame-too-small"], ""),
    ("frame-size-over-2GiB", &["frame-too-large"], ""),
    ("http-request", &["version-mismatch"], ""),
    ("reserved-nonzero", &["register"], ""),
    ("body-longer-than-total", &["frame-out-of-bounds"], ""),
    ("offset-beyond-total", &["frame-out-of-bounds"], ""),
    ("overlap", &["overlapping-frame"], ""),
    ("frames-out-of-order", &["register"], ""),
    ("frames-interleaved", &["register", "request"], ""),
    (
        "total-differs-between-frames",
        &["total-size-changed"],
        "it goes by the first totalSize",
    ),
    ("same-msgId-reused", &["register", "request"], ""),
    ("empty-frame-then-whole", &["register"], ""),
    ("empty-packet", &["decode-failed"], ""),
    ("not-cbor", &["decode-failed"], ""),
    ("trailing-bytes", &["decode-failed"], ""),
    ("huge-total", &["unfinished"], ""),
    ("split-everywhere", &["register"], ""),
    (
        "fin-mid-frame",
        &["transport-error"],
        "it does not report an end inside a frame",
    ),
    (
        "register-without-v",
        &["malformed register"],
        "its handler throws, and the link ends with transport-error",
    ),
    (
        "register-without-payload",
        &["malformed register"],
        "it takes a register without isGateway and decl",
    ),
    ("unregistered-request", &["request"], ""),
    ("unregistered-subscribe", &["subscribe", "register"], ""),
    ("unregister-never-registered", &["unregister"], ""),
    ("register-as-the-server", &["register"], ""),
    ("register-twice-same-message", &["register", "register"], ""),
    (
        "null-message",
        &["decode-failed"],
        "its handler throws, and the link ends with transport-error",
    ),
    (
        "non-map-messages",
        &["decode-failed"],
        "it drops what is no message and goes on",
    ),
    ("unknown-type", &["unknown type frobnicate"], ""),
    ("unknown-top-level-keys", &["request"], ""),
    ("variable-map-headers", &["request", "request"], ""),
    ("t-as-uint64", &["request"], ""),
    ("t-missing-or-text", &["request", "request"], ""),
    ("v-wrong-on-request", &["request", "request"], ""),
    (
        "ack-without-meta",
        &["malformed ack"],
        "its handler throws, and the link ends with transport-error",
    ),
    (
        "request-without-meta",
        &["malformed request"],
        "its handler throws, and the link ends with transport-error",
    ),
    (
        "request-unknown-kind",
        &["malformed request"],
        "it answers that no processor has this kind",
    ),
    (
        "unsubscribe-without-payload",
        &["malformed unsubscribe"],
        "its handler throws, and the link ends with transport-error",
    ),
    ("same-id-twice", &["request", "request"], ""),
    (
        "id-missing-twice",
        &["decode-failed"],
        "it takes a message without an id",
    ),
    ("other-to", &["request"], ""),
    ("other-to-at-gateway", &["request"], ""),
    ("spoofed-from-request", &["request", "ack"], ""),
    ("spoofed-unregister", &["unregister", "ack"], ""),
    ("spoofed-response", &["ack", "response"], ""),
    (
        "unsubscribe-of-others",
        &["subscribe", "ack", "unsubscribe"],
        "",
    ),
    ("register-two-ids-one-connection", &["register"], ""),
    ("response-without-request", &["response"], ""),
    ("notify-without-subscription", &["notify"], ""),
    ("ack-to-nothing", &["ack"], ""),
    ("request-with-payload-missing", &["request"], ""),
    ("request-with-payload-null", &["request"], ""),
    ("register-again-new-message", &["register", "request"], ""),
    ("reassembly-timeout", &["request", "reassembly-timeout"], ""),
];

#[test]
fn each_hand_made_frame_and_message_ends_as_the_specification_says() {
    let frames = of_file("j1-hand-made-frames.json");
    let messages = of_file("j2-hand-made-messages.json");
    let cases: Vec<_> = frames
        .iter()
        .skip(1)
        .chain(messages.iter().skip(1))
        .collect();
    assert_eq!(cases.len(), OUTCOMES.len());
    for (case, (name, expected, reference_otherwise)) in cases.into_iter().zip(OUTCOMES) {
        assert_eq!(
            (case.name.as_str(), outcomes(case)),
            (name, to_owned(expected))
        );
        if reference_otherwise.is_empty() {
            assert_eq!(fault(expected), recorded_fault(case), "{name}");
        }
    }
}

fn to_owned(outcomes: &[&str]) -> Vec<String> {
    outcomes.iter().map(|&outcome| outcome.to_owned()).collect()
}

/// The outcome that closes the connection.
fn fault(outcomes: &[&str]) -> Option<String> {
    let last = outcomes.last().copied()?;
    let is_fault = last.contains('-') && !last.contains(' ');
    is_fault.then(|| last.to_owned())
}
