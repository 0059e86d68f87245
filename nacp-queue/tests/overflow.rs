//! What happens when a table is full: the overflow rules, one by one.

mod support;

use nacp_queue::{AckPending, Backlog, Caps, Evicted, Refusal};
use support::{B, C, Message, all_keys, backlog, caps, keys, notify, pending_keys, push, signal};

use Evicted::{Droppable, Oldest};

type Evictions = Vec<(u64, Evicted)>;

#[test]
fn an_arriving_droppable_record_is_refused_and_given_back() {
    let mut backlog = backlog(2);
    push(&mut backlog, signal(1));
    push(&mut backlog, notify(2));

    let refused = backlog.push(notify(3)).unwrap_err();

    assert_eq!(refused.record, notify(3));
    assert_eq!(refused.reason, Refusal::Full);
    assert_eq!(refused.to_string(), "no room for a droppable record");
    assert_eq!(all_keys(&backlog), [1, 2], "the table is unchanged");
}

#[test]
fn any_other_record_evicts_the_oldest_droppable_one_first() {
    let mut backlog = backlog(3);
    push(&mut backlog, signal(1));
    push(&mut backlog, notify(2));
    push(&mut backlog, notify(3));

    assert_eq!(push(&mut backlog, signal(4)), Some(vec![(2, Droppable)]));
    assert_eq!(all_keys(&backlog), [1, 3, 4]);
}

#[test]
fn without_droppable_records_the_oldest_other_is_evicted() {
    let mut backlog = backlog(2);
    push(&mut backlog, signal(1));
    push(&mut backlog, signal(2));

    assert_eq!(push(&mut backlog, signal(3)), Some(vec![(1, Oldest)]));
    assert_eq!(all_keys(&backlog), [2, 3]);
}

#[test]
fn both_kinds_go_when_the_droppable_ones_do_not_make_enough_room() {
    let mut backlog = Backlog::new(caps(usize::MAX, 100));
    push(&mut backlog, signal(1).sized(30));
    push(&mut backlog, notify(2).sized(10));
    push(&mut backlog, signal(3).sized(30));
    push(&mut backlog, notify(4).sized(10));

    let evicted = push(&mut backlog, signal(5).sized(60));

    assert_eq!(
        evicted,
        Some(vec![(2, Droppable), (4, Droppable), (1, Oldest)])
    );
    assert_eq!(all_keys(&backlog), [3, 5]);
    assert_eq!(backlog.bytes(), 90);
}

#[test]
fn ack_pending_evicts_the_oldest_whatever_it_is() {
    let mut pending = AckPending::new(caps(2, u64::MAX));
    let _ = pending.insert(signal(1), None);
    let _ = pending.insert(notify(2), None);

    let evicted: Vec<_> = pending.insert(signal(3), None).unwrap().collect();

    assert_eq!(evicted, [signal(1)]);
    assert_eq!(pending_keys(&pending, B), [2, 3]);
}

#[test]
fn t_10_step_1_a_cap_of_one_record() {
    let mut backlog = backlog(1);
    assert_eq!(push(&mut backlog, notify(1)), Some(vec![]));
    assert_eq!(push(&mut backlog, notify(2)), None);
    assert_eq!(push(&mut backlog, signal(11)), Some(vec![(1, Droppable)]));
    assert_eq!(push(&mut backlog, signal(21)), Some(vec![(11, Oldest)]));
    assert_eq!(push(&mut backlog, notify(3)), None);
    assert_eq!(push(&mut backlog, signal(12)), Some(vec![(21, Oldest)]));
    assert_eq!(keys(&backlog, B), [12]);
}

#[test]
fn t_10_step_2_a_cap_of_three_records() {
    let mut backlog = backlog(3);
    let steps: [(Message, Option<Evictions>, &[u64]); 7] = [
        (notify(1), Some(vec![]), &[1]),
        (signal(11), Some(vec![]), &[1, 11]),
        (notify(2), Some(vec![]), &[1, 11, 2]),
        (signal(12), Some(vec![(1, Droppable)]), &[11, 2, 12]),
        (signal(13), Some(vec![(2, Droppable)]), &[11, 12, 13]),
        (signal(14), Some(vec![(11, Oldest)]), &[12, 13, 14]),
        (notify(3), None, &[12, 13, 14]),
    ];
    for (record, evicted, left) in steps {
        assert_eq!(push(&mut backlog, record), evicted);
        assert_eq!(keys(&backlog, B), left);
    }
}

