//! Functions of two numbers, element by element with broadcasting: a row each.
//!
//! A row is all that there is to say of such an operator, as in [`pointwise`](super::pointwise) for one number: the importers, the converter for
//! PyTorch, the kernel, the tables of the documents and the tests iterate the rows. **To add one**: a row at the end of [`BinaryOp`] and a line in the
//! changelog; `ARENITE_BLESS=1 cargo test -p arenite-tests --test host pointwise::` writes what is generated, `tests/oracle/make_pointwise.py` computes the
//! oracle's values.
//!
//! The order of an enum's variants is part of the format: rows are appended, never moved.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ops::pointwise::{Aten, Tflite};
use crate::tensor::DType::{self, F32, I8, I16, I32};

/// Names of a row, beside the meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinaryNames {
    /// The kind in summaries.
    pub name: &'static str,
    /// `y` in words of the documents.
    pub formula: &'static str,
    /// Whether the operands may change places.
    pub commutes: bool,
    /// The operator of `trace.json`; it has two inputs and no attributes.
    pub trace: Option<&'static str>,
    /// The call of ATen that it is.
    pub aten: Option<Aten>,
    /// The builtin operator of TensorFlow Lite that it is.
    pub tflite: Option<Tflite>,
    /// Whether that operator's options name an activation.
    pub activation: bool,
    /// The same of quantised integers.
    pub integer: Option<IntOp>,
    /// The Python function that computes it for the tests: PyTorch's where NumPy has none.
    pub oracle: &'static str,
    /// How many times the cost of the cheapest function of its set.
    pub weight: u64,
}

/// Consumer of a function: the loops of a kernel, compiled for each.
pub trait BinaryVisitor {
    /// Result of the visit.
    type Output;
    /// Visits `f`.
    fn visit(self, f: impl Fn(f32, f32) -> f32) -> Self::Output;
}

/// Operations of two integer operands; [`BinaryInt`](super::elementwise_int::BinaryInt) has their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(missing_docs, reason = "named by their operation")]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    Minimum,
    Maximum,
    Prelu,
    Div,
}

/// A set of functions of two numbers.
pub trait Pairwise: Copy + PartialEq + Serialize + DeserializeOwned + sealed::Sealed + 'static {
    /// Whether each function is a few instructions: kernels then have a loop more for operands of one shape.
    const SHORT: bool;

    /// Calls `visitor` with the function.
    fn visit<V: BinaryVisitor>(self, visitor: V) -> V::Output;

    /// [`BinaryNames::weight`] of the function.
    fn weight(self) -> u64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! binary {
    ($(#[$about:meta])* $set:ident, short: $short:literal; $($function:ident ($a:ident, $b:ident) => $value:expr, $names:expr;)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[expect(missing_docs, reason = "named by their operation; the rows have the formulas")]
        pub enum $set {
            $($function),*
        }

        impl sealed::Sealed for $set {}

        impl Pairwise for $set {
            const SHORT: bool = $short;

            #[inline(always)]
            fn visit<V: BinaryVisitor>(self, visitor: V) -> V::Output {
                match self {
                    $($set::$function => visitor.visit(|$a, $b| $value)),*
                }
            }

            fn weight(self) -> u64 {
                self.names().weight
            }
        }

        impl $set {
            /// Its functions, with all that there is to say of them.
            pub const ROWS: &'static [($set, BinaryNames)] = &[$(($set::$function, $names)),*];

            /// The row of this function.
            pub const fn names(self) -> &'static BinaryNames {
                match self {
                    $($set::$function => const { &$names }),*
                }
            }
        }
    };
}

const NUMBERS: &[DType] = &[F32, I8, I16, I32];

