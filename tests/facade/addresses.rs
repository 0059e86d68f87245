//! Addresses with colons in them, from what a user writes to a link that is online (T-24).

use nacp::transport::AddressError;
use nacp::{ConnectError, ConnectStage, NApp, StartError, Target};

use crate::support::{Outcome, within};

async fn failure(app: &NApp, target: &str) -> ConnectError {
    match within(target, app.connect(target).into_future()).await {
        Err(error) => error,
        Ok(app) => panic!("{target} is {app}"),
    }
}

/// What is said of an address that is none, before anything is dialled.
async fn usage(app: &NApp, target: &str) -> String {
    let error = failure(app, target).await;
    assert_eq!(error.stage(), ConnectStage::Address, "{target}: {error}");
    error
        .address_error()
        .map_or_else(|| error.to_string(), AddressError::to_string)
}

#[tokio::test]
async fn numbers_with_a_port_are_dialled_and_without_one_a_port_is_asked_for() -> Outcome {
    // T-24, 1.
    let app = NApp::builder("app").start().await?;
    for listening in ["127.0.0.1:0", "[::1]:0"] {
        let server = NApp::builder("server").listen(listening).start().await?;
        let printed = server.listen_addresses()[0].clone();
        assert_eq!(app.connect(printed.as_str()).await?.as_str(), "server");
        app.disconnect("server").await?;
    }
    let asked = "port is missing: write [::1]:PORT";
    assert_eq!(usage(&app, "[::1]").await, asked);
    assert_eq!(usage(&app, "::1").await, asked);
    let ambiguous = "address is ambiguous: if the last part is the port, write [::1]:7000";
    assert_eq!(usage(&app, "::1:7000").await, ambiguous);
    Ok(())
}

#[tokio::test]
async fn a_scope_is_kept_or_refused_by_name() -> Outcome {
    // T-24, 2.
    let app = NApp::builder("app").start().await?;
    let asked = "port is missing: write [fe80::1%lo]:PORT";
    assert_eq!(usage(&app, "fe80::1%lo").await, asked);
    let unknown = failure(&app, "[fe80::1%no-such-if]:7000").await;
    assert_eq!(unknown.stage(), ConnectStage::Resolve);
    assert!(
        unknown.to_string().contains("fe80::1%no-such-if"),
        "{unknown}"
    );
    let target: Target = "server@[fe80::1%1]:7000".parse()?;
    assert_eq!(target.address(), "[fe80::1%1]:7000");
    Ok(())
}

#[tokio::test]
async fn a_name_is_resolved_when_it_is_dialled_each_time_anew() -> Outcome {
    // T-24, 3: whatever `localhost` is on this machine.
    let server = NApp::builder("server")
        .listen("localhost:0")
        .start()
        .await?;
    let port = server.listen_addrs()[0].port();
    let app = NApp::builder("app").start().await?;
    for name in ["localhost", "LOCALHOST"] {
        app.connect(format!("server@{name}:{port}")).await?;
        app.disconnect("server").await?;
    }
    for unknown in ["no-such-host.invalid:7000", "bücher.invalid:7000"] {
        for _ in 0..2 {
            assert_eq!(
                failure(&app, unknown).await.stage(),
                ConnectStage::Resolve,
                "{unknown}"
            );
        }
    }
    assert_eq!(
        usage(&app, "host.example").await,
        "port is missing: write host.example:PORT"
    );
    Ok(())
}

#[tokio::test]
async fn what_is_no_address_is_told_before_any_dial() -> Outcome {
    // T-24, 4.
    let app = NApp::builder("app").start().await?;
    for (text, expected) in [
        ("", "the target has no address"),
        (":7000", "host is missing"),
        ("host:", "port `` is not a number from 1 to 65535"),
        ("host:0", "port 0 cannot be dialled"),
        ("host:65536", "port `65536` is not a number from 1 to 65535"),
        ("host:-1", "port `-1` is not a number from 1 to 65535"),
        ("host:+1", "port `+1` is not a number from 1 to 65535"),
        ("host:7000x", "port `7000x` is not a number from 1 to 65535"),
        ("[::1", "brackets do not hold an IPv6 address"),
        ("::1]:7000", "brackets do not hold an IPv6 address"),
        ("[]:7000", "brackets do not hold an IPv6 address"),
    ] {
        assert_eq!(usage(&app, text).await, expected, "{text}");
        // The same text after the name of an app, and to listen on, is as wrong.
        if !text.is_empty() {
            assert_eq!(
                usage(&app, &format!("server@{text}")).await,
                expected,
                "{text}"
            );
        }
        let listening = NApp::builder("server").listen(text).start().await;
        if text != "host:0" {
            assert!(
                matches!(listening, Err(StartError::Listen { .. })),
                "{text}: {listening:?}"
            );
        }
    }
    // The last port is one, so this is resolved.
    let resolved = failure(&app, "no-such-host.invalid:65535").await;
    assert_eq!(resolved.stage(), ConnectStage::Resolve);
    assert_eq!(app.totals(), nacp::Totals::default());
    Ok(())
}

#[tokio::test]
async fn what_a_node_prints_where_it_listens_can_be_dialled() -> Outcome {
    // T-24, 5.
    let app = NApp::builder("app").start().await?;
    for listening in ["[::1]:0", "127.0.0.1:0", "[::]:0"] {
        let server = NApp::builder("server").listen(listening).start().await?;
        let printed = server.listen_addresses()[0].clone();
        let addr = server.listen_addrs()[0];
        assert_ne!(addr.port(), 0, "the real port");
        assert_eq!(printed, addr.to_string());
        assert_eq!(printed.starts_with('['), addr.is_ipv6());
        app.connect(printed.as_str()).await?;
        app.disconnect("server").await?;
        app.connect(format!("server@{printed}")).await?;
        app.disconnect("server").await?;
    }
    Ok(())
}
