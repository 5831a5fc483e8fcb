//! Gradients of operators between elements, of reductions, softmax and products of activations: chains of operators that inference has.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::pointwise::{Function, SpecialOp, UnaryOp};

use super::nodes::{constant, made, plain};
use super::parameters::update;
use super::reverse::{Reverse, input};
use crate::graph::train::Train;
use crate::graph::{Activation, BinaryOp, DType, Node, Op, ReduceKind, Tensor, TensorId, UnaryKind};

/// Whether a function has a gradient here, beside those that pass through their result ([`super::rules`]).
pub(super) fn has_gradient(kind: UnaryKind) -> bool {
    match kind {
        UnaryKind::LeakyRelu { .. } => true,
        UnaryKind::Function(Function::Basic(function)) => matches!(
            function,
            UnaryOp::HardSwish
                | UnaryOp::Exp
                | UnaryOp::Log
                | UnaryOp::Sqrt
                | UnaryOp::Rsqrt
                | UnaryOp::Square
                | UnaryOp::Abs
                | UnaryOp::Neg
        ),
        UnaryKind::Function(Function::Special(function)) => matches!(
            function,
            SpecialOp::Softsign
                | SpecialOp::Erf
                | SpecialOp::Gelu
                | SpecialOp::GeluTanh
                | SpecialOp::HardSigmoid
                | SpecialOp::Softplus
                | SpecialOp::Sin
                | SpecialOp::Cos
        ),
        _ => false,
    }
}

/// Chains of operators, each named after the node whose gradient they compute.
pub(super) struct Chain<'p, 'g> {
    pass: &'p mut Reverse<'g>,
    name: String,
}

impl<'p, 'g> Chain<'p, 'g> {
    pub(super) fn of(pass: &'p mut Reverse<'g>, node: &Node) -> Self {
        Self {
            name: format!("{}.grad", node.name),
            pass,
        }
    }

    /// A function's operand, from its operand `x` and its result `y`.
    pub(super) fn unary(&mut self, kind: UnaryKind, (x, y, dy): (TensorId, TensorId, TensorId)) {
        if let Some(slope) = self.slope(kind, x, y) {
            let dx = self.mul(dy, slope);
            self.pass.give(x, dx);
        }
    }

