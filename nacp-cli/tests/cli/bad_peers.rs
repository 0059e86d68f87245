//! What is no NACP peer, or does not let us in: each case names the stage that failed, what is wrong
//! there and what to try, within the limit, in both forms.

use std::io::Write;
use std::time::Duration;

use nacp::proto::{Outcome, Payload};

use crate::support::fake_peer::FakePeer;
use crate::support::{Run, closed_port, run, server, stay_silent};

/// Probes a target in both forms and returns both runs; they must agree.
fn probe(target: &str) -> (Run, Run) {
    let human = run(&["probe", target, "--timeout", "2s"]);
    let json = run(&["probe", target, "--timeout", "2s", "--json"]);
    assert_eq!(human.code, json.code, "{human:?} {json:?}");
    for run in [&human, &json] {
        assert!(run.took < Duration::from_secs(3), "{run:?}");
        assert!(!run.stderr.contains("panicked"), "{run:?}");
        assert!(run.stderr.contains("error:"), "{run:?}");
    }
    assert_eq!(json.json()["exit"], json.code);
    assert_eq!(json.json()["ok"], false);
    (human, json)
}

struct Expected<'a> {
    code: i32,
    stage: &'a str,
    reason: &'a str,
    message: &'a str,
    hint: &'a str,
}

fn expect(target: &str, expected: &Expected<'_>) {
    let Expected {
        code,
        stage,
        reason,
        message,
        hint,
    } = *expected;
    let (human, json) = probe(target);
    assert_eq!(human.code, code, "{human:?}");
    let failing: Vec<_> = human
        .stdout
        .lines()
        .filter(|line| line.contains(" FAIL "))
        .collect();
    assert_eq!(failing.len(), 1, "{human:?}");
    assert_eq!(
        failing[0].split_whitespace().next(),
        Some(stage),
        "{human:?}"
    );
    assert!(human.stdout.contains("skipped"), "{human:?}");
    for text in [message, hint] {
        assert!(human.stdout.contains(text), "{text:?} is not in {human:?}");
        assert!(human.stderr.contains(text), "{text:?} is not in {human:?}");
    }
    let document = json.json();
    assert_eq!(document["schema"], "nacp-cli/probe/1");
    assert_eq!(document["failed"], stage);
    assert_eq!(document["error"]["stage"], stage);
    assert_eq!(document["error"]["reason"], reason);
    assert!(
        document["error"]["hint"].as_str().unwrap().contains(hint),
        "{json:?}"
    );
    let statuses = document["stages"].as_array().unwrap().iter();
    let after = statuses.skip_while(|known| known["name"] != stage).skip(1);
    assert!(after.clone().count() > 0);
    for later in after {
        assert_eq!(later["status"], "skipped", "{json:?}");
    }
}

#[test]
fn a_name_that_does_not_resolve_cannot_be_connected_to() {
    expect(
        "no-such-host.invalid:7420",
        &Expected {
            code: 3,
            stage: "resolve",
            reason: "unresolvable",
            message: "cannot resolve",
            hint: "spelling",
        },
    );
}

#[test]
fn a_closed_port_cannot_be_connected_to() {
    expect(
        &closed_port().to_string(),
        &Expected {
            code: 3,
            stage: "connect",
            reason: "connection-refused",
            message: "refused",
            hint: "is the peer running",
        },
    );
}

#[test]
fn a_silent_port_times_out_at_the_register_and_names_typescript_peers() {
    let address = server(stay_silent);
    expect(
        &address.to_string(),
        &Expected {
            code: 5,
            stage: "register",
            reason: "response-timeout",
            message: "no answer to the register within 2s",
            hint: "TypeScript",
        },
    );
}

#[test]
fn a_wrong_app_id_times_out_and_asks_for_the_right_one() {
    let address = server(stay_silent);
    expect(
        &format!("weather@{address}"),
        &Expected {
            code: 5,
            stage: "register",
            reason: "response-timeout",
            message: "no answer to the register within 1.5s",
            hint: "is weather the right one?",
        },
    );
}

#[test]
fn a_native_peer_of_another_name_is_named() {
    let served = crate::support::Served::start();
    expect(
        &format!("weather@{}", served.address()),
        &Expected {
            code: 5,
            stage: "register",
            reason: "response-timeout",
            message: "nacp-cli-serve is there, not weather",
            hint: &format!("use {}", served.target),
        },
    );
}

#[test]
fn an_http_server_is_recognised() {
    let address = server(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        stay_silent(stream);
    });
    expect(
        &address.to_string(),
        &Expected {
            code: 7,
            stage: "frame",
            reason: "version-mismatch",
            message: "an HTTP server answers there",
            hint: "check the port number",
        },
    );
}

#[test]
fn a_banner_shorter_than_a_frame_header_is_recognised() {
    let address = server(|mut stream| {
        let _ = stream.write_all(b"SSH-2.0-X\r\n");
        stay_silent(stream);
    });
    expect(
        &address.to_string(),
        &Expected {
            code: 7,
            stage: "frame",
            reason: "incomplete-frame",
            message: "an SSH server answers there",
            hint: "check the port number",
        },
    );
}

