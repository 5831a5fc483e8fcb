//! Elementwise operators.

use super::clamp;
use crate::kernels::cells::{Dst, Src};
use crate::ops::elementwise::{BinaryOp, Loop, UnaryOp};

/// `y = clamp(a op b)` over broadcast axes.
pub(crate) fn binary(
    op: BinaryOp,
    loops: &[Loop],
    limits: [f32; 2],
    output: Dst<'_, f32>,
    a: Src<'_, f32>,
    b: Src<'_, f32>,
) -> Option<()> {
    // One monomorphised loop an operation: the match stays outside.
    match op {
        BinaryOp::Add => broadcast(loops, output, a, b, |a, b| clamp(a + b, limits)),
        BinaryOp::Sub => broadcast(loops, output, a, b, |a, b| clamp(a - b, limits)),
        BinaryOp::Mul => broadcast(loops, output, a, b, |a, b| clamp(a * b, limits)),
        BinaryOp::Div => broadcast(loops, output, a, b, |a, b| clamp(a / b, limits)),
        BinaryOp::Minimum => broadcast(loops, output, a, b, |a, b| clamp(if b < a { b } else { a }, limits)),
        BinaryOp::Maximum => broadcast(loops, output, a, b, |a, b| clamp(if b > a { b } else { a }, limits)),
        BinaryOp::SquaredDifference => broadcast(loops, output, a, b, |a, b| clamp((a - b) * (a - b), limits)),
        BinaryOp::Prelu => broadcast(loops, output, a, b, |a, b| {
            clamp(if a > 0.0 { a } else { a * b }, limits)
        }),
    }
}

/// Calls `f` on the elements that meet, outermost axis first, and writes the results in order.
pub(crate) fn broadcast<
    A: crate::kernels::cells::Element,
    B: crate::kernels::cells::Element,
    Y: crate::kernels::cells::Element,
>(
    loops: &[Loop],
    output: Dst<'_, Y>,
    a: Src<'_, A>,
    b: Src<'_, B>,
    f: impl Fn(A, B) -> Y,
) -> Option<()> {
    let (outer, inner) = match loops {
        [outer @ .., inner] => (outer, *inner),
        [] => (loops, Loop { count: 1, a: 0, b: 0 }),
    };
    let [count, step_a, step_b] = [inner.count, inner.a, inner.b].map(|n| n as usize);
    let (mut index, mut at, mut at_a, mut at_b) = ([0u32; crate::ops::elementwise::MAX_LOOPS], 0, 0usize, 0usize);
    loop {
        let row = output.slice(at, count)?;
        let (mut i, mut j) = (at_a, at_b);
        for y in row.cells() {
            y.set(f(a.get(i)?, b.get(j)?));
            i += step_a;
            j += step_b;
        }
        at += count;
        // Advance the outer axes like an odometer.
        let mut done = true;
        for (l, n) in outer.iter().zip(index.iter_mut()).rev() {
            *n += 1;
            at_a += l.a as usize;
            at_b += l.b as usize;
            if *n < l.count {
                done = false;
                break;
            }
            at_a -= l.a as usize * l.count as usize;
            at_b -= l.b as usize * l.count as usize;
            *n = 0;
        }
        if done {
            return Some(());
        }
    }
}

/// `y = op(x)`.
pub(crate) fn unary(op: UnaryOp, output: Dst<'_, f32>, input: Src<'_, f32>) {
    match op {
        UnaryOp::Clamp { min, max } => map(output, input, |x| clamp(x, [min, max])),
        UnaryOp::LeakyRelu { alpha } => map(output, input, |x| if x > 0.0 { x } else { alpha * x }),
        UnaryOp::HardSwish => map(output, input, |x| x * clamp(x + 3.0, [0.0, 6.0]) / 6.0),
        UnaryOp::Logistic => map(output, input, |x| 1.0 / (1.0 + libm::expf(-x))),
        UnaryOp::Tanh => map(output, input, libm::tanhf),
        UnaryOp::Exp => map(output, input, libm::expf),
        UnaryOp::Log => map(output, input, libm::logf),
        UnaryOp::Sqrt => map(output, input, libm::sqrtf),
        UnaryOp::Rsqrt => map(output, input, |x| 1.0 / libm::sqrtf(x)),
        UnaryOp::Square => map(output, input, |x| x * x),
        UnaryOp::Abs => map(output, input, f32::abs),
        UnaryOp::Neg => map(output, input, |x| -x),
    }
}

fn map(output: Dst<'_, f32>, input: Src<'_, f32>, f: impl Fn(f32) -> f32) {
    for (y, x) in output.cells().iter().zip(input.iter()) {
        y.set(f(x));
    }
}