binary! {
    /// Operations of two operands.
    BinaryOp, short: true;

    Add(a, b) => a + b, BinaryNames {
        formula: "a + b",
        activation: true,
        integer: Some(IntOp::Add),
        tflite: tflite("ADD", 5, NUMBERS),
        ..traced("add", "numpy.add")
    };
    Sub(a, b) => a - b, BinaryNames {
        formula: "a - b",
        commutes: false,
        activation: true,
        integer: Some(IntOp::Sub),
        tflite: tflite("SUB", 5, NUMBERS),
        ..traced("sub", "numpy.subtract")
    };
    Mul(a, b) => a * b, BinaryNames {
        formula: "a * b",
        activation: true,
        integer: Some(IntOp::Mul),
        tflite: tflite("MUL", 7, NUMBERS),
        ..traced("mul", "numpy.multiply")
    };
    Div(a, b) => a / b, BinaryNames {
        formula: "a / b",
        commutes: false,
        activation: true,
        tflite: tflite("DIV", 2, &[F32, I8, I32]),
        ..traced("div", "numpy.divide")
    };
    // A NaN of either operand is the result, as in IEEE 754's minimum, ONNX Runtime and PyTorch; TensorFlow Lite drops one of the second operand.
    Minimum(a, b) => if b < a || b.is_nan() { b } else { a }, BinaryNames {
        formula: "the smaller of a and b; NaN where one of them is",
        integer: Some(IntOp::Minimum),
        tflite: tflite("MINIMUM", 4, NUMBERS),
        ..traced("minimum", "numpy.minimum")
    };
    Maximum(a, b) => if b > a || b.is_nan() { b } else { a }, BinaryNames {
        formula: "the larger of a and b; NaN where one of them is",
        integer: Some(IntOp::Maximum),
        tflite: tflite("MAXIMUM", 4, NUMBERS),
        ..traced("maximum", "numpy.maximum")
    };
    SquaredDifference(a, b) => (a - b) * (a - b), BinaryNames {
        formula: "(a - b)^2",
        tflite: tflite("SQUARED_DIFFERENCE", 2, &[F32, I8, I32]),
        ..named("squared_difference", "torch.nn.functional.mse_loss(reduction='none')")
    };
    // In trace.json `prelu` has its slopes along axis 1, which the importer lays out.
    Prelu(a, b) => if a > 0.0 { a } else { a * b }, BinaryNames {
        formula: "a where it is above 0, else a * b",
        commutes: false,
        integer: Some(IntOp::Prelu),
        tflite: tflite("PRELU", 2, &[F32, I8]),
        ..named("prelu", "torch.nn.functional.prelu")
    };
}

binary! {
    /// Operations that fewer networks use: a kernel of their own, so that the others do not pay for their code. Comparisons give 1 and 0.
    SpecialBinaryOp, short: false;

    Less(a, b) => if a < b { 1.0 } else { 0.0 }, BinaryNames {
        formula: "1 where a < b, else 0",
        commutes: false,
        ..stated("less", "numpy.less")
    };
    LessOrEqual(a, b) => if a <= b { 1.0 } else { 0.0 }, BinaryNames {
        formula: "1 where a <= b, else 0",
        commutes: false,
        ..stated("less_or_equal", "numpy.less_equal")
    };
    Equal(a, b) => if a == b { 1.0 } else { 0.0 }, BinaryNames {
        formula: "1 where a = b, else 0",
        ..stated("equal", "numpy.equal")
    };
    // The sum of two such terms, of which one is -0, is the other term with all its bits: a choice between two numbers.
    Keep(a, b) => if b != 0.0 { a } else { -0.0 }, BinaryNames {
        formula: "a where b is not 0, else -0",
        commutes: false,
        ..stated("keep", "numpy.where")
    };
    Power(a, b) => libm::powf(a, b), BinaryNames {
        formula: "a to the power of b",
        commutes: false,
        weight: 3,
        ..stated("power", "numpy.power")
    };
    FloorDiv(a, b) => libm::floorf(a / b), BinaryNames {
        formula: "the largest integer <= a / b",
        commutes: false,
        ..named("floor_div", "numpy.floor_divide")
    };
    FloorMod(a, b) => {
        let rest = remainder(a, b);
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
    }, BinaryNames {
        formula: "what is left of a behind a multiple of b, with the sign of b",
        commutes: false,
        ..stated("floor_mod", "numpy.mod")
    };
}

