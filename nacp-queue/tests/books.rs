//! Counts and sums of bytes, and settings at their extremes.

mod support;

use nacp_queue::{AckPending, Backlog, Caps, CapsError, Evicted, Received, ReceivedError};
use support::{B, C, Dice, Message, all_keys, caps, notify, push, signal};

const KIB: u64 = 1_024;

struct Tables {
    backlog: Backlog<Message>,
    submitted: AckPending<Message>,
    unacked: AckPending<Message>,
    next: u64,
}

impl Tables {
    /// A table with its totals, and the sums over its destinations.
    fn readings(&self) -> [[(usize, u64); 2]; 3] {
        let of_backlog = [B, C].map(|d| (self.backlog.len_of(&d), self.backlog.bytes_of(&d)));
        let of_pending =
            |table: &AckPending<Message>| [B, C].map(|d| (table.len_of(&d), table.bytes_of(&d)));
        let sum = |own: [(usize, u64); 2]| (own[0].0 + own[1].0, own[0].1 + own[1].1);
        [
            [(self.backlog.len(), self.backlog.bytes()), sum(of_backlog)],
            [
                (self.submitted.len(), self.submitted.bytes()),
                sum(of_pending(&self.submitted)),
            ],
            [
                (self.unacked.len(), self.unacked.bytes()),
                sum(of_pending(&self.unacked)),
            ],
        ]
    }

    fn send(&mut self, record: Message) {
        self.next += 1;
        let record = Message {
            key: self.next,
            ..record
        }
        .sized(KIB);
        push(&mut self.backlog, record);
    }

    fn submit(&mut self, destination: u8) {
        while self.submitted.len() < 4
            && let Some(record) = self.backlog.pop(&destination)
        {
            assert_eq!(
                self.submitted.insert(record, None).map(Iterator::count),
                Ok(0)
            );
        }
    }

    fn accept_all(&mut self, destination: u8) {
        for (record, _) in self.submitted.drain(&destination) {
            let _ = self.unacked.insert(record, None);
        }
    }

    fn cut(&mut self, destination: u8) {
        let back = self
            .unacked
            .drain(&destination)
            .chain(self.submitted.drain(&destination));
        self.backlog
            .put_back(back.map(|(record, _)| record))
            .for_each(drop);
    }

    fn acknowledge(&mut self, key: u64) {
        if self.unacked.settle(&key).is_none() {
            let _ = self.submitted.settle(&key);
        }
    }

    /// One of the many ways out of a table.
    fn detour(&mut self, dice: &mut Dice) {
        let destination = if dice.roll(2) == 0 { B } else { C };
        match dice.roll(9) {
            0 => (0..20).for_each(|_| self.send(signal(0))),
            1 => (0..20).for_each(|_| {
                self.send(signal(0));
                self.submit(B);
                self.accept_all(B);
            }),
            2 => self.backlog.drain(&destination).for_each(drop),
            3 => drop(self.unacked.drain(&destination)),
            4 => {
                self.acknowledge(self.next);
                self.acknowledge(self.next);
            }
            5 => {
                self.submit(destination);
                let submitted = self.submitted.iter(&destination).next();
                let key = submitted.map(|(record, _)| record.key);
                key.into_iter().for_each(|key| self.acknowledge(key));
            }
            6 => drop(self.backlog.remove(&self.next)),
            7 => (0..20).for_each(|_| self.send(notify(0).to(C))),
            _ => self.cut(destination),
        }
    }

    fn finish(&mut self) {
        for destination in [B, C] {
            self.cut(destination);
            self.backlog.drain(&destination).for_each(drop);
        }
    }
}

#[test]
fn t_08_the_books_do_not_drift() {
    let mut dice = Dice(8);
    let mut tables = Tables {
        backlog: Backlog::new(caps(10, 10 * KIB)),
        submitted: AckPending::new(Caps::NONE),
        unacked: AckPending::new(caps(10, 10 * KIB)),
        next: 0,
    };
    for cycle in 0..1_000 {
        for _ in 0..5 {
            tables.send(signal(0));
            tables.submit(B);
        }
        tables.accept_all(B);
        if cycle % 10 < 9 {
            tables.detour(&mut dice);
        }
        for [total, sum] in tables.readings() {
            assert_eq!(total, sum, "cycle {cycle}");
            assert!(total.0 <= 10 && total.1 <= 10 * KIB, "cycle {cycle}");
        }
        tables.finish();
        assert_eq!(tables.readings(), [[(0, 0); 2]; 3], "cycle {cycle}");
    }

    for key in 0..10 {
        let evicted = push(&mut tables.backlog, signal(1_000_000 + key).sized(KIB));
        assert_eq!(evicted, Some(vec![]), "record {key} still fits");
    }
    assert_eq!(tables.backlog.bytes(), 10_240);
    let evicted = push(&mut tables.backlog, signal(2_000_000).sized(KIB));
    assert_eq!(evicted, Some(vec![(1_000_000, Evicted::Oldest)]));
}

