//! Reaching a peer: from arguments, environment and config file to a link, and back to a good-bye.

pub(crate) mod diagnosis;
mod plan;
mod session;

pub(crate) use plan::{CONNECT_TIMEOUT, Plan};
pub(crate) use session::{Session, not_subscribed};