/// C's `fmodf`, exactly: what is left of a behind the multiple of b next to it towards zero. NaN where a is not finite, where b is zero, and where one of
/// them is NaN. The one of `libm` links panics.
fn remainder(a: f32, b: f32) -> f32 {
    const SIGN: u32 = 1 << 31;
    if !a.is_finite() || b == 0.0 || b.is_nan() {
        return f32::NAN;
    }
    let (magnitude, sign) = (a.to_bits() & !SIGN, a.to_bits() & SIGN);
    if magnitude < b.to_bits() & !SIGN {
        return a;
    }
    let ((mut rest, exponent), (divisor, last)) = (parts(magnitude), parts(b.to_bits() & !SIGN));
    // Long division: a bit of the quotient a turn, at most 277 of them.
    let mut left = exponent.wrapping_sub(last);
    loop {
        if rest >= divisor {
            rest = rest.wrapping_sub(divisor);
        }
        if left <= 0 {
            break;
        }
        rest <<= 1;
        left = left.wrapping_sub(1);
    }
    // In two steps, each a power of two that f32 has.
    let half = last >> 1;
    let whole = rest as f32 * power_of_two(half) * power_of_two(last.wrapping_sub(half));
    f32::from_bits(whole.to_bits() | sign)
}

/// `m * 2^e` with m from 2^23 to 2^24, of the bits of a positive number.
fn parts(bits: u32) -> (u32, i32) {
    let (mantissa, exponent) = (bits & 0x7f_ffff, (bits >> 23) as i32);
    if exponent > 0 {
        return (mantissa | 1 << 23, exponent.wrapping_sub(150));
    }
    let shift = mantissa.leading_zeros().wrapping_sub(8);
    (mantissa.wrapping_shl(shift), (-149_i32).wrapping_sub(shift as i32))
}

/// For exponents of normal numbers.
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.wrapping_add(127) as u32) << 23)
}

/// The names of an operator that commutes and is known by `name` alone.
const fn named(name: &'static str, oracle: &'static str) -> BinaryNames {
    BinaryNames {
        name,
        formula: "as named",
        commutes: true,
        trace: None,
        aten: None,
        tflite: None,
        activation: false,
        integer: None,
        oracle,
        weight: 1,
    }
}

/// One that `trace.json` calls by its name as well.
const fn stated(name: &'static str, oracle: &'static str) -> BinaryNames {
    BinaryNames {
        trace: Some(name),
        ..named(name, oracle)
    }
}

/// One that `trace.json` and ATen call by its name as well.
const fn traced(name: &'static str, oracle: &'static str) -> BinaryNames {
    BinaryNames {
        aten: Some(Aten { name, arguments: &[] }),
        ..stated(name, oracle)
    }
}

const fn tflite(name: &'static str, version: i32, types: &'static [DType]) -> Option<Tflite> {
    Some(Tflite { name, version, types })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host's `%` is C's `fmodf`.
    #[test]
    fn remainders_are_those_of_c() {
        let mut state = 1_u32;
        let mut bits = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        let check = |a: f32, b: f32| {
            let (found, expected) = (remainder(a, b), a % b);
            assert!(
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()),
                "{a} % {b}: {found}"
            );
        };
        let special = [
            0.0,
            -0.0,
            1.0,
            -3.5,
            f32::MIN_POSITIVE,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
            1e-45,
            -4e-45,
            1.1e-38,
        ];
        for a in special {
            special.into_iter().for_each(|b| check(a, b));
        }
        for turn in 0..200_000 {
            let mask = [u32::MAX, 0x80ff_ffff, 0xbfff_ffff][turn % 3];
            check(f32::from_bits(bits()), f32::from_bits(bits() & mask));
        }
    }
}
