//! Largest cost of a step, in counts that depend on no core and on no kernel's loops.

use crate::arena::{Access, Operand};
use crate::ops::window::Window2d;

/// An upper bound of what a step does, each count times the weight of the step's kernel. Instructions stay below a factor of [`Cost::total`] that depends on
/// the core alone: docs/safety.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cost {
    /// Products, or other computations of an element.
    pub products: u64,
    /// Elements read.
    pub reads: u64,
    /// Elements written, scratch included.
    pub writes: u64,
}

impl Cost {
    /// All of it, in one number.
    pub const fn total(self) -> u64 {
        self.products.saturating_add(self.reads).saturating_add(self.writes)
    }

    /// The sum of two.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            products: self.products.saturating_add(other.products),
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
        }
    }

    /// Outputs that each are a sum of `terms` products of an input and a weight.
    #[must_use]
    pub(crate) fn sums(self, outputs: u64, terms: u64) -> Self {
        self.products(outputs, outputs.saturating_mul(terms))
    }

    /// Outputs that together are sums of so many products: these are what is read of the operands, whose cost `self` is, unless they are fewer than the
    /// elements. An output is begun and rounded besides.
    #[must_use]
    pub(crate) fn products(self, outputs: u64, products: u64) -> Self {
        Self {
            products,
            reads: products.saturating_mul(2).max(self.reads),
            writes: self.writes,
        }
        .computations(outputs, OUTPUT)
    }

    /// `each` computations for each of `count` elements.
    #[must_use]
    pub(crate) const fn computations(self, count: u64, each: u64) -> Self {
        self.plus(Self {
            products: count.saturating_mul(each),
            reads: 0,
            writes: 0,
        })
    }

    /// All of it `factor` times.
    #[must_use]
    pub(crate) const fn times(self, factor: u64) -> Self {
        Self {
            products: self.products.saturating_mul(factor),
            reads: self.reads.saturating_mul(factor),
            writes: self.writes.saturating_mul(factor),
        }
    }

    /// So many quarters of all of it, rounded up.
    #[must_use]
    pub(crate) const fn quarters(self, count: u64) -> Self {
        let all = self.times(count);
        Self {
            products: all.products.div_ceil(4),
            reads: all.reads.div_ceil(4),
            writes: all.writes.div_ceil(4),
        }
    }

    /// Windows of `taps` pixels that are copied to scratch.
    #[must_use]
    pub(crate) fn copies(self, window: &Window2d) -> Self {
        let elements = windows(window)
            .saturating_mul(window.taps().into())
            .saturating_mul(window.input[2].into())
            // Pixels that lie apart are copied one by one.
            .saturating_mul(if window.dilation == [1, 1] { 1 } else { 2 });
        self.plus(Self {
            products: 0,
            reads: elements,
            writes: elements,
        })
    }
}

/// Computations of an output that is a sum beside its products: its bounds, its bias, its rounding.
pub(crate) const OUTPUT: u64 = 8;

/// The same of a multiplier and a shift of its own for each channel, beside [`OUTPUT`].
pub(crate) const ROUNDING: u64 = 16;

/// Computations of a pixel of a window that is copied by itself: where it lies, and whether that is in the input.
pub(crate) const PIXEL: u64 = 6;

/// Pixels as which a window of channels by themselves is counted, however many taps it has: it is begun for several channels at once.
pub(crate) const PIXELS_OF_GROUPS: u64 = 6;

/// Computations of a turn of a loop beside its products: where its operands lie.
pub(crate) const TURN: u64 = 2;

/// Computations of the power of an f32 normalisation across channels, beside the products of its sum.
pub(crate) const POWER: u64 = 18;

/// Computations of a run of neighbours in a window, beside its products: where it begins in the input and in the weights.
pub(crate) const RUN: u64 = 14;

/// Blocks of a loop that takes `block` neighbours at a time, and one at a time where fewer are left.
pub(crate) const fn blocks(count: u32, block: u32) -> u64 {
    (count / block + count % block) as u64
}

