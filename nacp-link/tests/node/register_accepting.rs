//! Registering, the accepting side (specification, section 4.2).

use crate::support::{ACCEPTOR, DIALLER, World, quiet};

#[test]
fn two_nodes_register_with_ack_response_and_ack_of_the_response() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    assert_eq!(
        world.said(wire, DIALLER),
        ["register", "ack answer register"]
    );
    assert_eq!(
        world.said(wire, ACCEPTOR),
        ["ack register", "answer register"]
    );
}
