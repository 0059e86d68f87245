//! Requests between two nodes over loopback sockets.

use nacp::{HandlerError, NApp, RequestError};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn an_ability_answers_over_tcp() -> Outcome {
    let math = NApp::builder("math")
        .listen("127.0.0.1:0")
        .ability("add", async |args: Add| {
            Ok::<_, HandlerError>(args.a + args.b)
        })
        .ability("fail", async |_: ()| {
            Err::<(), _>(HandlerError::failed("out of luck"))
        })
        .start()
        .await?;
    let app = NApp::builder("client").start().await?;
    let id = app.connect(math.listen_addrs()[0]).await?;
    assert_eq!(id.as_str(), "math");

    let sum: i64 = app.request("math", "add", &Add { a: 1, b: 2 }).await?;
    assert_eq!(sum, 3);

    let error = app.request::<()>("math", "fail", &()).await.unwrap_err();
    assert!(
        matches!(&error, RequestError::Rejected { why: Some(why), .. } if why == "processor-failed")
    );
    assert_eq!(error.remote_error().as_deref(), Some("out of luck"));

    let decl = app.introduce("math").await?;
    assert_eq!(decl.abilities.len(), 2);
    app.heartbeat("math").await?;
    app.disconnect("math").await?;
    assert!(app.links().is_empty());
    app.terminate().await;
    math.terminate().await;
    Ok(())
}
