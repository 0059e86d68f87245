use std::env;
use std::time::Duration;

use nacp::proto::AppId;
use tokio::time::Instant;
use uuid::Uuid;

use crate::args::DialArgs;
use crate::config::{Context, Secret};
use crate::failure::Failure;
use crate::target::Target;

/// Where `serve` listens and everything else looks, if nothing else is said.
pub(crate) const DEFAULT_TARGET: &str = "127.0.0.1:7420";

const TIMEOUT: Duration = Duration::from_secs(10);
/// Of resolving and connecting, if nothing else is said.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Whom to reach, as whom, and how long that may take. What was not typed comes from the
/// environment, then from the context, then from here.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// `None` if nobody named one.
    pub(crate) target: Option<Target>,
    pub(crate) own: AppId,
    /// Of the run, or of each wait where it goes on for long.
    pub(crate) timeout: Duration,
    /// Of resolving and connecting.
    pub(crate) connect_timeout: Duration,
    pub(crate) auth: Option<Secret>,
}

impl Plan {
    /// Fills in what was not typed.
    ///
    /// # Errors
    ///
    /// If the config file or the credential cannot be read.
    pub(crate) fn new(args: &DialArgs, target: Option<&Target>) -> Result<Self, Failure> {
        let context = Context::load(args.context.as_deref())?;
        let timeout = args.timeout.or(context.timeout).unwrap_or(TIMEOUT);
        let connect_timeout = args.connect_timeout.or(context.connect_timeout);
        Ok(Self {
            auth: secret(args, &context)?,
            target: target.cloned().or(context.target),
            own: args
                .own
                .clone()
                .or(context.own)
                .unwrap_or_else(random_app_id),
            timeout,
            connect_timeout: connect_timeout.unwrap_or(CONNECT_TIMEOUT).min(timeout),
        })
    }

    /// The target, or where `serve` listens.
    ///
    /// # Errors
    ///
    /// None, as long as the default is an address.
    pub(crate) fn target(&self) -> Result<Target, Failure> {
        match &self.target {
            Some(target) => Ok(target.clone()),
            None => DEFAULT_TARGET
                .parse()
                .map_err(|error| Failure::usage(format!("{error}"))),
        }
    }

    /// When a run that begins now must have its answer.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }
}

fn secret(args: &DialArgs, context: &Context) -> Result<Option<Secret>, Failure> {
    if let Some(path) = &args.auth_file {
        return Secret::from_file(path).map(Some);
    }
    match env::var("NACP_AUTH") {
        Ok(secret) => Ok(Some(Secret::new(secret))),
        Err(_) => context.secret(),
    }
}

/// A name that no other run has: two of one name would push each other out.
pub(super) fn random_app_id() -> AppId {
    let random = Uuid::new_v4().simple().to_string();
    let digits = random.get(..8).unwrap_or(&random);
    let app = AppId::new(format!("nacp-cli-{digits}"));
    app.expect("a short text of letters and digits is an AppId")
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_TARGET, random_app_id};
    use crate::target::Target;

    #[test]
    fn the_default_target_is_one() {
        assert!(DEFAULT_TARGET.parse::<Target>().is_ok());
    }

    #[test]
    fn two_runs_never_meet() {
        let (one, other) = (random_app_id(), random_app_id());
        assert_ne!(one, other);
        assert_eq!(one.as_str().len(), "nacp-cli-".len() + 8);
    }
}
