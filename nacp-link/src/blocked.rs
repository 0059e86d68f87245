use std::collections::VecDeque;

use nacp_proto::MessageId;

use crate::record::{Class, Record};

/// Sends of one link that wait for room, in call order (specification, section 5).
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    records: VecDeque<Record>,
    answers: usize,
    /// Whether the node has the link among those that take turns.
    pub(crate) is_listed: bool,
}

impl Blocked {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many of them are answers.
    pub(crate) const fn answers(&self) -> usize {
        self.answers
    }

    pub(crate) fn contains(&self, id: &MessageId) -> bool {
        self.records
            .iter()
            .any(|record| record.own_id() == Some(id))
    }

    pub(crate) fn push_back(&mut self, record: Record) {
        self.answers += usize::from(is_answer(&record));
        self.records.push_back(record);
    }

    pub(crate) fn push_front(&mut self, record: Record) {
        self.answers += usize::from(is_answer(&record));
        self.records.push_front(record);
    }

    pub(crate) fn pop_front(&mut self) -> Option<Record> {
        let record = self.records.pop_front()?;
        self.answers -= usize::from(is_answer(&record));
        Some(record)
    }

    pub(crate) fn remove(&mut self, id: &MessageId) -> Option<Record> {
        let is_meant = |record: &Record| record.own_id() == Some(id);
        let record = self
            .records
            .remove(self.records.iter().position(is_meant)?)?;
        self.answers -= usize::from(is_answer(&record));
        Some(record)
    }

    /// Takes some out; the others keep their places.
    pub(crate) fn take(&mut self, goes: impl Fn(&Record) -> bool) -> VecDeque<Record> {
        if !self.records.iter().any(&goes) {
            return VecDeque::new();
        }
        let records = std::mem::take(&mut self.records).into_iter();
        let (gone, stays) = records.partition(goes);
        self.records = stays;
        self.answers = self
            .records
            .iter()
            .filter(|record| is_answer(record))
            .count();
        gone
    }
}

fn is_answer(record: &Record) -> bool {
    matches!(record.class, Class::Response)
}
