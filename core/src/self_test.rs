//! The test that a file brings along: inputs, and what its outputs must be. `pack --self-test` writes it, a device runs it after a load. Specified in
//! `docs/format.md`.
//!
//! Kernels for integers compute the same bits on every core, so one wrong bit of such an output comes from a core, a memory or a build that computes
//! wrongly. Sums of f32 round differently from core to core; there values are compared.

#[cfg(feature = "error-text")]
use core::fmt;

use crate::blob::Model;
use crate::crc::Crc32;
use crate::error::{RunError, SessionError};
use crate::kernels::table::Kernels;
use crate::session::{Arenas, Session};
use crate::tensor::DType;

/// Tolerance of an f32 output's values, relative to the output's largest expected magnitude. It is ten times the difference between kernels of different cores
/// in the tests of this project; a wrong weight or a dead lane is further off.
pub const F32_TOLERANCE: f32 = 1e-4;

/// Bytes of what is expected of an integer output: its CRC-32.
const DIGEST: usize = 4;

/// Why a self-test is not passed.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SelfTestError {
    /// The file has none.
    Missing,
    /// It does not decode.
    Malformed,
    /// No session opens on this memory.
    Session(SessionError),
    /// A run of it stops.
    Run(RunError),
    /// An output is not what it was where the model was packed.
    Output {
        /// The run.
        run: u32,
        /// The output.
        output: u32,
        /// Expected value in the file: of integers the CRC-32 of the whole output, of f32 the bits of the value that differs.
        expected: u32,
        /// Computed value.
        found: u32,
    },
}

impl<K: Kernels + Copy> Model<'_, K> {
    /// Runs the file's self-test in the memory of a model without state. Gives the number of runs.
    ///
    /// # Errors
    /// See [`SelfTestError`].
    pub fn self_test<'s>(&self, arenas: impl Into<Arenas<'s>>) -> Result<u32, SelfTestError> {
        self.self_test_with(arenas, &mut [])
    }

    /// Runs the file's self-test: one run after the other, from the state's initial value on. The memory's contents are lost, the state too: sessions are
    /// opened after it.
    ///
    /// # Errors
    /// See [`SelfTestError`].
    pub fn self_test_with<'s>(&self, arenas: impl Into<Arenas<'s>>, state: &'s mut [u8]) -> Result<u32, SelfTestError> {
        let mut session = Session::new(*self, arenas, state).map_err(SelfTestError::Session)?;
        passed(self.parts().self_test(), &mut session)
    }
}

/// A session that a test can be run in.
pub(crate) trait Tested {
    /// Numbers of inputs and outputs.
    fn ports(&self) -> [usize; 2];
    /// Element type of an output.
    fn output_type(&self, index: usize) -> Option<DType>;
    /// As the session's.
    fn input_mut(&mut self, index: usize) -> Result<&mut [u8], RunError>;
    /// As the session's.
    fn set_input(&mut self, index: usize, bytes: &[u8]) -> Result<(), RunError>;
    /// As the session's.
    fn run(&mut self) -> Result<(), RunError>;
    /// As the session's.
    fn output(&self, index: usize) -> Result<&[u8], RunError>;
}

impl<K: Kernels> Tested for Session<'_, '_, K> {
    fn ports(&self) -> [usize; 2] {
        let parts = self.model().parts();
        [parts.inputs(), parts.outputs()]
    }

