//! NACT over TCP: encoded messages in, batches of decoded messages out.
#![warn(missing_docs)]
