//! Operators that converters write in other words, as TensorFlow Lite's do for PyTorch's: PReLU by two ReLUs, ELU by a choice, normalisations that take
//! the mean away behind the product. Each gets the words of the other importers, so that a network is one graph.

use arenite::ops::compare::Comparison;

use super::constants::{number, states_integers};
use super::rewrite::{Rewriter, is_const, rewrite_all};
use crate::error::Result;
use crate::graph::{Activation, BinaryOp, DType, Graph, Node, NodeId, Op, ReduceKind, Tensor, TensorId, UnaryKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let plain = !states_integers(graph);
    rewrite_all(graph, |net, id| {
        is_real(net.graph, id)
            && (prelu(net, id).is_some() || elu(net, id).is_some() || plain && normalisation(net, id).is_some())
    });
    Ok(())
}

/// `relu(x) - slope * relu(-x)` is PReLU, but for the sign of a zero.
fn prelu(net: &mut Rewriter<'_>, id: NodeId) -> Option<()> {
    let (high, product) = two(net.graph, id, BinaryOp::Sub)?;
    let (high, product) = (net.feeder(high, id)?, net.feeder(product, id)?);
    let x = relu_of(net.graph, high)?;
    let (a, b) = two(net.graph, product, BinaryOp::Mul)?;
    let (low, slope) = if is_const(net.graph, b) { (a, b) } else { (b, a) };
    let low = net.feeder(low, product).filter(|_| is_const(net.graph, slope))?;
    // The ReLU of -x: of a product of its own, or one with the bound.
    let negation = match relu_of(net.graph, low) {
        Some(negated) => net.feeder(negated, low)?,
        None => low,
    };
    let shape = |node: NodeId| Some(&net.graph.tensor(*net.graph.nodes[node.0].outputs.first()?).shape);
    let same = [id, high, product, low]
        .into_iter()
        .all(|node| shape(node) == Some(&net.graph.tensor(x).shape));
    if !same || negated(net.graph, negation, negation == low)? != x {
        return None;
    }
    let node = Node {
        op: binary(BinaryOp::Prelu),
        inputs: vec![Some(x), Some(slope)],
        ..net.graph.nodes[id.0].clone()
    };
    let parts = [
        Some(high),
        Some(product),
        Some(low),
        Some(negation).filter(|&node| node != low),
    ];
    parts
        .into_iter()
        .flatten()
        .for_each(|part| net.merge(part, id, node.clone()));
    Some(())
}

/// `x` where it is at least 0, else `alpha * (exp(x) - 1)`: the sum of a ReLU and of the exponential of what is below 0, which cannot overflow. Exact.
fn elu(net: &mut Rewriter<'_>, id: NodeId) -> Option<()> {
    let (Op::Choose, &[Some(truth), Some(x), Some(below)]) =
        (&net.graph.nodes[id.0].op, &net.graph.nodes[id.0].inputs[..])
    else {
        return None;
    };
    let comparison = net.feeder(truth, id)?;
    let asks = &net.graph.nodes[comparison.0];
    let (
        Op::Compare {
            kind: Comparison::Less | Comparison::LessOrEqual,
        },
        &[Some(zero), Some(compared)],
    ) = (&asks.op, &asks.inputs[..])
    else {
        return None;
    };
    if compared != x || number(net.graph, zero)? != 0.0 {
        return None;
    }
    let mut last = net.feeder(below, id)?;
    if let Some((a, b)) = two(net.graph, last, BinaryOp::Mul) {
        let (less, alpha) = if is_const(net.graph, b) { (a, b) } else { (b, a) };
        number(net.graph, alpha).filter(|alpha| alpha.is_finite())?;
        last = net.feeder(less, last)?;
    }
    let (exponential, one) = two(net.graph, last, BinaryOp::Sub)?;
    let exponential = net
        .feeder(exponential, last)
        .filter(|_| number(net.graph, one) == Some(1.0))?;
    let node = net.graph.nodes[exponential.0].clone();
    if node.op != Op::Unary(UnaryKind::EXP) || node.inputs[..] != [Some(x)] {
        return None;
    }
    let shape = net.graph.tensor(x).shape.clone();
    if net.graph.tensor(truth).shape != shape || net.graph.tensor(below).shape != shape {
        return None;
    }
    let low = net.graph.add_tensor(Tensor::activation(
        format!("{} (below 0)", net.graph.tensor(x).name),
        &shape,
        DType::F32,
    ));
    let bound = UnaryKind::Clamp {
        min: f32::NEG_INFINITY,
        max: 0.0,
    };
    let clamp = Node {
        name: format!("{} (below 0)", node.name),
        op: Op::Unary(bound),
        outputs: vec![low],
        ..node.clone()
    };
    net.insert_before(exponential, clamp);
    net.set(
        exponential,
        Node {
            inputs: vec![Some(low)],
            ..node
        },
    );
    let relu = Node {
        op: Op::Unary(UnaryKind::Relu),
        inputs: vec![Some(x)],
        ..net.graph.nodes[comparison.0].clone()
    };
    net.set(comparison, relu);
    net.graph.tensor_mut(truth).dtype = DType::F32;
    let sum = Node {
        op: binary(BinaryOp::Add),
        inputs: vec![Some(truth), Some(below)],
        ..net.graph.nodes[id.0].clone()
    };
    net.set(id, sum);
    Some(())
}