#[test]
fn t_10_step_3_a_cap_on_bytes_evicts_exactly_what_must_go() {
    let mut backlog = Backlog::new(caps(usize::MAX, 10_000));
    for key in 1..=4 {
        push(&mut backlog, notify(key).sized(1_000));
    }
    push(&mut backlog, signal(11).sized(5_000));
    assert_eq!(backlog.bytes(), 9_000);

    let evicted = push(&mut backlog, signal(12).sized(3_000));

    assert_eq!(evicted, Some(vec![(1, Droppable), (2, Droppable)]));
    assert_eq!(backlog.bytes(), 10_000);
    assert_eq!(all_keys(&backlog), [3, 4, 11, 12]);
}

/// Pushes what scenario T-10 pushes in its fourth step.
fn t_10_step_4(backlog: &mut Backlog<Message>) -> Evictions {
    let records = [
        signal(11),
        notify(1).to(C),
        signal(12).to(C),
        signal(13),
        signal(14).to(C),
    ];
    records
        .into_iter()
        .flat_map(|record| push(backlog, record).unwrap_or_default())
        .collect()
}

#[test]
fn t_10_step_4_the_caps_are_those_of_the_whole_table() {
    let mut backlog = backlog(3);
    assert_eq!(t_10_step_4(&mut backlog), [(1, Droppable), (11, Oldest)]);
    assert_eq!(all_keys(&backlog), [12, 13, 14]);
    assert_eq!(keys(&backlog, B), [13]);
    assert_eq!(keys(&backlog, C), [12, 14]);
}

#[test]
fn t_10_step_4_with_caps_of_a_destination_these_are_kept_as_well() {
    let mut backlog = backlog(3);
    assert_eq!(
        backlog
            .set_destination_caps(&C, Some(caps(1, u64::MAX)))
            .count(),
        0
    );

    assert_eq!(
        t_10_step_4(&mut backlog),
        [(1, Droppable), (12, Oldest)],
        "only records for C make room for C"
    );
    assert_eq!(keys(&backlog, B), [11, 13]);
    assert_eq!(keys(&backlog, C), [14]);
}

#[test]
fn t_10_step_5_a_million_records_leave_the_newest_in_order() {
    let mut backlog = backlog(1_024);
    let mut evicted = 0_u64;
    for key in 0..1_000_000 {
        for (gone, why) in push(&mut backlog, signal(key)).unwrap() {
            assert_eq!((gone, why), (evicted, Oldest));
            evicted += 1;
        }
        assert!(backlog.len() <= 1_024);
    }
    assert_eq!(evicted, 998_976);
    assert!(keys(&backlog, B).into_iter().eq(998_976..1_000_000));
    assert_eq!(
        backlog.capacity(),
        1_025,
        "no memory beyond the caps and what arrives"
    );
}

#[test]
fn a_record_larger_than_the_cap_is_kept_when_it_is_alone() {
    let mut backlog = Backlog::new(caps(10, 100));
    push(&mut backlog, signal(1).sized(50));
    push(&mut backlog, notify(2).sized(50));

    let evicted = push(&mut backlog, signal(3).sized(500));

    assert_eq!(evicted, Some(vec![(2, Droppable), (1, Oldest)]));
    assert_eq!((backlog.len(), backlog.bytes()), (1, 500));
}

#[test]
fn a_record_larger_than_the_cap_goes_for_the_next_one() {
    let mut backlog = Backlog::new(caps(10, 100));
    push(&mut backlog, signal(1).sized(500));
    assert_eq!(
        push(&mut backlog, signal(2).sized(0)),
        Some(vec![(1, Oldest)])
    );
    assert_eq!((backlog.len(), backlog.bytes()), (1, 0));
}

#[test]
fn nothing_droppable_fits_beside_a_record_larger_than_the_cap() {
    let mut backlog = Backlog::new(caps(10, 100));
    push(&mut backlog, signal(1).sized(500));
    assert!(!backlog.has_room_for(&notify(2).sized(0)));
    assert!(!backlog.room(&B).fits(0));
    assert_eq!(push(&mut backlog, notify(2).sized(0)), None);
}

#[test]
fn a_droppable_record_larger_than_the_cap_is_refused_even_by_an_empty_table() {
    let mut backlog = Backlog::new(caps(10, 100));
    assert!(!backlog.has_room_for(&notify(1).sized(101)));
    assert_eq!(push(&mut backlog, notify(1).sized(101)), None);
    assert_eq!(push(&mut backlog, notify(1).sized(100)), Some(vec![]));
}

#[test]
fn ack_pending_keeps_one_record_larger_than_its_cap() {
    let mut pending = AckPending::new(caps(10, 100));
    let _ = pending.insert(signal(1).sized(60), None);

    let evicted: Vec<_> = pending
        .insert(signal(2).sized(500), None)
        .unwrap()
        .collect();
    assert_eq!(evicted, [signal(1).sized(60)]);
    assert_eq!((pending.len(), pending.bytes()), (1, 500));

    let evicted: Vec<_> = pending.insert(signal(3).sized(1), None).unwrap().collect();
    assert_eq!(evicted, [signal(2).sized(500)]);
}

