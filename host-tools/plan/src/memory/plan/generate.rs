//! Reproducible planner instances for tests and benchmarks.

use super::problem::{Buffer, Problem};
use super::random::Random;

/// A perfect packing: `count` buffers, about, that fill `capacity` bytes over `steps` steps without a gap.
///
/// The rectangle is cut until there are enough pieces, the largest first, across the longer side on average. A quarter of the cuts are
/// pinwheels of five pieces, which no sequence of straight cuts across the whole can make. Max-live equals
/// `capacity` at every step, so a plan of that height exists and is optimal.
pub fn perfect(count: usize, capacity: u64, steps: u64, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    // (lower, upper, bottom, top), in a heap by area.
    let mut pieces =
        std::collections::BinaryHeap::from([(u128::from(steps) * u128::from(capacity), 0, steps, 0, capacity)]);
    let mut done = Vec::new();
    while pieces.len() + done.len() < count {
        let Some((_, lower, upper, bottom, top)) = pieces.pop() else {
            break;
        };
        let (wide, high) = (upper - lower, top - bottom);
        if wide < 2 && high < 2 {
            done.push((lower, upper, bottom, top));
            continue;
        }
        let mut push = |lower, upper, bottom, top| {
            pieces.push((
                u128::from(upper - lower) * u128::from(top - bottom),
                lower,
                upper,
                bottom,
                top,
            ));
        };
        if wide >= 3 && high >= 3 && random.below(4) == 0 {
            let (t1, t2) = two_cuts(&mut random, lower, upper);
            let (y1, y2) = two_cuts(&mut random, bottom, top);
            push(lower, t2, bottom, y1);
            push(t2, upper, bottom, y2);
            push(t1, upper, y2, top);
            push(lower, t1, y1, top);
            push(t1, t2, y1, y2);
            continue;
        }
        // Sides are compared relative to the whole.
        let across_time = u128::from(wide) * u128::from(capacity)
            + u128::from(random.below(steps.max(1))) * u128::from(capacity) / 4
            > u128::from(high) * u128::from(steps) + u128::from(random.below(capacity.max(1))) * u128::from(steps) / 4;
        if (across_time && wide >= 2) || high < 2 {
            let cut = lower + 1 + random.below(wide - 1);
            push(lower, cut, bottom, top);
            push(cut, upper, bottom, top);
        } else {
            let cut = bottom + 1 + random.below(high - 1);
            push(lower, upper, bottom, cut);
            push(lower, upper, cut, top);
        }
    }
    done.extend(
        pieces
            .into_iter()
            .map(|(_, lower, upper, bottom, top)| (lower, upper, bottom, top)),
    );
    done.sort_unstable();
    shuffled(
        done.into_iter()
            .map(|(lower, upper, bottom, top)| (lower, upper, top - bottom))
            .collect(),
        &mut random,
    )
}

/// Like [`perfect`], with a share of `slack` percent of the buffers shortened at random: some freedom, as real networks have.
pub fn loose(count: usize, capacity: u64, steps: u64, slack: u64, seed: u64) -> Problem {
    let mut problem = perfect(count, capacity, steps, seed);
    let mut random = Random::new(seed ^ 0x5eed);
    for part in problem.buffers.iter_mut().flat_map(|buffer| &mut buffer.parts) {
        if random.below(100) >= slack {
            continue;
        }
        if random.below(2) == 0 {
            part.size -= random.below(part.size / 8 + 1);
        } else {
            part.upper -= random.below((part.upper - part.lower) / 4 + 1);
        }
    }
    problem
}

