//! The tables against a naive model, after every step of long random sequences.
//!
//! A failure prints its case; `model.proptest-regressions` keeps its seed, from which it is
//! replayed first the next time.

mod support;

use std::time::{Duration, Instant};

use nacp_queue::{AckPending, Backlog, Caps, Evicted, Refusal};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use support::model::{Naive, Outcome};
use support::{COLLIDING, DENSE, MIXED, Message, NO_SEQUENCE};

const DESTINATIONS: u8 = 5;

fn cases(cases: u32) -> ProptestConfig {
    let regressions = FileFailurePersistence::Direct("tests/model.proptest-regressions");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(regressions)),
        ..ProptestConfig::default()
    }
}

#[derive(Clone, Debug)]
enum Step<const KEYS: u8> {
    Push(Message<KEYS>),
    PutBack(Vec<Message<KEYS>>),
    PutBackDrained(u8),
    Pop(u8),
    Remove(u64),
    Drain(u8),
    DrainPart(u8, usize, usize),
    DrainAll,
    Cap(u8, Option<Caps>),
    Ready(u8, bool),
    NextReady,
    PopReady,
    ShrinkToFit,
}

fn message<const KEYS: u8>() -> impl Strategy<Value = Message<KEYS>> {
    let bytes = prop_oneof![8 => 0..=100_u64, 1 => 101..=400_u64, 1 => Just(u64::MAX)];
    (0..40_u64, 0..DESTINATIONS, bytes, any::<bool>()).prop_map(
        |(key, destination, bytes, droppable)| Message {
            key,
            destination,
            bytes,
            droppable,
        },
    )
}

fn caps() -> impl Strategy<Value = Caps> {
    let count = prop_oneof![4 => 1..=12_usize, 1 => Just(usize::MAX)];
    let bytes = prop_oneof![4 => 1..=400_u64, 1 => Just(u64::MAX)];
    (count, bytes).prop_map(|(count, bytes)| support::caps(count, bytes))
}

fn step<const KEYS: u8>() -> impl Strategy<Value = Step<KEYS>> {
    let destination = || 0..DESTINATIONS;
    prop_oneof![
        30 => message().prop_map(Step::Push),
        6 => vec(message(), 0..8).prop_map(Step::PutBack),
        2 => destination().prop_map(Step::PutBackDrained),
        8 => destination().prop_map(Step::Pop),
        8 => (0..40_u64).prop_map(Step::Remove),
        2 => destination().prop_map(Step::Drain),
        2 => (destination(), 0..4_usize, 0..4_usize)
            .prop_map(|(d, front, back)| Step::DrainPart(d, front, back)),
        1 => Just(Step::DrainAll),
        2 => (destination(), proptest::option::of(caps())).prop_map(|(d, c)| Step::Cap(d, c)),
        4 => (destination(), any::<bool>()).prop_map(|(d, ready)| Step::Ready(d, ready)),
        4 => Just(Step::NextReady),
        8 => Just(Step::PopReady),
        1 => Just(Step::ShrinkToFit),
    ]
}

/// Does a step to both and compares what comes of it.
fn apply<const KEYS: u8>(
    step: Step<KEYS>,
    backlog: &mut Backlog<Message<KEYS>>,
    naive: &mut Naive<KEYS>,
) {
    match step {
        Step::Push(record) => push(record, backlog, naive),
        Step::PutBack(run) => put_back(run, backlog, naive),
        Step::PutBackDrained(d) => {
            let run: Vec<_> = backlog.drain(&d).collect();
            assert_eq!(run, naive.drain(Some(d)));
            put_back(run, backlog, naive);
        }
        Step::Pop(d) => assert_eq!(backlog.pop(&d), naive.pop(d)),
        Step::Remove(key) => assert_eq!(backlog.remove(&key), naive.remove(key)),
        Step::Drain(d) => {
            let drained: Vec<_> = backlog.drain(&d).collect();
            assert_eq!(drained, naive.drain(Some(d)));
        }
        Step::DrainPart(d, front, back) => drain_part(d, front, back, backlog, naive),
        Step::DrainAll => {
            let drained: Vec<_> = backlog.drain_all().collect();
            assert_eq!(drained, naive.drain(None));
        }
        Step::Cap(d, caps) => {
            let evicted: Vec<_> = backlog.set_destination_caps(&d, caps).collect();
            assert_eq!(evicted, naive.set_own_caps(d, caps));
        }
        Step::Ready(d, ready) => {
            backlog.set_ready(&d, ready);
            naive.set_ready(d, ready);
        }
        Step::NextReady => assert_eq!(backlog.next_ready(), naive.next_ready()),
        Step::PopReady => assert_eq!(backlog.pop_ready(), naive.pop_ready()),
        Step::ShrinkToFit => backlog.shrink_to_fit(),
    }
}

