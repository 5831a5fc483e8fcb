//! Limits of a problem, and the unit that it is counted in.

use super::problem::{PlanError, Problem};

/// Largest sum of sizes and alignments accepted, so that no offset arithmetic can overflow `i64`.
const LIMIT: u64 = 1 << 60;

/// Smallest multiple of `grid` that is not below `value`.
pub(super) fn round_up(value: i64, grid: i64) -> i64 {
    let rest = value.rem_euclid(grid);
    if rest == 0 { value } else { value + (grid - rest) }
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(super) fn validate(problem: &Problem) -> Result<(), PlanError> {
    let mut sum = 0u64;
    let invalid = |buffer: &str, reason: &str| {
        Err(PlanError::Invalid {
            buffer: buffer.to_owned(),
            reason: reason.to_owned(),
        })
    };
    if problem.buffers.len() >= u32::MAX as usize {
        return invalid("", "at most 4294967294 buffers are supported");
    }
    for buffer in &problem.buffers {
        if buffer.align == 0 {
            return invalid(&buffer.name, "the alignment must be at least 1");
        }
        if buffer.fixed.is_some_and(|offset| !offset.is_multiple_of(buffer.align)) {
            return invalid(&buffer.name, "the fixed offset must be a multiple of the alignment");
        }
        if buffer.parts.iter().any(|p| p.lower > p.upper) {
            return invalid(&buffer.name, "a lifetime must not end before it begins");
        }
        let height = buffer
            .parts
            .iter()
            .map(|p| p.offset.saturating_add(p.size))
            .max()
            .unwrap_or(0);
        for bytes in [height, buffer.align, buffer.fixed.unwrap_or(0)] {
            sum = sum.saturating_add(bytes);
        }
        if sum > LIMIT {
            return invalid(
                &buffer.name,
                "sizes, alignments and offsets up to this buffer add up to more than 2^60 bytes",
            );
        }
    }
    for relation in &problem.relations {
        for index in [relation.below, relation.above] {
            if index >= problem.buffers.len() {
                return invalid(
                    "",
                    &format!(
                        "a relation names buffer {index}, but there are {}",
                        problem.buffers.len()
                    ),
                );
            }
        }
        if relation.below == relation.above {
            return invalid(
                &problem.buffers[relation.below].name,
                "a relation needs two different buffers",
            );
        }
        if relation.distance.unsigned_abs() > LIMIT {
            return invalid(
                &problem.buffers[relation.below].name,
                "a relation's distance must be within 2^60 bytes",
            );
        }
    }
    Ok(())
}

/// The greatest unit of which all sizes, offsets and distances are multiples, and which divides or is divided by every alignment.
pub(super) fn common_unit(problem: &Problem) -> u64 {
    let mut unit = 0;
    for buffer in &problem.buffers {
        for part in buffer.parts.iter().filter(|p| p.size > 0 && p.upper > p.lower) {
            unit = gcd(gcd(unit, part.size), part.offset);
        }
        unit = gcd(unit, buffer.fixed.unwrap_or(0));
    }
    for relation in &problem.relations {
        unit = gcd(unit, relation.distance.unsigned_abs());
    }
    if unit == 0 {
        return 1;
    }
    loop {
        let before = unit;
        for buffer in &problem.buffers {
            if !unit.is_multiple_of(buffer.align) {
                unit = gcd(unit, buffer.align);
            }
        }
        if unit == before {
            return unit;
        }
    }
}
