//! Many links at one node (specification, sections 1, 5 and 8).

use nacp_link::{Config, LinkState};

use crate::support::{DIALLER, Intake, World, app, quiet, secs};

#[test]
fn a_thousand_links_that_come_and_go_leave_nothing_behind() {
    let mut world = World::with([quiet("hub").reconnect_grace(secs(1))]);
    for cycle in 0..200 {
        let names: Vec<_> = (0..5).map(|number| format!("a{cycle}-{number}")).collect();
        for (number, name) in names.iter().enumerate() {
            let hand = world.native(0, name);
            world.signal(0, name, "m");
            world.run();
            match number % 3 {
                0 => hand.hang_up(&mut world),
                1 => {
                    hand.say(&mut world, nacp_proto::Body::Unregister);
                }
                _ => {
                    world.disconnect(0, name);
                    world.run();
                    hand.respond(&mut world, "unregister", "bye");
                }
            }
            world.run();
        }
        world.advance(secs(2));
        let snapshot = world.node(0).snapshot();
        assert_eq!(
            (snapshot.links, snapshot.peers, snapshot.timers),
            (0, 0, 0),
            "cycle {cycle}"
        );
        world.assert_at_rest(0);
    }
}

#[test]
fn a_hundred_links_beat_each_on_its_own_clock() {
    let config = Config::new(app("hub")).heartbeat_interval(Some(secs(60)));
    let mut world = World::with([config]);
    let mut hands = Vec::new();
    for number in 0..100 {
        world.advance_to(secs(number));
        let hand = world.native(0, &format!("a{number}"));
        hand.ack_all(&mut world, true);
        hands.push(hand);
        answer_beats(&mut world, &hands);
    }
    for second in 100..400 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hands);
    }
    for (number, hand) in hands.iter().enumerate() {
        let beats: Vec<_> = world
            .timed(hand.wire, 1 - hand.end)
            .into_iter()
            .filter(|(_, line)| *line == "beat")
            .map(|(at, _)| at / 1000)
            .collect();
        let start = number as u128;
        let expected: Vec<_> = (0..)
            .map(|turn| start + 30 + 60 * turn)
            .take_while(|at| *at < 400)
            .collect();
        assert_eq!(beats, expected, "link {number}");
        assert_eq!(
            world.state(0, &format!("a{number}")),
            Some(LinkState::Online)
        );
    }
}

/// Answers every beat that was said at this instant.
fn answer_beats(world: &mut World, hands: &[crate::support::Hand]) {
    for hand in hands {
        let now = world.at();
        let due = world
            .crossings_since(0, hand.wire, 1 - hand.end)
            .last()
            .is_some_and(|last| last.line == "beat" && last.at == now);
        if due {
            hand.answer_beat(world);
        }
    }
    world.run();
}

#[test]
fn one_link_that_does_not_read_leaves_the_order_of_all_others_alone() {
    let names = ["a", "b", "c", "d"];
    let mut world = World::with(std::iter::once("hub").chain(names).map(quiet));
    let wires: Vec<_> = (1..=4).map(|site| world.link(0, site)).collect();
    world.set_intake(wires[0], DIALLER, Intake::Stalled);
    let mut tokens = Vec::new();
    for number in 1..=300 {
        for name in names {
            tokens.push((name, world.signal(0, name, &format!("m{number}"))));
        }
        world.run();
    }
    let expected: Vec<_> = (1..=300).map(|number| format!("m{number}")).collect();
    for site in 2..=4 {
        assert_eq!(world.handled(site), expected);
    }
    assert_eq!(world.handled(1), Vec::<&str>::new());
    world.set_intake(wires[0], DIALLER, Intake::Open);
    world.run();
    assert_eq!(world.handled(1), expected);
    for (name, token) in tokens {
        assert_eq!(world.outcome(0, token), "delivered", "{name}");
    }
}
