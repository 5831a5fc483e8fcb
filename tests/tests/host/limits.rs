//! Sizes and directories at their limits: the last value that is taken, and the first that is refused.

use arenite::bundle::{BUNDLE_ENTRY, write_directory};
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::elementwise::UnaryF32;
use arenite::ops::pointwise::UnaryOp;
use arenite::ops::window::Window2d;
use arenite::{Bundle, DType, Fault, LoadError, Model, Step};
use arenite_tests::blob::{Blob, Tensor, aligned, at};

fn load(file: &[u8]) -> Result<(), LoadError> {
    Model::load(aligned(file).bytes()).map(|_| ())
}

fn fault(fault: Fault) -> Result<(), LoadError> {
    Err(LoadError::Step { step: 0, fault })
}

/// One byte in, one byte out, and a step.
fn with(step: &Step) -> Blob {
    Blob {
        arena: [64, 0, 0, 0],
        inputs: vec![Tensor::new("x", at(0), DType::I8, &[1])],
        outputs: vec![Tensor::new("y", at(32), DType::I8, &[1])],
        weights: vec![0; 64],
        ..Blob::default()
    }
    .step(step)
}

/// An int8 convolution of one channel, far from its input; its constants are zeros.
fn conv(window: Window2d) -> Step {
    Step::Conv2dS8(Conv2dS8 {
        output: at(32),
        input: at(0),
        scratch: at(0),
        weights: 0,
        channels: 16,
        window,
        groups: 1,
        input_zero_point: 0,
        output_zero_point: 0,
        clamp: [-128, 127],
        flags: 0,
    })
}

fn window() -> Window2d {
    Window2d {
        batch: 1,
        input: [3, 2, 1],
        output: [3, 2, 1],
        kernel: [2, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [1, 0],
    }
}

type Change = fn(&mut Window2d);

#[test]
fn a_window_meets_its_input() {
    assert_eq!(load(&with(&conv(window())).file()), Ok(()));
    let changes: [(&str, Change); 8] = [
        ("a first row of padding alone", |w| w.kernel[0] = 1),
        ("a first column of padding alone", |w| w.padding[1] = 1),
        ("a last row behind the input", |w| w.output[0] = 5),
        ("a last column behind the input", |w| w.output[1] = 3),
        ("a kernel that ends far behind", |w| {
            (w.kernel[0], w.dilation[0]) = (3, 128);
            (w.input[0], w.padding[0], w.output[0]) = (1, 0, 1);
        }),
        ("an input of more than 32 bits", |w| w.input = [65535, 65535, 1]),
        ("no row between windows", |w| w.stride[0] = 0),
        ("no image", |w| w.batch = 0),
    ];
    for (what, change) in changes {
        let mut window = window();
        change(&mut window);
        let step = conv(window);
        assert_eq!(load(&with(&step).file()), fault(Fault::Shape), "{what}");
    }
    // One row, or column, less of it is taken.
    for (output, kernel) in [([4, 2, 1], [2, 1]), ([3, 2, 1], [3, 1])] {
        let last = Window2d {
            output,
            kernel,
            ..window()
        };
        assert_eq!(load(&with(&conv(last)).file()), Ok(()), "{output:?}");
    }
}

/// An arena that claims to be all that 32 bits address: sizes that saturate near its end do not fit it.
#[test]
fn no_arena_holds_what_saturates() {
    let negated = |count| {
        let blob = with(&Step::UnaryF32(UnaryF32 {
            output: at(0),
            input: at(0),
            count,
            op: UnaryOp::Neg,
        }));
        let arena = [u32::MAX, 0, 0, 0];
        load(&Blob { arena, ..blob }.file())
    };
    assert_eq!(negated((u32::MAX - 64) / 4), Ok(()));
    assert_eq!(negated(u32::MAX / 4), fault(Fault::Bounds));
}

/// Load does not read the metadata; where they lie is checked all the same.
#[test]
fn metadata_end_with_the_file() {
    let step = conv(window());
    assert_eq!(
        load(&with(&step).file_with(|h| h.meta.len = h.total - h.meta.offset)),
        Ok(())
    );
    let past = with(&step).file_with(|h| h.meta.len = h.total - h.meta.offset + 1);
    assert_eq!(load(&past), Err(LoadError::Header));
}

/// A bundle of one model that begins at `offset`.
fn bundle(offset: usize) -> Vec<u8> {
    let model = with(&conv(window())).file();
    let total = offset + model.len();
    let mut file = vec![0; total];
    file[offset..].copy_from_slice(&model);
    let entry = ("one", offset as u32, model.len() as u32);
    write_directory(total as u32, [entry].into_iter(), &mut file[..2 * BUNDLE_ENTRY]).expect("a directory");
    file
}

#[test]
fn models_of_a_bundle_are_aligned_and_its_version_is_known() {
    let open = |file: &[u8]| Bundle::open(aligned(file).bytes()).map(|bundle| bundle.len());
    assert_eq!(open(&bundle(64)), Ok(1));
    assert_eq!(open(&bundle(128)), Ok(1));
    for offset in [65, 72, 100] {
        assert_eq!(open(&bundle(offset)), Err(LoadError::Header), "{offset}");
    }
    let mut later = bundle(64);
    later[8] = 2;
    let version = LoadError::Version { found: 2, supported: 1 };
    assert_eq!(open(&later), Err(version));
    let file = bundle(64);
    let short = LoadError::Truncated {
        expected: file.len() as u32,
        found: file.len() as u32 - 1,
    };
    assert_eq!(open(&file[..file.len() - 1]), Err(short));
}
