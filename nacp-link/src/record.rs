use std::cell::Cell;
use std::sync::Arc;

use nacp_proto::{AppId, Encoded, MessageId};
use nacp_queue::Record as Queued;

use crate::Token;
use crate::ids::LinkId;
use crate::instances::Takers;
use crate::timers::TimerHandle;

/// What a queue finds a record by: ids are unique only per source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Own(MessageId),
    Relayed(Arc<(AppId, MessageId)>),
}

/// What becomes of a record on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Has a response waiter.
    Call(Call),
    Response,
    Signal,
    Notify,
    /// Somebody else's message, for which this node is the gateway.
    Relayed {
        droppable: bool,
    },
}

/// The calls of this node, by what answers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Request,
    Subscribe,
    Unsubscribe,
    Unregister,
    /// The subscription that shows whether a foreign peer has restarted.
    Sentinel(Sentinel),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sentinel {
    Set,
    Check,
}

/// One message on its way out, encoded once.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) key: Key,
    /// The next hop.
    pub(crate) link: LinkId,
    pub(crate) to: AppId,
    pub(crate) class: Class,
    pub(crate) encoded: Encoded,
    pub(crate) bytes: u64,
    /// Place among all records of the node, by the time of sending.
    pub(crate) seq: u64,
    /// Who waits for its ACK, or for a notify its acceptance.
    pub(crate) token: Option<Token>,
    /// How often its ACK limit has passed on the way through a gateway.
    pub(crate) tries: u8,
    /// How often the connection broke while it was alone on it.
    pub(crate) strikes: u32,
    /// Whether it was ever handed to a provider. It may have arrived, whatever was told of that.
    pub(crate) was_submitted: bool,
    /// The instances of its app that a provider has accepted it for.
    pub(crate) takers: Takers,
    /// Whether it was admitted beyond the caps of `Wait`.
    pub(crate) is_excess: bool,
}

impl Record {
    pub(crate) fn own_id(&self) -> Option<&MessageId> {
        match &self.key {
            Key::Own(id) => Some(id),
            Key::Relayed(_) => None,
        }
    }

    /// Whether a provider has ever accepted it.
    pub(crate) const fn was_accepted(&self) -> bool {
        self.takers != 0
    }

    /// Whether it waits for an ACK once it is accepted.
    pub(crate) const fn is_acknowledged(&self) -> bool {
        match self.class {
            Class::Call(_) | Class::Response | Class::Signal => true,
            Class::Notify | Class::Relayed { .. } => false,
        }
    }
}

impl Queued for Record {
    type Key = Key;
    type Destination = LinkId;

    fn key(&self) -> &Key {
        &self.key
    }

    fn destination(&self) -> &LinkId {
        &self.link
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn droppable(&self) -> bool {
        matches!(
            self.class,
            Class::Notify | Class::Relayed { droppable: true }
        )
    }

    fn sequence(key: &Key) -> Option<u64> {
        match key {
            Key::Own(id) => id.sequence(),
            Key::Relayed(_) => None,
        }
    }
}

/// Who waits for the answer to a call.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) id: MessageId,
    pub(crate) link: LinkId,
    pub(crate) to: AppId,
    pub(crate) call: Call,
    pub(crate) token: Option<Token>,
    pub(crate) timer: TimerHandle,
    /// The process stream of an event request.
    pub(crate) items: Option<Items>,
}

impl Queued for Waiter {
    type Key = MessageId;
    type Destination = LinkId;

    fn key(&self) -> &MessageId {
        &self.id
    }

    fn destination(&self) -> &LinkId {
        &self.link
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn droppable(&self) -> bool {
        false
    }

    fn sequence(key: &MessageId) -> Option<u64> {
        key.sequence()
    }
}

/// How far a stream of numbered items has come.
#[derive(Debug, Default)]
pub(crate) struct Items {
    next: Cell<u64>,
    missed: Cell<u64>,
    uncounted: Cell<bool>,
}

impl Items {
    /// Takes the next item's number, and tells how many are missing before it.
    pub(crate) fn take(&self, seq: Option<u64>) -> Option<u64> {
        let Some(seq) = seq else {
            self.uncounted.set(true);
            return None;
        };
        let missed = seq.saturating_sub(self.next.get());
        self.next.set(self.next.get().max(seq.saturating_add(1)));
        self.missed.set(self.missed.get().saturating_add(missed));
        Some(missed)
    }

    /// How many are missing in all, when there were `total`.
    pub(crate) fn finish(&self, total: Option<u64>) -> Option<u64> {
        let missed = self
            .missed
            .get()
            .saturating_add(total?.saturating_sub(self.next.get()));
        (!self.uncounted.get()).then_some(missed)
    }
}

#[cfg(test)]
mod tests {
    use super::Items;

    #[test]
    fn a_stream_counts_what_is_missing_between_its_items_and_before_the_answer() {
        let items = Items::default();
        assert_eq!(items.take(Some(0)), Some(0));
        assert_eq!(items.take(Some(3)), Some(2));
        assert_eq!(items.finish(Some(6)), Some(4));
    }

    #[test]
    fn a_stream_without_numbers_cannot_know() {
        let items = Items::default();
        assert_eq!(items.take(None), None);
        assert_eq!(items.finish(None), None);
        assert_eq!(items.finish(Some(1)), None);
    }
}
