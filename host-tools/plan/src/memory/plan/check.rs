//! The checker: re-verifies a plan from the problem alone. It shares no code with the solver.
//!
//! It compares rectangles, not separations: two parts that are in use at a common step must not share a byte, unless a relation of
//! their buffers holds. That is the meaning of a plan, whatever way it was found.

use std::collections::BTreeMap;

use super::problem::{Plan, Problem};

/// Faults of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There must be one offset for each buffer.
    #[error("the plan has {offsets} offsets for {buffers} buffers")]
    Count {
        /// Offsets in the plan.
        offsets: usize,
        /// Buffers in the problem.
        buffers: usize,
    },
    /// An offset is no multiple of its buffer's alignment.
    #[error("buffer {buffer} ({name}) lies at {offset}, which is no multiple of its alignment {align}")]
    Misaligned {
        /// Index of the buffer.
        buffer: usize,
        /// Its name.
        name: String,
        /// Its offset, in bytes.
        offset: u64,
        /// Its alignment, in bytes.
        align: u64,
    },
    /// A buffer is not where the problem fixes it.
    #[error("buffer {buffer} ({name}) lies at {offset} but must lie at {fixed}")]
    Moved {
        /// Index of the buffer.
        buffer: usize,
        /// Its name.
        name: String,
        /// Its offset, in bytes.
        offset: u64,
        /// Where it must be, in bytes.
        fixed: u64,
    },
    /// A buffer ends above the height that the plan states, or beyond the address space.
    #[error("buffer {buffer} ({name}) at {offset} ends above the plan's height {height}")]
    AboveHeight {
        /// Index of the buffer.
        buffer: usize,
        /// Its name.
        name: String,
        /// Its offset, in bytes.
        offset: u64,
        /// The height stated, in bytes.
        height: u64,
    },
    /// The plan states another height than that of its highest byte.
    #[error("the plan states a height of {stated} bytes, but its highest byte ends at {actual}")]
    Height {
        /// The height stated, in bytes.
        stated: u64,
        /// One past the highest byte in use.
        actual: u64,
    },
    /// The lower bound is above the height, or a proof is claimed that the numbers do not bear out.
    #[error("the plan states a lower bound of {bound} bytes for a height of {height}, proven optimal: {proven}")]
    Bound {
        /// The lower bound stated, in bytes.
        bound: u64,
        /// The height stated, in bytes.
        height: u64,
        /// Whether optimality is claimed.
        proven: bool,
    },
    /// Two buffers share bytes at a step at which both are in use, and no relation allows it.
    #[error("buffers {first} ({first_name}) and {second} ({second_name}) overlap at step {step}")]
    Overlap {
        /// Index of one buffer.
        first: usize,
        /// Its name.
        first_name: String,
        /// Index of the other.
        second: usize,
        /// Its name.
        second_name: String,
        /// The first step at which both are in use.
        step: u64,
    },
}

/// Verifies that a plan is valid for a problem: alignment, fixed offsets, stated height and bound, and that no two
/// parts in use at the same step share a byte unless a relation allows it.
pub fn check(problem: &Problem, plan: &Plan) -> Result<(), CheckError> {
    if plan.offsets.len() != problem.buffers.len() {
        return Err(CheckError::Count {
            offsets: plan.offsets.len(),
            buffers: problem.buffers.len(),
        });
    }
    let mut top = 0u64;
    for (index, (buffer, &offset)) in problem.buffers.iter().zip(&plan.offsets).enumerate() {
        let name = || buffer.name.clone();
        if buffer.align == 0 || offset % buffer.align != 0 {
            return Err(CheckError::Misaligned {
                buffer: index,
                name: name(),
                offset,
                align: buffer.align,
            });
        }
        if let Some(fixed) = buffer.fixed.filter(|&fixed| fixed != offset) {
            return Err(CheckError::Moved {
                buffer: index,
                name: name(),
                offset,
                fixed,
            });
        }
        for part in buffer.parts.iter().filter(|p| p.size > 0 && p.lower < p.upper) {
            let end = offset
                .checked_add(part.offset)
                .and_then(|start| start.checked_add(part.size));
            match end.filter(|&end| end <= plan.height) {
                Some(end) => top = top.max(end),
                None => {
                    return Err(CheckError::AboveHeight {
                        buffer: index,
                        name: name(),
                        offset,
                        height: plan.height,
                    });
                }
            }
        }
    }
    if top != plan.height {
        return Err(CheckError::Height {
            stated: plan.height,
            actual: top,
        });
    }
    if plan.lower_bound > plan.height || plan.proven_optimal != (plan.lower_bound == plan.height) {
        return Err(CheckError::Bound {
            bound: plan.lower_bound,
            height: plan.height,
            proven: plan.proven_optimal,
        });
    }
    no_overlap(problem, plan)
}

/// Sweeps over time with the parts in use kept in order of their first byte.
///
/// As long as no relation lets parts share bytes, only neighbours in that order can collide; parts that share bytes by leave of a
/// relation are kept apart, in a list that is compared in full.
fn no_overlap(problem: &Problem, plan: &Plan) -> Result<(), CheckError> {
    let mut related: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    let mut is_related = vec![false; problem.buffers.len()];
    for relation in &problem.relations {
        let least = related
            .entry((relation.below, relation.above))
            .or_insert(relation.distance);
        *least = relation.distance.min(*least);
        for index in [relation.below, relation.above] {
            if let Some(flag) = is_related.get_mut(index) {
                *flag = true;
            }
        }
    }
    // (time, begins, first byte, end, buffer); ends sort before beginnings at the same time.
    let mut events: Vec<(u64, bool, u64, u64, usize)> = Vec::new();
    for (index, (buffer, &offset)) in problem.buffers.iter().zip(&plan.offsets).enumerate() {
        for part in buffer.parts.iter().filter(|p| p.size > 0 && p.lower < p.upper) {
            let start = offset + part.offset;
            events.push((part.lower, true, start, start + part.size, index));
            events.push((part.upper, false, start, start + part.size, index));
        }
    }
    events.sort_unstable();
    let mut ordered: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let mut loose: Vec<(u64, u64, usize)> = Vec::new();
    let allowed = |a: usize, b: usize| {
        let holds = |below: usize, above: usize| {
            related.get(&(below, above)).is_some_and(|&distance| {
                i128::from(plan.offsets[below]) + i128::from(distance) <= i128::from(plan.offsets[above])
            })
        };
        a == b || holds(a, b) || holds(b, a)
    };
    for (step, begins, start, end, index) in events {
        let is_loose = is_related[index] || problem.buffers[index].parts.len() > 1;
        if !begins {
            if is_loose {
                if let Some(at) = loose.iter().position(|&part| part == (start, end, index)) {
                    loose.swap_remove(at);
                }
            } else {
                ordered.remove(&start);
            }
            continue;
        }
        let overlap = |other: usize| CheckError::Overlap {
            first: other,
            first_name: problem.buffers[other].name.clone(),
            second: index,
            second_name: problem.buffers[index].name.clone(),
            step,
        };
        if let Some((_, &(_, other))) = ordered.range(..end).next_back().filter(|(_, other)| other.0 > start) {
            return Err(overlap(other));
        }
        if let Some(&(_, _, other)) = loose
            .iter()
            .find(|&&(from, to, other)| from < end && start < to && !allowed(other, index))
        {
            return Err(overlap(other));
        }
        if is_loose {
            loose.push((start, end, index));
        } else {
            ordered.insert(start, (end, index));
        }
    }
    Ok(())
}
