//! A friendly peer to test against.

mod abilities;
mod friend;

use nacp::{LinkChange, LinkState};
use serde::Serialize;

pub(crate) use friend::Friend;

use crate::args::ServeArgs;
use crate::failure::{Failure, Stop};
use crate::interrupt::Interrupt;
use crate::output::Output;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Record {
    Listening {
        target: String,
        app: String,
        address: String,
    },
    Link {
        app: String,
        state: &'static str,
        resumed: Option<bool>,
    },
}

pub(crate) async fn run(
    args: ServeArgs,
    output: &mut Output,
    interrupt: &Interrupt,
) -> Result<(), Stop> {
    let friend = Friend::start(args.own, &args.listen).await?;
    let mut changes = friend.node().watch_links();
    let target = friend.target()?;
    output.human(&target)?;
    let listening = Record::Listening {
        app: friend.node().app_id().as_str().to_owned(),
        address: target.address.to_string(),
        target: target.to_string(),
    };
    output.record("serve", listening)?;
    output
        .notes()
        .note("abilities: echo, add, sleep, fail, sink; Ctrl-C ends it");
    let ended = loop {
        tokio::select! {
            biased;
            () = interrupt.times(1) => break Failure::interrupted("serve").into(),
            change = changes.next() => match change {
                None => break Failure::local("serve", "the node has ended").into(),
                Some(change) => if let Err(error) = told(&change, output) {
                    break Stop::Output(error);
                },
            },
        }
    };
    friend.close(interrupt).await;
    Err(ended)
}

fn told(change: &LinkChange, output: &mut Output) -> std::io::Result<()> {
    let state = match change.state {
        LinkState::Online => "online",
        LinkState::Offline => "offline",
        LinkState::Dropped => "dropped",
    };
    if output.is_human() {
        output
            .notes()
            .note(format_args!("{} is {state}", change.app));
    }
    output.record(
        "serve",
        Record::Link {
            app: change.app.as_str().to_owned(),
            state,
            resumed: change.resumed,
        },
    )
}
