use std::fmt::{self, Write};

/// Writes text for people: control characters and other invisible ones come out escaped.
///
/// Names arrive from other machines; shown raw, they could move a terminal's cursor.
pub(crate) fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        if character == '\'' || character == '"' {
            f.write_char(character)?;
        } else {
            write!(f, "{}", character.escape_debug())?;
        }
    }
    Ok(())
}
