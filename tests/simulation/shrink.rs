use super::plan::{Plan, Planned};
use super::world::World;

/// Runs spent on making a plan smaller.
const BUDGET: usize = 600;

/// Leaves out calls and faults while the seed still fails.
pub(crate) fn shrink(plan: Plan) -> Plan {
    let mut budget = BUDGET;
    let mut plan = plan;
    loop {
        let before = (plan.ops.len(), plan.faults.len());
        plan = thin(plan, &mut budget, |plan| &mut plan.faults);
        plan = thin(plan, &mut budget, |plan| &mut plan.ops);
        if before == (plan.ops.len(), plan.faults.len()) || budget == 0 {
            return plan;
        }
    }
}

fn thin<T: Copy>(
    mut plan: Plan,
    budget: &mut usize,
    part: impl Fn(&mut Plan) -> &mut Vec<Planned<T>>,
) -> Plan {
    let mut size = part(&mut plan).len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < part(&mut plan).len() {
            if *budget == 0 {
                return plan;
            }
            *budget -= 1;
            let mut smaller = plan.clone();
            let all = part(&mut smaller);
            let end = (at + size).min(all.len());
            all.drain(at..end);
            if World::run(smaller.clone(), false).failure.is_some() {
                plan = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    plan
}
