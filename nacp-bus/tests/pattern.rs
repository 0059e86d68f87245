//! Which names a pattern matches, and which patterns it covers.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nacp_bus::{
    EventBus, Matcher, Pattern, PatternError, Segment, escape_segment, unescape_segment,
};

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

/// Pattern, name, whether they match: lines 1 to 6 of T-19.
const EDGES: [(&str, &str, bool); 28] = [
    ("a:*:c", "a:b:c", true),
    ("a:*:c", "a::c", true),
    ("a:*:c", "a:c", false),
    ("a:*:c", "a:b:b:c", false),
    ("a:*:c", "a:b:c:", false),
    ("a:*:c", ":a:b:c", false),
    ("*", "a", true),
    ("*", "", true),
    ("*", "a:b", false),
    ("*", ":", false),
    ("*:*", ":", true),
    ("*:*", "a:", true),
    ("*:*", ":b", true),
    ("*:*", "a:b", true),
    ("*:*", "a:b:c", false),
    ("a:*", "a", false),
    ("a:*", "a:", true),
    ("a:*", "a:b", true),
    ("a:*", "ab:c", false),
    ("", "", true),
    ("", "a", false),
    ("a:b*", "a:b*", true),
    ("a:b*", "a:bc", false),
    ("**", "a", false),
    ("**", "**", true),
    ("a.c:*", "abc:x", false),
    ("a.c:*", "a.c:x", true),
    (":", ":", true),
];

#[test]
fn t19_a_pattern_matches_segment_by_segment() {
    for (text, name, expected) in EDGES {
        assert_eq!(
            pattern(text).matches(name),
            expected,
            "{text:?} against {name:?}"
        );
    }
}

#[test]
fn t19_the_trie_agrees_on_every_line() {
    for (text, name, expected) in EDGES {
        let mut matcher = Matcher::new();
        matcher.insert(&pattern(text), ());
        let mut hits = 0;
        matcher.for_each_match(name, |_, ()| hits += 1);
        assert_eq!(hits, usize::from(expected), "{text:?} against {name:?}");
        assert_eq!(
            matcher.has_match(name),
            expected,
            "{text:?} against {name:?}"
        );
    }
}

#[test]
fn t19_the_trie_agrees_with_all_lines_in_one_table() {
    let mut matcher = Matcher::new();
    for (index, (text, ..)) in EDGES.iter().enumerate() {
        matcher.insert(&pattern(text), index);
    }
    for (_, name, _) in EDGES {
        let expected: Vec<usize> = (0..EDGES.len())
            .filter(|&index| pattern(EDGES[index].0).matches(name))
            .collect();
        let mut hits = Vec::new();
        matcher.for_each_match(name, |_, &index| hits.push(index));
        assert_eq!(hits, expected, "{name:?}");
    }
}

#[test]
fn t19_the_bus_agrees_on_every_line() {
    for (text, name, expected) in EDGES {
        let bus = EventBus::new();
        bus.listen(&pattern(text), |_| {});
        assert_eq!(
            bus.emit(name, &()).called(),
            usize::from(expected),
            "{text:?} {name:?}"
        );
        assert_eq!(
            bus.has_listener(name),
            expected,
            "{text:?} against {name:?}"
        );
    }
}

#[test]
fn t19_a_star_in_a_name_is_a_literal_segment() {
    let bus = EventBus::new();
    let counts = ["a:*:c", "a:b:c", "*:*:*"].map(|text| {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        bus.listen(&pattern(text), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        count
    });
    bus.emit("a:*:c", &());
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1, 0, 1]);
}

#[test]
fn t19_a_pattern_of_1024_bytes_is_the_longest() {
    let longest = "x".repeat(1024);
    assert!(pattern(&longest).matches(&longest));
    assert_eq!(
        Pattern::parse(&"x".repeat(1025)),
        Err(PatternError::TooLong {
            bytes: 1025,
            limit: 1024
        })
    );
}

#[test]
fn t19_512_colons_are_513_empty_segments() {
    let colons = ":".repeat(512);
    assert_eq!(pattern(&colons).segments().count(), 513);
    let starred = ["*"; 512].join(":");
    let mut matcher = Matcher::new();
    matcher.insert(&pattern(&colons), "colons");
    matcher.insert(&pattern(&starred), "starred");
    for (name, expected) in [(colons, "colons"), (":".repeat(511), "starred")] {
        let mut hits = Vec::new();
        matcher.for_each_match(&name, |_, &value| hits.push(value));
        assert_eq!(hits, [expected]);
    }
}

#[test]
fn the_limit_counts_bytes_and_can_be_set() {
    assert_eq!(
        Pattern::parse_within("ä:*", 3),
        Err(PatternError::TooLong { bytes: 4, limit: 3 })
    );
    assert!(Pattern::parse_within("ä:*", 4).unwrap().matches("ä:b"));
    assert_eq!(
        Pattern::parse_within("ab", 1).unwrap_err().to_string(),
        "the pattern has 2 bytes, more than the limit of 1"
    );
}

