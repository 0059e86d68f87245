//! What is made from the arguments' own description.

use std::fs;
use std::io;

use clap::CommandFactory;
use clap_mangen::Man;
use serde::Serialize;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Stop};
use crate::output::Output;

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

#[derive(Serialize)]
struct Page {
    page: String,
}

/// Where they were written to.
#[derive(Serialize)]
struct Pages {
    pages: Vec<String>,
}

pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> Result<(), Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "nacp-cli", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    output.human(script.trim_end())?;
    let shell = args.shell.to_string();
    Ok(output.document("completions", Script { shell, script }, None)?)
}

pub(crate) fn man(args: &ManArgs, output: &mut Output) -> Result<(), Stop> {
    let Some(dir) = &args.dir else {
        let page = page(Man::new(Args::command()))?;
        output.human(page.trim_end())?;
        return Ok(output.document("man", Page { page }, None)?);
    };
    let mut program = Args::command();
    program.build();
    let failed = |error: io::Error| {
        Failure::local("man", format!("cannot write to {}: {error}", dir.display()))
    };
    fs::create_dir_all(dir).map_err(failed)?;
    let mut pages = Vec::new();
    for command in std::iter::once(&program).chain(program.get_subcommands()) {
        let name = match command.get_name() {
            "nacp-cli" => "nacp-cli.1".to_owned(),
            command => format!("nacp-cli-{command}.1"),
        };
        let path = dir.join(name);
        fs::write(&path, page(Man::new(command.clone()))?).map_err(failed)?;
        pages.push(path.display().to_string());
    }
    Ok(output.document("man", Pages { pages }, None)?)
}

fn page(man: Man) -> Result<String, Failure> {
    let mut page = Vec::new();
    let rendered = man.render(&mut page);
    rendered.map_err(|error| Failure::local("man", error.to_string()))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
