use std::time::Duration;

use nacp::HandlerError;
use uuid::Uuid;

/// What a peer to test against does badly on purpose.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    /// How long every answer waits.
    pub(crate) latency: Option<Duration>,
    /// The share of requests that fail, from 0 to 1.
    pub(crate) error_rate: f64,
}

impl Trouble {
    /// Waits, and then may fail.
    pub(super) async fn befall(self) -> Result<(), HandlerError> {
        if let Some(latency) = self.latency {
            tokio::time::sleep(latency).await;
        }
        if self.error_rate > 0.0 && chance() < self.error_rate {
            return Err(HandlerError::failed("as --error-rate asks for"));
        }
        Ok(())
    }
}

/// From 0 to just below 1.
fn chance() -> f64 {
    let random = Uuid::new_v4().as_u64_pair().1 as u32;
    f64::from(random) / (f64::from(u32::MAX) + 1.0)
}
