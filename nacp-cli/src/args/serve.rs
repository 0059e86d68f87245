use std::time::Duration;

use clap::Args;
use nacp::proto::AppId;
use nacp::transport::Address;

use super::duration;

const EXAMPLES: &str = r#"Examples:
  nacp-cli serve                 on 127.0.0.1:7420, for this machine
  nacp-cli serve '[::]:7420'     for the network, IPv6 and IPv4
  nacp-cli serve 127.0.0.1:0     on a free port; the first line tells which

Its abilities: echo gives back its argument; add takes {"a":1,"b":2}; sleep
takes {"ms":500}; fail always fails, with {"error":".."}; sink takes anything
and answers its size in bytes. Its events: countdown takes
{"from":5,"ms":500}, sends each number, and obeys pause, resume, abort and a
number as input; flood is for `bench`, and emits what it is signalled to. It
emits clock:tick every second for who subscribes."#;

/// Run a friendly peer to test against
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 is a free one
    #[arg(
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:7420",
        value_parser = Address::to_listen_on
    )]
    pub(crate) listen: Address,

    /// Its AppId
    #[arg(
        long = "as",
        env = "NACP_AS",
        hide_env = true,
        value_name = "APP",
        default_value = "nacp-cli-serve"
    )]
    pub(crate) own: AppId,

    /// Forward messages between the apps that are linked with it
    #[arg(long)]
    pub(crate) gateway: bool,

    /// Let every answer wait
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) latency: Option<Duration>,

    /// The share of requests that fail: 0.05 or 5%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) error_rate: f64,
}

/// A number from 0 to 1, or percent.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| "is no number".to_owned())?;
    let share = number / unit;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("must be from 0 to 1, or from 0% to 100%".to_owned())
    }
}
