//! Elementwise operators of one and two operands, with broadcasting.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
pub use crate::ops::binary::BinaryOp;
use crate::ops::binary::Pairwise;
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::pointwise::{PLAIN, Pointwise, UnaryOp};
use crate::ops::size::{checked_size, product};

/// Axes of a broadcast after the host has merged what can be merged.
pub const MAX_LOOPS: usize = 6;

/// An axis of a broadcast: its extent, and the elements between neighbours along it in both operands (0 where broadcast).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Loop {
    /// Extent.
    pub count: u32,
    /// Stride in operand a.
    pub a: u32,
    /// Stride in operand b.
    pub b: u32,
}

operator! {
    /// `y = clamp(a op b)`, in f32, with a function of the set `F`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct BinaryF32<P, F: Pairwise = BinaryOp> {
        /// Contiguous, of the broadcast shape.
        pub output: P,
        /// First operand.
        pub a: P,
        /// Second operand.
        pub b: P;
        /// Axes, outermost first.
        pub loops: heapless::Vec<Loop, MAX_LOOPS>,
        /// The operation.
        pub op: F,
        /// Clamp of the result.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// `y = op(x)`, in f32, with a function of the set `F`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct UnaryF32<P, F: Pointwise = UnaryOp> {
        /// Contiguous.
        pub output: P,
        /// Contiguous.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// The function.
        pub op: F,
    }
}

/// Elements of the broadcast result.
pub fn output_len(loops: &[Loop]) -> Option<u32> {
    loops.iter().try_fold(1, |len, l| product(len, l.count))
}

/// Elements that an operand must have so that the last of them is reached with these strides.
pub fn operand_len(loops: &[Loop], stride: impl Fn(&Loop) -> u32) -> Option<u32> {
    loops.iter().try_fold(1u32, |len, l| {
        len.checked_add(product(l.count.checked_sub(1)?, stride(l))?)
    })
}

/// The extent of the only axis of two operands of the output's shape.
pub(crate) fn only_line(loops: &mut [Loop]) -> Option<&mut u32> {
    match loops {
        [Loop { count, a: 1, b: 1 }] => Some(count),
        _ => None,
    }
}

/// Whether a walk along all axes stays within 32 bits, one step beyond the end of each included.
pub(crate) fn is_walkable(loops: &[Loop], stride: impl Fn(&Loop) -> u32) -> bool {
    let walk = |len: u32, l: &Loop| len.checked_add(product(l.count, stride(l))?);
    loops.iter().try_fold(0, walk).is_some()
}

/// Whether an operand with these strides is walked exactly as the output is.
pub fn is_contiguous(loops: &[Loop], stride: impl Fn(&Loop) -> u32) -> bool {
    let mut inner = 1u32;
    loops.iter().rev().all(|l| {
        let matches = l.count == 1 || stride(l) == inner;
        inner = inner.saturating_mul(l.count);
        matches
    })
}

impl<P: Place, F: Pairwise> Operator for BinaryF32<P, F> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[output_len(&self.loops).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.a).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.b).ok_or(Fault::Shape)?, 4])?;
        if is_walkable(&self.loops, |l| l.a) && is_walkable(&self.loops, |l| l.b) {
            Ok(())
        } else {
            Err(Fault::Shape)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = |len: Option<u32>| len.unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(
            Access::Write,
            self.output,
            len(output_len(&self.loops)),
        ));
        visit(Operand::of::<f32>(
            Access::Read,
            self.a,
            len(operand_len(&self.loops, |l| l.a)),
        ));
        visit(Operand::of::<f32>(
            Access::Read,
            self.b,
            len(operand_len(&self.loops, |l| l.b)),
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        of_operands(|visit| self.operands(needs, visit)).times(self.op.weight())
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        only_line(&mut self.loops)
    }
}

impl<P: Place, F: Pointwise> Operator for UnaryF32<P, F> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<f32>(Access::Write, self.output, self.count));
        visit(Operand::of::<f32>(Access::Read, self.input, self.count));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Functions with parameters have no row: a comparison or two.
        let row = F::ROWS.iter().find(|(function, _)| *function == self.op);
        of_operands(|visit| self.operands(needs, visit)).times(row.map_or(PLAIN, |(_, names)| names.weight))
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}
