//! What strangers send: each costs them their connection, and nobody else anything.

use std::net::SocketAddr;
use std::time::Duration;

use nacp::proto::{Body, Message, MessageId, PeerInfo, Register, Version};
use nacp::transport::{Lane, Options, connect_to};
use nacp::{AppId, HandlerError, NApp, NodeEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::hand::{Hand, fresh_id, request};
use crate::repeats::resident_bytes;
use crate::support::{Outcome, reason_of, seeded, target, until, within};

/// A node that serves one healthy app while strangers come.
async fn besieged() -> Result<(NApp, NApp, SocketAddr), Box<dyn std::error::Error>> {
    besieged_by_patient_ones(Duration::from_millis(300)).await
}

/// The same, with this time to register.
async fn besieged_by_patient_ones(
    handshake: Duration,
) -> Result<(NApp, NApp, SocketAddr), Box<dyn std::error::Error>> {
    let server = NApp::builder("server")
        .listen("127.0.0.1:0")
        .handshake_timeout(handshake)
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let healthy = NApp::builder("healthy").start().await?;
    healthy.connect(target(&server)).await?;
    let addr = server.listen_addrs()[0];
    Ok((server, healthy, addr))
}

/// A frame with these numbers in its header.
fn frame(total: u32, this: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![9; 16];
    bytes.extend_from_slice(&0u32.to_be_bytes());
    bytes.extend_from_slice(&total.to_be_bytes());
    bytes.extend_from_slice(&this.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0xcf, 1]);
    bytes.extend_from_slice(body);
    bytes
}

/// A message that is whole in one frame.
fn whole(body: &[u8]) -> Vec<u8> {
    frame(body.len() as u32, 32 + body.len() as u32, body)
}

#[tokio::test]
async fn each_fault_closes_its_peer_with_its_one_reason() -> Outcome {
    let (server, healthy, addr) = besieged().await?;
    let mut events = server.events();
    let mut wrong_magic = frame(10, 42, &[0; 10]);
    wrong_magic[30] = 0xce;
    // The header of one frame says nothing of what the next is.
    let mut longer = frame(10, 37, &[0; 5]);
    longer.extend(frame(11, 37, &[0; 5]));
    let attacks: [(&str, Vec<u8>); 15] = [
        ("bad-magic", wrong_magic),
        ("frame-out-of-bounds", frame(10, 43, &[0; 11])),
        ("total-size-changed", longer),
        (
            "decode-failed",
            whole(&registering(&"x".repeat(256), "server")),
        ),
        ("decode-failed", whole(&registering("", "server"))),
        ("decode-failed", whole(&[0x81; 100_000])),
        ("message-too-large", frame(0xffff_ffff, 0x8000_0000, &[])),
        ("frame-too-small", frame(10, 31, &[0; 40])),
        ("frame-too-large", frame(10, 0x8000_0001, &[0; 40])),
        (
            "version-mismatch",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        ),
        ("decode-failed", whole(&[0x9b, 0, 0, 0, 1, 0, 0, 0, 0])),
        ("decode-failed", whole(&[0xbb, 0, 0, 0, 1, 0, 0, 0, 0])),
        ("decode-failed", whole(&[0x7b, 0, 0, 0, 1, 0, 0, 0, 0])),
        ("decode-failed", whole(&[0x5b, 0, 0, 0, 1, 0, 0, 0, 0])),
        ("handshake-timeout", Vec::new()),
    ];
    for (expected, attack) in attacks {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(&attack).await?;
        let reason = within(expected, peer_error(&mut events)).await;
        assert_eq!(reason, expected);
        // Our close may be a reset, or find bytes unread.
        let _ = within("the close", stream.read_to_end(&mut Vec::new())).await;
        assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
        assert_eq!(server.links().len(), 1);
    }
    Ok(())
}

