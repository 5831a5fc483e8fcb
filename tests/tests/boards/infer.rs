//! The firmware `infer` on every board, with a network small enough to check by hand and large enough to have everything: two
//! steps, a state that outlives runs, an arena.

use std::path::Path;
use std::time::Duration;

use arenite::ops::elementwise::{BinaryF32, BinaryOp, Loop, UnaryF32};
use arenite::ops::pointwise::UnaryOp;
use arenite::{DType, Slot, Step, Target};
use arenite_host::board::{self, BOARDS, Blob, Board, BoardError, RunOptions, RunReport};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_tests::blob::{Blob as File, Tensor};
use arenite_tests::{boards_by_turns, named_by_turns};

/// `state += x * x` over `count` elements; the output is the state.
fn accumulator(count: u32) -> Vec<u8> {
    let arena = |offset| Slot { region: 0, offset };
    let state = Slot {
        region: Slot::STATE,
        offset: 0,
    };
    let square = Step::UnaryF32(UnaryF32 {
        output: arena(4 * count),
        input: arena(0),
        count,
        op: UnaryOp::Square,
    });
    let add = Step::BinaryF32(BinaryF32 {
        output: state,
        a: state,
        b: arena(4 * count),
        loops: [Loop { count, a: 1, b: 1 }].into_iter().collect(),
        op: BinaryOp::Add,
        clamp: [f32::NEG_INFINITY, f32::INFINITY],
    });
    let port = |name, slot| Tensor::new(name, slot, DType::F32, &[count]);
    let blob = File {
        arena: [8 * count, 0, 0, 0],
        inputs: vec![port("x", arena(0))],
        outputs: vec![port("sum", state)],
        // No two neighbours alike: runs of one byte would make the file small.
        state: [0, 0, 0, 0x80].repeat(count as usize),
        ..File::default()
    };
    blob.step(&square).step(&add).file()
}

fn boards(test: &str, names: &[&str]) -> Vec<&'static Board> {
    let wanted: Vec<&Board> = if names.is_empty() {
        boards_by_turns(test, &BOARDS)
    } else {
        named_by_turns(test, names)
    };
    wanted
        .into_iter()
        .filter(|board| match board::ready(board) {
            Ok(()) => true,
            Err(reason) => {
                eprintln!("skipped: {test} on {}: {reason}", board.name);
                false
            }
        })
        .collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn run(board: &'static Board, blob: &[u8], inputs: &[f32], options: &RunOptions) -> Result<RunReport, BoardError> {
    board::run(board, Blob::Bytes(blob), &bytes(inputs), options)
}

const COUNT: u32 = 24;

fn inputs(runs: u32) -> Vec<f32> {
    (0..runs * COUNT).map(|i| i as f32 / 4.0).collect()
}

#[test]
fn every_board_runs_a_sequence_and_carries_the_state() {
    let blob = accumulator(COUNT);
    let given = inputs(3);
    let mut sum = vec![0.0; COUNT as usize];
    let mut carried = Vec::new();
    for run in given.chunks(COUNT as usize) {
        sum.iter_mut().zip(run).for_each(|(sum, x)| *sum += x * x);
        carried.extend(bytes(&sum));
    }
    let fresh: Vec<u8> = given.iter().flat_map(|x| (x * x).to_le_bytes()).collect();
    for board in boards("sequence", &[]) {
        let options = RunOptions {
            runs: 3,
            ..RunOptions::default()
        };
        let report = run(board, &blob, &given, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.outputs, carried, "{}", board.name);
        assert_eq!(
            (report.arena_bytes, report.state_bytes),
            (8 * u64::from(COUNT), 4 * u64::from(COUNT))
        );
        assert_eq!(report.arena_touched_bytes, 8 * u64::from(COUNT), "{}", board.name);
        assert!(
            report.stack_bytes > 0 && report.stack_bytes < 2048,
            "{}: stack {}",
            board.name,
            report.stack_bytes
        );
        assert!(report.load_instructions > 0 && report.instructions.iter().all(|&count| count > 100));
        // The same at every run, to the instruction.
        assert_eq!(
            run(board, &blob, &given, &options).expect("as before"),
            report,
            "{}",
            board.name
        );

        let options = RunOptions {
            runs: 3,
            reset_each: true,
            profile: true,
            dump_steps: true,
            ..options
        };
        let report = run(board, &blob, &given, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.outputs, fresh, "{}", board.name);
        assert_eq!(report.steps.len(), 3);
        for (steps, &total) in report.steps.iter().zip(&report.instructions) {
            assert_eq!((steps.len(), steps.iter().sum::<u64>()), (2, total), "{}", board.name);
        }
        let squares = bytes(&given[..COUNT as usize].iter().map(|x| x * x).collect::<Vec<_>>());
        let dumped: Vec<_> = report
            .dumps
            .iter()
            .map(|dump| (dump.step, dump.bytes.as_slice()))
            .collect();
        assert_eq!(
            dumped,
            [(0, squares.as_slice()), (1, squares.as_slice())],
            "{}",
            board.name
        );
    }
}