#[test]
fn a_cap_of_one_byte_holds_one_record_of_any_size() {
    let mut backlog = Backlog::new(caps(usize::MAX, 1));
    assert_eq!(push(&mut backlog, signal(1).sized(7)), Some(vec![]));
    assert_eq!(
        push(&mut backlog, signal(2).sized(8)),
        Some(vec![(1, Oldest)])
    );
    assert_eq!(
        push(&mut backlog, signal(3).sized(1)),
        Some(vec![(2, Oldest)])
    );
    assert_eq!(
        push(&mut backlog, signal(4).sized(0)),
        Some(vec![]),
        "both fit in one byte"
    );
    assert_eq!(all_keys(&backlog), [3, 4]);
}

#[test]
fn putting_back_into_a_full_table_evicts_droppable_records_of_the_whole_table_first() {
    let mut backlog = backlog(3);
    for record in [notify(4), signal(5), notify(6)] {
        push(&mut backlog, record);
    }

    let evicted: Vec<_> = backlog
        .put_back([signal(1), notify(2), signal(3)])
        .map(|(r, why)| (r.key, why))
        .collect();

    assert_eq!(evicted, [(2, Droppable), (4, Droppable), (6, Droppable)]);
    assert_eq!(all_keys(&backlog), [1, 3, 5]);
}

#[test]
fn putting_back_evicts_the_oldest_even_of_what_is_put_back() {
    let mut backlog = backlog(3);
    for key in 4..=6 {
        push(&mut backlog, signal(key));
    }

    let evicted: Vec<_> = backlog
        .put_back([signal(1), signal(2)])
        .map(|(r, _)| r.key)
        .collect();

    assert_eq!(evicted, [1, 2], "they are nearest the head");
    assert_eq!(all_keys(&backlog), [4, 5, 6]);
}

#[test]
fn putting_back_a_key_that_is_there_returns_the_record_as_a_duplicate() {
    let mut backlog = backlog(10);
    push(&mut backlog, signal(2).sized(20));

    let back = [
        signal(1),
        signal(2).sized(99),
        signal(3),
        signal(3).sized(99),
    ];
    let evicted: Vec<_> = backlog.put_back(back).collect();

    assert_eq!(
        evicted,
        [
            (signal(2).sized(99), Evicted::Duplicate),
            (signal(3), Evicted::Duplicate)
        ],
    );
    assert_eq!(all_keys(&backlog), [1, 3, 2]);
    assert_eq!(backlog.bytes(), 1 + 99 + 20);
}

#[test]
fn a_taken_key_is_refused_by_both_tables() {
    let mut backlog = backlog(1);
    push(&mut backlog, signal(1));
    let refused = backlog.push(signal(1).to(C)).unwrap_err();
    assert_eq!(
        (refused.record, refused.reason),
        (signal(1).to(C), Refusal::Duplicate)
    );
    assert_eq!(all_keys(&backlog), [1], "a duplicate evicts nothing");

    let mut pending = AckPending::new(caps(1, 1));
    let _ = pending.insert(signal(1), None);
    let refused = pending.insert(signal(1), None).unwrap_err();
    assert_eq!(
        (refused.record, refused.reason),
        (signal(1), Refusal::Duplicate)
    );
    assert_eq!(pending.len(), 1);
}

#[test]
fn caps_of_a_destination_evict_only_its_own_records() {
    let mut backlog = backlog(100);
    for key in 1..=3 {
        push(&mut backlog, signal(key));
        push(&mut backlog, notify(10 + key).to(C));
    }

    let evicted: Vec<_> = backlog
        .set_destination_caps(&B, Some(caps(2, u64::MAX)))
        .map(|(record, why)| (record.key, why))
        .collect();

    assert_eq!(evicted, [(1, Oldest)]);
    assert_eq!(push(&mut backlog, signal(4)), Some(vec![(2, Oldest)]));
    assert_eq!(
        push(&mut backlog, notify(5)),
        None,
        "there is room in the table, not for B"
    );
    assert_eq!(keys(&backlog, C), [11, 12, 13]);
    assert_eq!((backlog.room(&B).count, backlog.room(&C).count), (0, 95));
}

#[test]
fn caps_of_a_destination_outlive_its_records_until_they_are_lifted() {
    let mut backlog = backlog(100);
    let _ = backlog.set_destination_caps(&B, Some(caps(1, u64::MAX)));
    push(&mut backlog, signal(1));
    assert_eq!(backlog.pop(&B), Some(signal(1)));
    push(&mut backlog, signal(2));
    assert_eq!(push(&mut backlog, signal(3)), Some(vec![(2, Oldest)]));

    let _ = backlog.set_destination_caps(&B, None);
    assert_eq!(push(&mut backlog, signal(4)), Some(vec![]));
}

