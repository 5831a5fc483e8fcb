//! Linear forms of int8 sums, each searched for once in a process: a calibration lowers a network hundreds of times, of which few sums have other scales.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arenite::kernels::primitives::add_s8_linear::form::Sum;
use arenite::ops::elementwise::output_len;
use arenite::ops::elementwise_int::BinaryInt;
use arenite::ops::packed_sum::PackedSumS8;
use arenite::quant::Multiplier;

use crate::program::Place;

/// All that decides what form a sum has.
type Stated = ([i8; 3], [Multiplier; 3], [i8; 2], bool);

/// Factors and offset; none where no form gives the sum's bits.
type Form = Option<([i32; 2], i32)>;

/// Forms that are kept.
const MOST: usize = 1 << 16;

static FOUND: Mutex<Option<HashMap<Stated, Form>>> = Mutex::new(None);

/// As `linear_sum` of the runtime, which searches each time.
pub(super) fn of(op: &BinaryInt<Place>) -> Option<PackedSumS8<Place>> {
    let sum = Sum::of(op)?;
    let ([a, b], [first, second]) = (sum.zero_points, sum.multipliers);
    let stated = (
        [a, b, sum.output_zero_point],
        [first, second, sum.output_multiplier],
        sum.clamp,
        sum.minus,
    );
    let known = {
        let found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref().and_then(|found| found.get(&stated).copied())
    };
    let form = match known {
        Some(form) => form,
        None => {
            let form = sum.find();
            let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
            let found = found.get_or_insert_default();
            if found.len() >= MOST {
                found.clear();
            }
            found.insert(stated, form);
            form
        }
    };
    let (factors, offset) = form?;
    Some(PackedSumS8 {
        output: op.output,
        a: op.a,
        b: op.b,
        count: output_len(&op.loops)?,
        factors,
        offset,
    })
}

#[cfg(test)]
mod tests {
    use arenite::DType;
    use arenite::kernels::primitives::add_s8_linear::form::linear_sum;
    use arenite::ops::elementwise::Loop;
    use arenite::ops::elementwise_int::IntOp;

    use super::*;

    fn sum(count: u32, op: IntOp, scale: f64, clamp: [i32; 2]) -> BinaryInt<Place> {
        let mut sum = BinaryInt {
            output: Place::Scratch,
            a: Place::Scratch,
            b: Place::Scratch,
            loops: Default::default(),
            dtype: DType::I8,
            op,
            zero: [3, -5, 7],
            shift: 20,
            multipliers: [0.5, scale, 1e-6].map(|real| Multiplier::from_real(real).expect("a multiplier")),
            clamp,
        };
        sum.loops.push(Loop { count, a: 1, b: 1 }).expect("room");
        sum
    }

    /// The second time nothing is searched for; what decides the form decides what is found.
    #[test]
    fn forms_are_those_that_are_searched_for() {
        for _ in 0..2 {
            for (count, op, scale, clamp) in [
                (7, IntOp::Add, 0.31, [-128, 127]),
                (9, IntOp::Add, 0.31, [-128, 127]),
                (7, IntOp::Sub, 0.31, [-128, 127]),
                (7, IntOp::Add, 0.32, [-128, 127]),
                (7, IntOp::Add, 0.31, [-128, 100]),
            ] {
                let op = sum(count, op, scale, clamp);
                let (kept, searched) = (of(&op), linear_sum(&op));
                assert_eq!(kept, searched, "{op:?}");
                assert_eq!(kept.is_some(), clamp == [-128, 127]);
            }
        }
    }
}
