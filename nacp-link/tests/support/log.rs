//! What crossed the wires, to be read.

use nacp_proto::{Decoded, Message};

use super::{Crossing, World, text};

impl World {
    /// One line for a message: its type, and the label of what it is or answers.
    pub(super) fn describe(&mut self, decoded: &Decoded) -> String {
        text::describe(&mut self.labels, decoded)
    }

    /// What left an end of a wire, in order.
    pub(crate) fn said(&self, wire: usize, from: usize) -> Vec<&str> {
        self.said_since(0, wire, from)
    }

    /// Where the log ends now, for the `_since` methods.
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    pub(crate) fn said_since(&self, mark: usize, wire: usize, from: usize) -> Vec<&str> {
        self.crossings_since(mark, wire, from)
            .map(|crossing| crossing.line.as_str())
            .collect()
    }

    pub(crate) fn crossings_since(
        &self,
        mark: usize,
        wire: usize,
        from: usize,
    ) -> impl Iterator<Item = &Crossing> {
        self.log[mark..]
            .iter()
            .filter(move |crossing| crossing.wire == wire && crossing.from == from)
    }

    /// When each message left an end of a wire, in milliseconds, with its line.
    pub(crate) fn timed(&self, wire: usize, from: usize) -> Vec<(u128, &str)> {
        self.crossings_since(0, wire, from)
            .map(|crossing| (crossing.at.as_millis(), crossing.line.as_str()))
            .collect()
    }

    /// What an end has submitted and its provider not yet taken, control first.
    pub(crate) fn waiting(&mut self, wire: usize, from: usize) -> Vec<String> {
        let outbox = self.wires[wire].ways[from].outbox.clone();
        outbox
            .iter()
            .flatten()
            .map(|bytes| self.describe(&Message::decode(bytes).unwrap()))
            .collect()
    }
}
