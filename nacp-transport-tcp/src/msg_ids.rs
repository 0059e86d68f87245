use std::hash::{BuildHasher, RandomState};

use nacp_proto::MsgId;

/// Makes the random `msgId`s of one connection: SplitMix64 over a counter behind a random half.
#[derive(Debug)]
pub(crate) struct MsgIds {
    high: u64,
    state: u64,
}

impl MsgIds {
    pub(crate) fn new() -> Self {
        let seeds = RandomState::new();
        Self {
            high: seeds.hash_one(0),
            state: seeds.hash_one(1),
        }
    }

    pub(crate) fn next(&mut self) -> MsgId {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut low = self.state;
        low = (low ^ (low >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        low = (low ^ (low >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low ^= low >> 31;
        MsgId(((u128::from(self.high) << 64) | u128::from(low)).to_be_bytes())
    }
}
