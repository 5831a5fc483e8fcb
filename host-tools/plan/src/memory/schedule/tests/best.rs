//! The whole search, with every budget: against all orders of small networks, all mergers of two long chains, and a record of larger ones.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// The peak of an order by its definition: a buffer is alive from its first use to its last, an input from the start, an output to the end.
fn peak_of(problem: &Ordering, order: &[usize]) -> u64 {
    let uses = |b: usize| {
        let at = |&step: &usize| problem.steps[step].buffers.contains(&b);
        let first = order.iter().position(at)?;
        Some((first, order.iter().rposition(at)?))
    };
    let alive = |at: usize, b: usize| match uses(b) {
        None => problem.inputs.contains(&b),
        Some((first, last)) => (problem.inputs.contains(&b) || first <= at) && (problem.stays[b] || at <= last),
    };
    let live = |at: usize| {
        (0..problem.bytes.len())
            .filter(|&b| alive(at, b))
            .map(|b| problem.bytes[b])
            .sum::<u64>()
    };
    let before: u64 = problem.inputs.iter().map(|&b| problem.bytes[b]).sum();
    let during = order
        .iter()
        .enumerate()
        .map(|(at, &step)| live(at) + problem.steps[step].scratch);
    during.fold(before, u64::max)
}

/// Whether every step is there once, behind what it needs.
fn is_order(problem: &Ordering, order: &[usize]) -> bool {
    let at: HashMap<usize, usize> = order.iter().enumerate().map(|(at, &step)| (step, at)).collect();
    let behind = |step: usize| problem.steps[step].after.iter().all(|before| at[before] < at[&step]);
    order.len() == problem.steps.len() && at.len() == order.len() && (0..order.len()).all(behind)
}

/// Conditions that every answer must meet.
fn holds(problem: &Ordering, found: &Schedule) {
    assert!(is_order(problem, &found.order), "{found:?}");
    let traced: Vec<usize> = (0..problem.steps.len()).collect();
    assert_eq!(found.peak, peak_of(problem, &found.order), "{found:?}");
    assert_eq!(found.traced_peak, peak_of(problem, &traced), "{found:?}");
    assert!(found.peak <= found.traced_peak);
    // The traced order is kept where none is lower.
    assert!(found.peak < found.traced_peak || found.order == traced, "{found:?}");
}

fn least(problem: &Ordering, order: &mut Vec<usize>) -> u64 {
    if order.len() == problem.steps.len() {
        return peak_of(problem, order);
    }
    let mut best = u64::MAX;
    for step in 0..problem.steps.len() {
        if !order.contains(&step) && problem.steps[step].after.iter().all(|b| order.contains(b)) {
            order.push(step);
            best = best.min(least(problem, order));
            order.pop();
        }
    }
    best
}

prop_compose! {
    /// Six steps, of which each writes a buffer of its own and reads those of some before it, or inputs; scratch, outputs in the middle, an input that stays
    /// and a buffer that nothing touches.
    fn small()(
        bytes in prop::collection::vec(0u64..50, 10),
        reads in prop::collection::vec(0u32..64, 6),
        scratch in prop::collection::vec(prop_oneof![Just(0u64), 0u64..60], 6),
        outputs in 0u32..512,
    ) -> Ordering {
        let steps = (0..6).map(|i| {
            let after: Vec<usize> = (0..i).filter(|&j| reads[i] >> j & 1 == 1).collect();
            let mut buffers: Vec<usize> = after.iter().map(|j| j + 2).collect();
            if buffers.is_empty() || reads[i] >> 5 == 1 {
                buffers.push(i % 2);
            }
            buffers.push(i + 2);
            Item { buffers, after, scratch: scratch[i] }
        });
        let outputs: Vec<usize> = (0..8).filter(|b| outputs >> b & 1 == 1 || *b == 7).collect();
        Ordering::new(steps.collect(), bytes, vec![0, 1, 8], &outputs)
    }
}