    /// The derivative of a function.
    fn slope(&mut self, kind: UnaryKind, x: TensorId, y: TensorId) -> Option<TensorId> {
        let basic = |function| UnaryKind::Function(Function::Basic(function));
        let special = |function| UnaryKind::Function(Function::Special(function));
        let one = |chain: &mut Self| chain.number(1.0);
        Some(match kind {
            UnaryKind::LeakyRelu { alpha } => {
                let zero = self.number(0.0);
                let above = self.less(zero, x, x);
                let steep = self.scaled(above, 1.0 - alpha);
                self.plus(steep, alpha)
            }
            UnaryKind::Function(Function::Basic(function)) => match function {
                UnaryOp::Exp => y,
                UnaryOp::Log => {
                    let one = one(self);
                    self.binary(BinaryOp::Div, [one, x], x)
                }
                UnaryOp::Sqrt => {
                    let half = self.number(0.5);
                    self.binary(BinaryOp::Div, [half, y], y)
                }
                UnaryOp::Rsqrt => {
                    let square = self.apply(UnaryKind::SQUARE, y);
                    let cube = self.mul(square, y);
                    self.scaled(cube, -0.5)
                }
                UnaryOp::Square => self.scaled(x, 2.0),
                UnaryOp::Abs => self.apply(special(SpecialOp::Sign), x),
                UnaryOp::Neg => self.number(-1.0),
                UnaryOp::HardSwish => {
                    let inside = self.hard_slope(x);
                    let rise = self.apply(special(SpecialOp::HardSigmoid), x);
                    let product = self.mul(x, inside);
                    self.add(rise, product)
                }
                _ => return None,
            },
            UnaryKind::Function(Function::Special(function)) => match function {
                SpecialOp::Softsign => {
                    let distance = self.apply(UnaryKind::ABS, x);
                    let more = self.plus(distance, 1.0);
                    let square = self.apply(UnaryKind::SQUARE, more);
                    let one = one(self);
                    self.binary(BinaryOp::Div, [one, square], square)
                }
                SpecialOp::Erf => {
                    let bell = self.bell(x, -1.0);
                    self.scaled(bell, std::f32::consts::FRAC_2_SQRT_PI)
                }
                // Phi(x) + x * phi(x).
                SpecialOp::Gelu => {
                    let inner = self.scaled(x, std::f32::consts::FRAC_1_SQRT_2);
                    let erf = self.apply(special(SpecialOp::Erf), inner);
                    let twice = self.plus(erf, 1.0);
                    let share = self.scaled(twice, 0.5);
                    let bell = self.bell(x, -0.5);
                    // 1 / sqrt(2 pi).
                    let density = self.scaled(
                        bell,
                        0.5 * std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2,
                    );
                    let product = self.mul(x, density);
                    self.add(share, product)
                }
                // x * s(u) with u = 2 * sqrt(2 / pi) * (x + 0.044715 x^3): s + x * s * (1 - s) * u'.
                SpecialOp::GeluTanh => {
                    let factor = 2.0 * 0.797_884_6;
                    let square = self.apply(UnaryKind::SQUARE, x);
                    let part = self.scaled(square, 0.044_715);
                    let whole = self.plus(part, 1.0);
                    let cubic = self.mul(whole, x);
                    let u = self.scaled(cubic, factor);
                    let s = self.apply(UnaryKind::LOGISTIC, u);
                    let negative = self.scaled(s, -1.0);
                    let rest = self.plus(negative, 1.0);
                    let slope = self.mul(s, rest);
                    let part = self.scaled(square, 3.0 * 0.044_715 * factor);
                    let inner = self.plus(part, factor);
                    let steep = self.mul(slope, inner);
                    let product = self.mul(x, steep);
                    self.add(s, product)
                }
                SpecialOp::HardSigmoid => self.hard_slope(x),
                SpecialOp::Softplus => self.apply(UnaryKind::LOGISTIC, x),
                SpecialOp::Sin => self.apply(special(SpecialOp::Cos), x),
                SpecialOp::Cos => {
                    let sine = self.apply(special(SpecialOp::Sin), x);
                    self.apply(basic(UnaryOp::Neg), sine)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// A sixth where `-3 < x < 3`, else 0.
    fn hard_slope(&mut self, x: TensorId) -> TensorId {
        let [low, high] = [-3.0, 3.0].map(|end| self.number(end));
        let above = self.less(low, x, x);
        let below = self.less(x, high, x);
        let inside = self.mul(above, below);
        self.scaled(inside, 1.0 / 6.0)
    }

    /// `exp(factor * x^2)`.
    fn bell(&mut self, x: TensorId, factor: f32) -> TensorId {
        let square = self.apply(UnaryKind::SQUARE, x);
        let exponent = self.scaled(square, factor);
        self.apply(UnaryKind::EXP, exponent)
    }

    /// Both operands of a sum, difference, product or quotient, and the updates of those that are trained.
    pub(super) fn operands(&mut self, node: &Node, kind: BinaryOp, (y, dy): (TensorId, TensorId)) {
        let (Some(a), Some(b)) = (input(node, 0), input(node, 1)) else {
            return;
        };
        let wanted = [a, b].map(|id| self.pass.wants(id));
        // Both are read before either changes.
        let of_a = wanted[0].then(|| match kind {
            BinaryOp::Mul => self.binary(BinaryOp::Mul, [dy, b], dy),
            BinaryOp::Div => self.binary(BinaryOp::Div, [dy, b], dy),
            _ => dy,
        });
        let of_b = wanted[1].then(|| match kind {
            BinaryOp::Mul => self.binary(BinaryOp::Mul, [dy, a], dy),
            BinaryOp::Sub => self.scaled(dy, -1.0),
            BinaryOp::Div => {
                // y / b is of the quotient in front of its activation only where that lets it pass, and elsewhere the gradient is 0.
                let quotient = self.binary(BinaryOp::Div, [y, b], y);
                let negative = self.scaled(quotient, -1.0);
                self.mul(dy, negative)
            }
            _ => dy,
        });
        for (id, gradient) in [(a, of_a), (b, of_b)] {
            if let Some(gradient) = gradient {
                self.arrives(id, gradient);
            }
        }
    }

    /// A gradient of an operand that may have been repeated along axes: the sum over them.
    fn arrives(&mut self, id: TensorId, gradient: TensorId) {
        let shape = self.shape(id);
        let whole = self.shape(gradient);
        let missing = whole.len().saturating_sub(shape.len());
        let axes: Vec<usize> = (0..whole.len())
            .filter(|&axis| whole[axis] > 1 && (axis < missing || shape[axis - missing] == 1))
            .collect();
        // A step of gradient descent sums over leading axes by itself.
        let large = (0..whole.len()).filter(|&axis| whole[axis] > 1);
        let leading = large.take(axes.len()).eq(axes.iter().copied());
        let is_trained = self.pass.is_trained(id);
        let is_summed = is_trained && leading;
        let mut sum = gradient;
        if !axes.is_empty() && !is_summed {
            let mut kept = whole.clone();
            axes.iter().for_each(|&axis| kept[axis] = 1);
            let op = Op::Reduce {
                kind: ReduceKind::Sum,
                axes,
                keep_dims: true,
            };
            sum = self.made(op, &[gradient], &kept);
        }
        if is_trained {
            let name = update(self.pass.graph, id);
            let rate = self.pass.rate();
            let operands = [id, sum, rate].map(Some).to_vec();
            self.pass.node(&name, Op::Train(Train::BiasSgd), operands, vec![]);
            return;
        }
        if self.shape(sum) != shape {
            sum = self.made(Op::Reshape, &[sum], &shape);
        }
        self.pass.give(id, sum);
    }

    /// The operand of a mean or sum over axes.
    pub(super) fn reduction(&mut self, kind: ReduceKind, axes: &[usize], (x, dy): (TensorId, TensorId)) {
        if !self.pass.wants(x) {
            return;
        }
        let shape = self.shape(x);
        let mut kept = shape.clone();
        axes.iter().for_each(|&axis| kept[axis] = 1);
        let mut small = dy;
        if self.shape(small) != kept {
            small = self.made(Op::Reshape, &[small], &kept);
        }
        if kind == ReduceKind::Mean {
            let count: usize = axes.iter().map(|&axis| shape[axis]).product();
            small = self.scaled(small, 1.0 / count.max(1) as f32);
        }
        let dx = self.made(Op::Broadcast, &[small], &shape);
        self.pass.give(x, dx);
    }

    /// The operand of a softmax along an axis: `beta * y * (dy - sum(dy * y))`.
    pub(super) fn softmax(&mut self, (axis, beta): (usize, f32), (x, y, dy): (TensorId, TensorId, TensorId)) {
        let product = self.mul(dy, y);
        let sum = self.sum_along(product, axis);
        let rest = self.binary(BinaryOp::Sub, [dy, sum], dy);
        let mut dx = self.mul(rest, y);
        if beta != 1.0 {
            dx = self.scaled(dx, beta);
        }
        self.pass.give(x, dx);
    }

    /// The operand of a softmax's logarithm: `dy - exp(y) * sum(dy)`.
    pub(super) fn log_softmax(&mut self, axis: usize, (x, y, dy): (TensorId, TensorId, TensorId)) {
        let sum = self.sum_along(dy, axis);
        let share = self.apply(UnaryKind::EXP, y);
        let product = self.binary(BinaryOp::Mul, [share, sum], share);
        let dx = self.binary(BinaryOp::Sub, [dy, product], dy);
        self.pass.give(x, dx);
    }

    /// Operand and gain of an RMSNorm: with `r = 1 / sqrt(mean(x^2) + epsilon)` and `n = x * r`, `dx = r * (t - n * mean(t * n))` of `t = dy * gain`.
    pub(super) fn rms_norm(&mut self, epsilon: f32, gain: TensorId, (x, dy): (TensorId, TensorId)) {
        let axis = self.shape(x).len().saturating_sub(1);
        let square = self.apply(UnaryKind::SQUARE, x);
        let mean = self.mean_along(square, axis);
        let more = self.plus(mean, epsilon);
        let root = self.apply(UnaryKind::RSQRT, more);
        let normal = self.mul(x, root);
        let scaled = self.mul(dy, gain);
        if self.pass.wants(gain) {
            let dgain = self.mul(dy, normal);
            self.arrives(gain, dgain);
        }
        let product = self.mul(scaled, normal);
        let share = self.mean_along(product, axis);
        let back = self.mul(normal, share);
        let rest = self.binary(BinaryOp::Sub, [scaled, back], scaled);
        let dx = self.mul(rest, root);
        self.pass.give(x, dx);
    }

    /// The weights of a linear layer that are computed in a run: `dy^T x`.
    pub(super) fn linear_weights(&mut self, (x, w, dy): (TensorId, TensorId, TensorId)) {
        let &[outputs, inputs] = &self.shape(w)[..] else { return };
        let rows = self.pass.graph.tensor(x).elements() / inputs.max(1);
        let mut columns = |id, width: usize| {
            let flat = self.made(Op::Reshape, &[id], &[rows, width]);
            self.made(Op::Transpose { perm: vec![1, 0] }, &[flat], &[width, rows])
        };
        let (dy, x) = (columns(dy, outputs), columns(x, inputs));
        let op = Op::Linear {
            activation: Activation::None,
        };
        let dw = self.made(op, &[dy, x], &[outputs, inputs]);
        self.pass.count((rows * inputs * outputs) as u64);
        self.pass.give(w, dw);
    }

    /// The operand of a slice with steps of 1: zeros around the slice's gradient.
    pub(super) fn slice(&mut self, begin: &[usize], (x, dy): (TensorId, TensorId)) {
        if !self.pass.wants(x) {
            return;
        }
        let (shape, part) = (self.shape(x), self.shape(dy));
        let pads = begin
            .iter()
            .enumerate()
            .map(|(axis, &from)| (from, shape[axis] - from - part[axis]));
        let op = Op::Pad {
            pads: pads.collect(),
            value: 0.0,
        };
        let dx = self.made(op, &[dy], &shape);
        self.pass.give(x, dx);
    }

    /// The operand of a repetition.
    pub(super) fn broadcast(&mut self, (x, dy): (TensorId, TensorId)) {
        if self.pass.wants(x) {
            self.arrives(x, dy);
        }
    }

    fn sum_along(&mut self, x: TensorId, axis: usize) -> TensorId {
        self.along(ReduceKind::Sum, x, axis)
    }

    fn mean_along(&mut self, x: TensorId, axis: usize) -> TensorId {
        self.along(ReduceKind::Mean, x, axis)
    }

    fn along(&mut self, kind: ReduceKind, x: TensorId, axis: usize) -> TensorId {
        let mut shape = self.shape(x);
        shape[axis] = 1;
        let op = Op::Reduce {
            kind,
            axes: vec![axis],
            keep_dims: true,
        };
        self.made(op, &[x], &shape)
    }

    fn shape(&self, id: TensorId) -> Vec<usize> {
        self.pass.graph.tensor(id).shape.clone()
    }

    fn number(&mut self, value: f32) -> TensorId {
        let name = format!("{} {value}", self.name);
        constant(self.pass.graph, &name, value)
    }

    fn scaled(&mut self, x: TensorId, factor: f32) -> TensorId {
        let factor = self.number(factor);
        self.binary(BinaryOp::Mul, [x, factor], x)
    }

    fn plus(&mut self, x: TensorId, term: f32) -> TensorId {
        let term = self.number(term);
        self.binary(BinaryOp::Add, [x, term], x)
    }

    fn add(&mut self, a: TensorId, b: TensorId) -> TensorId {
        self.binary(BinaryOp::Add, [a, b], a)
    }

    fn mul(&mut self, a: TensorId, b: TensorId) -> TensorId {
        self.binary(BinaryOp::Mul, [a, b], a)
    }

    /// Of the shape of `like`.
    fn binary(&mut self, kind: BinaryOp, operands: [TensorId; 2], like: TensorId) -> TensorId {
        let shape = self.shape(like);
        self.made(plain(kind), &operands, &shape)
    }

    fn less(&mut self, a: TensorId, b: TensorId, like: TensorId) -> TensorId {
        let op = Op::SpecialBinary {
            kind: SpecialBinaryOp::Less,
        };
        let shape = self.shape(like);
        self.made(op, &[a, b], &shape)
    }

    fn apply(&mut self, kind: UnaryKind, x: TensorId) -> TensorId {
        let shape = self.shape(x);
        self.made(Op::Unary(kind), &[x], &shape)
    }

    fn made(&mut self, op: Op, operands: &[TensorId], shape: &[usize]) -> TensorId {
        let result = Tensor::activation(&self.name, shape, DType::F32);
        made(self.pass.graph, &self.name, op, operands, result)
    }
}
