slotmap::new_key_type! {
    /// One physical connection, named locally. Never used again after its end.
    pub struct PeerId;
    /// One attempt of ours to register with an app.
    pub struct DialId;
    /// One request that a handler of ours runs.
    pub struct RunningId;
    /// One subscription that a remote app holds on our bus.
    pub struct SubscriptionId;
    /// One subscription of ours at a remote app; stays the same when it is made again.
    pub struct StreamId;
    pub(crate) struct LinkId;
}

/// The caller's own name for a call, given back when the call settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);
