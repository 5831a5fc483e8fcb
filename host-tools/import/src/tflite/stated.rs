//! Options that state facts of an operator's tensors a second time: their number and their types.

use super::importer::{Importer, View};
use super::schema::type_name;
use crate::error::{Error, Result};

impl Importer<'_, '_> {
    /// Refuses options that contradict the tensors. One that is 0 states nothing: it is the default, which files leave out.
    pub(super) fn check_stated(&self, view: View<'_, '_>) -> Result<()> {
        let (inputs, outputs) = (view.inputs.len(), view.outputs.len());
        match view.kind {
            "SPLIT" | "SPLIT_V" => count(view, "NumSplits", outputs, "results"),
            "PACK" => count(view, "ValuesCount", inputs, "operands"),
            "UNPACK" => count(view, "Num", outputs, "results"),
            "CAST" => {
                self.check_type(view, (0, "InDataType"), view.input(0)?)?;
                self.check_type(view, (1, "OutDataType"), view.output(0)?)
            }
            "ARG_MAX" | "ARG_MIN" => self.check_type(view, (0, "OutputType"), view.output(0)?),
            "SHAPE" => self.check_type(view, (0, "OutType"), view.output(0)?),
            _ => Ok(()),
        }?;
        self.check_intermediates(view)
    }

    fn check_type(&self, view: View<'_, '_>, (field, option): (usize, &str), tensor: usize) -> Result<()> {
        let (stated, info) = (view.option::<u8>(field, 0)?, self.info(tensor));
        if stated == 0 || stated == info.stated_kind() {
            return Ok(());
        }
        Err(
            Error::input(format!("option {option} is {}", type_name(stated))).expected(format!(
                "{}, the type of `{}`",
                info.type_name(),
                info.name
            )),
        )
    }

    /// Scales of the sums within an LSTM: tensors that hold nothing else.
    fn check_intermediates(&self, view: View<'_, '_>) -> Result<()> {
        for info in view.intermediates.iter().map(|&index| self.info(index)) {
            if let Some(scale) = info.scale.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
                return Err(
                    Error::input(format!("scale {scale} of the intermediate `{}`", info.name))
                        .expected("a finite scale that is not below zero"),
                );
            }
        }
        Ok(())
    }
}

fn count(view: View<'_, '_>, option: &str, found: usize, what: &str) -> Result<()> {
    let stated = view.option::<i32>(0, 0)?;
    if stated == 0 || usize::try_from(stated) == Ok(found) {
        return Ok(());
    }
    Err(Error::input(format!("option {option} is {stated}")).expected(format!("{found}, the number of its {what}")))
}
