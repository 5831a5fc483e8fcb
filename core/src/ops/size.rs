//! Sizes of operands.

use crate::ops::fault::Fault;

/// The product of extents, `None` beyond 32 bits.
pub(crate) fn size(extents: &[u32]) -> Option<u32> {
    extents.iter().try_fold(1, |size, &extent| product(size, extent))
}

/// [`size`], as load's error.
pub(crate) fn checked_size(extents: &[u32]) -> Result<u32, Fault> {
    size(extents).filter(|&bytes| bytes > 0).ok_or(Fault::Shape)
}

/// The product of two, `None` beyond 32 bits.
#[inline(always)]
pub(crate) fn product(a: u32, b: u32) -> Option<u32> {
    if cfg!(kernel_isa = "armv6m") {
        by_halves(a, b)
    } else {
        a.checked_mul(b)
    }
}

/// The same where the core has no product of 64 bits, and the compiler calls a function for one.
#[inline(always)]
fn by_halves(a: u32, b: u32) -> Option<u32> {
    let ([a0, a1], [b0, b1]) = (halves(a), halves(b));
    if a1 > 0 && b1 > 0 {
        return None;
    }
    // One of the two is 0.
    let high = a1 * b0 + a0 * b1;
    if high > u32::from(u16::MAX) {
        return None;
    }
    (high << 16).checked_add(a0 * b0)
}

/// Low and high.
#[inline(always)]
fn halves(n: u32) -> [u32; 2] {
    [n & 0xffff, n >> 16]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Numbers of every length, whose products are about as often within 32 bits as beyond.
        #[test]
        fn halves_make_the_checked_product(a: u32, b: u32, shifts in [0u32..32, 0u32..32]) {
            let (a, b) = (a >> shifts[0], b >> shifts[1]);
            prop_assert_eq!(by_halves(a, b), a.checked_mul(b));
        }
    }

    #[test]
    fn halves_at_the_ends_of_32_bits() {
        let ends = [
            0,
            1,
            2,
            0xffff,
            0x1_0000,
            0x1_0001,
            u32::MAX / 2,
            u32::MAX / 2 + 1,
            u32::MAX - 1,
            u32::MAX,
        ];
        for (a, b) in ends.into_iter().flat_map(|a| ends.map(|b| (a, b))) {
            assert_eq!(by_halves(a, b), a.checked_mul(b), "{a} {b}");
        }
    }
}
