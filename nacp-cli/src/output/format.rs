use clap::ValueEnum;

/// In what form results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Human,
    /// One document, over several lines; a stream of documents is one a line.
    Json,
    /// One document a line.
    Ndjson,
    /// A table with a head line.
    Csv,
}
