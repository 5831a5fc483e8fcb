//! Outcomes of changed bytes in TensorFlow Lite and ONNX files are on record, as for traces: `tests/results/models.txt` has a letter for each.
//!
//! The files are those of single operators, whose results others hold to be right.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::*;
use crate::round_trip::record::{compared, letter};

/// Every file below a folder with this extension, in order.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map_while(Result::ok);
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.to_string_lossy().ends_with(&format!(".{extension}")) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn changed_models_are_read_as_on_record() {
    /// Bytes of a file that are changed, evenly spread.
    const SAMPLES: usize = 7;
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let folder = tempfile::tempdir().expect("a folder");
    let mut text =
        String::from("# a model; a letter for itself and for each of its bytes that was changed, evenly spread\n");
    for (within, extension) in [("tflite_ops", "tflite"), ("tflite_odd", "tflite"), ("onnx", "onnx")] {
        let path = folder.path().join(format!("changed.{extension}"));
        for file in files(&models.join(within), extension) {
            let bytes = std::fs::read(&file).expect("a model");
            let name = file.strip_prefix(&models).expect("a model").with_extension("");
            let name = name.display().to_string();
            // By its name, so that a model that is added changes no other's letters.
            let number = name.bytes().map(usize::from).sum::<usize>();
            let read = |bytes: &[u8]| {
                std::fs::write(&path, bytes).expect("written");
                let imported = import(&path, None, &ImportOptions::default()).map(|(_, imported)| imported);
                letter(imported, folder.path(), true)
            };
            let mut letters = String::from(read(&bytes));
            for sample in 0..SAMPLES {
                let at = (sample * bytes.len() / SAMPLES + 5 * number) % bytes.len();
                let mut changed = bytes.clone();
                // A flag, a type, a length or an offset becomes another one of its kind, or one that none is.
                changed[at] = match (sample + number) % 3 {
                    0 => bytes[at] ^ 1,
                    1 => bytes[at].wrapping_add(2),
                    _ => !bytes[at],
                };
                letters.push(read(&changed));
            }
            let _ = writeln!(text, "{name} {letters}");
        }
    }
    compared("models.txt", &text);
}
