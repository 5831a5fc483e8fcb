//! Elementwise operators of integers: two operands, or one through a table or a rescaling.

use arenite::ops::convert::SigmoidS16;
use arenite::ops::elementwise::{Loop, is_contiguous};
use arenite::ops::elementwise_int::{BinaryInt, IntOp};
use arenite::ops::pointwise::{Function, Pointwise};
use arenite::quant::{HardSwish, LogisticI8, Multiplier, SigmoidI16, dequantize, leaky_relu, quantize, rsqrt_i8};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use super::convert::{push_table, push_table_of, rescale};
use super::copies::copy;
use super::loops::loops;
use super::numbers::{Affine, below_one, clamp_int, factor, limits, per_tensor, quantize_to_even};
use super::{select, table_s16};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, Node, Tensor, TensorId, TensorKind, UnaryKind};
use crate::program::Place;

/// Lowers an operator of two integer operands.
pub(super) fn lower_binary(lower: &mut Lower<'_>, node: &Node, kind: BinaryOp, activation: Activation) -> Result<()> {
    let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let graph = lower.graph();
    let plain = arithmetic(&node.kind, kind, activation, [a, b, y].map(|id| graph.tensor(id)))?;
    if let Some((operand, table)) = with_a_number(lower, &plain, [a, b], y)? {
        return push_table_of(lower, node, kind.names().name, operand, &table);
    }
    let step = BinaryInt {
        output: Place::Tensor(y, 0),
        a: lower.place(a)?,
        b: lower.place(b)?,
        ..plain
    };
    let step = laid_out(lower, node, step, [a, b], y)?;
    let step = select::binary_int(&lower.program, &step)?;
    lower.push(node, kind.names().name, step, 0);
    Ok(())
}

/// Elements of which each pays for a byte of a table.
const MANY: usize = 256;

/// Returns an int8 operator as a table where its other operand is a constant of one element; `None` of operators of few elements, and of those that have a
/// kernel in which an element costs as little.
fn with_a_number(
    lower: &Lower<'_>,
    step: &BinaryInt<Place>,
    [a, b]: [TensorId; 2],
    y: TensorId,
) -> Result<Option<(TensorId, [u8; 256])>> {
    let graph = lower.graph();
    let [ta, tb, ty] = [a, b, y].map(|id| graph.tensor(id));
    let vectors = !select::has_no_vectors(lower.program.target);
    if ty.dtype != DType::I8 || ty.elements() < MANY || (vectors && step.op == IntOp::Mul) {
        return Ok(None);
    }
    let number = |tensor: &Tensor| matches!(tensor.kind, TensorKind::Const(_)) && tensor.elements() == 1;
    let (operand, other, second) = match (number(ta), number(tb)) {
        (false, true) => (a, b, true),
        (true, false) => (b, a, false),
        _ => return Ok(None),
    };
    let [number] = lower.bytes(other)?[..] else {
        return Ok(None);
    };
    let number = i32::from(number as i8);
    let mut table = [0; 256];
    for q in i8::MIN..=i8::MAX {
        let operands = if second { [q.into(), number] } else { [number, q.into()] };
        let Some(result) = stored(step, operands[0], operands[1]) else {
            return Ok(None);
        };
        table[usize::from(q as u8)] = result.max(step.clamp[0]).min(step.clamp[1]) as u8;
    }
    Ok((graph.tensor(operand).elements() == ty.elements()).then_some((operand, table)))
}

/// An int8 sum or difference with its broadcast operands copied to the result's shape, where it has a linear form then: a copied byte costs less than three
/// roundings.
fn laid_out(
    lower: &mut Lower<'_>,
    node: &Node,
    step: BinaryInt<Place>,
    operands: [TensorId; 2],
    y: TensorId,
) -> Result<BinaryInt<Place>> {
    let count = lower.graph().tensor(y).elements();
    let mut whole = step.clone();
    whole.loops.clear();
    let axis = Loop {
        count: fit(count, "the number of elements")?,
        a: 1,
        b: 1,
    };
    if step.loops.len() < 2 || whole.loops.push(axis).is_err() || !select::has_linear_sum(&lower.program, &whole) {
        return Ok(step);
    }
    for (index, operand) in operands.into_iter().enumerate() {
        let stride = |l: &Loop| if index == 0 { l.a } else { l.b };
        if is_contiguous(&step.loops, stride) {
            continue;
        }
        let (mut axes, mut to) = (Vec::new(), count);
        for l in &step.loops {
            to /= l.count.max(1) as usize;
            axes.push((l.count as usize, to, stride(l) as isize));
        }
        let whole_operand = lower.temporary(operand, y, index);
        copy(lower, node, "broadcast", (operand, 0), (whole_operand, 0), &axes)?;
        let place = Place::Tensor(whole_operand, 0);
        if index == 0 {
            whole.a = place;
        } else {
            whole.b = place;
        }
    }
    Ok(whole)
}

