//! Bytes from elsewhere, shown.

mod frames;
mod item;

use std::io::{self, Read};

use bytes::Bytes;
use serde::Serialize;

use crate::args::{DecodeArgs, What};
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::output::Output;

use item::Item;

/// More than this is no input for people.
const MAX_INPUT: u64 = 256 << 20;

#[derive(Serialize)]
struct Decoded<'a> {
    what: &'static str,
    bytes: usize,
    items: &'a [Item],
}

pub(crate) fn run(args: &DecodeArgs, output: &mut Output) -> Result<(), Stop> {
    let bytes = input(args)?;
    let what = args.what.unwrap_or_else(|| guess(&bytes));
    let mut items = Vec::new();
    let fault = match what {
        What::Frames => frames::read(&bytes, args.diag, &mut items),
        What::Message => item::message(&bytes, 0, args.diag, &mut items),
        What::Cbor => item::cbor(&bytes, args.diag, &mut items),
    };
    for item in &items {
        output.human(item)?;
    }
    let decoded = Decoded {
        what: name(what),
        bytes: bytes.len(),
        items: &items,
    };
    match fault {
        Ok(()) => Ok(output.document("decode", decoded, None)?),
        Err(failure) => {
            output.document("decode", decoded, Some(&failure))?;
            Err(Stop::Told(failure))
        }
    }
}

/// A fault in the bytes, by the number of the byte.
fn fault(at: usize, reason: &str, message: impl std::fmt::Display) -> Failure {
    let message = format!("byte {at}: {message}");
    let mut failure = Failure::new(Exit::Violation, "decode", reason, message);
    failure.hint = None;
    failure
}

const fn name(what: What) -> &'static str {
    match what {
        What::Frames => "frames",
        What::Message => "message",
        What::Cbor => "cbor",
    }
}

fn guess(bytes: &Bytes) -> What {
    if bytes.get(30..32) == Some(&[0xcf, 0x01]) {
        return What::Frames;
    }
    if nacp::proto::Message::decode(bytes).is_ok() {
        return What::Message;
    }
    What::Cbor
}

fn input(args: &DecodeArgs) -> Result<Bytes, Failure> {
    if args.hex && args.input != "-" && is_digits(&args.input) {
        return digits(&args.input);
    }
    let bytes = read(&args.input)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", args.input)))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(Failure::usage(format!(
            "more than {MAX_INPUT} bytes of input"
        )));
    }
    if args.hex {
        digits(&String::from_utf8_lossy(&bytes))
    } else {
        Ok(bytes.into())
    }
}

fn read(input: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_INPUT + 1;
    match input {
        "-" => io::stdin().lock().take(limit).read_to_end(&mut bytes)?,
        path => std::fs::File::open(path)?
            .take(limit)
            .read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

fn is_digits(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_hexdigit() || c.is_whitespace())
}

fn digits(text: &str) -> Result<Bytes, Failure> {
    let compact: String = text.split_whitespace().collect();
    let bytes = hex::decode(&compact);
    let bytes = bytes.map_err(|error| Failure::usage(format!("not hexadecimal: {error}")))?;
    Ok(bytes.into())
}
