//! Half-precision floats, in files and as stored weights: the device computes with the float32 of the same value.

/// A float16 as the float32 of the same value.
pub fn to_f32(half: u16) -> f32 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(half >> 10 & 0x1F), f32::from(half & 0x3FF));
    sign * match exponent {
        0 => mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    }
}

/// The float16 nearest to `value`, ties to even, as a float32; infinite from 65520 on.
pub fn rounded_to_f16(value: f32) -> f32 {
    let magnitude = value.abs();
    if magnitude.is_nan() || magnitude >= 65520.0 {
        return if magnitude.is_nan() {
            value
        } else {
            f32::INFINITY.copysign(value)
        };
    }
    // Steps of 2^-24 among subnormal numbers; above, a step is 2^-10 of the power of two below the value.
    let exponent = (magnitude.to_bits() >> 23) as i32 - 127;
    let step = 2f64.powi((exponent - 10).max(-24));
    ((f64::from(magnitude) / step).round_ties_even() * step).copysign(f64::from(value)) as f32
}

/// The bits of the float16 nearest to `value`; `None` of what has no finite one.
pub fn to_bits(value: f32) -> Option<u16> {
    let rounded = rounded_to_f16(value);
    if !rounded.is_finite() {
        return None;
    }
    let sign = (rounded.to_bits() >> 16 & 0x8000) as u16;
    let magnitude = rounded.abs();
    // Below 2^-14 in steps of 2^-24; above, the bits of the f32 without the lowest 13, its exponent counted from 15.
    let bits = if magnitude < 2f32.powi(-14) {
        (magnitude * 2f32.powi(24)) as u16
    } else {
        ((magnitude.to_bits() >> 13) - (112 << 10)) as u16
    };
    Some(sign | bits)
}

/// The bfloat16 nearest to `value`, ties to even, as a float32.
pub fn rounded_to_bf16(value: f32) -> f32 {
    if value.is_nan() {
        return value;
    }
    let bits = value.to_bits();
    let odd = bits >> 16 & 1;
    f32::from_bits(bits.wrapping_add(0x7FFF + odd) & 0xFFFF_0000)
}

#[cfg(test)]
mod tests {
    use super::{rounded_to_bf16, rounded_to_f16, to_bits, to_f32};

    #[test]
    fn every_half_keeps_its_bits() {
        for half in (0..0x7C00_u16).flat_map(|half| [half, half | 0x8000]) {
            assert_eq!(to_bits(to_f32(half)), Some(half));
        }
        assert_eq!([65520.0, f32::NAN, f32::NEG_INFINITY].map(to_bits), [None; 3]);
        assert_eq!(to_bits(1.0 + 2f32.powi(-12)), Some(0x3C00));
    }

    /// Every float16, and every middle between two neighbours with what lies next to it on either side.
    #[test]
    fn roundings_of_every_half() {
        let bits = |value: f32| value.to_bits();
        for half in 0..0x7BFF_u16 {
            let (low, high) = (to_f32(half), to_f32(half + 1));
            let middle = (low + high) / 2.0;
            let even = if half % 2 == 0 { low } else { high };
            for (value, expected) in [
                (low, low),
                (f32::from_bits(bits(middle) - 1), low),
                (middle, even),
                (f32::from_bits(bits(middle) + 1), high),
            ] {
                assert_eq!(bits(rounded_to_f16(value)), bits(expected), "{value}");
                assert_eq!(bits(rounded_to_f16(-value)), bits(-expected), "-{value}");
            }
        }
        for (value, expected) in [
            (65519.996, 65504.0),
            (65520.0, f32::INFINITY),
            (262_016.0, f32::INFINITY),
        ] {
            assert_eq!(rounded_to_f16(value), expected);
            assert_eq!(rounded_to_f16(-value), -expected);
        }
        assert!(rounded_to_f16(f32::NAN).is_nan() && rounded_to_bf16(f32::NAN).is_nan());
        for (value, expected) in [
            (0x3F80_8000, 0x3F80_0000),
            (0x3F80_8001, 0x3F81_0000),
            (0x3F81_8000, 0x3F82_0000),
            (0x7F7F_FFFF, 0x7F80_0000),
            (0xFF80_0000, 0xFF80_0000),
            (0x8000_8000, 0x8000_0000),
        ] {
            assert_eq!(rounded_to_bf16(f32::from_bits(value)).to_bits(), expected, "{value:#x}");
        }
    }

    #[test]
    fn halves_by_hand() {
        let cases = [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7BFF, 65504.0),
            (0x0400, 6.103_515_6e-5),
            (0x0001, 5.960_464_5e-8),
            (0x83FF, -6.097_555e-5),
            (0x0000, 0.0),
        ];
        for (half, value) in cases {
            assert_eq!(to_f32(half), value, "{half:#06x}");
        }
        assert!(to_f32(0x7C00).is_infinite() && to_f32(0x7E00).is_nan());
    }
}
