//! What strangers send: each costs them their connection, and nobody else anything.

use std::net::SocketAddr;
use std::time::Duration;

use nacp::proto::{Body, Message, MessageId, PeerInfo, Register, Version};
use nacp::transport::{Lane, Options, connect_to};
use nacp::{AppId, HandlerError, NApp, NodeEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Outcome, reason_of, target, within};

/// A node that serves one healthy app while strangers come.
async fn besieged() -> Result<(NApp, NApp, SocketAddr), Box<dyn std::error::Error>> {
    let server = NApp::builder("server")
        .listen("127.0.0.1:0")
        .handshake_timeout(Duration::from_millis(300))
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
    let attacks: [(&str, Vec<u8>); 9] = [
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
async fn random_bytes_harm_nobody() -> Outcome {
    let (server, healthy, addr) = besieged().await?;
    for _ in 0..50 {
        let mut bytes = vec![0; 4096];
        getrandom::fill(&mut bytes).unwrap();
        let mut stream = TcpStream::connect(addr).await?;
        // It may be closed in the middle of it.
        let _ = stream.write_all(&bytes).await;
        let _ = within("the close", stream.read_to_end(&mut Vec::new())).await;
    }
    assert_eq!(healthy.request::<u32>("server", "echo", &1).await?, 1);
    assert_eq!(server.links().len(), 1);
    Ok(())
}
