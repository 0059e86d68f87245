use std::time::Duration;

use nacp_proto::{ChunkSize, ReassemblyLimits};

use crate::MemoryBudget;

/// How a connection behaves. Clones share one [`MemoryBudget`].
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) limits: ReassemblyLimits,
    pub(crate) memory: MemoryBudget,
    pub(crate) chunk_size: ChunkSize,
    pub(crate) connect_timeout: Duration,
    pub(crate) write_stall_timeout: Duration,
    pub(crate) flush_timeout: Duration,
    pub(crate) keepalive: Option<Duration>,
    pub(crate) unsent_bytes: Option<u32>,
    pub(crate) send_buffer: Option<u32>,
}

impl Options {
    /// What is taken from the peer.
    #[must_use]
    pub const fn limits(mut self, limits: ReassemblyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What the unfinished messages of all connections made with these options may hold together.
    #[must_use]
    pub fn memory(self, memory: MemoryBudget) -> Self {
        Self { memory, ..self }
    }

    /// The largest frame to send at first; 256 KiB by default.
    ///
    /// [`Sender::set_chunk_size`](crate::Sender::set_chunk_size) changes it when the peer is known.
    #[must_use]
    pub const fn chunk_size(mut self, chunk_size: ChunkSize) -> Self {
        self.chunk_size = chunk_size;
        self
    }

    /// How long resolving a name and connecting to one of its addresses may take together; 10 s by
    /// default. [`Duration::MAX`] leaves it to the operating system.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the peer may take no byte while there is something to write; 30 s by default.
    /// [`Duration::MAX`] is for ever.
    #[must_use]
    pub const fn write_stall_timeout(mut self, timeout: Duration) -> Self {
        self.write_stall_timeout = timeout;
        self
    }

    /// How long a close may take to write what is queued; 10 s by default. The connection is reset
    /// after it.
    #[must_use]
    pub const fn flush_timeout(mut self, timeout: Duration) -> Self {
        self.flush_timeout = timeout;
        self
    }

    /// After how much silence the operating system asks the peer whether it lives; 60 s by default,
    /// `None` for never. It asks every 10 s then.
    #[must_use]
    pub const fn keepalive(mut self, after: Option<Duration>) -> Self {
        self.keepalive = after;
        self
    }

    /// How many bytes may wait in the operating system that have not been sent once; 256 KiB by
    /// default, `None` for as many as it likes.
    ///
    /// Nothing overtakes these bytes (specification, section 7): fewer let a heartbeat through
    /// sooner on a slow line. What is on its way is not counted, so a fast line stays full. Only
    /// some systems know this (Linux, Android, the BSDs of Apple); on others, see
    /// [`Self::send_buffer`].
    #[must_use]
    pub const fn unsent_bytes(mut self, bytes: Option<u32>) -> Self {
        self.unsent_bytes = bytes;
        self
    }

    /// The size of the operating system's send buffer in bytes; by default `None`, so that it
    /// adapts.
    ///
    /// A fixed size bounds what lies between us and the wire, sent or not, and with it the speed
    /// of a line with a long way.
    #[must_use]
    pub const fn send_buffer(mut self, bytes: Option<u32>) -> Self {
        self.send_buffer = bytes;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: ReassemblyLimits::default(),
            memory: MemoryBudget::default(),
            chunk_size: ChunkSize::default(),
            connect_timeout: Duration::from_secs(10),
            write_stall_timeout: Duration::from_secs(30),
            flush_timeout: Duration::from_secs(10),
            keepalive: Some(Duration::from_secs(60)),
            unsent_bytes: Some(256 << 10),
            send_buffer: None,
        }
    }
}
