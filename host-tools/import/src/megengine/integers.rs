//! Shape arithmetic, which is folded: values known before the network runs.

use super::dump::Operator;
use super::work::{Integer, Work};
use crate::error::{Error, Result};
use crate::graph::DType;

impl<'a, 't> Work<'a, 't, '_> {
    pub(super) fn is_integers(&self, id: &str) -> bool {
        self.integers.contains_key(id)
            || self
                .constants
                .get(id)
                .is_some_and(|(_, v)| v.bytes.is_none() && v.value.is_some())
    }

    pub(super) fn shape_arithmetic(&mut self, operator: &'a Operator<'t>) -> Result<()> {
        let [output] = operator.outputs.as_slice() else {
            return Err(operator.error("shape arithmetic has one output"));
        };
        let operand = |work: &Self, index: usize| {
            let id = operator.inputs.get(index);
            id.and_then(|id| work.integers_of(id))
                .ok_or_else(|| operator.error(format!("input {index} is not known before the network runs")))
        };
        let literal = false;
        let values = match (operator.kind.as_str(), operator.inputs.as_slice()) {
            ("GetVarShape", [x]) => {
                let x = self.tensors.get(x.as_str()).copied();
                let x =
                    x.ok_or_else(|| operator.error("it asks for the shape of something that no kernel computes"))?;
                let shape = self.builder.shape(x).iter();
                shape
                    .map(|&n| Integer {
                        value: n as i64,
                        literal,
                    })
                    .collect()
            }
            ("Subtensor", [_, _]) => {
                let (of, index) = (operand(self, 0)?, operand(self, 1)?);
                let [Integer { value: index, .. }] = index.as_slice() else {
                    return Err(operator
                        .error("a slice with other than one index")
                        .expected("one index"));
                };
                let from_end = if *index < 0 { of.len() as i64 } else { 0 };
                let at = index.checked_add(from_end).and_then(|i| usize::try_from(i).ok());
                let value = at.and_then(|i| of.get(i)).copied();
                vec![value.ok_or_else(|| operator.error(format!("index {index} into {} values", of.len())))?]
            }
            ("Concat", inputs) => {
                let parts: Result<Vec<_>> = (0..inputs.len()).map(|index| operand(self, index)).collect();
                parts?.concat()
            }
            (kind, inputs) => {
                let message = format!("{kind} with {} inputs", inputs.len());
                return Err(operator.locate(Error::unsupported(message)));
            }
        };
        let variable = self.trace.variable(operator, output)?;
        if let (None, Some(stated)) = (self.rebatch, &variable.value)
            && !stated.iter().copied().eq(values.iter().map(|v| v.value))
        {
            let found: Vec<i64> = values.iter().map(|v| v.value).collect();
            return Err(operator.error(format!("the trace says {stated:?}, the inputs say {found:?}")));
        }
        let inputs = self.edges(&operator.inputs);
        let tensor = self.builder.outside(&variable.name, &[values.len()], DType::I32);
        self.tensors.insert(output, tensor);
        self.integers.insert(output, values);
        self.bookkeeping(operator, &inputs, &[tensor]);
        Ok(())
    }

    pub(super) fn integers_of(&self, id: &str) -> Option<Vec<Integer>> {
        if let Some(values) = self.integers.get(id) {
            return Some(values.clone());
        }
        let values = self.constants.get(id)?.1.value.as_ref()?;
        Some(values.iter().map(|&value| Integer { value, literal: true }).collect())
    }
}
