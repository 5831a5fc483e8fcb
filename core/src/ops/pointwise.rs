//! Functions of one f32, element by element: a row each.
//!
//! A row is all that there is to say of such an operator: its meaning, its name in summaries, in `trace.json`, in PyTorch's ATen and in TensorFlow
//! Lite, and the function that an oracle calls. The importers, the converter for PyTorch, the kernel, the tables of the documents and the tests
//! iterate the rows. **To add one**: a row at the end of [`SpecialOp`] and a line in the changelog; `ARENITE_BLESS=1 cargo test -p arenite-tests
//! --test host pointwise::` writes what is generated, `tests/oracle/make_pointwise.py` computes the oracle's values.
//!
//! The order of an enum's variants is part of the format: rows are appended, never moved.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::tensor::DType::{self, F32, I8, I16};

/// Names of a row, beside the meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Names {
    /// The kind in summaries.
    pub name: &'static str,
    /// `y` in words of the documents.
    pub formula: &'static str,
    /// The operator of `trace.json`; it has one input and no attributes.
    pub trace: Option<&'static str>,
    /// The call of ATen that it is.
    pub aten: Option<Aten>,
    /// The builtin operator of TensorFlow Lite that it is.
    pub tflite: Option<Tflite>,
    /// The Python function that computes it for the tests: PyTorch's where NumPy has none.
    pub oracle: &'static str,
    /// Units of cost for an element.
    pub weight: u64,
}

/// Weight of a comparison or a product, on cores without an FPU.
pub(crate) const PLAIN: u64 = 15;

/// Weight of a few products and a quotient.
const FEW: u64 = 60;

/// Weight of an exponential, a logarithm or a root.
const SERIES: u64 = 200;

/// Weight of sine and cosine, which reduce arguments of any size.
const REDUCED: u64 = 950;

/// A call of ATen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aten {
    /// Its name without overload.
    pub name: &'static str,
    /// The arguments beside the operand that make it this operator, as Python writes them.
    pub arguments: &'static [(&'static str, &'static str)],
}

/// A builtin operator of TensorFlow Lite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tflite {
    /// Its name in the schema.
    pub name: &'static str,
    /// The newest version whose meaning is known.
    pub version: i32,
    /// Types of the operand.
    pub types: &'static [DType],
}

/// Consumer of a function: the loops of a kernel, compiled for each.
pub trait Visitor {
    /// Result of the visit.
    type Output;
    /// Visits `f`.
    fn visit(self, f: impl Fn(f32) -> f32) -> Self::Output;
}

/// A set of pointwise functions.
pub trait Pointwise: Copy + PartialEq + Serialize + DeserializeOwned + sealed::Sealed + 'static {
    /// Its functions without parameters, with all that there is to say of them.
    const ROWS: &'static [(Self, Names)];

    /// Calls `visitor` with the function.
    fn visit<V: Visitor>(self, visitor: V) -> V::Output;

    /// `f(x)`.
    fn apply(self, x: f32) -> f32 {
        struct At(f32);
        impl Visitor for At {
            type Output = f32;
            fn visit(self, f: impl Fn(f32) -> f32) -> f32 {
                f(self.0)
            }
        }
        self.visit(At(x))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Any pointwise function without parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// Of the set that most networks use.
    Basic(UnaryOp),
    /// Of the other set.
    Special(SpecialOp),
}

impl Function {
    /// Every row.
    pub fn rows() -> impl Iterator<Item = (Self, &'static Names)> {
        let basic = UnaryOp::ROWS.iter().map(|(f, names)| (Self::Basic(*f), names));
        let special = SpecialOp::ROWS.iter().map(|(f, names)| (Self::Special(*f), names));
        basic.chain(special)
    }

    /// The row of this function; none for one with parameters.
    pub fn names(self) -> Option<&'static Names> {
        Self::rows()
            .find(|(function, _)| *function == self)
            .map(|(_, names)| names)
    }
}

