//! Computing an [`Expr`] piece by piece.

use super::Weights;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Expr;
use crate::graph::data::ExprOp;

/// Elements handed out at once.
const CHUNK: usize = 1 << 16;

/// Rows larger than this are not gathered one by one; the operand is held instead.
const LARGEST_ROW: usize = 1 << 22;

impl Weights {
    /// Computes `expr` and hands its elements out in order.
    ///
    /// # Errors
    /// Errors of reading the parameters, a value that is not finite, and errors of `sink`.
    pub fn stream(&self, expr: &Expr, sink: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
        stream(self, expr, sink)
    }

    /// Computes `expr` as a whole; for small tensors.
    ///
    /// # Errors
    /// As [`Weights::stream`].
    pub fn evaluate(&self, expr: &Expr) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(expr.shape().iter().product());
        self.stream(expr, &mut |chunk| {
            values.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(values)
    }
}

/// Hands out the elements of `expr` in order.
fn stream(weights: &Weights, expr: &Expr, sink: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
    let shape = expr.shape();
    let elements: usize = shape.iter().product();
    let row: usize = shape.iter().skip(1).product::<usize>().max(1);
    // Whole rows, so that a permutation within rows reads each of its operand's rows once.
    let chunk = match row {
        row if row <= CHUNK => CHUNK / row * row,
        row if row <= LARGEST_ROW => row,
        _ => CHUNK,
    };
    let part = prepare(weights, expr)?;
    let mut buffer = vec![0.0; chunk.min(elements)];
    let mut start = 0;
    while start < elements {
        let out = &mut buffer[..chunk.min(elements - start)];
        part.read(weights, start, out)?;
        sink(out)?;
        start += out.len();
    }
    Ok(())
}

/// An expression ready to be read at any range; reshapes have vanished.
enum Part<'a> {
    Param(&'a str),
    Literal(&'a [f32]),
    /// Axis 0 stays: element `i` of a row is element `gather[i]` of the operand's row.
    WithinRows {
        of: Box<Part<'a>>,
        gather: Vec<u32>,
    },
    /// Extents of the result, and the operand's stride along each of them.
    Permuted {
        of: Vec<f32>,
        shape: Vec<usize>,
        strides: Vec<usize>,
    },
    Binary {
        op: ExprOp,
        a: Box<Part<'a>>,
        b: Broadcast,
    },
    RsqrtEpsilon {
        of: Box<Part<'a>>,
        epsilon: f32,
    },
}

/// An operand in memory: element `i` of the result goes with element (sum over axes of index * stride).
struct Broadcast {
    values: Vec<f32>,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

fn prepare<'a>(weights: &Weights, expr: &'a Expr) -> Result<Part<'a>> {
    Ok(match expr {
        Expr::Param { key, .. } => Part::Param(key),
        Expr::Literal { values, .. } => Part::Literal(values),
        Expr::Reshape { of, .. } => prepare(weights, of)?,
        Expr::Reversed { of } => {
            let mut values = weights.evaluate(of)?;
            for row in values.chunks_exact_mut(of.shape().last().copied().unwrap_or(1).max(1)) {
                row.reverse();
            }
            let (shape, strides) = (vec![values.len()], vec![1]);
            Part::Permuted {
                of: values,
                shape,
                strides,
            }
        }
        Expr::RowSums { of } => {
            let values = row_sums(weights, of)?;
            let (shape, strides) = (vec![values.len()], vec![1]);
            Part::Permuted {
                of: values,
                shape,
                strides,
            }
        }
        Expr::RsqrtEpsilon { of, epsilon } => Part::RsqrtEpsilon {
            of: Box::new(prepare(weights, of)?),
            epsilon: *epsilon,
        },
        Expr::Binary { op, a, b } => {
            let shape = a.shape();
            let strides = broadcast_strides(&b.shape(), &shape)
                .ok_or_else(|| Error::internal(format!("{:?} does not broadcast to {shape:?}", b.shape())))?;
            let values = weights.evaluate(b)?;
            Part::Binary {
                op: *op,
                a: Box::new(prepare(weights, a)?),
                b: Broadcast { values, shape, strides },
            }
        }
        Expr::Permute { of, perm } => {
            let source = of.shape();
            let strides = strides(&source);
            let row: usize = source.iter().skip(1).product();
            if perm.first() == Some(&0) && row <= LARGEST_ROW {
                let axes = perm.iter().skip(1);
                let shape: Vec<usize> = axes.clone().map(|&axis| source[axis]).collect();
                let strides: Vec<usize> = axes.map(|&axis| strides[axis]).collect();
                let mut gather = Vec::with_capacity(row);
                walk(&shape, &strides, 0, row, |from| gather.push(from as u32));
                Part::WithinRows {
                    of: Box::new(prepare(weights, of)?),
                    gather,
                }
            } else {
                Part::Permuted {
                    of: weights.evaluate(of)?,
                    shape: perm.iter().map(|&axis| source[axis]).collect(),
                    strides: perm.iter().map(|&axis| strides[axis]).collect(),
                }
            }
        }
    })
}

/// The sum of each row, rounded once.
fn row_sums(weights: &Weights, of: &Expr) -> Result<Vec<f32>> {
    let shape = of.shape();
    let row = shape.iter().skip(1).product::<usize>().max(1);
    let mut sums = vec![0.0_f64; shape.first().copied().unwrap_or(1)];
    let mut at = 0;
    weights.stream(of, &mut |values| {
        for value in values {
            if let Some(sum) = sums.get_mut(at / row) {
                *sum += f64::from(*value);
            }
            at += 1;
        }
        Ok(())
    })?;
    Ok(sums.into_iter().map(|sum| sum as f32).collect())
}

impl Part<'_> {
    /// Elements `start..start + out.len()`.
    fn read(&self, weights: &Weights, start: usize, out: &mut [f32]) -> Result<()> {
        match self {
            Part::Param(key) => weights.read(key, start, out),
            Part::Literal(values) => copy(values, start, out),
            Part::WithinRows { of, gather } => {
                let row = gather.len().max(1);
                let (first, last) = (start / row, (start + out.len()).div_ceil(row));
                let mut rows = vec![0.0; (last - first) * row];
                of.read(weights, first * row, &mut rows)?;
                let skip = start - first * row;
                let gathered = rows.chunks_exact(row).flat_map(|row| {
                    gather
                        .iter()
                        .map(|&from| row.get(from as usize).copied().unwrap_or_default())
                });
                for (value, gathered) in out.iter_mut().zip(gathered.skip(skip)) {
                    *value = gathered;
                }
                Ok(())
            }
            Part::Permuted { of, shape, strides } => {
                let mut out = out.iter_mut();
                let count = out.len();
                walk(shape, strides, start, count, |from| {
                    if let (Some(value), Some(&from)) = (out.next(), of.get(from)) {
                        *value = from;
                    }
                });
                Ok(())
            }
            Part::Binary { op, a, b } => {
                a.read(weights, start, out)?;
                let count = out.len();
                let mut out = out.iter_mut();
                walk(&b.shape, &b.strides, start, count, |from| {
                    if let (Some(value), Some(&b)) = (out.next(), b.values.get(from)) {
                        *value = match op {
                            ExprOp::Add => *value + b,
                            ExprOp::Sub => *value - b,
                            ExprOp::Mul => *value * b,
                            ExprOp::Div => *value / b,
                        };
                    }
                });
                Ok(())
            }
            Part::RsqrtEpsilon { of, epsilon } => {
                of.read(weights, start, out)?;
                for value in out.iter_mut() {
                    let sum = *value + epsilon;
                    if sum <= 0.0 {
                        return Err(Error::new(
                            ErrorKind::Weights,
                            format!("a variance of {value} with epsilon {epsilon} has no inverse root"),
                        )
                        .expected("variances that are not negative"));
                    }
                    *value = 1.0 / sum.sqrt();
                }
                Ok(())
            }
        }
    }
}

