//! The table of who holds which subscription, alone and on top of the bus.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use nacp_bus::{EventBus, InsertError, Pattern, Subscriptions};

/// A bus whose hits are noted as (owner, subscription), like notifies sent to the owner.
#[derive(Default)]
struct Provider {
    bus: EventBus<u32>,
    table: Subscriptions<String, String>,
    sent: Arc<Mutex<Vec<(String, String)>>>,
}

impl Provider {
    fn subscribe(&mut self, owner: &str, id: &str, pattern: &str) {
        let (sent, note) = (Arc::clone(&self.sent), (owner.to_owned(), id.to_owned()));
        let listener = self
            .bus
            .listen(&Pattern::parse(pattern).unwrap(), move |_| {
                sent.lock().unwrap().push(note.clone());
            });
        self.table
            .insert(owner.into(), id.into(), listener)
            .unwrap();
    }

    /// Whether there was one to end.
    fn unsubscribe(&mut self, owner: &str, id: &str) -> bool {
        self.table
            .remove(owner, id)
            .is_some_and(|listener| self.bus.off(listener))
    }

    fn drop_owner(&mut self, owner: &str) -> usize {
        let listeners = self.table.remove_owner(owner).map(|(_, listener)| listener);
        self.bus.off_all(listeners)
    }

    /// Emits and says who was sent what, as `owner id`.
    fn emit(&self, name: &str) -> Vec<String> {
        self.bus.emit(name, &0);
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        sent.into_iter()
            .map(|(owner, id)| format!("{owner} {id}"))
            .collect()
    }
}

#[test]
fn t20_two_subscriptions_for_one_name_are_two() {
    let mut b = Provider::default();
    for (owner, id, pattern) in [
        ("A", "s1", "x:*"),
        ("A", "s2", "x:*"),
        ("A", "s3", "x:y"),
        ("C", "t1", "x:*"),
    ] {
        b.subscribe(owner, id, pattern);
    }
    assert_eq!(b.emit("x:y"), ["A s1", "A s2", "A s3", "C t1"]);

    assert!(b.unsubscribe("A", "s1"));
    assert_eq!(b.emit("x:y"), ["A s2", "A s3", "C t1"]);

    assert!(!b.unsubscribe("A", "s1"), "ended already");
    assert!(!b.unsubscribe("C", "s2"), "not C's");
    assert_eq!(b.emit("x:y"), ["A s2", "A s3", "C t1"]);

    assert!(b.unsubscribe("A", "s2"));
    assert!(b.unsubscribe("A", "s3"));
    assert_eq!(b.table.count_of("A"), 0);
    assert_eq!(b.emit("x:y"), ["C t1"]);

    b.subscribe("A", "s4", "x:*");
    assert_eq!(b.emit("x:y"), ["C t1", "A s4"]);
}

#[test]
fn t21_after_any_number_of_lost_sessions_there_are_three_entries() {
    let mut b = Provider::default();
    b.subscribe("C", "t1", "x:*");
    let subscribe_three = |b: &mut Provider| {
        for id in ["s1", "s2", "s3"] {
            b.subscribe("A", id, "x:*");
        }
    };
    subscribe_three(&mut b);
    for _ in 0..10 {
        assert_eq!(b.drop_owner("A"), 3);
        subscribe_three(&mut b);
        assert_eq!((b.table.count_of("A"), b.bus.len()), (3, 4));
        assert_eq!(b.emit("x:y"), ["C t1", "A s1", "A s2", "A s3"]);
    }
    assert_eq!(b.drop_owner("A"), 3);
    assert_eq!(b.drop_owner("A"), 0);
    assert_eq!(b.emit("x:y"), ["C t1"]);
}

#[test]
fn t05_a_star_as_id_is_an_id() {
    let mut b = Provider::default();
    b.subscribe("A", "*", "x");
    b.subscribe("A", "s2", "x");
    assert!(b.unsubscribe("A", "*"));
    assert!(!b.unsubscribe("A", "*"));
    assert_eq!(b.emit("x"), ["A s2"]);
}

#[test]
fn the_same_id_of_two_owners_is_two_entries() {
    let mut table = Subscriptions::new();
    table.insert("A", 1, 'a').unwrap();
    table.insert("B", 1, 'b').unwrap();
    assert_eq!(
        (table.get(&"A", &1), table.get(&"B", &1)),
        (Some(&'a'), Some(&'b'))
    );
    assert_eq!(table.remove(&"A", &1), Some('a'));
    assert_eq!(table.get(&"B", &1), Some(&'b'));
}

#[test]
fn an_id_in_use_is_refused_and_the_value_comes_back() {
    let mut table = Subscriptions::new();
    table.insert("A", 1, "old").unwrap();
    let refused = table.insert("A", 1, "new").unwrap_err();
    assert_eq!(refused, InsertError::IdInUse("new"));
    assert_eq!(refused.into_value(), "new");
    assert_eq!((table.get(&"A", &1), table.len()), (Some(&"old"), 1));
}

#[test]
fn the_limit_holds_for_each_owner_alone() {
    let limit = NonZeroUsize::new(2).unwrap();
    let mut table = Subscriptions::with_limit(limit);
    for id in 1..=2 {
        table.insert("A", id, id).unwrap();
    }
    let refused = table.insert("A", 3, 3).unwrap_err();
    assert_eq!(refused, InsertError::LimitReached { value: 3, limit });
    assert_eq!(
        table.insert("A", 2, 9),
        Err(InsertError::IdInUse(9)),
        "the nearer reason"
    );
    table.insert("B", 3, 3).unwrap();
    table.remove(&"A", &1);
    table.insert("A", 3, 3).unwrap();
    assert_eq!(
        (table.count_of(&"A"), table.count_of(&"B"), table.len()),
        (2, 1, 3)
    );
}

#[test]
fn an_unknown_owner_or_id_is_none() {
    let mut table: Subscriptions<&str, u32, ()> = Subscriptions::new();
    assert_eq!(table.remove(&"A", &1), None);
    table.insert("A", 1, ()).unwrap();
    assert_eq!(table.remove(&"A", &2), None);
    assert_eq!(table.get(&"B", &1), None);
    assert_eq!(table.len(), 1);
}

#[test]
fn the_counts_follow_and_end_at_zero() {
    let mut table = Subscriptions::new();
    for (owner, id) in [("A", 1), ("A", 2), ("B", 1), ("C", 1), ("C", 2)] {
        table.insert(owner, id, (owner, id)).unwrap();
    }
    assert_eq!((table.len(), table.owner_count()), (5, 3));
    table.remove(&"B", &1);
    assert_eq!((table.len(), table.owner_count()), (4, 2));
    let mut gone: Vec<_> = table.remove_owner(&"A").collect();
    gone.sort_unstable();
    assert_eq!(gone, [(1, ("A", 1)), (2, ("A", 2))]);
    assert_eq!((table.len(), table.owner_count()), (2, 1));
    drop(table.drain());
    assert!(table.is_empty(), "drained also if nobody looks");
    assert_eq!(table.owner_count(), 0);
}
