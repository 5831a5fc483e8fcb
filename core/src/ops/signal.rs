//! The signal operators of TensorFlow Lite Micro that see one frame at a time: window, automatic scale, energy, filter bank, square root, spectral
//! subtraction, automatic gain (PCAN, Wang et al., "Trainable Frontend for Robust and Far-Field Keyword Spotting", 2017), logarithm. All of it is fixed
//! point; sums and shifts are modulo the width of their type, as there.
//!
//! uint32 and uint64 tensors are held as int32 and int64 of the same bits.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

/// Elements of the table of [`SignalLog`]: of segments of 1/128, with both ends.
pub const LOG_TABLE: u32 = 129;

/// Elements of the table of [`SignalPcan`]: values of 0, 1 and 2, then three coefficients and a word unused for each power of two.
pub const GAIN_TABLE: u32 = 125;

operator! {
    /// `y = clamp((x * w) >> shift)` of int16, for each row of `size` samples.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalWindow<P> {
        /// As the input.
        pub output: P,
        /// Rows of samples.
        pub input: P,
        /// The window, of `size` elements.
        pub window: P;
        /// Samples of all rows.
        pub count: u32,
        /// Samples of a row.
        pub size: u32,
        /// Shift of the products, below 32.
        pub shift: u8,
    }
}

operator! {
    /// `y = x << bits` of int16, with the most bits for which no sample leaves its range.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalAutoScale<P> {
        /// As the input.
        pub output: P,
        /// Samples.
        pub input: P,
        /// The bits, one int32.
        pub bits: P;
        /// Samples.
        pub count: u32,
    }
}

operator! {
    /// `y = re^2 + im^2` of int16, as uint32, for the bins `start..end`; 0 for the others.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalEnergy<P> {
        /// uint32, an element for each bin.
        pub output: P,
        /// Pairs of real and imaginary part.
        pub input: P;
        /// Bins.
        pub bins: u32,
        /// The first bin that is wanted.
        pub start: u32,
        /// Behind the last one.
        pub end: u32,
    }
}

operator! {
    /// Channels that overlap by half: each bin goes with its weight into one channel and with its other weight into the next. Of one band more than there are
    /// channels, the first one's own sum is dropped.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalFilterBank<P> {
        /// uint64, an element for each channel.
        pub output: P,
        /// uint32, an element for each bin.
        pub input: P;
        /// Bins.
        pub bins: u32,
        /// Channels.
        pub channels: u32,
        /// Bins of all bands together.
        pub taps: u32,
        /// Offset of `[first bin, bins]` of each band, uint16.
        pub bands: u32,
        /// Offset of the two int16 weights of each band's bins, band by band.
        pub weights: u32,
    }
}

operator! {
    /// `y = round(sqrt(x)) >> bits` of uint64, as uint32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalSquareRoot<P> {
        /// uint32.
        pub output: P,
        /// uint64.
        pub input: P,
        /// The bits, one int32; modulo 32.
        pub bits: P;
        /// Elements.
        pub count: u32,
    }
}

/// The constants of a spectral subtraction; factors have `bits` fractional bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Subtraction {
    /// Of a new element in its noise estimate, for even channels and for odd ones.
    pub smoothing: [u32; 2],
    /// Of the estimate before, likewise.
    pub rest: [u32; 2],
    /// Of an element that always remains.
    pub floor: u32,
    /// Fractional bits of the estimate, below 32.
    pub smoothing_bits: u8,
    /// Fractional bits of the factors, below 64.
    pub bits: u8,
    /// Whether the estimate falls to an element below it at once.
    pub clamping: bool,
}

operator! {
    /// Takes a running estimate of the noise off each channel, of uint32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalSubtraction<P> {
        /// As the input.
        pub output: P,
        /// A frame.
        pub input: P,
        /// The estimate after this frame.
        pub noise: P,
        /// The estimate, from frame to frame.
        pub state: P;
        /// Channels.
        pub count: u32,
        /// Its constants.
        pub constants: Subtraction,
    }
}

operator! {
    /// `y = shrink((x * gain(noise)) >> shift)` of uint32, with a gain by a table of parabolas.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalPcan<P> {
        /// As the input.
        pub output: P,
        /// A frame.
        pub input: P,
        /// The noise estimate of each channel.
        pub noise: P;
        /// Channels.
        pub count: u32,
        /// Below 64.
        pub shift: u8,
        /// Offset of [`GAIN_TABLE`] int16.
        pub table: u32,
    }
}

operator! {
    /// `y = min(ln(x << correction) * scale, 32767)` of uint32, as int16; 0 for x << correction below 2.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SignalLog<P> {
        /// int16.
        pub output: P,
        /// uint32.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// Factor of the logarithm.
        pub scale: u32,
        /// Bits, below 32.
        pub correction: u8,
        /// Offset of [`LOG_TABLE`] uint16: `65536 * (log2(1 + i / 128) - i / 128)`.
        pub table: u32,
    }
}

