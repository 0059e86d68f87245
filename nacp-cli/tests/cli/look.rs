//! What needs no network: `explain` and `decode`.

use crate::support::{run, run_with_input};

use nacp::proto::{
    AppId, Body, ChunkSize, Chunker, Message, MessageId, MsgId, Payload, RequestKind,
};

#[test]
fn explain_tells_what_a_reason_means_when_it_heals_and_what_to_try() {
    let human = run(&["explain", "appId-in-use"]);
    assert_eq!(human.code, 0);
    for part in ["means", "heals", "try"] {
        assert!(human.stdout.contains(part), "{human:?}");
    }
    let json = run(&["explain", "appId-in-use", "--json"]).json();
    assert_eq!(json["schema"], "nacp-cli/explain/1");
    assert_eq!(json["reasons"][0]["word"], "appId-in-use");
    assert_eq!(json["reasons"][0]["met"], "register");
}

#[test]
fn explain_knows_the_exit_codes() {
    let json = run(&["explain", "4", "--json"]).json();
    assert_eq!(json["exit_code"]["code"], 4);
    assert_eq!(json["exit_code"]["meaning"], "handshake refused");
    assert!(run(&["explain", "130"]).stdout.contains("interrupted"));
}

#[test]
fn explain_without_a_word_lists_all_and_a_slip_gets_the_nearest() {
    assert!(run(&["explain"]).stdout.lines().count() > 50);
    let slip = run(&["explain", "appid_in_use"]);
    assert_eq!(slip.code, 2);
    assert!(
        slip.stderr.contains("did you mean appId-in-use?"),
        "{slip:?}"
    );
}

fn request() -> Message {
    Message::new(
        MessageId::new("m1").unwrap(),
        AppId::new("a").unwrap(),
        AppId::new("b").unwrap(),
        Body::Request {
            kind: RequestKind::Ability,
            target: Some("add".into()),
            payload: Payload::new(&[1, 2]).unwrap(),
        },
    )
}

pub(crate) fn frames(chunk: u32) -> Vec<u8> {
    let chunker = Chunker::new(request().encode(), MsgId([7; 16])).unwrap();
    let frames = chunker.frames(ChunkSize::new(chunk).unwrap());
    frames
        .flat_map(|frame| [&frame.header.to_bytes()[..], &frame.body.to_bytes()].concat())
        .collect()
}

#[test]
fn decode_shows_frames_and_the_message_they_carry() {
    let run = run_with_input(&["decode", "--json"], &frames(64));
    assert_eq!(run.code, 0, "{run:?}");
    let document = run.json();
    assert_eq!(document["what"], "frames");
    let items = document["items"].as_array().unwrap();
    let (message, frames) = items.split_last().unwrap();
    assert!(frames.len() > 1);
    assert!(frames.iter().all(|item| item["kind"] == "frame"));
    assert_eq!(message["kind"], "message");
    assert_eq!(message["verdict"], "good");
    assert_eq!(message["value"]["payload"], serde_json::json!([1, 2]));
    assert_eq!(message["value"]["meta"]["target"], "add");
}

#[test]
fn decode_names_the_byte_that_is_wrong() {
    let mut bad_magic = frames(1000);
    bad_magic.extend_from_slice(&frames(1000));
    let second = bad_magic.len() / 2;
    bad_magic[second + 30] = 0xce;
    let mut bad_cbor = frames(1000);
    bad_cbor[32] = 0xff;
    let mut cut = frames(1000);
    let whole = cut.len();
    cut.truncate(whole - 1);
    for (bytes, at, reason) in [
        (bad_magic, second + 30, "bad-magic"),
        (bad_cbor, 32, "decode-failed"),
        (cut, whole - 1, "decode-failed"),
    ] {
        let human = run_with_input(&["decode"], &bytes);
        assert_eq!(human.code, 7, "{human:?}");
        assert!(
            human.stderr.contains(&format!("byte {at}: ")),
            "{at} is not in {human:?}"
        );
        let json = run_with_input(&["decode", "--json", "--type", "frames"], &bytes);
        assert_eq!(json.code, 7, "{json:?}");
        assert_eq!(json.json()["error"]["reason"], reason);
    }
}

#[test]
fn decode_takes_digits_and_shows_diagnostic_notation() {
    let run = run(&["decode", "--hex", "a1 6161 d8404200ff", "--diag"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "{\"a\": 64(h'00ff')}\n"),
        "{run:?}"
    );
    let json = crate::support::run(&["decode", "-x", "a16161d8404200ff"]);
    assert_eq!(
        json.stdout,
        "{\n  \"a\": {\n    \"$bytes\": \"00ff\"\n  }\n}\n"
    );
}

#[test]
fn decode_shows_a_sequence_and_what_json_cannot_hold() {
    let run = run(&["decode", "-x", "01 a14101f6 f7", "-o", "ndjson"]);
    assert_eq!(run.code, 0, "{run:?}");
    let items = run.json()["items"].as_array().unwrap().clone();
    assert_eq!(items.len(), 3);
    assert_eq!(
        items[1]["value"],
        serde_json::json!({"$map": [[{"$bytes": "01"}, null]]})
    );
}

#[test]
fn decode_refuses_what_cannot_be_read_and_never_panics() {
    assert_eq!(run(&["decode", "/nonexistent"]).code, 2);
    assert_eq!(run(&["decode", "-x", "abc"]).code, 2);
    for bytes in [
        &b""[..],
        &[0x9b; 9],
        &[0xff],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0x81; 100_000],
    ] {
        let run = run_with_input(&["decode"], bytes);
        assert_eq!(run.code, 7, "{bytes:?} {run:?}");
        assert!(run.stderr.contains("byte "), "{run:?}");
    }
}
