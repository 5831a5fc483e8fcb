//! Arithmetic on shapes: SHAPE and what converters build on it has a value when importing, because all shapes are static.

use super::constant::Constant;
use super::importer::{Importer, View};
use super::schema::TensorInfo;
use super::sparse;
use super::widen::FLOAT16;
use crate::error::{Error, Result};
use crate::graph::DType;

/// Bytes of an element while it is computed with.
const FOLDED: usize = 8;

impl Importer<'_, '_> {
    /// Computes the operator now if it is integer arithmetic on constants; false where it is not.
    pub(super) fn fold(&mut self, view: View<'_, '_>) -> Result<bool> {
        for &input in view.inputs.iter().flatten() {
            self.read_sparse(input)?;
        }
        if self.widen_halves(view)? {
            return Ok(true);
        }
        let Ok(output) = view.output(0) else { return Ok(false) };
        if view.kind == "DENSIFY" {
            return self.densify(view.input(0)?, output).map(|()| true);
        }
        if view.kind == "SHAPE" {
            let shape: Vec<i64> = self.shape(view.input(0)?)?.iter().map(|&d| d as i64).collect();
            let rank = vec![shape.len()];
            return self.keep(output, rank, &shape);
        }
        if view.kind == "RANK" {
            let rank = self.shape(view.input(0)?)?.len();
            let shape = self.shape(output)?;
            return self.keep(output, shape, &[rank as i64]);
        }
        if view.outputs.len() != 1 {
            return Ok(false);
        }
        match self.info(output).dtype() {
            Some(DType::I32 | DType::I64) => self.fold_integers(view, output),
            Some(DType::Bool) => self.fold_truth(view, output),
            _ => Ok(false),
        }
    }

    /// Comparisons of integers, and what logical operators make of them.
    fn fold_truth(&mut self, view: View<'_, '_>, output: usize) -> Result<bool> {
        let mut operands = Vec::new();
        for input in view.inputs {
            let Some(constant) = input.map(|i| self.constant(i)).transpose()?.flatten() else {
                return Ok(false);
            };
            self.budget.take(&constant.dtype.name(), &constant.shape, FOLDED)?;
            let Some(values) = constant.compared() else {
                return Ok(false);
            };
            operands.push(values);
        }
        let f: fn(i64, i64) -> bool = match view.kind {
            "EQUAL" => |a, b| a == b,
            "NOT_EQUAL" => |a, b| a != b,
            "LESS" => |a, b| a < b,
            "LESS_EQUAL" => |a, b| a <= b,
            "GREATER" => |a, b| a > b,
            "GREATER_EQUAL" => |a, b| a >= b,
            "LOGICAL_AND" => |a, b| a & b != 0,
            "LOGICAL_OR" => |a, b| a | b != 0,
            "LOGICAL_NOT" => |a, _| a == 0,
            _ => return Ok(false),
        };
        let (a, b) = match (view.kind, operands.as_slice()) {
            ("LOGICAL_NOT", [a]) => (a, a),
            (_, [a, b]) if a.len() == b.len() || a.len() == 1 || b.len() == 1 => (a, b),
            _ => return Ok(false),
        };
        let len = a.len().max(b.len());
        let values: Vec<i64> = (0..len).map(|i| i64::from(f(a[i % a.len()], b[i % b.len()]))).collect();
        let shape = self.shape(output)?;
        self.keep(output, shape, &values)
    }

