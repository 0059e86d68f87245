use std::{borrow::Borrow, fmt, str::FromStr};

use smol_str::SmolStr;

use crate::escape::write_escaped;

/// The name of an app: 1 to 255 bytes of UTF-8, never `*` (specification, section 1).
///
/// Names are compared byte by byte: two spellings of one accented word are two apps, and so are `A`
/// and `a`. A name is never cut, and a zero byte inside is a byte like any other. Cloning is cheap;
/// up to 23 bytes live inline. `Display` and `Debug` escape control characters, [`as_str`] does not.
///
/// ```
/// use nacp_proto::{AppId, AppIdError};
///
/// let app = AppId::new("weather")?;
/// assert_eq!(app.as_str(), "weather");
/// assert_eq!(AppId::new(""), Err(AppIdError::Empty));
/// assert_eq!(AppId::new("a\u{1b}[2J")?.to_string(), r"a\u{1b}[2J");
/// # Ok::<(), AppIdError>(())
/// ```
///
/// [`as_str`]: Self::as_str
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(SmolStr);

/// Why a text is no [`AppId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppIdError {
    /// There is no app without a name.
    #[error("an app id is not empty")]
    Empty,
    /// The text is longer than [`AppId::MAX_BYTES`].
    #[error("an app id has at most 255 bytes, this one has {bytes}")]
    TooLong {
        /// Length of the refused text.
        bytes: usize,
    },
    /// `*` means any app and names none; see [`AppId::any`].
    #[error("`*` names no app")]
    Wildcard,
}

impl AppId {
    /// The longest name, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 255;

    const ANY: SmolStr = SmolStr::new_inline("*");

    /// A name.
    ///
    /// # Errors
    ///
    /// Refuses the empty text, more than [`MAX_BYTES`](Self::MAX_BYTES) bytes, and `*`.
    pub fn new(name: impl AsRef<str>) -> Result<Self, AppIdError> {
        let app = Self::from_wire(name.as_ref())?;
        if app.is_any() {
            Err(AppIdError::Wildcard)
        } else {
            Ok(app)
        }
    }

    /// The wildcard `*`: as the destination of a register it means "whoever you are"
    /// (specification, section 4.1). It names no app anywhere else.
    pub const fn any() -> Self {
        Self(Self::ANY)
    }

    /// Whether this is the wildcard [`any`](Self::any).
    pub fn is_any(&self) -> bool {
        self.0 == "*"
    }

    /// The name as it goes over the wire, unescaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Like [`new`](Self::new), but `*` passes: messages may carry it.
    pub(crate) fn from_wire(name: &str) -> Result<Self, AppIdError> {
        match name.len() {
            0 => Err(AppIdError::Empty),
            1..=Self::MAX_BYTES => Ok(Self(SmolStr::new(name))),
            bytes => Err(AppIdError::TooLong { bytes }),
        }
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, &self.0)
    }
}

impl fmt::Debug for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppId({:?})", self.as_str())
    }
}

impl AsRef<str> for AppId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for AppId {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for AppId {
    type Err = AppIdError;

    fn from_str(name: &str) -> Result<Self, AppIdError> {
        Self::new(name)
    }
}

impl TryFrom<&str> for AppId {
    type Error = AppIdError;

    fn try_from(name: &str) -> Result<Self, AppIdError> {
        Self::new(name)
    }
}

impl TryFrom<String> for AppId {
    type Error = AppIdError;

    fn try_from(name: String) -> Result<Self, AppIdError> {
        Self::new(name)
    }
}
