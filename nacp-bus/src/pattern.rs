use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// What joins the segments of a name.
pub(crate) const SEPARATOR: char = ':';
/// The segment of a pattern that matches any one segment of a name.
pub(crate) const STAR: &str = "*";

/// Which names a listener wants to hear, parsed once.
///
/// A name is segments joined by `:`. In a pattern a segment that is exactly `*` matches any one
/// segment, the empty one too; every other segment matches itself, byte for byte. There is no
/// wildcard for several segments, so a pattern matches only names with as many segments as it has
/// itself. Nothing else is special: `a*` and `**` are literals, and so is an empty segment.
///
/// Cloning is cheap, the text is shared.
///
/// # Example
///
/// ```
/// use nacp_bus::Pattern;
///
/// let pattern = Pattern::parse("orders:*:paid")?;
/// assert!(pattern.matches("orders:17:paid"));
/// assert!(pattern.matches("orders::paid"));
/// assert!(!pattern.matches("orders:paid"));
/// assert!(!pattern.matches("orders:17:18:paid"));
/// # Ok::<(), nacp_bus::PatternError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    text: Arc<str>,
    is_literal: bool,
}

/// One segment of a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a segment is a literal or a star, users may match on both"
)]
pub enum Segment<'a> {
    /// A star: matches any one segment of a name.
    Any,
    /// Matches only this segment.
    Literal(&'a str),
}

/// Why a text is no [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is longer than the limit.
    #[error("the pattern has {bytes} bytes, more than the limit of {limit}")]
    TooLong {
        /// Length of the text in bytes.
        bytes: usize,
        /// The most that was allowed, in bytes.
        limit: usize,
    },
}

impl Pattern {
    /// The limit that [`parse`](Self::parse) sets on the length, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Parses a pattern of at most [`MAX_BYTES`](Self::MAX_BYTES) bytes.
    ///
    /// Every text within the limit is a pattern; the empty text is one that matches only the empty
    /// name.
    ///
    /// # Errors
    ///
    /// [`PatternError::TooLong`] if the text is longer.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        Self::parse_within(text, Self::MAX_BYTES)
    }

    /// Parses a pattern of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`PatternError::TooLong`] if the text is longer.
    pub fn parse_within(text: &str, limit: usize) -> Result<Self, PatternError> {
        let bytes = text.len();
        if bytes > limit {
            return Err(PatternError::TooLong { bytes, limit });
        }
        Ok(Self {
            text: text.into(),
            is_literal: text.split(SEPARATOR).all(|segment| segment != STAR),
        })
    }

    /// The text that was parsed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern has no star, and so matches exactly one name: its own text.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// The segments from left to right; at least one.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.text.split(SEPARATOR).map(|segment| match segment {
            STAR => Segment::Any,
            literal => Segment::Literal(literal),
        })
    }

    /// Whether the pattern matches `name`. A star in the *name* is a segment like any other.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if self.is_literal {
            return *self.text == *name;
        }
        let mut segments = name.split(SEPARATOR);
        self.matches_next(&mut segments) && segments.next().is_none()
    }

    /// Whether the pattern matches the first segments of `name`, as many as the pattern has.
    ///
    /// ```
    /// # use nacp_bus::Pattern;
    /// let prefix = Pattern::parse("disk:*")?;
    /// assert!(prefix.matches_prefix_of("disk:sda:full"));
    /// assert!(prefix.matches_prefix_of("disk:sda"));
    /// assert!(!prefix.matches_prefix_of("disk"));
    /// assert!(!prefix.matches_prefix_of("disks:sda:full"));
    /// # Ok::<(), nacp_bus::PatternError>(())
    /// ```
    #[must_use]
    pub fn matches_prefix_of(&self, name: &str) -> bool {
        self.matches_next(&mut name.split(SEPARATOR))
    }

    /// Whether this pattern matches every name that `other` matches.
    ///
    /// ```
    /// # use nacp_bus::Pattern;
    /// let wide = Pattern::parse("disk:*")?;
    /// assert!(wide.covers(&Pattern::parse("disk:sda")?));
    /// assert!(wide.covers(&wide));
    /// assert!(!wide.covers(&Pattern::parse("*:*")?));
    /// # Ok::<(), nacp_bus::PatternError>(())
    /// ```
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        // The other's star stands for any segment, so only a star here may meet it. That is also
        // how a star in a name is matched.
        self.matches(&other.text)
    }

    /// Whether every name that `other` matches begins with segments that this pattern matches, as
    /// many as this pattern has.
    ///
    /// With it one tells whether a pattern can match anything outside a set of reserved prefixes.
    /// Asking one prefix after the other is exact: a star of `other` can stand for a segment that
    /// no prefix spells out, so several prefixes together leave nothing out only if one of them
    /// alone does.
    ///
    /// ```
    /// # use nacp_bus::Pattern;
    /// let reserved = [Pattern::parse("disk")?, Pattern::parse("net:*:raw")?];
    /// let is_reserved = |text: &str| {
    ///     let pattern = Pattern::parse(text).unwrap();
    ///     reserved.iter().any(|prefix| prefix.covers_prefix_of(&pattern))
    /// };
    /// assert!(is_reserved("disk:*:full"));
    /// assert!(is_reserved("net:*:raw:in"));
    /// assert!(!is_reserved("*:*:raw"), "matches `user:eth0:raw` too");
    /// # Ok::<(), nacp_bus::PatternError>(())
    /// ```
    #[must_use]
    pub fn covers_prefix_of(&self, other: &Self) -> bool {
        self.matches_prefix_of(&other.text)
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    fn matches_next<'n>(&self, names: &mut impl Iterator<Item = &'n str>) -> bool {
        let mut own = self.text.split(SEPARATOR);
        own.all(|segment| {
            names
                .next()
                .is_some_and(|name| segment == STAR || segment == name)
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

impl AsRef<str> for Pattern {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Pattern {
    type Error = PatternError;

    fn try_from(text: &str) -> Result<Self, PatternError> {
        Self::parse(text)
    }
}
