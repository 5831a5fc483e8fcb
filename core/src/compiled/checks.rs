//! Checks of a compiled model on the device, linked where they are called: the file's self-test, and whether its weights are what they were.

use super::session::{Network, Session};
use crate::crc::Crc32;
use crate::cycles::{CycleCounter, Laps};
use crate::error::RunError;
use crate::self_test::{SelfTestError, Tested, passed};
use crate::tensor::DType;

/// Whether these weights have this CRC-32, as they had where the program was compiled.
pub fn are_intact(weights: &[u8], crc: u32) -> bool {
    Crc32::new().update(weights).finish() == crc
}

impl<N: Network> Session<'_, N> {
    /// Runs a self-test from the state's initial value on, which the state has behind it again. Gives the number of runs.
    ///
    /// # Errors
    /// See [`SelfTestError`].
    #[doc(hidden)]
    pub fn passed(&mut self, test: &[u8]) -> Result<u32, SelfTestError> {
        self.reset_state();
        let runs = passed(test, self);
        self.reset_state();
        runs
    }

    /// Runs all remaining steps, calls `after` with each step and its cycles, and gives those of all. The time that `after` takes does not count.
    ///
    /// # Errors
    /// See [`Session::step`].
    pub fn run_counted(
        &mut self,
        counter: impl CycleCounter,
        mut after: impl FnMut(u32, u64),
    ) -> Result<u64, RunError> {
        let mut laps = Laps::begin(counter);
        self.run_with(|step| laps.end(step, &mut after))?;
        Ok(laps.sum)
    }
}

impl<N: Network> Tested for Session<'_, N> {
    fn ports(&self) -> [usize; 2] {
        [N::INPUTS.len(), N::OUTPUTS.len()]
    }

    fn output_type(&self, index: usize) -> Option<DType> {
        N::OUTPUTS.get(index).map(|place| place.dtype)
    }

    fn input_mut(&mut self, index: usize) -> Result<&mut [u8], RunError> {
        self.input_mut(index)
    }

    fn set_input(&mut self, index: usize, bytes: &[u8]) -> Result<(), RunError> {
        self.set_input(index, bytes)
    }

    fn run(&mut self) -> Result<(), RunError> {
        self.run()
    }

    fn output(&self, index: usize) -> Result<&[u8], RunError> {
        self.output(index)
    }
}
