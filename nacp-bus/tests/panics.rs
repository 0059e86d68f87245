//! T-22: a listener that panics ends nothing but its own call.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nacp_bus::{EventBus, ListenerId, Pattern};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber};

type Bus = EventBus<u32>;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

#[derive(Clone, Debug, PartialEq)]
struct Report {
    listener: ListenerId,
    name: String,
    message: String,
}

fn reporting_bus() -> (Bus, Arc<Mutex<Vec<Report>>>) {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&reports);
    let bus = Bus::with_panic_hook(move |panic| {
        kept.lock().unwrap().push(Report {
            listener: panic.listener(),
            name: panic.name().into(),
            message: panic.message().into(),
        });
    });
    (bus, reports)
}

#[test]
fn t22_the_others_are_called_each_time_and_the_listener_stays() {
    let (bus, reports) = reporting_bus();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |label: &'static str| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(label)
    };
    let (before, inside, after) = (note("before"), note("panicking"), note("after"));
    bus.listen(&pattern("a"), move |_| before());
    let id = bus.listen(&pattern("*"), move |event| {
        inside();
        assert!(*event.payload() > 0, "the first event is too much");
    });
    bus.listen(&pattern("a"), move |_| after());

    for i in 0..100 {
        let emitted = bus.emit("a", &i);
        assert_eq!(
            (emitted.called(), emitted.panicked()),
            (3, usize::from(i == 0))
        );
    }
    assert_eq!(
        *order.lock().unwrap(),
        ["before", "panicking", "after"].repeat(100)
    );
    let expected = Report {
        listener: id,
        name: "a".into(),
        message: "the first event is too much".into(),
    };
    assert_eq!(
        *reports.lock().unwrap(),
        [expected],
        "one report for one panic"
    );
}

#[test]
fn t22_the_bus_works_on_after_panics() {
    let (bus, reports) = reporting_bus();
    let id = bus.listen(&pattern("a"), |event| panic!("event {}", event.payload()));
    for i in 0..100 {
        assert_eq!(bus.emit("a", &i).panicked(), 1);
    }
    assert_eq!(reports.lock().unwrap()[99].message, "event 99");
    assert!(bus.off(id));
    bus.listen(&pattern("a"), |_| {});
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (1, 0));
    assert!(bus.has_listener("a"));
}

#[test]
fn a_panicking_listener_of_one_event_is_gone_like_any_other() {
    let (bus, reports) = reporting_bus();
    bus.listen_once(&pattern("a"), |_| panic!("once"));
    assert_eq!(bus.emit("a", &0).panicked(), 1);
    assert_eq!(bus.emit("a", &0).called(), 0);
    assert_eq!((bus.len(), reports.lock().unwrap().len()), (0, 1));
}

#[test]
fn a_panic_in_a_nested_emit_ends_there() {
    let (bus, reports) = reporting_bus();
    bus.listen(&pattern("inner"), |_| panic!("inner"));
    let nested = bus.clone();
    bus.listen(&pattern("outer"), move |_| {
        assert_eq!(nested.emit("inner", &0).panicked(), 1);
    });
    let emitted = bus.emit("outer", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (1, 0));
    assert_eq!(reports.lock().unwrap()[0].name, "inner");
}

#[test]
fn a_panic_that_is_no_text_is_reported_too() {
    let (bus, reports) = reporting_bus();
    bus.listen(&pattern("a"), |_| panic_any(17));
    bus.emit("a", &0);
    assert_eq!(
        reports.lock().unwrap()[0].message,
        "a value that is no text"
    );
}

#[test]
fn a_panicking_hook_is_contained() {
    let bus = Bus::with_panic_hook(|_| panic!("the hook too"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    bus.listen(&pattern("a"), |_| panic!("listener"));
    bus.listen(&pattern("a"), move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (2, 1));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn the_hook_may_take_the_listener_out() {
    let slot = Arc::new(Mutex::new(None::<Bus>));
    let hook_slot = Arc::clone(&slot);
    let bus = Bus::with_panic_hook(move |panic| {
        let bus = hook_slot.lock().unwrap().clone().unwrap();
        assert!(bus.off(panic.listener()));
    });
    *slot.lock().unwrap() = Some(bus.clone());
    bus.listen(&pattern("a"), |_| panic!("strike one"));
    assert_eq!(bus.emit("a", &0).panicked(), 1);
    assert_eq!(bus.emit("a", &0).called(), 0);
    slot.lock().unwrap().take();
}

/// Panics when it is dropped, and when it is dropped as the payload of a panic.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_panic_payload_that_panics_is_contained() {
    let (bus, reports) = reporting_bus();
    bus.listen(&pattern("a"), |_| panic_any(PanicsOnDrop));
    assert_eq!(bus.emit("a", &0).panicked(), 1);
    assert_eq!(reports.lock().unwrap().len(), 1);
}

#[test]
fn a_listener_that_panics_while_it_is_dropped_by_an_emit_is_contained() {
    let (bus, reports) = reporting_bus();
    let held = PanicsOnDrop;
    bus.listen_once(&pattern("a"), move |_| _ = &held);
    let emitted = bus.emit("a", &0);
    assert_eq!((emitted.called(), emitted.panicked()), (1, 1));
    assert_eq!(reports.lock().unwrap()[0].message, "dropped");
    assert!(bus.is_empty());
}

/// Counts the errors.
#[derive(Clone, Default)]
struct Errors(Arc<AtomicUsize>);

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        assert_eq!(event.metadata().target(), "nacp_bus::bus");
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn t22_without_a_hook_each_panic_is_one_error_in_the_trace() {
    let bus = Bus::new();
    bus.listen(&pattern("a"), |_| panic!("listener"));
    let errors = Errors::default();
    with_default(errors.clone(), || {
        for _ in 0..3 {
            bus.emit("a", &0);
        }
    });
    assert_eq!(errors.0.load(Ordering::Relaxed), 3);
}
