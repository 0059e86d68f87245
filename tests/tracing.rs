//! What a node reports is also told to `tracing`, once, at its level (specification, section 13).

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use nacp::{MemoryTransport, NApp, RequestError, Undelivered};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Keeps the level and message of every event of the node.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<(Level, String)>>>);

impl Kept {
    fn count(&self, level: Level, message: &str) -> usize {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |(at, what): &&(Level, String)| *at == level && what == message;
        kept.iter().filter(is_meant).count()
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("nacp")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((*event.metadata().level(), message.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn each_report_is_one_event_of_tracing_whether_or_not_the_bus_listens() -> Outcome {
    let kept = Kept::default();
    let _guard = tracing::subscriber::set_default(kept.clone());
    let network = MemoryTransport::new();
    let server = NApp::builder("server")
        .transport(network.clone())
        .listen("server")
        .start()
        .await?;
    let client = NApp::builder("client").transport(network).start().await?;
    let _listened_to = client.events();
    client.connect("server").await?;
    let lost = client.request::<()>("nobody", "work", &()).await;
    assert!(matches!(
        lost,
        Err(RequestError::Undelivered(Undelivered::NoRoute))
    ));
    // One of each on either side, and one where it happened.
    assert_eq!(kept.count(Level::DEBUG, "nact:peer:connect"), 2);
    assert_eq!(kept.count(Level::DEBUG, "nacp:internal:napp:success"), 2);
    assert_eq!(kept.count(Level::WARN, "nacp:internal:route:error"), 1);
    server.terminate().await;
    Ok(())
}
