//! Pointwise functions of 8-bit and 16-bit tensors, as TensorFlow Lite Micro's portable kernels compute them.
//!
//! The 8-bit ones serve to build 256-byte tables when packing; the 16-bit ones run on the device.

use serde::{Deserialize, Serialize};

use super::fixed::{self, inverse_sqrt};
use super::rounding::{Multiplier, high_mul, high_mul_i16, rounding_shift_right};

/// Logistic function and hyperbolic tangent of an 8-bit tensor, through Q4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogisticI8 {
    zero_point: i32,
    multiplier: Multiplier,
    /// Inputs this far from the zero point saturate.
    radius: i32,
}

impl LogisticI8 {
    /// For inputs of this scale and zero point; `None` for a scale that is not finite. From scale 16 on, whatever is not the zero point
    /// saturates.
    pub fn new(scale: f32, zero_point: i32) -> Option<Self> {
        const INTEGER_BITS: u32 = 4;
        let real = f64::from(scale) * f64::from(1 << (31 - INTEGER_BITS));
        // No multiplier holds a factor from 2^31 on. There the radius is 0 and the multiplier is never applied.
        let (multiplier, radius) = match Multiplier::from_real(real) {
            Some(multiplier) => (multiplier, input_radius(INTEGER_BITS, multiplier.shift)),
            None if real.is_finite() => (Multiplier::ONE, 0),
            None => return None,
        };
        Some(Self {
            zero_point,
            multiplier,
            radius,
        })
    }

    /// 1 / (1 + exp(-x)) with scale 1/256 and zero point -128.
    pub fn logistic(self, q: i8) -> i8 {
        self.saturate(q, |x| {
            (rounding_shift_right(fixed::logistic::<4>(x), 23) - 128).clamp(-128, 127)
        })
    }

    /// tanh(x) with scale 1/128 and zero point 0.
    pub fn tanh(self, q: i8) -> i8 {
        self.saturate(q, |x| rounding_shift_right(fixed::tanh(x), 24).clamp(-128, 127))
    }

    fn saturate(self, q: i8, inside: impl Fn(i32) -> i32) -> i8 {
        let x = i32::from(q).wrapping_sub(self.zero_point);
        if x <= self.radius.wrapping_neg() {
            i8::MIN
        } else if x >= self.radius {
            i8::MAX
        } else {
            inside(self.multiplier.apply(x)) as i8
        }
    }
}

/// Logistic function and hyperbolic tangent of a 16-bit tensor with zero point 0, interpolated in a table of 256 values. The result
/// has scale 1/32768.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SigmoidI16 {
    /// Brings the input to 1 / (3 * 4096), the table's scale.
    pub multiplier: i32,
    /// Right shift after it.
    pub shift: u8,
}

impl SigmoidI16 {
    /// For the logistic function of inputs of this scale. Exact for 2^-12, and otherwise with a 15-bit multiplier.
    pub fn logistic_of_scale(scale: f32) -> Option<Self> {
        Self::of_scale(scale, 0)
    }

    /// For the hyperbolic tangent of inputs of this scale. Exact for 2^-12 and 2^-11, and otherwise with a 15-bit multiplier.
    pub fn tanh_of_scale(scale: f32) -> Option<Self> {
        Self::of_scale(scale, 1)
    }

    /// For inputs of scale `2^(shift - 12)`.
    pub const fn power_of_two(shift: u8) -> Self {
        Self {
            multiplier: 3_i32.wrapping_shl(shift as u32),
            shift: 0,
        }
    }

    /// For inputs of scale `2^-(shift + 12)`, finer than the table.
    pub const fn below_table(shift: u8) -> Self {
        Self { multiplier: 3, shift }
    }

    /// 1 / (1 + exp(-x)) with scale 1/32768.
    #[inline]
    pub fn logistic(self, x: i16) -> i16 {
        let x = self.rescale(x);
        // Scale 1/(24 * 512): nine fractional bits between table entries.
        let result = interpolate(x.unsigned_abs(), 9).unwrap_or(0x7FFF << 10);
        let result = if x >= 0 {
            result.wrapping_add(1 << 9)
        } else {
            (1_u32 << 25).wrapping_sub(result).wrapping_add(1 << 9).wrapping_sub(1)
        };
        (result >> 10) as i16
    }

