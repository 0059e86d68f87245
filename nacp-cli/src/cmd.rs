//! What each command does.

pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod decode;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod ping;
pub(crate) mod probe;
pub(crate) mod proxy;
pub(crate) mod serve;
pub(crate) mod signal;
pub(crate) mod sub;
pub(crate) mod top;
pub(crate) mod watch;
