//! NACP over Unix sockets: a transport is something that dials and listens.

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    unix::run().await
}

#[cfg(unix)]
mod unix {
    use std::io::Write as _;

    use async_trait::async_trait;
    use nacp::link::Trust;
    use nacp::transport::Options;
    use nacp::{Channel, HandlerError, Listener, NApp, Transport, TransportError};
    use tokio::net::{UnixListener, UnixStream};

    #[derive(Debug, Default)]
    struct Unix {
        options: Options,
    }

    /// Both ends are on this machine, so each is who the operating system says.
    fn channel(stream: UnixStream, options: &Options) -> Channel {
        Channel::from_io(stream, options).trust(Trust::Proven)
    }

    #[async_trait]
    impl Transport for Unix {
        async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
            Ok(channel(UnixStream::connect(address).await?, &self.options))
        }

        async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
            Ok(Box::new(Accepting {
                listener: UnixListener::bind(address)?,
                path: address.to_owned(),
                options: self.options.clone(),
            }))
        }
    }

    #[derive(Debug)]
    struct Accepting {
        listener: UnixListener,
        path: String,
        options: Options,
    }

    #[async_trait]
    impl Listener for Accepting {
        async fn accept(&mut self) -> Option<Channel> {
            let (stream, _) = self.listener.accept().await.ok()?;
            Some(channel(stream, &self.options))
        }

        fn local_address(&self) -> String {
            self.path.clone()
        }
    }

    impl Drop for Accepting {
        fn drop(&mut self) {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    pub(super) async fn run() -> Result<(), Box<dyn std::error::Error>> {
        let path = std::env::temp_dir().join(format!("nacp-{}.sock", std::process::id()));
        let server = NApp::builder("server")
            .transport(Unix::default())
            .listen(path.display())
            .ability("shout", async |text: String| {
                Ok::<_, HandlerError>(text.to_uppercase())
            })
            .start()
            .await?;
        let app = NApp::builder("app")
            .transport(Unix::default())
            .start()
            .await?;
        app.connect(path.display().to_string()).await?;
        let loud: String = app.request("server", "shout", "over a unix socket").await?;
        writeln!(std::io::stdout(), "{loud}")?;
        app.terminate().await;
        server.terminate().await;
        Ok(())
    }
}
