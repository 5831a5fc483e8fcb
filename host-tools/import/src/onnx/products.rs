//! Matrix products.

use super::fold::fold_linear;
use super::importer::{Importer, Value, View};
use crate::compose::{self, Compose};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, DType, Op, ReduceKind};

impl<'a> Importer<'_, 'a> {
    /// `x [.., k]` times `w [n, k]`, plus a bias `[n]`.
    pub(super) fn linear(&mut self, x: &Value, w: &Value, bias: Option<&Value>) -> Result<Value> {
        let known = |value: &Value| match value {
            Value::Array(array) => Some(array.clone()),
            _ => None,
        };
        if let (Some(x), Some(w), true) = (known(x), known(w), bias.is_none_or(|bias| known(bias).is_some())) {
            let bias = bias.and_then(known);
            if let Some(product) = fold_linear(&self.budget, &x, &w, bias.as_deref())? {
                return Ok(product.into());
            }
        }
        let mut inputs = vec![self.real(x)?, self.real(w)?];
        if let Some(bias) = bias {
            inputs.push(self.real(bias)?);
        }
        let activation = Activation::None;
        Ok(Value::Tensor(self.emit(Op::Linear { activation }, &inputs)?))
    }

    /// `a [.., m, k]` times `b [.., n, k]`, for each matrix of the batch.
    pub(super) fn products(&mut self, a: &Value, b: &Value) -> Result<Value> {
        compose::products(self, a, b)
    }

    /// NumPy's matrix product.
    pub(super) fn multiplied(&mut self, a: &Value, b: &Value) -> Result<Value> {
        compose::multiplied(self, a, b)
    }

    pub(super) fn mat_mul(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (a, b) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let y = self.multiplied(&a, &b)?;
        self.bind(view, 0, y)
    }

    pub(super) fn mat_mul_integer(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (a, b) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let terms = self.shape(&a).last().copied().unwrap_or(0);
        self.exact_terms(terms)?;
        let (zero_a, zero_b) = (self.optional(view, 2)?, self.optional(view, 3)?);
        // A zero point for each row of the first operand stands along its last axis but one.
        let zero_a = match zero_a {
            Some(zero) if self.shape(&zero).len() == 1 && self.shape(&zero) != [1] => {
                let rows = self.shape(&zero)[0];
                Some(self.reshape(&zero, &[rows, 1])?)
            }
            other => other,
        };
        let (a, b) = (self.centred(&a, zero_a.as_ref())?, self.centred(&b, zero_b.as_ref())?);
        let y = self.multiplied(&a, &b)?;
        let y = self.tensor(&y)?;
        let y = self.cast_tensor(y, DType::I32)?;
        self.bind(view, 0, Value::Tensor(y))
    }

    pub(super) fn gemm(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (a, b, c) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
        let y = self.general_product(view, a, b, c)?;
        self.bind(view, 0, y)
    }

    /// The product of two matrices as the node's attributes say, plus `c`.
    pub(super) fn general_product(
        &mut self,
        view: View<'_, 'a>,
        mut a: Value,
        mut b: Value,
        mut c: Option<Value>,
    ) -> Result<Value> {
        let (alpha, beta) = (view.float("alpha", 1.0)?, view.float("beta", 1.0)?);
        if self.shape(&a).len() != 2 || self.shape(&b).len() != 2 {
            return Err(Error::input(format!(
                "operands of shape {:?} and {:?}",
                self.shape(&a),
                self.shape(&b)
            ))
            .expected("two axes each"));
        }
        if view.flag("transA", false)? {
            a = self.transpose(&a, &[1, 0])?;
        }
        if !view.flag("transB", false)? {
            b = self.transpose(&b, &[1, 0])?;
        }
        let late = alpha != 1.0 && !matches!(b, Value::Array(_));
        if alpha != 1.0 && !late {
            b = self.with(BinaryOp::Mul, &b, alpha)?;
        }
        let outputs = self.shape(&b)[0];
        if let Some(c) = c.as_mut().filter(|_| beta != 1.0) {
            *c = self.with(BinaryOp::Mul, c, beta)?;
        }
        let bias = match &c {
            Some(Value::Array(array)) if !late && array.len() == array.shape.last().copied().unwrap_or(1) => {
                let flat = array.reshaped(&self.budget, &[array.len()])?;
                Some(flat.broadcast(&self.budget, &[outputs])?.into_owned().into())
            }
            _ => None,
        };
        let mut y = self.linear(&a, &b, bias.as_ref())?;
        if late {
            y = self.with(BinaryOp::Mul, &y, alpha)?;
        }
        if let (Some(c), None) = (&c, &bias) {
            y = self.binary(BinaryOp::Add, &y, c)?;
        }
        Ok(y)
    }

    pub(super) fn einsum(&mut self, view: View<'_, 'a>) -> Result<()> {
        let equation: String = view
            .text("equation", "")?
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let refused = |why: &str| {
            Error::unsupported(format!("the equation `{equation}`: {why}"))
                .expected("a product of two operands, or a sum of one")
                .help("write it with MatMul, Mul and ReduceSum")
        };
        if equation.contains('.') {
            return Err(refused("an ellipsis"));
        }
        let (from, to) = match equation.split_once("->") {
            Some((from, to)) => (from.to_string(), to.to_string()),
            None => {
                let letters = equation.chars().filter(|c| c.is_alphabetic());
                let mut once: Vec<char> = letters.filter(|c| equation.matches(*c).count() == 1).collect();
                once.sort_unstable();
                (equation.clone(), once.into_iter().collect())
            }
        };
        let terms: Vec<Vec<char>> = from.split(',').map(|term| term.chars().collect()).collect();
        let result: Vec<char> = to.chars().collect();
        let distinct = |term: &[char]| term.iter().enumerate().all(|(i, c)| !term[..i].contains(c));
        if terms.len() != view.node.inputs.len() || !terms.iter().all(|t| distinct(t)) || !distinct(&result) {
            return Err(refused("a letter twice in one operand"));
        }
        let known = |c: &char| terms.iter().any(|t| t.contains(c));
        if !result.iter().all(known) {
            return Err(refused("a letter of the result is in no operand"));
        }
        let mut operands = Vec::new();
        for (position, term) in terms.iter().enumerate() {
            let x = self.operand(view, position)?;
            if self.shape(&x).len() != term.len() {
                return Err(Error::input(format!(
                    "operand {position} of shape {:?} for `{equation}`",
                    self.shape(&x)
                )));
            }
            // Axes that nobody else has are summed at once.
            let wanted =
                |c: &char| result.contains(c) || terms.iter().enumerate().any(|(i, t)| i != position && t.contains(c));
            let alone: Vec<usize> = (0..term.len()).filter(|&a| !wanted(&term[a])).collect();
            let kept: Vec<char> = term.iter().copied().filter(|c| wanted(c)).collect();
            let x = if alone.is_empty() {
                x
            } else {
                self.reduce(ReduceKind::Sum, &x, &alone, false)?
            };
            operands.push((x, kept));
        }
        let y = match operands.as_slice() {
            [(x, letters)] => (x.clone(), letters.clone()),
            [(a, of_a), (b, of_b)] => self.contracted((a, of_a), (b, of_b), &result)?,
            _ => return Err(refused("more than two operands")),
        };
        let perm: Option<Vec<usize>> = result.iter().map(|c| y.1.iter().position(|l| l == c)).collect();
        let perm = perm.ok_or_else(|| Error::internal("a letter was lost"))?;
        let y = self.transpose(&y.0, &perm)?;
        self.bind(view, 0, y)
    }

    /// The sum of products of two operands over the letters that the result does not have.
    fn contracted(
        &mut self,
        (a, of_a): (&Value, &[char]),
        (b, of_b): (&Value, &[char]),
        result: &[char],
    ) -> Result<(Value, Vec<char>)> {
        let both = |c: &&char| of_b.contains(c);
        let batch: Vec<char> = of_a
            .iter()
            .filter(both)
            .filter(|c| result.contains(c))
            .copied()
            .collect();
        let summed: Vec<char> = of_a
            .iter()
            .filter(both)
            .filter(|c| !result.contains(c))
            .copied()
            .collect();
        let own = |term: &[char]| {
            term.iter()
                .filter(|c| !batch.contains(c) && !summed.contains(c))
                .copied()
                .collect()
        };
        let (rows, columns): (Vec<char>, Vec<char>) = (own(of_a), own(of_b));
        let mut arranged = |value: &Value, letters: &[char], own: &[char]| -> Result<(Value, Vec<usize>)> {
            let order: Vec<char> = batch.iter().chain(own).chain(&summed).copied().collect();
            let perm: Option<Vec<usize>> = order.iter().map(|c| letters.iter().position(|l| l == c)).collect();
            let moved = self.transpose(value, &perm.ok_or_else(|| Error::internal("a letter was lost"))?)?;
            let shape = self.shape(&moved);
            let (many, rest) = shape.split_at(batch.len());
            let (few, sums) = rest.split_at(own.len());
            let flat = [many, few, sums].map(|part| part.iter().product::<usize>());
            Ok((self.reshape(&moved, &flat)?, shape[..batch.len() + own.len()].to_vec()))
        };
        let (a, a_shape) = arranged(a, of_a, &rows)?;
        let (b, b_shape) = arranged(b, of_b, &columns)?;
        let y = self.products(&a, &b)?;
        let mut shape = a_shape;
        shape.extend(&b_shape[batch.len()..]);
        let letters = batch.iter().chain(&rows).chain(&columns).copied().collect();
        Ok((self.reshape(&y, &shape)?, letters))
    }

    /// A value for each index of `axis`, or a single one, as it broadcasts with `rank` axes.
    pub(super) fn along_axis(&mut self, value: &Value, axis: usize, rank: usize) -> Result<Value> {
        let shape = self.shape(value);
        match shape.as_slice() {
            [] => Ok(value.clone()),
            [count] => {
                let mut wide = vec![1; rank];
                if *count != 1 {
                    let extent = wide.get_mut(axis);
                    *extent.ok_or_else(|| Error::input(format!("{count} parameters along axis {axis} of {rank}")))? =
                        *count;
                }
                self.reshape(value, &wide)
            }
            _ => Err(Error::input(format!("parameters of shape {shape:?} along an axis"))),
        }
    }
}

impl Compose for Importer<'_, '_> {
    type Value = Value;

    fn shape(&self, value: &Value) -> Vec<usize> {
        Importer::shape(self, value)
    }

    fn reshape(&mut self, value: &Value, shape: &[usize]) -> Result<Value> {
        Importer::reshape(self, value, shape)
    }

    fn transpose(&mut self, value: &Value, perm: &[usize]) -> Result<Value> {
        Importer::transpose(self, value, perm)
    }

    fn part(&mut self, value: &Value, axis: usize, from: usize, extent: usize) -> Result<Value> {
        Importer::part(self, value, axis, from, extent)
    }

    fn concat(&mut self, values: &[Value], axis: usize) -> Result<Value> {
        Importer::concat(self, values, axis)
    }

    fn zeros_around(&mut self, value: &Value, pads: &[(usize, usize)]) -> Result<Value> {
        self.pad(value, pads, 0.0)
    }

    fn linear(&mut self, x: &Value, w: &Value) -> Result<Value> {
        Importer::linear(self, x, w, None)
    }
}
