//! The facade over both transports, and over a network that breaks.

#[macro_use]
mod support;

mod calls;
mod jobs;
mod links;
mod proxy;
mod subscriptions;
