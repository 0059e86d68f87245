//! Delivery: who is called, in which order, and what a callback may do.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use nacp_bus::{EventBus, ListenerId, Pattern};

type Bus = EventBus<u32>;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

/// What listeners have written down, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn write(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn listen(&self, bus: &Bus, text: &str, label: &'static str) -> ListenerId {
        let log = self.clone();
        bus.listen(&pattern(text), move |_| log.write(label))
    }
}

#[test]
fn a_callback_gets_the_name_and_the_payload() {
    let bus = Bus::new();
    let log = Log::default();
    let written = log.clone();
    bus.listen(&pattern("a:*"), move |event| {
        written.write(format!("{} {}", event.name(), event.payload()));
    });
    assert_eq!(bus.emit("a:b", &7).called(), 1);
    assert_eq!(log.take(), ["a:b 7"]);
}

#[test]
fn delivery_order_is_registration_order_across_patterns() {
    let bus = Bus::new();
    let log = Log::default();
    for (text, label) in [
        ("*:*", "1"),
        ("a:b", "2"),
        ("a:*", "3"),
        ("a:b", "4"),
        ("b:*", "no"),
        ("*:b", "5"),
    ] {
        log.listen(&bus, text, label);
    }
    assert_eq!(bus.emit("a:b", &0).called(), 5);
    assert_eq!(log.take(), ["1", "2", "3", "4", "5"]);
}

#[test]
fn off_twice_is_harmless_and_takes_nobody_else_out() {
    let bus = Bus::new();
    let log = Log::default();
    let first = log.listen(&bus, "a", "first");
    assert!(bus.off(first));
    assert!(!bus.off(first));
    log.listen(&bus, "a", "second");
    assert!(!bus.off(first), "the id is not given again");
    bus.emit("a", &0);
    assert_eq!(log.take(), ["second"]);
}

#[test]
fn t20_two_listeners_for_one_name_are_two() {
    let bus = Bus::new();
    let log = Log::default();
    let s1 = log.listen(&bus, "x:*", "s1");
    log.listen(&bus, "x:*", "s2");
    log.listen(&bus, "x:y", "s3");
    bus.emit("x:y", &0);
    assert_eq!(log.take(), ["s1", "s2", "s3"]);
    bus.off(s1);
    bus.emit("x:y", &0);
    assert_eq!(log.take(), ["s2", "s3"]);
}

#[test]
fn off_all_counts_those_that_were_there() {
    let bus = Bus::new();
    let log = Log::default();
    let ids = ["a", "a:*", "a"].map(|text| log.listen(&bus, text, "gone"));
    log.listen(&bus, "a", "left");
    bus.off(ids[0]);
    assert_eq!(bus.off_all(ids), 2);
    bus.emit("a", &0);
    assert_eq!(log.take(), ["left"]);
}

#[test]
fn clear_takes_everybody_out_and_the_bus_goes_on() {
    let bus = Bus::new();
    let log = Log::default();
    let old = log.listen(&bus, "a", "old");
    assert_eq!(bus.clear(), 1);
    assert_eq!(bus.emit("a", &0).called(), 0);
    log.listen(&bus, "a", "new");
    assert!(!bus.off(old));
    bus.emit("a", &0);
    assert_eq!(log.take(), ["new"]);
}

#[test]
fn a_listener_of_one_event_hears_one_event() {
    let bus = Bus::new();
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&heard);
    bus.listen_once(&pattern("a:*"), move |event| {
        counted.fetch_add(*event.payload() as usize, Ordering::Relaxed);
    });
    assert_eq!(bus.emit("b:c", &100).called(), 0);
    assert_eq!(bus.emit("a:c", &1).called(), 1);
    assert!(bus.is_empty());
    assert_eq!(bus.emit("a:c", &10).called(), 0);
    assert_eq!(heard.load(Ordering::Relaxed), 1);
}

#[test]
fn a_listener_of_one_event_can_be_taken_out_before() {
    let bus = Bus::new();
    let id = bus.listen_once(&pattern("a"), |_| panic!("was taken out"));
    assert!(bus.off(id));
    assert_eq!(bus.emit("a", &0).called(), 0);
}

