//! What a step costs at most, in counts that depend on no core and on no kernel's loops.

use crate::arena::{Access, Operand};
use crate::ops::window::Window2d;

/// An upper bound of what a step does. Instructions stay below a factor of [`Cost::total`] that depends on kernel and core alone: docs/safety.md.
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

    /// Outputs that each are a sum of `terms` products of an input and a weight, beside what `base` has of the operands.
    #[must_use]
    pub(crate) const fn sums(self, outputs: u64, terms: u64) -> Self {
        let products = outputs.saturating_mul(terms);
        self.plus(Self {
            products,
            reads: products.saturating_mul(2),
            writes: 0,
        })
    }

    /// Windows of `taps` pixels that are copied to scratch.
    #[must_use]
    pub(crate) fn copies(self, window: &Window2d) -> Self {
        let [rows, columns, _] = window.output.map(u64::from);
        let windows = u64::from(window.batch).saturating_mul(rows * columns);
        let elements = windows
            .saturating_mul(window.taps().into())
            .saturating_mul(window.input[2].into());
        self.plus(Self {
            products: 0,
            reads: elements,
            writes: elements,
        })
    }
}

/// Elements of a window that lie in the input, at most: what kernels without weights look at.
pub(crate) fn taps_inside(window: &Window2d) -> u64 {
    let [[rows, height], [columns, width]] = [0, 1].map(|axis: usize| {
        let of = |extents: &[u16]| u64::from(extents.get(axis).copied().unwrap_or(0));
        [of(&window.kernel), of(&window.input)]
    });
    rows.min(height) * columns.min(width)
}

/// What follows from the operands alone: each is read or written once, or where it is smaller than the output, broadcast, once for each output; a product for
/// each element read.
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
