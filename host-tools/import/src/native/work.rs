//! A graph under construction from a trace.

use std::collections::HashMap;

use super::fields::Role;
use super::trace::{State, Trace, origin};
use crate::assume::Assumptions;
use crate::build::{Builder, NewNode, Weights, elements};
use crate::error::Result;
use crate::files::json::Json;
use crate::graph::{DType, Data, Expr, Op, Tensor, TensorId, TensorKind};

pub(super) struct Work<'w, 'a, 'o> {
    pub(super) trace: &'w Trace<'a>,
    pub(super) constants: &'w HashMap<String, Vec<u8>>,
    pub(super) rebatch: Option<(usize, usize)>,
    pub(super) assumptions: &'w mut Assumptions<'o>,
    pub(super) builder: Builder,
    pub(super) tensors: HashMap<String, TensorId>,
}

impl Work<'_, '_, '_> {
    /// The state and a node that reads it; readers read that node's output.
    pub(super) fn read_state(&mut self, state: &State<'_>) -> Result<TensorId> {
        let declared = self.trace.declared(&state.input, &state.json)?;
        let bytes = elements(&declared.shape)? * declared.dtype.bytes();
        let id = self.builder.tensor(Tensor {
            kind: TensorKind::State(Data::Bytes(vec![0; bytes].into())),
            ..Tensor::activation(&state.input, &declared.shape, declared.dtype)
        })?;
        let name = format!("{}.read", state.input);
        let node = NewNode {
            name: &name,
            kind: "read_state",
            op: Op::ReadState,
            inputs: &[Some(id)],
            output: &name,
            origin: origin(&state.json),
        };
        let read = self.builder.node_of_shape(node, &declared.shape)?;
        self.tensors.insert(state.input.clone(), read);
        Ok(id)
    }

    /// A tensor as it stands.
    pub(super) fn tensor(&mut self, name: &str, at: &Json<'_>) -> Result<TensorId> {
        self.view(name, at, &Weights::Same)
    }

    /// A tensor; parameters and constants moved as the operator wants them.
    pub(super) fn view(&mut self, name: &str, at: &Json<'_>, weights: &Weights) -> Result<TensorId> {
        let declared = self.trace.declared(name, at)?;
        match declared.role {
            Role::Parameter if declared.dtype == DType::F32 => self.builder.param(name, &declared.shape, weights),
            Role::Parameter | Role::Constant => {
                if let (Weights::Same, Some(&id)) = (weights, self.tensors.get(name)) {
                    return Ok(id);
                }
                let bytes = self.constants.get(name).ok_or_else(|| {
                    at.error(format!("the value of constant `{name}` is unknown"))
                        .help("a trace with constants names the file that holds them in `parameters`")
                })?;
                if let Some(quant) = &declared.quant {
                    let id = self.real(name, declared, quant, bytes, weights)?;
                    if *weights == Weights::Same {
                        self.tensors.insert(name.to_string(), id);
                    }
                    return Ok(id);
                }
                match weights {
                    Weights::Same => {
                        let data = Data::Bytes(bytes.as_slice().into());
                        let id = self.builder.constant(name, &declared.shape, declared.dtype, data);
                        self.tensors.insert(name.to_string(), id);
                        Ok(id)
                    }
                    moved => {
                        let values = bytes.as_chunks::<4>().0.iter().map(|raw| f32::from_le_bytes(*raw));
                        let value = moved.of(Expr::Literal {
                            values: values.collect(),
                            shape: declared.shape.clone(),
                        })?;
                        let shape = value.shape();
                        Ok(self.builder.constant(name, &shape, DType::F32, Data::Lazy(value)))
                    }
                }
            }
            Role::Input | Role::Activation | Role::State => self.tensors.get(name).copied().ok_or_else(|| {
                at.error(format!("`{name}` is read before any operator writes it"))
                    .help("operators stand in execution order; a cycle has no such order")
            }),
        }
    }
}
