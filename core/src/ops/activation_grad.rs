//! Gradient through an activation, from its result: `dx = dy * f'(x)`, where `f'(x)` follows from `y = f(x)`.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

/// An activation whose derivative follows from its result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Activated {
    /// `min(max(x, min), max)`: 1 where the result is between the two, else 0.
    Clamp {
        /// The lower limit.
        min: f32,
        /// The upper limit.
        max: f32,
    },
    /// `tanh(x)`: `1 - y * y`.
    Tanh,
    /// `1 / (1 + e^-x)`: `y * (1 - y)`.
    Logistic,
}

operator! {
    /// Gradient through an activation, f32.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct ActivationGradF32<P> {
        /// Gradient of the activation's operand, `[count]`.
        pub output: P,
        /// Gradient of its result, `[count]`.
        pub gradient: P,
        /// Its result, `[count]`.
        pub result: P;
        /// Elements.
        pub count: u32,
        /// The activation.
        pub activation: Activated,
    }
}

impl<P: Place> Operator for ActivationGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        match self.activation {
            Activated::Clamp { min, max } if min.is_nan() || max.is_nan() => Err(Fault::Shape),
            _ => Ok(()),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<f32>(Access::Write, self.output, self.count));
        visit(Operand::of::<f32>(Access::Read, self.gradient, self.count));
        visit(Operand::of::<f32>(Access::Read, self.result, self.count));
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}
