//! Files that are no networks for `pack`, but that people have at hand: what they are, and how a network comes out of them.

use std::path::Path;

/// What begins a file, what that is, and what to do with it.
const KNOWN: [(&[u8], &str, &str); 4] = [
    (
        b"\x89HDF\r\n\x1a\n",
        "it is an HDF5 file, as Keras saves models",
        "convert it: tf.lite.TFLiteConverter.from_keras_model(model).convert() gives a .tflite file",
    ),
    (
        b"PK\x03\x04",
        "it is a zip archive, as PyTorch (.pt, .pth) and Keras (.keras) save models",
        "export it from PyTorch with arenite_trace or torch.onnx.export, from Keras with tf.lite.TFLiteConverter",
    ),
    (
        b"\x80",
        "it is a Python pickle, as scikit-learn and old PyTorch save models",
        "load it in Python and export it: arenite_trace or torch.onnx.export for PyTorch, skl2onnx for scikit-learn",
    ),
    (
        b"GGUF",
        "it is a GGUF file",
        "language models are out of reach: networks for microcontrollers come as .tflite, .onnx or traces",
    ),
];

/// What a file of no known format is, as far as that can be told, and what to do.
pub(super) fn told(path: &Path, content: &[u8]) -> (&'static str, &'static str) {
    let known = KNOWN.iter().find(|(start, ..)| content.starts_with(start));
    if let Some((_, message, help)) = known {
        return (message, help);
    }
    let ends = |ending: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    let damaged = "the file is damaged or cut off: fetch or convert it again";
    if ends("tflite") {
        return ("it is no .tflite file: `TFL3` does not stand at byte 4", damaged);
    }
    if ends("onnx") {
        return ("it is no .onnx file: no model begins there", damaged);
    }
    if ends("safetensors") || ends("npz") {
        return (
            "it holds weights and no network",
            "pass the network itself, and this file with --weights",
        );
    }
    (
        "pack does not know its format",
        "if you know it, pass --dialect NAME for an error with the line",
    )
}
