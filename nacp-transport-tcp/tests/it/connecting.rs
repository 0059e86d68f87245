//! Dialling and listening.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nacp_transport_tcp::{Address, ConnectError, Listener, Options, connect, connect_to};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::support::{End, encoded, listen, soon};

/// An address of loopback that nobody listens on.
async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// A listener whose queue is full, so that the next connection gets no answer; and what fills it.
#[cfg(target_os = "linux")]
async fn silent_listener() -> (TcpListener, [TcpStream; 2]) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    // Linux queues one more than it is told.
    let (first, second) = (
        TcpStream::connect(addr).await,
        TcpStream::connect(addr).await,
    );
    (listener, [first.unwrap(), second.unwrap()])
}

#[tokio::test]
async fn refused_connection_says_where_and_why() {
    let addr = closed_port().await;
    let error = soon(connect(&addr.into(), &Options::default()))
        .await
        .unwrap_err();
    assert!(!error.is_timeout());
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot connect to {addr} (Connection refused")),
        "{text}"
    );
    let ConnectError::Unreachable { attempts } = error else {
        panic!("{error:?}")
    };
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].error.kind(), io::ErrorKind::ConnectionRefused);
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn connecting_ends_after_its_limit() {
    let (listener, _queued) = silent_listener().await;
    let addr = listener.local_addr().unwrap();
    let start = Instant::now();
    let error = connect(&addr.into(), &Options::default())
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(start.elapsed(), Duration::from_secs(10));

    let options = Options::default().connect_timeout(Duration::from_millis(200));
    let start = Instant::now();
    let error = connect_to(addr, &options).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed(), Duration::from_millis(200));
}

#[tokio::test]
async fn next_address_of_a_host_is_tried_when_one_refuses() {
    // Whatever order the resolver has them in, one listens and the other does not.
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        let options = Options::default();
        let listener = listen(bind, &options).await;
        let port = listener.local_addr().port();
        let address: Address = format!("localhost:{port}").parse().unwrap();
        let addrs = nacp_transport_tcp::resolve(&address).await.unwrap();
        if !addrs.contains(&listener.local_addr()) {
            // This machine's `localhost` has only the other family.
            let error = soon(connect(&address, &options)).await.unwrap_err();
            assert!(matches!(error, ConnectError::Unreachable { attempts } if attempts.len() == 1));
            continue;
        }
        let (dialled, _accepted) =
            soon(async { tokio::join!(connect(&address, &options), listener.accept()) }).await;
        assert_eq!(dialled.unwrap().peer_addr(), Some(listener.local_addr()));
    }
}

#[tokio::test]
async fn address_in_use_cannot_be_listened_on() {
    let listener = listen("127.0.0.1:0", &Options::default()).await;
    let again = Listener::bind(&listener.local_addr().into(), Options::default()).await;
    assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn both_ends_know_each_others_addresses() {
    let options = Options::default();
    let listener = listen("127.0.0.1:0", &options).await;
    let (dialled, accepted) = soon(async {
        tokio::join!(
            connect_to(listener.local_addr(), &options),
            listener.accept()
        )
    })
    .await;
    let dialled = dialled.unwrap();
    assert_eq!(dialled.peer_addr(), Some(listener.local_addr()));
    assert_eq!(accepted.peer_addr(), dialled.local_addr());
    assert_eq!(accepted.local_addr(), Some(listener.local_addr()));
}

#[tokio::test]
async fn connection_that_ended_before_it_was_accepted_is_no_obstacle() {
    let options = Options::default();
    let listener = listen("127.0.0.1:0", &options).await;
    for _ in 0..10 {
        let gone = TcpStream::connect(listener.local_addr()).await.unwrap();
        gone.set_zero_linger().unwrap();
        drop(gone);
    }
    let dialled = soon(connect_to(listener.local_addr(), &options))
        .await
        .unwrap();
    let local_addr = dialled.local_addr();
    let near = End::new(dialled);
    near.send(&encoded(1, 10));
    let mut far = soon(async {
        loop {
            let accepted = listener.accept().await;
            if accepted.peer_addr() == local_addr {
                break End::new(accepted);
            }
        }
    })
    .await;
    assert_eq!(soon(far.recv_many(1)).await, [encoded(1, 10)]);
}

#[tokio::test]
async fn dropped_accept_loses_no_connection() {
    let options = Options::default();
    let listener = listen("127.0.0.1:0", &options).await;
    tokio::select! {
        biased;
        _ = listener.accept() => panic!("nobody has dialled"),
        () = tokio::task::yield_now() => {}
    }
    let dialled = soon(connect_to(listener.local_addr(), &options))
        .await
        .unwrap();
    let accepted = soon(listener.accept()).await;
    assert_eq!(accepted.peer_addr(), dialled.local_addr());
}

#[tokio::test]
async fn options_of_the_socket_are_set() {
    let options = Options::default()
        .send_buffer(Some(16 << 10))
        .unsent_bytes(Some(8 << 10));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let copy = socket2::SockRef::from(&stream).try_clone().unwrap();
    let _connection = nacp_transport_tcp::Connection::from_tcp(stream, &options).unwrap();
    assert!(copy.tcp_nodelay().unwrap());
    assert!(copy.keepalive().unwrap());
    assert_eq!(copy.tcp_keepalive_time().unwrap(), Duration::from_secs(60));
    assert_eq!(
        copy.tcp_keepalive_interval().unwrap(),
        Duration::from_secs(10)
    );
    assert_eq!(
        copy.send_buffer_size().unwrap(),
        32 << 10,
        "Linux counts its own part too"
    );
    assert_eq!(copy.tcp_notsent_lowat().unwrap(), 8 << 10);
}
