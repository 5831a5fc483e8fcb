//! Networks that state their own scales: float operators between Dequantize and Quantize, as ONNX's static quantisers (QDQ) and torchao write
//! them. An operator whose
//! operands are dequantised and whose result is quantised becomes one on int8; bytes without sign become int8 of the same real values.
//!
//! `arrange` runs before the layout of activations is chosen, `fold` behind all passes. Operators of one stored operand are tables of the float operators'
//! results; those of others are the float operators' but for ties, which ONNX rounds to even, and for what rounds twice: nothing is more than a step away.

mod arrange;
mod constants;
mod fold;
mod lookup;
mod nodes;
#[cfg(test)]
mod tests;

pub use arrange::arrange;
pub use fold::fold;