proptest! {
    #[test]
    fn no_budget_gives_a_wrong_order(problem in small(), nodes in 0u64..200) {
        let best = least(&problem, &mut Vec::new());
        let mut told = Vec::new();
        let found = problem.best(nodes, &mut |spent| told.push(spent));
        holds(&problem, &found);
        prop_assert!(told.is_sorted() && told.last().is_none_or(|&last| last <= nodes), "{told:?} of {nodes}");
        prop_assert!(found.peak >= best);
        prop_assert!(!found.proven_optimal || found.peak == best, "{found:?}, and {best} can be had");
        let found = problem.best(10_000, &mut |_| ());
        holds(&problem, &found);
        prop_assert_eq!((found.peak, found.proven_optimal), (best, true));
        // No order is below what one step needs.
        prop_assert!(problem.least_peak() <= best);
        let own = |item: &Item| item.buffers.iter().map(|&b| problem.bytes[b]).sum::<u64>() + item.scratch;
        prop_assert!(problem.steps.iter().any(|item| own(item) == problem.least_peak()));
        // A search says how far it went: never beyond its nodes, and with them all again, the same.
        let search = problem.search(found.traced_peak + 1, EXACT_STATES, nodes, &mut |_| ());
        prop_assert!(search.nodes <= nodes);
        if search.complete {
            prop_assert_eq!(search.found.map(|(_, peak)| peak), Some(best));
            let again = problem.search(found.traced_peak + 1, EXACT_STATES, search.nodes, &mut |_| ());
            prop_assert!(again.complete && again.nodes == search.nodes);
            prop_assert!(!problem.search(found.traced_peak + 1, EXACT_STATES, search.nodes - 1, &mut |_| ()).complete);
        }
    }

    /// Sets of steps, whose first words may be full.
    #[test]
    fn sets_have_what_was_put_in(ends in prop::collection::vec(0usize..200, 1..4), rest in prop::collection::vec(0usize..200, 0..20)) {
        let steps: BTreeSet<usize> = ends.iter().flat_map(|&end| 0..end).chain(rest.iter().copied()).collect();
        let empty = Set::empty();
        let up = steps.iter().fold(empty.clone(), |set, &step| set.with(step));
        let down = steps.iter().rev().fold(empty, |set, &step| set.with(step));
        prop_assert_eq!(&up, &down);
        for step in 0..300 {
            prop_assert_eq!(up.has(step), steps.contains(&step));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 32))]

    /// Two chains of 70 steps from one input, which only their ends join: more steps than a word of a set has bits. An order is a path through a grid.
    #[test]
    fn two_chains_are_merged_as_low_as_can_be(bytes in prop::collection::vec(prop::collection::vec(1u64..1000, 70), 2)) {
        let length = bytes[0].len();
        let mut steps = Vec::new();
        let mut sizes = vec![5];
        for step in 0..2 * length {
            let (before, after) = if step < 2 {
                (0, vec![])
            } else {
                (step - 1, vec![step - 2])
            };
            steps.push(Item {
                buffers: vec![before, step + 1],
                after,
                scratch: 0,
            });
            sizes.push(bytes[step % 2][step / 2]);
        }
        steps.push(Item { buffers: vec![2 * length - 1, 2 * length], after: vec![2 * length - 2, 2 * length - 1], scratch: 0 });
        let problem = Ordering::new(steps, sizes, vec![0], &[]);
        // The lowest peak with so many steps done of each chain.
        let mut lowest: HashMap<(usize, usize), u64> = HashMap::from([((0, 0), 5)]);
        let held = |chain: usize, done: usize| if done == 0 { 0 } else { bytes[chain][done - 1] };
        for a in 0..=length {
            for b in 0..=length {
                if (a, b) == (0, 0) {
                    continue;
                }
                // The input is alive until both chains have read it; during a step both its operands are.
                let step = |chain: usize, done: usize, other: usize| {
                    let input = if done == 1 || other == 0 { 5 } else { 0 };
                    held(chain, done) + held(chain, done - 1) + held(1 - chain, other) + input
                };
                let first = (a > 0).then(|| lowest[&(a - 1, b)].max(step(0, a, b)));
                let second = (b > 0).then(|| lowest[&(a, b - 1)].max(step(1, b, a)));
                lowest.insert((a, b), first.into_iter().chain(second).min().expect("one was last"));
            }
        }
        let found = problem.best(100_000, &mut |_| ());
        holds(&problem, &found);
        prop_assert_eq!((found.peak, found.proven_optimal), (lowest[&(length, length)], true));
    }
}

/// The result for every budget is the one on record: a change of the search shows here, and is meant where it is better.
#[test]
fn orders_of_every_budget_are_those_on_record() {
    let mut text = String::from("# heads, budget: the peak that was found, whether it is proven; the first steps\n");
    for width in [2, 5, 9, 40] {
        let problem = heads(width);
        for nodes in [0, 20, 60, 200, 700, 3_000, 20_000, 300_000] {
            let best = problem.best(nodes, &mut |_| ());
            holds(&problem, &best);
            let (peak, proven, first) = (best.peak, best.proven_optimal, &best.order[..6]);
            let _ = writeln!(text, "{width}, {nodes}: {peak}, {proven}; {first:?}");
        }
    }
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/memory/schedule/tests/record.txt");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&record, &text).expect("written");
    }
    let tracked = std::fs::read_to_string(&record).expect("the record");
    assert_eq!(
        text, tracked,
        "where this is meant: ARENITE_BLESS=1 cargo test -p arenite-host orders_of_every_budget"
    );
}