    fn output_type(&self, index: usize) -> Option<DType> {
        self.model().output(index).map(|port| port.dtype)
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

/// Runs a test in a session whose state has its initial value.
pub(crate) fn passed(test: &[u8], session: &mut impl Tested) -> Result<u32, SelfTestError> {
    if test.is_empty() {
        return Err(SelfTestError::Missing);
    }
    let (count, mut rest) = test.split_first_chunk().ok_or(SelfTestError::Malformed)?;
    let count = u32::from_le_bytes(*count);
    let [inputs, outputs] = session.ports();
    for run in 0..count {
        // A run takes at least a byte of the file, so that no count makes the test longer than its file.
        let before = rest.len();
        for index in 0..inputs {
            let len = session.input_mut(index).map_err(SelfTestError::Run)?.len();
            let input = take(&mut rest, len)?;
            session.set_input(index, input).map_err(SelfTestError::Run)?;
        }
        session.run().map_err(SelfTestError::Run)?;
        for index in 0..outputs {
            let found = session.output(index).map_err(SelfTestError::Run)?;
            let dtype = session.output_type(index).ok_or(SelfTestError::Malformed)?;
            let different = match dtype {
                DType::F32 => different_value(take(&mut rest, found.len())?, found),
                _ => different_digest(take(&mut rest, DIGEST)?, found),
            };
            if let Some([expected, found]) = different {
                return Err(SelfTestError::Output {
                    run,
                    output: index as u32,
                    expected,
                    found,
                });
            }
        }
        if rest.len() == before {
            return Err(SelfTestError::Malformed);
        }
    }
    if rest.is_empty() && count > 0 {
        Ok(count)
    } else {
        Err(SelfTestError::Malformed)
    }
}

/// The next `len` bytes of the test.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], SelfTestError> {
    let (part, others) = rest.split_at_checked(len).ok_or(SelfTestError::Malformed)?;
    *rest = others;
    Ok(part)
}

/// The expected CRC-32 and that of an output, where they differ.
fn different_digest(expected: &[u8], output: &[u8]) -> Option<[u32; 2]> {
    let expected = words(expected).next()?;
    let found = Crc32::new().update(output).finish();
    (found != expected).then_some([expected, found])
}

/// The bits of the first value that is too far from the expected one, and of that.
fn different_value(expected: &[u8], output: &[u8]) -> Option<[u32; 2]> {
    let magnitude = words(expected)
        .map(|bits| f32::from_bits(bits).abs())
        .filter(|value| value.is_finite())
        .fold(0.0, f32::max);
    let near = |expected: u32, found: u32| {
        let difference = f32::from_bits(found) - f32::from_bits(expected);
        // False for a NaN; infinities have the same bits or differ.
        expected == found || difference.abs() <= F32_TOLERANCE * magnitude
    };
    words(expected)
        .zip(words(output))
        .find(|&(expected, found)| !near(expected, found))
        .map(|(expected, found)| [expected, found])
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word))
}

#[cfg(feature = "error-text")]
impl fmt::Display for SelfTestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelfTestError::Missing => write!(f, "the model has no self-test"),
            SelfTestError::Malformed => write!(f, "the model's self-test does not decode"),
            SelfTestError::Session(error) => write!(f, "self-test: {error}"),
            SelfTestError::Run(error) => write!(f, "self-test: {error}"),
            SelfTestError::Output {
                run,
                output,
                expected,
                found,
            } => write!(
                f,
                "self-test, run {run}: output {output} is wrong, found {found:08x}, expected {expected:08x}"
            ),
        }
    }
}

impl core::error::Error for SelfTestError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> [u8; 12] {
        core::array::from_fn(|at| values[at / 4].to_le_bytes()[at % 4])
    }

    #[test]
    fn values_are_compared_by_the_largest() {
        let expected = bytes(&[200.0, -1.0, 0.0]);
        assert_eq!(different_value(&expected, &bytes(&[200.0, -1.019, 0.019])), None);
        let far = bytes(&[200.0, -1.0, 0.021]);
        assert_eq!(different_value(&expected, &far), Some([0, 0.021f32.to_bits()]));
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0] {
            let found = bytes(&[wrong, -1.0, 0.0]);
            assert_eq!(
                different_value(&expected, &found),
                Some([200.0f32, wrong].map(f32::to_bits))
            );
        }
        // Expected infinities and NaN must be met exactly, and do not widen the tolerance of the others.
        let special = bytes(&[f32::INFINITY, f32::NAN, 1.0]);
        assert_eq!(different_value(&special, &special), None);
        assert!(different_value(&special, &bytes(&[f32::INFINITY, f32::NAN, 1.001])).is_some());
        assert!(different_value(&special, &bytes(&[f32::MAX, f32::NAN, 1.0])).is_some());
        assert_eq!(different_value(&bytes(&[0.0; 3]), &bytes(&[0.0, -0.0, 0.0])), None);
    }
}