fn push<const KEYS: u8>(
    record: Message<KEYS>,
    backlog: &mut Backlog<Message<KEYS>>,
    naive: &mut Naive<KEYS>,
) {
    assert_eq!(backlog.has_room_for(&record), naive.has_room_for(&record));
    let outcome = match backlog.push(record.clone()) {
        Ok(evicted) => Outcome::Evicted(evicted.collect()),
        Err(refused) => {
            assert_eq!(refused.record, record);
            match refused.reason {
                Refusal::Full => Outcome::Full,
                Refusal::Duplicate => Outcome::Duplicate,
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(outcome, naive.push(record));
}

fn put_back<const KEYS: u8>(
    run: Vec<Message<KEYS>>,
    backlog: &mut Backlog<Message<KEYS>>,
    naive: &mut Naive<KEYS>,
) {
    let evicted: Vec<_> = backlog.put_back(run.clone()).collect();
    let [duplicates, mut own, table] = naive.put_back(run);
    let (before_own, rest) = evicted.split_at(duplicates.len());
    let (own_evicted, table_evicted) = rest.split_at(own.len());
    let mut own_evicted = own_evicted.to_vec();
    own_evicted.sort_by_key(|(record, _)| record.destination);
    own.sort_by_key(|(record, _)| record.destination);
    assert_eq!(before_own, duplicates);
    assert_eq!(own_evicted, own);
    assert_eq!(table_evicted, table);
}

/// Takes some from both ends and drops the rest.
fn drain_part<const KEYS: u8>(
    destination: u8,
    front: usize,
    back: usize,
    backlog: &mut Backlog<Message<KEYS>>,
    naive: &mut Naive<KEYS>,
) {
    let all = naive.drain(Some(destination));
    let mut drain = backlog.drain(&destination);
    assert_eq!(drain.len(), all.len());
    let mut expected = all.iter().cloned();
    for _ in 0..front {
        assert_eq!(drain.next(), expected.next());
    }
    for _ in 0..back {
        assert_eq!(drain.next_back(), expected.next_back());
    }
    assert_eq!(drain.len(), expected.len());
}

/// Everything that can be asked.
fn compare<const KEYS: u8>(backlog: &Backlog<Message<KEYS>>, naive: &Naive<KEYS>) {
    assert!(naive.is_within(None));
    assert!(backlog.iter_all().eq(naive.of(None)));
    assert!(
        backlog
            .iter_all()
            .rev()
            .eq(naive.of(None).collect::<Vec<_>>().into_iter().rev())
    );
    assert_eq!(backlog.len(), naive.count(None));
    assert_eq!(u128::from(backlog.bytes()), naive.bytes(None));
    assert_eq!(backlog.is_empty(), naive.records.is_empty());
    let turn = naive
        .rotation
        .front()
        .and_then(|&d| naive.of(Some(d)).next());
    assert_eq!(backlog.peek_ready(), turn);
    for d in 0..DESTINATIONS {
        assert!(naive.is_within(Some(d)));
        assert!(backlog.iter(&d).eq(naive.of(Some(d))));
        assert_eq!(backlog.iter(&d).len(), naive.count(Some(d)));
        assert_eq!(backlog.peek(&d), naive.of(Some(d)).next());
        assert_eq!(backlog.len_of(&d), naive.count(Some(d)));
        assert_eq!(u128::from(backlog.bytes_of(&d)), naive.bytes(Some(d)));
        assert_eq!(backlog.is_ready(&d), naive.ready.contains(&d));
    }
    for key in 0..40 {
        let expected = naive.records.iter().find(|record| record.key == key);
        assert_eq!(backlog.get(&key), expected);
        assert_eq!(backlog.contains(&key), expected.is_some());
    }
}

fn check<const KEYS: u8>(caps: Caps, steps: Vec<Step<KEYS>>) {
    let mut backlog = Backlog::new(caps);
    let mut naive = Naive::new(caps);
    for step in steps {
        apply(step, &mut backlog, &mut naive);
        compare(&backlog, &naive);
    }
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn backlog_is_the_model_with_hashed_keys(
        caps in caps(), steps in vec(step::<NO_SEQUENCE>(), 1..300),
    ) {
        check(caps, steps);
    }

    #[test]
    fn backlog_is_the_model_with_dense_sequence_numbers(
        caps in caps(), steps in vec(step::<DENSE>(), 1..300),
    ) {
        check(caps, steps);
    }

    #[test]
    fn backlog_is_the_model_when_sequence_numbers_collide(
        caps in caps(), steps in vec(step::<COLLIDING>(), 1..300),
    ) {
        check(caps, steps);
    }

    #[test]
    fn backlog_is_the_model_when_only_some_keys_have_numbers(
        caps in caps(), steps in vec(step::<MIXED>(), 1..300),
    ) {
        check(caps, steps);
    }
}

#[derive(Clone, Debug)]
enum PendingStep<const KEYS: u8> {
    Insert(Message<KEYS>, Option<u64>),
    Settle(u64),
    Drain(u8),
    DrainBack(u8),
    Cap(u8, Option<Caps>),
}

fn pending_step<const KEYS: u8>() -> impl Strategy<Value = PendingStep<KEYS>> {
    let destination = || 0..DESTINATIONS;
    prop_oneof![
        12 => (message(), proptest::option::of(0..100_u64))
            .prop_map(|(record, deadline)| PendingStep::Insert(record, deadline)),
        6 => (0..40_u64).prop_map(PendingStep::Settle),
        1 => destination().prop_map(PendingStep::Drain),
        1 => destination().prop_map(PendingStep::DrainBack),
        1 => (destination(), proptest::option::of(caps()))
            .prop_map(|(d, caps)| PendingStep::Cap(d, caps)),
    ]
}

/// In ack-pending nothing is droppable, so the model never sees that something is.
fn kept<const KEYS: u8>(record: &Message<KEYS>) -> Message<KEYS> {
    Message {
        droppable: false,
        ..record.clone()
    }
}

fn apply_pending<const KEYS: u8>(
    step: PendingStep<KEYS>,
    epoch: Instant,
    pending: &mut AckPending<Message<KEYS>>,
    naive: &mut Naive<KEYS>,
    deadlines: &mut [Option<Instant>],
) {
    match step {
        PendingStep::Insert(record, deadline) => {
            let deadline = deadline.map(|seconds| epoch + Duration::from_secs(seconds));
            let expected = naive.push(kept(&record));
            match pending.insert(record.clone(), deadline) {
                Ok(overflow) => {
                    let evicted = overflow
                        .map(|gone| (kept(&gone), Evicted::Oldest))
                        .collect();
                    assert_eq!(Outcome::Evicted(evicted), expected);
                    deadlines[record.key as usize] = deadline;
                }
                Err(refused) => {
                    assert_eq!(refused.record, record);
                    assert_eq!(refused.reason, Refusal::Duplicate);
                    assert_eq!(expected, Outcome::Duplicate);
                }
            }
        }
        PendingStep::Settle(key) => {
            assert_eq!(pending.settle(&key).as_ref().map(kept), naive.remove(key));
        }
        PendingStep::Drain(d) => {
            let drained: Vec<_> = pending.drain(&d).map(|(record, _)| kept(&record)).collect();
            assert_eq!(drained, naive.drain(Some(d)));
        }
        PendingStep::DrainBack(d) => {
            let mut drained: Vec<_> = pending
                .drain(&d)
                .rev()
                .map(|(record, _)| kept(&record))
                .collect();
            drained.reverse();
            assert_eq!(drained, naive.drain(Some(d)));
        }
        PendingStep::Cap(d, caps) => {
            let evicted: Vec<_> = pending
                .set_destination_caps(&d, caps)
                .map(|gone| (kept(&gone), Evicted::Oldest))
                .collect();
            assert_eq!(evicted, naive.set_own_caps(d, caps));
        }
    }
}

fn compare_pending<const KEYS: u8>(
    pending: &AckPending<Message<KEYS>>,
    naive: &Naive<KEYS>,
    deadlines: &[Option<Instant>],
) {
    assert_eq!(pending.len(), naive.count(None));
    assert_eq!(u128::from(pending.bytes()), naive.bytes(None));
    assert!(
        pending
            .iter_all()
            .map(|(record, _)| record.key)
            .eq(naive.of(None).map(|r| r.key))
    );
    for d in 0..DESTINATIONS {
        assert_eq!(pending.len_of(&d), naive.count(Some(d)));
        assert_eq!(u128::from(pending.bytes_of(&d)), naive.bytes(Some(d)));
        let expected = naive
            .of(Some(d))
            .map(|record| (record.key, deadlines[record.key as usize]));
        let found = pending
            .iter(&d)
            .map(|(record, deadline)| (record.key, deadline));
        assert!(found.eq(expected.clone()));
        let oldest = pending
            .oldest(&d)
            .map(|(record, deadline)| (record.key, deadline));
        assert_eq!(oldest, expected.into_iter().next());
    }
    for key in 0..40 {
        assert_eq!(pending.get(&key).is_some(), naive.has_key(key));
        assert_eq!(pending.contains(&key), naive.has_key(key));
    }
}

fn check_pending<const KEYS: u8>(caps: Caps, steps: Vec<PendingStep<KEYS>>) {
    let epoch = now();
    let mut pending = AckPending::new(caps);
    let mut naive = Naive::new(caps);
    let mut deadlines = [None; 40];
    for step in steps {
        apply_pending(step, epoch, &mut pending, &mut naive, &mut deadlines);
        compare_pending(&pending, &naive, &deadlines);
    }
}

#[expect(clippy::disallowed_methods, reason = "std offers no other Instant")]
fn now() -> Instant {
    Instant::now()
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn ack_pending_is_the_model_with_hashed_keys(
        caps in caps(), steps in vec(pending_step::<NO_SEQUENCE>(), 1..300),
    ) {
        check_pending(caps, steps);
    }

    #[test]
    fn ack_pending_is_the_model_when_sequence_numbers_collide(
        caps in caps(), steps in vec(pending_step::<COLLIDING>(), 1..300),
    ) {
        check_pending(caps, steps);
    }

    #[test]
    fn ack_pending_is_the_model_when_only_some_keys_have_numbers(
        caps in caps(), steps in vec(pending_step::<MIXED>(), 1..300),
    ) {
        check_pending(caps, steps);
    }
}
