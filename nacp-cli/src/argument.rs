use std::io::Read;

use nacp::Payload;

use crate::failure::Failure;
use crate::value;

/// JSON, `@FILE`, or `-` for standard input.
pub(crate) fn argument(data: Option<&str>) -> Result<Payload, Failure> {
    let text = match data {
        None => return Ok(Payload::empty()),
        Some("-" | "@-") => standard_input()?,
        Some(data) => match data.strip_prefix('@') {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?,
            None => data.to_owned(),
        },
    };
    value::payload(&text).map_err(|error| Failure::usage(format!("the argument is {error}")))
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    match std::io::stdin().lock().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!(
            "cannot read standard input: {error}"
        ))),
    }
}