    /// tanh(x) = 2 / (1 + exp(-2x)) - 1 with scale 1/32768.
    #[inline]
    pub fn tanh(self, x: i16) -> i16 {
        let x = self.rescale(x);
        let result = interpolate(x.unsigned_abs(), 8).unwrap_or(0xFFFF << 8) as i32;
        let result = if x >= 0 {
            result - (1 << 23) + (1 << 7)
        } else {
            -result + (1 << 23) + (1 << 7) - 1
        };
        (result >> 8) as i16
    }

    /// Whether nothing is rounded, or no product with an input has more than 32 bits when it is.
    pub(crate) const fn has_room(self) -> bool {
        let largest = (self.multiplier.unsigned_abs() as u64) << 15;
        self.shift == 0 || (self.shift <= 31 && largest + self.round() as u64 <= i32::MAX as u64)
    }

    /// Factor from an input to the table's scale, and the shift to the right after it.
    #[cfg(kernel_isa = "armv7m")]
    pub(crate) const fn parts(self) -> (i32, u8) {
        (self.multiplier, self.shift)
    }

    /// Rounding offset, added before that shift.
    pub(crate) const fn round(self) -> i32 {
        match self.shift {
            0 => 0,
            shift => 1_i32.wrapping_shl(shift as u32 - 1),
        }
    }

    fn of_scale(scale: f32, largest_exact_shift: i32) -> Option<Self> {
        if !(scale > 0.0 && scale.is_finite()) {
            return None;
        }
        let log2 = libm::logf(scale) * (1.0 / core::f32::consts::LN_2);
        let nearest = libm::roundf(log2);
        let exact_shift = 12 + nearest as i32;
        if libm::fabsf(log2 - nearest) < 1e-3 && (0..=largest_exact_shift).contains(&exact_shift) {
            return Some(Self::power_of_two(exact_shift as u8));
        }
        let mut multiplier = f64::from(scale) * 4096.0 * 3.0;
        let mut shift = 0;
        while multiplier <= 32767.0 / 2.0 && shift <= 30 {
            shift += 1;
            multiplier *= 2.0;
        }
        // Beyond, its product with the lowest input has more than 32 bits.
        (multiplier < 65536.0).then_some(Self {
            multiplier: multiplier as i32,
            shift,
        })
    }

    #[inline]
    fn rescale(self, x: i16) -> i32 {
        i32::from(x)
            .wrapping_mul(self.multiplier)
            .wrapping_add(self.round())
            .wrapping_shr(u32::from(self.shift))
    }
}

/// Hard swish of an 8-bit tensor, x * relu6(x + 3) / 6, in 16-bit arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HardSwish {
    zero_point_in: i32,
    zero_point_out: i32,
    output: (i16, i32),
    relu_ish: (i16, i32),
}

impl HardSwish {
    /// For these scales and zero points. `None` where a scale cannot be used: the output's may be at most 128 times finer than the
    /// input's.
    pub fn new(scale_in: f32, zero_point_in: i32, scale_out: f32, zero_point_out: i32) -> Option<Self> {
        let fine = (1.0 / 128.0) * scale_in;
        let short = |real: f32| {
            let multiplier = Multiplier::from_real(f64::from(real))?;
            let mantissa = if multiplier.mantissa >= i32::MAX - (1 << 15) {
                i16::MAX
            } else {
                ((multiplier.mantissa + (1 << 15)) >> 16) as i16
            };
            Some((mantissa, i32::from(multiplier.shift)))
        };
        let output = short(fine / scale_out)?;
        let relu_ish = short(fine / (3.0 / 32768.0))?;
        (output.1 <= 0).then_some(Self {
            zero_point_in,
            zero_point_out,
            output,
            relu_ish,
        })
    }

