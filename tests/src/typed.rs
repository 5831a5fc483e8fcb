//! Small models that tests embed in programs: `tests/models/typed`.

use arenite::bundle::{BUNDLE_ENTRY, write_directory};
use arenite::ops::elementwise::UnaryF32;
use arenite::ops::pointwise::UnaryOp;
use arenite::{DType, Slot, Step};

use crate::blob::{Blob, Tensor, at};

/// Inputs `a` (int8, quantised) and `b` (f32); outputs: `a` where it lies, and the squares of `b`.
///
/// # Panics
/// Never.
pub fn written() -> Blob {
    let mut a = Tensor::new("a", at(0), DType::I8, &[1, 3]);
    (a.scale, a.zero_point) = (0.5, -1);
    let b = Tensor::new("b", at(16), DType::F32, &[2]);
    let square = Step::UnaryF32(UnaryF32 {
        output: at(32),
        input: at(16),
        count: 2,
        op: UnaryOp::Square,
    });
    let blob = Blob {
        arena: [40, 0, 0, 0],
        inputs: vec![a.clone(), b],
        outputs: vec![a, Tensor::new("squares", at(32), DType::F32, &[2])],
        labels: postcard::to_stdvec(&vec!["no", "yes", "Käse"]).expect("encodes"),
        ..Blob::default()
    };
    blob.step(&square)
}

/// The squares of three numbers, in a larger arena.
pub fn other() -> Blob {
    let square = Step::UnaryF32(UnaryF32 {
        output: at(16),
        input: at(0),
        count: 3,
        op: UnaryOp::Square,
    });
    let port = |name, slot: Slot| Tensor::new(name, slot, DType::F32, &[3]);
    let blob = Blob {
        arena: [64, 0, 0, 0],
        inputs: vec![port("x", at(0))],
        outputs: vec![port("y", at(16))],
        ..Blob::default()
    };
    blob.step(&square)
}

/// A bundle of these models.
///
/// # Panics
/// Where it would be none.
pub fn bundle(models: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0; BUNDLE_ENTRY * (models.len() + 1)];
    let mut entries = Vec::new();
    for (name, model) in models {
        file.resize(file.len().next_multiple_of(64), 0);
        entries.push((*name, file.len() as u32, model.len() as u32));
        file.extend(model);
    }
    let total = file.len() as u32;
    let directory = &mut file[..BUNDLE_ENTRY * (models.len() + 1)];
    write_directory(total, entries.into_iter(), directory).expect("a directory");
    file
}
