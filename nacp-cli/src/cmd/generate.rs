//! What is made from the arguments' own description.

use std::fs;
use std::io;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Stop};
use crate::output::Output;

pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> Result<(), Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "nacp-cli", &mut script);
    Ok(output.plain(String::from_utf8_lossy(&script).trim_end())?)
}

pub(crate) fn man(args: &ManArgs, output: &mut Output) -> Result<(), Stop> {
    let Some(dir) = &args.dir else {
        let page = page(Man::new(Args::command()))?;
        return Ok(output.plain(page.trim_end())?);
    };
    let mut program = Args::command();
    program.build();
    let failed = |error: io::Error| {
        Failure::local("man", format!("cannot write to {}: {error}", dir.display()))
    };
    fs::create_dir_all(dir).map_err(failed)?;
    for command in std::iter::once(&program).chain(program.get_subcommands()) {
        let name = match command.get_name() {
            "nacp-cli" => "nacp-cli.1".to_owned(),
            command => format!("nacp-cli-{command}.1"),
        };
        fs::write(dir.join(name), page(Man::new(command.clone()))?).map_err(failed)?;
    }
    Ok(())
}

fn page(man: Man) -> Result<String, Failure> {
    let mut page = Vec::new();
    let rendered = man.render(&mut page);
    rendered.map_err(|error| Failure::local("man", error.to_string()))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