    /// The function of one stored value.
    pub fn apply(self, q: i8) -> i8 {
        let x = (i32::from(q).wrapping_sub(self.zero_point_in) as i16).wrapping_mul(1 << 7);
        let on_output_scale = high_mul_i16(x, self.output.0);
        let (mantissa, exponent) = self.relu_ish;
        // x / 3, where 1 is 32768, saturated. The last bit of a left shift comes after the product, so that only there
        // saturation shows.
        let mut gate = x;
        if exponent > 0 {
            gate = saturating_shift_left_i16(gate, exponent - 1);
        }
        gate = high_mul_i16(gate, mantissa);
        if exponent > 0 {
            gate = saturating_shift_left_i16(gate, 1);
        } else {
            gate = rounding_shift_right(i32::from(gate), exponent.unsigned_abs()) as i16;
        }
        // From [-1, 1] to [0, 1].
        let gate = ((i32::from(gate) + (1 << 15)) >> 1) as i16;
        // Truncating here cancels the bias of the rounding above.
        let product = (i32::from(gate) * i32::from(on_output_scale) / (1 << 15)) as i16;
        let output = rounding_shift_right(i32::from(product), self.output.1.unsigned_abs());
        (output as i16)
            .wrapping_add(self.zero_point_out as i16)
            .clamp(i16::from(i8::MIN), i16::from(i8::MAX)) as i8
    }
}

/// Leaky ReLU of an 8-bit or 16-bit value: `identity` scales what is above the zero point, `slope` the rest.
#[inline]
pub fn leaky_relu(
    q: i32,
    zero_point_in: i32,
    identity: Multiplier,
    slope: Multiplier,
    zero_point_out: i32,
    range: (i32, i32),
) -> i32 {
    let x = q.wrapping_sub(zero_point_in);
    let scaled = if x >= 0 {
        identity.apply(x)
    } else if slope.mantissa < 0 {
        // A negative slope is applied as the negated product, which rounds the other way.
        let opposite = Multiplier {
            mantissa: slope.mantissa.wrapping_neg(),
            ..slope
        };
        opposite.apply(x).wrapping_neg()
    } else {
        slope.apply(x)
    };
    // No `clamp`, which may panic where it is not inlined.
    scaled.wrapping_add(zero_point_out).max(range.0).min(range.1)
}

/// 1 / sqrt(x) of an 8-bit value; `multiplier` is `1 / (sqrt(scale_in) * scale_out)`. At and below the zero point, where the
/// function has no value (TensorFlow Lite Micro stops on negative numbers), the result is the largest.
pub fn rsqrt_i8(q: i8, zero_point_in: i32, multiplier: Multiplier, zero_point_out: i32) -> i8 {
    /// Fractional bits of the intermediate result.
    const SHIFT: i32 = 20;
    let x = i32::from(q).wrapping_sub(zero_point_in);
    if x <= 0 {
        return i8::MAX;
    }
    let (mantissa, shift) = inverse_sqrt(x);
    let inverse = shift_and_multiply(1, mantissa, shift + SHIFT);
    let output = shift_and_multiply(inverse, multiplier.mantissa, i32::from(multiplier.shift) - SHIFT);
    output
        .wrapping_add(zero_point_out)
        .clamp(i32::from(i8::MIN), i32::from(i8::MAX)) as i8
}

/// A function of a 16-bit value from a table of 513 values at steps of 128, with linear interpolation. A shorter table gives 0
/// beyond its end.
#[inline]
pub fn lookup_i16(x: i16, table: &[i16]) -> i16 {
    let index = (256 + (x >> 7)) as usize;
    let at = |i: usize| table.get(i).copied().unwrap_or(0);
    let (base, next) = (at(index), at(index + 1));
    let slope = next.wrapping_sub(base);
    let delta = (i32::from(slope) * i32::from(x & 0x7F) + 64) >> 7;
    (i32::from(base) + delta) as i16
}

/// The place of `q` in a 256-byte table that is ordered by the byte's unsigned value.
#[inline]
pub const fn table_index(q: i8) -> u8 {
    q as u8
}

/// Largest distance from the zero point whose rescaled value fits `integer_bits`, for a multiplier with this left shift.
pub(super) fn input_radius(integer_bits: u32, left_shift: i8) -> i32 {
    let largest = f64::from((1 << integer_bits) - 1) * f64::from(1 << (31 - integer_bits));
    libm::floor(libm::ldexp(largest, -i32::from(left_shift))) as i32
}