fn copy(values: &[f32], start: usize, out: &mut [f32]) -> Result<()> {
    let part = values.get(start..start + out.len());
    out.copy_from_slice(part.ok_or_else(|| Error::internal("elements beyond the end of a constant"))?);
    Ok(())
}

/// Row-major strides.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides: Vec<usize> = shape
        .iter()
        .rev()
        .scan(1, |product, &extent| {
            Some(std::mem::replace(product, *product * extent))
        })
        .collect();
    strides.reverse();
    strides
}

/// Strides of an operand of shape `from` along the axes of `to`, 0 where it is repeated.
fn broadcast_strides(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let missing = to.len().checked_sub(from.len())?;
    let own = strides(from);
    (0..to.len())
        .map(|axis| match axis.checked_sub(missing) {
            None => Some(0),
            Some(i) if from[i] == to[axis] => Some(own[i]),
            Some(i) => (from[i] == 1).then_some(0),
        })
        .collect()
}

/// Calls `visit` with the strided offset of elements `start..start + count` of a shape.
fn walk(shape: &[usize], strides: &[usize], start: usize, count: usize, mut visit: impl FnMut(usize)) {
    let Some((&inner, outer)) = shape.split_last() else {
        (0..count).for_each(|_| visit(0));
        return;
    };
    let step = strides.last().copied().unwrap_or(0);
    let inner = inner.max(1);
    let mut index: Vec<usize> = vec![0; outer.len()];
    let mut rest = start / inner;
    for (index, &extent) in index.iter_mut().zip(outer).rev() {
        *index = rest % extent.max(1);
        rest /= extent.max(1);
    }
    let (mut left, mut at) = (count, start % inner);
    while left > 0 {
        let base: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        let run = (inner - at).min(left);
        (at..at + run).for_each(|i| visit(base + i * step));
        left -= run;
        at = 0;
        for (index, &extent) in index.iter_mut().zip(outer).rev() {
            *index += 1;
            if *index < extent {
                break;
            }
            *index = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Source;
    use super::*;

    fn nothing() -> Weights {
        Weights {
            source: Source::Nothing,
            path: None,
        }
    }

    fn literal(shape: &[usize]) -> Arc<Expr> {
        let count: usize = shape.iter().product();
        Arc::new(Expr::Literal {
            values: (0..count).map(|i| i as f32).collect(),
            shape: shape.to_vec(),
        })
    }

    /// Element by element, from the definition.
    fn permuted(shape: &[usize], perm: &[usize]) -> Vec<f32> {
        let result: Vec<usize> = perm.iter().map(|&axis| shape[axis]).collect();
        let count: usize = shape.iter().product();
        (0..count)
            .map(|flat| {
                let mut rest = flat;
                let mut source = vec![0; shape.len()];
                for (axis, &extent) in result.iter().enumerate().rev() {
                    source[perm[axis]] = rest % extent;
                    rest /= extent;
                }
                source.iter().zip(shape).fold(0, |flat, (i, extent)| flat * extent + i) as f32
            })
            .collect()
    }

    #[test]
    fn permutations_of_every_kind() {
        for perm in [[0, 2, 3, 1], [3, 0, 1, 2], [0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]] {
            let shape = [70, 9, 11, 30];
            let expr = Expr::Permute {
                of: literal(&shape),
                perm: perm.to_vec(),
            };
            assert_eq!(nothing().evaluate(&expr).unwrap(), permuted(&shape, &perm), "{perm:?}");
        }
    }

    #[test]
    fn a_scale_per_channel_is_broadcast() {
        let scale = Arc::new(Expr::Reshape {
            of: literal(&[3]),
            shape: vec![3, 1, 1],
        });
        let expr = Expr::Binary {
            op: ExprOp::Mul,
            a: literal(&[3, 2, 2]),
            b: scale,
        };
        let expected = [0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0, 7.0, 16.0, 18.0, 20.0, 22.0];
        assert_eq!(nothing().evaluate(&expr).unwrap(), expected);
    }

    #[test]
    fn rows_are_summed_and_divided() {
        let sums = Expr::Binary {
            op: ExprOp::Div,
            a: Arc::new(Expr::RowSums {
                of: literal(&[3, 2, 2]),
            }),
            b: Arc::new(Expr::Literal {
                values: vec![2.0, 4.0, 8.0],
                shape: vec![3],
            }),
        };
        assert_eq!(nothing().evaluate(&sums).unwrap(), [3.0, 5.5, 4.75]);
    }

    #[test]
    fn a_negative_variance_is_refused() {
        let expr = Expr::RsqrtEpsilon {
            of: Arc::new(Expr::Literal {
                values: vec![1.0, -0.5],
                shape: vec![2],
            }),
            epsilon: 1e-3,
        };
        assert_eq!(nothing().evaluate(&expr).unwrap_err().kind(), ErrorKind::Weights);
    }
}
