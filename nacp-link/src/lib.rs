//! The NACP node without I/O: links, timers, replay, routing, sessions.
#![warn(missing_docs)]
