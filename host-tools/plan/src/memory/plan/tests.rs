//! Property tests, comparison with brute force, and the reference instances.

mod check;
mod instances;
mod large;
mod record;

use proptest::prelude::*;

use super::instance::{Instance, SEARCH_LIMIT};
use super::*;

/// A stretch of a buffer's life: steps, offset in the buffer, bytes.
fn part(lower: u64, upper: u64, offset: u64, size: u64) -> Part {
    Part {
        lower,
        upper,
        offset,
        size,
    }
}

fn within(nodes: u64, capacity: Option<u64>) -> Options {
    Options { capacity, nodes }
}

/// Solves, checks, and compares with the greedy plan and the bound.
fn solved(problem: &Problem, options: &Options) -> Plan {
    let plan = solve(problem, options).unwrap();
    check(problem, &plan).unwrap();
    let greedy = estimate(problem).unwrap();
    check(problem, &greedy).unwrap();
    assert!(plan.lower_bound >= lower_bound(problem).unwrap());
    if options.capacity.is_none() {
        assert!(plan.height <= greedy.height);
    }
    assert!(plan.nodes <= options.nodes);
    assert_eq!(plan, solve(problem, options).unwrap(), "a plan must be reproducible");
    plan
}

/// The least height at which every buffer can be given some offset, by trying all offsets. For tiny problems.
fn brute_force(problem: &Problem) -> u64 {
    fn clash(problem: &Problem, a: usize, at_a: u64, b: usize, at_b: u64) -> bool {
        let holds = |below: usize, above: usize, low: u64, high: u64| {
            problem
                .relations
                .iter()
                .any(|r| r.below == below && r.above == above && low as i64 + r.distance <= high as i64)
        };
        if holds(a, b, at_a, at_b) || holds(b, a, at_b, at_a) {
            return false;
        }
        problem.buffers[a].parts.iter().any(|p| {
            problem.buffers[b].parts.iter().any(|q| {
                p.lower < q.upper
                    && q.lower < p.upper
                    && at_a + p.offset < at_b + q.offset + q.size
                    && at_b + q.offset < at_a + p.offset + p.size
            })
        })
    }
    fn fits(problem: &Problem, height: u64, offsets: &mut Vec<u64>) -> bool {
        let index = offsets.len();
        let Some(buffer) = problem.buffers.get(index) else {
            return true;
        };
        let top = buffer.parts.iter().map(|p| p.offset + p.size).max().unwrap_or(0);
        let mut at = 0;
        while at + top <= height {
            if (0..index).all(|other| !clash(problem, other, offsets[other], index, at)) {
                offsets.push(at);
                if fits(problem, height, offsets) {
                    return true;
                }
                offsets.pop();
            }
            at += buffer.align;
        }
        false
    }
    (0..).find(|&height| fits(problem, height, &mut Vec::new())).unwrap()
}

fn buffer() -> impl Strategy<Value = Buffer> {
    (0u64..6, 1u64..5, 1u64..5, prop_oneof![4 => Just(1u64), 1 => Just(2u64)])
        .prop_map(|(lower, life, size, align)| Buffer::new("t", lower, lower + life, size).aligned(align))
}

fn plain(count: usize) -> impl Strategy<Value = Problem> {
    prop::collection::vec(buffer(), 1..=count).prop_map(|buffers| Problem {
        buffers,
        relations: vec![],
    })
}