/// A register as bytes, from and to names that may be none.
fn registering(from: &str, to: &str) -> Vec<u8> {
    use nacp::proto::ciborium::{Value, cbor, into_writer};
    let message: Value = cbor!({
        "v" => {"major" => 2, "minor" => 1},
        "type" => "register",
        "id" => "by-hand",
        "from" => from,
        "to" => to,
        "payload" => {"isGateway" => false, "decl" => {"events" => [], "abilities" => []}},
        "meta" => {},
    })
    .unwrap();
    let mut bytes = Vec::new();
    into_writer(&message, &mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn the_longest_name_is_taken_and_one_byte_more_is_none() -> Outcome {
    let (server, _healthy, addr) = besieged().await?;
    let longest = "x".repeat(255);
    let mut stream = TcpStream::connect(addr).await?;
    stream
        .write_all(&whole(&registering(&longest, "server")))
        .await?;
    until("the register", || server.links().len() == 2).await;
    assert!(server.link(&AppId::new(&longest)?).is_some());
    Ok(())
}

#[tokio::test]
async fn a_frame_that_ends_with_its_stream_is_a_fault_and_a_whole_one_before_it_counts() -> Outcome
{
    let (server, healthy, addr) = besieged().await?;
    let mut events = server.events();
    // In the header, in the body, and behind a register that is whole.
    let truncated = frame(100, 132, &[7; 50]);
    let mut registered = whole(&registering("short", "server"));
    registered.extend(&truncated);
    for attack in [truncated[..20].to_vec(), truncated, registered] {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(&attack).await?;
        stream.shutdown().await?;
        let reason = within("the fault", peer_error(&mut events)).await;
        assert_eq!(reason, "transport-error");
        let _ = within("the close", stream.read_to_end(&mut Vec::new())).await;
    }
    assert!(
        server.link(&AppId::new("short")?).is_some(),
        "it was bound before"
    );
    assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_payload_that_is_nested_too_deep_is_refused_with_one_report() -> Outcome {
    // T-01, 5: arrays in arrays, and tags on tags, from an app that has registered.
    for nesting in [0x81, 0xc1] {
        let (server, healthy, addr) = besieged().await?;
        let mut hand = Hand::over("stranger", "server", TcpStream::connect(addr).await?);
        hand.register(&[]).await?;
        assert!(hand.is_answered().await);
        let mut events = server.events();
        let marked = request(
            nacp::RequestKind::Ability,
            "echo",
            nacp::Payload::new("here")?,
        );
        let bytes = hand.message(fresh_id(), marked).encode().to_bytes();
        let at = bytes
            .windows(5)
            .position(|window| window == b"\x64here")
            .ok_or("no payload")?;
        let mut deep = bytes[..at].to_vec();
        deep.extend(std::iter::repeat_n(nesting, 100_000));
        deep.push(0xf6);
        deep.extend(&bytes[at + 5..]);
        hand.sender
            .queue(Lane::Bulk, bytes::Bytes::from(deep).into())?;
        hand.sender.flush();
        assert_eq!(
            within("the fault", peer_error(&mut events)).await,
            "decode-failed"
        );
        hand.rest().await;
        assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
        while let Some(Some(event)) = futures_util::FutureExt::now_or_never(events.next()) {
            assert_ne!(&*event.name, "nact:peer:error", "one report");
        }
    }
    Ok(())
}

/// Longer than any of these tests.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn silent_connections_beyond_the_limit_are_closed_and_lock_nobody_out_for_ever() -> Outcome {
    const LIMIT: usize = 256;
    let (server, healthy, addr) = besieged_by_patient_ones(LONG).await?;
    let mut events = server.events();
    let mut silent = Vec::new();
    for _ in 0..LIMIT {
        silent.push(TcpStream::connect(addr).await?);
    }
    until("all of them", || {
        server.snapshot().unregistered_peers == LIMIT
    })
    .await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(addr).await?;
        let _ = within("the close", stream.read_to_end(&mut Vec::new())).await;
        assert_eq!(
            within("the reason", peer_error(&mut events)).await,
            "limit-reached"
        );
        assert!(server.snapshot().unregistered_peers <= LIMIT);
        assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
    }
    drop(silent);
    until("the end of them", || {
        server.snapshot().unregistered_peers == 0
    })
    .await;
    let late = NApp::builder("late").start().await?;
    within("the register", late.connect(target(&server)).into_future()).await?;
    Ok(())
}

#[tokio::test]
async fn declared_sizes_take_no_memory_before_their_bytes_come() -> Outcome {
    // T-01, 1 to 3: 2 GiB each on a hundred connections and in 63 messages of a registered app.
    let (server, healthy, addr) = besieged_by_patient_ones(LONG).await?;
    let mut registered = TcpStream::connect(addr).await?;
    registered
        .write_all(&whole(&registering("registered", "server")))
        .await?;
    until("the register", || server.links().len() == 2).await;
    let before = resident_bytes();
    let mut streams = Vec::new();
    let mut sent = 0;
    for n in 0..163u8 {
        let mut first = frame(0x7fff_ffff, 32 + 1024, &[7; 1024]);
        first[..16].fill(n);
        sent += first.len();
        if n < 63 {
            registered.write_all(&first).await?;
        } else {
            let mut stream = TcpStream::connect(addr).await?;
            stream.write_all(&first).await?;
            streams.push(stream);
        }
        assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
    }
    let grown = resident_bytes().saturating_sub(before);
    // Besides the bytes themselves, a connection has buffers for reading and tasks of its own.
    let connections = streams.len() * (64 << 10);
    assert!(
        grown <= 2 * sent + (1 << 20) + connections,
        "{grown} bytes for {sent}"
    );
    assert_eq!(server.links().len(), 2);

    // Two more than may be unfinished.
    let mut events = server.events();
    for n in 200..202u8 {
        let mut first = frame(0x7fff_ffff, 33, &[7]);
        first[..16].fill(n);
        registered.write_all(&first).await?;
    }
    let reason = within("the fault", peer_error(&mut events)).await;
    assert_eq!(reason, "limit-reached");
    Ok(())
}

async fn peer_error(events: &mut nacp::Events) -> String {
    loop {
        let event: NodeEvent = events.next().await.expect("the node ended");
        if &*event.name == "nact:peer:error" {
            return reason_of(&event).unwrap();
        }
    }
}

#[tokio::test]
async fn a_register_that_cannot_be_is_answered_with_its_reason() -> Outcome {
    let (server, healthy, addr) = besieged().await?;
    let wrong_version = Version { major: 3, minor: 0 };
    for (expected, app, version) in [
        ("version-mismatch", "stranger", wrong_version),
        ("appId-in-use", "server", Version::CURRENT),
        ("appId-in-use", "healthy", Version::CURRENT),
    ] {
        let why = within("the refusal", register(addr, app, version)).await?;
        assert_eq!(why.as_deref(), Some(expected));
    }
    assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
    assert_eq!(server.links().len(), 1);
    Ok(())
}

/// Registers by hand; returns `whyNotOk`.
async fn register(
    addr: SocketAddr,
    app: &str,
    version: Version,
) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let connection = connect_to(addr, &Options::default()).await?;
    let (sender, mut receiver, writer) = connection.split();
    tokio::spawn(writer.run(|_| ()));
    let register = Register {
        version,
        info: PeerInfo::default(),
        holds: Vec::new(),
        auth: None,
    };
    let message = Message::new(
        MessageId::new("register")?,
        AppId::new(app)?,
        AppId::new("server")?,
        Body::Register(Box::new(register)),
    );
    sender.queue(Lane::Control, message.encode())?;
    sender.flush();
    loop {
        let batch = receiver.recv().await?.ok_or("closed without an answer")?;
        for inbound in batch.messages.drain(..) {
            if let Some(Body::Response(response)) = inbound.decoded.into_message().map(|m| m.body) {
                let nacp::proto::Outcome::NotOk { why } = response.outcome else {
                    return Ok(None);
                };
                return Ok(why.map(Into::into));
            }
        }
    }
}

