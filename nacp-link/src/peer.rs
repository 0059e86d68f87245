use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use nacp_proto::{AppId, Decoded, MessageId, Register};

use crate::ids::{DialId, LinkId};
use crate::record::Record;
use crate::timers::TimerHandle;
use crate::{Accepted, Trust};

/// A whole message as it came, with its bytes for whoever relays it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbound {
    /// The message's bytes.
    pub bytes: Bytes,
    /// What they say.
    pub decoded: Decoded,
}

/// Faults of one source before its peer is closed, and the time that they must fall in.
pub(crate) const MAX_SOURCE_FAULTS: usize = 16;
const SOURCE_FAULT_PERIOD: Duration = Duration::from_secs(60);

/// Bytes kept beside an unanswered register before reading stops.
pub(crate) const MAX_KEPT_BYTES: u64 = 1 << 20;

/// Unaccepted control messages of a peer before we stop reading it.
const MAX_CONTROL: u64 = 4096;

/// Reliable control messages of a peer whose ACK is expected and means nothing.
const MAX_UNWATCHED: usize = 1024;

/// How far a peer has come.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Accepted; nothing has come yet that counts.
    Fresh,
    /// Dialled; our register is unanswered.
    Registering { dial: DialId, register: MessageId },
    /// Its register waits for the policy.
    Deciding(Box<Applicant>),
    /// Its register waits for a sign of life from the peer that its app is bound to.
    Held(Box<Applicant>),
    /// Bound to a link.
    Bound(LinkId),
    /// Its app has said good-bye; closed once so much of the control lane is accepted.
    Leaving { link: LinkId, control: u64 },
}

/// An app that wants to register.
#[derive(Debug)]
pub(crate) struct Applicant {
    pub(crate) app: AppId,
    pub(crate) register: Register,
    /// Every register of it on this peer; all are answered alike.
    pub(crate) ids: Vec<MessageId>,
    /// How many of them are acknowledged.
    pub(crate) acked: usize,
    pub(crate) proven: bool,
    pub(crate) anew: bool,
}

/// A record between submission and acceptance.
#[derive(Debug)]
pub(crate) enum Submitted {
    Waiting(Record),
    /// Acknowledged or failed before it was accepted; still fills the window.
    Settled {
        bytes: u64,
    },
}

impl Submitted {
    pub(crate) const fn bytes(&self) -> u64 {
        match self {
            Self::Waiting(record) => record.bytes,
            Self::Settled { bytes } => *bytes,
        }
    }
}

/// One physical connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stage: Stage,
    pub(crate) trust: Trust,
    /// The handshake, takeover or farewell deadline; at most one is armed.
    pub(crate) timer: TimerHandle,
    pub(crate) sent: Accepted,
    pub(crate) accepted: Accepted,
    pub(crate) submitted: VecDeque<Submitted>,
    pub(crate) submitted_bytes: u64,
    /// Submitted records that will wait for an ACK.
    pub(crate) reliable: usize,
    /// No entry before this one, counted from the first ever, is waiting.
    waiting_from: u64,
    pub(crate) kept: VecDeque<Inbound>,
    pub(crate) kept_bytes: u64,
    pub(crate) paused: bool,
    pub(crate) unwatched: VecDeque<MessageId>,
    pub(crate) growth: Growth,
    faults: VecDeque<Instant>,
}

impl Peer {
    pub(crate) const fn new(stage: Stage, trust: Trust) -> Self {
        Self {
            stage,
            trust,
            timer: None,
            sent: Accepted {
                control: 0,
                bulk: 0,
            },
            accepted: Accepted {
                control: 0,
                bulk: 0,
            },
            submitted: VecDeque::new(),
            submitted_bytes: 0,
            reliable: 0,
            waiting_from: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            paused: false,
            unwatched: VecDeque::new(),
            growth: Growth::new(),
            faults: VecDeque::new(),
        }
    }

    pub(crate) const fn bound_link(&self) -> Option<LinkId> {
        match &self.stage {
            Stage::Bound(link) => Some(*link),
            Stage::Fresh
            | Stage::Registering { .. }
            | Stage::Deciding(_)
            | Stage::Held(_)
            | Stage::Leaving { .. } => None,
        }
    }

    /// Whether a record of `bytes` may be submitted now.
    pub(crate) fn has_window(&self, bytes: u64, max_count: usize, max_bytes: u64) -> bool {
        self.submitted.len() < max_count
            && (self.submitted.is_empty()
                || self.submitted_bytes.saturating_add(bytes) <= max_bytes)
    }

    /// Adds a record that is handed to the provider.
    pub(crate) fn push_submitted(&mut self, record: Record) {
        self.sent.bulk += 1;
        self.submitted_bytes = self.submitted_bytes.saturating_add(record.bytes);
        self.reliable += usize::from(record.is_acknowledged());
        self.submitted.push_back(Submitted::Waiting(record));
    }

    /// Takes a record out that is settled before it was accepted. ACKs come in order, so the search
    /// begins where the last one ended.
    pub(crate) fn take_submitted(&mut self, matches: impl Fn(&Record) -> bool) -> Option<Record> {
        let first = self.waiting_from.saturating_sub(self.accepted.bulk);
        let first = usize::try_from(first)
            .unwrap_or(usize::MAX)
            .min(self.submitted.len());
        let at = self
            .submitted
            .range(first..)
            .position(|entry| match entry {
                Submitted::Waiting(record) => matches(record),
                Submitted::Settled { .. } => false,
            })?;
        if at == 0 {
            self.waiting_from = self.accepted.bulk + first as u64 + 1;
        }
        self.settle_submitted(first + at)
    }

