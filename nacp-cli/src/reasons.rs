//! The words that the protocol gives as reasons, for people: what each means, whether it passes by
//! itself, and what to try. Hints and `explain` read the same table.

mod here;
mod link;
mod traffic;

use serde::Serialize;

/// One reason.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Known {
    /// The word on the wire or in a report.
    pub(crate) word: &'static str,
    /// Where it is met.
    pub(crate) met: Met,
    pub(crate) meaning: &'static str,
    /// When it goes away without anybody doing something.
    pub(crate) heals: &'static str,
    /// What to try.
    pub(crate) advice: &'static str,
}

/// Where a reason is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Met {
    Transport,
    Register,
    Answer,
    Send,
    Report,
    Here,
}

impl Met {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Transport => "a connection that was closed for a fault",
            Self::Register => "a register that failed",
            Self::Answer => "an answer that says no",
            Self::Send => "a send or call that reached nobody",
            Self::Report => "a report of a node",
            Self::Here => "a finding of this program",
        }
    }
}

pub(crate) fn find(word: &str) -> Option<&'static Known> {
    all().find(|known| known.word == word)
}

/// In the order in which they are met.
pub(crate) fn all() -> impl Iterator<Item = &'static Known> {
    [link::LINK, traffic::TRAFFIC, here::HERE]
        .into_iter()
        .flatten()
}

/// The word that was probably meant.
pub(crate) fn nearest(word: &str) -> Option<&'static str> {
    let folded = fold(word);
    let words = all().map(|known| known.word);
    words
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, candidate)| candidate)
}

fn fold(word: &str) -> String {
    let letters = word.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// How many letters must change (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{all, find, nearest};

    #[test]
    fn each_word_is_there_once() {
        let mut words: Vec<_> = all().map(|known| known.word).collect();
        words.sort_unstable();
        let before = words.len();
        words.dedup();
        assert_eq!(words.len(), before);
    }

    #[test]
    fn every_reason_of_the_specification_can_be_explained() {
        let faults = "version-mismatch bad-magic frame-too-small frame-too-large \
            frame-size-mismatch frame-out-of-bounds overlapping-frame reassembly-timeout \
            decode-failed transport-error message-too-large total-size-changed write-stalled \
            handshake-timeout source-faults limit-reached";
        let registers = "response-timeout expect-mismatch multi-gateway transport-closed malformed \
            dual-gateway unauthorized appId-in-use takeover-probe crossed session-lost";
        let sends = "self-addressed no-route send-failed refused evicted peer-gone terminated \
            timeout too-large unroutable-relay poisoned discarded";
        let answers = "no-processor processor-failed processor-rejected unknown-subscription \
            self-exciting not-exposed bad-target-sub-name no-event-processor";
        let reports = "pending-overflow relay-retry has-no-consumer notify-dropped notify-evicted \
            fifo-evicted unknown-type not-registered source-mismatch forwarded dropped \
            multi-gateway-downgraded stream-overflow bound offline";
        for word in [faults, registers, sends, answers, reports]
            .iter()
            .flat_map(|words| words.split_whitespace())
        {
            assert!(find(word).is_some(), "{word}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_finds_the_word() {
        assert_eq!(nearest("appid_in_use"), Some("appId-in-use"));
        assert_eq!(nearest("bad-magick"), Some("bad-magic"));
        assert_eq!(nearest("something else entirely"), None);
    }
}
