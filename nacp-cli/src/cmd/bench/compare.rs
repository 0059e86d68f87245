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

#[cfg(test)]
mod tests {
    use super::{Measured, compare};
    use crate::exit::Exit;

    fn measured(p50_ms: f64, per_second: f64) -> Measured {
        let latency = serde_json::json!({
            "min_ms": 1.0, "mean_ms": 1.0, "p50_ms": p50_ms, "p90_ms": 1.0, "p99_ms": 1.0,
            "p999_ms": 1.0, "max_ms": 1.0,
        });
        let saved = serde_json::json!({
            "mode": "rtt", "app": "a", "what": "echo", "concurrency": 1, "rate": null,
            "payload_bytes": 128, "seconds": 1.0, "count": 1, "per_second": per_second,
            "mib_per_second": 1.0, "latency": latency,
        });
        serde_json::from_value(saved).unwrap()
    }

    #[test]
    fn worse_by_more_than_is_allowed_is_a_no() {
        let before = measured(1.0, 1000.0);
        for (p50_ms, per_second, is_worse) in [
            (1.0, 1000.0, false),
            (0.5, 2000.0, false),
            (1.04, 1000.0, false),
            (1.06, 1000.0, true),
            (1.0, 960.0, false),
            (1.0, 940.0, true),
            (0.5, 940.0, true),
        ] {
            let failure = compare(&before, &measured(p50_ms, per_second), 0.05);
            let exit = failure.map(|failure| failure.exit);
            assert_eq!(
                exit,
                is_worse.then_some(Exit::SaidNo),
                "{p50_ms} {per_second}"
            );
        }
    }

    #[test]
    fn results_of_two_modes_do_not_compare() {
        let mut other = measured(1.0, 1000.0);
        other.mode = "large".to_owned();
        let failure = compare(&other, &measured(1.0, 1000.0), 0.05).unwrap();
        assert_eq!(failure.exit, Exit::Usage);
    }
}
