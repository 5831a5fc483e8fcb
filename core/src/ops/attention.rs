//! Attention of one query line over the lines of a state (Vaswani et al., "Attention Is All You Need", 2017), several query heads sharing a head of keys and
//! values (Ainslie et al., "GQA", 2023; one such head is Shazeer's multi-query attention, 2019).

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, OUTPUT};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// `y[h, :] = sum over t of p[t] * values[g, t, :]`, `p = softmax over t of scale * query[h, :] . keys[g, t, :]`, `g = h / (heads / kv_heads)`, over the
    /// first `position + 1` lines. Lines behind them are not read. A position outside the capacity is refused.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct AttentionF32<P> {
        /// `[heads, width]`
        pub output: P,
        /// `[heads, width]`
        pub query: P,
        /// `[kv_heads, capacity, width]`
        pub keys: P,
        /// `[kv_heads, capacity, width]`
        pub values: P,
        /// `[1]`, int32.
        pub position: P,
        /// The scores of one query head: `[capacity]`.
        pub scratch: P;
        /// Heads of the query.
        pub heads: u32,
        /// Heads of keys and values; divides the others.
        pub kv_heads: u32,
        /// Elements of a head.
        pub width: u32,
        /// Lines that the states hold.
        pub capacity: u32,
        /// Factor of the scores.
        pub scale: f32,
    }
}

/// Computations of an exponential, in products.
const EXPONENTIAL: u64 = 2 * OUTPUT;

impl<P> AttentionF32<P> {
    /// Bytes of scratch.
    pub(crate) fn scores(&self) -> u32 {
        self.capacity.saturating_mul(4)
    }

    /// Largest cost of a run over so many lines, which follows their number and not the capacity.
    #[must_use]
    pub fn cost_of_lines(&self, lines: u32) -> Cost {
        let [heads, width, lines] = [self.heads, self.width, lines].map(u64::from);
        let scores = heads.saturating_mul(lines);
        let products = scores.saturating_mul(width).saturating_mul(2);
        let sums = Cost {
            products,
            reads: products.saturating_mul(2).saturating_add(scores.saturating_mul(3)),
            writes: scores.saturating_mul(2).saturating_add(heads.saturating_mul(width)),
        };
        // Each score is begun, and has an exponential; each output is divided.
        sums.computations(scores, OUTPUT + EXPONENTIAL)
            .computations(heads.saturating_mul(width), OUTPUT)
    }
}

impl<P: Place> Operator for AttentionF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.heads, self.width, 4])?;
        checked_size(&[self.kv_heads, self.capacity, self.width, 4])?;
        if self.heads.is_multiple_of(self.kv_heads) {
            Ok(())
        } else {
            Err(Fault::Shape)
        }
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let query = size(&[self.heads, self.width]).unwrap_or(u32::MAX);
        let cache = size(&[self.kv_heads, self.capacity, self.width]).unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(Access::Write, self.output, query));
        visit(Operand::of::<f32>(Access::Read, self.query, query));
        visit(Operand::of::<f32>(Access::Read, self.keys, cache));
        visit(Operand::of::<f32>(Access::Read, self.values, cache));
        visit(Operand::of::<i32>(Access::Read, self.position, 1));
        visit(Operand::scratch(self.scratch, needs.scratch));
    }

    fn cost(&self, _: Needs) -> Cost {
        self.cost_of_lines(self.capacity)
    }
}
