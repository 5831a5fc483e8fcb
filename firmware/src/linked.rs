//! The kernels that a program for any model links.

#[cfg(few_kernels)]
use arenite::KernelId::{
    AttentionF32, BatchNormGradF32, Compare, Gather, IntWinogradConv2dS8, L2NormS8, LocallyConnectedF32, LrnF32,
    LrnGradF32, LstmF32, LstmInt, SignalOverlapAdd, SignalWindow, SpecialBinaryF32, SpecialF32, SquaredErrorF32,
    SvdfF32, TrainedConv2dF32, W8Conv2dF32, W16Conv2dF32,
};
#[cfg(few_kernels)]
use arenite::KernelSet;
use arenite::{LoadError, Model};

#[cfg(not(few_kernels))]
pub use arenite::All as Linked;

/// All but those that 256 KiB of flash have no room for: front ends for audio, comparisons, choices, remainders, quotients and products of activations,
/// weights of few bits, detections, rows divided by their length, Winograd convolutions, LSTMs; of f32 special functions and powers, SVDF,
/// locally connected layers and response normalisation; functions of int16; language models and training.
/// A model with one of them is refused at load, by its name.
#[cfg(few_kernels)]
#[derive(Debug)]
pub struct Linked;

#[cfg(few_kernels)]
impl arenite::Kernels for Linked {
    const SET: KernelSet = KernelSet::ALL
        .without(SignalWindow as u8, SignalOverlapAdd as u8)
        .without(Compare as u8, Gather as u8)
        .without(W8Conv2dF32 as u8, L2NormS8 as u8)
        .without(LstmInt as u8, LstmF32 as u8)
        .without(IntWinogradConv2dS8 as u8, IntWinogradConv2dS8 as u8)
        .without(SpecialF32 as u8, SpecialF32 as u8)
        .without(SvdfF32 as u8, SvdfF32 as u8)
        .without(LocallyConnectedF32 as u8, LocallyConnectedF32 as u8)
        .without(LrnF32 as u8, LrnF32 as u8)
        .without(AttentionF32 as u8, W16Conv2dF32 as u8)
        .without(TrainedConv2dF32 as u8, SquaredErrorF32 as u8)
        .without(LrnGradF32 as u8, BatchNormGradF32 as u8)
        .without(SpecialBinaryF32 as u8, SpecialBinaryF32 as u8);
}

/// Loads a model of these kernels, for the core that this runs on.
///
/// # Errors
/// As [`Model::load`].
#[cfg(not(few_kernels))]
#[inline(always)]
pub fn load(blob: &[u8]) -> Result<Model<'_>, LoadError> {
    #[cfg(identified)]
    return Model::load_on(blob, crate::board::cpu());
    #[cfg(not(identified))]
    Model::load(blob)
}

/// Loads a model of these kernels.
///
/// # Errors
/// As [`Model::load`].
#[cfg(few_kernels)]
// Inlined, it takes more stack than the table of stacks knows, which is made with all kernels.
#[inline(never)]
pub fn load(blob: &[u8]) -> Result<Model<'_, Linked>, LoadError> {
    Model::load_with(blob)
}
