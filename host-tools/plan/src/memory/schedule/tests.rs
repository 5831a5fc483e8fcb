//! Orders of made-up networks.

mod best;

use super::*;
use proptest::prelude::*;

fn item(buffers: &[usize], after: &[usize]) -> Item {
    Item {
        buffers: buffers.to_vec(),
        after: after.to_vec(),
        scratch: 0,
    }
}

/// Two branches from one input, each wide in the middle and narrow at its end: traced side by side, better one after the other.
#[test]
fn branches_are_finished_one_by_one() {
    let steps = vec![
        item(&[0, 1], &[]),
        item(&[0, 2], &[]),
        item(&[1, 3], &[0]),
        item(&[2, 4], &[1]),
        item(&[3, 4, 5], &[2, 3]),
    ];
    let problem = Ordering::new(steps, vec![10, 100, 100, 1, 1, 1], vec![0], &[5]);
    assert_eq!(problem.peak(&[0, 1, 2, 3, 4]), 210);
    let search = problem.search(210, EXACT_STATES, 1000, &mut |_| ());
    let (order, peak) = search.found.expect("a better order");
    assert!(search.complete && search.exact);
    assert_eq!(peak, 111);
    assert_eq!(problem.peak(&order), 111);
}

/// `heads` branches of three steps each from one input, wide in the middle, all of which the last step joins.
fn heads(heads: usize) -> Ordering {
    let mut steps = Vec::new();
    let mut bytes = vec![10];
    for stage in 0..3 {
        for head in 0..heads {
            let reads = if stage == 0 { 0 } else { 1 + (stage - 1) * heads + head };
            let after = if stage == 0 {
                vec![]
            } else {
                vec![(stage - 1) * heads + head]
            };
            steps.push(item(&[reads, 1 + stage * heads + head], &after));
            bytes.push([1000, 500, 1][stage] + head as u64 % 7);
        }
    }
    let last: Vec<usize> = (1 + 2 * heads..1 + 3 * heads + 1).collect();
    steps.push(item(&last, &(2 * heads..3 * heads).collect::<Vec<_>>()));
    bytes.push(7);
    let output = bytes.len() - 1;
    Ordering::new(steps, bytes, vec![0], &[output])
}

#[test]
fn a_wide_network_is_ordered_within_its_nodes() {
    let problem = heads(300);
    let traced: Vec<usize> = (0..901).collect();
    let before = problem.peak(&traced);
    let whole = problem.search(before, EXACT_STATES, 1_000_000, &mut |_| ());
    assert!(!whole.complete && whole.nodes <= 1_000_000);
    for nodes in [300_000, 2_000_000] {
        let narrow = problem.search(before, 1, nodes, &mut |_| ());
        assert!(narrow.complete && !narrow.exact && narrow.nodes <= nodes);
        let (order, peak) = narrow.found.expect("a better order");
        assert_eq!(problem.peak(&order), peak);
        assert!(peak < before / 50, "{peak} of {before}");
    }
    assert!(!problem.search(before, 1, 1000, &mut |_| ()).complete);
    let branches = problem.depth_first(true);
    assert!(problem.peak(&branches) < before / 50);
}

/// A peak, whether the search was complete and exact, its nodes, and the peaks of both depth-first orders.
type Found = (Option<u64>, bool, bool, u64, [u64; 2]);

const RECORD: [Found; 5] = [
    (Some(1510), true, false, 10, [1510, 1512]),
    (Some(1522), true, false, 46, [1522, 1524]),
    (Some(1521), true, false, 335, [1522, 1524]),
    (Some(1519), true, false, 3554, [1522, 1524]),
    (Some(1536), true, false, 7976, [1543, 1540]),
];

/// Orders of made-up networks with every budget are those on record, at the same cost: a change of the search shows here, and is meant where
/// it is better.
#[test]
fn orders_are_found_as_on_record() {
    let mut found = Vec::new();
    for (width, states, nodes) in [
        (2, 1, 1_000),
        (5, 1, 5_000),
        (5, 8, 50_000),
        (5, 128, 50_000),
        (9, 64, 20_000),
    ] {
        let problem = heads(width);
        let traced: Vec<usize> = (0..problem.steps.len()).collect();
        let search = problem.search(problem.peak(&traced), states, nodes, &mut |_| ());
        let peak = search.found.map(|(_, peak)| peak);
        let deep = [false, true].map(|last_first| problem.peak(&problem.depth_first(last_first)));
        found.push((peak, search.complete, search.exact, search.nodes, deep));
    }
    assert_eq!(found, RECORD);
}

fn permutations(problem: &Ordering, order: &mut Vec<usize>, best: &mut u64) {
    if order.len() == problem.steps.len() {
        *best = (*best).min(problem.peak(order));
        return;
    }
    for step in 0..problem.steps.len() {
        if !order.contains(&step) && problem.steps[step].after.iter().all(|b| order.contains(b)) {
            order.push(step);
            permutations(problem, order, best);
            order.pop();
        }
    }
}

proptest! {
    /// Against all orders of small random graphs.
    #[test]
    fn the_search_finds_the_best_order(
        sizes in prop::collection::vec(1u64..50, 7),
        edges in prop::collection::vec(prop::collection::vec(any::<bool>(), 6), 6),
    ) {
        // Step i writes buffer i + 1 and reads buffer j + 1 of some earlier steps j, or the input.
        let steps: Vec<Item> = (0..6).map(|i| {
            let after: Vec<usize> = (0..i).filter(|&j| edges[i][j]).collect();
            let mut buffers: Vec<usize> = after.iter().map(|j| j + 1).collect();
            if buffers.is_empty() {
                buffers.push(0);
            }
            buffers.push(i + 1);
            Item { buffers, after, scratch: 0 }
        }).collect();
        let problem = Ordering::new(steps, sizes, vec![0], &[6]);
        let mut best = u64::MAX;
        permutations(&problem, &mut Vec::new(), &mut best);
        let traced = problem.peak(&[0, 1, 2, 3, 4, 5]);
        let search = problem.search(traced, EXACT_STATES, 100_000, &mut |_| ());
        prop_assert!(search.complete && search.exact);
        for last_first in [true, false] {
            let order = problem.depth_first(last_first);
            let is_done = |at: usize, before: &usize| order[..at].contains(before);
            let follows = |(at, &step): (usize, &usize)| problem.steps[step].after.iter().all(|b| is_done(at, b));
            prop_assert!(order.iter().enumerate().all(follows));
            prop_assert_eq!(order.len(), 6);
            prop_assert!(problem.peak(&order) >= best);
        }
        prop_assert_eq!(search.found.map_or(traced, |(order, peak)| {
            assert_eq!(problem.peak(&order), peak);
            peak
        }), best);
    }
}
