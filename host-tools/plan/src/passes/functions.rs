//! Functions that a network writes out in parts become the operators that compute them: clamps of all spellings, hard swish, SiLU, GELU, Mish and the others of
//! the runtime's rows.
//!
//! Parts are compared by what they compute and not by how they are written: a composite is a known function where the two agree on [`samples`]: to the bit, but
//! for smooth activations, where it is to 1e-6 of numbers up to one and 1e-6 of the operand beyond.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::pointwise::{Function, SpecialOp, UnaryOp};

use super::constants::number;
use crate::error::Result;
use crate::graph::composite::{Composite, Links, real};
use crate::graph::{Graph, Node, Op, TensorId, UnaryKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let samples = samples();
    let mut links = Links::of(graph);
    let mut gone = vec![false; graph.nodes.len()];
    // From the last on: what contains another is found first.
    for end in (0..graph.nodes.len()).rev() {
        if gone[end] || matches!(graph.nodes[end].op, Op::Identity) {
            continue;
        }
        // One element: more may widen the result.
        let number = |id: TensorId| number(graph, id).filter(|_| graph.tensor(id).elements() == 1);
        let composites = Composite::ending_at(graph, &links, end, &number);
        let mut composites = (composites.into_iter().rev()).filter(|parts| !asks_for_nan(graph, parts));
        let found = composites.find_map(|parts| Some((recognised(&parts, &samples)?, parts)));
        let Some((op, Composite { source, nodes, .. })) = found else {
            continue;
        };
        if nodes.len() == 1 && op == graph.nodes[end].op {
            continue;
        }
        for &index in &nodes {
            links.remove(index, &graph.nodes[index]);
            gone[index] = index != end;
        }
        let node = Node {
            op,
            inputs: vec![Some(source)],
            ..graph.nodes[end].clone()
        };
        links.add(end, &node);
        graph.nodes[end] = node;
    }
    let mut gone = gone.into_iter();
    graph.nodes.retain(|_| !gone.next().unwrap_or(false));
    Ok(())
}

/// Whether a part compares a number with itself: what it makes of a NaN is no sample's.
fn asks_for_nan(graph: &Graph, parts: &Composite) -> bool {
    parts.nodes.iter().any(|&index| {
        let node = &graph.nodes[index];
        let compares = match node.op {
            Op::SpecialBinary { kind } => matches!(
                kind,
                SpecialBinaryOp::Equal | SpecialBinaryOp::Less | SpecialBinaryOp::LessOrEqual
            ),
            Op::Compare { .. } => true,
            _ => false,
        };
        compares && node.inputs.first() == node.inputs.get(1)
    })
}

/// Numbers of every magnitude up to 2^20, those near zero close together, in order.
fn samples() -> Vec<f32> {
    let powers = (-20..=20).flat_map(|power| [1.0, 1.3, 1.7].map(|part| part * 2f32.powi(power)));
    let near = (1..=256).map(|index| index as f32 / 31.0);
    let mut samples: Vec<f32> = powers.chain(near).flat_map(|x| [-x, x]).chain([0.0]).collect();
    samples.sort_by(f32::total_cmp);
    samples
}

/// The operator that computes what the parts compute.
fn recognised(parts: &Composite, samples: &[f32]) -> Option<Op> {
    let (first, last) = (*samples.first()?, *samples.last()?);
    // Where it grows with its operand it has no bound.
    let bound = |end: f32| {
        let value = parts.apply(end);
        if value == end {
            f32::INFINITY.copysign(end)
        } else {
            value
        }
    };
    let (min, max, alpha) = (bound(first), bound(last), -parts.apply(-1.0));
    let rows = Function::rows().map(|(function, _)| UnaryKind::Function(function));
    let clamps = [UnaryKind::Relu, UnaryKind::Relu6, UnaryKind::ReluN1To1];
    let clamp = (min < max).then_some(UnaryKind::Clamp { min, max });
    let leaky = alpha.is_finite().then_some(UnaryKind::LeakyRelu { alpha });
    let kinds = clamps.into_iter().chain(rows).chain(clamp).chain(leaky);
    // None is the operand itself.
    let mut kinds: Vec<Option<UnaryKind>> = [None].into_iter().chain(kinds.map(Some)).collect();
    if parts.chooses() {
        // Every comparison with a NaN fails: what is chosen then must be what the function gives.
        let odd = parts.apply(f32::NAN).is_nan();
        kinds.retain(|kind| kind.is_none_or(|kind| real(kind, f32::NAN).is_nan()) == odd);
    }
    // Neighbours in this order are far apart, so that most go at the first sample.
    for index in 0..samples.len() {
        let x = samples[index * STRIDE % samples.len()];
        let y = parts.apply(x);
        kinds.retain(|kind| {
            let other = kind.map_or(x, |kind| real(kind, x));
            y == other || (y.is_nan() && other.is_nan()) || (kind.is_some_and(is_smooth) && agree(x, y, other))
        });
        if kinds.is_empty() {
            return None;
        }
    }
    Some(kinds[0].map_or(Op::Identity, Op::Unary))
}

/// No divisor of the number of samples.
const STRIDE: usize = 211;

