use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  nacp-cli decode capture.bin                    a recorded stream of frames
  nacp-cli decode --hex a16161f5                 CBOR on the command line
  xxd -p capture.bin | nacp-cli decode --hex -   digits from standard input
  nacp-cli decode --diag --type cbor body.cbor   in diagnostic notation

Without --type the bytes are taken for frames if they begin with a frame header,
else for a message if they are a map with its keys, else for CBOR. What is wrong
is told with the number of its byte.";

/// Show frames, messages or CBOR as JSON or diagnostic notation
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DecodeArgs {
    /// A file, or - for standard input; with --hex, digits are taken too
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) input: String,

    /// The input is hexadecimal digits, white space between them
    #[arg(short = 'x', long)]
    pub(crate) hex: bool,

    /// What the bytes are [default: what they look like]
    #[arg(long = "type", value_name = "WHAT", value_enum)]
    pub(crate) what: Option<What>,

    /// Show payloads in diagnostic notation (RFC 8949), which keeps every detail
    #[arg(long)]
    pub(crate) diag: bool,
}

/// What bytes can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// A stream of NACT frames, as on the wire.
    Frames,
    /// One NACP message.
    Message,
    /// Any CBOR item.
    Cbor,
}