/// [`Multiplier::apply`] with a shift beyond the stored range: more than 31 to the right leaves nothing.
fn shift_and_multiply(x: i32, mantissa: i32, shift: i32) -> i32 {
    match shift {
        ..-31 => 0,
        _ => rounding_shift_right(
            high_mul(x.wrapping_shl(shift.max(0) as u32), mantissa),
            shift.min(0).unsigned_abs(),
        ),
    }
}

fn saturating_shift_left_i16(x: i16, amount: i32) -> i16 {
    let wide = i64::from(x) << amount.clamp(0, 31);
    wide.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16
}

/// sigmoid(x / (24 * 2^fraction_bits)) with `fraction_bits` more bits than the table; `None` beyond its end.
fn interpolate(x: u32, fraction_bits: u32) -> Option<u32> {
    let index = (x >> fraction_bits) as usize;
    if index >= SIGMOID.len() - 2 {
        return None;
    }
    let (&low, &high) = (SIGMOID.get(index)?, SIGMOID.get(index + 1)?);
    let fraction = x & ((1 << fraction_bits) - 1);
    Some((u32::from(low) << fraction_bits) + fraction * u32::from(high).wrapping_sub(low.into()))
}

/// 65536 * sigmoid(i / 24), as TensorFlow Lite tabulates it: rounded up in places. The last value is there twice, so that each of its own has a next one.
#[rustfmt::skip]
pub(crate) static SIGMOID: [u16; 257] = [
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
    65535,
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    #[test]
    fn the_table_is_the_sigmoid() {
        for (i, &entry) in SIGMOID.iter().enumerate() {
            let exact = 65536.0 * sigmoid(i as f64 / 24.0);
            assert!((f64::from(entry) - exact).abs() < 1.2, "{i}");
        }
        assert!(SIGMOID.is_sorted());
    }

    #[test]
    fn logistic_i8_of_coarse_scales_is_a_step() {
        for scale in [15.9, 16.0, 20.5, 1e9, f32::MAX] {
            let params = LogisticI8::new(scale, -5).unwrap();
            for q in i8::MIN..=i8::MAX {
                let step = if q <= -5 { i8::MIN } else { i8::MAX };
                assert_eq!((params.logistic(q), params.tanh(q)), (step, step), "{scale} {q}");
            }
        }
        assert_eq!(LogisticI8::new(f32::INFINITY, -5), None);
    }

    #[test]
    fn logistic_i8_of_every_input() {
        for (scale, zero_point) in [(0.02, 3), (0.1, -128), (0.5, 0), (1e-4, 17)] {
            let params = LogisticI8::new(scale, zero_point).unwrap();
            for q in i8::MIN..=i8::MAX {
                let x = f64::from(scale) * f64::from(i32::from(q) - zero_point);
                let logistic = (256.0 * sigmoid(x)).round().min(255.0) - 128.0;
                assert!((f64::from(params.logistic(q)) - logistic).abs() <= 1.0, "{scale} {q}");
                let tanh = (128.0 * x.tanh()).round().min(127.0);
                assert!((f64::from(params.tanh(q)) - tanh).abs() <= 1.0, "{scale} {q}");
            }
        }
    }

    #[test]
    fn sigmoid_i16_of_every_input() {
        for scale in [1.0 / 4096.0, 1.0 / 2048.0, 1.0 / 32768.0, 0.0003, 0.001, 2.9, 5.333] {
            let logistic = SigmoidI16::logistic_of_scale(scale).unwrap();
            let tanh = SigmoidI16::tanh_of_scale(scale).unwrap();
            for q in i16::MIN..=i16::MAX {
                let x = f64::from(q) * f64::from(scale);
                let error = f64::from(logistic.logistic(q)) / 32768.0 - sigmoid(x);
                assert!(error.abs() < 1.5e-4, "logistic {scale} {q}: {error}");
                let error = f64::from(tanh.tanh(q)) / 32768.0 - x.tanh();
                assert!(error.abs() < 4e-4, "tanh {scale} {q}: {error}");
            }
        }
        assert_eq!(
            SigmoidI16::tanh_of_scale(1.0 / 2048.0),
            Some(SigmoidI16::power_of_two(1))
        );
        assert_eq!(SigmoidI16::tanh_of_scale(5.334), None);
        assert_eq!(SigmoidI16::logistic_of_scale(100.0), None);
        assert_eq!(SigmoidI16::tanh_of_scale(f32::NAN), None);
    }

    #[test]
    fn hard_swish_of_every_input() {
        for (scale_in, zero_in, scale_out, zero_out) in
            [(0.05, 0, 0.04, -100), (0.1, -20, 0.1, -120), (0.5, 5, 0.25, 0)]
        {
            let params = HardSwish::new(scale_in, zero_in, scale_out, zero_out).unwrap();
            for q in i8::MIN..=i8::MAX {
                let x = scale_in * (i32::from(q) - zero_in) as f32;
                let exact = x * (x + 3.0).clamp(0.0, 6.0) / 6.0;
                let stored = ((exact / scale_out).round() + zero_out as f32).clamp(-128.0, 127.0);
                assert!((f32::from(params.apply(q)) - stored).abs() <= 1.0, "{scale_in} {q}");
            }
        }
        assert_eq!(HardSwish::new(1.0, 0, 0.001, 0), None);
    }

    #[test]
    fn rsqrt_of_every_input() {
        let (scale_in, zero_in, scale_out, zero_out) = (0.1_f64, -128, 0.02_f64, -100);
        let multiplier = Multiplier::from_real(1.0 / (scale_in.sqrt() * scale_out)).unwrap();
        assert_eq!(rsqrt_i8(-128, zero_in, multiplier, zero_out), 127);
        for q in -127..=127_i8 {
            let x = scale_in * f64::from(i32::from(q) - zero_in);
            let stored = ((1.0 / x.sqrt() / scale_out).round() + f64::from(zero_out)).clamp(-128.0, 127.0);
            assert!(
                (f64::from(rsqrt_i8(q, zero_in, multiplier, zero_out)) - stored).abs() <= 1.0,
                "{q}"
            );
        }
    }

    #[test]
    fn a_leaky_relu_with_equal_slopes_is_a_rescaling() {
        let half = Multiplier::from_real(0.5).unwrap();
        let minus = Multiplier::from_real(-0.5).unwrap();
        for q in -128..=127 {
            let x = f64::from(q - 3) * 0.5;
            let got = f64::from(leaky_relu(q, 3, half, half, 7, (-128, 127)));
            assert!((got - (x + 7.0)).abs() <= 0.5, "{q}");
            let got = f64::from(leaky_relu(q, 3, half, minus, 7, (-128, 127)));
            assert!((got - (x.abs() + 7.0)).abs() <= 0.5, "{q}");
        }
    }

    #[test]
    fn lookup_interpolates_and_a_short_table_gives_zero() {
        let mut table = [0_i16; 513];
        for (i, entry) in table.iter_mut().enumerate() {
            *entry = (i as i32 * 64 - 16384) as i16;
        }
        for x in i16::MIN..=i16::MAX {
            assert_eq!(lookup_i16(x, &table), ((i32::from(x) + 1) >> 1) as i16);
        }
        assert_eq!(lookup_i16(5, &[]), 0);
    }

    proptest! {
        #[test]
        fn nothing_panics(q: i8, x: i16, scale: f32, zero_point: i32, mantissa: i32, shift: i8) {
            if let Some(params) = LogisticI8::new(scale, zero_point) {
                params.logistic(q);
                params.tanh(q);
            }
            if let Some(params) = SigmoidI16::tanh_of_scale(scale) {
                params.logistic(x);
                params.tanh(x);
            }
            SigmoidI16 { multiplier: mantissa, shift: shift as u8 }.logistic(x);
            SigmoidI16 { multiplier: mantissa, shift: shift as u8 }.tanh(x);
            if let Some(params) = HardSwish::new(scale, zero_point, 1.0, zero_point) {
                params.apply(q);
            }
            let multiplier = Multiplier { mantissa, shift };
            rsqrt_i8(q, zero_point, multiplier, zero_point);
            leaky_relu(mantissa, zero_point, multiplier, multiplier, zero_point, (-128, 127));
        }
    }
}
