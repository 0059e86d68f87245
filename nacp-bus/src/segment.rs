use std::borrow::Cow;

const ESCAPED: [char; 3] = [':', '*', '%'];

/// Makes one literal segment of any text: `:`, `*` and `%` are percent-encoded.
///
/// For what others choose, such as an id that becomes part of a name. Unescaped, the id `a:b` would
/// be two segments, and the id `*` would turn a pattern loose on the names of all other ids.
///
/// Two texts never give the same segment; [`unescape_segment`] gives the text back.
///
/// ```
/// use nacp_bus::escape_segment;
///
/// assert_eq!(escape_segment("plain"), "plain");
/// assert_eq!(escape_segment("a:b"), "a%3Ab");
/// assert_eq!(escape_segment("*"), "%2A");
/// assert_eq!(escape_segment("100%"), "100%25");
/// ```
#[must_use]
pub fn escape_segment(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPED) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            ':' => escaped.push_str("%3A"),
            '*' => escaped.push_str("%2A"),
            '%' => escaped.push_str("%25"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// The text that [`escape_segment`] made this segment of.
///
/// Only the three sequences that `escape_segment` writes are decoded; everything else stays as it
/// is, so a segment that never was escaped comes back unchanged unless it holds one of them.
///
/// ```
/// use nacp_bus::unescape_segment;
///
/// assert_eq!(unescape_segment("a%3Ab"), "a:b");
/// assert_eq!(unescape_segment("100%2541"), "100%41");
/// assert_eq!(unescape_segment("%7E"), "%7E");
/// ```
#[must_use]
pub fn unescape_segment(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let mut text = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let (decoded, width) = decode(after);
        text.push(decoded);
        rest = after.get(width..).unwrap_or_default();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// What a `%` followed by `after` stands for, and how many bytes of `after` belong to it.
fn decode(after: &str) -> (char, usize) {
    match after.get(..2) {
        Some("3A") => (':', 2),
        Some("2A") => ('*', 2),
        Some("25") => ('%', 2),
        _ => ('%', 0),
    }
}
