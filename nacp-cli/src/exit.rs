use serde::{Serialize, Serializer};

/// How a run ended, as scripts see it. The numbers are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Fine,
    SaidNo,
    Usage,
    CannotConnect,
    Refused,
    TimedOut,
    LinkLost,
    Violation,
    Local,
    Interrupted,
}

impl Exit {
    pub(crate) const ALL: [Self; 10] = [
        Self::Fine,
        Self::SaidNo,
        Self::Usage,
        Self::CannotConnect,
        Self::Refused,
        Self::TimedOut,
        Self::LinkLost,
        Self::Violation,
        Self::Local,
        Self::Interrupted,
    ];

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::SaidNo => 1,
            Self::Usage => 2,
            Self::CannotConnect => 3,
            Self::Refused => 4,
            Self::TimedOut => 5,
            Self::LinkLost => 6,
            Self::Violation => 7,
            Self::Local => 8,
            Self::Interrupted => 130,
        }
    }

    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::SaidNo => "the peer said no",
            Self::Usage => "usage",
            Self::CannotConnect => "cannot connect",
            Self::Refused => "handshake refused",
            Self::TimedOut => "timed out",
            Self::LinkLost => "link lost",
            Self::Violation => "protocol violation",
            Self::Local => "local problem",
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) const fn is_fine(self) -> bool {
        matches!(self, Self::Fine)
    }
}

impl Serialize for Exit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}
