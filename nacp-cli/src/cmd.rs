//! What each command does.

pub(crate) mod call;
pub(crate) mod decode;
pub(crate) mod explain;
pub(crate) mod ping;
pub(crate) mod probe;
pub(crate) mod serve;
pub(crate) mod sub;
