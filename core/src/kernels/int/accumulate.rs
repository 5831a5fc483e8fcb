//! What the inner loop computes, written out.

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
    let ([a, b], [high_a, high_b]) = (totals, highs);
    [
        a.wrapping_sub(high_a << 16),
        high_a,
        b.wrapping_sub(high_b << 16),
        high_b,
    ]
}