/// `count` elements of `T` that are read at `place`.
fn read<T, P: Place>(place: P, count: u32) -> Operand<P> {
    Operand::of::<T>(Access::Read, place, count)
}

/// `count` elements of `T` that are written at `place`.
fn written<T, P: Place>(place: P, count: u32) -> Operand<P> {
    Operand::of::<T>(Access::Write, place, count)
}

/// The cost of an operator that takes `each` computations for each of `elements`, beside those of its operands.
pub(crate) fn computations(operands: Cost, elements: u32, each: u64) -> Cost {
    operands.plus(Cost {
        products: u64::from(elements).saturating_mul(each),
        ..Cost::default()
    })
}

fn valid(ok: bool, fault: Fault) -> Result<(), Fault> {
    if ok { Ok(()) } else { Err(fault) }
}

impl<P: Place> Operator for SignalWindow<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 2])?;
        checked_size(&[self.size, 2])?;
        valid(self.count.checked_rem(self.size) == Some(0), Fault::Shape)?;
        valid(self.shift < 32, Fault::Quantisation)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<i16, P>(self.output, self.count));
        visit(read::<i16, P>(self.input, self.count));
        visit(read::<i16, P>(self.window, self.size));
    }
}

impl<P: Place> Operator for SignalAutoScale<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 2]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<i16, P>(self.output, self.count));
        visit(read::<i16, P>(self.input, self.count));
        visit(written::<i32, P>(self.bits, 1));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Two passes.
        computations(of_operands(|visit| self.operands(needs, visit)), self.count, 2)
    }
}

impl<P: Place> Operator for SignalEnergy<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.bins, 4])?;
        valid(self.start <= self.end && self.end <= self.bins, Fault::Shape)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<u32, P>(self.output, self.bins));
        visit(read::<i16, P>(self.input, self.bins.saturating_mul(2)));
    }
}

impl<P: Place> SignalFilterBank<P> {
    /// Bands, of which the first has no channel.
    pub fn bands(&self) -> u32 {
        self.channels.saturating_add(1)
    }
}

impl<P: Place> Operator for SignalFilterBank<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.bins, 4])?;
        checked_size(&[self.channels, 8])?;
        checked_size(&[self.bands(), 4])?;
        valid(self.taps <= u32::MAX / 4, Fault::Shape)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<i64, P>(self.output, self.channels));
        visit(read::<u32, P>(self.input, self.bins));
        visit(Operand::constant::<u16>(self.bands, self.bands().saturating_mul(2)));
        visit(Operand::constant::<i16>(self.weights, self.taps.saturating_mul(2)));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Two products of 64 bits for each.
        computations(of_operands(|visit| self.operands(needs, visit)), self.taps, 8)
    }
}

impl<P: Place> Operator for SignalSquareRoot<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 8]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<u32, P>(self.output, self.count));
        visit(read::<i64, P>(self.input, self.count));
        visit(read::<i32, P>(self.bits, 1));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // A step of 64 bits for each bit of the root.
        computations(of_operands(|visit| self.operands(needs, visit)), self.count, 32 * 4)
    }
}

impl<P: Place> Operator for SignalSubtraction<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        let Subtraction {
            smoothing_bits, bits, ..
        } = self.constants;
        valid(smoothing_bits < 32 && bits < 64, Fault::Quantisation)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<u32, P>(self.output, self.count));
        visit(read::<u32, P>(self.input, self.count));
        visit(written::<u32, P>(self.noise, self.count));
        visit(Operand::of::<u32>(Access::Update, self.state, self.count));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Three products of 64 bits.
        computations(of_operands(|visit| self.operands(needs, visit)), self.count, 16)
    }
}

impl<P: Place> Operator for SignalPcan<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        valid(self.shift < 64, Fault::Quantisation)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<u32, P>(self.output, self.count));
        visit(read::<u32, P>(self.input, self.count));
        visit(read::<u32, P>(self.noise, self.count));
        visit(Operand::constant::<i16>(self.table, GAIN_TABLE));
    }

    fn cost(&self, needs: Needs) -> Cost {
        computations(of_operands(|visit| self.operands(needs, visit)), self.count, 16)
    }
}

impl<P: Place> Operator for SignalLog<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        valid(self.correction < 32, Fault::Quantisation)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(written::<i16, P>(self.output, self.count));
        visit(read::<u32, P>(self.input, self.count));
        visit(Operand::constant::<u16>(self.table, LOG_TABLE));
    }

    fn cost(&self, needs: Needs) -> Cost {
        computations(of_operands(|visit| self.operands(needs, visit)), self.count, 16)
    }
}
