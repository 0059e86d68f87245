//! Bounded message queues with exact caps and constant cost: backlog, ack-pending, received window.
#![warn(missing_docs)]