    /// Settles the entry at an index of the window.
    pub(crate) fn settle_submitted(&mut self, index: usize) -> Option<Record> {
        let entry = self.submitted.get_mut(index)?;
        let bytes = entry.bytes();
        match std::mem::replace(entry, Submitted::Settled { bytes }) {
            Submitted::Waiting(record) => {
                self.reliable -= usize::from(record.is_acknowledged());
                Some(record)
            }
            Submitted::Settled { .. } => None,
        }
    }

    pub(crate) fn submitted_records(&self) -> impl Iterator<Item = &Record> {
        self.submitted.iter().filter_map(|entry| match entry {
            Submitted::Waiting(record) => Some(record),
            Submitted::Settled { .. } => None,
        })
    }

    /// The next entry that acceptance up to `bulk` covers.
    pub(crate) fn next_accepted(&mut self, bulk: u64) -> Option<Submitted> {
        if self.accepted.bulk >= bulk {
            return None;
        }
        let entry = self.submitted.pop_front()?;
        self.accepted.bulk += 1;
        self.submitted_bytes = self.submitted_bytes.saturating_sub(entry.bytes());
        if let Submitted::Waiting(record) = &entry {
            self.reliable -= usize::from(record.is_acknowledged());
        }
        Some(entry)
    }

    /// Takes everything back that was submitted and not accepted.
    pub(crate) fn take_back(&mut self) -> Vec<Record> {
        self.submitted_bytes = 0;
        self.reliable = 0;
        std::mem::take(&mut self.submitted)
            .into_iter()
            .filter_map(|entry| match entry {
                Submitted::Waiting(record) => Some(record),
                Submitted::Settled { .. } => None,
            })
            .collect()
    }

    /// Counts a message from a source that is not bound here; `true` if it was one too many.
    pub(crate) fn count_fault(&mut self, now: Instant) -> bool {
        while self
            .faults
            .front()
            .is_some_and(|at| now.saturating_duration_since(*at) > SOURCE_FAULT_PERIOD)
        {
            self.faults.pop_front();
        }
        self.faults.push_back(now);
        self.faults.len() >= MAX_SOURCE_FAULTS
    }

    pub(crate) fn expect_ack(&mut self, id: MessageId) {
        if self.unwatched.len() == MAX_UNWATCHED {
            self.unwatched.pop_front();
        }
        self.unwatched.push_back(id);
    }

    /// Whether `id` is a control message of ours whose ACK was still to come.
    pub(crate) fn take_expected_ack(&mut self, id: &MessageId) -> bool {
        let found = self.unwatched.iter().position(|expected| expected == id);
        found.is_some_and(|at| self.unwatched.remove(at).is_some())
    }

    /// What must change about reading from this peer: `Some(true)` to stop, `Some(false)` to go on.
    pub(crate) fn turn_reading(&mut self) -> Option<bool> {
        let unaccepted = self.sent.control.saturating_sub(self.accepted.control);
        let is_full = unaccepted > MAX_CONTROL || self.kept_bytes >= MAX_KEPT_BYTES;
        let is_free = unaccepted <= MAX_CONTROL / 2 && self.kept_bytes < MAX_KEPT_BYTES;
        if !self.paused && is_full {
            self.paused = true;
            return Some(true);
        }
        if self.paused && is_free {
            self.paused = false;
            return Some(false);
        }
        None
    }
}

/// How much unfinished messages of a peer grew lately, in steps of time.
#[derive(Debug)]
pub(crate) struct Growth {
    steps: VecDeque<(Instant, u64)>,
    sum: u64,
}

const GROWTH_PERIOD: Duration = Duration::from_secs(5);
const GROWTH_STEP: Duration = Duration::from_millis(100);
const GROWTH_BYTES: u64 = 64 << 10;

impl Growth {
    const fn new() -> Self {
        Self {
            steps: VecDeque::new(),
            sum: 0,
        }
    }

    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        self.expire(now);
        self.sum = self.sum.saturating_add(bytes);
        match self.steps.back_mut() {
            Some((at, step)) if now.saturating_duration_since(*at) < GROWTH_STEP => *step += bytes,
            Some(_) | None => self.steps.push_back((now, bytes)),
        }
    }

    /// The unfinished message is whole.
    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.sum = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// While a message keeps growing: when it must be looked at again.
    pub(crate) fn growing_until(&mut self, now: Instant) -> Option<Instant> {
        self.expire(now);
        if self.sum < GROWTH_BYTES {
            return None;
        }
        let mut rest = self.sum;
        let stalls = self.steps.iter().find(|(_, bytes)| {
            rest = rest.saturating_sub(*bytes);
            rest < GROWTH_BYTES
        });
        stalls.and_then(|(at, _)| at.checked_add(GROWTH_PERIOD + Duration::from_nanos(1)))
    }

    fn expire(&mut self, now: Instant) {
        while let Some((at, bytes)) = self.steps.front() {
            if now.saturating_duration_since(*at) <= GROWTH_PERIOD {
                break;
            }
            self.sum = self.sum.saturating_sub(*bytes);
            self.steps.pop_front();
        }
    }
}
