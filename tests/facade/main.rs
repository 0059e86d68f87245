//! The facade over both transports, and over a network that breaks.

#[macro_use]
mod support;

mod calls;
mod ending;
mod gateways;
mod handlers;
mod jobs;
mod links;
mod proxy;
mod subscriptions;
mod timed;