    fn fold_integers(&mut self, view: View<'_, '_>, output: usize) -> Result<bool> {
        let mut operands = Vec::new();
        for input in view.inputs {
            let Some(constant) = input.map(|i| self.constant(i)).transpose()?.flatten() else {
                return Ok(false);
            };
            self.budget.take(&constant.dtype.name(), &constant.shape, FOLDED)?;
            let Some(values) = constant.integers() else {
                return Ok(false);
            };
            operands.push((constant.shape, values));
        }
        match (view.kind, operands.as_slice()) {
            ("RESHAPE" | "SQUEEZE" | "EXPAND_DIMS" | "CAST", [(_, values), ..]) => {
                let shape = self.shape(output)?;
                self.keep(output, shape, values)
            }
            ("ADD" | "SUB" | "MUL" | "MINIMUM" | "MAXIMUM", [(a_shape, a), (b_shape, b)]) => {
                if a_shape != b_shape && a.len() != 1 && b.len() != 1 {
                    return Ok(false);
                }
                let f = |a: i64, b: i64| match view.kind {
                    "ADD" => a.wrapping_add(b),
                    "SUB" => a.wrapping_sub(b),
                    "MUL" => a.wrapping_mul(b),
                    "MINIMUM" => a.min(b),
                    _ => a.max(b),
                };
                let len = a.len().max(b.len());
                let values: Vec<i64> = (0..len).map(|i| f(a[i % a.len()], b[i % b.len()])).collect();
                let shape = self.shape(output)?;
                self.keep(output, shape, &values)
            }
            ("BROADCAST_ARGS", [(_, a), (_, b)]) => {
                let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
                let missing = long.len() - short.len();
                let aligned = std::iter::repeat_n(&1, missing).chain(short).zip(long);
                let extents: Option<Vec<i64>> = aligned
                    .map(|(&a, &b)| match (a, b) {
                        (1, n) | (n, 1) => Some(n),
                        (a, b) => Some(a).filter(|_| a == b),
                    })
                    .collect();
                let Some(extents) = extents else {
                    return Err(Error::input(format!("shapes {a:?} and {b:?}")).expected("extents that broadcast"));
                };
                self.keep(output, vec![extents.len()], &extents)
            }
            ("PACK" | "CONCATENATION", all) if all.iter().all(|(shape, _)| shape.len() <= 1) => {
                let values: Vec<i64> = all.iter().flat_map(|(_, values)| values.clone()).collect();
                let shape = self.shape(output)?;
                self.keep(output, shape, &values)
            }
            ("STRIDED_SLICE" | "SLICE", [(shape, values), ..]) if shape.len() == 1 => {
                let slice = match view.kind {
                    "SLICE" => self.slice_of(view)?,
                    _ => self.strided_slice_of(view)?,
                };
                let from = |i: usize| slice.begin[0] as i64 + i as i64 * slice.stride[0] as i64;
                let picked: Option<Vec<i64>> = (0..slice.extent[0])
                    .map(|i| usize::try_from(from(i)).ok().and_then(|at| values.get(at).copied()))
                    .collect();
                let shape = self.shape(output)?;
                picked.map_or(Ok(false), |values| self.keep(output, shape, &values))
            }
            _ => Ok(false),
        }
    }

    /// Makes a constant that is stored sparsely dense, once.
    fn read_sparse(&mut self, index: usize) -> Result<()> {
        let info = self.info(index);
        let (Some(sparsity), Some(data)) = (info.sparsity, info.data) else {
            return Ok(());
        };
        if self.scope.dense.contains_key(&index) {
            return Ok(());
        }
        let shape = self.shape(index)?;
        let element = match info.kind {
            FLOAT16 => 2,
            _ => self.dtype(index)?.bytes(),
        };
        let dense = (self.budget)
            .take(&info.type_name(), &shape, element)
            .and_then(|_| sparse::densify(sparsity, &shape, data, element))
            .map_err(|error| error.at(format_args!("tensor {index} `{}`", info.name)))?;
        self.scope.dense.insert(index, dense.into());
        Ok(())
    }

    /// The value of the constant `from`, however it is stored.
    fn densify(&mut self, from: usize, to: usize) -> Result<()> {
        let (info, result) = (self.info(from), self.info(to));
        if info.kind != result.kind || info.shape != result.shape {
            let of = |info: &TensorInfo<'_>| format!("{} {:?}", info.type_name(), info.shape);
            return Err(Error::input(format!("the result is {}", of(result))).expected(of(info)));
        }
        if info.data.is_none() {
            return Err(Error::input(format!("`{}` has no data", info.name)).expected("sparse weights of the file"));
        }
        self.has_no_value(to)?;
        if info.kind == FLOAT16 {
            self.scope
                .dense
                .extend(self.stored(from, 2)?.map(|halves| (to, halves)));
        } else if let Some(value) = self.constant(from)? {
            self.scope.folded.insert(to, value);
            self.scope.made.insert(to, self.parameter_of(from));
        }
        Ok(())
    }

    /// Notes the value of `output`; false where it does not fit what the file says of that tensor.
    fn keep(&mut self, output: usize, shape: Vec<usize>, values: &[i64]) -> Result<bool> {
        let dtype = self.dtype(output)?;
        if self.shape(output)? != shape || shape.iter().product::<usize>() != values.len() {
            return Ok(false);
        }
        self.budget.take(&dtype.name(), &shape, FOLDED)?;
        let Some(constant) = Constant::of_integers(dtype, shape, values) else {
            return Ok(false);
        };
        self.scope.folded.insert(output, constant);
        Ok(true)
    }
}
