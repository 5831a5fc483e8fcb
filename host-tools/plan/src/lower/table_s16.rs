//! Functions of int16 as 513 values with lines between them (`LUTPopulate` of TensorFlow Lite).

use arenite::Step;
use arenite::ops::convert::TableS16;

use super::context::{Lower, fit, input, output};
use super::numbers::per_tensor;
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Lines of a table.
const LINES: usize = 512;

/// Stored numbers from one value of a table to the next.
const STEP: usize = 65536 / LINES;

/// Lowers a function of one operand.
pub(super) fn lower(
    lower: &mut Lower<'_>,
    node: &Node,
    name: &'static str,
    function: &dyn Fn(f32) -> f32,
) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (qx, qy) = (
        per_tensor(lower.graph().tensor(x))?,
        per_tensor(lower.graph().tensor(y))?,
    );
    if (qx.1, qy.1) != (0, 0) {
        return Err(Error::input(format!("zero points {} and {} of int16 tensors", qx.1, qy.1)).expected("0"));
    }
    let table = values(&|stored| f64::from(function((stored * f64::from(qx.0)) as f32)) / f64::from(qy.0));
    let step = TableS16 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        count: fit(lower.graph().tensor(x).elements(), "the number of elements")?,
        table: lower
            .program
            .weights
            .add_bytes(table.into_iter().flat_map(i16::to_le_bytes).collect())?,
    };
    lower.push(node, name, Step::TableS16(step), 0);
    Ok(())
}

/// The stored results of a function of stored numbers at the ends of the lines, each moved by half of what its line misses in its middle. Where the
/// function has no value a place has that of the nearest one that has. Neighbours are at most 32,767 apart, as the device takes them to be.
fn values(function: &dyn Fn(f64) -> f64) -> Vec<i16> {
    let place = |index: usize| (index * STEP) as f64 - 32768.0;
    let whole = |value: f64| value.clamp(-32768.0, 32767.0);
    let at: Vec<f64> = (0..=LINES).map(|index| function(place(index).min(32767.0))).collect();
    let known = |index: &usize| !at[*index].is_nan();
    let moved = |index: usize| {
        let nearest = (index..=LINES).find(known).or_else(|| (0..index).rev().find(known));
        let value = nearest.map_or(0.0, |nearest| whole(at[nearest]));
        let middle = function(place(index) + STEP as f64 / 2.0);
        let next = at.get(index + 1).copied().filter(|next| next.is_finite());
        match next.filter(|_| middle.is_finite() && at[index].is_finite()) {
            Some(next) => value - (((whole(next) + value) / 2.0 - whole(middle)) / 2.0),
            None => value,
        }
    };
    let mut table: Vec<i32> = (0..=LINES).map(|index| whole(moved(index).round()) as i32).collect();
    for index in (0..LINES).rev() {
        let next = table[index + 1];
        table[index] = table[index].clamp(next - 32767, next + 32767);
    }
    table.into_iter().map(|value| value as i16).collect()
}

#[cfg(test)]
mod tests {
    use arenite::quant::lookup_i16;

    use super::*;

    /// Against the function itself, at every stored number.
    fn farthest(function: impl Fn(f64) -> f64, from: i16) -> f64 {
        let table = values(&function);
        assert_eq!(table.len(), LINES + 1);
        let far = |x: i16| (f64::from(lookup_i16(x, &table)) - function(f64::from(x)).clamp(-32768.0, 32767.0)).abs();
        (from..=i16::MAX).map(far).fold(0.0, f64::max)
    }

    #[test]
    fn smooth_functions_are_near_at_every_number() {
        // The last line ends a number too early, as that of TensorFlow Lite does.
        assert!(farthest(|x| x * 0.75, i16::MIN) <= 1.25);
        assert!(farthest(|x| 20_000.0 * (x / 9000.0).sin(), i16::MIN) <= 2.6);
        assert!(farthest(|x| 30_000.0 / (1.0 + (-x / 4000.0).exp()), i16::MIN) <= 2.0);
        // Beyond its first steps, where it is steepest.
        assert!(farthest(|x| 300_000.0 / x.sqrt(), 2000) <= 8.0);
    }

    #[test]
    fn places_without_a_value_have_the_nearest_and_lines_do_not_come_round() {
        let table = values(&|x| {
            if x < 0.0 {
                f64::NAN
            } else {
                40_000.0 - 80_000.0 * (-x / 100.0).exp()
            }
        });
        assert!(
            table[..256].iter().all(|&value| value == -32768),
            "{:?}",
            &table[250..260]
        );
        let apart = table
            .windows(2)
            .map(|two| (i32::from(two[1]) - i32::from(two[0])).abs());
        assert!(apart.max() <= Some(32767));
        assert_eq!(table[LINES], 32767);
        assert!(values(&|_| f64::NAN).iter().all(|&value| value == 0));
    }
}
