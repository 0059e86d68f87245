//! Two apps that cannot dial each other meet at a gateway.

use std::io::Write as _;

use nacp::{Allowlist, AppId, HandlerError, NApp};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let members = Allowlist::new([AppId::new("alice")?, AppId::new("bob")?]);
    let gateway = NApp::builder("gateway")
        .gateway()
        .policy(members)
        .listen("127.0.0.1:0")
        .start()
        .await?;
    let meeting_point = gateway.listen_addrs()[0];

    let bob = NApp::builder("bob")
        .ability("greet", async |name: String| {
            Ok::<_, HandlerError>(format!("hello {name}"))
        })
        .start()
        .await?;
    bob.connect(meeting_point).await?;

    let alice = NApp::builder("alice").start().await?;
    alice.connect(meeting_point).await?;
    let greeting: String = alice.request("bob", "greet", "Alice").await?;

    let mut out = std::io::stdout();
    writeln!(out, "bob says: {greeting}")?;

    let eve = NApp::builder("eve").start().await?;
    match eve.connect(meeting_point).await {
        Ok(_) => writeln!(out, "eve came in")?,
        Err(error) => writeln!(out, "eve: {error}")?,
    }
    for app in [alice, bob, gateway] {
        app.terminate().await;
    }
    Ok(())
}