/// Places of a window, over all images.
pub(crate) fn windows(window: &Window2d) -> u64 {
    let [rows, columns, _] = window.output.map(u64::from);
    u64::from(window.batch).saturating_mul(rows * columns)
}

/// Positions under a window that lie in the input, of one channel, in all places together: what loops look at that leave padding out.
pub(crate) fn taps_inside(window: &Window2d) -> u64 {
    let along = |axis: usize| {
        let wide = |extents: &[u16]| u64::from(extents.get(axis).copied().unwrap_or(0));
        let byte = |pair: &[u8]| u64::from(pair.get(axis).copied().unwrap_or(0));
        let (places, taps, input) = (wide(&window.output), wide(&window.kernel), wide(&window.input));
        let (stride, spread, padding) = (
            byte(&window.stride),
            byte(&window.dilation).max(1),
            byte(&window.padding),
        );
        let outside = |place: u64| {
            let start = place * stride;
            let before = padding.saturating_sub(start).div_ceil(spread);
            let inside = (input + padding).saturating_sub(start).div_ceil(spread);
            (before + taps.saturating_sub(inside)).min(taps)
        };
        // Padding has a byte at both ends, so that no place in between reaches it.
        let ends = (0..places.min(EDGE)).chain(places.saturating_sub(EDGE).max(EDGE)..places);
        (places * taps).saturating_sub(ends.map(outside).sum())
    };
    u64::from(window.batch)
        .saturating_mul(along(0))
        .saturating_mul(along(1))
}

/// More than the padding of an axis at either end.
const EDGE: u64 = 256;

/// Cost that follows from the operands alone: each is read or written once, or where it is smaller than the output, broadcast, once for each output; a product
/// for each element read.
pub(crate) fn of_operands<P>(each: impl FnOnce(&mut dyn FnMut(Operand<P>))) -> Cost {
    let mut cost = Cost::default();
    each(&mut |operand| {
        let elements = match operand.access {
            Access::Scratch => u64::from(operand.bytes),
            _ => u64::from(operand.bytes.checked_div(operand.align).unwrap_or(operand.bytes)),
        };
        let writes = match operand.access {
            Access::Read => 0,
            _ => elements,
        };
        let reads = match operand.access {
            Access::Write => 0,
            // The output comes first.
            _ => elements.max(cost.writes),
        };
        cost = cost.plus(Cost {
            products: reads,
            reads,
            writes,
        });
    });
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows with images of either side longer and shorter than they are, and more places than are looked at one by one.
    #[test]
    fn taps_inside_are_those_that_a_loop_finds() {
        let mut checked = 0;
        for (input, kernel) in [1_u16, 2, 5, 40, 700]
            .into_iter()
            .flat_map(|input| [1_u16, 2, 3, 7, 9, 300].map(|kernel| (input, kernel)))
        {
            for [stride, dilation, padding] in [[1, 1, 0], [1, 1, 1], [2, 1, 3], [3, 2, 4], [1, 3, 255], [255, 255, 9]]
            {
                // The last place that may be lies before the end of the image.
                let most = (input + u16::from(padding)).div_ceil(stride.into());
                for output in [1, most / 2, most.saturating_sub(1), most] {
                    let window = Window2d {
                        batch: 2,
                        input: [input, input + 1, 3],
                        output: [output, output, 4],
                        kernel: [kernel; 2],
                        stride: [stride; 2],
                        dilation: [dilation; 2],
                        padding: [padding; 2],
                    };
                    if window.check().is_err() {
                        continue;
                    }
                    let along = |axis: usize| {
                        let start = |place: i64| place * i64::from(stride) - i64::from(padding);
                        let positions =
                            |place| (0..i64::from(kernel)).map(move |tap| start(place) + tap * i64::from(dilation));
                        let image = 0..i64::from(window.input[axis]);
                        let inside = (0..i64::from(output))
                            .flat_map(positions)
                            .filter(|at| image.contains(at));
                        inside.count() as u64
                    };
                    assert_eq!(taps_inside(&window), 2 * along(0) * along(1), "{window:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 200, "{checked}");
    }
}
