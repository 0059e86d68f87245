//! The matcher answers like a list that is searched from front to back.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use nacp_bus::{Key, Matcher, Pattern};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};

/// The design the matcher stands in for, with a matching of its own.
#[derive(Default)]
struct Linear {
    entries: Vec<(Key, String, u32)>,
}

impl Linear {
    fn hits(&self, name: &str) -> Vec<(Key, u32)> {
        let name: Vec<&str> = name.split(':').collect();
        let is_hit = |pattern: &str| {
            let pattern: Vec<&str> = pattern.split(':').collect();
            pattern.len() == name.len()
                && (0..name.len()).all(|i| pattern[i] == "*" || pattern[i] == name[i])
        };
        self.entries
            .iter()
            .filter(|entry| is_hit(&entry.1))
            .map(|e| (e.0, e.2))
            .collect()
    }

    fn node_count(&self) -> usize {
        let (starred, literal): (Vec<&str>, Vec<&str>) = self
            .entries
            .iter()
            .map(|entry| entry.1.as_str())
            .partition(|text| text.split(':').any(|segment| segment == "*"));
        let beginnings = starred.iter().flat_map(|text| {
            let ends = text
                .match_indices(':')
                .map(|(end, _)| end)
                .chain([text.len()]);
            ends.map(|end| &text[..end])
        });
        let beginnings: BTreeSet<&str> = beginnings.collect();
        let literal: BTreeSet<&str> = literal.into_iter().collect();
        beginnings.len() + literal.len()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(String),
    /// The entry at this index, modulo all that were ever inserted: often one that is gone.
    Remove(usize),
    Drain,
    Search(String),
}

fn text(alphabet: &'static [&'static str]) -> impl Strategy<Value = String> {
    vec(select(alphabet), 1..5).prop_map(|segments| segments.join(":"))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => text(&["", "a", "b", "*", "*", "**"]).prop_map(Step::Insert),
        6 => any::<usize>().prop_map(Step::Remove),
        1 => Just(Step::Drain),
        20 => text(&["", "a", "b", "*", "c"]).prop_map(Step::Search),
    ]
}

struct Both {
    matcher: Matcher<u32>,
    linear: Linear,
    given: Vec<Key>,
}

impl Both {
    fn apply(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Insert(text) => self.insert(text),
            Step::Remove(index) => self.remove(index)?,
            Step::Drain => {
                let expected: Vec<u32> = self.linear.entries.drain(..).map(|e| e.2).collect();
                prop_assert_eq!(self.matcher.drain(), expected);
            }
            Step::Search(name) => {
                let mut hits = Vec::new();
                self.matcher
                    .for_each_match(&name, |key, &value| hits.push((key, value)));
                prop_assert_eq!(self.matcher.has_match(&name), !hits.is_empty());
                prop_assert_eq!(hits, self.linear.hits(&name));
            }
        }
        prop_assert_eq!(self.matcher.len(), self.linear.entries.len());
        prop_assert_eq!(self.matcher.node_count(), self.linear.node_count());
        Ok(())
    }

    fn insert(&mut self, text: String) {
        let value = u32::try_from(self.given.len()).unwrap();
        let key = self.matcher.insert(&Pattern::parse(&text).unwrap(), value);
        self.given.push(key);
        self.linear.entries.push((key, text, value));
    }

    fn remove(&mut self, index: usize) -> Result<(), TestCaseError> {
        if self.given.is_empty() {
            return Ok(());
        }
        let key = self.given[index % self.given.len()];
        let position = self.linear.entries.iter().position(|entry| entry.0 == key);
        let expected = position.map(|position| self.linear.entries.remove(position).2);
        prop_assert_eq!(self.matcher.get(key).copied(), expected);
        prop_assert_eq!(self.matcher.remove(key), expected);
        prop_assert_eq!(self.matcher.get(key), None);
        Ok(())
    }
}

/// Set it to the seed that a failure names, and the run is the same.
const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";

#[test]
fn the_matcher_answers_like_a_linear_search() {
    let seed = std::env::var(SEED_VARIABLE).map_or_else(
        |_| RandomState::new().hash_one(0),
        |seed| seed.parse().unwrap(),
    );
    let config = ProptestConfig {
        cases: 512,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..ProptestConfig::default()
    };
    let checked = TestRunner::new(config).run(&vec(step(), 1..120), |steps| {
        let (matcher, linear) = (Matcher::new(), Linear::default());
        let mut both = Both {
            matcher,
            linear,
            given: Vec::new(),
        };
        for step in steps {
            both.apply(step)?;
        }
        for key in both.given {
            both.matcher.remove(key);
        }
        prop_assert_eq!((both.matcher.len(), both.matcher.node_count()), (0, 0));
        Ok(())
    });
    if let Err(error) = checked {
        panic!("{SEED_VARIABLE}={seed}: {error}");
    }
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn hits(matcher: &Matcher<u32>, name: &str) -> Vec<u32> {
    let mut hits = Vec::new();
    matcher.for_each_match(name, |_, &value| hits.push(value));
    hits
}

#[test]
fn hits_come_in_the_order_of_insertion_whatever_their_patterns() {
    let patterns = ["a:b", "*:b", "a:*", "*:*"].map(pattern);
    let mut matcher = Matcher::new();
    for value in 0..100 {
        matcher.insert(&patterns[value as usize % 4], value);
    }
    assert_eq!(hits(&matcher, "a:b"), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_new_entry_in_an_old_place_comes_last() {
    let mut matcher = Matcher::new();
    let first = matcher.insert(&pattern("a"), 1);
    matcher.insert(&pattern("a"), 2);
    matcher.remove(first);
    let third = matcher.insert(&pattern("a"), 3);
    assert_eq!(hits(&matcher, "a"), [2, 3]);
    assert!(third > first);
    assert_eq!(
        matcher.remove(first),
        None,
        "an old key does not reach the new entry"
    );
    assert_eq!(hits(&matcher, "a"), [2, 3]);
}

#[test]
fn a_drained_matcher_does_not_give_its_keys_again() {
    let mut matcher = Matcher::new();
    let before = matcher.insert(&pattern("a:*"), 1);
    assert_eq!(matcher.drain(), [1]);
    assert_eq!((matcher.len(), matcher.node_count()), (0, 0));
    let after = matcher.insert(&pattern("a:*"), 2);
    assert!(after > before);
    assert_eq!(matcher.remove(before), None);
    assert_eq!(matcher.get(after), Some(&2));
}

#[test]
fn a_value_can_be_changed_in_place() {
    let mut matcher = Matcher::new();
    let key = matcher.insert(&pattern("a"), 1);
    *matcher.get_mut(key).unwrap() = 2;
    assert_eq!(hits(&matcher, "a"), [2]);
    matcher.remove(key);
    assert_eq!(matcher.get_mut(key), None);
}

#[test]
fn entries_leave_a_long_list_from_any_place() {
    let mut matcher = Matcher::new();
    let keys: Vec<Key> = (0..5)
        .map(|value| matcher.insert(&pattern("a"), value))
        .collect();
    for (index, left) in [(2, vec![0, 1, 3, 4]), (0, vec![1, 3, 4]), (4, vec![1, 3])] {
        matcher.remove(keys[index]);
        assert_eq!(hits(&matcher, "a"), left);
    }
}
