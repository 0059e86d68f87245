//! Streams of events: bounded, honest about gaps, woken in time.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use futures_core::Stream;
use futures_core::stream::FusedStream;
use nacp_bus::{EventBus, EventStream, Pattern, StreamItem, TryRecvError};

type Bus = EventBus<u32>;

fn open(bus: &Bus, text: &str, capacity: usize) -> EventStream<u32> {
    bus.stream(
        &Pattern::parse(text).unwrap(),
        NonZeroUsize::new(capacity).unwrap(),
    )
}

/// Counts how often it was woken.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Unparks the thread that waits.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll(stream: &mut EventStream<u32>, waker: &Waker) -> Poll<Option<StreamItem<u32>>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(waker))
}

fn parts(item: &StreamItem<u32>) -> (&str, u32, u64) {
    (&item.name, item.payload, item.missed)
}

/// All that is waiting, as (payload, missed).
fn drain(stream: &mut EventStream<u32>) -> Vec<(u32, u64)> {
    std::iter::from_fn(|| stream.try_recv().ok())
        .map(|i| (i.payload, i.missed))
        .collect()
}

#[test]
fn events_come_in_order_with_their_names() {
    let bus = Bus::new();
    let mut wild = open(&bus, "a:*", 10);
    let mut literal = open(&bus, "a:b", 10);
    for (name, payload) in [("a:b", 1), ("x", 2), ("a:c", 3)] {
        bus.emit(name, &payload);
    }
    let items: Vec<_> = std::iter::from_fn(|| wild.try_recv().ok()).collect();
    assert_eq!(
        items.iter().map(parts).collect::<Vec<_>>(),
        [("a:b", 1, 0), ("a:c", 3, 0)]
    );
    assert_eq!(parts(&literal.try_recv().unwrap()), ("a:b", 1, 0));
    assert_eq!(literal.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_full_stream_drops_the_oldest_and_the_next_item_says_how_many() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    (1..=5).for_each(|i| _ = bus.emit("a", &i));
    assert_eq!(drain(&mut stream), [(4, 3), (5, 0)]);
    bus.emit("a", &6);
    assert_eq!(drain(&mut stream), [(6, 0)]);
}

#[test]
fn each_gap_is_told_where_it_is() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    let mut seen = Vec::new();
    for burst in [1..=3, 4..=4, 5..=8] {
        burst.for_each(|i| _ = bus.emit("a", &i));
        seen.push(
            stream
                .try_recv()
                .map(|item| (item.payload, item.missed))
                .unwrap(),
        );
    }
    // 1 gave way to 3; then 3, 4 were held, of which 3 was read; then 4, 5, 6 gave way to 7, 8.
    assert_eq!(seen, [(2, 1), (3, 0), (7, 3)]);
    assert_eq!(drain(&mut stream), [(8, 0)]);
}

#[test]
fn what_is_missed_and_what_is_read_add_up() {
    for capacity in 1..5 {
        let bus = Bus::new();
        let mut stream = open(&bus, "a", capacity);
        let mut accounted = 0;
        for i in 1..=100_u32 {
            bus.emit("a", &i);
            if i % 7 == 0 {
                accounted += drain(&mut stream)
                    .iter()
                    .map(|(_, missed)| missed + 1)
                    .sum::<u64>();
                assert_eq!(accounted, u64::from(i), "capacity {capacity}");
            }
        }
    }
}

#[test]
fn the_largest_capacity_reserves_nothing() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", usize::MAX);
    bus.emit("a", &1);
    assert_eq!(drain(&mut stream), [(1, 0)]);
}

#[test]
fn a_waiting_reader_is_woken_once_by_the_event() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(Arc::clone(&alarm));
    assert_eq!(poll(&mut stream, &waker), Poll::Pending);
    assert_eq!(poll(&mut stream, &waker), Poll::Pending);
    bus.emit("b", &0);
    assert_eq!(alarm.0.load(Ordering::SeqCst), 0);
    bus.emit("a", &1);
    bus.emit("a", &2);
    assert_eq!(
        alarm.0.load(Ordering::SeqCst),
        1,
        "nobody waited for the second"
    );
    assert!(matches!(poll(&mut stream, &waker), Poll::Ready(Some(item)) if item.payload == 1));
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    let alarms = [Arc::new(Alarm::default()), Arc::new(Alarm::default())];
    for alarm in &alarms {
        assert_eq!(
            poll(&mut stream, &Waker::from(Arc::clone(alarm))),
            Poll::Pending
        );
    }
    bus.emit("a", &1);
    assert_eq!(alarms.map(|alarm| alarm.0.load(Ordering::SeqCst)), [0, 1]);
}