#[test]
fn names_are_compared_byte_by_byte() {
    assert!(
        !pattern("caf\u{e9}:*").matches("cafe\u{301}:x"),
        "two spellings are two names"
    );
    assert!(!pattern("A").matches("a"));
    assert!(!pattern(" a").matches("a"));
    assert!(
        !pattern("a\0b:*").matches("a:x"),
        "a zero byte ends nothing"
    );
    assert!(pattern("a\0b:*").matches("a\0b:x"));
}

#[test]
fn a_pattern_shows_the_text_it_was_parsed_from() {
    for text in ["", ":", "a:*", "**:b", "ä::*"] {
        let parsed: Pattern = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(parsed.as_str(), text);
        assert_eq!(parsed, pattern(text));
    }
    assert_eq!(
        format!("{:?}", pattern("a\n:*")),
        r#"Pattern("a\n:*")"#,
        "controls are escaped"
    );
}

#[test]
fn a_pattern_without_a_star_segment_is_literal() {
    for (text, expected) in [
        ("", true),
        ("a:b", true),
        ("a:b*", true),
        ("**", true),
        ("*", false),
        ("a:*", false),
    ] {
        assert_eq!(pattern(text).is_literal(), expected, "{text:?}");
    }
}

#[test]
fn segments_tell_a_star_from_a_literal() {
    let parsed = pattern("a:*::**");
    let segments: Vec<_> = parsed.segments().collect();
    let expected = [
        Segment::Literal("a"),
        Segment::Any,
        Segment::Literal(""),
        Segment::Literal("**"),
    ];
    assert_eq!(segments, expected);
}

/// All texts of one to `most` segments out of `alphabet`.
fn all_texts(alphabet: &[&str], most: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut longest: Vec<String> = alphabet.iter().map(|&segment| segment.into()).collect();
    for _ in 1..most {
        let longer = longest
            .iter()
            .flat_map(|text| {
                alphabet
                    .iter()
                    .map(move |segment| format!("{text}:{segment}"))
            })
            .collect();
        all.append(&mut longest);
        longest = longer;
    }
    all.append(&mut longest);
    all
}

const PATTERN_SEGMENTS: [&str; 4] = ["", "a", "b", "*"];
/// With one segment that no pattern spells out, which stands for all that a star matches besides.
const NAME_SEGMENTS: [&str; 5] = ["", "a", "b", "*", "other"];

#[test]
fn covers_is_exactly_matching_whatever_the_other_matches() {
    let names = all_texts(&NAME_SEGMENTS, 3);
    let patterns = all_texts(&PATTERN_SEGMENTS, 3);
    assert_eq!((patterns.len(), names.len()), (84, 155));
    for wide in patterns.iter().map(|text| pattern(text)) {
        for narrow in patterns.iter().map(|text| pattern(text)) {
            let expected = names
                .iter()
                .all(|name| !narrow.matches(name) || wide.matches(name));
            assert_eq!(wide.covers(&narrow), expected, "{wide} over {narrow}");
        }
    }
}

#[test]
fn covers_prefix_of_is_exactly_beginning_like_whatever_the_other_matches() {
    let names = all_texts(&NAME_SEGMENTS, 3);
    let patterns = all_texts(&PATTERN_SEGMENTS, 3);
    for prefix in patterns.iter().map(|text| pattern(text)) {
        for other in patterns.iter().map(|text| pattern(text)) {
            let begins = |name: &String| prefix.matches_prefix_of(name);
            let expected = names
                .iter()
                .all(|name| !other.matches(name) || begins(name));
            assert_eq!(
                prefix.covers_prefix_of(&other),
                expected,
                "{prefix} before {other}"
            );
        }
    }
}

#[test]
fn prefixes_cover_a_pattern_together_only_if_one_of_them_does() {
    let names = all_texts(&NAME_SEGMENTS, 2);
    let patterns: Vec<_> = all_texts(&PATTERN_SEGMENTS, 2)
        .iter()
        .map(|text| pattern(text))
        .collect();
    for one in &patterns {
        for two in &patterns {
            for other in &patterns {
                let begins =
                    |name: &String| one.matches_prefix_of(name) || two.matches_prefix_of(name);
                let together = names
                    .iter()
                    .all(|name| !other.matches(name) || begins(name));
                let alone = one.covers_prefix_of(other) || two.covers_prefix_of(other);
                assert_eq!(together, alone, "{one} and {two} before {other}");
            }
        }
    }
}

#[test]
fn t05_any_text_becomes_one_literal_segment_and_back() {
    for text in [
        "",
        ":",
        "*",
        "**",
        "a:b",
        "q1:process",
        "%",
        "%3A",
        "%253A",
        "ä:%",
        "a\0b",
    ] {
        let segment = escape_segment(text);
        assert_eq!(segment.split(':').count(), 1, "{text:?}");
        assert_ne!(segment, "*");
        assert_eq!(unescape_segment(&segment), text);
    }
}

#[test]
fn t05_an_escaped_star_does_not_hear_the_others() {
    let heard = pattern(&format!("run:{}:signal", escape_segment("*")));
    assert!(heard.is_literal());
    assert!(heard.matches("run:%2A:signal"));
    assert!(!heard.matches("run:q1:signal"));
}

#[test]
fn what_was_never_escaped_is_left_alone() {
    for text in ["plain", "50%", "%7E", "%3a", "%", "%2", "%ä", "ä%"] {
        assert_eq!(unescape_segment(text), text);
    }
}
