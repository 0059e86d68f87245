//! One connection: two byte streams, each with a writer of two lanes, cut into frames.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use nacp_link::{Accepted, DialId, Lane, PeerId};
use nacp_proto::{ChunkSize, Chunker, Encoded, FrameDecoder, MessageId, MsgId, ReassemblyLimits};

use super::plan::NetPlan;
use super::random::Random;

/// What the writer knows of a message beside its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note {
    pub(crate) id: Option<MessageId>,
    pub(crate) uid: Option<u64>,
    /// The app at the other end must acknowledge it itself.
    pub(crate) is_watched: bool,
    pub(crate) is_beat: bool,
    pub(crate) is_response: bool,
    /// Accepted, and never put on the wire.
    pub(crate) is_lost: bool,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Encoded,
    note: Note,
}

/// Frames that are being written.
#[derive(Debug)]
struct Frame {
    rest: Bytes,
    completes: Option<(Lane, Note)>,
}

/// How the bytes of one direction fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Open,
    /// They vanish, and nobody is told.
    Swallow,
}

/// The direction away from an end: what is in the kernels and on the line.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) queue: VecDeque<(Duration, Bytes)>,
    pub(crate) bytes: usize,
    pub(crate) flow: Flow,
    pub(crate) held_until: Duration,
    pub(crate) fin: bool,
    last: Duration,
}

/// One end of a connection, with the direction away from it.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) life: usize,
    pub(crate) peer: Option<PeerId>,
    /// The node knows the peer, and it has not ended.
    pub(crate) is_up: bool,
    /// The node has closed it; what was given is still written.
    pub(crate) is_flushing: bool,
    pub(crate) is_paused: bool,
    pub(crate) slow_until: Duration,
    pub(crate) is_proven: bool,
    pub(crate) decoder: FrameDecoder,
    pub(crate) pipe: Pipe,
    pub(crate) accepted: Accepted,
    pub(crate) reported: Accepted,
    pub(crate) report_at: Option<Duration>,
    pub(crate) late_until: Duration,
    /// Reliable messages that the node knows to be accepted, and since when.
    pub(crate) unacked: BTreeMap<MessageId, Duration>,
    /// Beats: their answer counts as their ACK.
    pub(crate) beats: BTreeSet<MessageId>,
    /// Acknowledged or answered before their acceptance was told.
    pub(crate) acked_early: BTreeSet<MessageId>,
    /// Accepted, and not reported yet.
    pub(crate) unreported: VecDeque<(Lane, Note)>,
    /// Body bytes of messages in several frames that came lately.
    growth: VecDeque<(Duration, u64)>,
    pub(crate) fail_next: u32,
    /// The node is about to be told of a failure.
    pub(crate) is_failing: bool,
    pub(crate) lose_acks: u32,
    pub(crate) hole_at_response: bool,
    /// The last whole messages that came, for repeats.
    pub(crate) heard: VecDeque<Bytes>,
    control: VecDeque<Outgoing>,
    bulk: VecDeque<Outgoing>,
    current: Option<(Chunker, Note)>,
    frame: Option<Frame>,
    messages: u64,
}

#[derive(Debug)]
pub(crate) struct Conn {
    /// The dialling end first.
    pub(crate) ends: [End; 2],
    pub(crate) dial: DialId,
    /// Its register names an app; one to whoever answers tells no sessions.
    pub(crate) is_named: bool,
    /// What the dialler remembered of whom when its register went out.
    pub(crate) dialler_kept: Option<(usize, u64)>,
    /// The kinship of the binds that this one belongs to, and whether the acceptor resumed.
    pub(crate) bound: Option<(u64, bool)>,
    pub(crate) is_broken: bool,
}

/// What a call of [`End::write`] came to.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The provider fails the next message of the bulk lane, the one so many were sent before.
    pub(crate) fails: Option<(u64, Option<u64>)>,
    pub(crate) arrivals: Vec<Duration>,
    pub(crate) is_done: bool,
}

/// How long growth counts (specification, section 4.3).
const GROWTH: Duration = Duration::from_secs(5);

const UNIT: Duration = Duration::from_micros(1);

impl End {
    pub(crate) fn new(life: usize, is_proven: bool) -> Self {
        Self {
            life,
            peer: None,
            is_up: false,
            is_flushing: false,
            is_paused: false,
            slow_until: Duration::ZERO,
            is_proven,
            decoder: FrameDecoder::new(ReassemblyLimits::default().timeout(Duration::MAX)),
            pipe: Pipe {
                queue: VecDeque::new(),
                bytes: 0,
                flow: Flow::Open,
                held_until: Duration::ZERO,
                fin: false,
                last: Duration::ZERO,
            },
            accepted: Accepted::default(),
            reported: Accepted::default(),
            report_at: None,
            late_until: Duration::ZERO,
            unacked: BTreeMap::new(),
            beats: BTreeSet::new(),
            acked_early: BTreeSet::new(),
            unreported: VecDeque::new(),
            growth: VecDeque::new(),
            fail_next: 0,
            is_failing: false,
            lose_acks: 0,
            hole_at_response: false,
            heard: VecDeque::new(),
            control: VecDeque::new(),
            bulk: VecDeque::new(),
            current: None,
            frame: None,
            messages: 0,
        }
    }