#[test]
fn a_dropped_recv_loses_nothing() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    {
        let mut waiting = pin!(stream.recv());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        bus.emit("a", &1);
    }
    assert_eq!(block_on(stream.recv()).map(|item| item.payload), Some(1));
}

#[test]
fn dropping_the_stream_takes_its_listener_out() {
    let bus = Bus::new();
    let stream = open(&bus, "a", 2);
    assert!(bus.has_listener("a"));
    drop(stream);
    assert!(bus.is_empty());
}

#[test]
fn a_stream_ends_after_what_it_holds() {
    type End = fn(Bus, &EventStream<u32>) -> Option<Bus>;
    let ends: [End; 4] = [
        |bus, stream| bus.off(stream.id()).then_some(bus),
        |bus, stream| (bus.off_all([stream.id()]) == 1).then_some(bus),
        |bus, _| (bus.clear() == 1).then_some(bus),
        |bus, _| {
            drop(bus);
            None
        },
    ];
    for end in ends {
        let bus = Bus::new();
        let mut stream = open(&bus, "a", 2);
        bus.emit("a", &1);
        let bus = end(bus, &stream);
        if let Some(bus) = &bus {
            bus.emit("a", &2);
        }
        assert!(!stream.is_terminated());
        assert_eq!(stream.size_hint(), (1, Some(1)));
        assert_eq!(block_on(stream.recv()).map(|item| item.payload), Some(1));
        assert!(stream.is_terminated());
        assert_eq!(stream.try_recv(), Err(TryRecvError::Ended));
        assert_eq!(block_on(stream.recv()), None);
        assert_eq!(block_on(stream.recv()), None, "again and again");
    }
}

#[test]
fn a_waiting_reader_is_woken_by_the_end() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(Arc::clone(&alarm));
    assert_eq!(poll(&mut stream, &waker), Poll::Pending);
    bus.clear();
    assert_eq!(alarm.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll(&mut stream, &waker), Poll::Ready(None));
}

#[test]
fn a_stream_does_not_keep_the_bus() {
    let bus = Bus::new();
    let mut stream = open(&bus, "a", 2);
    let clone = bus.clone();
    drop(bus);
    assert_eq!(
        stream.try_recv(),
        Err(TryRecvError::Empty),
        "one handle is left"
    );
    drop(clone);
    assert_eq!(stream.try_recv(), Err(TryRecvError::Ended));
}

#[test]
fn a_reader_on_another_thread_gets_every_event() {
    const EVENTS: u32 = 10_000;
    let bus = Bus::new();
    let mut stream = open(&bus, "a", EVENTS as usize);
    let reader = thread::spawn(move || {
        let mut seen = Vec::new();
        while let Some(item) = block_on(stream.recv()) {
            seen.push(item.payload);
        }
        seen
    });
    (0..EVENTS).for_each(|i| _ = bus.emit("a", &i));
    drop(bus);
    assert_eq!(reader.join().unwrap(), (0..EVENTS).collect::<Vec<_>>());
}

#[test]
fn a_stream_can_be_read_and_dropped_inside_a_callback() {
    let bus = Bus::new();
    let mut stream = Some(open(&bus, "a", 2));
    let callback_bus = bus.clone();
    bus.listen_once(&Pattern::parse("a").unwrap(), move |_| {
        let mut stream = stream.take().unwrap();
        assert_eq!(drain(&mut stream), [(1, 0)]);
        drop(stream);
        callback_bus.emit("a", &2);
    });
    let emitted = bus.emit("a", &1);
    assert_eq!((emitted.called(), emitted.panicked()), (2, 0));
    assert!(bus.is_empty());
}