/// `x * r + -(r * m)`, where m is a mean of x, is `(x - m) * r`: roundings of f32, and fewer. The square of that difference is the variance's.
fn normalisation(net: &mut Rewriter<'_>, id: NodeId) -> Option<()> {
    let (scaled, rest) = match two(net.graph, id, BinaryOp::Add) {
        Some((a, b))
            if net
                .feeder(b, id)
                .and_then(|node| negated(net.graph, node, false))
                .is_some() =>
        {
            (a, b)
        }
        Some((a, b))
            if net
                .feeder(a, id)
                .and_then(|node| negated(net.graph, node, false))
                .is_some() =>
        {
            (b, a)
        }
        Some(_) => return None,
        None => two(net.graph, id, BinaryOp::Sub)?,
    };
    let scaled = net.feeder(scaled, id)?;
    let mut moved = net.feeder(rest, id)?;
    let negation = negated(net.graph, moved, false).map(|negated| (moved, negated));
    if let Some((node, negated)) = negation {
        moved = net.feeder(negated, node)?;
    }
    let (a, b) = two(net.graph, scaled, BinaryOp::Mul)?;
    let (c, d) = two(net.graph, moved, BinaryOp::Mul)?;
    let orders = [[a, b, c, d], [a, b, d, c], [b, a, c, d], [b, a, d, c]];
    let [x, factor, mean] = orders.into_iter().find_map(|[x, factor, other, mean]| {
        let shared = factor == other && is_mean_of(net, mean, x);
        shared.then_some([x, factor, mean])
    })?;
    let (shape, own) = (net.graph.tensor(x).shape.clone(), net.graph.nodes[id.0].clone());
    if net.graph.tensor(*own.outputs.first()?).shape != shape {
        return None;
    }
    let name = format!("{} (centred)", net.graph.tensor(mean).name);
    let centred = net.graph.add_tensor(Tensor::activation(name, &shape, DType::F32));
    let difference = Node {
        op: binary(BinaryOp::Sub),
        inputs: vec![Some(x), Some(mean)],
        outputs: vec![centred],
        ..net.graph.nodes[scaled.0].clone()
    };
    // The difference stands before its first reader.
    let squares = (0..net.graph.nodes.len()).map(NodeId).find(|&node| {
        let operands = two(net.graph, node, BinaryOp::SquaredDifference);
        operands.is_some_and(|(a, b)| [a, b] == [x, mean] || [a, b] == [mean, x]) && node.0 < id.0
    });
    match squares {
        None => net.insert_before(id, difference),
        Some(squares) => {
            net.insert_before(squares, difference);
            let square = Node {
                op: Op::Unary(UnaryKind::SQUARE),
                inputs: vec![Some(centred)],
                ..net.graph.nodes[squares.0].clone()
            };
            net.set(squares, square);
        }
    }
    let product = Node {
        op: binary(BinaryOp::Mul),
        inputs: vec![Some(centred), Some(factor)],
        ..own
    };
    let parts = [Some(scaled), Some(moved), negation.map(|(node, _)| node)];
    parts
        .into_iter()
        .flatten()
        .for_each(|part| net.merge(part, id, product.clone()));
    Some(())
}

/// Whether a tensor is the mean of `x` along some axes, its extents kept or given back by a reshape.
fn is_mean_of(net: &Rewriter<'_>, mean: TensorId, x: TensorId) -> bool {
    let mut node = net.producer(mean).map(|id| &net.graph.nodes[id.0]);
    if let Some(reshape) = node.filter(|node| node.op == Op::Reshape) {
        let source = reshape.inputs.first().copied().flatten();
        node = source.and_then(|id| net.producer(id)).map(|id| &net.graph.nodes[id.0]);
    }
    node.is_some_and(|node| {
        let means = matches!(
            node.op,
            Op::Reduce {
                kind: ReduceKind::Mean,
                ..
            }
        );
        means && node.inputs.first() == Some(&Some(x))
    })
}

const fn binary(kind: BinaryOp) -> Op {
    let activation = Activation::None;
    Op::Binary { kind, activation }
}

/// The operands of an operator of two without a bound of its own.
fn two(graph: &Graph, id: NodeId, wanted: BinaryOp) -> Option<(TensorId, TensorId)> {
    match (&graph.nodes[id.0].op, &graph.nodes[id.0].inputs[..]) {
        (op, &[Some(a), Some(b)]) if *op == binary(wanted) => Some((a, b)),
        _ => None,
    }
}

