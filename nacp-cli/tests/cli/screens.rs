//! The recorded screens of `docs/screens.md`, recorded again: they show what there is to see today.

use crate::support::Served;
use crate::support::terminal::Terminal;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/screens.md");

/// The screen below the line of the page that tells this command.
fn recorded(command: &str) -> String {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (_, after) = page.split_once(&format!("`nacp-cli {command}`")).unwrap();
    let (_, block) = after.split_once("```text\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// A screen without what differs from run to run: numbers, how wide they are, and how many lines of
/// them follow each other.
fn settled(screen: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in screen.lines() {
        let words = line.split_whitespace().map(|word| {
            if word.len() == 36 && word.split('-').count() == 5 {
                return "REQUEST".to_owned();
            }
            let number = |c: char| c.is_ascii_digit() || c == '.';
            let mut settled = String::new();
            for c in word.chars() {
                if !number(c) {
                    settled.push(c);
                } else if !settled.ends_with('#') {
                    settled.push('#');
                }
            }
            settled
        });
        let line = words.collect::<Vec<_>>().join(" ");
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn assert_current(command: &str, screen: &str) {
    assert_eq!(
        settled(&recorded(command)),
        settled(screen),
        "docs/screens.md has another screen of `{command}` than this:\n{screen}"
    );
}

#[test]
fn the_screen_of_top_is_current() {
    let served = Served::start();
    let command = "top 127.0.0.1:7420 -i 500ms --as console-1";
    let typed = command.replace("127.0.0.1:7420", served.address());
    let mut terminal = Terminal::start(&typed.split(' ').collect::<Vec<_>>());
    // With the second frame there are rates.
    terminal.wait_until("a rate", |screen| {
        let row = screen.lines().find(|line| line.contains("online"));
        row.is_some_and(|row| row.split_whitespace().all(|cell| cell != "-"))
    });
    assert_current(command, &terminal.screen());
    terminal.press("q");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn the_screen_of_a_call_with_keys_is_current() {
    let served = Served::start();
    let argument = r#"{"from":9,"ms":400}"#;
    let mut terminal =
        Terminal::start(&["call", "countdown", "-d", argument, "-t", &served.target]);
    terminal.wait_for(r#"{"left":8}"#);
    terminal.press("p");
    terminal.wait_for("paused");
    terminal.press("r");
    terminal.wait_for("resumed");
    terminal.wait_for(r#"{"left":6}"#);
    terminal.press("a");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 1, "{screen}");
    assert_current(&format!("call countdown -d '{argument}'"), &screen);
}
