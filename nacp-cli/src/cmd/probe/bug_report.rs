use std::fmt::Write;
use std::time::SystemTime;

use super::report::Report;
use super::stage::Status;
use crate::escape::escaped;
use crate::failure::Failure;

/// A probe as Markdown, to be filed with a bug. It holds no payload and no credential.
pub(super) fn text(report: &Report, failure: Option<&Failure>) -> String {
    let mut text = String::from("# nacp-cli probe\n\n");
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    // Writing into a string does not fail.
    let _ = writeln!(text, "- when: {now}");
    let _ = writeln!(
        text,
        "- program: nacp-cli {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let _ = writeln!(text, "{report}");
    text.push_str("| stage | | ms | |\n| --- | --- | ---: | --- |\n");
    for stage in report.stages() {
        let status = match stage.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
            Status::Skipped => "skipped",
        };
        let ms = stage.ms.map_or_else(String::new, |ms| format!("{ms:.3}"));
        let detail = stage.detail.iter().chain(&stage.hint);
        let detail: Vec<_> = detail.map(|line| cell(line)).collect();
        let _ = writeln!(
            text,
            "| {} | {status} | {ms} | {} |",
            stage.name,
            detail.join("; ")
        );
    }
    if let Some(failure) = failure {
        let (number, meaning) = (failure.exit.number(), failure.exit.meaning());
        let _ = writeln!(
            text,
            "\nExit code {number} ({meaning}), stage {}, reason `{}`: {}",
            failure.stage,
            escaped(&failure.reason),
            failure.message
        );
    }
    text
}

/// Text that stays inside of one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "; ")
}
