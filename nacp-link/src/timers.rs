use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nacp_proto::{AppId, MessageId};

use crate::ids::LinkId;
use crate::{DialId, PeerId};

/// What a deadline is for. One owner holds the handle of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Timer {
    /// An accepted peer must have registered.
    Handshake(PeerId),
    /// The answer to our register must have come.
    RegisterAnswer(DialId),
    /// The old peer of a register under takeover must have shown life.
    Takeover(PeerId),
    /// The answer to an unregister is given up on.
    Farewell(PeerId),
    /// The oldest un-ACKed record of a link.
    Acks(LinkId),
    /// A link's next beat.
    Beat(LinkId),
    /// The ACK of a link's beat.
    BeatAck(LinkId),
    /// An offline link is given up.
    Grace(LinkId),
    /// The answer to our own unregister.
    GoodBye(LinkId),
    /// A call's own limit.
    Call(MessageId),
    /// The next end-to-end beat to an app behind a gateway.
    RemoteBeat(LinkId, AppId),
    /// All good-byes of a node that ends.
    Terminate,
}

/// Names one armed deadline, so that exactly that one can be disarmed.
pub(crate) type TimerHandle = Option<(Instant, u64)>;

/// All deadlines of a node: arming, disarming and taking the next cost O(log n).
#[derive(Debug, Default)]
pub(crate) struct Timers {
    armed: BTreeMap<(Instant, u64), Timer>,
    count: u64,
}

impl Timers {
    /// Arms a deadline `after` from `now`. A time that no clock can show is never.
    pub(crate) fn arm(&mut self, now: Instant, after: Duration, timer: Timer) -> TimerHandle {
        now.checked_add(after).and_then(|at| self.arm_at(at, timer))
    }

    pub(crate) fn arm_at(&mut self, at: Instant, timer: Timer) -> TimerHandle {
        self.count += 1;
        let key = (at, self.count);
        self.armed.insert(key, timer);
        Some(key)
    }

    pub(crate) fn disarm(&mut self, handle: &mut TimerHandle) {
        if let Some(key) = handle.take() {
            self.armed.remove(&key);
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.armed.first_key_value().map(|((at, _), _)| *at)
    }

    /// The earliest deadline that is due, disarmed, with the instant it was due at.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Timer)> {
        let entry = self
            .armed
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        let at = entry.key().0;
        Some((at, entry.remove()))
    }

    pub(crate) fn len(&self) -> usize {
        self.armed.len()
    }

    pub(crate) fn clear(&mut self) {
        self.armed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "std offers no other epoch")]
    fn epoch() -> Instant {
        Instant::now()
    }

    #[test]
    fn deadlines_come_earliest_first_and_in_arming_order_at_one_instant() {
        let (mut timers, start) = (Timers::default(), epoch());
        let second = Duration::from_secs(1);
        timers.arm(start, 2 * second, Timer::Terminate);
        timers.arm(start, second, Timer::Call(MessageId::sequenced(1, 0)));
        timers.arm(start, second, Timer::Call(MessageId::sequenced(2, 0)));
        assert_eq!(timers.next(), Some(start + second));
        assert_eq!(timers.pop_due(start), None);
        let due = std::iter::from_fn(|| timers.pop_due(start + 2 * second)).collect::<Vec<_>>();
        assert_eq!(
            due,
            [
                (start + second, Timer::Call(MessageId::sequenced(1, 0))),
                (start + second, Timer::Call(MessageId::sequenced(2, 0))),
                (start + 2 * second, Timer::Terminate),
            ]
        );
    }

    #[test]
    fn the_longest_duration_is_never() {
        let mut timers = Timers::default();
        assert_eq!(timers.arm(epoch(), Duration::MAX, Timer::Terminate), None);
        assert_eq!((timers.len(), timers.next()), (0, None));
    }

    #[test]
    fn a_disarmed_deadline_is_gone_and_disarming_twice_is_harmless() {
        let (mut timers, start) = (Timers::default(), epoch());
        let mut handle = timers.arm(start, Duration::ZERO, Timer::Terminate);
        timers.disarm(&mut handle);
        timers.disarm(&mut handle);
        assert_eq!((timers.len(), timers.pop_due(start)), (0, None));
    }
}
