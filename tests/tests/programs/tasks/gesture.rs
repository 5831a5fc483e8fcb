//! From an accelerometer's registers to a gesture on emulated cores: motion that was generated, the driver over both buses, and the network.

use arenite::Target;
use arenite_host::pack::Options;
use arenite_tests::oracle;

use crate::tasks::{Program, built, largest, packed, packed_as, printed, root};

const GESTURES: [&str; 5] = ["rest", "shake", "circle", "tap", "flip"];

/// The program takes every eleventh of the held-out windows: `firmware/tasks/build.rs`.
const EVERY: usize = 11;

const PROGRAMS: [Program; 2] = [
    Program {
        name: "gesture",
        features: "gesture,mps2-an386",
        triple: "thumbv7em-none-eabihf",
        board: "mps2-an386",
        machine: &[],
        target: Target::CortexM4,
    },
    Program {
        name: "gesture",
        features: "gesture,riscv32-virt",
        triple: "riscv32imc-unknown-none-elf",
        board: "riscv32-virt",
        machine: &["-cpu", "rv32,a=off,f=off,d=off"],
        target: Target::Riscv32imac,
    },
];

/// Returns the classes that PyTorch sees in the windows, and how many it sees right.
fn expected() -> (Vec<usize>, usize) {
    let folder = root().join("tests/models/gestures");
    let logits: ndarray::ArrayD<f32> = ndarray_npy::read_npy(folder.join("test_logits.npy")).expect("a tracked file");
    let labels: ndarray::ArrayD<i64> = ndarray_npy::read_npy(folder.join("test_labels.npy")).expect("a tracked file");
    let logits: Vec<f32> = logits.into_iter().collect();
    let classes: Vec<usize> = logits.chunks(GESTURES.len()).step_by(EVERY).map(largest).collect();
    let labels = labels.into_iter().step_by(EVERY);
    let right = classes
        .iter()
        .zip(labels)
        .filter(|(class, label)| **class as i64 == *label)
        .count();
    (classes, right)
}

#[test]
fn gestures_are_told_on_the_core_as_by_pytorch() {
    let (expected, right) = expected();
    let seen: std::collections::HashSet<usize> = expected.iter().copied().collect();
    assert_eq!((expected.len(), seen.len()), (19, GESTURES.len()));
    assert!(right >= 18, "{right} of 19 right");
    let wanted: Vec<&str> = expected.iter().flat_map(|&gesture| [GESTURES[gesture]; 2]).collect();
    for program in &PROGRAMS {
        let gestures = packed_as("gestures-", program.target, |output| {
            let mut options = Options::new(root().join("tests/models/gestures/gestures.trace.json"), output);
            options.labels = GESTURES.map(str::to_owned).to_vec();
            options
        });
        let digits = packed(program.target);
        let models = [
            ("ARENITE_MODEL", digits.as_path()),
            ("ARENITE_GESTURES", gestures.as_path()),
        ];
        let Some((file, board)) = built(program, &models) else {
            continue;
        };
        // Each window over I2C, then over SPI.
        assert_eq!(printed(&file, board, program.machine), wanted, "{}", program.triple);
        oracle::compared("PyTorch", wanted.len(), wanted.len());
    }
}
