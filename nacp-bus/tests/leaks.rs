//! Nothing is left when the listeners are gone.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use nacp_bus::{EventBus, ListenerId, Matcher, Pattern, Subscriptions};

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

#[test]
fn a_thousand_cycles_leave_no_callback_and_no_entry() {
    let bus = EventBus::<u32>::new();
    let mut table = Subscriptions::<u32, u32>::new();
    let held = Arc::new(());
    for cycle in 0..1_000 {
        for id in 0..4 {
            let held = Arc::clone(&held);
            let text = format!("cycle:{cycle}:{}", ["*", "a", "*:*", "b:*"][id as usize]);
            let listener = bus.listen(&pattern(&text), move |_| _ = &held);
            table.insert(cycle, id, listener).unwrap();
        }
        let once = Arc::clone(&held);
        bus.listen_once(&pattern("cycle:*:a"), move |_| drop(once));
        let stream = bus.stream(&pattern("*:*:*"), NonZeroUsize::MIN);
        assert_eq!(bus.emit(&format!("cycle:{cycle}:a"), &cycle).called(), 4);
        drop(stream);
        let listeners: Vec<ListenerId> = table.remove_owner(&cycle).map(|(_, id)| id).collect();
        assert_eq!(bus.off_all(listeners), 4);
        assert_eq!(
            (bus.len(), table.len(), Arc::strong_count(&held)),
            (0, 0, 1)
        );
    }
}

#[test]
fn nodes_go_with_the_patterns_that_need_them() {
    let mut matcher = Matcher::new();
    let texts: Vec<String> = (0..1_000)
        .flat_map(|i| {
            [
                format!("a:{i}:*:b"),
                format!("*:{}:c", i % 10),
                format!("x:{i}"),
            ]
        })
        .collect();
    let keys: Vec<_> = texts
        .iter()
        .map(|text| matcher.insert(&pattern(text), ()))
        .collect();
    // `a` and three nodes for each i; `*` and two for each of ten; one for each `x:…`.
    assert_eq!(matcher.node_count(), (1 + 3_000) + (1 + 20) + 1_000);
    for (index, key) in keys.iter().enumerate() {
        if index % 3 != 1 {
            matcher.remove(*key);
        }
    }
    assert_eq!(matcher.node_count(), 1 + 20);
    for key in keys {
        matcher.remove(key);
    }
    assert_eq!((matcher.len(), matcher.node_count()), (0, 0));
}

#[test]
fn the_last_handle_takes_the_callbacks_with_it() {
    let held = Arc::new(());
    let bus = EventBus::<u32>::new();
    let other = bus.clone();
    let kept = Arc::clone(&held);
    bus.listen(&pattern("a"), move |_| _ = &kept);
    drop(bus);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(other);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn clear_breaks_the_cycle_of_a_callback_that_holds_its_bus() {
    let held = Arc::new(());
    let bus = EventBus::<u32>::new();
    let (kept, own_bus) = (Arc::clone(&held), bus.clone());
    bus.listen(&pattern("a"), move |_| _ = (&kept, &own_bus));
    assert_eq!(bus.clear(), 1);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn what_was_emitted_is_not_kept_by_a_dropped_stream() {
    let bus = EventBus::new();
    let payload = Arc::new(());
    let stream = bus.stream(&pattern("a"), NonZeroUsize::MIN);
    bus.emit("a", &payload);
    bus.emit("a", &payload);
    assert_eq!(Arc::strong_count(&payload), 2, "one item is held");
    drop(stream);
    assert_eq!(Arc::strong_count(&payload), 1);
}