/// The operator of two integer operands and their result, without its places. `name` is the operator's own, for messages.
pub fn arithmetic(
    name: &str,
    kind: BinaryOp,
    activation: Activation,
    [ta, tb, ty]: [&Tensor; 3],
) -> Result<BinaryInt<Place>> {
    let dtype = ty.dtype;
    if ta.dtype != dtype || tb.dtype != dtype {
        return Err(
            Error::unsupported(format!("operands of {} and {}", ta.dtype.name(), tb.dtype.name()))
                .expected(format!("{} as the result", dtype.name())),
        );
    }
    // Of plain integers alone: the rows have what quantised ones can.
    let quotient = (kind == BinaryOp::Div && dtype == DType::I32).then_some(IntOp::Div);
    let Some(op) = kind.names().integer.or(quotient) else {
        return Err(Error::unsupported(format!("{name} of {}", dtype.name())).expected("f32"));
    };
    let mut step = BinaryInt {
        output: Place::Scratch,
        a: Place::Scratch,
        b: Place::Scratch,
        loops: loops(&ty.shape, &ta.shape, &tb.shape)?,
        dtype,
        op,
        zero: [0; 3],
        shift: 0,
        multipliers: [Multiplier::ONE; 3],
        clamp: limits(dtype)?,
    };
    let quantised = matches!(dtype, DType::I8 | DType::I16);
    if quantised && !matches!(op, IntOp::Minimum | IntOp::Maximum) {
        let (qa, qb, qy) = (per_tensor(ta)?, per_tensor(tb)?, per_tensor(ty)?);
        step.zero = [qa.1, qb.1, qy.1];
        step.clamp = clamp_int(activation, qy, dtype)?;
        let (sa, sb, sy) = (f64::from(qa.0), f64::from(qb.0), f64::from(qy.0));
        let products = sa * sb / sy;
        match op {
            IntOp::Add | IntOp::Sub => {
                // Operands are brought to twice the larger scale, with room above for the sum.
                step.shift = if dtype == DType::I16 { 15 } else { 20 };
                let common = 2.0 * f64::from(qa.0.max(qb.0));
                let result = common / (f64::from(1 << step.shift) * sy);
                step.multipliers = [below_one(sa / common)?, below_one(sb / common)?, below_one(result)?];
            }
            IntOp::Prelu => step.multipliers = [factor(sa / sy)?, Multiplier::ONE, factor(products)?],
            _ => step.multipliers[2] = factor(products)?,
        }
    } else if activation != Activation::None {
        let [low, high] = activation.bounds();
        step.clamp = [low as i32, high as i32];
    }
    Ok(step)
}

/// The result of two stored values before its clamp; `None` where 32 bits do not hold what is computed on the way.
pub(crate) fn stored<P>(op: &BinaryInt<P>, a: i32, b: i32) -> Option<i32> {
    let [za, zb, zy] = op.zero;
    let [ma, mb, my] = op.multipliers;
    let exact = |multiplier: Multiplier, x: i64| {
        i32::try_from(x << multiplier.shift.max(0)).ok()?;
        Some(i64::from(multiplier.apply(i32::try_from(x).ok()?)))
    };
    let shifted = |q: i32, zero: i32| i64::from(q - zero) << op.shift;
    let result = match op.op {
        IntOp::Minimum => return Some(a.min(b)),
        IntOp::Maximum => return Some(a.max(b)),
        IntOp::Add => exact(my, exact(ma, shifted(a, za))? + exact(mb, shifted(b, zb))?)?,
        IntOp::Sub => exact(my, exact(ma, shifted(a, za))? - exact(mb, shifted(b, zb))?)?,
        IntOp::Mul => exact(my, i64::from(a - za) * i64::from(b - zb))?,
        IntOp::Prelu if a >= za => exact(ma, i64::from(a - za))?,
        IntOp::Prelu => exact(my, i64::from(a - za) * i64::from(b - zb))?,
        IntOp::Div => return None,
    };
    i32::try_from(result + i64::from(zy)).ok()
}

/// Lowers an operator of one int8 or int16 operand.
pub(super) fn lower_unary(lower: &mut Lower<'_>, node: &Node, kind: UnaryKind) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let name = kind.name();
    match (tx.dtype, ty.dtype) {
        (DType::I8, DType::I8) => {
            let table = table(kind, per_tensor(tx)?, per_tensor(ty)?)?;
            push_table(lower, node, name, &table)
        }
        (DType::I16, DType::I16) => lower_s16(lower, node, kind),
        (from, to) => Err(Error::unsupported(format!(
            "{name} from {} to {}",
            from.name(),
            to.name()
        ))),
    }
}

