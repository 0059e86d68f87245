use std::fmt;
use std::str::FromStr;

use nacp::proto::{AppId, AppIdError};
use nacp::transport::{Address, AddressError};
use thiserror::Error;

/// Whom to talk to: `[APP@]HOST:PORT`. Without `APP`, or with `*`, it is whoever answers there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) app: Option<AppId>,
    pub(crate) address: Address,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum TargetError {
    #[error("{0}")]
    Address(#[from] AddressError),
    #[error("{0}")]
    App(#[from] AppIdError),
}

impl FromStr for Target {
    type Err = TargetError;

    /// An app's name may hold an `@`, an address never does: the last one counts.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (app, address) = match text.rsplit_once('@') {
            Some(("*", address)) => (None, address),
            Some((app, address)) => (Some(AppId::new(app)?), address),
            None => (None, text),
        };
        Ok(Self {
            app,
            address: address.parse()?,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(app) = &self.app {
            write!(f, "{app}@")?;
        }
        write!(f, "{}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, TargetError};
    use nacp::proto::AppIdError;
    use nacp::transport::AddressError;

    fn parse(text: &str) -> Result<Target, TargetError> {
        text.parse()
    }

    #[test]
    fn the_last_at_sign_parts_app_and_address() {
        let target = parse("a@b@localhost:7000").unwrap();
        assert_eq!(target.app.as_ref().map(|app| app.as_str()), Some("a@b"));
        assert_eq!(target.to_string(), "a@b@localhost:7000");
    }

    #[test]
    fn a_star_and_nothing_both_mean_whoever_is_there() {
        assert_eq!(parse("*@[::1]:7000").unwrap(), parse("[::1]:7000").unwrap());
        assert_eq!(parse("[::1]:7000").unwrap().app, None);
    }

    #[test]
    fn t24_what_is_no_target_is_refused_before_any_dial() {
        assert_eq!(parse("@h:1"), Err(AppIdError::Empty.into()));
        assert_eq!(parse("h:0"), Err(AddressError::PortZero.into()));
        assert_eq!(parse(""), Err(AddressError::Empty.into()));
        assert_eq!(parse(":7000"), Err(AddressError::MissingHost.into()));
        let ambiguous = parse("::1:7000").unwrap_err().to_string();
        assert!(ambiguous.contains("[::1]:7000"), "{ambiguous}");
        for bad in [
            "h:", "h:65536", "h:-1", "h:+1", "h:7000x", "[::1", "::1]:7", "[]:7", "h",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("h:65535").is_ok());
    }
}
