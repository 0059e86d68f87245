use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use nacp_proto::{AppId, AppIdError};
use nacp_transport_tcp::Address;
use thiserror::Error;

/// What can name an app: an [`AppId`], or a text that is one.
pub trait IntoAppId {
    /// The name.
    ///
    /// # Errors
    ///
    /// [`AppIdError`] if the text is no name of an app.
    fn into_app_id(self) -> Result<AppId, AppIdError>;
}

impl IntoAppId for AppId {
    fn into_app_id(self) -> Result<AppId, AppIdError> {
        Ok(self)
    }
}

impl IntoAppId for &AppId {
    fn into_app_id(self) -> Result<AppId, AppIdError> {
        Ok(self.clone())
    }
}

impl IntoAppId for &str {
    fn into_app_id(self) -> Result<AppId, AppIdError> {
        AppId::new(self)
    }
}

impl IntoAppId for String {
    fn into_app_id(self) -> Result<AppId, AppIdError> {
        AppId::new(self)
    }
}

impl IntoAppId for &String {
    fn into_app_id(self) -> Result<AppId, AppIdError> {
        AppId::new(self)
    }
}

/// Whom to connect to, and where: `[APP@]ADDRESS`.
///
/// What an address looks like is the transport's affair: `HOST:PORT` for TCP. Without an app the
/// node registers to `*` and learns the name from the answer; a peer of the reference
/// implementation stays silent to that (specification, section 4.1).
///
/// ```
/// use nacp::Target;
///
/// let target: Target = "math@127.0.0.1:7000".parse()?;
/// assert_eq!(target.app().map(|app| app.as_str()), Some("math"));
/// assert_eq!(target.address(), "127.0.0.1:7000");
/// assert_eq!("127.0.0.1:7000".parse::<Target>()?.app(), None);
/// # Ok::<(), nacp::TargetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    app: Option<AppId>,
    address: String,
}

/// Why a text is no [`Target`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// What is before the `@` names no app.
    #[error("the target names no app: {0}")]
    App(#[from] AppIdError),
    /// There is no address.
    #[error("the target has no address")]
    NoAddress,
}

impl Target {
    /// Whoever answers at this address.
    pub fn at(address: impl Into<String>) -> Self {
        Self {
            app: None,
            address: address.into(),
        }
    }

    /// Expects this app there.
    #[must_use]
    pub fn expect(mut self, app: AppId) -> Self {
        self.app = Some(app);
        self
    }

    /// The app that is expected, if one is.
    pub const fn app(&self) -> Option<&AppId> {
        self.app.as_ref()
    }

    /// Where to dial.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl FromStr for Target {
    type Err = TargetError;

    /// Splits at the last `@`: a name may hold one, an address does not.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (app, address) = match text.rsplit_once('@') {
            Some((app, address)) => (Some(AppId::new(app)?), address),
            None => (None, text),
        };
        if address.is_empty() {
            return Err(TargetError::NoAddress);
        }
        Ok(Self {
            app,
            address: address.to_owned(),
        })
    }
}

impl TryFrom<&str> for Target {
    type Error = TargetError;

    fn try_from(text: &str) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl TryFrom<&String> for Target {
    type Error = TargetError;

    fn try_from(text: &String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        Self::at(address.to_string())
    }
}

impl From<&Address> for Target {
    fn from(address: &Address) -> Self {
        Self::at(address.to_string())
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Address::from(address).into()
    }
}

impl From<std::convert::Infallible> for TargetError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.app {
            Some(app) => write!(f, "{app}@{}", self.address),
            None => f.write_str(&self.address),
        }
    }
}
