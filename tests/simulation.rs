//! Nodes meet in virtual time, over a network that does what networks do, and are held to their
//! promises after every step.
//!
//! - `NACP_SIM_SEEDS=n` runs that many seeds instead of 2000, `NACP_SIM_FROM=n` begins there.
//! - `NACP_SIM_SEED=n` runs that one; with `NACP_SIM_TRACE=1` everything that happens is printed,
//!   with `NACP_SIM_SHRINK=1` calls and faults are left out first while the seed still fails.
#![expect(
    clippy::print_stdout,
    reason = "a replay is printed for whoever asked for it"
)]

#[path = "simulation/mod.rs"]
mod simulation;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use simulation::{MIN_FAULTS, MIN_OPS, Outcome, Plan, Stats, World, shrink};

const SEEDS: u64 = 2000;
const SHARDS: u64 = 4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(plan: &Plan, is_logged: bool) -> Outcome {
    let seed = plan.seed;
    catch_unwind(AssertUnwindSafe(|| World::run(plan.clone(), is_logged)))
        .unwrap_or_else(|_| panic!("seed {seed} panics\n{}", replay(seed)))
}

fn replay(seed: u64) -> String {
    format!(
        "replay: NACP_SIM_SEED={seed} NACP_SIM_TRACE=1 cargo nextest run -p {} --test simulation one_seed --no-capture",
        env!("CARGO_PKG_NAME")
    )
}

/// What a seed that went well lacks to count.
fn too_little(stats: &Stats) -> Option<String> {
    if stats.fault_count() < MIN_FAULTS as u64 {
        return Some(format!("too little breaks: {:?}", stats.faults));
    }
    (stats.messages < MIN_OPS as u64).then(|| format!("only {} messages", stats.messages))
}

/// Every fourth seed, so that the shards run side by side.
fn run_shard(shard: u64) {
    if number("NACP_SIM_SEED").is_some() {
        return;
    }
    let (count, from) = (
        number("NACP_SIM_SEEDS").unwrap_or(SEEDS),
        number("NACP_SIM_FROM").unwrap_or(0),
    );
    let keeps_going = number("NACP_SIM_ALL").is_some();
    let (mut stats, mut failures) = (Stats::default(), Vec::new());
    let started = now();
    for seed in (from..from + count).filter(|seed| seed % SHARDS == shard) {
        let outcome = run(&Plan::new(seed), false);
        if let Some(failure) = outcome
            .failure
            .clone()
            .or_else(|| too_little(&outcome.stats))
        {
            let failure = format!("seed {seed}: {failure}\n{}", replay(seed));
            assert!(keeps_going, "{failure}");
            failures.push(failure);
        }
        stats.add(&outcome.stats);
    }
    println!(
        "{count} seeds, shard {shard} of {SHARDS}, wall time {:?}: {stats:#?}",
        started.elapsed()
    );
    assert!(
        failures.is_empty(),
        "{}\n{} failures",
        failures.join("\n"),
        failures.len()
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "the wall time of a run is told, and decides nothing"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn every_seed_keeps_every_promise_first_quarter() {
    run_shard(0);
}

#[test]
fn every_seed_keeps_every_promise_second_quarter() {
    run_shard(1);
}

#[test]
fn every_seed_keeps_every_promise_third_quarter() {
    run_shard(2);
}

#[test]
fn every_seed_keeps_every_promise_last_quarter() {
    run_shard(3);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..40 {
        let plan = Plan::new(seed);
        let (first, second) = (run(&plan, false).hash, run(&plan, false).hash);
        assert_eq!(
            first,
            second,
            "seed {seed} takes two courses\n{}",
            replay(seed)
        );
    }
}

#[test]
fn one_seed() {
    let mut plan = Plan::new(number("NACP_SIM_SEED").unwrap_or(0));
    if number("NACP_SIM_SHRINK").is_some() {
        plan = shrink(plan);
        println!("left: {} calls, {:?}", plan.ops.len(), plan.faults);
    }
    let is_logged = number("NACP_SIM_TRACE").is_some();
    let outcome = run(&plan, is_logged);
    if is_logged {
        println!("{:?} {:?}", plan.nodes, plan.edges);
        println!("{}\n{:#?}", outcome.lines.join("\n"), outcome.stats);
    }
    assert_eq!(outcome.failure, None, "seed {}", plan.seed);
}
