use nacp::proto::FrameHeader;

/// Tells the log of each frame that goes by in one direction; not of what is no frame.
#[derive(Debug)]
pub(super) struct Frames {
    direction: &'static str,
    header: [u8; FrameHeader::LEN],
    /// How much of the header has come.
    has: usize,
    /// How much of the body is still to come.
    body: usize,
    is_lost: bool,
}

impl Frames {
    /// `None` if nobody reads the log so closely.
    pub(super) fn new(direction: &'static str) -> Option<Self> {
        tracing::enabled!(tracing::Level::TRACE).then_some(Self {
            direction,
            header: [0; FrameHeader::LEN],
            has: 0,
            body: 0,
            is_lost: false,
        })
    }

    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_lost {
            let skipped = self.body.min(bytes.len());
            self.body -= skipped;
            let (_, rest) = bytes.split_at(skipped);
            let room = self.header.get_mut(self.has..).unwrap_or_default();
            let taken = room.len().min(rest.len());
            let (part, rest) = rest.split_at(taken);
            room.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            self.has += taken;
            bytes = rest;
            if self.has == FrameHeader::LEN {
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        self.has = 0;
        let Ok(header) = FrameHeader::parse(&self.header) else {
            self.is_lost = true;
            return;
        };
        self.body = usize::try_from(header.body_len()).unwrap_or(usize::MAX);
        tracing::trace!(
            direction = self.direction,
            msg_id = %hex::encode(header.msg_id().0),
            offset = header.offset(),
            body = self.body,
            total = header.total_size(),
            "frame"
        );
    }
}
