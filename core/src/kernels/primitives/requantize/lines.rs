//! Sums that become outputs of one scale, as many as there are at a time.

use crate::cells::Dst;
use crate::kernels::primitives::dot_s8::Products;
use crate::quant::{Multiplier, Rescaler, high_mul_in_range};

/// Requantisation of each sum: `min(max(multiplier * sum + before, low), high) + after`.
#[derive(Debug)]
pub(crate) struct Rescaled {
    multiplier: Multiplier,
    rescaler: Rescaler,
    before: i32,
    low: i32,
    high: i32,
    after: i32,
}

impl Rescaled {
    #[inline(always)]
    pub(crate) fn new(multiplier: Multiplier, before: i32, (low, high): (i32, i32), after: i32) -> Self {
        Self {
            multiplier,
            rescaler: Rescaler::new(multiplier),
            before,
            low,
            high,
            after,
        }
    }

    /// Writes one output for each sum, `stride` elements from one to the next, from `start` on. `None` where there are not as many places.
    #[inline(always)]
    pub(crate) fn put<T: Products>(&self, sums: &[i32], y: Dst<'_, T>, start: usize, stride: usize) -> Option<()> {
        let reach = sums.len().checked_sub(1)?.checked_mul(stride)?;
        if start.checked_add(reach)? >= y.cells().len() {
            return None;
        }
        // SAFETY: a place for each sum, of which there is one, as just checked.
        unsafe { self.write(sums, y.as_mut_ptr().wrapping_add(start), stride) };
        Some(())
    }

    /// # Safety
    /// `sums` is not empty, and `place` has an element for each sum, `stride` elements apart.
    #[inline(always)]
    unsafe fn write<T: Products>(&self, sums: &[i32], mut place: *mut T, stride: usize) {
        #[cfg(kernel_isa = "mve")]
        if size_of::<T>() <= 2 {
            let shift = i32::from(self.multiplier.shift);
            let args = helium::RequantizeArgs {
                y: place.cast(),
                count: sums.len(),
                stride: stride.wrapping_mul(size_of::<T>()),
                left: shift.max(0),
                mantissa: self.multiplier.mantissa,
                right: shift.min(0),
                before: self.before,
                low: self.low,
                high: self.high,
                after: self.after,
            };
            // SAFETY: `args` gives `sums.len()` places, `stride` elements apart in bytes, which the contract guarantees; the loop taken is that of `T`'s size.
            unsafe {
                if size_of::<T>() == 1 {
                    helium::bytes(sums.as_ptr(), &args);
                } else {
                    helium::halves(sums.as_ptr(), &args);
                }
            }
            return;
        }
        let Multiplier { mantissa, shift } = self.multiplier;
        let mut put = |scaled: i32| {
            // No `clamp`, which panics where it does not see that the limits are in order.
            let value = scaled.wrapping_add(self.before).max(self.low).min(self.high);
            // SAFETY: one call for each sum, whose place this function's contract guarantees.
            unsafe { place.write(T::narrow(value.wrapping_add(self.after))) };
            place = place.wrapping_add(stride);
        };
        if shift < 0 && mantissa != i32::MIN {
            // Sums of any size alike: their products are rounded twice, ties away from zero the second time.
            let places = i32::from(shift).wrapping_neg().wrapping_sub(1) as u32;
            for &sum in sums {
                put(half_away(high_mul_in_range(sum, mantissa), places));
            }
        } else {
            for &sum in sums {
                put(self.rescaler.apply(sum));
            }
        }
    }
}

/// `high` shifted to the right by one more than `places`, rounded to nearest with ties away from zero. Not of the least number.
#[inline(always)]
fn half_away(high: i32, places: u32) -> i32 {
    (high.wrapping_add(high >> 31).wrapping_shr(places).wrapping_add(1)) >> 1
}

#[cfg(kernel_isa = "mve")]
mod helium {
    #[repr(C)]
    pub(super) struct RequantizeArgs {
        pub(super) y: *mut u8,
        /// Not 0.
        pub(super) count: usize,
        /// Bytes.
        pub(super) stride: usize,
        pub(super) left: i32,
        pub(super) mantissa: i32,
        /// At most 0.
        pub(super) right: i32,
        pub(super) before: i32,
        pub(super) low: i32,
        pub(super) high: i32,
        pub(super) after: i32,
    }

    /// Defines a loop of fourteen instructions for four sums.
    macro_rules! put {
        ($name:ident, $store:literal) => {
            #[unsafe(naked)]
            pub(super) unsafe extern "C" fn $name(sums: *const i32, args: &RequantizeArgs) {
                naked!(
                    ".cpu cortex-m55",
                    "push {{r4-r11, lr}}",
                    "vpush {{d8-d15}}",
                    "ldm r1!, {{r2-r5}}",
                    "ldm r1, {{r6-r11}}",
                    "mov r12, #0",
                    "vidup.u32 q5, r12, #1",
                    "vmul.i32 q5, q5, r4",
                    "lsls r4, r4, #2",
                    "vdup.32 q6, r9",
                    "vdup.32 q7, r10",
                    "vdup.32 q4, r7",
                    "dlstp.32 lr, r3",
                    "2: vldrw.u32 q0, [r0], #16",
                    "vshl.s32 q0, r5",
                    "vqrdmulh.s32 q0, q0, r6",
                    // Ties away from zero: one less where negative, if there is a shift.
                    "vand q1, q0, q4",
                    "vshr.s32 q1, q1, #31",
                    "vqadd.s32 q0, q0, q1",
                    "vrshl.s32 q0, r7",
                    "vadd.i32 q0, q0, r8",
                    "vmax.s32 q0, q0, q6",
                    "vmin.s32 q0, q0, q7",
                    "vadd.i32 q0, q0, r11",
                    $store,
                    "add r2, r4",
                    "letp lr, 2b",
                    "vpop {{d8-d15}}",
                    "pop {{r4-r11, pc}}",
                )
            }
        };
    }

    put! { bytes, "vstrb.32 q0, [r2, q5]" }
    put! { halves, "vstrh.32 q0, [r2, q5]" }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        #[test]
        fn sums_are_rescaled_as_single_ones(sums: [i32; 7], near: [i16; 4], mantissa: i32, shift in -31_i8..=31, least: bool, ends: [i16; 2]) {
            let mantissa = if least { i32::MIN } else { mantissa };
            let multiplier = Multiplier { mantissa, shift };
            let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])].map(i32::from);
            let [a, b, c, d] = near.map(i32::from);
            let sums = [sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6], a, b, c, d, 0, i32::MIN, i32::MAX];
            let found: [Cell<u8>; 40] = core::array::from_fn(|_| Cell::new(0));
            let places = Dst::<i16>::from_cells(&found).unwrap();
            Rescaled::new(multiplier, 5, (low, high), -3).put(&sums, places, 0, 1).unwrap();
            let found = places.as_src();
            for (sum, found) in sums.into_iter().zip(found.iter()) {
                let expected = multiplier.apply(sum).wrapping_add(5).max(low).min(high).wrapping_sub(3) as i16;
                prop_assert_eq!(found, expected, "{} {:?}", sum, multiplier);
            }
            prop_assert!(found.iter().skip(sums.len()).all(|found| found == 0));
        }
    }
}
