use std::collections::HashSet;
use std::fmt;

use async_trait::async_trait;
use nacp_link::{Trust, Verdict};
use nacp_proto::{AppId, Decl, Payload};
use subtle::ConstantTimeEq;

/// Decides who may register with a node (specification, section 10).
///
/// Without one everybody may. A policy that panics, or does not decide in time, refuses.
#[async_trait]
pub trait RegisterPolicy: Send + Sync + 'static {
    /// Decides about one app, whose connection waits meanwhile. After 10 s, when the dialling side
    /// gives up, the future is dropped and the app refused.
    async fn decide(&self, applicant: &Applicant) -> Decision;
}

/// An app that wants to register.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Applicant {
    /// Its name, as it says.
    pub app: AppId,
    /// What it declares.
    pub decl: Decl,
    /// Whether it says it is a gateway.
    pub is_gateway: bool,
    /// Its credential.
    pub auth: Option<Payload>,
    /// Where it comes from, if its transport knows.
    pub remote: Option<String>,
    /// Whether it is on this machine, or has shown a certificate.
    pub trust: Trust,
}

/// What a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// It may not come in: `unauthorized`.
    Refuse,
    /// It may come in. What waits for an earlier instance of it goes to nobody else.
    Admit,
    /// It may come in, and is who it says it is: a new instance gets what was never acknowledged.
    AdmitProven,
    /// It may come in as if it had never been here.
    AdmitAnew,
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Refuse => Self::Refuse,
            Decision::Admit => Self::Admit,
            Decision::AdmitProven => Self::AdmitProven,
            Decision::AdmitAnew => Self::AdmitAnew,
        }
    }
}

/// Admits the apps of a list.
///
/// A name proves nothing by itself: an app counts as proven only if its connection is.
#[derive(Debug, Clone, Default)]
pub struct Allowlist {
    apps: HashSet<AppId>,
}

impl Allowlist {
    /// These and no others.
    pub fn new(apps: impl IntoIterator<Item = AppId>) -> Self {
        Self {
            apps: apps.into_iter().collect(),
        }
    }
}

#[async_trait]
impl RegisterPolicy for Allowlist {
    async fn decide(&self, applicant: &Applicant) -> Decision {
        match (self.apps.contains(&applicant.app), applicant.trust) {
            (false, _) => Decision::Refuse,
            (true, Trust::Unproven) => Decision::Admit,
            (true, Trust::Proven) => Decision::AdmitProven,
        }
    }
}

/// Admits who knows a secret: the register's `auth` must be it, as text or as bytes.
///
/// Compared in constant time. Without TLS the secret goes over the wire as it is.
#[derive(Clone)]
pub struct SharedSecret {
    secret: Box<[u8]>,
}

impl SharedSecret {
    /// This secret.
    pub fn new(secret: impl AsRef<[u8]>) -> Self {
        Self {
            secret: secret.as_ref().into(),
        }
    }

    fn is_met_by(&self, auth: &Payload) -> bool {
        let given = auth.as_byte_string();
        let text = given.is_none().then(|| auth.decode::<String>().ok());
        let bytes = match (&given, &text) {
            (Some(bytes), _) => &bytes[..],
            (None, Some(Some(text))) => text.as_bytes(),
            (None, _) => return false,
        };
        bytes.ct_eq(&self.secret).into()
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(..)")
    }
}

#[async_trait]
impl RegisterPolicy for SharedSecret {
    async fn decide(&self, applicant: &Applicant) -> Decision {
        match &applicant.auth {
            Some(auth) if self.is_met_by(auth) => Decision::AdmitProven,
            Some(_) | None => Decision::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_met_by_its_text_and_its_bytes_alone() {
        let policy = SharedSecret::new("open sesame");
        assert!(policy.is_met_by(&Payload::new("open sesame").unwrap()));
        assert!(policy.is_met_by(&Payload::byte_string("open sesame")));
        assert!(!policy.is_met_by(&Payload::new("open sesam").unwrap()));
        assert!(!policy.is_met_by(&Payload::new(&7).unwrap()));
        assert_eq!(format!("{policy:?}"), "SharedSecret(..)");
    }
}