#[test]
fn one_record_larger_than_the_caps_of_its_destination_is_kept_beside_others() {
    let mut backlog = backlog(100);
    let _ = backlog.set_destination_caps(&B, Some(caps(10, 100)));
    push(&mut backlog, signal(10).to(C));
    assert_eq!(push(&mut backlog, signal(1).sized(500)), Some(vec![]));
    assert_eq!(push(&mut backlog, signal(2)), Some(vec![(1, Oldest)]));
    assert_eq!(all_keys(&backlog), [10, 2]);
}

#[test]
fn putting_back_keeps_the_caps_of_every_destination() {
    let mut backlog = Backlog::new(Caps::NONE);
    for destination in [B, C] {
        let _ = backlog.set_destination_caps(&destination, Some(caps(2, u64::MAX)));
    }
    let run = [
        signal(1),
        signal(11).to(C),
        signal(2),
        signal(12).to(C),
        signal(3),
        notify(13).to(C),
    ];

    let mut evicted: Vec<_> = backlog.put_back(run).map(|(r, why)| (r.key, why)).collect();

    evicted.sort_by_key(|&(key, _)| key);
    assert_eq!(evicted, [(1, Oldest), (13, Droppable)]);
    assert_eq!(keys(&backlog, B), [2, 3]);
    assert_eq!(keys(&backlog, C), [11, 12]);
}

#[test]
fn evictions_that_nobody_looks_at_happen_all_the_same() {
    let mut backlog = backlog(2);
    for key in 1..=5 {
        drop(backlog.push(signal(key)));
    }
    assert_eq!(all_keys(&backlog), [4, 5]);

    drop(backlog.put_back([signal(1), signal(2), signal(3)]));
    assert_eq!(all_keys(&backlog), [4, 5]);

    let mut pending = AckPending::new(caps(2, u64::MAX));
    for key in 1..=5 {
        drop(pending.insert(signal(key), None));
    }
    assert_eq!(pending_keys(&pending, B), [4, 5]);
}

#[test]
fn evictions_that_are_leaked_happen_at_the_next_insertion() {
    let mut backlog = backlog(2);
    for key in 1..=4 {
        std::mem::forget(backlog.push(signal(key)));
    }
    let evicted = push(&mut backlog, signal(5));
    assert_eq!(evicted, Some(vec![(1, Oldest), (2, Oldest), (3, Oldest)]));
    assert_eq!(all_keys(&backlog), [4, 5]);
}

#[test]
fn duplicates_that_are_leaked_come_out_the_next_time() {
    let mut backlog = backlog(10);
    push(&mut backlog, signal(1));
    std::mem::forget(backlog.put_back([signal(1).sized(2), signal(1).sized(3)]));

    let evicted: Vec<_> = backlog.put_back([]).collect();

    let duplicate = |bytes| (signal(1).sized(bytes), Evicted::Duplicate);
    assert_eq!(evicted, [duplicate(2), duplicate(3)]);
    assert_eq!((backlog.len(), backlog.bytes()), (1, 1));
}

#[test]
fn evictions_that_were_leaked_for_a_destination_that_is_gone_do_no_harm() {
    let mut backlog = backlog(100);
    push(&mut backlog, signal(1));
    push(&mut backlog, signal(2));
    std::mem::forget(backlog.set_destination_caps(&B, Some(caps(1, u64::MAX))));
    assert_eq!(backlog.drain(&B).count(), 2);
    std::mem::forget(backlog.set_destination_caps(&B, None));
    backlog.shrink_to_fit();

    assert_eq!(push(&mut backlog, signal(3).to(C)), Some(vec![]));
    assert_eq!(push(&mut backlog, signal(4)), Some(vec![]));
    assert_eq!(all_keys(&backlog), [3, 4]);
}

#[test]
fn room_is_the_lesser_of_both_caps() {
    let mut backlog = Backlog::new(caps(10, 1_000));
    let _ = backlog.set_destination_caps(&B, Some(caps(3, u64::MAX)));
    push(&mut backlog, signal(1).sized(100));
    push(&mut backlog, signal(2).sized(100).to(C));

    let room = backlog.room(&B);
    assert_eq!((room.count, room.bytes), (2, 800));
    assert!(room.fits(800));
    assert!(!room.fits(801));
    let room = backlog.room(&C);
    assert_eq!((room.count, room.bytes), (8, 800));

    let mut pending = AckPending::new(caps(2, 100));
    let _ = pending.insert(signal(1).sized(30), None);
    let room = pending.room(&C);
    assert_eq!((room.count, room.bytes), (1, 70));
}