#[test]
fn a_listener_of_one_event_may_emit_that_event() {
    let bus = Bus::new();
    let emitter = bus.clone();
    bus.listen_once(&pattern("a"), move |event| {
        assert_eq!(emitter.emit("a", event.payload()).called(), 0);
    });
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (1, 0));
}

#[test]
fn t25_a_callback_may_listen_take_out_and_emit() {
    let bus = Bus::new();
    let log = Log::default();
    let (callback_bus, callback_log) = (bus.clone(), log.clone());
    bus.listen(&pattern("a"), move |event| {
        callback_log.write(format!("in {}", event.payload()));
        if *event.payload() == 0 {
            let added = callback_log.listen(&callback_bus, "a", "added");
            assert_eq!(callback_bus.emit("a", &1).called(), 2);
            assert!(callback_bus.off(added));
        }
        callback_log.write(format!("out {}", event.payload()));
    });
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (1, 0));
    assert_eq!(log.take(), ["in 0", "in 1", "out 1", "added", "out 0"]);
    assert_eq!(bus.len(), 1);
}

#[test]
fn a_listener_taken_out_before_its_turn_is_not_called() {
    let bus = Bus::new();
    let log = Log::default();
    let victims = Arc::new(OnceLock::<[ListenerId; 2]>::new());
    let (callback_bus, doomed) = (bus.clone(), Arc::clone(&victims));
    bus.listen(&pattern("a"), move |_| {
        for &id in doomed.get().unwrap() {
            callback_bus.off(id);
        }
    });
    let plain = log.listen(&bus, "*", "victim");
    let once = bus.listen_once(&pattern("a"), |_| panic!("was taken out"));
    victims.set([plain, once]).unwrap();
    log.listen(&bus, "a", "bystander");
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (2, 0));
    assert_eq!(log.take(), ["bystander"]);
}

#[test]
fn clear_during_an_emit_ends_that_emit() {
    let bus = Bus::new();
    let log = Log::default();
    let callback_bus = bus.clone();
    bus.listen(&pattern("a"), move |_| {
        callback_bus.clear();
    });
    log.listen(&bus, "a", "late");
    assert_eq!(bus.emit("a", &0).called(), 1);
    assert!(log.take().is_empty());
}

#[test]
fn a_callback_may_take_itself_out() {
    let bus = Bus::new();
    let own_id = Arc::new(OnceLock::new());
    let (callback_bus, callback_id) = (bus.clone(), Arc::clone(&own_id));
    let id = bus.listen(&pattern("a"), move |_| {
        assert!(callback_bus.off(*callback_id.get().unwrap()));
    });
    own_id.set(id).unwrap();
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (1, 0));
    assert_eq!(bus.emit("a", &0).called(), 0);
}

#[test]
fn a_listener_added_during_an_emit_hears_only_later_events() {
    let bus = Bus::new();
    let log = Log::default();
    let (callback_bus, callback_log) = (bus.clone(), log.clone());
    bus.listen_once(&pattern("a"), move |_| {
        callback_log.listen(&callback_bus, "a", "added");
    });
    assert_eq!(bus.emit("a", &0).called(), 1);
    assert!(log.take().is_empty());
    assert_eq!(bus.emit("a", &0).called(), 1);
    assert_eq!(log.take(), ["added"]);
}

/// Comes back to the bus when it is dropped.
struct EmitsOnDrop(Bus);

impl Drop for EmitsOnDrop {
    fn drop(&mut self) {
        self.0.emit("dropped", &0);
        self.0.listen(&pattern("left behind"), |_| {});
    }
}

#[test]
fn what_a_callback_holds_may_use_the_bus_while_it_is_dropped() {
    let bus = Bus::new();
    let log = Log::default();
    log.listen(&bus, "dropped", "dropped");
    let hold = || {
        let held = EmitsOnDrop(bus.clone());
        bus.listen(&pattern("a"), move |_| _ = &held)
    };
    assert!(bus.off(hold()));
    assert_eq!(bus.off_all([hold()]), 1);
    assert_eq!(log.take(), ["dropped", "dropped"]);
    hold();
    bus.clear();
    assert!(
        log.take().is_empty(),
        "the other listener was cleared with it"
    );
    assert_eq!(bus.len(), 1);
}