/// The table of an int8 function, by the arithmetic of TensorFlow Lite Micro's kernel of that name.
pub(crate) fn table(kind: UnaryKind, (scale_in, zero_in): Affine, (scale_out, zero_out): Affine) -> Result<[u8; 256]> {
    let unusable = |what: &str| Error::input(format!("{what} with scales {scale_in} and {scale_out}"));
    // The quotient is taken in f32 first, as there.
    let ratio = f64::from(scale_in / scale_out);
    let each = |f: &dyn Fn(i8) -> i32| {
        let mut table = [0; 256];
        for q in i8::MIN..=i8::MAX {
            table[usize::from(q as u8)] = f(q).clamp(-128, 127) as u8;
        }
        table
    };
    let fixed_output = |scale: f32, zero_point: i32| {
        if (scale_out, zero_out) == (scale, zero_point) {
            Ok(())
        } else {
            Err(
                Error::input(format!("a result of scale {scale_out} and zero point {zero_out}"))
                    .expected(format!("scale {scale} and zero point {zero_point}")),
            )
        }
    };
    let real = |f: &dyn Fn(f32) -> f32| {
        let stored = |q: i8| f(dequantize(i32::from(q), scale_in, zero_in));
        each(&|q| quantize(stored(q), scale_out, zero_out, -128, 127))
    };
    let logistic = || LogisticI8::new(scale_in, zero_in).ok_or_else(|| unusable("a logistic function"));
    Ok(match kind {
        UnaryKind::LOGISTIC => {
            let function = logistic()?;
            fixed_output(1.0 / 256.0, -128)?;
            each(&|q| i32::from(function.logistic(q)))
        }
        UnaryKind::TANH => {
            let function = logistic()?;
            fixed_output(1.0 / 128.0, 0)?;
            each(&|q| i32::from(function.tanh(q)))
        }
        UnaryKind::HARD_SWISH => {
            let function =
                HardSwish::new(scale_in, zero_in, scale_out, zero_out).ok_or_else(|| unusable("a hard swish"))?;
            each(&|q| i32::from(function.apply(q)))
        }
        UnaryKind::LeakyRelu { alpha } => {
            let (identity, slope) = (factor(ratio)?, factor(f64::from(scale_in * alpha / scale_out))?);
            each(&|q| leaky_relu(i32::from(q), zero_in, identity, slope, zero_out, (-128, 127)))
        }
        UnaryKind::Relu => {
            let scaled = factor(ratio)?;
            each(&|q| {
                scaled
                    .apply(i32::from(q) - zero_in)
                    .saturating_add(zero_out)
                    .max(zero_out)
            })
        }
        UnaryKind::Relu6 => {
            let six = quantize(6.0, scale_in, zero_in, -128, 127);
            each(&|q| i32::from(q).clamp(zero_in, six.max(zero_in)))
        }
        UnaryKind::ABS => {
            let scaled = factor(ratio)?;
            each(&|q| scaled.apply((i32::from(q) - zero_in).abs()).saturating_add(zero_out))
        }
        UnaryKind::RSQRT => {
            let scaled = factor(1.0 / f64::from(scale_in.sqrt() * scale_out))?;
            each(&|q| i32::from(rsqrt_i8(q, zero_in, scaled, zero_out)))
        }
        UnaryKind::NEG => {
            let scaled = factor(ratio)?;
            each(&|q| scaled.apply(zero_in - i32::from(q)).saturating_add(zero_out))
        }
        // Computed in f32, as there.
        UnaryKind::Elu => {
            let inverse = 1.0 / scale_out;
            each(&|q| {
                let x = scale_in * (i32::from(q) - zero_in) as f32;
                let y = if x < 0.0 { f64::from(x).exp_m1() as f32 } else { x };
                ((y * inverse).round() as i32).saturating_add(zero_out)
            })
        }
        // TensorFlow Lite has no int8 form of these: the nearest stored number of the function's real value.
        UnaryKind::ReluN1To1 => real(&|x| x.clamp(-1.0, 1.0)),
        // Of ONNX, with its rounding.
        UnaryKind::Clamp { min, max } => each(&|q| {
            let clamped = dequantize(i32::from(q), scale_in, zero_in).max(min).min(max);
            quantize_to_even(clamped, (scale_out, zero_out), [-128, 127])
        }),
        UnaryKind::Function(Function::Basic(function)) => real(&|x| function.apply(x)),
        UnaryKind::Function(Function::Special(function)) => real(&|x| function.apply(x)),
    })
}

