//! The received window: what it remembers, and what it forgets when.

mod support;

use std::collections::VecDeque;

use nacp_queue::{Forgotten, Heard, Received};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// The key and the source that were forgotten.
type Gone = (Option<u64>, Option<u8>);

fn forgotten(heard: Heard<u64, u8>) -> Gone {
    match heard {
        Heard::New(Forgotten { key, source, .. }) => (key, source),
        Heard::Duplicate(key) => panic!("{key} is a duplicate"),
    }
}

#[test]
fn a_repeat_is_told_as_long_as_its_key_is_among_the_last_of_its_source() {
    let mut received = Received::new(3, 8).unwrap();
    for key in 1..=3 {
        assert_eq!(forgotten(received.insert(&1, key)), (None, None));
    }
    assert_eq!(received.insert(&1, 1), Heard::Duplicate(1));
    assert_eq!(
        forgotten(received.insert(&1, 4)),
        (Some(1), None),
        "a repeat renews nothing"
    );
    assert_eq!(received.insert(&1, 2), Heard::Duplicate(2));
    assert_eq!(forgotten(received.insert(&1, 1)), (Some(2), None));
    assert_eq!(received.len_of(&1), 3);
}

#[test]
fn sources_do_not_push_out_each_others_keys() {
    let mut received = Received::new(2, 8).unwrap();
    assert!(received.insert(&1, 7).is_new());
    for key in 0..100 {
        assert!(received.insert(&2, key).is_new());
    }
    assert!(received.contains(&1, &7));
    assert!(!received.contains(&2, &7));
    assert!(!received.contains(&3, &7));
}

#[test]
fn a_new_key_is_surely_new_while_nothing_was_forgotten() {
    let mut received = Received::new(2, 8).unwrap();
    assert_eq!(received.forgotten_of(&1), 0);
    for key in 0..2 {
        assert!(received.insert(&1, key).is_new());
    }
    assert_eq!(received.forgotten_of(&1), 0);
    for key in 2..5 {
        assert!(received.insert(&1, key).is_new());
    }
    assert_eq!(received.forgotten_of(&1), 3);
    assert_eq!(received.forget_source(&1), 2);
    assert_eq!(received.forgotten_of(&1), 0);
}

#[test]
fn the_source_heard_least_recently_goes_first() {
    let mut received = Received::new(4, 2).unwrap();
    assert!(received.insert(&1, 1).is_new());
    assert!(received.insert(&2, 1).is_new());
    assert_eq!(
        received.insert(&1, 1),
        Heard::Duplicate(1),
        "a repeat is heard, too"
    );

    assert_eq!(forgotten(received.insert(&3, 1)), (None, Some(2)));
    assert_eq!(received.sources(), 2);
    assert!(received.contains(&1, &1));
    assert_eq!(
        forgotten(received.insert(&2, 1)),
        (None, Some(1)),
        "2 is new again"
    );
}

#[test]
fn pinned_sources_stay_and_take_no_place_of_others() {
    let mut received = Received::new(4, 2).unwrap();
    received.pin(&1);
    assert!(received.insert(&1, 1).is_new());
    assert!(received.insert(&2, 1).is_new());
    received.pin(&2);
    received.pin(&2);
    for source in 3..50 {
        assert!(received.insert(&source, 1).is_new());
    }
    assert_eq!(received.sources(), 4);
    assert!(received.contains(&1, &1) && received.contains(&2, &1));

    assert_eq!(received.unpin(&1), Some(48), "1 counts as heard now");
    assert_eq!(received.unpin(&1), None);
    assert_eq!(received.unpin(&99), None);
    assert!(received.contains(&1, &1));
}

#[test]
fn a_forgotten_source_is_new_and_unpinned() {
    let mut received = Received::new(4, 1).unwrap();
    received.pin(&1);
    assert!(received.insert(&1, 1).is_new());
    assert_eq!(received.forget_source(&1), 1);
    assert_eq!(received.forget_source(&1), 0);
    assert_eq!(received.sources(), 0);

    assert!(received.insert(&1, 1).is_new());
    assert_eq!(forgotten(received.insert(&2, 1)), (None, Some(1)));
}