#[test]
fn a_payload_is_made_only_if_someone_listens() {
    let bus = Bus::new();
    let log = Log::default();
    assert_eq!(bus.emit_with("a", || panic!("nobody listens")).called(), 0);
    let written = log.clone();
    bus.listen(&pattern("a"), move |event| {
        written.write(event.payload().to_string())
    });
    assert_eq!(bus.emit_with("a", || 7).called(), 1);
    assert_eq!(log.take(), ["7"]);
}

#[test]
fn interest_follows_the_listeners() {
    let bus = Bus::new();
    let interest = bus.interest("a:b");
    assert_eq!(interest.name(), "a:b");
    assert!(!interest.exists());
    let elsewhere = bus.listen(&pattern("c"), |_| {});
    assert!(!interest.exists());
    let here = bus.listen(&pattern("a:*"), |_| {});
    assert!(interest.exists());
    assert_eq!(interest.emit_with(|| 1).called(), 1);
    bus.off(elsewhere);
    assert!(interest.exists());
    bus.off(here);
    assert!(!interest.exists());
    assert_eq!(interest.emit_with(|| panic!("nobody listens")).called(), 0);
    bus.listen_once(&pattern("a:b"), |_| {});
    assert!(interest.exists());
    bus.emit("a:b", &0);
    assert!(!interest.exists());
}

#[test]
fn the_version_stands_still_while_the_listeners_do() {
    let bus = Bus::new();
    let id = bus.listen(&pattern("a"), |_| {});
    let version = bus.version();
    bus.emit("a", &0);
    assert_eq!(bus.version(), version);
    bus.off(id);
    assert!(bus.version() > version);
}

#[test]
fn emits_run_side_by_side() {
    let bus = Bus::new();
    let both_inside = Arc::new(Barrier::new(2));
    let barrier = Arc::clone(&both_inside);
    bus.listen(&pattern("a"), move |_| {
        barrier.wait();
    });
    thread::scope(|scope| {
        scope.spawn(|| bus.emit("a", &0));
        assert_eq!(bus.emit("a", &0).called(), 1);
    });
}

#[test]
fn a_listener_of_one_event_is_called_by_one_of_many_threads() {
    for _ in 0..200 {
        let bus = Bus::new();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        bus.listen_once(&pattern("a"), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let start = Barrier::new(4);
        let called: usize = thread::scope(|scope| {
            let emit = || {
                start.wait();
                bus.emit("a", &0).called()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(emit)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!((called, calls.load(Ordering::Relaxed)), (1, 1));
    }
}

#[test]
fn while_others_come_and_go_a_listener_misses_nothing() {
    const EVENTS: u32 = 5_000;
    let bus = Bus::new();
    let sum = Arc::new(AtomicU64::new(0));
    let added = Arc::clone(&sum);
    bus.listen(&pattern("a:*"), move |event| {
        added.fetch_add(u64::from(*event.payload()), Ordering::Relaxed);
    });
    let churn = || {
        for _ in 0..EVENTS {
            let ids = ["a:b", "*:b", "a:*"].map(|text| bus.listen(&pattern(text), |_| {}));
            assert_eq!(bus.off_all(ids), 3);
        }
    };
    thread::scope(|scope| {
        scope.spawn(churn);
        for _ in 0..2 {
            scope.spawn(|| (1..=EVENTS).for_each(|i| _ = bus.emit("a:b", &i)));
        }
    });
    let expected = u64::from(EVENTS) * u64::from(EVENTS + 1);
    assert_eq!(sum.load(Ordering::Relaxed), expected);
    assert_eq!(bus.len(), 1);
}

#[test]
fn an_answer_of_interest_is_never_older_than_the_last_change() {
    let bus = Bus::new();
    let interest = bus.interest("a");
    let (asks, stop) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while stop.load(Ordering::Relaxed) == 0 {
                asks.fetch_add(usize::from(interest.exists()), Ordering::Relaxed);
            }
        });
        for _ in 0..5_000 {
            let id = bus.listen(&pattern("a"), |_| {});
            assert!(interest.exists());
            bus.off(id);
            assert!(!interest.exists());
        }
        stop.store(1, Ordering::Relaxed);
    });
}
