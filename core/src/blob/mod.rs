//! The model file: a header of fixed offsets, the plan, metadata, and the weights in place. Specified in `docs/format.md`.
//!
//! [`Model::load`] is the one trust boundary: after it nothing in the file can make a run fail or read out of bounds.

mod cpu;
mod header;
#[cfg(feature = "training")]
mod list;
mod load;
mod numbered;
mod port;
mod receipt;
mod records;
#[cfg(feature = "rolling")]
mod rolling;
mod sections;
mod state;
mod stated;
#[cfg(test)]
mod tests;
#[cfg(feature = "pack")]
mod write;

use core::marker::PhantomData;

#[cfg(feature = "accelerators")]
use crate::declared::Declaration;
use crate::error::LoadError;
use crate::kernels::table::{All, Kernels, check_step, cost_step};
use crate::ops::cost::Cost;
#[cfg(feature = "rolling")]
use crate::rolled::Rolling;

pub use cpu::Cpu;
pub use header::{
    FORMAT_VERSION, HEADER_BYTES, Header, MAX_ROWS, OLDEST_VERSION, ROW_BYTES, Section, arena_bytes, checksum,
    checksummed, kernel_set, state_bytes,
};
pub(crate) use header::{
    field, half, is_inside, is_length_right, is_table_right, section, starts, stored, unknown_kind, word,
};
#[cfg(feature = "training")]
pub use list::{LIST_BYTES, ListHead};
pub(crate) use numbered::step_in;
pub use port::{MAX_RANK, Port};
pub use receipt::{CrcUnit, Receipt};
pub use records::Records;
#[cfg(feature = "rolling")]
pub(crate) use rolling::record;
#[cfg(feature = "pack")]
pub use sections::ACCELERATED;
pub(crate) use sections::Parts;
pub use sections::Sections;
pub use state::StateInit;
pub use stated::Stated;
#[cfg(feature = "pack")]
pub use write::{Lengths, MAX_STEP_BYTES, WEIGHTS_ALIGN, seal, write_port, write_record, write_step};

/// A checked model. It borrows the file; nothing is copied.
///
/// `K` chooses the kernels that are linked: [`All`], or the set that [`crate::include_model!`] derives from the file.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a, K: Kernels = All> {
    parts: Parts<'a>,
    kernels: PhantomData<K>,
}

impl<'a> Model<'a> {
    /// Checks all of a file, with every kernel of this build linked; see [`Model::load_with`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(bytes: &'a [u8]) -> Result<Self, LoadError> {
        Self::load_with(bytes)
    }

    /// As [`Model::load`], for files of unknown origin: refuses a model that could cost more than `budget` in a run, in terms of [`Cost::total`]. Nothing is
    /// computed in proportion to what the steps declare. A run of training is one of its own: with the feature `training` each of the two is within the budget.
    ///
    /// # Errors
    /// See [`LoadError`]; [`LoadError::Cost`] names the step at which the sum exceeds the budget.
    pub fn load_within(bytes: &'a [u8], budget: u64) -> Result<Self, LoadError> {
        Self::load_with_budget(bytes, budget)
    }

    /// As [`Model::load`], but for the checksum, most of a load's time: it was right when the receipt was made, and the header must say what the receipt says.
    /// Every other check is made as before, so that a file which was changed since cannot hurt the device either; but changed weights are not found.
    ///
    /// # Errors
    /// See [`LoadError`]; [`LoadError::Receipt`] where the header says something else.
    pub fn load_with_receipt(bytes: &'a [u8], receipt: &Receipt) -> Result<Self, LoadError> {
        Self::load_receipt_with(bytes, receipt)
    }

    /// As [`Model::load`], for a core that may have less than this build is compiled with: a file that wants more is refused by name. Where the core has all of
    /// it, [`Cpu::COMPILED`], this is [`Model::load`].
    ///
    /// # Errors
    /// See [`LoadError`]; [`LoadError::Cpu`] says what the core lacks.
    pub fn load_on(bytes: &'a [u8], cpu: Cpu) -> Result<Self, LoadError> {
        Self::load_on_with(bytes, cpu)
    }

    /// As [`Model::load`]; the checksum is computed by `unit`. One that computes something else makes no other check weaker.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_with_crc(bytes: &'a [u8], unit: &mut impl CrcUnit) -> Result<Self, LoadError> {
        Self::load_crc_with(bytes, unit)
    }
}