    pub(crate) fn push(&mut self, lane: Lane, bytes: Encoded, note: Note) {
        let outgoing = Outgoing { bytes, note };
        match lane {
            Lane::Control => self.control.push_back(outgoing),
            Lane::Bulk => self.bulk.push_back(outgoing),
        }
    }

    /// Nothing more goes out, and what was not handed to the kernel is gone.
    pub(crate) fn discard(&mut self) {
        self.control.clear();
        self.bulk.clear();
        self.current = None;
        self.frame = None;
    }

    pub(crate) const fn has_unreported(&self) -> bool {
        self.accepted.control > self.reported.control || self.accepted.bulk > self.reported.bulk
    }

    /// Moves bytes into the kernel while there is room. Between two chunks of a message, whatever
    /// the control lane holds goes first.
    pub(crate) fn write(&mut self, now: Duration, net: &NetPlan, random: &mut Random) -> Written {
        let mut written = Written::default();
        let spread = u64::try_from(net.jitter.as_millis()).unwrap_or(0);
        let at = now + net.latency + random.millis(0, spread);
        while self.has_room(net) {
            if self.frame.is_none() {
                if let Some(failed) = self.next_fails() {
                    written.fails = Some(failed);
                    return written;
                }
                if !self.next_frame(net) {
                    break;
                }
            }
            self.write_frame(at, net, random, &mut written);
        }
        written.is_done = self.is_idle();
        written
    }

    /// A kernel takes bytes again when half of its buffer is free, so that pieces stay large.
    fn has_room(&self, net: &NetPlan) -> bool {
        let room = net.socket_bytes.saturating_sub(self.pipe.bytes);
        let rest = self.frame.as_ref().map_or(1, |frame| frame.rest.len());
        room >= rest || room > net.socket_bytes / 2
    }

    fn is_idle(&self) -> bool {
        self.frame.is_none()
            && self.control.is_empty()
            && self.bulk.is_empty()
            && self.current.is_none()
    }

    fn next_fails(&self) -> Option<(u64, Option<u64>)> {
        let is_next = self.fail_next > 0 && self.control.is_empty() && self.current.is_none();
        let next = self.bulk.front().filter(|_| is_next)?;
        Some((self.accepted.bulk, next.note.uid))
    }

    /// The message that [`Written::fails`] told of is out of the lane.
    pub(crate) fn skip_failed(&mut self) {
        if self.bulk.pop_front().is_some() {
            self.fail_next = self.fail_next.saturating_sub(1);
            self.accept(Lane::Bulk, Note::default());
        }
    }

    fn accept(&mut self, lane: Lane, note: Note) {
        match lane {
            Lane::Control => self.accepted.control += 1,
            Lane::Bulk => self.accepted.bulk += 1,
        }
        self.unreported.push_back((lane, note));
    }

    /// `false`: there is nothing to write. What is lost takes its turn without a frame.
    fn next_frame(&mut self, net: &NetPlan) -> bool {
        if let Some(next) = self.control.pop_front() {
            if next.note.is_lost {
                self.accept(Lane::Control, next.note);
                return true;
            }
            let frames = self.chunker(next.bytes).map(|chunker| {
                let mut all = BytesMut::new();
                for frame in chunker.frames(chunk(net)) {
                    put_frame(&mut all, &frame);
                }
                all.freeze()
            });
            self.frame = frames.map(|rest| Frame {
                rest,
                completes: Some((Lane::Control, next.note)),
            });
            return self.frame.is_some();
        }
        if self.current.is_none() {
            let Some(next) = self.bulk.pop_front() else {
                return false;
            };
            if self.hole_at_response && next.note.is_response {
                self.pipe.flow = Flow::Swallow;
            }
            self.current = self.chunker(next.bytes).map(|chunker| (chunker, next.note));
        }
        let Some((chunker, note)) = &mut self.current else {
            return false;
        };
        let mut rest = BytesMut::new();
        if let Some(frame) = chunker.next_frame(chunk(net)) {
            put_frame(&mut rest, &frame);
        }
        let completes = chunker
            .is_done()
            .then(|| (Lane::Bulk, std::mem::take(note)));
        if completes.is_some() {
            self.current = None;
        }
        self.frame = Some(Frame {
            rest: rest.freeze(),
            completes,
        });
        true
    }

    fn chunker(&mut self, bytes: Encoded) -> Option<Chunker> {
        self.messages += 1;
        Chunker::new(bytes, MsgId(u128::from(self.messages).to_be_bytes())).ok()
    }

