//! Every guard of the runtime is seen to fire: small files made by hand, with a good checksum, and exactly the error that each must give.

mod commands;
mod cpus;
mod files;
mod sessions;
mod states;

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::convert::{Convert, Table};
use arenite::ops::elementwise::UnaryF32;
use arenite::ops::pointwise::UnaryOp;
use arenite::ops::svdf::{SvdfF32, SvdfShape};
use arenite::ops::window::Window2d;
use arenite::{
    Arenas, DType, Fault, HEADER_BYTES, KernelId, LoadError, MAX_REGIONS, Model, Progress, Receipt, RunError, Session,
    SessionError, Slot, Stated, Step, Target,
};
use arenite_host::model::{Aligned, ModelFile};
use arenite_tests::blob::{Blob, Tensor, aligned, at, seal, shared_by};
use arenite_tests::golden::packed;
use arenite_tests::variants::unprovoked;

const WEIGHTS: u8 = Slot::WEIGHTS;

fn load(file: &[u8]) -> Result<(), LoadError> {
    Model::load(aligned(file).bytes()).map(|_| ())
}

fn unary(output: Slot, input: Slot, count: u32) -> Step {
    let op = UnaryOp::Neg;
    Step::UnaryF32(UnaryF32 {
        output,
        input,
        count,
        op,
    })
}

/// Three numbers from byte 0 to byte 16, negated.
fn small() -> Blob {
    Blob {
        arena: [32, 0, 0, 0],
        inputs: vec![Tensor::new("x", at(0), DType::F32, &[1, 3])],
        outputs: vec![Tensor::new("y", at(16), DType::F32, &[3, 1])],
        ..Blob::default()
    }
    .step(&unary(at(16), at(0), 3))
}

/// [`small`] with another step.
fn with(step: Step) -> Blob {
    let mut blob = small();
    blob.replace(0, &step);
    blob
}

/// [`small`] with another input.
fn reading(input: Tensor) -> Blob {
    Blob {
        inputs: vec![input],
        ..small()
    }
}

fn tensor(slot: Slot, dtype: DType, shape: &[u32]) -> Tensor {
    Tensor::new("x", slot, dtype, shape)
}

fn window() -> Window2d {
    Window2d {
        batch: 1,
        input: [1, 2, 2],
        output: [1, 2, 2],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    }
}

/// One unit with a memory of two, at `state`; its constants are zeros.
fn svdf(output: Slot, state: Slot) -> Blob {
    let shape = SvdfShape {
        batch: 1,
        features: 3,
        units: 1,
        rank: 1,
        memory: 2,
    };
    let step = Step::SvdfF32(SvdfF32 {
        output,
        input: at(0),
        state,
        shape,
        weights: 0,
        time_weights: 16,
        bias: 32,
        clamp: [f32::MIN, f32::MAX],
    });
    let mut blob = with(step);
    blob.outputs = vec![Tensor::new("y", at(16), DType::F32, &[1])];
    blob.weights = vec![0; 48];
    blob.state = vec![0; 16];
    blob
}

/// A run with a limit of its own: one that does not end fails, and does not hang.
fn bounded(session: &mut Session<'_, '_>) -> Result<(), RunError> {
    let mut steps = 0;
    session.run_with(|_| {
        steps += 1;
        assert!(steps < 100, "the run does not end");
    })
}

/// A file whose receipt is of another length, checksum or version.
fn other_than_the_receipt() -> LoadError {
    let mut memory = aligned(&small().file());
    let file = memory.bytes();
    let receipt = Receipt::of(file).expect("an intact file");
    let load = |receipt| Model::load_with_receipt(file, &receipt).map(|_| ());
    assert_eq!(load(receipt), Ok(()));
    let Receipt { length, crc, version } = receipt;
    let refused = LoadError::Receipt { length, crc, version };
    for other in [
        Receipt {
            length: length + 1,
            ..receipt
        },
        Receipt {
            crc: crc ^ 1,
            ..receipt
        },
        Receipt {
            version: version + 1,
            ..receipt
        },
    ] {
        assert_eq!(load(other), Err(refused), "{other:?}");
    }
    refused
}