impl<'a, K: Kernels> Model<'a, K> {
    /// Checks all of a file: alignment, version, checksum, every section, every step with all its operands and their overlaps,
    /// every input and output. Bytes after the file's own length are ignored, so that a flash partition can be passed whole.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_with(bytes: &'a [u8]) -> Result<Self, LoadError> {
        sections::intact(bytes).and_then(Self::of)
    }

    /// As [`Model::load_with`], for a core that may have less than this build: see [`Model::load_on`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_on_with(bytes: &'a [u8], cpu: Cpu) -> Result<Self, LoadError> {
        Self::load_with(bytes)?.on(cpu)
    }

    /// This model, loaded in whichever way, for a core that may have less than this build. With the feature `training` the steps of training are looked at too.
    ///
    /// # Errors
    /// [`LoadError::Cpu`].
    pub fn on(self, cpu: Cpu) -> Result<Self, LoadError> {
        cpu.check(self.parts)?;
        #[cfg(feature = "training")]
        if let Some(training) = self.parts.training() {
            cpu.check(training)?;
        }
        Ok(self)
    }

    /// As [`Model::load_with`], with a receipt for the checksum: see [`Model::load_with_receipt`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_receipt_with(bytes: &'a [u8], receipt: &Receipt) -> Result<Self, LoadError> {
        sections::receipted(bytes, receipt).and_then(Self::of)
    }

    /// As [`Model::load_with`], the checksum by a unit of the chip: see [`Model::load_with_crc`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_crc_with(bytes: &'a [u8], unit: &mut impl CrcUnit) -> Result<Self, LoadError> {
        sections::intact_by(bytes, unit).and_then(Self::of)
    }

    /// Checks what is in the file.
    fn of(parts: Parts<'a>) -> Result<Self, LoadError> {
        // All of it is compiled once; the kernels are behind one call.
        let parts = load::check_parts(parts, check_step::<K>)?;
        Ok(Self {
            parts,
            kernels: PhantomData,
        })
    }

    /// As [`Model::load_with`], within a budget: see [`Model::load_within`].
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load_with_budget(bytes: &'a [u8], budget: u64) -> Result<Self, LoadError> {
        let model = Self::load_with(bytes)?;
        model.check_cost(budget)?;
        #[cfg(feature = "training")]
        if let Some(training) = model.training() {
            training.check_cost(budget)?;
        }
        Ok(model)
    }

    /// Checks that a run of this list of steps is within a budget.
    fn check_cost(&self, budget: u64) -> Result<(), LoadError> {
        let mut sum = Cost::default();
        for (step, cost) in (self.parts.first_step()..).zip(self.costs()) {
            sum = sum.plus(cost);
            let cost = sum.total();
            if cost > budget {
                return Err(LoadError::Cost { step, cost, budget });
            }
        }
        Ok(())
    }

    /// Upper bound of the cost of a run.
    pub fn cost(&self) -> Cost {
        self.costs().fold(Cost::default(), Cost::plus)
    }

    /// Upper bounds of the costs of the steps, in order.
    pub fn costs(&self) -> impl Iterator<Item = Cost> + 'a {
        let of = |record: Option<(u8, &[u8])>| record.and_then(|(id, params)| cost_step::<K>(id, params));
        // Load has decoded all of them.
        self.parts.steps().map(move |record| of(record).unwrap_or_default())
    }

    /// The model with the steps, inputs and outputs of training in place of those of inference: it runs over the same arena, and changes the state that
    /// inference reads. `None` for a file without. [`crate::Session::turn_to_training`] goes on with it in the memory of a session.
    #[cfg(feature = "training")]
    pub fn training(&self) -> Option<Self> {
        Some(Self {
            parts: self.parts.training()?,
            kernels: PhantomData,
        })
    }

    /// The model with the steps, inputs and outputs of inference.
    #[cfg(feature = "training")]
    #[must_use]
    pub fn inference(&self) -> Self {
        Self {
            parts: self.parts.inference(),
            kernels: PhantomData,
        }
    }

    /// The header, read from the file anew; of `Model::training` with the numbers of its steps, inputs and outputs.
    #[inline(always)]
    pub fn header(&self) -> Header {
        self.parts.header()
    }

    /// Bytes of arena that a session needs in `region`; 0 for a region that the model does not use.
    pub fn arena_bytes(&self, region: usize) -> usize {
        self.parts.arena_bytes(region) as usize
    }

    /// Bytes of state that a session needs; 0 for a stateless model.
    pub fn state_bytes(&self) -> usize {
        self.parts.state_bytes() as usize
    }

    /// Input `index`.
    pub fn input(&self, index: usize) -> Option<Port<'a>> {
        self.parts.input(index)
    }

    /// Output `index`.
    pub fn output(&self, index: usize) -> Option<Port<'a>> {
        self.parts.output(index)
    }

    /// The metadata: postcard, written and read by the host tools alone.
    pub fn metadata(&self) -> &'a [u8] {
        self.parts.metadata()
    }

    /// The steps in order: a kernel's number and its parameters.
    pub fn steps(&self) -> Records<'a> {
        self.parts.steps()
    }

    /// The section of the tokenizer, whose content is not checked; empty in a file without. `text::Tokenizer` reads it.
    pub fn tokenizer(&self) -> &'a [u8] {
        self.parts.tokenizer()
    }

    /// The tensors of which rows alone are in the arena; `None` for a file without.
    #[cfg(feature = "rolling")]
    pub fn rolling(&self) -> Option<Rolling<'a>> {
        Rolling::of(self.parts.rolling())
    }

    /// Bytes of a row, and number of rows, of an input that is taken row by row: see [`crate::Session::feed_rows`].
    #[cfg(feature = "rolling")]
    pub fn rows_of_input(&self, index: usize) -> Option<(usize, usize)> {
        let (_, tensor) = self.rolling()?.fed(index as u32)?;
        Some((tensor.bytes.into(), tensor.rows.into()))
    }

    /// The weights.
    pub fn weights(&self) -> &'a [u8] {
        self.parts.weights()
    }

    /// Number of cores that the model is for: [`crate::Session::run_on`] wants so many.
    #[cfg(feature = "cores")]
    pub fn cores(&self) -> usize {
        self.parts.cores().map_or(1, |(cores, _)| cores.into())
    }

    /// The core of each step, with [`crate::BARRIER`] for a barrier before it; empty for a model of one core.
    #[cfg(feature = "cores")]
    pub fn cores_of_steps(&self) -> &'a [u8] {
        self.parts.cores().map_or(&[], |(_, steps)| steps)
    }

    /// The accelerator that it is for: [`crate::Session::run_accelerated`] wants it.
    #[cfg(feature = "accelerators")]
    pub fn accelerator(&self) -> Option<Declaration> {
        self.parts.accelerator().map(|(declared, _)| declared)
    }

    /// The state's value after a reset.
    pub fn state_init(&self) -> StateInit<'a> {
        self.parts.state_init()
    }

    /// The parts of the file.
    pub(crate) fn parts(&self) -> Parts<'a> {
        self.parts
    }

    /// The name of the target that the file states.
    pub fn target_name(&self) -> &'static str {
        self.parts.target_name()
    }
}

#[cfg(feature = "defmt")]
impl<K: Kernels> defmt::Format for Model<'_, K> {
    fn format(&self, f: defmt::Formatter<'_>) {
        let Header {
            step_count,
            arena,
            total,
            ..
        } = self.header();
        defmt::write!(
            f,
            "model for {=str}, {} steps, arena {=[?]}, {} bytes",
            self.target_name(),
            step_count,
            arena,
            total
        );
    }
}
