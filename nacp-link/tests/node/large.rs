//! A large message among small ones (specification, sections 4.3, 4.6 and 7).

use nacp_link::{Config, LinkState};

use crate::support::{ACCEPTOR, DIALLER, Intake, World, app, secs};

fn beating(name: &str) -> Config {
    Config::new(app(name)).heartbeat_interval(Some(secs(5)))
}

#[test]
fn t16_acks_beats_and_their_answers_pass_a_large_message_and_its_limit_starts_with_its_last_byte() {
    let mut world = World::with([beating("a"), beating("b")]);
    let wire = world.link(0, 1);
    // The large message of `a` is in the provider's hands for a minute; control messages pass it.
    world.set_intake(wire, DIALLER, Intake::Stalled);
    let large = "l".repeat(8 << 20);
    let request = world.request(0, "b", &large);
    for second in 1..=60 {
        world.advance_to(secs(second));
        if second == 2 {
            world.signal(0, "b", "s1");
            world.signal(1, "a", "s2");
        }
        loop {
            world.run();
            let waiting = world.waiting(wire, DIALLER);
            if waiting
                .first()
                .is_none_or(|line| line.starts_with("request"))
            {
                break;
            }
            world.accept(wire, DIALLER, 1);
        }
        // A part of it has arrived.
        let peer = world.wires[wire].peer(ACCEPTOR);
        let now = world.now();
        world.node(1).handle_progress(now, peer, 64 * 1024);
        world.run();
    }
    assert_eq!(world.handled(0), ["s2"]);
    assert_eq!(world.handled(1), Vec::<&str>::new());
    assert_eq!(world.changes(0, "b"), [(0, "online")]);
    assert_eq!(world.changes(1, "a"), [(0, "online")]);
    world.set_intake(wire, DIALLER, Intake::Open);
    world.run();
    assert_eq!(world.handled(1).len(), 2);
    assert_eq!(world.handled(1)[1], "s1");
    world.answer(1, &large);
    world.advance_to(secs(120));
    assert_eq!(world.outcome(0, request), format!("ok {large}"));
    assert_eq!(world.state(0, "b"), Some(LinkState::Online));
    assert_eq!(world.changes(0, "b").len(), 1);
    assert_eq!(world.changes(1, "a").len(), 1);
}

#[test]
fn a_message_larger_than_the_window_goes_alone_and_in_its_place() {
    let mut world = World::with([beating("a"), beating("b")]);
    let wire = world.link(0, 1);
    world.set_intake(wire, DIALLER, Intake::Stalled);
    world.signal(0, "b", "m1");
    let large = "l".repeat(5 << 20);
    world.signal(0, "b", &large);
    world.signal(0, "b", "m2");
    world.run();
    assert_eq!(world.waiting(wire, DIALLER).len(), 1);
    world.set_intake(wire, DIALLER, Intake::Open);
    world.run();
    assert_eq!(world.handled(1), ["m1", large.as_str(), "m2"]);
}

#[test]
fn a_slow_app_does_not_hold_up_the_answers_to_another() {
    let mut world = World::with([beating("a"), beating("b"), beating("c")]);
    let wire = world.link(0, 1);
    world.link(0, 2);
    world.set_intake(wire, DIALLER, Intake::Stalled);
    world.request(0, "b", &"l".repeat(8 << 20));
    let token = world.request(0, "c", "r1");
    world.run();
    world.answer(2, "r1");
    world.run();
    assert_eq!(world.outcome(0, token), "ok r1");
}