/// A packing of `lanes` lanes of different heights that fill `capacity` bytes, each cut into `pieces` buffers at random steps. At any step one buffer of each
/// lane is alive, so that a plan of height `capacity` exists and is optimal.
pub fn lanes(lanes: usize, pieces: usize, capacity: u64, steps: u64, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let mut cuts = |parts: usize, end: u64| {
        let mut cuts = std::collections::BTreeSet::from([0, end]);
        while (cuts.len() as u64) < (parts as u64 + 1).min(end + 1) {
            cuts.insert(1 + random.below(end - 1));
        }
        cuts.into_iter().collect::<Vec<u64>>()
    };
    let mut rows = Vec::with_capacity(lanes * pieces);
    for lane in cuts(lanes, capacity).windows(2) {
        let times = cuts(pieces, steps);
        rows.extend(times.windows(2).map(|time| (time[0], time[1], lane[1] - lane[0])));
    }
    shuffled(rows, &mut random)
}

/// A chain of operators with side branches: each tensor lives from its step to the next few, some much longer.
pub fn chain(count: usize, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let rows = (0..count as u64)
        .map(|step| {
            let life = if random.below(8) == 0 {
                2 + random.below(count as u64 / 4 + 2)
            } else {
                2 + random.below(2)
            };
            let scale = random.below(12);
            (step, step + life, 16 * (1 + random.below(1 << scale)))
        })
        .collect();
    shuffled(rows, &mut random)
}

/// Many buffers alive at once: about half of all at any step.
pub fn wide(count: usize, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let steps = 2 * count as u64;
    let rows = (0..count)
        .map(|_| {
            let (a, b) = (random.below(steps), random.below(steps));
            (a.min(b), a.max(b) + 1, 1 + random.below(4096))
        })
        .collect();
    shuffled(rows, &mut random)
}

/// Sizes that are nearly equal, long and short lifetimes mixed: hard for rules that go by size.
pub fn adversarial(count: usize, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let steps = count as u64;
    let rows = (0..count)
        .map(|_| {
            let life = if random.below(3) == 0 {
                1 + random.below(steps / 2 + 1)
            } else {
                1 + random.below(6)
            };
            let lower = random.below(steps);
            (lower, lower + life, 1000 + random.below(24))
        })
        .collect();
    shuffled(rows, &mut random)
}

/// A variant of a problem of plain buffers: time reversed if `mirror`, sizes reduced by up to `shrink` per thousand, order shuffled.
pub fn variant(problem: &Problem, mirror: bool, shrink: u64, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let parts = || problem.buffers.iter().flat_map(|buffer| &buffer.parts);
    let end = parts().map(|part| part.upper).max().unwrap_or(0);
    let rows = parts()
        .map(|part| {
            let (lower, upper) = if mirror {
                (end - part.upper, end - part.lower)
            } else {
                (part.lower, part.upper)
            };
            (lower, upper, part.size - random.below(part.size * shrink / 1000 + 1))
        })
        .collect();
    shuffled(rows, &mut random)
}

/// A problem of plain buffers with a share of `percent` of the lifetimes shortened at one end by one step up to `most`.
pub fn shortened(problem: &Problem, percent: u64, most: u64, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let mut problem = problem.clone();
    for part in problem.buffers.iter_mut().flat_map(|buffer| &mut buffer.parts) {
        let life = part.upper - part.lower;
        if life < 2 || random.below(100) >= percent {
            continue;
        }
        let less = 1 + random.below(most.min(life - 1));
        match random.below(2) {
            0 => part.lower += less,
            _ => part.upper -= less,
        }
    }
    problem
}

fn two_cuts(random: &mut Random, from: u64, to: u64) -> (u64, u64) {
    let first = from + 1 + random.below(to - from - 2);
    (first, first + 1 + random.below(to - first - 1))
}

fn shuffled(mut rows: Vec<(u64, u64, u64)>, random: &mut Random) -> Problem {
    for at in (1..rows.len()).rev() {
        rows.swap(at, random.below(at as u64 + 1) as usize);
    }
    let buffers = rows
        .into_iter()
        .enumerate()
        .map(|(id, (lower, upper, size))| Buffer::new(format!("b{id}"), lower, upper, size));
    Problem {
        buffers: buffers.collect(),
        relations: Vec::new(),
    }
}
