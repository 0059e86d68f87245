//! Reads the recordings.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use serde_json::Value as Json;

/// One recorded conversation, as things that happened.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) moments: Vec<Moment>,
}

/// A case of a table of hand-made messages.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) recording: Recording,
    pub(crate) registered_before: bool,
}

/// A connection: its link and its number there.
pub(crate) type Conn = (String, u64);

#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) at_ms: u64,
    pub(crate) conn: Conn,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Connect,
    /// The connection ends: one side closes, or the proxy cuts.
    End {
        by: Side,
    },
    /// A whole message.
    Said {
        by: Side,
        bytes: Bytes,
        /// Whether the proxy passed it on.
        forwarded: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
    Proxy,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../nacp-proto/tests/vectors")
}

fn read(file: &str) -> Json {
    let path = folder().join(format!("{file}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text
        .chars()
        .map(|digit| digit.to_digit(16).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

impl Recording {
    /// The names of all recordings.
    pub(crate) fn files() -> Vec<String> {
        let mut files: Vec<_> = fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|file| file.strip_suffix(".json").map(str::to_owned))
            .collect();
        files.sort();
        files
    }

    pub(crate) fn load(file: &str) -> Self {
        Self::of(file, &read(file))
    }

    pub(crate) fn cases(file: &str) -> Vec<Case> {
        let table = read(file);
        let cases = table["cases"].as_array().unwrap();
        cases
            .iter()
            .map(|case| Case {
                recording: Self::of(case["name"].as_str().unwrap(), case),
                registered_before: case["registered_before"].as_bool().unwrap(),
            })
            .collect()
    }

    fn of(name: &str, json: &Json) -> Self {
        let none = Vec::new();
        let steps = json["steps"].as_array().unwrap();
        let transport = json["transport"].as_array().unwrap_or(&none);
        let mut moments = Vec::new();
        let mut parts = HashMap::new();
        let (first, last) = (0, steps.len());
        for place in first..=last {
            for event in transport {
                if event["after_step"].as_u64() == u64::try_from(place).ok() {
                    moments.extend(transport_moment(event));
                }
            }
            moments.extend(steps.get(place).and_then(|step| said(step, &mut parts)));
        }
        Self {
            name: name.to_owned(),
            moments,
        }
    }
}

fn conn_of(json: &Json) -> Conn {
    (
        json["link"].as_str().unwrap().to_owned(),
        json["conn"].as_u64().unwrap(),
    )
}

fn transport_moment(event: &Json) -> Option<Moment> {
    let what = event["what"].as_str().unwrap();
    let what = if what.starts_with("tcp connect") {
        What::Connect
    } else if what.starts_with("client sent FIN") {
        What::End { by: Side::Client }
    } else if what.starts_with("server sent FIN") {
        What::End { by: Side::Server }
    } else if what.contains("cut") {
        What::End { by: Side::Proxy }
    } else {
        return None;
    };
    Some(Moment {
        at_ms: event["at_ms"].as_u64().unwrap(),
        conn: conn_of(event),
        what,
    })
}

/// The message that this frame completes. Of bodies that were not kept there is none.
fn said(step: &Json, parts: &mut HashMap<String, Vec<u8>>) -> Option<Moment> {
    let by = if step["dir"] == "client->server" {
        Side::Client
    } else {
        Side::Server
    };
    let header = &step["header"];
    let key = format!(
        "{} {} {} {}",
        step["link"], step["conn"], step["dir"], header["msgId"]
    );
    let message = parts.entry(key.clone()).or_default();
    message.extend(unhex(step.get("body_hex")?.as_str()?));
    if u64::try_from(message.len()).ok() != header["totalSize"].as_u64() {
        return None;
    }
    let bytes = Bytes::from(parts.remove(&key)?);
    Some(Moment {
        at_ms: step["at_ms"].as_u64().unwrap(),
        conn: conn_of(step),
        what: What::Said {
            by,
            bytes,
            forwarded: step.get("proxy").is_none(),
        },
    })
}
