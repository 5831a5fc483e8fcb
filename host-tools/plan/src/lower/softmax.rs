//! Softmax and its logarithm.

use arenite::ops::softmax::{SoftmaxF32, SoftmaxInt, SoftmaxKind};
use arenite::quant::{LogSoftmaxI8, SoftmaxI8, SoftmaxI16};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output, want_f32};
use super::numbers::per_tensor;
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Elements of which a step has no table of exponentials, which is a KiB.
const FEW: usize = 64;

/// Lowers a softmax along an axis that is innermost, up to axes of extent 1.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, axis: usize, beta: f32, log: bool) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let shape = &lower.graph().tensor(x).shape;
    if shape[axis + 1..].iter().any(|&extent| extent != 1) {
        return Err(Error::unsupported(format!("softmax along axis {axis} of {shape:?}"))
            .expected("the last axis")
            .help("transpose before and after it"));
    }
    let classes = shape[axis];
    if lower.graph().tensor(x).dtype != DType::F32 {
        return lower_int(lower, node, classes, beta, log);
    }
    want_f32(lower.graph(), node)?;
    let at = lower.place(x)?;
    let op = SoftmaxF32 {
        output: Place::Tensor(y, 0),
        input: at,
        rows: fit(
            lower.graph().tensor(x).elements() / classes.max(1),
            "the number of rows",
        )?,
        classes: fit(classes, "the number of classes")?,
        beta,
        log,
    };
    lower.push(
        node,
        if log { "log_softmax" } else { "softmax" },
        Step::SoftmaxF32(op),
        0,
    );
    Ok(())
}

fn lower_int(lower: &mut Lower<'_>, node: &Node, classes: usize, beta: f32, log: bool) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let (qx, qy) = (per_tensor(tx)?, per_tensor(ty)?);
    let rows = tx.elements() / classes.max(1);
    let types = (tx.dtype, ty.dtype);
    let unusable = || Error::input(format!("an operand of scale {} and beta {beta}", qx.0));
    let want = |scale: f32, zero_point: i32| {
        if (qy.0 / scale - 1.0).abs() < 1e-3 && qy.1 == zero_point {
            Ok(())
        } else {
            Err(
                Error::input(format!("a result of scale {} and zero point {}", qy.0, qy.1))
                    .expected(format!("scale {scale} and zero point {zero_point}")),
            )
        }
    };
    let kind = match types {
        (DType::I8, DType::I8) if log => {
            want(1.0 / 16.0, 127)?;
            SoftmaxKind::LogI8(LogSoftmaxI8::new(qx.0).ok_or_else(unusable)?)
        }
        (DType::I8, DType::I8) => {
            want(1.0 / 256.0, -128)?;
            let params = SoftmaxI8::new(beta, qx.0).ok_or_else(unusable)?;
            if rows * classes > FEW && !lower.program.size {
                let bytes = params.exponentials().iter().flat_map(|exp| exp.to_le_bytes()).collect();
                SoftmaxKind::I8Table(lower.program.weights.add_bytes(bytes)?)
            } else {
                SoftmaxKind::I8(params)
            }
        }
        (DType::I8, DType::I16) if !log => {
            want(1.0 / 65536.0, -32768)?;
            SoftmaxKind::I8ToI16(SoftmaxI8::new(beta, qx.0).ok_or_else(unusable)?)
        }
        (DType::I16, DType::I16) if !log => {
            want(1.0 / 32768.0, 0)?;
            if qx.1 != 0 {
                return Err(Error::input(format!("an int16 operand with zero point {}", qx.1)).expected("0"));
            }
            let params = SoftmaxI16::new(beta, qx.0).ok_or_else(unusable)?;
            let exp = interpolation_table(10.0 / 65535.0, 32767, f32::exp);
            let inverse = interpolation_table(1.0 / 65535.0, -32768, |x| 1.0 / (1.0 + x));
            let mut add = |table: Vec<i16>| {
                let bytes = table.iter().flat_map(|v| v.to_le_bytes()).collect();
                lower.program.weights.add_bytes(bytes)
            };
            SoftmaxKind::I16(params, [add(exp)?, add(inverse)?])
        }
        (from, to) => {
            return Err(Error::unsupported(format!(
                "{} from {} to {}",
                node.kind,
                from.name(),
                to.name()
            )));
        }
    };
    let op = SoftmaxInt {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        rows: fit(rows, "the number of rows")?,
        classes: fit(classes, "the number of classes")?,
        kind,
    };
    lower.push(
        node,
        if log { "log_softmax" } else { "softmax" },
        match op.kind {
            SoftmaxKind::I8(_) => Step::SoftmaxS8(op),
            _ => Step::SoftmaxInt(op),
        },
        0,
    );
    Ok(())
}

/// A function over the range of int16 at 513 places, with outputs on [-1, 1]; each value is moved by half of what linear interpolation
/// misses in the middle of its step, as in TensorFlow Lite's `LUTPopulate`.
fn interpolation_table(scale: f32, zero_point: i32, function: fn(f32) -> f32) -> Vec<i16> {
    const STEPS: usize = 512;
    let low = scale * (-32768 - zero_point) as f32;
    let high = scale * (32767 - zero_point) as f32;
    let output_scale = 2.0 / 65535.0_f32;
    let stored = 65536.0 / (output_scale * 32767.0 - output_scale * -32768.0);
    let step = (high - low) / STEPS as f32;
    let half = step / 2.0;
    let clamp = |x: f32| x.clamp(-32768.0, 32767.0) as i16;
    let mut table: Vec<i16> = (0..STEPS)
        .map(|i| {
            let at = low + i as f32 * step;
            let value = (function(at) * stored).round();
            let next = function(low + (i + 1) as f32 * step) * stored;
            let interpolated = ((next + value) / 2.0).round();
            let middle = (function(at + half) * stored).round();
            clamp(value - ((interpolated - middle) / 2.0).round())
        })
        .collect();
    table.push(clamp((function(high) * stored).round()));
    table
}
