//! Comparing tensors: the relative error that every check of this project uses.

use arenite::DType;

/// max|a - b| / max|b| of two tensors as little-endian bytes, `b` the reference; where all of `b` is 0, max|a|. Infinite where the sizes
/// differ or a NaN stands in one of them alone.
pub fn relative(dtype: DType, a: &[u8], b: &[u8]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    relative_f64(&to_f64(dtype, a), &to_f64(dtype, b))
}

/// [`relative`] of elements; infinite where their numbers differ.
pub fn relative_f64(a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let mut difference = 0.0f64;
    let mut scale = 0.0f64;
    for (a, b) in a.iter().zip(b) {
        let d = if a == b || (a.is_nan() && b.is_nan()) {
            0.0
        } else {
            (a - b).abs()
        };
        difference = if d.is_nan() { f64::INFINITY } else { difference.max(d) };
        scale = if b.is_nan() { scale } else { scale.max(b.abs()) };
    }
    if scale > 0.0 && scale.is_finite() {
        difference / scale
    } else {
        difference
    }
}

/// The elements of a tensor as f64.
pub fn to_f64(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| f64::from(f32::from_le_bytes(*b)))
            .collect(),
        DType::I8 => bytes.iter().map(|&b| f64::from(b as i8)).collect(),
        DType::U8 | DType::Bool => bytes.iter().map(|&b| f64::from(b)).collect(),
        DType::I16 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| f64::from(i16::from_le_bytes(*b)))
            .collect(),
        DType::I32 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| f64::from(i32::from_le_bytes(*b)))
            .collect(),
        DType::I64 => bytes
            .as_chunks()
            .0
            .iter()
            .map(|b| i64::from_le_bytes(*b) as f64)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn relative_error_is_of_the_largest_reference() {
        let error = relative(DType::F32, &f32s(&[1.0, 2.5]), &f32s(&[1.0, 2.0]));
        assert!((error - 0.25).abs() < 1e-12);
    }

    /// As many whole elements, and bytes that belong to none.
    #[test]
    fn unlike_lengths_are_never_close() {
        let one = f32s(&[1.0]);
        assert_eq!(relative(DType::F32, &[&one[..], &[0]].concat(), &one), f64::INFINITY);
        assert_eq!(relative_f64(&[1.0], &[1.0, 1.0]), f64::INFINITY);
    }

    #[test]
    fn a_nan_is_never_close() {
        assert_eq!(relative(DType::F32, &f32s(&[f32::NAN]), &f32s(&[1.0])), f64::INFINITY);
        assert_eq!(relative(DType::F32, &f32s(&[1.0]), &f32s(&[1.0, 2.0])), f64::INFINITY);
    }
}