#[test]
fn many_sources_that_come_and_go_leave_the_others_as_they_are() {
    let mut received = Received::new(8, usize::MAX).unwrap();
    for source in 0..2_000_u64 {
        assert!(received.insert(&source, source).is_new());
    }
    for source in 0..1_990 {
        assert_eq!(received.forget_source(&source), 1);
    }
    assert_eq!(received.sources(), 10);
    for source in 1_990..2_000 {
        assert_eq!(received.insert(&source, source), Heard::Duplicate(source));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u64),
    Pin(u8),
    Unpin(u8),
    Forget(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let source = || 0..6_u8;
    prop_oneof![
        20 => (source(), 0..20_u64).prop_map(|(source, key)| Step::Insert(source, key)),
        2 => source().prop_map(Step::Pin),
        2 => source().prop_map(Step::Unpin),
        1 => source().prop_map(Step::Forget),
    ]
}

/// Sources from the least recently heard on, each with its keys from the oldest on.
#[derive(Debug, Default)]
struct Naive {
    sources: Vec<(u8, bool, VecDeque<u64>)>,
}

impl Naive {
    fn position(&self, source: u8) -> Option<usize> {
        self.sources.iter().position(|(id, ..)| *id == source)
    }

    /// Moves the source to the end.
    fn hear(&mut self, source: u8) -> &mut (u8, bool, VecDeque<u64>) {
        let heard = match self.position(source) {
            Some(at) => self.sources.remove(at),
            None => (source, false, VecDeque::new()),
        };
        self.sources.push(heard);
        let last = self.sources.len() - 1;
        &mut self.sources[last]
    }

    fn evict(&mut self, max_sources: usize) -> Option<u8> {
        let unpinned = self.sources.iter().filter(|(_, pinned, _)| !pinned).count();
        if unpinned <= max_sources {
            return None;
        }
        let at = self.sources.iter().position(|(_, pinned, _)| !pinned)?;
        Some(self.sources.remove(at).0)
    }

    /// What was forgotten for a new key, or nothing if it is a duplicate.
    fn insert(&mut self, source: u8, key: u64, window: usize, most: usize) -> Option<Gone> {
        self.hear(source);
        let evicted = self.evict(most);
        let keys = &mut self.hear(source).2;
        if keys.contains(&key) {
            return None;
        }
        keys.push_back(key);
        let oldest = (keys.len() > window).then(|| keys.pop_front()).flatten();
        Some((oldest, evicted))
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/received.proptest-regressions",
        ))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn received_is_the_model(
        window in 1..6_usize, most in 1..4_usize, steps in vec(step(), 1..400),
    ) {
        let mut received = Received::new(window, most).unwrap();
        let mut naive = Naive::default();
        for step in steps {
            match step {
                Step::Insert(source, key) => {
                    match (received.insert(&source, key), naive.insert(source, key, window, most)) {
                        (Heard::Duplicate(there), None) => prop_assert_eq!(there, key),
                        (heard, Some(gone)) => prop_assert_eq!(forgotten(heard), gone),
                        (heard, None) => prop_assert!(false, "{heard:?} for a duplicate"),
                    }
                }
                Step::Pin(source) => {
                    received.pin(&source);
                    match naive.position(source) {
                        Some(at) => naive.sources[at].1 = true,
                        None => naive.hear(source).1 = true,
                    }
                }
                Step::Unpin(source) => {
                    let mut evicted = None;
                    if naive.position(source).is_some_and(|at| naive.sources[at].1) {
                        naive.hear(source).1 = false;
                        evicted = naive.evict(most);
                    }
                    prop_assert_eq!(received.unpin(&source), evicted);
                }
                Step::Forget(source) => {
                    let keys = naive.position(source).map(|at| naive.sources.remove(at).2.len());
                    prop_assert_eq!(received.forget_source(&source), keys.unwrap_or(0));
                }
            }
            prop_assert_eq!(received.sources(), naive.sources.len());
            for source in 0..6 {
                let at = naive.position(source);
                let keys = at.map(|at| naive.sources[at].2.clone()).unwrap_or_default();
                prop_assert_eq!(received.len_of(&source), keys.len());
                for key in 0..20 {
                    prop_assert_eq!(received.contains(&source, &key), keys.contains(&key));
                }
            }
        }
    }
}
