//! Scenario T-24: addresses with colons in them.

use std::net::SocketAddr;

use nacp_transport_tcp::{
    Address, AddressError, ConnectError, Options, connect, connect_to, resolve,
};

use crate::support::{End, encoded, listen, soon};

fn parse(text: &str) -> Result<Address, AddressError> {
    text.parse()
}

fn hint(text: &str) -> String {
    match parse(text) {
        Err(AddressError::MissingPort { hint }) => format!("missing port, {hint}"),
        Err(AddressError::Ambiguous { hint }) => format!("ambiguous, {hint}"),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn numbers_with_a_port_are_addresses() {
    for text in [
        "127.0.0.1:7000",
        "[::1]:7000",
        "[2001:db8::7]:1",
        "0.0.0.0:65535",
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
        assert_eq!(
            parse(text).unwrap(),
            text.parse::<SocketAddr>().unwrap().into()
        );
    }
    assert_eq!(parse("[0:0::1]:7000").unwrap().to_string(), "[::1]:7000");
}

#[test]
fn missing_port_is_asked_for_in_the_right_form() {
    assert_eq!(hint("[::1]"), "missing port, [::1]:PORT");
    assert_eq!(hint("::1"), "missing port, [::1]:PORT");
    assert_eq!(hint("::"), "missing port, [::]:PORT");
    assert_eq!(
        hint("1:2:3:4:5:6:7:8"),
        "missing port, [1:2:3:4:5:6:7:8]:PORT"
    );
    assert_eq!(hint("fe80::1%lo"), "missing port, [fe80::1%lo]:PORT");
    assert_eq!(hint("host.example"), "missing port, host.example:PORT");
}

#[test]
fn ipv6_address_without_brackets_is_ambiguous_and_never_guessed() {
    assert_eq!(hint("::1:7000"), "ambiguous, [::1]:7000");
    assert_eq!(hint("2001:db8::1:80"), "ambiguous, [2001:db8::1]:80");
    assert_eq!(hint("1:2:3:4:5:6:7:8:9"), "ambiguous, [1:2:3:4:5:6:7:8]:9");
    assert_eq!(hint("fe80::1%lo:7000"), "ambiguous, [fe80::1%lo]:7000");
    let text = parse("::1:7000").unwrap_err().to_string();
    assert_eq!(
        text,
        "address is ambiguous: if the last part is the port, write [::1]:7000"
    );
}

#[test]
fn scope_is_kept() {
    for text in [
        "[fe80::1%1]:7000",
        "[fe80::1%lo]:7000",
        "[fe80::1%eth0.5]:7000",
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    assert_eq!(parse("[fe80::1%]:7000"), Err(AddressError::EmptyScope));
    let scoped: SocketAddr = "[fe80::1%3]:7000".parse().unwrap();
    assert_eq!(Address::from(scoped).to_string(), "[fe80::1%3]:7000");
}

#[test]
fn names_stay_as_they_are_written() {
    for text in [
        "localhost:7000",
        "host.example:7000",
        "HOST:7000",
        "bücher.example:7000",
        "a_b-c:1",
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn what_is_no_address_is_an_error_of_usage() {
    let port = |port: &str| AddressError::BadPort { port: port.into() };
    let host = |host: &str| AddressError::BadHost { host: host.into() };
    for (text, error) in [
        ("", AddressError::Empty),
        (":7000", AddressError::MissingHost),
        ("host:", port("")),
        ("host:0", AddressError::PortZero),
        ("host:65536", port("65536")),
        ("host:-1", port("-1")),
        ("host:+1", port("+1")),
        ("host:7000x", port("7000x")),
        ("[::1", AddressError::BadBrackets),
        ("::1]:7000", AddressError::BadBrackets),
        ("[]:7000", AddressError::BadBrackets),
        ("[127.0.0.1]:7000", AddressError::BadBrackets),
        ("[::1]7000", AddressError::BadBrackets),
        ("[::1]:", port("")),
        ("a b:7000", host("a b")),
        ("http://host:7000", host("http://host:7000")),
        ("user@host:7000", host("user@host")),
        ("host%lo:7000", host("host%lo")),
        ("a:b:c", host("a:b:c")),
    ] {
        assert_eq!(parse(text), Err(error), "{text}");
    }
    assert!(parse("host:65535").is_ok());
    assert!(parse(&format!("{}:7000", "a".repeat(253))).is_ok());
    assert!(parse(&format!("{}:7000", "a".repeat(254))).is_err());
}

#[tokio::test]
async fn port_zero_can_be_listened_on_and_not_dialled() {
    let zero = Address::to_listen_on("127.0.0.1:0").unwrap();
    assert!(matches!(
        connect(&zero, &Options::default()).await,
        Err(ConnectError::PortZero)
    ));
    assert!(matches!(resolve(&zero).await, Err(ConnectError::PortZero)));
    let listener = listen("127.0.0.1:0", &Options::default()).await;
    assert_ne!(listener.local_addr().port(), 0);
}

/// Line 5: what a listener prints can be dialled, for each kind of listener.
#[tokio::test]
async fn what_a_listener_prints_can_be_dialled() {
    let options = Options::default();
    for address in [
        "127.0.0.1:0",
        "[::1]:0",
        "[::]:0",
        "0.0.0.0:0",
        "localhost:0",
    ] {
        let listener = listen(address, &options).await;
        let printed = listener.local_addr().to_string();
        let dialled = parse(&printed).unwrap();
        assert_eq!(printed.starts_with('['), listener.local_addr().is_ipv6());
        let (dialled, accepted) =
            soon(async { tokio::join!(connect(&dialled, &options), listener.accept()) }).await;
        let (near, mut far) = (End::new(dialled.unwrap()), End::new(accepted));
        near.send(&encoded(1, 10));
        assert_eq!(soon(far.recv_many(1)).await, [encoded(1, 10)], "{printed}");
    }
}

#[tokio::test]
async fn listener_on_all_ipv6_addresses_takes_ipv4_too() {
    let options = Options::default();
    let listener = listen("[::]:0", &options).await;
    let ipv4 = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().port()));
    let (dialled, accepted) =
        soon(async { tokio::join!(connect_to(ipv4, &options), listener.accept()) }).await;
    assert_eq!(dialled.unwrap().local_addr().unwrap().ip(), ipv4.ip());
    assert!(accepted.peer_addr().is_some());
}

#[tokio::test]
async fn name_is_resolved_when_it_is_dialled() {
    let addrs = soon(resolve(&parse("localhost:7000").unwrap()))
        .await
        .unwrap();
    assert!(
        addrs
            .iter()
            .all(|addr| addr.ip().is_loopback() && addr.port() == 7000),
        "{addrs:?}"
    );
    let unknown = soon(resolve(&parse("no-such-host.invalid:7000").unwrap())).await;
    let error = unknown.unwrap_err();
    assert_eq!(error.to_string(), "cannot resolve `no-such-host.invalid`");
    assert!(!error.is_timeout());
}

#[tokio::test]
async fn scope_goes_to_the_resolver() {
    let addrs = soon(resolve(&parse("[fe80::1%1]:7000").unwrap()))
        .await
        .unwrap();
    assert_eq!(addrs, ["[fe80::1%1]:7000".parse().unwrap()]);
    let unknown = soon(resolve(&parse("[fe80::1%no-such-if]:7000").unwrap())).await;
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "cannot resolve `fe80::1%no-such-if`"
    );
}
