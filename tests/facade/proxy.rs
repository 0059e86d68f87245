//! A TCP proxy that breaks connections in every way a network does.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};

use crate::faults::Faults;

/// Stands between a dialling node and a listening one.
pub(crate) struct Proxy {
    addr: SocketAddr,
    faults: Arc<Faults>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let faults = Arc::new(Faults::default());
        let task = tokio::spawn(serve(listener, target, Arc::clone(&faults)));
        Self { addr, faults, task }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Deref for Proxy {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.faults
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, target: SocketAddr, faults: Arc<Faults>) {
    loop {
        let Ok((near, _)) = listener.accept().await else {
            return;
        };
        let Some(number) = faults.accept() else {
            continue;
        };
        let Ok(far) = TcpStream::connect(target).await else {
            continue;
        };
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        tokio::spawn(Arc::clone(&faults).join(number, near, far));
    }
}