#[tokio::test]
async fn random_bytes_and_garbled_messages_harm_nobody() -> Outcome {
    let (seed, mut random) = seeded();
    let (server, healthy, addr) = besieged().await?;
    for round in 0..100 {
        let mut bytes = if round % 2 == 0 {
            (0..4096).map(|_| random(256) as u8).collect()
        } else {
            // A register and more, with a few bytes changed.
            let mut bytes = whole(&registering("stranger", "server"));
            bytes.extend(whole(&registering("another", "server")));
            for _ in 0..=random(4) {
                let at = random(bytes.len() as u64) as usize;
                bytes[at] = random(256) as u8;
            }
            bytes
        };
        bytes.truncate(random(bytes.len() as u64 + 1) as usize + 1);
        let mut stream = TcpStream::connect(addr).await?;
        // It may be closed in the middle of it.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let what = format!("the close in round {round}, seed {seed}");
        let _ = within(&what, stream.read_to_end(&mut Vec::new())).await;
        let echoed = healthy.request::<u32>("server", "echo", &round).await;
        assert_eq!(echoed.ok(), Some(round), "round {round}, seed {seed}");
    }
    assert_eq!(
        server.link(healthy.app_id()).map(|link| link.replayed),
        Some(0),
        "seed {seed}"
    );
    Ok(())
}
