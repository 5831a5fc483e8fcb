//! Variables: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE, and the subgraph that CALL_ONCE runs.
//!
//! A variable becomes one state tensor, with the shape and quantisation of what is first read from it or assigned to it. Its value
//! after a reset is what the initialising subgraph assigns, run here; without one it is the zero point, as in TensorFlow
//! Lite Micro.
//!
//! CIRCULAR_BUFFER, a custom operator of TensorFlow Lite Micro, keeps its result in a variable of its own.

use std::collections::HashMap;

use super::constant::Constant;
use super::flexbuffer::Options;
use super::importer::{Importer, View};
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Data, Op, Tensor, TensorId, TensorKind};

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

    /// CIRCULAR_BUFFER: the last frames, the newest one behind the others. Before there are as many, they are zero points.
    pub(super) fn circular_buffer(&mut self, view: View<'_, '_>) -> Result<()> {
        self.state_of_its_own()?;
        let (x, y) = (view.input(0)?, view.output(0)?);
        let (frame, shape) = (self.shape(x)?, self.shape(y)?);
        let (&[1, 1, rows, channels], &[1, slots, out_rows, out_channels]) = (frame.as_slice(), shape.as_slice())
        else {
            return Err(Error::input(format!("a frame {frame:?} into {shape:?}"))
                .expected("[1, 1, rows, channels] into [1, frames, rows, channels]"));
        };
        if (rows, channels) != (out_rows, out_channels) {
            return Err(Error::input(format!("a frame {frame:?} into {shape:?}"))
                .expected(format!("frames of {rows} rows and {channels} channels")));
        }
        self.expect_type(y, DType::I8)?;
        let (own, of_frame) = (self.scale_of(y)?, self.scale_of(x)?);
        if own != of_frame {
            return Err(Error::unsupported(format!(
                "frames of scale {} and zero point {} into a buffer of scale {} and zero point {}",
                of_frame.scale[0], of_frame.zero_point[0], own.scale[0], own.zero_point[0]
            ))
            .expected("one scale and zero point")
            .help("insert QUANTIZE before the operator"));
        }
        let given = match view.custom {
            [] => 0,
            options => Options::read(options)?.integer("cycles_max")?,
        };
        // Where no number is given, TensorFlow Lite Micro goes by that of the frames.
        let cycles = match (given, slots) {
            (..=0, 5 | 13) => 1,
            (..=0, _) => 2,
            (given, _) => given,
        };
        if cycles != 1 {
            return Err(Error::unsupported(format!(
                "what follows is to run every {cycles} runs (cycles_max {given})"
            ))
            .expected("cycles_max 1: a run here computes all its steps")
            .help(
                "set cycles_max to 1, or make what follows a model of its own and call it as often as it is to run",
            ));
        }
        let frame = self.operand(x)?;
        let older = if slots == 1 {
            None
        } else {
            Some(self.older_frames(view, y, &shape)?)
        };
        let y = self.output(y)?;
        let Some((older, state)) = older else {
            self.node(view, "", Op::Reshape, vec![Some(frame)], vec![y]);
            return Ok(());
        };
        let activation = Activation::None;
        self.node(
            view,
            "",
            Op::Concat { axis: 1, activation },
            vec![Some(older), Some(frame)],
            vec![y],
        );
        self.node(view, "/keep", Op::AssignState, vec![Some(state), Some(y)], Vec::new());
        Ok(())
    }

    /// The frames of the buffer `y` but the first, as the last run has left them; and where they are kept.
    fn older_frames(&mut self, view: View<'_, '_>, y: usize, shape: &[usize]) -> Result<(TensorId, TensorId)> {
        let quant = self.scale_of(y)?;
        let zero = quant.zero_point[0] as u8;
        let state = self.add_const(Tensor {
            kind: TensorKind::State(Data::Bytes(vec![zero; shape.iter().product()].into())),
            quant: Some(quant),
            ..Tensor::activation(format!("{}.state", self.info(y).name), shape, DType::I8)
        });
        let kept = self.then(view, "/kept", y, (Op::ReadState, shape.to_vec()), vec![Some(state)])?;
        let mut extent = shape.to_vec();
        extent[1] -= 1;
        let mut begin = vec![0; shape.len()];
        begin[1] = 1;
        let slice = Op::Slice {
            begin,
            stride: vec![1; shape.len()],
        };
        let older = self.then(view, "/older", y, (slice, extent), vec![Some(kept)])?;
        Ok((older, state))
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
