use std::time::Duration;

use clap::Args;
use nacp::transport::Address;

use super::{DialArgs, duration};
use crate::target::Target;

const EXAMPLES: &str = "\
Examples:
  nacp-cli top                           the peer that `nacp-cli serve` runs
  nacp-cli top weather@host:7420 store@host:7421
  nacp-cli top --listen 0.0.0.0:7430     whoever dials us
  nacp-cli top --once --json host:7420   one frame, for a script

It shows the links of a node of its own: state, round trip, records and bytes
that wait or await their ACK, rates, and what was dropped for which reason.
Broken links are made again. q ends it.";

/// Watch links live: state, round trips, queues, rates, drops
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// [APP@]HOST:PORT, as many as you like [default: 127.0.0.1:7420, where `serve` listens]
    #[arg(value_name = "TARGET", env = "NACP_TARGET", hide_env = true)]
    pub(crate) targets: Vec<Target>,

    /// Let others dial us, too
    #[arg(long, value_name = "HOST:PORT", value_parser = Address::to_listen_on)]
    pub(crate) listen: Option<Address>,

    /// Time from one frame, and one beat, to the next
    #[arg(short, long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    pub(crate) interval: Duration,

    /// Print one frame and end
    #[arg(long)]
    pub(crate) once: bool,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}
