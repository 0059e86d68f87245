//! The table of the lifecycle document names tests that exist.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The rows of the tables in `docs/seed.md`, by their cells.
fn rows() -> Vec<Vec<String>> {
    read("docs/seed.md")
        .lines()
        .filter(|line| {
            line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| sentence")
        })
        .map(|line| {
            let inner = line.trim_start_matches("| ").trim_end_matches(" |");
            inner.split(" | ").map(str::to_owned).collect()
        })
        .collect()
}

#[test]
fn every_test_that_the_table_of_the_lifecycle_document_names_exists() {
    let mut missing = Vec::new();
    for row in rows() {
        for name in row[2].split('`').filter(|part| part.contains("::")) {
            let (module, test) = name.split_once("::").unwrap();
            let source = read(&format!("tests/node/{module}.rs"));
            if !source.contains(&format!("#[test]\nfn {test}()")) {
                missing.push(name.to_owned());
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// Every sentence of the document, one a line: what the table may not lose.
const SENTENCES: &str = include_str!("seed.txt");

#[test]
fn every_sentence_of_the_lifecycle_document_has_a_meaning_and_a_test() {
    let rows = rows();
    let sentences: Vec<_> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(sentences, SENTENCES.lines().collect::<Vec<_>>());
    for row in rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(!row[0].is_ascii() && row[1].is_ascii(), "{row:?}");
        assert!(row[2].starts_with('`'), "{row:?}");
    }
}
