//! A dump on its way to a graph: what is known so far, and how nodes are added.

use std::collections::{HashMap, HashSet};

use super::dump::{Dump, Operator, Variable};
use crate::assume::Assumptions;
use crate::build::{Builder, NewNode, Weights, elements};
use crate::error::{Error, Result};
use crate::graph::{DType, Data, Op, Origin, Role, Tensor, TensorId, TensorKind};

pub(super) struct Work<'a, 't, 'o> {
    pub(super) trace: &'a Dump<'t>,
    pub(super) builder: Builder,
    pub(super) images: &'a HashMap<String, Vec<usize>>,
    pub(super) rebatch: Option<(usize, usize)>,
    pub(super) assumptions: &'a mut Assumptions<'o>,
    /// Variables that some operator reads.
    pub(super) read: HashSet<&'a str>,
    pub(super) tensors: HashMap<&'a str, TensorId>,
    /// Shape arithmetic, folded.
    pub(super) integers: HashMap<&'a str, Vec<Integer>>,
    /// Constants by variable: the operator and its variable.
    pub(super) constants: HashMap<&'a str, (&'a Operator<'t>, &'a Variable<'t>)>,
    pub(super) outputs: Vec<TensorId>,
    /// Kinds of operators that are not known, each with its line: what follows is looked at all the same, so that one message names all.
    pub(super) unknown: Vec<(String, String)>,
    pub(super) workspaces: usize,
}

/// A value of the shape arithmetic, and whether the trace states it as a literal rather than by asking for a shape.
#[derive(Clone, Copy)]
pub(super) struct Integer {
    pub(super) value: i64,
    pub(super) literal: bool,
}

impl<'a, 't> Work<'a, 't, '_> {
    pub(super) fn node(
        &mut self,
        operator: &Operator<'_>,
        op: Op,
        inputs: &[TensorId],
        output: &str,
    ) -> Result<TensorId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.builder.node(NewNode {
            name: &operator.name,
            kind: &operator.kind,
            op,
            inputs: &inputs,
            output,
            origin: origin(operator),
        })
    }

    pub(super) fn operands<const N: usize>(&mut self, operator: &'a Operator<'t>) -> Result<Vec<TensorId>> {
        if operator.inputs.len() != N {
            return Err(operator
                .error(format!("it has {} inputs", operator.inputs.len()))
                .expected(N));
        }
        operator.inputs.iter().map(|id| self.operand(operator, id)).collect()
    }

    /// The tensor of a variable: an activation, a parameter (it has memory of its own), or a constant of a stated value.
    pub(super) fn operand(&mut self, operator: &Operator<'_>, id: &'a str) -> Result<TensorId> {
        if let Some(&tensor) = self.tensors.get(id) {
            return Ok(tensor);
        }
        let Some(&(source, variable)) = self.constants.get(id) else {
            return Err(operator
                .error(format!("it reads variable {id} before anything writes it"))
                .help("the operators form a cycle, or comp_seq is not in the order of execution"));
        };
        let shape = (variable.shape.as_deref()).ok_or_else(|| source.error("a constant without a shape"))?;
        let tensor = match (&variable.value, variable.bytes) {
            (Some(values), None) if values.len() == elements(shape)? => {
                let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
                self.builder.tensor(Tensor {
                    kind: TensorKind::Const(Data::from_f32(&values)),
                    ..Tensor::activation(&source.name, shape, DType::F32)
                })?
            }
            _ => self.builder.param(&source.name, shape, &Weights::Same)?,
        };
        self.tensors.insert(id, tensor);
        Ok(tensor)
    }

    /// Everything that the footprint and the variable state about an operator must be what the graph infers.
    pub(super) fn check_footprint(&self, operator: &Operator<'_>, output: &str, tensor: TensorId) -> Result<()> {
        let footprint = operator.footprint()?;
        let shape = self.builder.shape(tensor);
        let stated = [
            ("footprint", footprint.out_shapes.first()),
            ("variable", self.trace.variable(operator, output)?.shape.as_ref()),
        ];
        for (what, stated) in stated.into_iter().filter_map(|(what, s)| s.map(|s| (what, s))) {
            if stated != shape {
                return Err(operator
                    .error(format!("its {what} says that its output has shape {stated:?}"))
                    .expected(format!("{shape:?}, which follows from its inputs and parameters")));
            }
        }
        if footprint.in_shapes.len() != operator.inputs.len() {
            return Err(operator.error(format!("{} input shapes in its footprint", footprint.in_shapes.len())));
        }
        for (id, stated) in operator.inputs.iter().zip(&footprint.in_shapes) {
            let actual = match self.constants.get(id.as_str()) {
                Some((_, variable)) => variable.shape.as_deref(),
                None if self.integers.contains_key(id.as_str()) => continue,
                None => self.tensors.get(id.as_str()).map(|&id| self.builder.shape(id)),
            };
            if actual.is_some_and(|actual| actual != stated) {
                return Err(operator
                    .error(format!("its footprint says that it reads {stated:?}"))
                    .expected(format!("{:?}", actual.unwrap_or_default())));
            }
        }
        let macs = crate::graph::facts::macs(self.builder.graph(), self.builder.graph().nodes.len().saturating_sub(1));
        if let (true, Some(stated)) = (macs > 0, footprint.computation)
            && stated != macs.saturating_mul(2)
        {
            return Err(operator
                .error(format!("its footprint counts {stated} operations"))
                .expected(format!("{}, two for each multiply-accumulate", macs.saturating_mul(2))));
        }
        if let (Some(stated), false) = (footprint.memory, operator.kind == "Reshape") {
            let inputs = footprint.in_shapes.iter().map(|s| s.as_slice());
            let bytes = inputs
                .chain([shape])
                .try_fold(0u64, |sum, s| Ok::<u64, Error>(sum + 4 * elements(s)? as u64))?;
            if stated != bytes {
                return Err(operator
                    .error(format!("its footprint counts {stated} bytes of memory"))
                    .expected(format!("{bytes} for its inputs and its output")));
            }
        }
        Ok(())
    }

    pub(super) fn edges(&self, ids: &[String]) -> Vec<TensorId> {
        ids.iter()
            .filter_map(|id| self.tensors.get(id.as_str()).copied())
            .collect()
    }

    pub(super) fn bookkeeping(&mut self, operator: &Operator<'_>, inputs: &[TensorId], outputs: &[TensorId]) {
        let (name, kind) = (&operator.name, &operator.kind);
        self.builder
            .opaque(name, kind, Role::Bookkeeping, inputs, outputs, origin(operator));
    }
}

pub(super) fn origin(operator: &Operator<'_>) -> Origin {
    Origin {
        line: Some(operator.json.line()),
        path: operator.json.path().to_string(),
    }
}
