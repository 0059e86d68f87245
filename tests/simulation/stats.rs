use std::collections::BTreeMap;
use std::time::Duration;

use super::plan::Fault;

/// What a run did, to see that it did enough.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stats {
    pub(crate) steps: u64,
    pub(crate) virtual_time: Duration,
    pub(crate) messages: u64,
    pub(crate) wire_messages: u64,
    pub(crate) faults: BTreeMap<Fault, u64>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl Stats {
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.virtual_time += other.virtual_time;
        self.messages += other.messages;
        self.wire_messages += other.wire_messages;
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }
}
