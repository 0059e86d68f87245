use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use nacp_link::{Authorize, Origin, Verdict};
use tokio::time::timeout;

use super::Core;
use crate::{Applicant, Listener};

/// How long a policy may think. The dialling side waits no longer, and strangers' places are few.
const POLICY_LIMIT: Duration = Duration::from_secs(10);

impl Core {
    /// Accepts connections until the node ends.
    pub(crate) fn accept_from(self: &Arc<Self>, mut listener: Box<dyn Listener>) {
        let core = Arc::clone(self);
        self.spawn(async move {
            while let Some(channel) = listener.accept().await {
                core.attach(channel, Origin::Accepted);
            }
        });
    }

    /// Asks the policy about a register, in a task of its own.
    pub(super) fn ask_policy(self: &Arc<Self>, authorize: Authorize, remote: Option<String>) {
        let core = Arc::clone(self);
        let Some(policy) = self.parts.policy.clone() else {
            return;
        };
        let peer = authorize.peer;
        let applicant = Applicant {
            app: authorize.app,
            decl: authorize.info.decl,
            is_gateway: authorize.info.is_gateway,
            auth: authorize.auth,
            remote,
            trust: authorize.trust,
        };
        self.spawn(async move {
            let deciding = AssertUnwindSafe(policy.decide(&applicant)).catch_unwind();
            let verdict = match timeout(POLICY_LIMIT, deciding).await {
                Ok(Ok(decision)) => decision.into(),
                Ok(Err(_)) => {
                    tracing::error!(app = %applicant.app, "the register policy panicked");
                    Verdict::Refuse
                }
                Err(_) => {
                    tracing::error!(app = %applicant.app, "the register policy did not decide");
                    Verdict::Refuse
                }
            };
            core.turn(|state, now| state.node.handle_authorized(now, peer, verdict));
        });
    }
}
