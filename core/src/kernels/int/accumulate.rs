//! What the inner loop computes, written out.

use super::record::{BLOCK, BLOCK2, BLOCK3, BLOCK8, CONSTANT};

/// The four sums of one row: what the assembly computes.
///
/// A block's sum is `low + (high << 16)` mod 2^32 with `low + 2^15` in 0..2^16, so shifting it right by 16 gives `high` exactly. `totals`
/// adds up whole words, `highs` those halves; what is left of the totals is the low halves' sum, mod 2^32.
///
/// # Safety
/// `x` has 2 words, `w` one byte for each of `inputs`, a multiple of `B`.
#[inline(always)]
pub(super) unsafe fn accumulate<const B: usize>(x: *const i32, w: *const i8, inputs: usize, bias: i32) -> [i32; 4] {
    const HALF: i32 = 1 << 15;
    let start = bias
        .wrapping_mul(0x10001)
        .wrapping_sub(((inputs / B) as i32).wrapping_mul(HALF));
    let (mut totals, mut highs) = ([start; 2], [bias; 2]);
    for block in 0..inputs / B {
        let mut sums = [HALF; 2];
        for i in block * B..(block + 1) * B {
            for (pair, sum) in sums.iter_mut().enumerate() {
                // SAFETY: i < inputs.
                let (x, w) = unsafe { (*x.add(2 * i + pair), *w.add(i)) };
                *sum = sum.wrapping_add(x.wrapping_mul(i32::from(w)));
            }
        }
        for ((total, high), sum) in totals.iter_mut().zip(&mut highs).zip(sums) {
            *total = total.wrapping_add(sum);
            *high = high.wrapping_add(sum >> 16);
        }
    }
    let [a, b] = [0, 1].map(|i: usize| totals[i].wrapping_sub(highs[i] << 16));
    [a, highs[0], b, highs[1]]
}

/// The four sums of one row in the blocks that `code` names.
///
/// # Safety
/// As for [`accumulate`]; the block divides `inputs`.
#[inline(always)]
pub(super) unsafe fn accumulate_any(x: *const i32, w: *const i8, inputs: usize, bias: i32, code: i32) -> [i32; 4] {
    if code & CONSTANT != 0 {
        return [bias; 4];
    }
    // SAFETY: passed on.
    unsafe {
        match code & BLOCK {
            BLOCK2 => accumulate::<2>(x, w, inputs, bias),
            BLOCK3 => accumulate::<3>(x, w, inputs, bias),
            BLOCK8 => accumulate::<8>(x, w, inputs, bias),
            _ => accumulate::<4>(x, w, inputs, bias),
        }
    }
}