/// A second part for some buffers, and relations.
fn general(count: usize) -> impl Strategy<Value = Problem> {
    let part = prop::option::weighted(0.3, (0u64..6, 1u64..4, 0u64..4, 1u64..3));
    let buffers = prop::collection::vec((buffer(), part), 2..=count);
    let relations = prop::collection::vec((0usize..count, 0usize..count, -1i64..3), 0..4);
    (buffers, relations).prop_map(|(buffers, relations)| {
        let mut list: Vec<Buffer> = Vec::new();
        for (mut buffer, part) in buffers {
            if let Some((lower, life, offset, size)) = part {
                buffer.parts.push(Part {
                    lower,
                    upper: lower + life,
                    offset,
                    size,
                });
            }
            list.push(buffer);
        }
        let relations = relations
            .into_iter()
            .filter(|&(below, above, _)| below != above && below < list.len() && above < list.len())
            .map(|(below, above, distance)| Relation { below, above, distance })
            .collect();
        Problem {
            buffers: list,
            relations,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

    #[test]
    fn plain_problems_agree_with_brute_force(problem in plain(7)) {
        let plan = solved(&problem, &within(100_000, None));
        prop_assert!(plan.proven_optimal);
        prop_assert_eq!(plan.height, brute_force(&problem));
    }

    #[test]
    fn general_problems_are_sound(problem in general(5)) {
        let plan = solved(&problem, &within(100_000, None));
        let least = brute_force(&problem);
        prop_assert!(plan.lower_bound <= least && least <= plan.height, "{} {} {}", plan.lower_bound, least, plan.height);
        if plan.proven_optimal {
            prop_assert_eq!(plan.height, least);
        }
    }

    #[test]
    fn capacity_decides(problem in plain(7), slack in -1i64..2) {
        let least = brute_force(&problem);
        let capacity = least.saturating_add_signed(slack);
        let plan = solved(&problem, &within(100_000, Some(capacity)));
        if slack >= 0 {
            prop_assert!(plan.height <= capacity);
        } else {
            prop_assert_eq!(plan.lower_bound, least);
        }
    }

    #[test]
    fn larger_plans_are_valid(seed in 0u64..1000, kind in 0usize..5, count in 10usize..120) {
        let problem = match kind {
            0 => generate::perfect(count, 1 << 16, 1 << 10, seed),
            1 => generate::loose(count, 1 << 16, 1 << 10, 30, seed),
            2 => generate::chain(count, seed),
            3 => generate::wide(count, seed),
            _ => generate::adversarial(count, seed),
        };
        let greedy = estimate(&problem).unwrap();
        check(&problem, &greedy).unwrap();
        let plan = solved(&problem, &within(2_000, None));
        prop_assert!(plan.height <= greedy.height);
        prop_assert!(greedy.lower_bound <= plan.lower_bound && lower_bound(&problem).unwrap() <= plan.lower_bound);
    }

    /// SIMD and DMA ask for more than others: each buffer has an alignment of its own.
    #[test]
    fn larger_plans_keep_every_alignment(seed in 0u64..1000, count in 10usize..80) {
        let mut problem = generate::chain(count, seed);
        for (index, buffer) in problem.buffers.iter_mut().enumerate() {
            buffer.align = [1, 4, 16, 32, 24][(index * 7 + seed as usize) % 5];
            buffer.parts[0].size += index as u64 % 5;
        }
        let plan = solved(&problem, &within(2_000, None));
        for (buffer, offset) in problem.buffers.iter().zip(&plan.offsets) {
            prop_assert!(offset.is_multiple_of(buffer.align), "{} at {offset}", buffer.name);
        }
        prop_assert!(plan.height <= estimate(&problem).unwrap().height);
    }

    #[test]
    fn fixed_offsets_are_kept(problem in plain(6), at in 0u64..8) {
        let mut problem = problem;
        problem.buffers[0].fixed = Some(at * problem.buffers[0].align);
        let plan = solved(&problem, &within(50_000, None));
        prop_assert_eq!(Some(plan.offsets[0]), problem.buffers[0].fixed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

    /// With hardly a node to spend, a bound still holds, and a proof is claimed only where it does.
    #[test]
    fn tiny_budgets_prove_nothing_that_is_not_so(problem in prop_oneof![plain(7), general(5)], nodes in 0u64..4) {
        let plan = solved(&problem, &within(nodes, None));
        let least = brute_force(&problem);
        prop_assert!(plan.lower_bound <= least && least <= plan.height, "{} {} {}", plan.lower_bound, least, plan.height);
        prop_assert_eq!(plan.proven_optimal, plan.proof != Proof::None);
        prop_assert!(!plan.proven_optimal || plan.height == least);
    }
}

/// Perfect packings have a known optimum, which a search without time misses: it must not say that there is none.
#[test]
fn a_budget_that_runs_out_proves_nothing() {
    const CAPACITY: u64 = 1 << 14;
    let (mut unproven, mut rounds) = (0, 0);
    for seed in 0..12 {
        let problem = generate::perfect(60, CAPACITY, 1 << 8, seed);
        for nodes in [0, 1, 10, 100, 1000] {
            let plan = solved(&problem, &within(nodes, None));
            let mut told = Vec::new();
            let watched = solve_watched(&problem, &within(nodes, None), &mut |spent| told.push(spent));
            assert_eq!(watched, Ok(plan.clone()));
            assert!(told.iter().all(|&spent| spent <= nodes), "{told:?} of {nodes}");
            rounds += told.len();
            assert_eq!(plan.lower_bound, CAPACITY, "seed {seed}, {nodes} nodes");
            assert_eq!(
                plan.proven_optimal,
                plan.height == CAPACITY,
                "seed {seed}, {nodes} nodes"
            );
            assert_eq!(plan.proof == Proof::None, plan.height != CAPACITY);
            unproven += u64::from(!plan.proven_optimal);
            // Nor with a capacity that is asked for.
            let plan = solved(&problem, &within(nodes, Some(CAPACITY)));
            assert_eq!(plan.lower_bound, CAPACITY, "seed {seed}, {nodes} nodes");
        }
    }
    assert!(unproven > 10 && rounds > 0, "{unproven}, {rounds}");
}

#[test]
fn in_place_saves_a_buffer() {
    let buffers = vec![Buffer::new("in", 0, 2, 64), Buffer::new("out", 1, 3, 64)];
    let apart = Problem {
        buffers,
        relations: vec![],
    };
    assert_eq!(solve(&apart, &Options::default()).unwrap().height, 128);
    let relations = vec![Relation {
        below: 1,
        above: 0,
        distance: 0,
    }];
    let shared = Problem {
        relations,
        ..apart.clone()
    };
    let plan = solved(&shared, &Options::default());
    assert_eq!((plan.height, plan.proof), (64, Proof::BoundMet));
    // An output that trails its input by 16 bytes.
    let relations = vec![Relation {
        below: 1,
        above: 0,
        distance: 16,
    }];
    let plan = solved(&Problem { relations, ..apart }, &Options::default());
    assert_eq!(
        (plan.height, plan.offsets.as_slice(), plan.proven_optimal),
        (80, &[16, 0][..], true)
    );
}

#[test]
fn the_inputs_of_a_concatenation_lie_inside_it() {
    let parts = vec![part(0, 9, 0, 10), part(4, 9, 10, 20), part(6, 9, 0, 30)];
    let joined = Buffer {
        name: "concat".into(),
        align: 1,
        parts,
        fixed: None,
    };
    // Fits in the hole that the second input has not filled yet.
    let problem = Problem {
        buffers: vec![joined, Buffer::new("early", 1, 4, 20)],
        relations: vec![],
    };
    let plan = solved(&problem, &Options::default());
    assert_eq!((plan.height, plan.offsets.as_slice()), (30, &[0, 10][..]));
}

#[test]
fn alignment_counts_in_the_bound() {
    let buffers = (0..3)
        .map(|i| Buffer::new(format!("t{i}"), 0, 1, 17).aligned(16))
        .collect();
    let plan = solved(
        &Problem {
            buffers,
            relations: vec![],
        },
        &Options::default(),
    );
    assert_eq!((plan.height, plan.proof), (32 + 32 + 17, Proof::BoundMet));
}

#[test]
fn exhaustion_proves_what_max_live_cannot() {
    // Two long buffers of 2 that three short ones of 3, pairwise apart in time, force away from each other.
    let rows = [
        (0, 4, 2),
        (2, 6, 2),
        (0, 2, 3),
        (4, 6, 3),
        (2, 4, 1),
        (1, 3, 1),
        (3, 5, 1),
    ];
    let buffers = rows
        .iter()
        .enumerate()
        .map(|(i, &(l, u, s))| Buffer::new(format!("t{i}"), l, u, s))
        .collect();
    let problem = Problem {
        buffers,
        relations: vec![],
    };
    let plan = solved(&problem, &Options::default());
    assert!(plan.proven_optimal);
    assert_eq!(plan.height, brute_force(&problem));
}

#[test]
fn nothing_to_place() {
    let plan = solved(&Problem::default(), &Options::default());
    assert_eq!((plan.height, plan.proven_optimal), (0, true));
    let plan = solved(
        &Problem {
            buffers: vec![Buffer::new("empty", 0, 4, 0)],
            relations: vec![],
        },
        &Options::default(),
    );
    assert_eq!((plan.height, plan.offsets.as_slice()), (0, &[0][..]));
}

#[test]
fn contradictions_are_refused() {
    let problem = |buffers| Problem {
        buffers,
        relations: vec![],
    };
    let refused = |problem: &Problem| {
        solve(problem, &Options::default())
            .expect_err("must be refused")
            .to_string()
    };
    assert!(refused(&problem(vec![Buffer::new("a", 0, 1, 4).aligned(0)])).contains("\"a\""));
    assert!(refused(&problem(vec![Buffer::new("a", 2, 1, 4)])).contains("end before"));
    assert!(
        refused(&problem(vec![
            Buffer::new("a", 0, 1, u64::MAX),
            Buffer::new("b", 0, 1, 1)
        ]))
        .contains("2^60")
    );
    let fixed = |at, align| Buffer {
        fixed: Some(at),
        ..Buffer::new("f", 0, 1, 4).aligned(align)
    };
    assert!(refused(&problem(vec![fixed(3, 2)])).contains("multiple"));
    assert!(refused(&problem(vec![fixed(0, 1), fixed(2, 1)])).contains("overlap"));
    let related = |below, above, distance| Problem {
        buffers: vec![Buffer::new("a", 0, 1, 4), Buffer::new("b", 0, 1, 4)],
        relations: vec![Relation { below, above, distance }],
    };
    assert!(refused(&related(0, 7, 0)).contains("buffer 7"));
    assert!(refused(&related(2, 0, 0)).contains("buffer 2"));
    assert!(refused(&related(1, 1, 0)).contains("two different buffers"));
    for (distance, fits) in [
        (1 << 60, true),
        ((1 << 60) + 1, false),
        (-(1 << 60), true),
        (-(1 << 60) - 1, false),
    ] {
        let found = solve(&related(0, 1, distance), &Options::default());
        assert_eq!(found.is_ok(), fits, "{distance}");
    }
    // The sum of all is bounded, to the byte.
    let sized = |size| problem(vec![Buffer::new("a", 0, 1, 5), Buffer::new("b", 0, 1, size)]);
    assert!(refused(&sized((1 << 60) - 6)).contains("\"b\""));
    assert!(solve(&sized((1 << 60) - 7), &Options::default()).is_ok());
}

#[test]
fn a_buffer_lives_as_long_and_is_as_large_as_all_its_parts() {
    let buffer = |parts| Buffer {
        parts,
        ..Buffer::new("b", 0, 1, 1)
    };
    let several = buffer(vec![part(5, 9, 0, 4), part(2, 3, 4, 8), part(7, 8, 2, 3)]);
    assert_eq!((several.life(), several.bytes()), (2..9, 12));
    let nothing = buffer(vec![]);
    assert_eq!((nothing.life(), nothing.bytes()), (0..0, 0));
}

/// Where nothing that lives begins at an offset of zero, what is below it is lost: known before anything is tried.
#[test]
fn what_every_live_buffer_leaves_below_it_is_part_of_a_bound() {
    let stairs = |name: &str| Buffer {
        parts: vec![part(0, 1, 0, 4), part(1, 2, 4, 4)],
        ..Buffer::new(name, 0, 1, 1)
    };
    let problem = Problem {
        buffers: vec![stairs("a"), stairs("b")],
        relations: vec![],
    };
    assert_eq!(lower_bound(&problem).unwrap(), 8);
    let plan = solved(&problem, &within(1, None));
    assert_eq!((plan.height, plan.nodes), (12, 0));
    assert!(plan.proven_optimal);
    assert_eq!(plan.proof, Proof::Exhausted);
}

/// A problem of exactly the size that is searched at most: members of all live sets, and pairs that live together.
#[test]
fn problems_are_searched_up_to_a_size() {
    // Three that need a search, then buffers that live together: n of them are n (n + 1) / 2 of the size, and one alone is one.
    let hard = generate::perfect(60, 1 << 14, 1 << 8, 0);
    let searched = |size: usize| {
        let mut problem = hard.clone();
        let mut rest = size - Instance::new(&problem).unwrap().search_size();
        let mut from = 1 << 8;
        while rest > 0 {
            let together = (1..).take_while(|n| n * (n + 1) / 2 <= rest).last().unwrap_or(1);
            for index in 0..together {
                let name = format!("{from}.{index}");
                problem.buffers.push(Buffer::new(name, from, from + 1, 1));
            }
            rest -= together * (together + 1) / 2;
            from += 1;
        }
        assert_eq!(Instance::new(&problem).unwrap().search_size(), size);
        solve(&problem, &within(10, None)).unwrap().nodes > 0
    };
    assert!(searched(SEARCH_LIMIT));
    assert!(!searched(SEARCH_LIMIT + 1));
}

/// Here nearly every attempt to place a buffer fails at once, and looks at a thousand neighbours first.
#[test]
fn failed_placements_spend_the_budget_too() {
    let problem = generate::perfect(1000, 1 << 20, 1 << 20, 1);
    // A fraction of a second; without the rule, hours.
    let plan = solve(&problem, &within(100_000, None)).unwrap();
    check(&problem, &plan).unwrap();
    assert!(plan.proven_optimal || plan.nodes == 100_000);
}

#[test]
fn perfect_packings_have_no_gap() {
    let mut straight = false;
    for seed in 0..20 {
        let problem = generate::perfect(40, 1 << 14, 1 << 8, seed);
        assert!((40..44).contains(&problem.buffers.len()));
        straight |= problem.buffers.len() == 40;
        let parts = || problem.buffers.iter().flat_map(|buffer| &buffer.parts);
        for step in 0..1 << 8 {
            let live: u64 = parts()
                .filter(|p| p.lower <= step && step < p.upper)
                .map(|p| p.size)
                .sum();
            assert_eq!(live, 1 << 14);
        }
    }
    assert!(
        straight,
        "where the last cut is a straight one there are no more than asked for"
    );
}