#[test]
fn random_bytes_are_a_violation_and_are_shown() {
    let address = server(|mut stream| {
        let _ = stream.write_all(&[0x9e; 64]);
        stay_silent(stream);
    });
    expect(
        &address.to_string(),
        &Expected {
            code: 7,
            stage: "frame",
            reason: "version-mismatch",
            message: "the first bytes are 9e 9e",
            hint: "belongs to a NACP peer",
        },
    );
}

#[test]
fn a_frame_with_the_wrong_magic_is_a_violation() {
    let address = server(|mut stream| {
        let mut header = [0; 32];
        header[30] = 0xce;
        header[31] = 1;
        let _ = stream.write_all(&header);
        stay_silent(stream);
    });
    expect(
        &address.to_string(),
        &Expected {
            code: 7,
            stage: "frame",
            reason: "bad-magic",
            message: "0xce instead of 0xcf",
            hint: "belongs to a NACP peer",
        },
    );
}

#[test]
fn garbage_after_a_good_register_is_a_violation_at_once() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "mad");
        peer.accept();
        peer.write(&[0x9e; 64]);
        while peer.recv().is_some() {}
    });
    let run = run(&["probe", &address.to_string(), "--timeout", "20s", "--json"]);
    assert_eq!(run.code, 7, "{run:?}");
    assert!(run.took < Duration::from_secs(10), "{run:?}");
    let document = run.json();
    assert_eq!(document["error"]["stage"], "introduce");
    assert_eq!(document["error"]["reason"], "version-mismatch");
}

#[test]
fn a_peer_that_hangs_up_loses_the_link() {
    let address = server(|stream| {
        FakePeer::new(stream, "rude").recv();
    });
    expect(
        &address.to_string(),
        &Expected {
            code: 6,
            stage: "register",
            reason: "transport-closed",
            message: "closed the connection before it answered",
            hint: "the peer's log",
        },
    );
}

#[test]
fn a_peer_that_resets_the_connection_at_once_loses_the_link() {
    let address = server(|stream| {
        let stream = socket2::Socket::from(stream);
        stream.set_linger(Some(Duration::ZERO)).unwrap();
    });
    for _ in 0..5 {
        let run = run(&["probe", &address.to_string(), "--timeout", "20s", "--json"]);
        assert_eq!(run.code, 6, "{run:?}");
        assert_eq!(run.json()["error"]["reason"], "transport-closed", "{run:?}");
        assert!(run.took < Duration::from_secs(10), "{run:?}");
    }
}

#[test]
fn garbage_and_a_reset_at_once_is_a_violation_every_time() {
    // The reset may come before the connect is noticed, before the register is written, or after.
    for garbage in [&[0x9e; 64][..], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let address = server(move |mut stream| {
            let _ = stream.write_all(garbage);
            let stream = socket2::Socket::from(stream);
            stream.set_linger(Some(Duration::ZERO)).unwrap();
        });
        for command in ["probe", "ping", "check", "bench rtt"] {
            for _ in 0..20 {
                let args: Vec<_> = command.split(' ').collect();
                let run = run(&[&args[..], &[&address.to_string(), "--timeout", "20s"]].concat());
                assert_eq!(run.code, 7, "{run:?}");
                assert!(run.took < Duration::from_secs(10), "{run:?}");
            }
        }
    }
}

#[test]
fn what_ends_a_link_is_judged_by_what_came_before_it() {
    // Garbage and the end: that is no lost link but a peer that breaks the rules.
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "mad");
        peer.accept();
        while let Some(message) = peer.recv() {
            if message.message_type().as_str() == "request" {
                peer.write(&[0x9e; 64]);
                return;
            }
        }
    });
    for _ in 0..20 {
        let run = run(&["ping", &format!("mad@{address}"), "-n", "1", "--json"]);
        assert_eq!(run.code, 7, "{run:?}");
        assert_eq!(run.json()["error"]["reason"], "version-mismatch", "{run:?}");
    }
}

#[test]
fn a_peer_that_acks_the_register_and_does_not_answer_is_not_taken_for_another() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "slow");
        if let Some(register) = peer.recv() {
            peer.ack(&register);
        }
        while peer.recv().is_some() {}
    });
    expect(
        &format!("slow@{address}"),
        &Expected {
            code: 5,
            stage: "register",
            reason: "response-timeout",
            message: "has acknowledged the register and did not answer",
            hint: "busy or stuck",
        },
    );
}

