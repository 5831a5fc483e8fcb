//! Limits of importers: constants are folded within one budget for a file, numbers are in their operator's range, shapes and batches are those of the file.
//!
//! Each class is generated: every operator that folds, every real attribute, every scale. Right values come from formulas of this test.

mod attention;
mod attribute_types;
mod attributes;
mod batches;
mod borders;
mod branches;
mod classifiers;
mod declared;
mod dequantised;
mod folding;
mod halves;
mod int32;
mod kept;
mod looked_up;
mod narrow;
mod numbers;
pub(crate) mod onnx_file;
mod open_extents;
mod open_operators;
mod qonnx;
mod refusals;
mod scattered;
mod signatures;
mod tflite_numbers;
mod tflite_stated;
