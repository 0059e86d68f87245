//! Reads `tests/vectors`.

use std::{collections::HashMap, fs, path::Path, time::Instant};

use bytes::Bytes;
use nacp_proto::{FrameHeader, Reassembler, ReassemblyLimits};
use serde_json::Value as Json;

/// One conversation: a file, or a case of a table.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) outcome: Json,
}

/// One frame as the proxy saw it.
pub(crate) struct Step {
    pub(crate) name: String,
    /// Direction, link and connection: what shares one reassembly.
    stream: String,
    pub(crate) from_client: bool,
    pub(crate) header: Json,
    pub(crate) header_bytes: [u8; 32],
    /// `None` of the few long bodies that were not kept.
    pub(crate) body: Option<Bytes>,
    pub(crate) message: Json,
}

/// One whole message: its bytes, and what the reference's own decoder made of it.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
    pub(crate) json: Json,
}

pub(crate) fn load(file: &str) -> Json {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(file);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub(crate) fn unhex(text: &Json) -> Vec<u8> {
    hex::decode(text.as_str().unwrap()).unwrap()
}

/// Every conversation of every file, those of the tables included.
pub(crate) fn all() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| file.ends_with(".json"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| of_file(file)).collect()
}

pub(crate) fn of_file(file: &str) -> Vec<Recording> {
    let content = load(file);
    let name = file.trim_end_matches(".json");
    let mut recordings = vec![recording(name, &content)];
    for case in content["cases"].as_array().into_iter().flatten() {
        if case["steps"].is_array() {
            recordings.push(recording(case["name"].as_str().unwrap(), case));
        }
    }
    recordings
}

fn recording(name: &str, content: &Json) -> Recording {
    let steps = content["steps"].as_array().unwrap();
    Recording {
        name: name.to_owned(),
        steps: steps
            .iter()
            .enumerate()
            .map(|(at, json)| step(name, at, json))
            .collect(),
        outcome: content["outcome"].clone(),
    }
}

fn step(name: &str, at: usize, json: &Json) -> Step {
    let frame = json.get("frame_hex").map(unhex);
    let header = frame.clone().unwrap_or_else(|| unhex(&json["header_hex"]));
    Step {
        name: format!("{name}, step {at}"),
        stream: format!("{} {} {}", json["dir"], json["link"], json["conn"]),
        from_client: json["dir"] == "client->server",
        header: json["header"].clone(),
        header_bytes: *header.first_chunk().unwrap(),
        body: frame.map(|frame| Bytes::from(frame).slice(32..)),
        message: json["message"].clone(),
    }
}

impl Recording {
    /// The messages of the conversation, put together from their frames. A stream ends at its fault.
    pub(crate) fn messages(&self) -> Vec<Recorded> {
        let now = now();
        let mut streams = HashMap::new();
        let mut messages = Vec::new();
        for step in &self.steps {
            let stream = streams.entry(&step.stream).or_insert_with(reassembler);
            let (Ok(header), Some(body)) = (FrameHeader::parse(&step.header_bytes), &step.body)
            else {
                continue;
            };
            if let Ok(Some(bytes)) = stream.handle_frame(now, &header, body.clone()) {
                let whole = step
                    .message
                    .get("$chunked_complete")
                    .map(|_| &step.message["decoded"]);
                let json = whole.unwrap_or(&step.message).clone();
                messages.push(Recorded {
                    name: step.name.clone(),
                    bytes,
                    json,
                });
            }
        }
        messages
    }
}

pub(crate) fn reassembler() -> Reassembler {
    let mut reassembler = Reassembler::new(ReassemblyLimits::default());
    reassembler.handle_registered();
    reassembler
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to an Instant"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