/// The timers and the plugin count the same, to the instruction; painted stack and watched stores agree to a few bytes.
#[test]
fn the_plugin_confirms_every_boards_counts() {
    let blob = accumulator(COUNT);
    for board in boards("plugin", &[]) {
        let options = RunOptions {
            profile: true,
            trace: true,
            ..RunOptions::default()
        };
        let report = run(board, &blob, &inputs(1), &options).unwrap_or_else(|error| panic!("{error}"));
        let trace = report.trace.expect("asked for");
        assert_eq!(
            trace.load.instructions, report.load_instructions,
            "{}: load",
            board.name
        );
        let counted: Vec<u64> = trace.runs.iter().map(|interval| interval.instructions).collect();
        assert_eq!(counted, report.steps[0], "{}: steps", board.name);
        let deepest = trace
            .runs
            .iter()
            .map(|interval| interval.stack_bytes)
            .max()
            .expect("two steps");
        // The paint is looked at by words; the plugin sees that the deepest store may be of less than one.
        let words = deepest.next_multiple_of(4);
        assert_eq!(words, u64::from(report.stack_bytes), "{}: stack", board.name);
        for interval in &trace.runs {
            let by_mnemonic: u64 = interval.histogram().values().sum();
            assert!(
                by_mnemonic.abs_diff(interval.instructions) < 8,
                "{}: {by_mnemonic}",
                board.name
            );
            // The blocks' order tells of the same instructions, but for the counter's own.
            let edges = interval.edges.iter();
            let sequenced: u64 = edges.map(|((_, to), count)| count * u64::from(to.instructions)).sum();
            assert!(
                sequenced.abs_diff(interval.instructions) < 64,
                "{}: {sequenced} of {}",
                board.name,
                interval.instructions
            );
            if let Some(estimate) = interval.cycles(board.timings) {
                assert!(
                    estimate.cycles >= interval.instructions / 2,
                    "{}: {estimate:?}",
                    board.name
                );
            }
        }
    }
}

#[test]
fn a_blob_file_is_loaded_in_place() {
    let folder = tempfile::tempdir().expect("a folder");
    // A comma in a path means something to qemu.
    let path = folder.path().join("a,b.bin");
    std::fs::write(&path, accumulator(COUNT)).expect("writes");
    for board in boards("file", &["mps2-an386"]) {
        let report = board::run(board, Blob::File(&path), &bytes(&inputs(1)), &RunOptions::default()).expect("runs");
        assert_eq!(report.outputs.len(), 4 * COUNT as usize);
    }
}

#[test]
fn damaged_blobs_are_refused_by_name() {
    let good = accumulator(COUNT);
    let mut flipped = good.clone();
    *flipped.last_mut().expect("not empty") ^= 1;
    let cut = &good[..good.len() - 5];
    for board in boards("damage", &["mps2-an386", "microbit", "riscv32-virt"]) {
        for (blob, expected) in [
            (flipped.as_slice(), "Checksum"),
            (cut, "Truncated"),
            (&[], "Truncated"),
            (&[7; 300], "NotABlob"),
        ] {
            match run(board, blob, &inputs(1), &RunOptions::default()) {
                Err(BoardError::Refused { name, text, .. }) => {
                    assert_eq!(name, expected, "{}", board.name);
                    assert!(!text.is_empty());
                }
                other => panic!("{}: {expected}: {other:?}", board.name),
            }
        }
    }
}

