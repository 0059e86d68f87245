use std::time::Duration;

use clap::Args;
use nacp::transport::Address;

use super::duration;

const EXAMPLES: &str = "\
Examples:
  nacp-cli proxy 127.0.0.1:7421 127.0.0.1:7420 --delay 50ms
  nacp-cli proxy 127.0.0.1:7421 host:7420 --cut-after 10s
  nacp-cli proxy 127.0.0.1:7421 host:7420 --slow 64000

--slow is bytes a second, each way. Keys, if standard input is a terminal: c
cuts all connections, b swallows all bytes and tells nobody (b again lets them
pass), d and s switch --delay and --slow off and on. Dial the first address
instead of the second.";

/// Put faults between two peers: delay, cuts, black hole, slow line
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ProxyArgs {
    /// Where to listen; port 0 is a free one
    #[arg(value_name = "LISTEN", value_parser = Address::to_listen_on)]
    pub(crate) listen: Address,

    /// Where to pass the bytes on to
    #[arg(value_name = "HOST:PORT")]
    pub(crate) target: Address,

    /// Limit of each connect to HOST:PORT [default: 5s]
    #[arg(long, env = "NACP_CONNECT_TIMEOUT", hide_env = true, value_name = "TIME", value_parser = duration)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Hold all bytes back so long, each way
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) delay: Option<Duration>,

    /// Cut each connection at this age
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) cut_after: Option<Duration>,

    /// Swallow all bytes from this age on
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) blackhole_after: Option<Duration>,

    /// Pass on so many bytes a second, each way
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slow: Option<u32>,
}
