//! Variables: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, and the subgraph that CALL_ONCE runs.
//!
//! A variable becomes one state tensor, with the shape and quantisation of what is first read from it or assigned to it. Its value
//! after a reset is what the initialising subgraph assigns, run here; without one it is the zero point, as in TensorFlow
//! Lite Micro.

use std::collections::HashMap;

use super::constant::Constant;
use super::importer::{Importer, View};
use crate::error::{Error, Result};
use crate::graph::{DType, Data, Op, Tensor, TensorId, TensorKind};

impl Importer<'_, '_> {
    pub(super) fn var_handle(&mut self, view: View<'_, '_>) -> Result<()> {
        let variable = self.variables.of(view.text(0)?, view.text(1)?);
        self.scope.handles.insert(view.output(0)?, variable);
        Ok(())
    }

    pub(super) fn read_variable(&mut self, view: View<'_, '_>) -> Result<()> {
        let y = self.output(view.output(0)?)?;
        let state = self.state_of(view.input(0)?, y)?;
        self.node(view, "", Op::ReadState, vec![Some(state)], vec![y]);
        Ok(())
    }

    pub(super) fn assign_variable(&mut self, view: View<'_, '_>) -> Result<()> {
        let value = self.operand(view.input(1)?)?;
        let state = self.state_of(view.input(0)?, value)?;
        self.node(view, "", Op::AssignState, vec![Some(state), Some(value)], Vec::new());
        Ok(())
    }

    /// Runs the subgraph: constants assigned to variables.
    pub(super) fn call_once(&mut self, view: View<'_, '_>) -> Result<()> {
        let number = self.called(view, 0)?;
        // The same translation, on the other subgraph: shape arithmetic is folded, assignments are collected.
        let mut inner = Importer::new(self.model, number);
        let mut handles: HashMap<usize, usize> = HashMap::new();
        for (at, operator) in inner.scope.graph.operators.iter().enumerate() {
            let kind = self.model.codes[operator.code].name();
            let inner_view = View::new((number, at), &kind, operator);
            let place = |e: Error| e.at(format_args!("subgraph {number}, operator {at} ({kind})"));
            match kind.as_str() {
                "VAR_HANDLE" => {
                    let variable = self.variables.of(inner_view.text(0)?, inner_view.text(1)?);
                    handles.insert(inner_view.output(0)?, variable);
                }
                "ASSIGN_VARIABLE" => {
                    let variable = inner_view.input(0).and_then(|h| {
                        handles
                            .get(&h)
                            .copied()
                            .ok_or_else(|| Error::input("the handle is no VAR_HANDLE's"))
                    });
                    let value = inner_view.input(1).and_then(|v| inner.constant(v));
                    let (variable, Constant { bytes, .. }) = match (variable.map_err(place)?, value.map_err(place)?) {
                        (variable, Some(value)) => (variable, value),
                        _ => return Err(place(not_constant())),
                    };
                    self.variables.all[variable].value = Some(bytes.into_owned());
                }
                _ if inner.fold(inner_view).map_err(place)? => {}
                _ => return Err(place(not_constant())),
            }
        }
        Ok(())
    }

    /// Gives every state its value after a reset.
    pub(super) fn initialise_variables(&mut self) -> Result<()> {
        for variable in &mut self.variables.all {
            let (Some(id), Some(value)) = (variable.tensor, variable.value.take()) else {
                continue;
            };
            let tensor = self.out.tensor_mut(id);
            if value.len() != tensor.bytes() {
                return Err(Error::input(format!(
                    "variable `{}` is initialised with {} bytes",
                    variable.name,
                    value.len()
                ))
                .expected(format!(
                    "{} for {} {:?}",
                    tensor.bytes(),
                    tensor.dtype.name(),
                    tensor.shape
                )));
            }
            tensor.kind = TensorKind::State(Data::Bytes(value.into()));
        }
        Ok(())
    }

    /// The state tensor behind a handle; `like` is what is read from it or assigned to it.
    fn state_of(&mut self, handle: usize, like: TensorId) -> Result<TensorId> {
        let Some(&variable) = self.scope.handles.get(&handle) else {
            let name = &self.info(handle).name;
            return Err(Error::input(format!("the handle `{name}` is no VAR_HANDLE's")));
        };
        let like = self.out.tensor(like).clone();
        if let Some(id) = self.variables.all[variable].tensor {
            let state = self.out.tensor(id);
            return if (&state.shape, state.dtype) == (&like.shape, like.dtype) {
                Ok(id)
            } else {
                Err(
                    Error::input(format!("variable `{}` is used as {:?}", state.name, like.shape)).expected(format!(
                        "{} {:?}, as before",
                        state.dtype.name(),
                        state.shape
                    )),
                )
            };
        }
        let fill = match (&like.quant, like.dtype) {
            (Some(quant), DType::I8 | DType::U8 | DType::I16 | DType::I32) => quant.zero_point[0] as u8,
            _ => 0,
        };
        let data = Data::Bytes(vec![fill; like.bytes()].into());
        let name = self.variables.all[variable].name.clone();
        let id = self.add_const(Tensor {
            name,
            kind: TensorKind::State(data),
            ..like
        });
        self.variables.all[variable].tensor = Some(id);
        Ok(id)
    }
}

fn not_constant() -> Error {
    Error::unsupported("it computes an initial value that is no constant")
        .help("initialise the variables with constants in the model before converting it")
}