#[test]
fn t_09_zero_caps_are_refused_by_name() {
    assert_eq!(Caps::new(0, 1), Err(CapsError::ZeroCount));
    assert_eq!(Caps::new(1, 0), Err(CapsError::ZeroBytes));
    assert_eq!(
        CapsError::ZeroCount.to_string(),
        "queue_max_count must be at least 1"
    );
    assert_eq!(
        CapsError::ZeroBytes.to_string(),
        "queue_max_bytes must be at least 1"
    );

    let error = Received::<u64, u8>::new(0, 1).unwrap_err();
    assert_eq!(error, ReceivedError::ZeroWindow);
    assert_eq!(error.to_string(), "dedup_window must be at least 1");
    let error = Received::<u64, u8>::new(1, 0).unwrap_err();
    assert_eq!(error.to_string(), "max_sources must be at least 1");
}

#[test]
fn t_09_caps_of_exactly_one_hold_one() {
    let mut backlog = Backlog::new(caps(1, 1));
    for key in 0..100 {
        push(&mut backlog, signal(key));
        assert_eq!(all_keys(&backlog), [key]);
    }
    let mut pending = AckPending::new(caps(1, 1));
    for key in 0..100 {
        let _ = pending.insert(signal(key), None);
        assert_eq!((pending.len(), pending.bytes()), (1, 1));
    }
    let mut received = Received::new(1, 1).unwrap();
    for key in 0..100_u64 {
        assert!(received.insert(&B, key).is_new());
        assert!(!received.insert(&B, key).is_new());
        assert_eq!((received.len_of(&B), received.sources()), (1, 1));
    }
}

#[test]
fn t_09_the_largest_numbers_mean_no_cap() {
    let mut backlog = Backlog::new(caps(usize::MAX, u64::MAX));
    for key in 0..10_000 {
        assert_eq!(push(&mut backlog, notify(key).sized(1 << 40)), Some(vec![]));
    }
    assert_eq!(backlog.bytes(), 10_000 << 40);
    assert!(backlog.room(&B).fits(1 << 40));

    let mut received = Received::new(usize::MAX, usize::MAX).unwrap();
    for key in 0..10_000_u64 {
        assert!(received.insert(&key, key).is_new());
        assert!(received.insert(&0, key + 1).is_new());
    }
    assert_eq!(received.forgotten_of(&0), 0);
}

#[test]
fn a_sum_of_bytes_that_would_wrap_evicts_instead() {
    let mut backlog = Backlog::new(Caps::NONE);
    assert_eq!(push(&mut backlog, signal(1).sized(u64::MAX)), Some(vec![]));
    assert_eq!(backlog.bytes(), u64::MAX);
    assert_eq!(push(&mut backlog, notify(2)), None);
    assert_eq!(
        push(&mut backlog, notify(2).sized(0)),
        Some(vec![]),
        "nothing is added"
    );
    let evicted = push(&mut backlog, signal(3).sized(u64::MAX));
    assert_eq!(
        evicted,
        Some(vec![(2, Evicted::Droppable), (1, Evicted::Oldest)])
    );
    assert_eq!(backlog.bytes(), u64::MAX);

    let back = [4, 5, 6].map(|key| signal(key).sized(u64::MAX));
    let evicted: Vec<_> = backlog
        .put_back(back)
        .map(|(record, _)| record.key)
        .collect();
    assert_eq!(evicted, [4, 5, 6]);
    assert_eq!(backlog.pop(&B).map(|record| record.key), Some(3));
    assert_eq!(
        (backlog.len(), backlog.bytes(), backlog.bytes_of(&B)),
        (0, 0, 0)
    );
}

#[test]
fn destinations_are_forgotten_with_their_last_record() {
    let mut backlog: Backlog<Message> = Backlog::new(Caps::NONE);
    for round in 0..1_000 {
        let destination = (round % 256) as u8;
        push(&mut backlog, signal(round).to(destination));
        assert_eq!(backlog.len_of(&destination), 1);
        assert_eq!(
            backlog.pop(&destination).map(|record| record.key),
            Some(round)
        );
        assert_eq!(backlog.len_of(&destination), 0);
        assert_eq!(backlog.iter(&destination).count(), 0);
    }
    let debug = format!("{backlog:?}");
    assert!(debug.starts_with("Backlog { len: 0, bytes: 0"), "{debug}");
}

#[test]
fn tables_can_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<Backlog<Message>>();
    check::<AckPending<Message>>();
    check::<Received<u64, u8>>();
}
