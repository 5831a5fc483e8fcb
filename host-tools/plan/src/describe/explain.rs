//! Reasons for the arena's size, and ways to make it smaller: `pack --explain`.

use std::fmt::Write as _;

use crate::memory::Placed;
use crate::memory::fit::Point;
use crate::program::Program;

/// The peak step with the tensors alive in it, and the Pareto front of arena against extra MACs.
pub fn explain(program: &Program, placed: &Placed, front: &[Point], in_place: bool) -> String {
    let mut text = String::new();
    let bodies = &placed.bodies;
    let (peak, most) = bodies.peak();
    let _ = writeln!(
        text,
        "arena {} bytes ({}); most bytes are alive in step {peak}, `{}`: {}",
        placed.arena_bytes(),
        if placed.proven_optimal() {
            "no plan of these steps is smaller".to_string()
        } else {
            format!("no plan is below {}", placed.lower_bound())
        },
        program.steps.get(peak).map_or("", |step| step.name.as_str()),
        most
    );
    let mut alive: Vec<(u64, usize)> = Vec::new();
    for (index, buffer) in bodies.problem.buffers.iter().enumerate() {
        let during = |lower: u64, upper: u64| lower <= peak as u64 && (peak as u64) < upper;
        let bytes: u64 = buffer
            .parts
            .iter()
            .filter(|p| during(p.lower, p.upper))
            .map(|p| p.size)
            .sum();
        if bytes > 0 {
            alive.push((bytes, index));
        }
    }
    alive.sort_by_key(|&(bytes, index)| (std::cmp::Reverse(bytes), index));
    for (bytes, index) in alive {
        let buffer = &bodies.problem.buffers[index];
        let life = buffer.life();
        let region = placed
            .plans
            .get(placed.region[index])
            .map_or("", |(region, _)| region.name.as_str());
        let at = placed.offsets[index];
        let _ = writeln!(
            text,
            "  {bytes:>10} bytes at {region}+{at}, steps {} to {}: {}",
            life.start,
            life.end - 1,
            buffer.name
        );
    }
    let _ = writeln!(text, "ways to shrink it:");
    if !in_place {
        let _ = writeln!(text, "  let outputs overlap inputs: leave out --no-in-place");
    }
    for point in front.iter().filter(|p| p.arena_bytes < placed.arena_bytes()) {
        let _ = writeln!(
            text,
            "  {} bytes with {} extra MACs, {} steps: {} (--fit arena={})",
            point.arena_bytes, point.extra_macs, point.steps, point.cuts, point.arena_bytes
        );
    }
    let _ = writeln!(
        text,
        "  move cold tensors to a second memory: --region fast=SIZE --region slow=SIZE"
    );
    text
}
