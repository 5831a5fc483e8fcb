//! The signal operators of TensorFlow Lite Micro: operands and attributes.

pub use arenite::ops::signal::Subtraction;

/// A signal operator. Where it has a state, that is its last operand. uint32 and uint64 tensors are int32 and int64 ones of the same bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// in 0: samples `[.., n]`, int16; in 1: window `[n]`.
    Window {
        /// Shift of the products.
        shift: u8,
    },
    /// in 0: samples `[n]`, int16; out 0: them as large as they can be; out 1: by how many bits, `[]`.
    AutoScale,
    /// in 0: samples `[.., n]` of int16, int32 or f32, zeros follow up to the length; out 0: `[.., length + 2]`, pairs of real and imaginary part.
    /// The inverse: back.
    Fft {
        /// Length of the transform.
        length: usize,
        /// Back to samples.
        inverse: bool,
    },
    /// in 0: pairs of real and imaginary part `[2 * n]`, int16; out 0: `[n]`, uint32.
    Energy {
        /// The first bin that is wanted.
        start: usize,
        /// Behind the last one.
        end: usize,
    },
    /// in 0: energies, uint32; in 1, 2: weights and their counterparts; in 3, 4, 5: for each of one more than the channels the first bin, the first weight and
    /// the number of bins; all of these constant. Out 0: `[channels]`, uint64.
    FilterBank,
    /// in 0: uint64; in 1: bits to take off the roots, `[]`; out 0: uint32.
    SquareRoot,
    /// in 0: uint32; in 1: state; out 0: as in 0; out 1: the noise.
    SpectralSubtraction(Subtraction),
    /// in 0: uint32; in 1: the noise; in 2: the table of gains, constant; out 0: as in 0.
    Pcan {
        /// Shift of the products.
        shift: u8,
    },
    /// in 0: uint32; out 0: int16.
    Log {
        /// Factor.
        scale: u32,
        /// Bits by which the input is shifted first.
        correction: u8,
    },
    /// in 0: samples `[.., n]`, int16; in 1: state; out 0: as in 0.
    Delay {
        /// Samples.
        length: usize,
    },
    /// in 0: samples `[.., frames * step]`, int16; in 1: state; out 0: `[.., frames, size]`; out 1: whether they are valid, `[]`.
    Framer {
        /// Samples of a frame.
        size: usize,
        /// Samples from frame to frame.
        step: usize,
        /// Whether zeros stand before the first sample.
        prefill: bool,
    },
    /// in 0: a frame `[channels]`, int16; in 1: state; out 0: frames with their context; out 1: whether they are valid, `[]`.
    Stacker {
        /// Frames before.
        left: usize,
        /// Frames behind.
        right: usize,
        /// Frames from turn to turn.
        step: usize,
    },
    /// in 0: frames `[.., frames, size]`, int16 or f32; in 1: state; out 0: `[.., frames * step]`.
    OverlapAdd {
        /// Samples from frame to frame.
        step: usize,
    },
}

impl Signal {
    /// Its kind in summaries.
    pub fn name(&self) -> &'static str {
        match self {
            Signal::Window { .. } => "window",
            Signal::AutoScale => "auto_scale",
            Signal::Fft { inverse: false, .. } => "rfft",
            Signal::Fft { inverse: true, .. } => "irfft",
            Signal::Energy { .. } => "energy",
            Signal::FilterBank => "filter_bank",
            Signal::SquareRoot => "square_root",
            Signal::SpectralSubtraction(_) => "spectral_subtraction",
            Signal::Pcan { .. } => "pcan",
            Signal::Log { .. } => "log_int",
            Signal::Delay { .. } => "delay",
            Signal::Framer { .. } => "framer",
            Signal::Stacker { .. } => "stacker",
            Signal::OverlapAdd { .. } => "overlap_add",
        }
    }
}