    fn write_frame(
        &mut self,
        at: Duration,
        net: &NetPlan,
        random: &mut Random,
        written: &mut Written,
    ) {
        let Some(frame) = &mut self.frame else { return };
        let room = net.socket_bytes.saturating_sub(self.pipe.bytes);
        let mut taken = frame.rest.split_to(room.min(frame.rest.len()));
        if frame.rest.is_empty() {
            let completes = frame.completes.take();
            self.frame = None;
            if let Some((lane, note)) = completes {
                self.accept(lane, note);
            }
        }
        while !taken.is_empty() {
            let cut = if random.percent(20) {
                random.between(1, taken.len())
            } else {
                taken.len()
            };
            let piece = taken.split_to(cut);
            let at = self.pipe.send(at, piece, net);
            if at.is_some() && at != written.arrivals.last().copied() {
                written.arrivals.extend(at);
            }
        }
    }

    pub(crate) fn grow(&mut self, now: Duration, bytes: u64) {
        let is_old = |(at, _): &(Duration, u64)| *at + GROWTH < now;
        while self.growth.front().is_some_and(is_old) {
            self.growth.pop_front();
        }
        self.growth.push_back((now, bytes));
    }

    /// Whether so much came lately that an ACK limit may be put off.
    pub(crate) fn has_grown(&self, now: Duration) -> bool {
        let recent = self.growth.iter().filter(|(at, _)| *at + GROWTH >= now);
        recent.map(|(_, bytes)| bytes).sum::<u64>() >= 64 << 10
    }

    /// The other side has shown that it got a message.
    pub(crate) fn acknowledge(&mut self, id: &MessageId) {
        if self.unacked.remove(id).is_none() {
            self.acked_early.insert(id.clone());
        }
    }

    /// The node has been told that a message is accepted.
    pub(crate) fn watch(&mut self, id: MessageId, now: Duration) {
        if !self.acked_early.remove(&id) {
            self.unacked.insert(id, now);
        }
    }

    /// Feeds bytes that came to this end to its decoder.
    pub(crate) fn decode(
        &mut self,
        mut bytes: Bytes,
        now: std::time::Instant,
    ) -> Result<Vec<Bytes>, String> {
        let mut messages = Vec::new();
        loop {
            let mut room = self.decoder.read_buf();
            let len = room.remaining_mut().min(bytes.len());
            room.put_slice(&bytes[..len]);
            bytes.advance(len);
            while let Some(message) = self
                .decoder
                .poll_message(now)
                .map_err(|fault| format!("the frames of a peer are at fault: {fault}"))?
            {
                messages.push(message);
            }
            if bytes.is_empty() {
                return Ok(messages);
            }
        }
    }
}

impl Pipe {
    /// When a piece arrives that would do so at a time if the line were free.
    fn send(&mut self, at: Duration, piece: Bytes, net: &NetPlan) -> Option<Duration> {
        self.bytes += piece.len();
        if self.flow == Flow::Swallow {
            return None;
        }
        let bits = (piece.len() as u64).saturating_mul(1_000_000);
        let drawn = Duration::from_micros(bits / net.bytes_per_second);
        let at = (at + UNIT).max(self.last + drawn).max(self.held_until);
        self.last = at;
        self.queue.push_back((at, piece));
        Some(at)
    }

    /// Nothing arrives before a time; what is under way is kept back too.
    pub(crate) fn hold(&mut self, until: Duration) {
        self.held_until = self.held_until.max(until);
        self.last = self.last.max(until);
        for (at, _) in &mut self.queue {
            *at = (*at).max(until);
        }
    }

    /// Whatever is kept back arrives now.
    pub(crate) fn release(&mut self, now: Duration) {
        if self.held_until > now {
            self.held_until = now;
            self.last = now;
            for (at, _) in &mut self.queue {
                *at = (*at).min(now);
            }
        }
    }

    pub(crate) fn due(&self, now: Duration) -> bool {
        self.queue.front().is_some_and(|(at, _)| *at <= now)
    }

    /// What is under way never arrives, nor anything later.
    pub(crate) fn swallow(&mut self) {
        self.flow = Flow::Swallow;
        self.queue.clear();
    }

    /// Of what is under way only so many bytes arrive.
    pub(crate) fn cut(&mut self, mut keep: usize) {
        for (_, piece) in &mut self.queue {
            piece.truncate(keep);
            keep -= piece.len();
        }
        self.queue.retain(|(_, piece)| !piece.is_empty());
        self.flow = Flow::Swallow;
    }

    pub(crate) fn under_way(&self) -> usize {
        self.queue.iter().map(|(_, piece)| piece.len()).sum()
    }

    pub(crate) fn last_arrival(&self) -> Option<Duration> {
        self.queue.back().map(|(at, _)| *at)
    }
}

#[expect(clippy::unwrap_used, reason = "every plan's chunks hold a body")]
fn chunk(net: &NetPlan) -> ChunkSize {
    ChunkSize::new(net.chunk_bytes).unwrap()
}

fn put_frame(out: &mut BytesMut, frame: &nacp_proto::Frame) {
    out.put_slice(&frame.header.to_bytes());
    for piece in frame.body.pieces() {
        out.put_slice(piece);
    }
}
