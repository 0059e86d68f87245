//! Requests: abilities, their errors, the built-in ones.

use std::time::Duration;

use crate::support::{Net, Outcome, sees, target, within};
use nacp::proto::ciborium::Value as Cbor;
use nacp::{
    AbilityContext, ConnectError, ConnectStage, DialError, HandlerError, LinkState, NApp, Payload,
    RequestError, StartError, Undelivered,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

over_both! {
    async fn an_ability_answers_with_its_result_or_its_error(net: Net) -> Outcome {
        let math = net
            .server("math")
            .ability("add", async |args: Add| Ok::<_, HandlerError>(args.a + args.b))
            .ability("fail", async |(): ()| Err::<(), _>(HandlerError::failed("out of luck")))
            .ability("question", async |text: String| text.parse::<u64>())
            .ability("custom", async |(): ()| {
                let payload = Payload::new("tomorrow").unwrap_or_default();
                Err::<(), _>(HandlerError::custom("too-early", payload))
            })
            .ability("whoami", async |ctx: AbilityContext, (): ()| {
                Ok::<_, HandlerError>(ctx.caller().as_str().to_owned())
            })
            .ability_raw("raw", async |_, payload| Ok(payload))
            .start()
            .await?;
        let app = net.node("client").start().await?;
        assert_eq!(app.connect(target(&math)).await?.as_str(), "math");

        assert_eq!(app.request::<i64>("math", "add", &Add { a: 1, b: 2 }).await?, 3);
        assert_eq!(app.request::<u64>("math", "question", "42").await?, 42);
        assert_eq!(app.request::<String>("math", "whoami", &()).await?, "client");

        let error = app.request::<()>("math", "fail", &()).await.unwrap_err();
        assert_eq!(error.why(), Some("processor-failed"));
        assert_eq!(error.remote_error().as_deref(), Some("out of luck"));

        let error = app.request::<u64>("math", "question", "x").await.unwrap_err();
        assert_eq!(error.remote_error().as_deref(), Some("invalid digit found in string"));

        let error = app.request::<()>("math", "custom", &()).await.unwrap_err();
        assert_eq!(error.why(), Some("too-early"));

        let error = app.request::<()>("math", "add", "no numbers").await.unwrap_err();
        assert_eq!(error.why(), Some("processor-rejected"));

        let error = app.request::<()>("math", "nothing", &()).await.unwrap_err();
        assert_eq!(error.why(), Some("processor-failed"));
        assert_eq!(
            error.remote_error().as_deref(),
            Some("no ability handler registered for 'nothing'")
        );

        let wrong = app.request::<String>("math", "add", &Add { a: 1, b: 2 }).await;
        assert!(matches!(wrong, Err(RequestError::Decode(_))));

        let sent = Payload::from_cbor(vec![0x1b, 0, 0, 0, 0, 0, 0, 0, 5])?;
        let echoed = app.request_raw("math", "raw", sent.clone()).await?;
        assert_eq!(echoed.as_cbor(), sent.as_cbor());
        Ok(())
    }

    async fn both_sides_of_a_link_call_each_other(net: Net) -> Outcome {
        let one = net
            .server("one")
            .ability("double", async |n: u32| Ok::<_, HandlerError>(n * 2))
            .start()
            .await?;
        let two = net
            .node("two")
            .ability("triple", async |n: u32| Ok::<_, HandlerError>(n * 3))
            .start()
            .await?;
        two.connect(target(&one)).await?;
        sees(&one, "two", LinkState::Online).await;
        assert_eq!(two.request::<u32>("one", "double", &21).await?, 42);
        assert_eq!(one.request::<u32>("two", "triple", &14).await?, 42);
        Ok(())
    }

    async fn a_handler_calls_its_caller_back(net: Net) -> Outcome {
        let server = net
            .server("server")
            .ability("greet", async |ctx: AbilityContext, (): ()| {
                let name: String = ctx.napp().request(ctx.caller(), "name", &()).await?;
                Ok::<_, HandlerError>(format!("hello {name}"))
            })
            .start()
            .await?;
        let client = net
            .node("client")
            .ability("name", async |(): ()| Ok::<_, HandlerError>("Ada"))
            .start()
            .await?;
        client.connect(target(&server)).await?;
        assert_eq!(client.request::<String>("server", "greet", &()).await?, "hello Ada");
        Ok(())
    }

    async fn every_node_introduces_itself_and_beats(net: Net) -> Outcome {
        let math = net
            .server("math")
            .ability("add", async |args: Add| Ok::<_, HandlerError>(args.a + args.b))
            .describe("add", "the sum of two numbers")
            .event("count", async |_: nacp::EventContext, (): ()| Ok::<_, HandlerError>(()))
            .start()
            .await?;
        let app = net.node("client").start().await?;
        app.connect(target(&math)).await?;

        let decl = app.introduce("math").await?;
        assert_eq!(decl.abilities[0].name, "add");
        assert_eq!(decl.abilities[0].description, "the sum of two numbers");
        assert_eq!(decl.events[0].name, "count");
        assert_eq!(app.links()[0].decl, decl, "the register told the same");

        // As the reference answers it: a map with these two keys, each a list of maps.
        let raw = app.request_raw("math", "NApp.introduce", Payload::empty()).await?;
        let Cbor::Map(entries) = raw.to_value()? else { panic!("no map") };
        let keys: Vec<_> = entries.iter().map(|(key, _)| key.as_text().unwrap()).collect();
        assert_eq!(keys, ["events", "abilities"]);

        assert!(app.heartbeat("math").await? < Duration::from_secs(5));
        Ok(())
    }

    async fn a_request_has_its_own_limit(net: Net) -> Outcome {
        let slow = net
            .server("slow")
            .ability("never", async |ctx: AbilityContext, (): ()| {
                Err::<(), HandlerError>(ctx.interrupted().await.into())
            })
            .start()
            .await?;
        let app = net.node("client").start().await?;
        app.connect(target(&slow)).await?;
        let limit = Duration::from_millis(20);
        let error = app.request::<()>("slow", "never", &()).timeout(limit).await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::Timeout));
        assert_eq!(app.snapshot().calls, 0);
        Ok(())
    }

    async fn a_request_without_a_way_fails_at_once(net: Net) -> Outcome {
        let app = net.node("client").start().await?;
        let error = app.request::<()>("nobody", "x", &()).await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::NoRoute));
        let error = app.request::<()>("client", "x", &()).await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::SelfAddressed));
        let error = app.request::<()>("", "x", &()).await.unwrap_err();
        assert!(matches!(error, RequestError::App(_)));
        Ok(())
    }

    async fn a_thousand_requests_at_once_are_each_answered(net: Net) -> Outcome {
        let echo = net
            .server("echo")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .start()
            .await?;
        let app = net.node("client").start().await?;
        app.connect(target(&echo)).await?;
        let calls: Vec<_> = (0..1000u32)
            .map(|n| tokio::spawn({
                let app = app.clone();
                async move { app.request::<u32>("echo", "echo", &n).await }
            }))
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(within("an answer", call).await??, n as u32);
        }
        Ok(())
    }

    async fn a_large_payload_goes_both_ways(net: Net) -> Outcome {
        let echo = net.server("echo").ability_raw("echo", async |_, payload| Ok(payload)).start().await?;
        let app = net.node("client").start().await?;
        app.connect(target(&echo)).await?;
        let bytes: Vec<u8> = (0..8u32 << 20).map(|n| (n % 251) as u8).collect();
        let sent = Payload::byte_string(&bytes);
        let echoed = within("the echo", app.request_raw("echo", "echo", sent)).await?;
        assert_eq!(echoed.as_byte_string().as_deref(), Some(&bytes[..]));
        Ok(())
    }

    async fn a_good_bye_drops_the_link_on_both_sides(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        sees(&server, "client", LinkState::Online).await;
        within("the good-bye", client.disconnect("server")).await?;
        assert!(client.links().is_empty());
        sees(&server, "client", LinkState::Dropped).await;
        within("the second end", async {
            server.terminate().await;
            client.terminate().await;
        })
        .await;
        Ok(())
    }

    async fn the_name_at_an_address_must_be_the_one_expected(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").response_timeout(Duration::from_millis(200)).start().await?;
        let wrong = format!("other@{}", server.listen_addresses()[0]);
        let error = within("the failure", client.connect(wrong).into_future()).await.unwrap_err();
        assert_eq!(error.stage(), ConnectStage::Handshake);
        let ConnectError::Handshake(error) = error else { panic!("{error}") };
        assert!(matches!(error, DialError::ResponseTimeout | DialError::ExpectMismatch { .. }));
        Ok(())
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_builder_is_told_by_start() {
    let start = NApp::builder("").start().await;
    assert!(matches!(start, Err(StartError::App(_))));
    let ability = async |(): ()| Ok::<_, HandlerError>(());
    let start = NApp::builder("a")
        .ability("x", ability)
        .ability("x", ability);
    assert!(matches!(
        start.start().await,
        Err(StartError::DuplicateHandler { .. })
    ));
    let start = NApp::builder("a").ack_timeout(Duration::ZERO).start().await;
    assert!(matches!(start, Err(StartError::Config(_))));
    let start = NApp::builder("a").listen("127.0.0.1").start().await;
    let Err(StartError::Listen { address, .. }) = start else {
        panic!("it listens");
    };
    assert_eq!(address, "127.0.0.1");
}

#[tokio::test]
async fn connecting_fails_with_its_stage() -> Outcome {
    let app = NApp::builder("app").start().await?;
    let stage = async |target: &str| app.connect(target).await.unwrap_err().stage();
    assert_eq!(stage("").await, ConnectStage::Address);
    assert_eq!(stage("::1:7000").await, ConnectStage::Address);
    assert_eq!(stage("*@127.0.0.1:7000").await, ConnectStage::Address);
    assert_eq!(stage("127.0.0.1:0").await, ConnectStage::Address);
    assert_eq!(
        stage("no.such.host.invalid:7000").await,
        ConnectStage::Resolve
    );
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    assert_eq!(stage(&free.to_string()).await, ConnectStage::Connect);
    Ok(())
}

#[tokio::test]
async fn a_peer_that_is_none_is_told_apart_from_one_that_closes() -> Outcome {
    use tokio::io::AsyncWriteExt;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream
            .write_all(&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".repeat(2))
            .await?;
        let (stream, _) = listener.accept().await?;
        drop(stream);
        Ok::<_, std::io::Error>(())
    });
    let app = NApp::builder("app").start().await?;
    let error = within("the fault", app.connect(addr).into_future())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ConnectError::Fault {
                reason: "version-mismatch"
            }
        ),
        "{error:?}"
    );
    let error = within("the close", app.connect(addr).into_future())
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Handshake(DialError::TransportClosed)),
        "{error:?}"
    );
    Ok(())
}
