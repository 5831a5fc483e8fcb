//! Operators that work element by element.

use super::array::{Array, paid};
use super::calc::plain;
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use crate::error::{Error, Result};
use crate::graph::numbers::Range;
use crate::graph::{BinaryOp, Op, UnaryKind};
use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::pointwise::{Function, SpecialOp, UnaryOp};

impl<'a> Importer<'_, 'a> {
    /// `a op b` where `b` is one number.
    pub(super) fn with(&mut self, op: BinaryOp, a: &Value, b: f32) -> Result<Value> {
        self.binary(op, a, &Array::scalar(b).into())
    }

    fn special(&mut self, op: SpecialOp, value: &Value) -> Result<Value> {
        self.unary(UnaryKind::Function(Function::Special(op)), value)
    }

    pub(super) fn identity(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        self.bind(view, 0, x)
    }

    pub(super) fn dropout(&mut self, view: View<'_, 'a>) -> Result<()> {
        let training = self.known(view, 2, "training mode")?;
        if training.is_some_and(|t| t.single() != Some(0.0)) {
            return Err(Error::unsupported("training mode").help("export the network for inference (model.eval())"));
        }
        let x = self.operand(view, 0)?;
        if view.output(1).is_some() {
            let shape = self.shape(&x);
            let count = paid(&self.budget, Elem::BOOL, &shape)?;
            self.bind(view, 1, Array::integers(Elem::BOOL, &shape, vec![1; count]).into())?;
        }
        self.bind(view, 0, x)
    }

    pub(super) fn cast_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, to) = (self.operand(view, 0)?, Elem(view.int("to", 0)?));
        let y = self.cast(&x, to)?;
        self.bind(view, 0, y)
    }

    pub(super) fn cast_like(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, like) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let to = self.stated_elem(view, 1, &like);
        let y = self.cast(&x, to)?;
        self.bind(view, 0, y)
    }

    pub(super) fn clip(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let (low, high) = if view.opset < 11 {
            let bound = |name| {
                let given = view.node.has(name).then(|| view.number(name, 0.0, Range::Bound));
                given
                    .transpose()
                    .map(|bound| bound.map(|b| Value::from(Array::scalar(b))))
            };
            (bound("min")?, bound("max")?)
        } else {
            (self.optional(view, 1)?, self.optional(view, 2)?)
        };
        for bound in [&low, &high].into_iter().flatten() {
            if let Value::Array(array) = bound {
                let mut values = array.real().into_owned().into_iter();
                values.try_for_each(|value| Range::Bound.check("a bound", value).map(drop))?;
            }
        }
        let known = |bound: &Option<Value>, none: f32| match bound {
            None => Some(none),
            Some(Value::Array(array)) => array.single(),
            Some(_) => None,
        };
        let bounds = (known(&low, f32::NEG_INFINITY), known(&high, f32::INFINITY));
        let y = match bounds {
            // The upper bound wins where they cross.
            (Some(min), Some(max)) if self.elem(&x) == Elem::FLOAT => {
                let min = min.min(max);
                self.unary(UnaryKind::Clamp { min, max }, &x)?
            }
            _ => {
                let mut y = x;
                if let Some(low) = low {
                    y = self.binary(BinaryOp::Maximum, &y, &low)?;
                }
                if let Some(high) = high {
                    y = self.binary(BinaryOp::Minimum, &y, &high)?;
                }
                y
            }
        };
        self.bind(view, 0, y)
    }

    pub(super) fn leaky_relu(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, alpha) = (self.operand(view, 0)?, view.float("alpha", 0.01)?);
        let y = self.unary(UnaryKind::LeakyRelu { alpha }, &x)?;
        self.bind(view, 0, y)
    }

    /// `scale * (max(x, 0) + alpha * (exp(min(x, 0) / width) - 1))`
    pub(super) fn exponential(&mut self, x: &Value, alpha: f32, width: f32, scale: f32) -> Result<Value> {
        let below = UnaryKind::Clamp {
            min: f32::NEG_INFINITY,
            max: 0.0,
        };
        let mut low = self.unary(below, x)?;
        if width != 1.0 {
            low = self.with(BinaryOp::Div, &low, width)?;
        }
        low = self.unary(UnaryKind::EXP, &low)?;
        low = self.with(BinaryOp::Sub, &low, 1.0)?;
        if alpha != 1.0 {
            low = self.with(BinaryOp::Mul, &low, alpha)?;
        }
        let high = self.unary(UnaryKind::Relu, x)?;
        let sum = self.binary(BinaryOp::Add, &high, &low)?;
        match scale {
            1.0 => Ok(sum),
            scale => self.with(BinaryOp::Mul, &sum, scale),
        }
    }

    pub(super) fn elu_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, alpha) = (self.operand(view, 0)?, view.float("alpha", 1.0)?);
        let y = self.exponential(&x, alpha, 1.0, 1.0)?;
        self.bind(view, 0, y)
    }

    pub(super) fn celu(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, alpha) = (self.operand(view, 0)?, view.float("alpha", 1.0)?);
        if alpha == 0.0 {
            return Err(Error::input("attribute `alpha` is 0").expected("another number: the operand is divided by it"));
        }
        let y = self.exponential(&x, alpha, alpha, 1.0)?;
        self.bind(view, 0, y)
    }

    pub(super) fn selu(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let (alpha, gamma) = (view.float("alpha", 1.673_263_2)?, view.float("gamma", 1.050_701)?);
        let y = self.exponential(&x, alpha, 1.0, gamma)?;
        self.bind(view, 0, y)
    }

    /// `min(max(alpha * x + beta, 0), 1)`
    pub(super) fn line_between(&mut self, x: &Value, alpha: f32, beta: f32) -> Result<Value> {
        let line = self.with(BinaryOp::Mul, x, alpha)?;
        let line = self.with(BinaryOp::Add, &line, beta)?;
        self.unary(UnaryKind::Clamp { min: 0.0, max: 1.0 }, &line)
    }

    pub(super) fn hard_sigmoid(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let y = self.line_between(&x, view.float("alpha", 0.2)?, view.float("beta", 0.5)?)?;
        self.bind(view, 0, y)
    }

    pub(super) fn gelu(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let y = match view.text("approximate", "none")? {
            "none" => self.special(SpecialOp::Gelu, &x)?,
            "tanh" => self.special(SpecialOp::GeluTanh, &x)?,
            other => return Err(Error::unsupported(format!("the approximation `{other}`")).expected("none or tanh")),
        };
        self.bind(view, 0, y)
    }

    pub(super) fn mish(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let soft = self.special(SpecialOp::Softplus, &x)?;
        let soft = self.unary(UnaryKind::TANH, &soft)?;
        let y = self.binary(BinaryOp::Mul, &x, &soft)?;
        self.bind(view, 0, y)
    }

    pub(super) fn swish(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, alpha) = (self.operand(view, 0)?, view.float("alpha", 1.0)?);
        let scaled = if alpha == 1.0 {
            x.clone()
        } else {
            self.with(BinaryOp::Mul, &x, alpha)?
        };
        let gate = self.unary(UnaryKind::LOGISTIC, &scaled)?;
        let y = self.binary(BinaryOp::Mul, &x, &gate)?;
        self.bind(view, 0, y)
    }

    /// The runtime has no such function.
    pub(super) fn atan(&mut self, view: View<'_, 'a>) -> Result<()> {
        let Value::Array(array) = self.operand(view, 0)? else {
            return Err(Error::unsupported("an arc tangent at run time")
                .expected("one of constants")
                .help("end the network before this operator, and compute it in the application"));
        };
        let y = array.map(&self.budget, f32::atan)?;
        self.bind(view, 0, y.into())
    }

    pub(super) fn thresholded_relu(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, alpha) = (self.operand(view, 0)?, view.float("alpha", 1.0)?);
        let above = self.compare(SpecialBinaryOp::Less, &Array::scalar(alpha).into(), &x)?;
        let y = self.choose(&above, &x, &Array::scalar(0.0).into())?;
        self.bind(view, 0, y)
    }

    pub(super) fn reciprocal(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let y = self.binary(BinaryOp::Div, &Array::scalar(1.0).into(), &x)?;
        self.bind(view, 0, y)
    }

    pub(super) fn pow(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, power) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let y = self.power(&x, &power)?;
        self.bind(view, 0, y)
    }

    pub(super) fn square_root(&mut self, x: &Value) -> Result<Value> {
        self.unary(UnaryKind::Function(Function::Basic(UnaryOp::Sqrt)), x)
    }

    fn power(&mut self, x: &Value, power: &Value) -> Result<Value> {
        let exponent = match power {
            Value::Array(array) if array.shape.len() <= self.shape(x).len() => array.single(),
            _ => None,
        };
        match exponent {
            Some(1.0) => Ok(x.clone()),
            Some(2.0) => self.binary(BinaryOp::Mul, x, x),
            Some(3.0) => {
                let square = self.binary(BinaryOp::Mul, x, x)?;
                self.binary(BinaryOp::Mul, &square, x)
            }
            Some(0.5) => self.square_root(x),
            Some(-0.5) => self.unary(UnaryKind::RSQRT, x),
            Some(-1.0) => self.binary(BinaryOp::Div, &Array::scalar(1.0).into(), x),
            _ => {
                let elem = self.elem(x);
                let (a, b) = (self.real(x)?, self.real(power)?);
                let kind = SpecialBinaryOp::Power;
                let y = self.emit(Op::SpecialBinary { kind }, &[a, b])?;
                Ok(Value::Tensor(self.cast_tensor(y, elem.dtype()?)?))
            }
        }
    }

    pub(super) fn mean(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut sum = self.operand(view, 0)?;
        for position in 1..view.node.inputs.len() {
            let next = self.operand(view, position)?;
            sum = self.binary(BinaryOp::Add, &sum, &next)?;
        }
        let y = self.with(BinaryOp::Div, &sum, view.node.inputs.len() as f32)?;
        self.bind(view, 0, y)
    }

    pub(super) fn not(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let y = self.negated(&x)?;
        self.bind(view, 0, y)
    }

    pub(super) fn logical(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (a, b) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let (a, b) = (self.truth(&a)?, self.truth(&b)?);
        let op = match view.node.op {
            "And" => BinaryOp::Minimum,
            "Or" => BinaryOp::Maximum,
            _ => {
                let same = self.compare(SpecialBinaryOp::Equal, &a, &b)?;
                let other = self.negated(&same)?;
                return self.bind(view, 0, other);
            }
        };
        let y = if let (Value::Array(_), Value::Array(_)) = (&a, &b) {
            self.binary(op, &a, &b)?
        } else {
            let (a, b) = (self.real(&a)?, self.real(&b)?);
            Value::Mask(self.emit(plain(op), &[a, b])?)
        };
        self.bind(view, 0, y)
    }

    pub(super) fn is_nan(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let same = self.compare(SpecialBinaryOp::Equal, &x, &x)?;
        let y = self.negated(&same)?;
        self.bind(view, 0, y)
    }

    pub(super) fn is_inf(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let (negative, positive) = (view.flag("detect_negative", true)?, view.flag("detect_positive", true)?);
        let (of, infinity) = match (negative, positive) {
            (true, true) => (self.unary(UnaryKind::ABS, &x)?, f32::INFINITY),
            (true, false) => (x, f32::NEG_INFINITY),
            (false, true) => (x, f32::INFINITY),
            // Nothing is equal to it.
            (false, false) => (x, f32::NAN),
        };
        let y = self.compare(SpecialBinaryOp::Equal, &of, &Array::scalar(infinity).into())?;
        self.bind(view, 0, y)
    }

    /// The elements on one side of a diagonal of each matrix, 0 on the other.
    pub(super) fn trilu(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, upper) = (self.operand(view, 0)?, view.flag("upper", true)?);
        let k = self
            .known(view, 1, "diagonal")?
            .map(|k| k.whole("diagonal"))
            .transpose()?;
        let k = k.and_then(|k| k.first().copied()).unwrap_or(0);
        let shape = self.shape(&x);
        let &[.., rows, columns] = shape.as_slice() else {
            return Err(Error::input(format!("an operand of shape {shape:?}")).expected("at least two axes"));
        };
        let count = paid(&self.budget, Elem::BOOL, &[rows, columns])?;
        let kept = |at: usize| {
            let distance = (at % columns) as i64 - (at / columns) as i64;
            i64::from(if upper { distance >= k } else { distance <= k })
        };
        let mask = Array::integers(Elem::BOOL, &[rows, columns], (0..count).map(kept).collect());
        let zero = match self.elem(&x) {
            Elem::FLOAT => Array::scalar(0.0),
            elem => Array::integers(elem, &[], vec![0]),
        };
        let y = self.choose(&mask.into(), &x, &zero.into())?;
        self.bind(view, 0, y)
    }

    pub(super) fn where_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (condition, a, b) = (self.operand(view, 0)?, self.operand(view, 1)?, self.operand(view, 2)?);
        let y = self.choose(&condition, &a, &b)?;
        self.bind(view, 0, y)
    }
}
