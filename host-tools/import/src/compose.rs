//! Operators that become several of the graph's, for every importer that has them: products of matrices, spread images.

use crate::error::{Error, Result};
use crate::graph::infer::broadcast;

/// Most matrices of a product in batches.
const MOST_MATRICES: usize = 4096;

/// Primitives of which importers compose operators.
pub(super) trait Compose {
    /// A tensor of the graph, or what is known of one.
    type Value: Clone;

    fn shape(&self, value: &Self::Value) -> Vec<usize>;
    fn reshape(&mut self, value: &Self::Value, shape: &[usize]) -> Result<Self::Value>;
    fn transpose(&mut self, value: &Self::Value, perm: &[usize]) -> Result<Self::Value>;
    /// `extent` indices of one axis, those from `from` on.
    fn part(&mut self, value: &Self::Value, axis: usize, from: usize, extent: usize) -> Result<Self::Value>;
    fn concat(&mut self, values: &[Self::Value], axis: usize) -> Result<Self::Value>;
    /// With zeros around it, `(before, after)` for each axis.
    fn zeros_around(&mut self, value: &Self::Value, pads: &[(usize, usize)]) -> Result<Self::Value>;
    /// `x [.., k]` times `w [n, k]`.
    fn linear(&mut self, x: &Self::Value, w: &Self::Value) -> Result<Self::Value>;
}

/// `a [.., m, k]` times `b [.., n, k]`, for each matrix of the batch.
pub(super) fn products<C: Compose>(net: &mut C, a: &C::Value, b: &C::Value) -> Result<C::Value> {
    let (a_shape, b_shape) = (net.shape(a), net.shape(b));
    let split = |shape: &[usize]| match shape {
        [batch @ .., rows, k] => Ok((batch.to_vec(), *rows, *k)),
        _ => Err(Error::input(format!("an operand of shape {shape:?}")).expected("at least two axes")),
    };
    let ((a_batch, m, k), (b_batch, n, k_b)) = (split(&a_shape)?, split(&b_shape)?);
    if k != k_b {
        return Err(Error::input(format!("rows of {k} elements and columns of {k_b}")));
    }
    let batch = broadcast(&a_batch, &b_batch)?;
    let mut shape = batch.clone();
    shape.extend([m, n]);
    let count = |batch: &[usize]| batch.iter().product::<usize>();
    if count(&b_batch) == 1 {
        let b = net.reshape(b, &[n, k])?;
        let rows = net.reshape(a, &[count(&a_batch) * m, k])?;
        let y = net.linear(&rows, &b)?;
        return net.reshape(&y, &shape);
    }
    let matrices = count(&batch);
    if matrices > MOST_MATRICES {
        return Err(Error::unsupported(format!("a product of {matrices} matrices"))
            .expected(format!("at most {MOST_MATRICES}")));
    }
    let (a_at, b_at) = (positions(&a_batch, &batch), positions(&b_batch, &batch));
    let a = net.reshape(a, &[count(&a_batch) * m, k])?;
    let b = net.reshape(b, &[count(&b_batch) * n, k])?;
    let mut results = Vec::with_capacity(matrices);
    for (a_at, b_at) in a_at.into_iter().zip(b_at) {
        let rows = net.part(&a, 0, a_at * m, m)?;
        let columns = net.part(&b, 0, b_at * n, n)?;
        results.push(net.linear(&rows, &columns)?);
    }
    let y = net.concat(&results, 0)?;
    net.reshape(&y, &shape)
}

/// NumPy's matrix product.
pub(super) fn multiplied<C: Compose>(net: &mut C, a: &C::Value, b: &C::Value) -> Result<C::Value> {
    let (a_shape, b_shape) = (net.shape(a), net.shape(b));
    if a_shape.is_empty() || b_shape.is_empty() {
        return Err(Error::input(format!("operands of shape {a_shape:?} and {b_shape:?}")));
    }
    let a = match a_shape.as_slice() {
        [k] => net.reshape(a, &[1, *k])?,
        _ => a.clone(),
    };
    // The second operand with its columns as rows.
    let columns = match b_shape.as_slice() {
        [k] => net.reshape(b, &[1, *k])?,
        shape => {
            let mut perm: Vec<usize> = (0..shape.len()).collect();
            perm.swap(shape.len() - 1, shape.len() - 2);
            net.transpose(b, &perm)?
        }
    };
    let y = products(net, &a, &columns)?;
    let mut shape = net.shape(&y);
    if b_shape.len() == 1 {
        shape.pop();
    }
    if a_shape.len() == 1 {
        let at = shape.len() - usize::from(b_shape.len() != 1) - 1;
        shape.remove(at);
    }
    net.reshape(&y, &shape)
}

/// For each matrix of `batch`, which matrix of an operand it is.
fn positions(operand: &[usize], batch: &[usize]) -> Vec<usize> {
    let count: usize = batch.iter().product();
    let skipped = batch.len() - operand.len();
    (0..count)
        .map(|index| {
            let (mut rest, mut position, mut stride) = (index, 0, 1);
            for (axis, &extent) in batch.iter().enumerate().rev() {
                let own = axis.checked_sub(skipped).and_then(|axis| operand.get(axis));
                let (at, own) = (rest % extent, own.copied().unwrap_or(1));
                rest /= extent;
                position += if own == 1 { 0 } else { at * stride };
                stride *= own;
            }
            position
        })
        .collect()
}

/// `[batch, channels, spatial…]` with `stride - 1` zeros behind each element but the last: what a transposed convolution slides over.
pub(super) fn spread<C: Compose>(net: &mut C, x: C::Value, stride: &[usize]) -> Result<C::Value> {
    let mut x = x;
    for (axis, &step) in stride.iter().enumerate().filter(|(_, s)| **s != 1) {
        let axis = axis + 2;
        let shape = net.shape(&x);
        if shape[axis] == 1 {
            continue;
        }
        let (mut wide, mut pads) = (shape.clone(), vec![(0, 0); shape.len() + 1]);
        wide.insert(axis + 1, 1);
        pads[axis + 1] = (0, step - 1);
        x = net.reshape(&x, &wide)?;
        x = net.zeros_around(&x, &pads)?;
        let (extent, mut flat) = (shape[axis], shape);
        flat[axis] *= step;
        x = net.reshape(&x, &flat)?;
        x = net.part(&x, axis, 0, (extent - 1) * step + 1)?;
    }
    Ok(x)
}

#[cfg(test)]
mod tests {
    use super::positions;

    #[test]
    fn a_matrix_of_the_batch_is_that_of_the_operand_that_is_broadcast() {
        assert_eq!(positions(&[2, 3], &[2, 3]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(positions(&[2, 1], &[2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(positions(&[3], &[2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(positions(&[], &[2, 3]), [0; 6]);
    }
}
