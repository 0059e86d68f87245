use std::time::Duration;

/// What happened, as a number that tells two runs apart, and as text if somebody asked for it.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(is_logged: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            lines: is_logged.then(Vec::new),
        }
    }

    pub(crate) fn mix(&mut self, value: u64) {
        self.hash = (self.hash.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub(crate) fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(hash_of(bytes));
    }

    pub(crate) fn log(&mut self, now: Duration, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.3} {}", now.as_secs_f64(), line()));
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
