//! `ethos-u`, the custom operator that Vela makes of what an Ethos-U computes: a payload for the NPU's driver, constants, and scratch that all tensors between
//! operators lie in, at offsets which the file's metadata state.

use arenite::kernels::ethos_u::commands::{Why, payload};
use arenite::ops::ethos_u::MOST_PORTS;

use super::importer::{Importer, View};
use crate::error::{Error, Result};
use crate::graph::{DType, Data, EthosU, Op, Tensor, TensorId, TensorKind};

/// Alignment of offsets in the scratch, in bytes.
const ALIGN: u32 = arenite::ARENA_ALIGN as u32;

impl Importer<'_, '_> {
    pub(super) fn ethos_u(&mut self, view: View<'_, '_>) -> Result<()> {
        // A flexbuffer of one number: the kind of the operator.
        if view.custom != [1, 4, 1] {
            return Err(Error::unsupported("options of an unknown kind").expected("1, as Vela writes it"));
        }
        let (stream, constants, scratch, fast) = (view.input(0)?, view.input(1)?, view.input(2)?, view.input(3)?);
        let no_stream = || Error::input("it has no command stream");
        if let Err(refused) = payload(self.info(stream).data.ok_or_else(no_stream)?) {
            let error = Error::unsupported(refused.to_string());
            return Err(match refused.why {
                Why::Product => error
                    .expected("ethos-u55-32 to ethos-u55-256, ethos-u65-256 or ethos-u65-512")
                    .help("compile the network with one of these as --accelerator-config"),
                _ => error.help("compile the network again with Vela"),
            });
        }
        let inputs = view.inputs.get(4..).unwrap_or_default();
        if inputs.len() > MOST_PORTS || !(1..=MOST_PORTS).contains(&view.outputs.len()) {
            let ports = format!("{} inputs and {} outputs", inputs.len(), view.outputs.len());
            return Err(Error::unsupported(ports).expected(format!("at most {MOST_PORTS} of each, and an output")));
        }
        // One memory for both.
        let fast_bytes = if fast == scratch { 0 } else { self.scratch(fast)? };
        let mut attrs = EthosU {
            scratch: self.scratch(scratch)?,
            fast: fast_bytes,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let mut operands = vec![self.blob(stream)?, self.blob(constants)?];
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for position in 4..view.inputs.len() {
            let x = view.input(position)?;
            let name = &self.info(x).name;
            if self.info(x).data.is_some() || self.info(x).variable {
                return Err(
                    Error::unsupported(format!("its input `{name}` is a constant or a variable"))
                        .expected("what the network computes in each run"),
                );
            }
            let (start, end) = self.place_in(scratch, x)?;
            if spans.iter().any(|&(from, to)| start < to && from < end) {
                return Err(Error::input(format!("its input `{name}` lies over another one")));
            }
            spans.push((start, end));
            attrs.inputs.push(start);
            operands.push(Some(self.operand(x)?));
        }
        let mut results = Vec::new();
        for &y in view.outputs {
            attrs.outputs.push(self.place_in(scratch, y)?.0);
            results.push(self.output(y)?);
        }
        self.node(view, "", Op::EthosU(attrs), operands, results);
        Ok(())
    }

    /// Bytes of a scratch.
    fn scratch(&self, index: usize) -> Result<u32> {
        self.expect_type(index, DType::U8)?;
        let extents = self.info(index).shape.iter();
        let bytes = extents.map(|&d| u64::try_from(d).unwrap_or(0)).product::<u64>();
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// The bytes of a constant as a tensor; none where it has none.
    fn blob(&mut self, index: usize) -> Result<Option<TensorId>> {
        self.expect_type(index, DType::U8)?;
        let Some(data) = self.info(index).data else {
            return Ok(None);
        };
        let tensor = Tensor::activation(self.info(index).name.clone(), &[data.len()], DType::U8);
        Ok(Some(self.add_const(Tensor {
            kind: TensorKind::Const(Data::Bytes(data.to_vec().into())),
            ..tensor
        })))
    }

    /// Where in the scratch a tensor begins and ends, by the memory plan of the file.
    fn place_in(&self, scratch: usize, index: usize) -> Result<(u32, u32)> {
        let name = &self.info(index).name;
        // The plan is of the main subgraph.
        let planned = self.model.planned.iter().take_while(|_| self.scope.number == 0);
        let planned: Vec<i32> = planned.copied().collect();
        let offset = |index: usize| planned.get(index).and_then(|&offset| u32::try_from(offset).ok());
        let place = offset(index).zip(offset(scratch));
        let start = place
            .and_then(|(offset, start)| offset.checked_sub(start))
            .ok_or_else(|| {
                Error::input(format!("the file does not say where in the scratch `{name}` is"))
                    .expected("metadata `OfflineMemoryAllocation`, as Vela writes it")
                    .help("leave the file as Vela has written it")
            })?;
        let bytes = self.shape(index)?.iter().product::<usize>() * self.dtype(index)?.bytes();
        let (end, all) = (start as usize + bytes, self.scratch(scratch)?);
        match u32::try_from(end) {
            Ok(end) if end <= all && start.is_multiple_of(ALIGN) => Ok((start, end)),
            _ => Err(
                Error::input(format!("`{name}` is byte {start} to {end} of the scratch"))
                    .expected(format!("a multiple of {ALIGN}, and at most {all}")),
            ),
        }
    }
}
