//! An event bus with wildcard patterns matched by a trie, generic over the payload.
//!
//! It hands events to callbacks and streams by their names, inside one process. It leaves to others
//! what a payload is, which runtime runs the program, and how an event gets to another process.
//!
//! # Example
//!
//! ```
//! use std::num::NonZeroUsize;
//! use nacp_bus::{EventBus, Pattern};
//!
//! let bus = EventBus::new();
//!
//! // A callback, called by whoever emits.
//! let id = bus.listen(&Pattern::parse("sensor:*:temperature")?, |event| {
//!     assert!(event.name().starts_with("sensor:"));
//!     assert!(*event.payload() < 100.0);
//! });
//!
//! // A stream, to be read by a task at its own pace.
//! let mut stream = bus.stream(&Pattern::parse("sensor:kitchen:*")?, NonZeroUsize::MIN);
//!
//! assert_eq!(bus.emit("sensor:kitchen:temperature", &21.5).called(), 2);
//! assert_eq!(bus.emit("sensor:kitchen:humidity", &40.0).called(), 1);
//!
//! // It holds one event, so the first gave way to the second, and the second says so.
//! let item = stream.try_recv()?;
//! assert_eq!((&*item.name, item.payload, item.missed), ("sensor:kitchen:humidity", 40.0, 1));
//!
//! bus.off(id);
//! drop(stream);
//! assert!(!bus.has_listener("sensor:kitchen:temperature"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Names and patterns
//!
//! A name is segments joined by `:`. In a [`Pattern`] a segment that is exactly `*` matches any one
//! segment. The numbers of segments must be equal; there is no wildcard for several.
//!
//! | pattern | matches | does not match |
//! | --- | --- | --- |
//! | `a:*:c` | `a:b:c`, `a::c`, `a:*:c` | `a:c`, `a:b:b:c`, `a:b:c:` |
//! | `*` | `a`, the empty name | `a:b`, `:` |
//! | `a:b*` | `a:b*` | `a:bc` |
//! | `**` | `**` | `a` |
//!
//! Whatever is a text is a name, compared byte by byte. [`escape_segment`] makes a single segment of
//! a text that may hold a `:` or a `*`. [`Pattern::covers`] and [`Pattern::covers_prefix_of`] tell
//! beforehand what a pattern can match at all.
//!
//! # The parts
//!
//! ```text
//!  EventBus      listen, off, emit; one lock, callbacks outside of it
//!   │  EventStream   a listener with a bounded queue
//!   │  Interest      "does anyone listen to this?", remembered
//!   ▼
//!  Matcher       pattern -> value, found by name; no lock, no callback
//!   ▼
//!  Pattern       parsed once; matches, covers
//!
//!  Subscriptions (owner, id) -> listener; clears one owner at that owner's size
//! ```
//!
//! Patterns without a star are found by one hash of the whole name. The others form a trie, which
//! is walked level by level, through the nodes that match the name so far. For `a:b:c`:
//!
//! ```text
//!  root ── a ──── * ──── c     a:*:c     1st level   a, *
//!     │     └──── b ──── *     a:b:*     2nd level   a:*, a:b, *:b
//!     └─── * ──── b ──── c     *:b:c     3rd level   a:*:c, a:b:*, *:b:c: the hits
//! ```
//!
//! # Guarantees and limits
//!
//! - Listeners are called in the order of their registration, each event by the thread that emits
//!   it. Callbacks may use the bus as they like; [`EventBus`](EventBus#delivery) has the rules.
//! - A listener that panics ends its own call and nothing else.
//! - An emit costs the segments of the name and the hits, not the number of listeners.
//!   [`Matcher`] has the bounds.
//! - A stream is bounded and never blocks an emit. What it had to drop, it counts.
//! - No function of this crate panics, whatever text it is given. Nothing is unsafe.
//! - The number of listeners is not bounded here; [`Subscriptions`] bounds them for each owner.
//!
//! There are no features, and no runtime is needed: streams wake whoever polls them.
#![warn(missing_docs)]

mod bus;
mod matcher;
mod pattern;
mod segment;
mod stream;
mod subscriptions;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use bus::{Emitted, Event, EventBus, Interest, ListenerId, ListenerPanic};
pub use matcher::{Key, Matcher};
pub use pattern::{Pattern, PatternError, Segment};
pub use segment::{escape_segment, unescape_segment};
pub use stream::{EventStream, StreamItem, TryRecvError};
pub use subscriptions::{InsertError, Subscriptions};