fn lower_s16(lower: &mut Lower<'_>, node: &Node, kind: UnaryKind) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (to, from) = (Place::Tensor(y, 0), lower.place(x)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let count = fit(tx.elements(), "the number of elements")?;
    let plain = tx.quant.is_none() && ty.quant.is_none() && kind == UnaryKind::ABS;
    let (qx, qy) = if plain {
        ((1.0, 0), (1.0, 0))
    } else {
        (per_tensor(tx)?, per_tensor(ty)?)
    };
    if (qx.1, qy.1) != (0, 0) && !matches!(kind, UnaryKind::LeakyRelu { .. }) {
        return Err(Error::input(format!("zero points {} and {} of int16 tensors", qx.1, qy.1)).expected("0"));
    }
    if let UnaryKind::LOGISTIC | UnaryKind::TANH = kind {
        let tanh = kind == UnaryKind::TANH;
        let sigmoid = if tanh {
            SigmoidI16::tanh_of_scale(qx.0)
        } else {
            SigmoidI16::logistic_of_scale(qx.0)
        };
        if (qy.0 * 32768.0 - 1.0).abs() > 1e-3 {
            return Err(Error::input(format!("a result of scale {}", qy.0)).expected("1/32768"));
        }
        let step = SigmoidS16 {
            output: to,
            input: from,
            count,
            sigmoid: sigmoid.ok_or_else(|| {
                Error::unsupported(format!("an operand of scale {}", qx.0))
                    .expected("below 16/3: the products of TensorFlow Lite's own kernel overflow from there on")
                    .help("convert the model again with smaller activations")
            })?,
            tanh,
        };
        lower.push(node, kind.name(), Step::SigmoidS16(step), 0);
        return Ok(());
    }
    match kind {
        UnaryKind::ABS | UnaryKind::NEG => {}
        UnaryKind::Function(Function::Basic(function)) => {
            return table_s16::lower(lower, node, kind.name(), &|x| function.apply(x));
        }
        UnaryKind::Function(Function::Special(function)) => {
            return table_s16::lower(lower, node, kind.name(), &|x| function.apply(x));
        }
        _ => {}
    }
    // In f64, as there: 16-bit values show the rounding of an f32 quotient.
    let scaled = factor(f64::from(qx.0) / f64::from(qy.0))?;
    let mut step = rescale([to, from], count, tx, ty, [qx.1, qy.1], scaled)?;
    match kind {
        UnaryKind::Relu => step.clamp[0] = 0,
        UnaryKind::Relu6 => {
            (step.positive, step.negative) = (Multiplier::ONE, Multiplier::ONE);
            step.clamp = [0, quantize(6.0, qx.0, 0, -32768, 32767).max(0)];
        }
        UnaryKind::LeakyRelu { alpha } => {
            step.negative = factor(f64::from(qx.0) * f64::from(alpha) / f64::from(qy.0))?;
        }
        UnaryKind::ABS => step.absolute = true,
        UnaryKind::NEG => {
            let negated = Multiplier {
                mantissa: -scaled.mantissa,
                ..scaled
            };
            (step.positive, step.negative) = (negated, negated);
        }
        // TensorFlow Lite has no int16 form of these: what is kept is rescaled.
        UnaryKind::ReluN1To1 => step.clamp = stored_clamp([-1.0, 1.0], qy),
        UnaryKind::Clamp { min, max } => step.clamp = stored_clamp([min, max], qy),
        _ => return Err(Error::unsupported(format!("{} of int16", kind.name())).expected("f32")),
    }
    lower.push(node, kind.name(), Step::Rescale(step), 0);
    Ok(())
}

/// Bounds of real numbers as int16.
fn stored_clamp([low, high]: [f32; 2], affine: Affine) -> [i32; 2] {
    [low, high.max(low)].map(|bound| quantize_to_even(bound, affine, [-32768, 32767]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a file's scales are: the largest numbers stay at the ends of a byte, none comes round.
    #[test]
    fn scales_far_apart_saturate() {
        let scales = [f32::MIN_POSITIVE, 1e-30, 1e-6, 1.0, 1e6, 1e30, f32::MAX];
        let kinds = [
            UnaryKind::Relu,
            UnaryKind::Relu6,
            UnaryKind::ABS,
            UnaryKind::NEG,
            UnaryKind::Elu,
            UnaryKind::HARD_SWISH,
        ];
        let mut made = 0;
        for kind in kinds
            .into_iter()
            .chain([UnaryKind::ReluN1To1, UnaryKind::LeakyRelu { alpha: 0.3 }])
        {
            for (from, to) in scales.into_iter().flat_map(|from| scales.map(|to| (from, to))) {
                for zero in [-128, 0, 127] {
                    made += usize::from(table(kind, (from, zero), (to, zero)).is_ok());
                }
            }
        }
        assert!(made > 400, "{made}");
        let table = table(UnaryKind::Elu, (1.0, 0), (1e-9, 127)).expect("a table");
        assert_eq!((table[127] as i8, table[255] as i8), (127, -128));
    }
}
