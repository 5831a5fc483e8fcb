//! Accesses of cores, or of a core and its accelerator, at one time: the proof's own comparison.

use arenite::{Access, Declaration, Operand, Slot};

use crate::model::ModelView;
use crate::{Error, Result};

/// Accesses of a file's cores since the last barrier: the step, and the operand.
#[derive(Default)]
pub(super) struct Together<'f> {
    cores: u8,
    steps: &'f [u8],
    since: Vec<(u8, usize, Operand)>,
    /// The accelerator that has the steps of core 1, where one does.
    declared: Option<Declaration>,
}

impl<'f> Together<'f> {
    pub(super) fn of(view: &ModelView<'f>, count: usize) -> Result<Self> {
        if let Some((declared, steps)) = view.accelerator() {
            let since = Vec::new();
            if steps.len() != count {
                let named = steps.len();
                return Err(Error::input(format!(
                    "the file names sides of {named} steps of {count}"
                )));
            }
            return Ok(Self {
                cores: 2,
                steps,
                since,
                declared: Some(declared),
            });
        }
        let Some((cores, steps)) = view.cores() else {
            return Ok(Self::default());
        };
        if !(2..=4).contains(&cores) || steps.len() != count {
            let named = steps.len();
            return Err(Error::input(format!(
                "the file names cores of {named} steps of {count}, of {cores} cores"
            )));
        }
        let since = Vec::new();
        Ok(Self {
            cores,
            steps,
            since,
            declared: None,
        })
    }

    /// That the step touches nothing that another core writes at its time, and writes nothing that another one touches.
    pub(super) fn step(&mut self, index: usize, operands: &[Operand]) -> Result<()> {
        let Some(&on) = self.steps.get(index) else {
            return Ok(());
        };
        if on >= 0x80 {
            self.since.clear();
        }
        let core = on % 0x80;
        if core >= self.cores {
            return Err(Error::input(format!("it runs on core {core} of {}", self.cores)));
        }
        if let Some(declared) = self.declared.filter(|_| core == 1) {
            reached(operands, &declared)?;
        }
        for operand in operands.iter().filter(|operand| operand.place.region != Slot::WEIGHTS) {
            let bytes = |operand: &Operand| {
                let from = u64::from(operand.place.offset);
                from..from + u64::from(operand.bytes)
            };
            let own = bytes(operand);
            let meets = |(other, _, touched): &&(u8, usize, Operand)| {
                let theirs = bytes(touched);
                let written = [touched.access, operand.access]
                    .iter()
                    .any(|&access| access != Access::Read);
                let same = *other != core && written && touched.place.region == operand.place.region;
                same && !own.is_empty() && !theirs.is_empty() && own.start < theirs.end && theirs.start < own.end
            };
            if let Some((other, step, _)) = self.since.iter().find(meets) {
                let message =
                    format!("core {core} and core {other} (step {step}) touch the same bytes between two barriers");
                return Err(Error::input(message));
            }
        }
        self.since
            .extend(operands.iter().map(|&operand| (core, index, operand)));
        Ok(())
    }
}

/// That an accelerator reaches the operands of its step, and writes nothing that the step reads.
fn reached(operands: &[Operand], declared: &Declaration) -> Result<()> {
    for (index, operand) in operands.iter().enumerate().filter(|(_, operand)| operand.bytes > 0) {
        let Slot { region, offset } = operand.place;
        let bit = 1u32.checked_shl(region.into()).unwrap_or(0);
        let lies_there = region == Slot::WEIGHTS || u32::from(declared.regions) & bit != 0;
        if !lies_there || !offset.is_multiple_of(declared.alignment.into()) {
            return Err(Error::input(format!(
                "operand {index} at byte {offset} of region {region} is not where {} reaches",
                declared.name
            )));
        }
        let end = |operand: &Operand| u64::from(operand.place.offset) + u64::from(operand.bytes);
        let meets = |other: &Operand| {
            let same = other.place.region == region && other.bytes > 0;
            same && u64::from(other.place.offset) < end(operand) && u64::from(offset) < end(other)
        };
        let mut others = operands.iter().enumerate().filter(|&(other, _)| other != index);
        if operand.access != Access::Read && others.any(|(_, other)| meets(other)) {
            return Err(Error::input(format!(
                "{} writes operand {index} over another one of the same step",
                declared.name
            )));
        }
    }
    Ok(())
}
