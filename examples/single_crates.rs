//! The parts by themselves: a bus, payloads, and a node without any I/O.

use std::io::Write as _;
use std::time::Instant;

use nacp::AppId;
use nacp::bus::{EventBus, Pattern};
use nacp::link::{Config, Event, Node, Origin, Transmit, Trust};
use nacp::proto::Payload;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();

    // A bus inside one process; what it carries is anything.
    let bus = EventBus::new();
    bus.listen(&Pattern::parse("orders:*:paid")?, |event| {
        // Whoever emits calls it.
        let _ = writeln!(
            std::io::stdout(),
            "{} for {} euros",
            event.name(),
            event.payload()
        );
    });
    bus.emit("orders:17:paid", &99);

    // A payload is CBOR, made from any serializable value.
    let payload = Payload::new(&("answer", 42))?;
    let (word, number): (String, u32) = payload.decode()?;
    writeln!(out, "{word}: {number} in {} bytes", payload.len())?;

    // A node is fed and drained; time and bytes come from its owner.
    let now = clock();
    let mut node = Node::new(Config::new(AppId::new("node")?), now, 0.0, [7; 32])?;
    let nacp::link::Connect::Dial(dial) = node.connect(None, None, None) else {
        return Err("there is no attempt to make".into());
    };
    node.handle_connected(now, Origin::Dialled(dial), Trust::Unproven);
    while let Some(transmit) = node.poll_transmit() {
        if let Transmit::Send { lane, .. } = transmit {
            writeln!(out, "the node sends its register in the {lane:?} lane")?;
        }
    }
    node.terminate_now(now);
    let ended = std::iter::from_fn(|| node.poll_event()).any(|event| event == Event::Terminated);
    writeln!(out, "the node has ended: {ended}")?;
    Ok(())
}

/// The only clock of this program.
#[expect(clippy::disallowed_methods, reason = "somebody has to read it")]
fn clock() -> Instant {
    Instant::now()
}
