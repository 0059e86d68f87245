use std::fmt::{self, Write};

/// Text from elsewhere, shown on one line: control characters, and others that would move a
/// terminal's cursor or turn its text around, come out escaped.
pub(crate) struct Escaped<T>(pub(crate) T);

impl<T: AsRef<str>> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Padding and width are of use in tables only, where the text is made first.
        for character in self.0.as_ref().chars() {
            if matches!(character, '\'' | '"' | '\\') {
                f.write_char(character)?;
            } else {
                write!(f, "{}", character.escape_debug())?;
            }
        }
        Ok(())
    }
}

pub(crate) fn escaped(text: impl AsRef<str>) -> String {
    Escaped(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_moves_a_cursor_is_escaped_and_words_are_not() {
        assert_eq!(escaped("a\u{1b}[2J\r\nb"), r"a\u{1b}[2J\r\nb");
        assert_eq!(
            escaped("\u{202e}evil\u{7f}\u{9b}"),
            r"\u{202e}evil\u{7f}\u{9b}"
        );
        assert_eq!(escaped("Zürich's \"名前\""), "Zürich's \"名前\"");
    }
}
