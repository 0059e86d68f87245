//! Orders: what is put back, what is taken out, and whose turn it is.

mod support;

use std::time::{Duration, Instant};

use nacp_queue::{AckPending, Backlog, Caps};
use support::{B, C, Dice, Message, all_keys, backlog, keys, notify, pending_keys, push, signal};

const D: u8 = 3;

fn pending() -> AckPending<Message> {
    AckPending::new(Caps::NONE)
}

fn taken(records: impl Iterator<Item = Message>) -> Vec<u64> {
    records.map(|record| record.key).collect()
}

#[test]
fn t_06_what_awaits_an_ack_goes_before_what_was_submitted_before_what_is_new() {
    for accepted in [1, 2, 3, 5, 1_024] {
        let (mut backlog, mut submitted, mut unacked) = (backlog(4_096), pending(), pending());
        for key in 1..=accepted {
            let _ = unacked.insert(signal(key), None);
        }
        for key in 1..=3 {
            let _ = submitted.insert(signal(accepted + key), None);
        }
        for key in 4..=5 {
            push(&mut backlog, signal(accepted + key));
        }

        let back = unacked
            .drain(&B)
            .chain(submitted.drain(&B))
            .map(|(record, _)| record);
        assert_eq!(backlog.put_back(back).count(), 0);

        assert!(keys(&backlog, B).into_iter().eq(1..=accepted + 5));
        assert!(all_keys(&backlog).into_iter().eq(1..=accepted + 5));
        assert!(taken(backlog.drain(&B)).into_iter().eq(1..=accepted + 5));
        assert_eq!((backlog.len(), backlog.bytes()), (0, 0));
        assert!(submitted.is_empty() && unacked.is_empty());
    }
}

/// One end of a link: what waits, what the provider holds, what waits for its ACK.
struct Sender {
    backlog: Backlog<Message>,
    submitted: AckPending<Message>,
    unacked: AckPending<Message>,
    settled: Vec<u64>,
    window: usize,
}

impl Sender {
    fn new(window: usize) -> Self {
        Self {
            backlog: Backlog::new(Caps::NONE),
            submitted: pending(),
            unacked: pending(),
            settled: Vec::new(),
            window,
        }
    }

    fn submit(&mut self) {
        while self.submitted.len() < self.window
            && let Some(record) = self.backlog.pop(&B)
        {
            let _ = self.submitted.insert(record, None);
        }
    }

    fn accept(&mut self) -> Option<u64> {
        let key = self.submitted.oldest(&B)?.0.key;
        let record = self.submitted.settle(&key)?;
        let _ = self.unacked.insert(record, None);
        Some(key)
    }

    fn acknowledge(&mut self, key: u64) {
        self.settled
            .extend(self.unacked.settle(&key).map(|record| record.key));
    }

    fn cut(&mut self) {
        let records = self.unacked.drain(&B).chain(self.submitted.drain(&B));
        let evicted = self
            .backlog
            .put_back(records.map(|(record, _)| record))
            .count();
        assert_eq!(evicted, 0);
    }
}

#[test]
fn t_07_a_second_cut_in_the_middle_of_the_replay() {
    let mut sender = Sender::new(10);
    for key in 1..=100 {
        push(&mut sender.backlog, signal(key));
    }
    for key in 1..=40 {
        sender.submit();
        assert_eq!(sender.accept(), Some(key));
    }
    for key in 1..=25 {
        sender.acknowledge(key);
    }
    sender.submit();
    sender.cut();
    for key in 101..=110 {
        push(&mut sender.backlog, signal(key));
    }

    assert!(keys(&sender.backlog, B).into_iter().eq(26..=110));
    assert_eq!(sender.backlog.len(), 85);
}

#[test]
fn t_07_cuts_at_random_points_lose_repeat_and_reorder_nothing() {
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let mut sender = Sender::new(10);
        let mut handled = Vec::new();
        let mut next = 0;
        let mut cuts = 0;
        while sender.settled.len() < 110 {
            match dice.roll(12) {
                0..=3 if next < 110 => {
                    next += 1;
                    push(&mut sender.backlog, signal(next));
                }
                0 if cuts < 5 => {
                    cuts += 1;
                    sender.cut();
                }
                1..=4 => sender.submit(),
                5..=8 => {
                    let key = sender.accept();
                    handled.extend(key.filter(|key| handled.last().is_none_or(|last| last < key)));
                }
                _ => {
                    let oldest = sender.unacked.oldest(&B).map(|(record, _)| record.key);
                    oldest.into_iter().for_each(|key| sender.acknowledge(key));
                }
            }
            assert!(
                sender
                    .backlog
                    .iter(&B)
                    .is_sorted_by_key(|record| record.key),
                "seed {seed}"
            );
        }
        assert!(
            handled.iter().copied().eq(1..=110),
            "seed {seed}: {handled:?}"
        );
        assert!(sender.settled.iter().copied().eq(1..=110), "seed {seed}");
    }
}

#[test]
fn removal_in_the_middle_keeps_every_order() {
    let mut backlog = backlog(100);
    for key in 1..=9 {
        let record = if key % 2 == 0 {
            notify(key)
        } else {
            signal(key)
        };
        push(&mut backlog, record.to(if key % 3 == 0 { C } else { B }));
    }
    assert_eq!(backlog.remove(&4).map(|record| record.key), Some(4));
    assert_eq!(backlog.remove(&3).map(|record| record.key), Some(3));
    assert_eq!(backlog.remove(&4), None);

    assert_eq!(all_keys(&backlog), [1, 2, 5, 6, 7, 8, 9]);
    assert_eq!(keys(&backlog, B), [1, 2, 5, 7, 8]);
    assert_eq!(keys(&backlog, C), [6, 9]);
}