/// The operand of a ReLU.
fn relu_of(graph: &Graph, id: NodeId) -> Option<TensorId> {
    match (&graph.nodes[id.0].op, &graph.nodes[id.0].inputs[..]) {
        (Op::Unary(UnaryKind::Relu), &[Some(x)]) => Some(x),
        _ => None,
    }
}

/// The tensor of which a node gives the negative; `bounded`, where a ReLU is part of the node.
fn negated(graph: &Graph, id: NodeId, bounded: bool) -> Option<TensorId> {
    let activation = if bounded { Activation::Relu } else { Activation::None };
    match (&graph.nodes[id.0].op, &graph.nodes[id.0].inputs[..]) {
        (&Op::Unary(UnaryKind::NEG), &[Some(x)]) if !bounded => Some(x),
        (
            &Op::Binary {
                kind: BinaryOp::Mul,
                activation: own,
            },
            &[Some(a), Some(b)],
        ) if own == activation => {
            let (x, constant) = if is_const(graph, b) { (a, b) } else { (b, a) };
            (number(graph, constant) == Some(-1.0)).then_some(x)
        }
        _ => None,
    }
}

/// Whether a node computes real numbers that no scale belongs to.
fn is_real(graph: &Graph, id: NodeId) -> bool {
    let real = |id: &TensorId| graph.tensor(*id).dtype == DType::F32 && graph.tensor(*id).quant.is_none();
    graph.nodes[id.0].outputs.iter().all(real)
}

#[cfg(test)]
mod tests {
    use super::super::made::Net;
    use super::*;

    fn two_relus(negation: f32, wide: bool) -> Vec<Op> {
        let (mut net, x) = Net::new();
        let high = net.unary(UnaryKind::Relu, x);
        let minus = net.constant(&[negation]);
        let low = if wide {
            let negated = net.two(BinaryOp::Mul, x, minus);
            net.unary(UnaryKind::Relu, negated)
        } else {
            let op = Op::Binary {
                kind: BinaryOp::Mul,
                activation: Activation::Relu,
            };
            net.node(op, &[x, minus])
        };
        let slopes = net.constant(&[0.25, 0.5, -0.125]);
        let product = net.two(BinaryOp::Mul, low, slopes);
        let y = net.two(BinaryOp::Sub, high, product);
        net.after(&[y], run)
    }

    #[test]
    fn two_relus_are_prelu() {
        assert_eq!(two_relus(-1.0, false), [binary(BinaryOp::Prelu)]);
        assert_eq!(two_relus(-1.0, true), [binary(BinaryOp::Prelu)]);
        assert_eq!(two_relus(-2.0, false).len(), 4);
        assert_eq!(two_relus(1.0, true).len(), 5);
    }

    #[test]
    fn a_choice_of_an_exponential_is_elu_in_parts() {
        for (limit, kind, parts) in [
            (0.0, Comparison::LessOrEqual, 6),
            (0.0, Comparison::Less, 6),
            (0.5, Comparison::Less, 5),
        ] {
            let (mut net, x) = Net::new();
            let [one, alpha, zero] = [1.0, 0.7, limit].map(|value| net.constant(&[value]));
            let exponential = net.unary(UnaryKind::EXP, x);
            let less = net.two(BinaryOp::Sub, exponential, one);
            let below = net.two(BinaryOp::Mul, less, alpha);
            let truth = net.node(Op::Compare { kind }, &[zero, x]);
            let y = net.node(Op::Choose, &[truth, x, below]);
            let ops = net.after(&[y], run);
            assert_eq!(ops.len(), parts, "{limit} {kind:?}");
            assert_eq!(ops.contains(&Op::Choose), parts == 5, "{limit} {kind:?}");
        }
    }

    #[test]
    fn a_mean_that_is_taken_away_behind_the_product_is_taken_away_ahead() {
        for subtracted in [false, true] {
            let (mut net, x) = Net::new();
            let mean = |net: &mut Net, x| {
                let op = Op::Reduce {
                    kind: ReduceKind::Mean,
                    axes: vec![1],
                    keep_dims: true,
                };
                net.shaped(op, &[x], &[2, 1])
            };
            let m = mean(&mut net, x);
            let squares = net.two(BinaryOp::SquaredDifference, x, m);
            let variance = mean(&mut net, squares);
            let root = net.shaped(Op::Unary(UnaryKind::RSQRT), &[variance], &[2, 1]);
            let moved = net.shaped(binary(BinaryOp::Mul), &[root, m], &[2, 1]);
            let scaled = net.two(BinaryOp::Mul, x, root);
            let y = if subtracted {
                net.two(BinaryOp::Sub, scaled, moved)
            } else {
                let negative = net.shaped(Op::Unary(UnaryKind::NEG), &[moved], &[2, 1]);
                net.two(BinaryOp::Add, scaled, negative)
            };
            let ops = net.after(&[y], run);
            assert_eq!(ops.len(), 6, "{ops:?}");
            assert_eq!(ops[1..3], [binary(BinaryOp::Sub), Op::Unary(UnaryKind::SQUARE)]);
            assert_eq!(ops[5], binary(BinaryOp::Mul));
        }
    }
}
