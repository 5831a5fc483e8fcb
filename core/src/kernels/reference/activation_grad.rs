//! Gradient through an activation: [`crate::ops::activation_grad`].

use super::{read, written};
use crate::arena::Mem;
use crate::ops::activation_grad::{Activated, ActivationGradF32};

pub(crate) fn f32(op: &ActivationGradF32, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let output = written::<f32>(mem, op.output, count)?;
    let (gradient, result) = (
        read::<f32>(mem, op.gradient, count)?,
        read::<f32>(mem, op.result, count)?,
    );
    for i in 0..count {
        let (dy, y) = (gradient.get(i)?, result.get(i)?);
        let dx = match op.activation {
            Activated::Clamp { min, max } => {
                let is_between = y > min && y < max;
                if is_between { dy } else { 0.0 }
            }
            Activated::Tanh => dy * (1.0 - y * y),
            Activated::Logistic => dy * (y * (1.0 - y)),
        };
        output.set(i, dx)?;
    }
    Some(())
}
