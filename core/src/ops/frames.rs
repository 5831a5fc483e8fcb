//! The signal operators of TensorFlow Lite Micro that remember samples from run to run: delay, framer, stacker, overlap-add.
//!
//! There, samples go through ring buffers; here, each state is a window of the last samples that slides. The samples read are the same, and no content of a
//! state leads anywhere but to samples.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::signal::computations;
use crate::ops::size::{checked_size, size};
use crate::tensor::DType;

/// The most that the counter of a state counts.
const COUNTER: u32 = 0x7fff;

operator! {
    /// Each row of samples, `delay` samples late; int16.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalDelay<P> {
        /// As the input.
        pub output: P,
        /// Rows of samples.
        pub input: P,
        /// The last `delay` samples of each row.
        pub state: P;
        /// Rows.
        pub rows: u32,
        /// Samples of a row.
        pub frame: u32,
        /// Samples.
        pub delay: u32,
    }
}

operator! {
    /// Overlapping frames of each row of samples, a frame for each `step` samples; int16.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalFramer<P> {
        /// `[rows, frames, size]`; while they are not valid, older samples and zeros.
        pub output: P,
        /// `[rows, frames * step]`
        pub input: P,
        /// One bool: whether all frames are of samples alone.
        pub valid: P,
        /// The steps so far, up to [`SignalFramer::warm_up`]; then the last samples of each row.
        pub state: P;
        /// Rows.
        pub rows: u32,
        /// Frames of a run.
        pub frames: u32,
        /// Samples of a frame.
        pub size: u32,
        /// Samples from frame to frame.
        pub step: u32,
        /// Whether zeros before the first sample make the first frame a valid one.
        pub prefill: bool,
    }
}

operator! {
    /// A frame with frames before and after it, every `step` frames; int16.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalStacker<P> {
        /// `[left + 1 + right, channels]`: the last frames, valid or not.
        pub output: P,
        /// `[channels]`
        pub input: P,
        /// One bool: whether it is the output's turn.
        pub valid: P,
        /// The frames left until the next turn, 0 before the first frame; then the last frames.
        pub state: P;
        /// Channels of a frame.
        pub channels: u32,
        /// Frames before.
        pub left: u32,
        /// Frames behind.
        pub right: u32,
        /// Frames from turn to turn.
        pub step: u32,
    }
}

operator! {
    /// The sum of overlapping frames; of int16 saturating, or of f32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalOverlapAdd<P> {
        /// `[rows, frames * step]`
        pub output: P,
        /// `[rows, frames, size]`
        pub input: P,
        /// The sums of each row whose frames are still to come, of `size` samples.
        pub state: P;
        /// int16 or f32.
        pub dtype: DType,
        /// Rows.
        pub rows: u32,
        /// Frames of a run.
        pub frames: u32,
        /// Samples of a frame.
        pub size: u32,
        /// Samples from frame to frame.
        pub step: u32,
    }
}

fn valid(ok: bool) -> Result<(), Fault> {
    if ok { Ok(()) } else { Err(Fault::Shape) }
}

fn count(extents: &[u32]) -> u32 {
    size(extents).unwrap_or(u32::MAX)
}

impl<P: Place> Operator for SignalDelay<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.frame, 2])?;
        checked_size(&[self.rows, self.delay, 2]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let samples = count(&[self.rows, self.frame]);
        visit(Operand::of::<i16>(Access::Write, self.output, samples));
        visit(Operand::of::<i16>(Access::Read, self.input, samples));
        let state = count(&[self.rows, self.delay]);
        visit(Operand::of::<i16>(Access::Update, self.state, state));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Samples come and go one by one; what is delayed moves as a whole.
        let samples = count(&[self.rows, self.frame]);
        computations(of_operands(|visit| self.operands(needs, visit)), samples, 4)
    }
}

impl<P: Place> SignalFramer<P> {
    /// Samples of a row that are kept from run to run.
    pub fn history(&self) -> u32 {
        if self.prefill {
            self.size.saturating_sub(self.step)
        } else {
            self.warm_up().saturating_mul(self.step)
        }
    }

    /// Steps before the first valid frame.
    pub fn warm_up(&self) -> u32 {
        let behind_the_first = self.size.saturating_sub(1).checked_div(self.step);
        behind_the_first.filter(|_| !self.prefill).unwrap_or(0)
    }

    /// Elements of the state.
    pub fn state_len(&self) -> u32 {
        count(&[self.rows, self.history()]).saturating_add(1)
    }
}

impl<P: Place> Operator for SignalFramer<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.frames, self.size, 2])?;
        checked_size(&[self.rows, self.frames, self.step, 2])?;
        valid(self.warm_up() <= COUNTER && self.state_len() <= u32::MAX / 2)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let samples = |each: u32| count(&[self.rows, self.frames, each]);
        visit(Operand::of::<i16>(Access::Write, self.output, samples(self.size)));
        visit(Operand::of::<i16>(Access::Read, self.input, samples(self.step)));
        visit(Operand::of::<u8>(Access::Write, self.valid, 1));
        visit(Operand::of::<i16>(Access::Update, self.state, self.state_len()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Each frame moves what is kept of its row, and is made of it.
        let samples = count(&[self.rows, self.frames, self.size]);
        computations(of_operands(|visit| self.operands(needs, visit)), samples, 8)
    }
}

impl<P: Place> SignalStacker<P> {
    /// Samples that are kept from run to run.
    pub fn history(&self) -> u32 {
        count(&[self.channels, self.left.saturating_add(self.right)])
    }

    /// Elements of the state.
    pub fn state_len(&self) -> u32 {
        self.history().saturating_add(1)
    }

    /// Elements of the output.
    pub fn output_len(&self) -> u32 {
        self.history().saturating_add(self.channels)
    }
}

impl<P: Place> Operator for SignalStacker<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.channels, 2])?;
        let frames = self.left.checked_add(self.right).and_then(|n| n.checked_add(1));
        let frames = frames.filter(|&n| n <= COUNTER).ok_or(Fault::Shape)?;
        checked_size(&[self.channels, frames, 4])?;
        valid((1..=frames).contains(&self.step))
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<i16>(Access::Write, self.output, self.output_len()));
        visit(Operand::of::<i16>(Access::Read, self.input, self.channels));
        visit(Operand::of::<u8>(Access::Write, self.valid, 1));
        visit(Operand::of::<i16>(Access::Update, self.state, self.state_len()));
    }
}

impl<P: Place> Operator for SignalOverlapAdd<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.frames, self.size, 4])?;
        checked_size(&[self.rows, self.frames, self.step, 4])?;
        valid(self.step <= self.size)?;
        match self.dtype {
            DType::I16 | DType::F32 => Ok(()),
            _ => Err(Fault::Unsupported),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let samples = |each: u32| count(&[self.rows, self.frames, each]);
        let of = |access, place, n| Operand::of_type(self.dtype, access, place, n);
        visit(of(Access::Write, self.output, samples(self.step)));
        visit(of(Access::Read, self.input, samples(self.size)));
        visit(of(Access::Update, self.state, count(&[self.rows, self.size])));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Sums, and what is moved.
        let samples = count(&[self.rows, self.frames, self.size]);
        computations(of_operands(|visit| self.operands(needs, visit)), samples, 4)
    }
}
