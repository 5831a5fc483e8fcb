//! Time of the arena planner over size, on instances of several kinds, as a Markdown table.
//!
//! `cargo run --release -p arenite-host --example plan_bench [NODES]`

use std::time::Instant;

use arenite_host::plan::{Options, Problem, check, generate, solve};

const SIZES: [usize; 6] = [30, 100, 300, 1000, 3000, 10_000];

/// Name and generator of each kind of instance; the argument is the number of buffers.
type Kind = (&'static str, fn(usize) -> Problem);

const KINDS: [Kind; 5] = [
    ("chain", |count| generate::chain(count, 1)),
    ("wide", |count| generate::wide(count, 1)),
    ("adversarial", |count| generate::adversarial(count, 1)),
    ("loose packing", |count| generate::loose(count, 1 << 20, 1 << 20, 30, 1)),
    ("perfect packing", |count| generate::perfect(count, 1 << 20, 1 << 20, 1)),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 200_000,
    };
    println!("| kind | buffers | height / bound | proven | nodes | seconds |");
    println!("| --- | ---: | ---: | --- | ---: | ---: |");
    for (kind, generate) in KINDS {
        for count in SIZES {
            let problem = generate(count);
            let options = Options { capacity: None, nodes };
            let start = Instant::now();
            let plan = solve(&problem, &options)?;
            let seconds = start.elapsed().as_secs_f64();
            check(&problem, &plan)?;
            let ratio = plan.height as f64 / plan.lower_bound.max(1) as f64;
            let proven = if plan.proven_optimal { "yes" } else { "no" };
            let nodes = plan.nodes;
            println!("| {kind} | {count} | {ratio:.3} | {proven} | {nodes} | {seconds:.3} |");
        }
    }
    Ok(())
}