/// Whether a function is one of activations, which roundings may change: a clamp, a root or a quotient is itself to the bit, or what keeps it from zero would
/// be lost.
fn is_smooth(kind: UnaryKind) -> bool {
    match kind {
        UnaryKind::Function(Function::Basic(function)) => {
            matches!(function, UnaryOp::HardSwish | UnaryOp::Logistic | UnaryOp::Tanh)
        }
        UnaryKind::Function(Function::Special(function)) => !matches!(
            function,
            SpecialOp::Floor | SpecialOp::Ceil | SpecialOp::Round | SpecialOp::Sign | SpecialOp::Sin | SpecialOp::Cos
        ),
        _ => false,
    }
}

/// Whether a function of `x` may be `y` and `other`, which differ by roundings.
fn agree(x: f32, y: f32, other: f32) -> bool {
    const NEAR: f32 = 16.0;
    let near = x.abs() < NEAR;
    let size = if near { x } else { y };
    let close = (y - other).abs() <= 1e-6 * size.abs().max(1.0);
    // Parts overflow where the function itself does not.
    close || !(near || y.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenite::ops::compare::Comparison;

    use super::super::made::Net;
    use crate::graph::BinaryOp;

    fn basic(function: UnaryOp) -> Op {
        Op::Unary(UnaryKind::Function(Function::Basic(function)))
    }

    fn special(function: SpecialOp) -> Op {
        Op::Unary(UnaryKind::Function(Function::Special(function)))
    }

    #[test]
    fn clamps_of_all_spellings_are_one() {
        let relu6 = Op::Unary(UnaryKind::Relu6);
        let clamp = |min, max| UnaryKind::Clamp { min, max };
        type Spelling = fn(&mut Net, TensorId) -> TensorId;
        let spellings: [Spelling; 5] = [
            |net, x| net.unary(UnaryKind::Clamp { min: 0.0, max: 6.0 }, x),
            |net, x| {
                let y = net.with(BinaryOp::Maximum, x, 0.0);
                net.with(BinaryOp::Minimum, y, 6.0)
            },
            |net, x| {
                let six = net.number(6.0);
                let y = net.two(BinaryOp::Minimum, six, x);
                net.unary(UnaryKind::Relu, y)
            },
            |net, x| {
                let y = net.unary(UnaryKind::Relu, x);
                net.unary(
                    UnaryKind::Clamp {
                        min: f32::NEG_INFINITY,
                        max: 6.0,
                    },
                    y,
                )
            },
            |net, x| {
                let y = net.unary(UnaryKind::Relu6, x);
                net.unary(UnaryKind::Relu, y)
            },
        ];
        for (index, spelling) in spellings.into_iter().enumerate() {
            let (mut net, x) = Net::new();
            let y = spelling(&mut net, x);
            assert_eq!(net.after(&[y], run), std::slice::from_ref(&relu6), "{index}");
        }
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Maximum, x, -0.5);
        let y = net.with(BinaryOp::Minimum, y, 2.25);
        assert_eq!(net.after(&[y], run), [Op::Unary(clamp(-0.5, 2.25))]);
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Maximum, x, 0.0);
        assert_eq!(net.after(&[y], run), [Op::Unary(UnaryKind::Relu)]);
        // Leaky ReLU as the larger of two.
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Mul, x, 0.125);
        let y = net.two(BinaryOp::Maximum, x, y);
        assert_eq!(net.after(&[y], run), [Op::Unary(UnaryKind::LeakyRelu { alpha: 0.125 })]);
    }

    #[test]
    fn functions_in_parts_are_rows() {
        // x * min(max(x + 3, 0), 6) / 6, with the quotient at each place.
        for place in 0..3 {
            let (mut net, x) = Net::new();
            let y = net.with(BinaryOp::Add, x, 3.0);
            let mut y = net.unary(UnaryKind::Relu6, y);
            if place == 0 {
                y = net.with(BinaryOp::Div, y, 6.0);
            }
            y = net.two(BinaryOp::Mul, x, y);
            if place == 1 {
                y = net.with(BinaryOp::Div, y, 6.0);
            } else if place == 2 {
                y = net.with(BinaryOp::Mul, y, 1.0 / 6.0);
            }
            assert_eq!(net.after(&[y], run), [basic(UnaryOp::HardSwish)], "{place}");
        }
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Add, x, 3.0);
        let y = net.unary(UnaryKind::Clamp { min: 0.0, max: 6.0 }, y);
        let y = net.with(BinaryOp::Mul, y, 1.0 / 6.0);
        assert!(matches!(
            net.after(&[y], run)[..],
            [Op::Unary(UnaryKind::Function(Function::Special(_)))]
        ));
        // x / 2 * (1 + erf(x / sqrt(2)))
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Div, x, std::f32::consts::SQRT_2);
        let y = net.node(special(SpecialOp::Erf), &[y]);
        let y = net.with(BinaryOp::Add, y, 1.0);
        let y = net.two(BinaryOp::Mul, x, y);
        let y = net.with(BinaryOp::Mul, y, 0.5);
        assert_eq!(net.after(&[y], run), [special(SpecialOp::Gelu)]);
        // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
        let (mut net, x) = Net::new();
        let three = net.number(3.0);
        let kind = SpecialBinaryOp::Power;
        let cube = net.node(Op::SpecialBinary { kind }, &[x, three]);
        let cube = net.with(BinaryOp::Mul, cube, 0.044_715);
        let y = net.two(BinaryOp::Add, x, cube);
        let y = net.with(BinaryOp::Mul, y, (2.0 / std::f32::consts::PI).sqrt());
        let y = net.unary(UnaryKind::TANH, y);
        let y = net.with(BinaryOp::Add, y, 1.0);
        let half = net.with(BinaryOp::Mul, x, 0.5);
        let y = net.two(BinaryOp::Mul, half, y);
        assert_eq!(net.after(&[y], run), [special(SpecialOp::GeluTanh)]);
        // log(1 + exp(x)), which overflows where the row does not.
        let (mut net, x) = Net::new();
        let y = net.unary(UnaryKind::EXP, x);
        let y = net.with(BinaryOp::Add, y, 1.0);
        let y = net.unary(UnaryKind::LOG, y);
        assert!(matches!(net.after(&[y], run)[..], [Op::Unary(UnaryKind::Function(_))]));
    }

    /// `x` where it is a number, else 0.5: of numbers alone it is nothing but `x`.
    #[test]
    fn a_choice_by_nan_stays_a_choice() {
        for compared in [SpecialBinaryOp::Equal, SpecialBinaryOp::LessOrEqual] {
            let (mut net, x) = Net::new();
            let same = net.node(Op::SpecialBinary { kind: compared }, &[x, x]);
            let one = net.number(1.0);
            let other = net.two(BinaryOp::Sub, one, same);
            let kind = SpecialBinaryOp::Keep;
            let taken = net.node(Op::SpecialBinary { kind }, &[x, same]);
            let half = net.number(0.5);
            let left = net.node(Op::SpecialBinary { kind }, &[half, other]);
            let y = net.two(BinaryOp::Add, taken, left);
            assert_eq!(net.after(&[y], run).len(), 5, "{compared:?}");
        }
    }

    /// A function that is its operand beyond a limit may be guarded by a choice, as converters do; a ReLU by a choice is 0 of a NaN, and stays.
    #[test]
    fn choices_are_what_they_choose_of_a_nan_too() {
        let chosen = |value: f32, function: UnaryKind, first: bool| {
            let (mut net, x) = Net::new();
            let limit = net.number(value);
            let truth = net.node(Op::Compare { kind: Comparison::Less }, &[limit, x]);
            let other = net.unary(function, x);
            let [a, b] = if first { [x, other] } else { [other, x] };
            let y = net.node(Op::Choose, &[truth, a, b]);
            net.after(&[y], run)
        };
        let guarded = UnaryKind::Function(Function::Special(SpecialOp::Gelu));
        assert_eq!(chosen(20.0, guarded, true), [Op::Unary(guarded)]);
        assert_eq!(chosen(1.0, guarded, true).len(), 3);
        // Of a NaN both choices are NaN: a leaky ReLU.
        let leaky = UnaryKind::LeakyRelu { alpha: 0.25 };
        assert_eq!(chosen(0.0, leaky, true), [Op::Unary(leaky)]);
        // The larger of x and 0, but 0 of a NaN.
        let (mut net, x) = Net::new();
        let zero = net.number(0.0);
        let truth = net.node(Op::Compare { kind: Comparison::Less }, &[zero, x]);
        let y = net.node(Op::Choose, &[truth, x, zero]);
        assert_eq!(net.after(&[y], run).len(), 2);
    }

    /// A neighbour of each is none of them; a part that somebody else reads, or an output, stays.
    #[test]
    fn neighbours_stay_as_they_are() {
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Add, x, 3.001);
        let y = net.unary(UnaryKind::Relu6, y);
        let y = net.two(BinaryOp::Mul, x, y);
        let y = net.with(BinaryOp::Div, y, 6.0);
        assert_eq!(net.after(&[y], run).len(), 4);
        let (mut net, x) = Net::new();
        let low = net.with(BinaryOp::Maximum, x, 0.0);
        let y = net.with(BinaryOp::Minimum, low, 6.0);
        let relu = Op::Unary(UnaryKind::Relu);
        let bound = UnaryKind::Clamp {
            min: f32::NEG_INFINITY,
            max: 6.0,
        };
        assert_eq!(net.after(&[y, low], run), [relu, Op::Unary(bound)]);
        // A maximum or a constant that keeps a divisor from zero stays.
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Maximum, x, 1e-30);
        let y = net.unary(UnaryKind::RSQRT, y);
        assert_eq!(net.after(&[y], run).len(), 2);
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Add, x, 1e-12);
        let y = net.unary(UnaryKind::RSQRT, y);
        assert_eq!(net.after(&[y], run).len(), 2);
        // An operator that adds nothing is an identity.
        let (mut net, x) = Net::new();
        let y = net.with(BinaryOp::Mul, x, 1.0);
        assert_eq!(net.after(&[y], run), [Op::Identity]);
    }
}