#[test]
fn a_peer_that_refuses_introduce_and_subscribe_is_probed_to_the_end() {
    let address = server(|stream| {
        stream.set_nodelay(true).unwrap();
        let mut peer = FakePeer::new(stream, "private");
        peer.accept();
        peer.refuse_subscriptions("not-exposed");
        peer.serve(|target| {
            let why = Some("no-processor".into());
            let is_beat = target == "NApp.heartbeat";
            let outcome = if is_beat {
                Outcome::Ok
            } else {
                Outcome::NotOk { why }
            };
            Some((outcome, Payload::empty()))
        });
    });
    let run = run(&["probe", &address.to_string(), "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let document = run.json();
    for (stage, status) in [
        ("introduce", "warn"),
        ("heartbeat", "ok"),
        ("subscribe", "warn"),
        ("good-bye", "ok"),
    ] {
        let stages = document["stages"].as_array().unwrap();
        let found = stages.iter().find(|known| known["name"] == stage).unwrap();
        assert_eq!(found["status"], status, "{run:?}");
    }
}

#[test]
fn a_peer_that_leaves_introduce_unanswered_is_slow_and_no_probe_is_advised() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "stuck");
        peer.accept();
        peer.serve(|_| None);
    });
    let target = address.to_string();
    let (human, json) = probe(&target);
    assert_eq!(human.code, 5, "{human:?}");
    assert!(human.stderr.contains("this stage is slow"), "{human:?}");
    assert!(!human.stderr.contains("nacp-cli probe"), "{human:?}");
    let document = json.json();
    assert_eq!(document["error"]["stage"], "introduce");
    let stages = document["stages"].as_array().unwrap();
    let failed = stages.iter().find(|stage| stage["status"] == "fail");
    assert!(failed.unwrap()["ms"].as_f64().unwrap() > 1000.0, "{json:?}");
}

#[test]
fn a_message_that_does_not_end_in_time_times_out_at_the_frame() {
    let mut frame = [0; 132];
    frame[20..24].copy_from_slice(&1_000_000_u32.to_be_bytes());
    frame[24..28].copy_from_slice(&1_000_032_u32.to_be_bytes());
    frame[30..32].copy_from_slice(&[0xcf, 1]);
    for (sent, message) in [
        (132, "an unfinished message of 1000000 bytes, 100 came"),
        (10, "an unfinished frame header, 10 of 32 bytes came"),
    ] {
        let address = server(move |mut stream| {
            let _ = stream.write_all(&frame[..sent]);
            stay_silent(stream);
        });
        expect(
            &address.to_string(),
            &Expected {
                code: 5,
                stage: "frame",
                reason: "incomplete-frame",
                message,
                hint: "in the middle of a message",
            },
        );
    }
}

#[test]
fn each_refusal_is_told_with_its_reason_and_what_heals_it() {
    for (reason, hint) in [
        ("appId-in-use", "another AppId"),
        ("version-mismatch", "upgrade the older one"),
        ("unauthorized", "credential"),
        ("limit-reached", "try again"),
    ] {
        let address = server(move |stream| FakePeer::new(stream, "strict").refuse(reason));
        expect(
            &format!("strict@{address}"),
            &Expected {
                code: 4,
                stage: "register",
                reason,
                message: reason,
                hint,
            },
        );
    }
}

#[test]
fn an_unknown_refusal_is_shown_escaped() {
    let address = server(|stream| FakePeer::new(stream, "strict").refuse("no\u{1b}[2Jway"));
    let (human, json) = probe(&address.to_string());
    assert_eq!(human.code, 4);
    for run in [&human, &json] {
        assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
        assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
    }
    assert!(human.stdout.contains(r"no\u{1b}[2Jway"), "{human:?}");
}

#[test]
fn another_app_than_the_one_asked_for_is_named() {
    let address = server(|stream| {
        let mut peer = FakePeer::new(stream, "other");
        peer.accept();
        peer.serve(|_| None);
    });
    expect(
        &format!("weather@{address}"),
        &Expected {
            code: 4,
            stage: "register",
            reason: "expect-mismatch",
            message: "other answered",
            hint: "use the AppId of the app that answered",
        },
    );
}

#[test]
fn localhost_with_two_addresses_finds_the_one_that_listens() {
    let served = crate::support::Served::start();
    let port = served.address().rsplit_once(':').unwrap().1;
    let run = run(&["probe", &format!("localhost:{port}"), "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn an_address_that_swallows_packets_cannot_be_connected_to() {
    // With its queue of connections full, a listener answers no more.
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let _first = std::net::TcpStream::connect(address).unwrap();
    // Those that wait go on asking: whatever place there still is, one of them takes it.
    let waiting: Vec<_> = (0..8).map(|_| connecting_to(address)).collect();
    expect(
        &address.to_string(),
        &Expected {
            code: 3,
            stage: "connect",
            reason: "connect-timeout",
            message: "cannot connect to 127.0.0.1",
            hint: "a firewall",
        },
    );
    drop(waiting);
}

/// A connect that is under way as long as the socket lives.
fn connecting_to(address: std::net::SocketAddr) -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_nonblocking(true).unwrap();
    // It cannot be done at once, and says so.
    let _ = socket.connect(&address.into());
    socket
}

#[test]
fn a_limit_above_the_node_s_own_is_kept() {
    let address = server(stay_silent).to_string();
    let run = run(&["ping", &address, "--timeout", "11s"]);
    assert_eq!(run.code, 5, "{run:?}");
    assert!(run.took > Duration::from_millis(10_900), "{run:?}");
    assert!(run.stderr.contains("within 11s"), "{run:?}");
}