#[test]
fn a_destination_is_drained_from_both_ends() {
    let mut backlog = backlog(100);
    for key in 1..=6 {
        push(
            &mut backlog,
            if key % 2 == 0 {
                notify(key)
            } else {
                signal(key)
            },
        );
    }
    let mut drain = backlog.drain(&B);
    assert_eq!(drain.len(), 6);
    assert_eq!(drain.next().map(|record| record.key), Some(1));
    assert_eq!(drain.next_back().map(|record| record.key), Some(6));
    assert_eq!(taken(drain.by_ref().rev()), [5, 4, 3, 2]);
    assert_eq!(drain.next(), None);
    assert_eq!(drain.next_back(), None);
}

#[test]
fn a_drain_that_is_dropped_takes_out_the_rest() {
    let mut backlog = backlog(100);
    for key in 1..=4 {
        push(&mut backlog, signal(key));
    }
    push(&mut backlog, signal(5).to(C));
    assert_eq!(backlog.drain(&B).next().map(|record| record.key), Some(1));
    assert_eq!(all_keys(&backlog), [5]);
}

#[test]
fn the_records_of_one_destination_move_to_another_in_order() {
    let mut pending = pending();
    for key in 1..=6 {
        let _ = pending.insert(signal(key), None);
    }
    let (moving, staying): (Vec<_>, Vec<_>) = pending
        .drain(&B)
        .partition(|(record, _)| record.key % 2 == 0);
    for (record, deadline) in staying {
        let _ = pending.insert(record, deadline);
    }
    for (record, deadline) in moving {
        let _ = pending.insert(record.to(C), deadline);
    }
    assert_eq!(pending_keys(&pending, B), [1, 3, 5]);
    assert_eq!(pending_keys(&pending, C), [2, 4, 6]);
}

#[expect(clippy::disallowed_methods, reason = "std offers no other Instant")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn deadlines_stay_with_their_records_and_none_is_never() {
    let soon = now() + Duration::from_secs(10);
    let late = soon + Duration::from_secs(10);
    let mut pending = pending();
    let _ = pending.insert(signal(1), Some(soon));
    let _ = pending.insert(signal(2), None);
    let _ = pending.insert(signal(3), Some(late));

    assert_eq!(pending.oldest(&B), Some((&signal(1), Some(soon))));
    assert_eq!(pending.settle(&1), Some(signal(1)));
    assert_eq!(pending.oldest(&B), Some((&signal(2), None)));
    assert_eq!(pending.oldest(&C), None);
    let drained: Vec<_> = pending.drain(&B).collect();
    assert_eq!(drained, [(signal(2), None), (signal(3), Some(late))]);
}

#[test]
fn ready_destinations_take_turns_in_the_order_in_which_they_had_something() {
    let mut backlog = backlog(100);
    for destination in [B, C, D] {
        backlog.set_ready(&destination, true);
    }
    assert_eq!(backlog.next_ready(), None, "nobody has anything");
    for (key, destination) in [(1, C), (2, B), (3, C), (4, D), (5, B), (6, C)] {
        push(&mut backlog, signal(key).to(destination));
    }

    let mut order = Vec::new();
    while let Some(record) = backlog.peek_ready() {
        order.push(record.key);
        assert_eq!(
            backlog.pop_ready().map(|record| record.key),
            order.last().copied()
        );
    }
    assert_eq!(order, [1, 2, 4, 3, 5, 6]);
}

#[test]
fn only_ready_destinations_take_turns() {
    let mut backlog = backlog(100);
    push(&mut backlog, signal(1));
    push(&mut backlog, signal(2).to(C));
    assert_eq!(backlog.pop_ready(), None);

    backlog.set_ready(&C, true);
    backlog.set_ready(&B, true);
    assert_eq!(
        [backlog.next_ready(), backlog.next_ready()],
        [Some(C), Some(B)]
    );

    backlog.set_ready(&C, false);
    assert_eq!(
        [backlog.next_ready(), backlog.next_ready()],
        [Some(B), Some(B)]
    );
    assert!(backlog.is_ready(&B) && !backlog.is_ready(&C));
}

#[test]
fn an_idle_destination_rejoins_at_the_end() {
    let mut backlog = backlog(100);
    for destination in [B, C] {
        backlog.set_ready(&destination, true);
        push(&mut backlog, signal(u64::from(destination)).to(destination));
    }
    assert_eq!(backlog.pop(&B).map(|record| record.key), Some(1));
    push(&mut backlog, signal(3));
    assert_eq!(backlog.pop_ready().map(|record| record.key), Some(2));
    assert_eq!(backlog.pop_ready().map(|record| record.key), Some(3));
}

#[test]
fn turns_survive_a_table_that_shrinks() {
    let mut backlog: Backlog<Message> = Backlog::new(Caps::NONE);
    for destination in [D, B, C] {
        backlog.set_ready(&destination, true);
        push(&mut backlog, signal(u64::from(destination)).to(destination));
    }
    for key in 0..5_000 {
        push(&mut backlog, signal(100 + key).to((10 + key % 200) as u8));
    }
    assert_eq!(backlog.next_ready(), Some(D));
    for key in 0..5_000 {
        assert!(backlog.remove(&(100 + key)).is_some());
    }
    assert!(backlog.capacity() <= 2_048);
    assert_eq!(taken(std::iter::from_fn(|| backlog.pop_ready())), [1, 2, 3]);
}
