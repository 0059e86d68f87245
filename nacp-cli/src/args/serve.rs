use clap::Args;
use nacp::proto::AppId;
use nacp::transport::Address;

const EXAMPLES: &str = "\
Examples:
  nacp-cli serve                          on 127.0.0.1:7420, for this machine
  nacp-cli serve '[::]:7420'              for the network, IPv6 and IPv4
  nacp-cli serve 127.0.0.1:0              on a free port; the first line tells which

Its abilities: echo gives back its argument; add takes {\"a\":1,\"b\":2}; sleep takes {\"ms\":500};
fail always fails, with {\"error\":\"..\"}; sink takes anything and answers its size in bytes.";

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
}
