use anstream::{AutoStream, ColorChoice};
use tokio::runtime::{Builder, Runtime};
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Args, Command, GlobalArgs};
use crate::cmd;
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::{Format, Output};
use crate::usage;

const WELCOME: &str = "\
Three commands to begin with:

  nacp-cli probe                          probe a peer inside this process
  nacp-cli serve                          run a peer to test against, on 127.0.0.1:7420
  nacp-cli call add -d '{\"a\":1,\"b\":2}'    call it, from another terminal

nacp-cli --help lists the others.";

/// Runs what was typed.
pub(crate) fn run(args: Args) -> u8 {
    let Args {
        global, command, ..
    } = args;
    let mut output = Output::new(global.format(), global.color(), global.quiet)
        .without_progress(global.no_progress);
    let Some(command) = command else {
        return usage::written(output.plain(WELCOME)).number();
    };
    log(&global);
    let name = command.name();
    if command.is_stream() {
        output.stream();
    }
    let result = if output.format() == Format::Csv && !command.has_table() {
        let failure = Failure::usage(format!("{name} has no csv form"));
        Err(failure.hint("csv is for results that are a table").into())
    } else {
        carry_out(command, &mut output)
    };
    match result {
        Ok(()) => Exit::Fine.number(),
        Err(Stop::Status(number)) => number,
        Err(stop) => ended(name, stop, &mut output).number(),
    }
}

fn ended(name: &str, stop: Stop, output: &mut Output) -> Exit {
    let (failure, written) = match stop {
        Stop::Output(error) => return usage::written(Err(error)),
        Stop::Status(_) => return Exit::Fine,
        Stop::Told(failure) => (failure, Ok(())),
        Stop::Failed(failure) => {
            let written = output.failure_document(name, &failure);
            (failure, written)
        }
    };
    if let Err(error) = written {
        return usage::written(Err(error));
    }
    output.notes().failure(name, &failure);
    failure.exit
}

fn carry_out(command: Command, output: &mut Output) -> Result<(), Stop> {
    match command {
        Command::Probe(args) => online(output, async |o, i| cmd::probe::run(args, o, i).await),
        Command::Ping(args) => online(output, async |o, i| cmd::ping::run(args, o, i).await),
        Command::Check(args) => online(output, async |o, i| cmd::check::run(args, o, i).await),
        Command::Watch(args) => online(output, async |o, i| cmd::watch::run(args, o, i).await),
        Command::Call(args) => online(output, async |o, i| cmd::call::run(args, o, i).await),
        Command::Signal(args) => online(output, async |o, i| cmd::signal::run(args, o, i).await),
        Command::Sub(args) => online(output, async |o, i| cmd::sub::run(args, o, i).await),
        Command::Emit(args) => online(output, async |o, i| cmd::emit::run(args, o, i).await),
        Command::Bench(args) => online(output, async |o, i| cmd::bench::run(args, o, i).await),
        Command::Serve(args) => online(output, async |o, i| cmd::serve::run(args, o, i).await),
        Command::Proxy(args) => online(output, async |o, i| cmd::proxy::run(args, o, i).await),
        Command::Top(args) => online(output, async |o, i| cmd::top::run(args, o, i).await),
        Command::Decode(args) => cmd::decode::run(&args, output),
        Command::Explain(args) => cmd::explain::run(&args, output),
        Command::Completions(args) => cmd::generate::completions(&args, output),
        Command::Man(args) => cmd::generate::man(&args, output),
    }
}

/// Runs what needs a network, and Ctrl-C to end it.
fn online(
    output: &mut Output,
    command: impl AsyncFnOnce(&mut Output, &Interrupt) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let runtime = runtime().map_err(|error| Failure::local("runtime", error.to_string()))?;
    let result = runtime.block_on(async {
        let interrupt = Interrupt::listen();
        let interrupt = interrupt.map_err(|error| Failure::local("signals", error.to_string()))?;
        command(output, &interrupt).await
    });
    // A resolver that hangs on a thread of its own is not waited for.
    runtime.shutdown_background();
    result
}

/// Two threads beside the caller's: while it waits for a slow reader of its output, the link lives.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

/// Once: what happens to links; twice: each message, and what the libraries below tell; three times:
/// each frame of the connections that were dialled.
fn log(global: &GlobalArgs) {
    let filter = match global.verbose {
        0 => return,
        1 => "nacp=debug",
        2 => "debug",
        _ => "trace",
    };
    let (filter, has_messages) = match EnvFilter::try_from_default_env() {
        Ok(asked) => (asked, true),
        Err(_) => (EnvFilter::new(filter), global.verbose > 1),
    };
    let is_of_links = filter_fn(move |metadata| has_messages || !is_of_message(metadata));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured(global))
        .log_internal_errors(false)
        .with_filter(is_of_links);
    // Only the first subscriber of a process counts, and this is the first.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(log)
        .try_init();
}

/// Whether it tells of one message, and not of a link or of a fault.
fn is_of_message(metadata: &Metadata<'_>) -> bool {
    let names = metadata.fields();
    let is_report = ["message_type", "class"]
        .iter()
        .any(|name| names.field(name).is_some());
    is_report && *metadata.level() >= Level::DEBUG
}

fn is_coloured(global: &GlobalArgs) -> bool {
    let asked = global.color();
    let choice = if asked == ColorChoice::Auto {
        AutoStream::choice(&std::io::stderr())
    } else {
        asked
    };
    choice != ColorChoice::Never
}
