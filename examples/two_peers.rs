//! Two apps in one process, over TCP: one has an ability, the other calls it.

use std::io::Write as _;

use nacp::{HandlerError, NApp};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let math = NApp::builder("math")
        .listen("127.0.0.1:0")
        .ability("add", async |args: Add| {
            Ok::<_, HandlerError>(args.a + args.b)
        })
        .describe("add", "the sum of two numbers")
        .start()
        .await?;

    let app = NApp::builder("app").start().await?;
    let name = app.connect(math.listen_addrs()[0]).await?;
    let sum: i64 = app.request(&name, "add", &Add { a: 1, b: 2 }).await?;

    let mut out = std::io::stdout();
    writeln!(
        out,
        "{name} has {} ability and says 1 + 2 = {sum}",
        app.introduce(&name).await?.abilities.len()
    )?;

    app.terminate().await;
    math.terminate().await;
    Ok(())
}
