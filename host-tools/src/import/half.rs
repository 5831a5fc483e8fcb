//! Half-precision floats in files: the device computes with the float32 of the same value.

/// A float16 as the float32 of the same value.
pub(super) fn to_f32(half: u16) -> f32 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(half >> 10 & 0x1F), f32::from(half & 0x3FF));
    sign * match exponent {
        0 => mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::to_f32;

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
