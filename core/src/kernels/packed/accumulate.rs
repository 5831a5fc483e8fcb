//! Portable form of the inner loop: the sums that the assembly computes.

/// The four sums of one row: what the assembly computes.
///
/// A block's sum is `low + (high << 16)` mod 2^32 with `low + 2^15` in 0..2^16, so shifting it right by 16 gives `high` exactly. `totals`
/// adds up whole words, `highs` those halves; what is left of the totals is the low halves' sum, mod 2^32.
///
/// # Safety
/// Two words at `x` and one byte at `w` for each of `inputs`, a multiple of `B`.
#[inline(always)]
pub(super) unsafe fn accumulate<const B: usize>(x: *const i32, w: *const i8, inputs: usize, bias: i32) -> [i32; 4] {
    // SAFETY: `each` asks for words of inputs `i < inputs` only; this function's contract guarantees two at `x` for each, and the bytes at `w`.
    unsafe { each::<B>(|i, pair| *x.add(2 * i + pair), w, inputs, bias) }
}

/// The same of words of bytes, each 128 more than it stands for: the even ones are the halves of the first word, the odd ones of the second.
///
/// # Safety
/// One word at `x` and one byte at `w` for each of `inputs`, a multiple of `B`.
#[allow(dead_code, reason = "cores with loops of their own do without")]
#[inline(always)]
pub(super) unsafe fn narrow<const B: usize>(x: *const i32, w: *const i8, inputs: usize, bias: i32) -> [i32; 4] {
    let of = |bytes: i32, pair: usize| {
        let halves = (bytes as u32).wrapping_shr(8 * pair as u32) & 0x00ff_00ff;
        halves.wrapping_sub(0x0080_0080) as i32
    };
    // SAFETY: `each` asks for words of inputs `i < inputs` only; this function's contract guarantees one at `x` for each, and the bytes at `w`.
    unsafe { each::<B>(|i, pair| of(*x.add(i), pair), w, inputs, bias) }
}

/// The same of bytes in order, the four rows' side by side, of the first `C` rows; 0 of the others.
///
/// # Safety
/// One word at `x` and one byte at `w` for each of `inputs`.
#[allow(dead_code, reason = "cores with loops of their own do without")]
#[inline(always)]
pub(super) unsafe fn one_by_one<const C: usize>(x: *const i32, w: *const i8, inputs: usize, bias: i32) -> [i32; 4] {
    let mut sums = [0; 4];
    sums.iter_mut().take(C).for_each(|sum| *sum = bias);
    for i in 0..inputs {
        // SAFETY: `i < inputs`, words at `x` and bytes at `w` (fn docs).
        let (x, w) = unsafe { ((*x.add(i)).to_le_bytes(), i32::from(*w.add(i))) };
        for (sum, x) in sums.iter_mut().zip(x).take(C) {
            *sum = sum.wrapping_add(i32::from(x as i8).wrapping_mul(w));
        }
    }
    sums
}

/// # Safety
/// `w` has a byte for each of `inputs`, a multiple of `B`.
#[inline(always)]
unsafe fn each<const B: usize>(word: impl Fn(usize, usize) -> i32, w: *const i8, inputs: usize, bias: i32) -> [i32; 4] {
    const HALF: i32 = 1 << 15;
    let start = bias
        .wrapping_mul(0x10001)
        .wrapping_sub(((inputs / B) as i32).wrapping_mul(HALF));
    let (mut totals, mut highs) = ([start; 2], [bias; 2]);
    for block in 0..inputs / B {
        let mut sums = [HALF; 2];
        for i in block * B..(block + 1) * B {
            for (pair, sum) in sums.iter_mut().enumerate() {
                // SAFETY: `i < inputs`, bytes at `w` (fn docs).
                let (x, w) = (word(i, pair), unsafe { *w.add(i) });
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
