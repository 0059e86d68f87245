//! Probe, call and watch NACP peers.

fn main() {}
