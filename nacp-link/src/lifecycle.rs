use thiserror::Error;

use crate::{Cause, LinkState};

/// What moves a link, or tries to.
pub(crate) type Trigger = Cause;

/// A trigger that has no place in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{trigger:?} has no meaning for a link that is {state:?}")]
pub(crate) struct IllegalTransition {
    state: LinkState,
    trigger: Trigger,
}

/// What a trigger does in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The link moves there, and that is reported once.
    Move(LinkState),
    /// Nothing changes: a register refreshes, a second cause is one too many.
    Stay,
}

/// Every transition of a link (specification, section 4).
///
/// ```text
///            Registered                Disconnected, AckTimeout,
///  (none) ───────────────▶ online ──── BeatTimeout, TakenOver ────▶ offline
///                           │  ▲                                      │  │
///                           │  └───────────── Registered ─────────────┘  │
///             Unregistered, │                              GraceEnded,   │
///            Disconnecting, │                              Disconnecting,│
///               Terminated  ▼                              Terminated    ▼
///                         dropped ◀──────────────────────────────────────┘
/// ```
pub(crate) fn step(state: Option<LinkState>, trigger: Trigger) -> Result<Step, IllegalTransition> {
    use LinkState::{Dropped, Offline, Online};
    let Some(state) = state else {
        return match trigger {
            Trigger::Registered => Ok(Step::Move(Online)),
            Trigger::Disconnected
            | Trigger::AckTimeout
            | Trigger::BeatTimeout
            | Trigger::TakenOver
            | Trigger::GraceEnded
            | Trigger::Unregistered
            | Trigger::Disconnecting
            | Trigger::Terminated => Err(IllegalTransition {
                state: Dropped,
                trigger,
            }),
        };
    };
    match (state, trigger) {
        (Online, Trigger::Registered) => Ok(Step::Stay),
        (Offline, Trigger::Registered) => Ok(Step::Move(Online)),
        (
            Online,
            Trigger::Disconnected | Trigger::AckTimeout | Trigger::BeatTimeout | Trigger::TakenOver,
        ) => Ok(Step::Move(Offline)),
        (
            Offline,
            Trigger::Disconnected | Trigger::AckTimeout | Trigger::BeatTimeout | Trigger::TakenOver,
        ) => Ok(Step::Stay),
        (Offline, Trigger::GraceEnded) => Ok(Step::Move(Dropped)),
        (
            Online | Offline,
            Trigger::Unregistered | Trigger::Disconnecting | Trigger::Terminated,
        ) => Ok(Step::Move(Dropped)),
        (Dropped, _) | (Online, Trigger::GraceEnded) => Err(IllegalTransition { state, trigger }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = include_str!("lifecycle.table");

    const TRIGGERS: [Trigger; 9] = [
        Trigger::Registered,
        Trigger::Disconnected,
        Trigger::AckTimeout,
        Trigger::BeatTimeout,
        Trigger::TakenOver,
        Trigger::GraceEnded,
        Trigger::Unregistered,
        Trigger::Disconnecting,
        Trigger::Terminated,
    ];

    #[test]
    fn every_state_and_trigger_is_in_the_table() {
        let states = [
            None,
            Some(LinkState::Online),
            Some(LinkState::Offline),
            Some(LinkState::Dropped),
        ];
        let mut printed = String::new();
        for state in states {
            for trigger in TRIGGERS {
                let from = state.map_or_else(
                    || "none".to_owned(),
                    |state| format!("{state:?}").to_lowercase(),
                );
                let outcome = match step(state, trigger) {
                    Ok(Step::Move(to)) => format!("{to:?}").to_lowercase(),
                    Ok(Step::Stay) => "stays".to_owned(),
                    Err(_) => "illegal".to_owned(),
                };
                printed.push_str(&format!(
                    "{from:<8} {:<14} {outcome}\n",
                    format!("{trigger:?}")
                ));
            }
        }
        assert_eq!(printed, TABLE, "\n{printed}");
    }
}
