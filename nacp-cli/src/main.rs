//! Probe, call and watch NACP peers.

mod args;
mod argument;
mod cmd;
mod config;
mod diag;
mod dial;
mod escape;
mod exit;
mod failure;
mod interrupt;
mod keys;
mod latency;
mod output;
mod reasons;
mod run;
mod target;
mod trace;
mod usage;
mod value;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => run::run(args).into(),
        Err(error) => usage::answer(&error).into(),
    }
}
