//! Problems of very many buffers, packed by construction, so that the least height is known.

use super::super::skyline::LARGE;
use super::*;

/// The greedy plan, checked.
fn estimated(problem: &Problem) -> Plan {
    let plan = estimate(problem).unwrap();
    check(problem, &plan).unwrap();
    plan
}

#[test]
fn lanes_of_equal_sizes_are_found_again() {
    for (lanes, pieces, steps) in [(200, 100, 1 << 20), (20, 1000, 1 << 20), (400, 50, 200)] {
        let problem = generate::lanes(lanes, pieces, 1 << 30, steps, 1);
        assert!(problem.buffers.len() >= LARGE);
        let plan = estimated(&problem);
        assert_eq!((plan.height, plan.lower_bound), (1 << 30, 1 << 30), "{lanes} lanes");
        assert!(plan.proven_optimal);
    }
}

/// Greedy placement alone is 5 % above it.
#[test]
fn a_perfect_packing_of_many_buffers_is_found_again_within_a_hundredth() {
    let problem = generate::perfect(30_000, 1 << 10, 1 << 8, 1);
    let plan = estimated(&problem);
    assert!(plan.height <= 1034, "{}", plan.height);
}

/// Alignments of 4, and sizes that are no multiples of it: lanes of whole words are the best that there is.
#[test]
fn many_aligned_buffers_are_placed_at_multiples() {
    let mut problem = generate::lanes(200, 100, 1 << 20, 1 << 16, 2);
    for buffer in &mut problem.buffers {
        buffer.align = 4;
    }
    let plan = estimated(&problem);
    assert!(plan.height <= (1 << 20) + 200 * 3, "{}", plan.height);
    assert!(plan.offsets.iter().all(|offset| offset % 4 == 0));
}
