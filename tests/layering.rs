//! Who may depend on whom.

use std::collections::BTreeSet;
use std::process::Command;

const ARROWS: [(&str, &[&str]); 7] = [
    ("nacp-proto", &[]),
    ("nacp-queue", &[]),
    ("nacp-bus", &[]),
    ("nacp-link", &["nacp-proto", "nacp-queue"]),
    ("nacp-transport-tcp", &["nacp-proto"]),
    (
        "nacp",
        &["nacp-bus", "nacp-link", "nacp-proto", "nacp-transport-tcp"],
    ),
    ("nacp-cli", &["nacp"]),
];

#[test]
fn dependencies_between_the_crates_point_down_only() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();

    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = packages
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        found, known,
        "every member of the workspace has its arrows listed here"
    );

    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, allowed) = ARROWS.iter().find(|(known, _)| *known == name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let target = dependency["name"].as_str().unwrap();
            let is_dev = dependency["kind"] == "dev";
            assert!(
                !known.contains(target) || is_dev || allowed.contains(&target),
                "{name} must not depend on {target}"
            );
        }
    }
}
