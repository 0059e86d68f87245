use std::fs;
use std::path::Path;

use super::result::Measured;
use crate::exit::Exit;
use crate::failure::Failure;

pub(super) fn read(path: &Path) -> Result<Measured, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{} is no saved result: {error}", path.display())))
}

pub(super) fn write(path: &Path, measured: &Measured) -> Result<(), Failure> {
    let failure =
        |error: String| Failure::local("save", format!("cannot write {}: {error}", path.display()));
    let text =
        serde_json::to_string_pretty(measured).map_err(|error| failure(error.to_string()))?;
    fs::write(path, text + "\n").map_err(|error| failure(error.to_string()))
}

/// What has become worse by more than is allowed.
pub(super) fn compare(before: &Measured, now: &Measured, max_regress: f64) -> Option<Failure> {
    if before.mode != now.mode {
        let message = format!(
            "the saved result is of {}, not of {}",
            before.mode, now.mode
        );
        return Some(Failure::usage(message));
    }
    let slower = now.latency.p50_ms / before.latency.p50_ms - 1.0;
    let fewer = 1.0 - now.per_second / before.per_second;
    let (what, worse) = [("the median", slower), ("the rate", fewer)]
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    if worse <= max_regress {
        return None;
    }
    let (worse, allowed) = (worse * 100.0, max_regress * 100.0);
    let message = format!("{what} is worse by {worse:.1} %, more than {allowed:.1} %");
    Some(Failure::new(Exit::SaidNo, "compare", "regressed", message))
}
