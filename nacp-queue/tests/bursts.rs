//! Bursts that make the tables grow and shrink, against a plain `Vec`.

mod support;

use nacp_queue::{Backlog, Caps};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use support::{DENSE, Message, NO_SEQUENCE};

/// What short sequences of single steps never reach.
#[derive(Clone, Debug)]
enum Burst {
    Push(u64),
    Settle(u64),
    PopFrom(u8, u64),
    Drain(u8),
}

fn burst() -> impl Strategy<Value = Burst> {
    prop_oneof![
        3 => (1..3_000_u64).prop_map(Burst::Push),
        3 => (1..3_000_u64).prop_map(Burst::Settle),
        3 => (0..200_u8, 1..2_000_u64).prop_map(|(d, n)| Burst::PopFrom(d, n)),
        1 => (0..200_u8).prop_map(Burst::Drain),
    ]
}

fn check_bursts<const KEYS: u8>(bursts: Vec<Burst>, stride: u64) {
    let mut backlog: Backlog<Message<KEYS>> = Backlog::new(Caps::NONE);
    let mut naive: Vec<Message<KEYS>> = Vec::new();
    let mut next = 0_u64;
    for burst in bursts {
        match burst {
            Burst::Push(n) => {
                for _ in 0..n {
                    next += 1;
                    let record = Message {
                        key: next * stride,
                        destination: (next % 200) as u8,
                        bytes: next % 7,
                        droppable: next.is_multiple_of(3),
                    };
                    naive.push(record.clone());
                    assert_eq!(backlog.push(record).map(Iterator::count), Ok(0));
                }
            }
            Burst::Settle(n) => {
                let n = (n as usize).min(naive.len());
                for record in naive.drain(..n) {
                    assert_eq!(backlog.remove(&record.key), Some(record));
                }
            }
            Burst::PopFrom(first, n) => pop_in_turn(first, n, &mut backlog, &mut naive),
            Burst::Drain(d) => {
                let (expected, left): (Vec<_>, Vec<_>) = naive
                    .into_iter()
                    .partition(|record| record.destination == d);
                naive = left;
                assert!(backlog.drain(&d).eq(expected));
            }
        }
        assert!(backlog.iter_all().eq(&naive));
        assert_eq!(backlog.len(), naive.len());
        assert!(
            naive
                .iter()
                .all(|record| backlog.get(&record.key) == Some(record))
        );
        let room = backlog.len().max(512) * 4;
        assert!(
            backlog.capacity() <= room,
            "{} for {}",
            backlog.capacity(),
            backlog.len()
        );
    }
}

fn pop_in_turn<const KEYS: u8>(
    first: u8,
    n: u64,
    backlog: &mut Backlog<Message<KEYS>>,
    naive: &mut Vec<Message<KEYS>>,
) {
    for turn in 0..n {
        let d = ((u64::from(first) + turn) % 200) as u8;
        let at = naive.iter().position(|record| record.destination == d);
        assert_eq!(backlog.pop(&d), at.map(|at| naive.remove(at)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/bursts.proptest-regressions",
        ))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn bursts_lose_and_reorder_nothing_with_hashed_keys(bursts in vec(burst(), 1..25)) {
        check_bursts::<NO_SEQUENCE>(bursts, 1);
    }

    #[test]
    fn bursts_lose_and_reorder_nothing_with_sequence_numbers(
        bursts in vec(burst(), 1..25), stride in prop_oneof![Just(1), Just(3), Just(4096)],
    ) {
        check_bursts::<DENSE>(bursts, stride);
    }
}
