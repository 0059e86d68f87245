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

/// Text with what JSON leaves as it is and a terminal does not: control characters beyond ASCII, and
/// those that turn text around. They come out as JSON would escape them.
pub(crate) fn harmless(text: String) -> String {
    if !text.contains(is_harmful) {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_harmful(character) {
            // Writing into a string does not fail.
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

const fn is_harmful(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::{escaped, harmless};

    #[test]
    fn what_json_leaves_as_it_is_does_not_reach_a_terminal() {
        let text = serde_json::to_string("a\u{9b}2J\u{7f}\u{202e}\u{1b}é\n").unwrap();
        let shown = harmless(text.clone());
        assert_eq!(shown, r#""a\u009b2J\u007f\u202e\u001bé\n""#);
        let read: String = serde_json::from_str(&shown).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

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
