use std::fmt;

use anstyle::{AnsiColor, Style};

/// What a text is to tell by its colour. The colour never says more than the word does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Doubtful,
    Bad,
    Faint,
    Strong,
}

/// A text in a tone. Width and fill apply to the text, not to the colour's codes.
pub(crate) struct Paint<T> {
    tone: Tone,
    text: T,
}

impl Tone {
    pub(crate) const fn paint<T>(self, text: T) -> Paint<T> {
        Paint { tone: self, text }
    }

    const fn style(self) -> Style {
        match self {
            Self::Good => AnsiColor::Green.on_default(),
            Self::Doubtful => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Strong => Style::new().bold(),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Paint<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = self.tone.style();
        write!(f, "{style}")?;
        self.text.fmt(f)?;
        write!(f, "{style:#}")
    }
}
