//! What a remote subscriber may listen to (specification, sections 8 and 10).

/// Names whose events say that a notify was sent: forwarding them would feed themselves.
const SELF_EXCITING: [&str; 2] = ["nacp:inbound:notify", "nacp:outbound:notify"];

/// What a pattern gets to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Something may be forwarded.
    Some,
    /// It asks for nothing but notifies about notifies.
    SelfExciting,
    /// Nothing that it matches may ever be forwarded.
    None,
}

pub(crate) fn of_pattern(pattern: &str, exposes_internal: bool) -> Exposure {
    if SELF_EXCITING.contains(&pattern) {
        return Exposure::SelfExciting;
    }
    let hides = if is_internal(pattern) {
        !exposes_internal
    } else {
        is_private_wildcard(pattern)
    };
    if hides {
        Exposure::None
    } else {
        Exposure::Some
    }
}

/// Whether a hit of a subscribed pattern may leave the node.
pub(crate) fn may_forward(pattern: &str, name: &str, exposes_internal: bool) -> bool {
    if SELF_EXCITING.contains(&name) {
        return false;
    }
    if is_internal(name) {
        return exposes_internal;
    }
    !is_private(name) || spells_out_id(pattern)
}

/// Events about this node's own traffic. For a pattern: one that matches nothing else.
fn is_internal(name: &str) -> bool {
    let mut segments = name.split(':');
    match (segments.next(), segments.next()) {
        (Some("nact" | "napp"), Some(_)) => true,
        (Some("nacp"), Some("inbound" | "outbound" | "internal")) => true,
        (_, _) => false,
    }
}

/// Events of one request.
fn is_private(name: &str) -> bool {
    let mut segments = name.split(':');
    matches!(
        (segments.next(), segments.next(), segments.next()),
        (Some("nacp"), Some("event" | "ability"), Some(_))
    )
}

/// A pattern for events of any request, which only one that spells out the id may see.
fn is_private_wildcard(pattern: &str) -> bool {
    is_private(pattern) && !spells_out_id(pattern)
}

fn spells_out_id(pattern: &str) -> bool {
    pattern.split(':').nth(2).is_some_and(|id| id != "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_for_notifies_about_notifies_is_self_exciting() {
        for pattern in SELF_EXCITING {
            assert_eq!(of_pattern(pattern, false), Exposure::SelfExciting);
            assert_eq!(of_pattern(pattern, true), Exposure::SelfExciting);
        }
    }

    #[test]
    fn a_pattern_that_matches_internal_events_only_is_not_exposed_unless_the_node_says_so() {
        for pattern in [
            "nacp:inbound:*",
            "nacp:outbound:ack",
            "nacp:internal:*:*",
            "nact:peer:*",
            "napp:x",
            "nact:",
        ] {
            assert_eq!(of_pattern(pattern, false), Exposure::None, "{pattern}");
            assert_eq!(of_pattern(pattern, true), Exposure::Some, "{pattern}");
        }
        for pattern in ["nacp:event:*:process", "nacp:ability:*:response"] {
            assert_eq!(of_pattern(pattern, true), Exposure::None, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_may_match_a_users_own_names_is_exposed() {
        for pattern in [
            "nacp:*:notify",
            "*:outbound:*",
            "*:*:*",
            "nact",
            "x:y",
            "nacp:event:1:process",
            "*",
        ] {
            assert_eq!(of_pattern(pattern, false), Exposure::Some, "{pattern}");
        }
    }

    #[test]
    fn a_notify_about_a_notify_is_never_forwarded() {
        for name in SELF_EXCITING {
            assert!(!may_forward("*:*:*", name, true));
        }
    }

    #[test]
    fn internal_events_are_forwarded_only_where_the_node_exposes_them() {
        assert!(!may_forward("*:*:*", "nacp:inbound:ack", false));
        assert!(may_forward("*:*:*", "nacp:inbound:ack", true));
        assert!(may_forward("*:*:*", "nacp:x:notify", false));
    }

    #[test]
    fn events_of_a_request_go_only_to_a_pattern_that_spells_out_its_id() {
        assert!(!may_forward("*:*:*:*", "nacp:event:7:process", true));
        assert!(!may_forward(
            "nacp:event:*:process",
            "nacp:event:7:process",
            true
        ));
        assert!(may_forward("nacp:event:7:*", "nacp:event:7:process", false));
        assert!(may_forward("*:*:7:process", "nacp:event:7:process", false));
    }
}
