/// A small generator, so that a failing seed can be run again.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator for one seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (seed << 20))
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}
