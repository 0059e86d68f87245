//! A listener in a process that has run out of file descriptors.
//!
//! One test alone in its binary, because the whole process runs out.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use nacp_transport_tcp::{Address, Listener, Options};
use tokio::net::TcpSocket;
use tokio::time::timeout;

fn limit_descriptors(to: usize) {
    let status = Command::new("prlimit")
        .args([
            "--pid",
            &std::process::id().to_string(),
            &format!("--nofile={to}:"),
        ])
        .status();
    assert!(status.unwrap().success());
}

/// CPU time of this process in clock ticks.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit_once(')').unwrap().1;
    behind_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}

#[tokio::test]
async fn listener_waits_for_descriptors_without_spinning_and_then_goes_on() {
    let any = Address::to_listen_on("127.0.0.1:0").unwrap();
    let listener = Listener::bind(&any, Options::default()).await.unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    let proc_stat = File::open("/proc/self/stat").unwrap();
    limit_descriptors(256);
    let mut files: Vec<_> = std::iter::from_fn(|| proc_stat.try_clone().ok()).collect();

    let dialled = socket.connect(listener.local_addr()).await.unwrap();
    let patience = Duration::from_millis(500);
    assert!(
        timeout(patience, listener.accept()).await.is_err(),
        "there is no descriptor"
    );
    files.clear();
    let before = ticks();
    let accepted = timeout(Duration::from_secs(20), listener.accept())
        .await
        .unwrap();
    assert_eq!(accepted.peer_addr(), dialled.local_addr().ok());
    assert!(
        before <= 20,
        "{before} clock ticks of CPU for half a second of waiting"
    );
}
