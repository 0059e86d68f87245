use std::time::Duration;

/// How a dialled link is made again when it goes down.
///
/// The wait before an attempt grows from `shortest` by `factor` up to `longest`, and is drawn
/// anew from zero to that length each time, so that many nodes that lost the same peer do not come
/// back at one moment. A link that has lived at least as long as the present wait, and at least
/// `stable_after`, starts again from the shortest.
///
/// An attempt ends the row for good if the other side answers `version-mismatch`, `unauthorized` or
/// `dual-gateway`: waiting heals none of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconnect {
    pub(crate) enabled: bool,
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
    pub(crate) factor: f64,
    pub(crate) stable_after: Duration,
    pub(crate) jitter: Jitter,
}

/// How much of a wait is left to chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Jitter {
    /// All of it: from zero to the whole wait.
    #[default]
    Full,
    /// Nothing: always the whole wait.
    None,
}

impl Reconnect {
    /// No link is made again by itself.
    pub fn off() -> Self {
        Self {
            enabled: false,
            ..Self::default()
        }
    }

    /// The first wait. Default 100 ms.
    #[must_use]
    pub const fn shortest(mut self, wait: Duration) -> Self {
        self.shortest = wait;
        self
    }

    /// The longest wait. Default 30 s.
    #[must_use]
    pub const fn longest(mut self, wait: Duration) -> Self {
        self.longest = wait;
        self
    }

    /// What each wait is multiplied by to get the next; at least 1. Default 2.
    #[must_use]
    pub const fn factor(mut self, factor: f64) -> Self {
        self.factor = factor.max(1.0);
        self
    }

    /// How long a link must live for the next row to begin with the shortest wait. Default 5 s.
    #[must_use]
    pub const fn stable_after(mut self, time: Duration) -> Self {
        self.stable_after = time;
        self
    }

    /// How much of a wait is left to chance. Default [`Jitter::Full`].
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The wait after this one.
    pub(crate) fn next(&self, wait: Duration) -> Duration {
        let grown = wait.as_secs_f64() * self.factor;
        Duration::try_from_secs_f64(grown).map_or(self.longest, |grown| grown.min(self.longest))
    }

    /// How long to wait really.
    pub(crate) fn draw(&self, wait: Duration, random: f64) -> Duration {
        match self.jitter {
            Jitter::Full => wait.mul_f64(random.clamp(0.0, 1.0)),
            Jitter::None => wait,
        }
    }
}

impl Default for Reconnect {
    /// On, with the values that each setter names.
    fn default() -> Self {
        Self {
            enabled: true,
            shortest: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            factor: 2.0,
            stable_after: Duration::from_secs(5),
            jitter: Jitter::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let reconnect = Reconnect::default().longest(Duration::from_secs(1));
        let mut wait = reconnect.shortest;
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push(wait.as_millis());
            wait = reconnect.next(wait);
        }
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(
            Reconnect::default()
                .longest(Duration::MAX)
                .next(Duration::MAX),
            Duration::MAX
        );
    }

    #[test]
    fn full_jitter_draws_from_zero_to_the_whole_wait() {
        let full = Reconnect::default();
        assert_eq!(full.draw(Duration::from_secs(4), 0.0), Duration::ZERO);
        assert_eq!(
            full.draw(Duration::from_secs(4), 0.25),
            Duration::from_secs(1)
        );
        let none = Reconnect::default().jitter(Jitter::None);
        assert_eq!(
            none.draw(Duration::from_secs(4), 0.25),
            Duration::from_secs(4)
        );
    }
}