macro_rules! pointwise {
    (
        $(#[$about:meta])* $set:ident { $($adjusted:ident { $($field:ident),* } ($v:ident) => $adjusted_value:expr;)* }
        $($function:ident ($x:ident) => $value:expr, $names:expr;)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[expect(missing_docs, reason = "named by their function; the rows have the formulas")]
        pub enum $set {
            $($adjusted { $($field: f32),* },)*
            $($function),*
        }

        impl sealed::Sealed for $set {}

        impl Pointwise for $set {
            const ROWS: &'static [($set, Names)] = &[$(($set::$function, $names)),*];

            #[inline(always)]
            fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self {
                    $($set::$adjusted { $($field),* } => visitor.visit(|$v| $adjusted_value),)*
                    $($set::$function => visitor.visit(|$x| $value)),*
                }
            }
        }
    };
}

pointwise! {
    /// The functions that most networks use, and those with parameters. `Clamp` is also ReLU and ReLU6.
    UnaryOp {
        Clamp { min, max } (x) => clamp(x, [min, max]);
        LeakyRelu { alpha } (x) => if x > 0.0 { x } else { alpha * x };
    }

    HardSwish(x) => x * clamp(x + 3.0, [0.0, 6.0]) / 6.0, Names {
        formula: "x * min(max(x + 3, 0), 6) / 6",
        trace: Some("hardswish"),
        aten: aten("hardswish"),
        tflite: tflite("HARD_SWISH", 1, &[F32, I8]),
        weight: FEW,
        ..named("hard_swish", "torch.nn.functional.hardswish")
    };
    Logistic(x) => 1.0 / (1.0 + libm::expf(-x)), Names {
        formula: "1 / (1 + exp(-x))",
        trace: Some("sigmoid"),
        aten: aten("sigmoid"),
        tflite: tflite("LOGISTIC", 3, &[F32, I8, I16]),
        ..named("logistic", "torch.sigmoid")
    };
    Tanh(x) => libm::tanhf(x), Names {
        trace: Some("tanh"),
        aten: aten("tanh"),
        tflite: tflite("TANH", 3, &[F32, I8, I16]),
        ..named("tanh", "numpy.tanh")
    };
    Exp(x) => libm::expf(x), Names {
        trace: Some("exp"),
        aten: aten("exp"),
        tflite: tflite("EXP", 2, &[F32]),
        ..named("exp", "numpy.exp")
    };
    Log(x) => libm::logf(x), Names {
        formula: "the natural logarithm",
        trace: Some("log"),
        aten: aten("log"),
        tflite: tflite("LOG", 2, &[F32]),
        ..named("log", "numpy.log")
    };
    Sqrt(x) => libm::sqrtf(x), Names {
        trace: Some("sqrt"),
        aten: aten("sqrt"),
        tflite: tflite("SQRT", 1, &[F32]),
        ..named("sqrt", "numpy.sqrt")
    };
    Rsqrt(x) => 1.0 / libm::sqrtf(x), Names {
        formula: "1 / sqrt(x)",
        trace: Some("rsqrt"),
        aten: aten("rsqrt"),
        tflite: tflite("RSQRT", 3, &[F32, I8]),
        ..named("rsqrt", "torch.rsqrt")
    };
    Square(x) => x * x, Names {
        formula: "x * x",
        trace: Some("square"),
        aten: aten("square"),
        tflite: tflite("SQUARE", 1, &[F32]),
        weight: PLAIN,
        ..named("square", "numpy.square")
    };
    Abs(x) => x.abs(), Names {
        trace: Some("abs"),
        aten: aten("abs"),
        tflite: tflite("ABS", 5, &[F32, I8, I16]),
        weight: PLAIN,
        ..named("abs", "numpy.abs")
    };
    Neg(x) => -x, Names {
        formula: "-x",
        trace: Some("neg"),
        aten: aten("neg"),
        tflite: tflite("NEG", 1, &[F32]),
        weight: PLAIN,
        ..named("neg", "numpy.negative")
    };
}

