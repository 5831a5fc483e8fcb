//! Arena bytes of networks, in all the ways that can be compared, as a Markdown table.
//!
//! `cargo run --release -p arenite-host --example arena_table -- [--weights seeded:N] FILE…`
//!
//! For each file: the arena with outputs that may overlap inputs, and without (`--no-in-place`); max-live of the latter; what no plan of the
//! former can go below; and what greedy placement by size makes of the latter. Kernel scratch is counted in all of them.

use std::path::Path;

use arenite::Target;
use arenite_host::Result;
use arenite_host::import::{ImportOptions, import};
use arenite_host::memory::plan::{Options, Problem};
use arenite_host::memory::{self, Bodies, Region, Request, in_place, schedule};
use arenite_host::passes::{self, Stage};
use arenite_host::program::{self, Preferences};
use arenite_host::weights::Weights;

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
    let (shared, separate) = (plan(shared, true)?, plan(separate, false)?);
    let bound = match shared.proven_optimal() {
        true => "proven".to_string(),
        false => grouped(shared.lower_bound()),
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

/// What `pack --target portable` plans, up to the plan.
fn bodies(path: &Path, weights: Option<&str>, in_place: bool) -> Result<Bodies> {
    let (_, imported) = import(path, None, &ImportOptions::default())?;
    let mut graph = imported.graph;
    let weights = match (weights, &imported.weights) {
        (_, Some(file)) => Weights::file(file, &graph)?,
        (Some(spec), None) => Weights::open(spec, &graph)?,
        (None, None) => Weights::nothing(&graph)?,
    };
    passes::recognise_softmax::run(&mut graph)?;
    passes::prune::run(&mut graph)?;
    passes::run(&mut graph, Stage::Fold)?;
    passes::run(&mut graph, Stage::Fuse)?;
    let preferences = Preferences {
        target: Target::Portable,
        size: false,
        share: in_place,
    };
    let mut program = program::lower(graph, preferences, &weights)?;
    let found = schedule::schedule(&program);
    schedule::apply(&mut program, &found.order);
    if in_place {
        in_place::merge(&mut program);
    }
    Ok(memory::bodies(&program, in_place))
}

fn plan(bodies: Bodies, in_place: bool) -> Result<memory::Placed> {
    let region = Region {
        name: "arena".into(),
        size: None,
    };
    let request = Request {
        regions: vec![region],
        in_place,
        nodes: Options::DEFAULT_NODES,
    };
    memory::place(bodies, &request)
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
            size: b.parts.iter().map(|p| p.offset + p.size).max().unwrap_or(0),
            lower: b.parts.iter().map(|p| p.lower).min().unwrap_or(0),
            upper: b.parts.iter().map(|p| p.upper).max().unwrap_or(0),
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

fn grouped(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
