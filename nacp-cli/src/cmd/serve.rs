//! A friendly peer to test against.

mod abilities;
mod countdown;
mod flood;
mod friend;
mod trouble;

use std::time::Duration;

use nacp::{LinkChange, LinkState, NApp};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

pub(crate) use flood::{FloodArgs, flood_event};
pub(crate) use friend::Friend;
pub(crate) use trouble::Trouble;

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
    let mut builder = NApp::builder(args.own).listen(args.listen);
    if args.gateway {
        builder = builder.gateway();
    }
    let trouble = Trouble {
        latency: args.latency,
        error_rate: args.error_rate,
    };
    let friend = Friend::start(builder, trouble).await?;
    let mut changes = friend.node().watch_links();
    let target = friend.target()?;
    output.human(&target)?;
    let listening = Record::Listening {
        app: friend.node().app_id().as_str().to_owned(),
        address: target.address.to_string(),
        target: target.to_string(),
    };
    output.record("serve-event", listening)?;
    if !friend.is_private() {
        output
            .notes()
            .note("every app that reaches this address may register");
    }
    output.notes().note(
        "abilities echo, add, sleep, fail, sink; events countdown, flood; emits clock:tick every \
         second; Ctrl-C ends it",
    );
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut tick = 0_u64;
    let ended = loop {
        tokio::select! {
            biased;
            () = interrupt.times(1) => break Failure::interrupted("serve").into(),
            _ = ticks.tick() => {
                // A number can always be encoded.
                let _ = friend.node().emit("clock:tick", &tick);
                tick += 1;
            }
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
        "serve-event",
        Record::Link {
            app: change.app.as_str().to_owned(),
            state,
            resumed: change.resumed,
        },
    )
}
