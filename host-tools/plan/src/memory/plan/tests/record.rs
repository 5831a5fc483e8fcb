//! Plans of generated problems are those on record: `record.txt` beside this file has a line for each problem and budget.
//!
//! Other tests hold that plans are valid, and optimal where that is said. This one notices a change that makes them higher, slower to find or just other
//! ones, which every packed model would show. Where it is meant, `ARENITE_BLESS=1` writes the file anew; the commit then says why.

use std::fmt::Write;

use super::super::random::Random;
use super::*;

/// FNV-1a, 64 bits.
fn digest(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn of_problem(problem: &Problem) -> u64 {
    let buffers = problem.buffers.iter().flat_map(|buffer| {
        let parts = buffer.parts.iter().flat_map(|p| [p.lower, p.upper, p.offset, p.size]);
        [buffer.align, buffer.fixed.map_or(0, |at| at + 1)]
            .into_iter()
            .chain(parts)
    });
    let relations = problem.relations.iter();
    let relations = relations.flat_map(|r| [r.below as u64, r.above as u64, r.distance as u64]);
    digest(buffers.chain(relations))
}

/// Bodies of several parts, alignments, relations and a fixed offset, as networks with concatenations and line buffers have them.
fn mixed(count: usize, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let buffers: Vec<Buffer> = (0..count)
        .map(|index| {
            let (lower, life) = (random.below(12), 1 + random.below(6));
            let mut buffer = Buffer::new(format!("b{index}"), lower, lower + life, 1 + random.below(40));
            if random.below(3) == 0 {
                let (offset, size) = (buffer.bytes() - random.below(2), 1 + random.below(20));
                let lower = lower + random.below(3);
                let upper = lower + 1 + random.below(5);
                buffer.parts.push(Part {
                    lower,
                    upper,
                    offset,
                    size,
                });
            }
            buffer.aligned([1, 1, 2, 4][random.below(4) as usize])
        })
        .collect();
    let relations = (0..count as u64 / 2)
        .map(|_| Relation {
            below: random.below(count as u64) as usize,
            above: random.below(count as u64) as usize,
            distance: random.below(12) as i64 - 4,
        })
        .filter(|relation| relation.below != relation.above)
        .collect();
    let mut problem = Problem { buffers, relations };
    if random.below(4) == 0 {
        problem.buffers[0].fixed = Some(8 * random.below(3));
    }
    problem
}

fn problems() -> Vec<(String, Problem)> {
    let mut problems = Vec::new();
    for seed in 0..4 {
        let mut add = |name: &str, problem: Problem| problems.push((format!("{name}-{seed}"), problem));
        add("perfect", generate::perfect(24 + 9 * seed as usize, 1000, 30, seed));
        add("loose", generate::loose(30 + 7 * seed as usize, 4096, 40, 30, seed));
        add("chain", generate::chain(40, seed));
        add("wide", generate::wide(14 + 5 * seed as usize, seed));
        add("adversarial", generate::adversarial(20, seed));
        let base = generate::perfect(26, 512, 20, seed);
        add("variant", generate::variant(&base, seed % 2 == 0, 20, seed));
        add("shortened", generate::shortened(&base, 40, 3, seed));
    }
    for seed in 0..32 {
        let count = 5 + seed as usize % 13;
        problems.push((format!("mixed-{count}-{seed}"), mixed(count, seed)));
    }
    problems
}

fn lines() -> String {
    let mut text = String::from(
        "# problem, its digest; profile's digest; then for each budget of nodes: height, bound, proof, nodes, digest of the offsets\n",
    );
    for (name, problem) in problems() {
        let profile = profile(&problem)
            .unwrap()
            .into_iter()
            .flat_map(|(at, bytes)| [at, bytes]);
        let _ = write!(text, "{name} {:016x} {:016x}", of_problem(&problem), digest(profile));
        for nodes in [0, 40, 3000] {
            let plan = solved(&problem, &within(nodes, None));
            let Plan {
                height,
                lower_bound,
                proof,
                nodes,
                offsets,
                ..
            } = plan;
            let _ = write!(
                text,
                " | {height} {lower_bound} {proof:?} {nodes} {:016x}",
                digest(offsets)
            );
        }
        text.push('\n');
    }
    text
}

#[test]
fn plans_are_those_on_record() {
    let record = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/memory/plan/tests/record.txt");
    let found = lines();
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&record, found).unwrap();
        return;
    }
    let tracked = std::fs::read_to_string(&record).unwrap();
    let differ = found
        .lines()
        .zip(tracked.lines())
        .find(|(found, tracked)| found != tracked);
    assert!(
        differ.is_none() && found.lines().count() == tracked.lines().count(),
        "{differ:?}\nwhere this is meant: ARENITE_BLESS=1 cargo test -p arenite-host plans_are_those_on_record"
    );
}