/// Instructions that only some cores have are for builds for such cores.
#[test]
fn a_build_without_an_extension_refuses_its_kernels_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops/conv_3x3_same.tflite");
    for (target, kernel, without, with) in [
        (
            Target::Aarch64Dotprod,
            "DotprodConv2dS8",
            "aarch64-virt",
            "aarch64-virt:max",
        ),
        (Target::Aarch64I8mm, "I8mmConv2dS8", "aarch64-virt", "aarch64-virt:max"),
        (Target::Aarch64Sme, "SmeConv2dS8", "aarch64-virt", "aarch64-virt:max"),
        (Target::Riscv64gcv, "RvvConv2dS8", "riscv64-virt", "riscv64-virt:v128"),
        (Target::Riscv32imacv, "RvvConv2dS8", "riscv32-virt", "riscv32-virt:v128"),
    ] {
        let output = folder.path().join("conv.bin");
        let options = Options {
            target,
            ..Options::new(&network, &output)
        };
        pack(&options, &mut |_, _, _| {}).expect("packs");
        let file = ModelFile::open(&output).expect("a model");
        let inputs = vec![0; file.view().expect("intact").header().input_bytes as usize];
        if named_by_turns(target.name(), &[with]).is_empty() {
            continue;
        }
        for board in boards(target.name(), &[without, with]) {
            let ran = board::run(board, Blob::File(&output), &inputs, &RunOptions::default());
            match (board.name, ran) {
                (board, Err(BoardError::Refused { name, text, .. })) if board == without => {
                    assert_eq!(name, "Kernel");
                    assert!(text.contains(kernel) && text.contains(target.name()), "{text}");
                }
                (board, Ok(_)) if board == with => (),
                (name, other) => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn inputs_of_a_wrong_length_are_refused_with_both_lengths() {
    for board in boards("input size", &["mps2-an386"]) {
        let options = RunOptions {
            runs: 2,
            ..RunOptions::default()
        };
        match run(board, &accumulator(COUNT), &inputs(1), &options) {
            Err(BoardError::InputSize {
                runs: 2,
                each: 96,
                given: 96,
            }) => (),
            other => panic!("{other:?}"),
        }
    }
}

/// 16 KiB of RAM, of which the stack takes a quarter; 256 KiB of flash, of which the firmware takes some.
#[test]
fn what_does_not_fit_the_microbit_is_refused_with_both_figures() {
    for board in boards("fit", &["microbit"]) {
        match run(
            board,
            &accumulator(2000),
            &[],
            &RunOptions {
                runs: 0,
                ..RunOptions::default()
            },
        ) {
            Err(BoardError::OutOfMemory {
                needed: 16_000,
                available,
                ..
            }) => assert!(available > 8000 && available < 12_288),
            other => panic!("{other:?}"),
        }
        match run(
            board,
            &accumulator(60_000),
            &[],
            &RunOptions {
                runs: 0,
                ..RunOptions::default()
            },
        ) {
            Err(BoardError::BlobTooLarge {
                place: "flash",
                needed,
                available,
                ..
            }) => {
                assert!(needed > 240_000 && available < 200_000, "{needed} {available}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_time_limit_says_how_far_the_run_came() {
    for board in boards("time limit", &["mps2-an386"]) {
        let options = RunOptions {
            runs: 5_000_000,
            timeout: Duration::from_millis(1500),
            ..RunOptions::default()
        };
        let blob = accumulator(1);
        match run(board, &blob, &vec![0.0; 5_000_000], &options) {
            Err(BoardError::Timeout { reached, .. }) => assert!(reached.starts_with("Ran"), "{reached}"),
            other => panic!("{other:?}"),
        }
    }
}
