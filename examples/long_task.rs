//! A task that takes its time: progress, a pause, a broken connection, and the result all the same.

use std::io::Write as _;
use std::time::Duration;

use nacp::{EventContext, HandlerError, LinkState, MemoryTransport, NApp};

/// Works in steps; pauses and stops between two of them when it is told to.
async fn work(ctx: EventContext, steps: u32) -> Result<String, HandlerError> {
    for step in 1..=steps {
        ctx.pause_point().await?;
        tokio::time::sleep(Duration::from_millis(5)).await;
        ctx.process(&step).await?;
    }
    Ok(format!("{steps} steps done"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Connections in memory, for they are easily broken; over TCP the program is the same.
    let network = MemoryTransport::new();
    let worker = NApp::builder("worker")
        .transport(network.clone())
        .listen("workshop")
        .event("work", work)
        .start()
        .await?;
    let app = NApp::builder("app")
        .transport(network.clone())
        .start()
        .await?;
    app.connect("worker@workshop").await?;

    let mut out = std::io::stdout();
    let mut watch = app.watch_links();
    let mut job = app.run("worker", "work", &20).await?;
    while let Some(item) = job.next().await {
        let step: u32 = item.decode()?;
        writeln!(out, "step {step}")?;
        match step {
            5 => {
                job.pause().await?;
                writeln!(out, "paused, and on again")?;
                job.resume().await?;
            }
            10 => {
                network.cut();
                while let Some(change) = watch.next().await {
                    writeln!(
                        out,
                        "the link is {:?}, resumed: {:?}",
                        change.state, change.resumed
                    )?;
                    if change.state == LinkState::Online {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    let result: String = job.response().await?;
    writeln!(out, "{result}; {:?} steps went unseen", job.missed())?;
    app.terminate().await;
    worker.terminate().await;
    Ok(())
}