pointwise! {
    /// Functions that fewer networks use: a kernel of their own, so that the others do not pay for their code.
    SpecialOp {}

    Floor(x) => libm::floorf(x), Names {
        formula: "the largest integer <= x",
        trace: Some("floor"),
        aten: aten("floor"),
        tflite: tflite("FLOOR", 1, &[F32]),
        weight: PLAIN,
        ..named("floor", "numpy.floor")
    };
    Ceil(x) => libm::ceilf(x), Names {
        formula: "the smallest integer >= x",
        trace: Some("ceil"),
        aten: aten("ceil"),
        tflite: tflite("CEIL", 1, &[F32]),
        weight: PLAIN,
        ..named("ceil", "numpy.ceil")
    };
    Round(x) => libm::rintf(x), Names {
        formula: "the nearest integer, the even one of two",
        trace: Some("round"),
        aten: aten("round"),
        tflite: tflite("ROUND", 1, &[F32]),
        weight: 18,
        ..named("round", "numpy.rint")
    };
    Sign(x) => if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x }, Names {
        formula: "1, 0 or -1, as x is above, at or below zero",
        trace: Some("sign"),
        aten: aten("sign"),
        tflite: tflite("SIGN", 2, &[F32]),
        weight: PLAIN,
        ..named("sign", "numpy.sign")
    };
    Softsign(x) => x / (1.0 + x.abs()), Names {
        formula: "x / (1 + |x|)",
        trace: Some("softsign"),
        weight: FEW,
        ..named("softsign", "torch.nn.functional.softsign")
    };
    Erf(x) => libm::erff(x), Names {
        formula: "2 / sqrt(pi) * the integral of exp(-t^2) from 0 to x",
        trace: Some("erf"),
        aten: aten("erf"),
        ..named("erf", "torch.special.erf")
    };
    // The complement keeps its digits where 1 + erf(x / sqrt(2)) cancels.
    Gelu(x) => 0.5 * x * libm::erfcf(-core::f32::consts::FRAC_1_SQRT_2 * x), Names {
        formula: "x / 2 * (1 + erf(x / sqrt(2)))",
        trace: Some("gelu"),
        aten: Some(Aten { name: "gelu", arguments: &[("approximate", "'none'")] }),
        ..named("gelu", "torch.nn.functional.gelu")
    };
    // 1 + tanh(z) = 2 / (1 + exp(-2 z)).
    GeluTanh(x) => x / (1.0 + libm::expf(-2.0 * 0.797_884_6 * (x + 0.044_715 * x * x * x))), Names {
        formula: "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))",
        trace: Some("gelu_tanh"),
        aten: Some(Aten { name: "gelu", arguments: &[("approximate", "'tanh'")] }),
        ..named("gelu_tanh", "torch.nn.functional.gelu(approximate='tanh')")
    };
    HardSigmoid(x) => clamp(x + 3.0, [0.0, 6.0]) / 6.0, Names {
        formula: "min(max(x + 3, 0), 6) / 6",
        trace: Some("hardsigmoid"),
        aten: aten("hardsigmoid"),
        weight: FEW,
        ..named("hard_sigmoid", "torch.nn.functional.hardsigmoid")
    };
    // The form that neither overflows nor cancels.
    Softplus(x) => clamp(x, [0.0, f32::INFINITY]) + libm::log1pf(libm::expf(-x.abs())), Names {
        formula: "log(1 + exp(x))",
        trace: Some("softplus"),
        aten: Some(Aten { name: "softplus", arguments: &[("beta", "1"), ("threshold", "20")] }),
        weight: 300,
        ..named("softplus", "torch.nn.functional.softplus")
    };
    Sin(x) => libm::sinf(x), Names {
        trace: Some("sin"),
        aten: aten("sin"),
        tflite: tflite("SIN", 1, &[F32]),
        weight: REDUCED,
        ..named("sin", "numpy.sin")
    };
    Cos(x) => libm::cosf(x), Names {
        trace: Some("cos"),
        aten: aten("cos"),
        tflite: tflite("COS", 1, &[F32]),
        weight: REDUCED,
        ..named("cos", "numpy.cos")
    };
}

/// The names of an operator that is only known by `name`: the formula is the name's own function.
const fn named(name: &'static str, oracle: &'static str) -> Names {
    Names {
        name,
        formula: "as named",
        trace: None,
        aten: None,
        tflite: None,
        oracle,
        weight: SERIES,
    }
}

const fn aten(name: &'static str) -> Option<Aten> {
    Some(Aten { name, arguments: &[] })
}

const fn tflite(name: &'static str, version: i32, types: &'static [DType]) -> Option<Tflite> {
    Some(Tflite { name, version, types })
}

/// `x` within `[low, high]`; a NaN stays a NaN.
pub(crate) fn clamp(x: f32, [low, high]: [f32; 2]) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}
