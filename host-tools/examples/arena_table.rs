//! Arena bytes of networks, in all the ways that can be compared, as a Markdown table.
//!
//! `cargo run --release -p arenite-host --example arena_table -- [--weights seeded:N] FILE…`
//!
//! For each file: the arena with outputs that may overlap inputs, and without (`--no-in-place`); max-live of the latter; what no plan of the
//! former can go below; and what greedy placement by size makes of the latter. Kernel scratch is counted in all of them.

use std::path::Path;

use arenite_host::Result;
use arenite_host::cli::grouped;
use arenite_host::memory::plan::Problem;
use arenite_host::memory::{self, Bodies, fit, in_place};
use arenite_host::pack::dump::Dump;
use arenite_host::pack::{Options, back, front};
use arenite_host::stage::unwatched;

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let weights = match files.first().map(String::as_str) {
        Some("--weights") if files.len() > 1 => files.drain(..2).nth(1),
        _ => None,
    };
    println!("| network | in-place | lower bound | without in-place | max-live | greedy by size |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for file in files {
        let path = Path::new(&file);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match row(path, weights.as_deref()) {
            Ok(row) => println!("| {name} | {row} |"),
            Err(error) => {
                let reason = error.message().lines().next().unwrap_or_default();
                println!("| {name} | refused: {reason} | | | | |");
            }
        }
    }
}

fn row(path: &Path, weights: Option<&str>) -> Result<String> {
    let shared = bodies(path, weights, true)?;
    let separate = bodies(path, weights, false)?;
    let (max_live, by_size) = (separate.max_live(), greedy_by_size(&separate.problem));
    let place = |bodies: Bodies, in_place| {
        memory::place(
            bodies,
            &back::request(&options(path, weights, in_place)),
            &mut unwatched,
        )
    };
    let (shared, separate) = (place(shared, true)?, place(separate, false)?);
    let bound = if shared.proven_optimal() {
        "proven".to_string()
    } else {
        grouped(shared.lower_bound())
    };
    Ok(format!(
        "{} | {bound} | {} | {} | {} ",
        grouped(shared.arena_bytes()),
        grouped(separate.arena_bytes()),
        grouped(max_live),
        grouped(by_size)
    )
    .trim_end()
    .to_string())
}

/// Returns the bodies that `pack --target portable` plans, up to the plan.
fn bodies(path: &Path, weights: Option<&str>, in_place: bool) -> Result<Bodies> {
    let options = options(path, weights, in_place);
    let front = front::run(&options, &mut Dump::default(), &mut |_, _, _| {})?;
    let mut program = back::steps(front.graph, &front.weights, &options, None, &mut unwatched)?;
    let (cuts, _) = fit::sums(&program, &back::request(&options))?;
    program = fit::cut(&program, &cuts, in_place)?;
    if in_place {
        in_place::merge(&mut program);
    }
    Ok(memory::bodies(&program, in_place))
}

fn options(path: &Path, weights: Option<&str>, in_place: bool) -> Options {
    Options {
        weights: weights.map(str::to_string),
        in_place,
        ..Options::new(path, "")
    }
}

/// Height of the simplest planner in use: the largest buffer first, each in the lowest gap among those that live beside it.
fn greedy_by_size(problem: &Problem) -> u64 {
    struct Whole {
        size: u64,
        lower: u64,
        upper: u64,
        align: u64,
    }
    let mut buffers: Vec<Whole> = problem
        .buffers
        .iter()
        .filter(|b| !b.parts.is_empty())
        .map(|b| Whole {
            size: b.bytes(),
            lower: b.life().start,
            upper: b.life().end,
            align: b.align,
        })
        .collect();
    buffers.sort_by_key(|b| (std::cmp::Reverse(b.size), b.lower));
    let mut placed: Vec<(u64, u64, Whole)> = Vec::new();
    for buffer in buffers {
        let mut at = 0u64;
        for (from, to, other) in &placed {
            if other.lower >= buffer.upper || buffer.lower >= other.upper || *to <= at {
                continue;
            }
            if at + buffer.size <= *from {
                break;
            }
            at = to.next_multiple_of(buffer.align);
        }
        let end = at + buffer.size;
        let position = placed.partition_point(|(from, ..)| *from < at);
        placed.insert(position, (at, end, buffer));
    }
    placed.iter().map(|&(_, end, _)| end).max().unwrap_or(0)
}
