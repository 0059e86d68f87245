//! The node against recorded traffic of the reference implementation.
//!
//! Each recording is played once for each of its apps: a node takes the app's place, is fed what the
//! app was sent, is told to do what the app did of itself, and must send what the app sent, in the
//! same order, with the same reasons and payloads. Where it does not, the table in
//! `reference/differences.rs` says by which clause of the specification that is ours; a difference
//! that is not in it fails, and so does a line of it that does not occur.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test picks the variants that it looks for"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a recording that cannot be read fails its test"
)]

#[path = "reference/act.rs"]
mod act;
#[path = "reference/differences.rs"]
mod differences;
#[path = "reference/play.rs"]
mod play;
#[path = "reference/recording.rs"]
mod recording;
#[path = "reference/roles.rs"]
mod roles;
#[path = "reference/shape.rs"]
mod shape;
#[expect(dead_code, unused_imports, reason = "the scenarios use the rest")]
mod support;

use differences::{DIFFERENCES, HAND_MADE};
use play::Play;
use recording::Recording;
use roles::ROLES;

/// A link to a foreign peer keeps a sentinel subscription (specification, section 11): its subscribe,
/// its unsubscribe after a return, and the ACKs of their answers are ours everywhere.
fn is_of_a_sentinel(line: &str) -> bool {
    line.ends_with("(sentinel)")
}

fn assert_same(found: &[String], expected: &[(&str, &str)]) {
    let lines: Vec<&str> = expected.iter().map(|(line, _)| *line).collect();
    let unlisted: Vec<_> = found
        .iter()
        .filter(|line| !lines.contains(&line.as_str()))
        .collect();
    let absent: Vec<_> = lines
        .iter()
        .filter(|line| !found.iter().any(|other| other == *line))
        .collect();
    assert!(
        unlisted.is_empty() && absent.is_empty(),
        "not in the table:\n{unlisted:#?}\nin the table and not seen:\n{absent:#?}"
    );
}

#[test]
fn a_node_in_the_place_of_each_app_behaves_as_recorded_but_for_what_is_ours() {
    let mut found = Vec::new();
    for role in ROLES {
        let recording = Recording::load(role.file);
        found.extend(
            Play::new(role)
                .run(&recording)
                .into_iter()
                .filter(|line| !is_of_a_sentinel(line)),
        );
    }
    assert_same(&found, DIFFERENCES);
}

#[test]
fn every_recording_with_traffic_of_apps_is_played() {
    // What is left out tells nothing of a node: decoding tables and frames.
    let left_out = [
        "i2-cbor-decode",
        "j1-hand-made-frames",
        "j2-hand-made-messages",
    ];
    for file in Recording::files() {
        let played = ROLES.iter().any(|role| role.file == file);
        assert!(played != left_out.contains(&file.as_str()), "{file}");
    }
}

#[test]
fn hand_made_messages_get_what_the_specification_says() {
    let mut found = Vec::new();
    for case in Recording::cases("j2-hand-made-messages") {
        found.extend(
            Play::of_case(&case)
                .run(&case.recording)
                .into_iter()
                .filter(|line| !is_of_a_sentinel(line)),
        );
    }
    assert_same(&found, HAND_MADE);
}
