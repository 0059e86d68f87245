use std::time::Duration;

/// Longer than anybody waits, and short enough to be added to any moment.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Reads `500ms`, `10s`, `2m`, or a bare number of seconds; more than nothing.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match interval(text)? {
        Duration::ZERO => Err("must be more than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// As [`duration`], and zero is allowed.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let duration = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
        Err(_) => humantime::parse_duration(text).map_err(|error| error.to_string()),
    }?;
    if duration > LONGEST {
        return Err("must be at most 100 years".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::{duration, interval};
    use std::time::Duration;

    #[test]
    fn a_bare_number_is_seconds() {
        assert_eq!(duration("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(interval("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for bad in ["0", "0s", "-1", "nan", "inf", "1e15", "", "soon"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
