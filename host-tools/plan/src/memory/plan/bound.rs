//! Lower bounds on the height of every plan.

use super::instance::Instance;
use super::units::round_up;

/// Max-live with what alignment and relations allow for: no plan is lower (scaled units).
///
/// At any step the bodies alive occupy disjoint bytes, except for what related ones may share, and, where all alignments have a
/// common divisor, each but the topmost fills up to the next multiple of it.
pub(super) fn max_live(instance: &Instance) -> i64 {
    let tallest = instance
        .bodies
        .iter()
        .map(|b| b.fixed.unwrap_or(0) + b.height)
        .max()
        .unwrap_or(0);
    if !instance.bodies.iter().all(|b| b.plain || b.parts.is_empty()) {
        let mut bound = tallest;
        instance.visit_live_sets(&mut |live_set| {
            bound = bound.max(live_set.bound);
            bound
        });
        return bound;
    }
    let grid = instance.common_alignment();
    let mut events: Vec<(u64, i64, i64)> = Vec::with_capacity(2 * instance.bodies.len());
    for body in instance.bodies.iter().filter(|b| !b.parts.is_empty()) {
        let padded = round_up(body.height, grid);
        events.push((body.lower, padded, padded - body.height));
        events.push((body.upper, -padded, padded - body.height));
    }
    // At equal times, ends come first.
    events.sort_unstable();
    let mut pads = std::collections::BTreeMap::<i64, u32>::new();
    let (mut live, mut bound) = (0i64, tallest);
    for (_, change, pad) in events {
        live += change;
        if change > 0 {
            *pads.entry(pad).or_default() += 1;
        } else if let Some(count) = pads.get_mut(&pad) {
            *count -= 1;
            if *count == 0 {
                pads.remove(&pad);
            }
        }
        let spare = pads.last_key_value().map_or(0, |(&pad, _)| pad);
        bound = bound.max(live - spare);
    }
    bound
}
