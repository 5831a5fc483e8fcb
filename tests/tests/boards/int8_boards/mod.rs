//! TensorFlow Lite models on the boards: packed for the board's own core, with `--size` too, and as portable, int8 outputs the bits of TensorFlow Lite
//! Micro, f32 ones within 1e-5, every step's result the host's.
//!
//! `quick` takes a few models and inputs on every board; `long` (ignored) takes everything.

mod case;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::case::*;
use arenite::{DType, KernelId, Step, Target};
use arenite_host::board::protocol::During;
use arenite_host::board::{BOARDS, Blob, Board, BoardError, RunOptions, doubted, ready, run};
use arenite_host::metadata::Restored;
use arenite_host::model::{self, ModelFile};
use arenite_tests::golden::{Archive, completed, difference, first_difference, packed, packed_small};
use arenite_tests::{boards_by_turns, named_by_turns, shared, skip};
use sha2::{Digest, Sha256};

/// Real models of the quick tier; the streaming voice detector has state.
const QUICK: [&str; 4] = ["ad01_int8", "esphome_v2_vad", "kws_ref_model", "tflm_hello_world_int8"];

/// Single operators of the quick tier: a kernel of every backend, each in an awkward form.
const OPERATORS: [&str; 21] = [
    "add_int8",
    "average_pool_same",
    "batch_matmul_long_int8",
    "conv_asymmetric_stride",
    "conv_constant_channels",
    "conv_dilated_same",
    "conv_grouped",
    "depthwise_3x3_stride2",
    "depthwise_multiplier2",
    "div_i8_scales_1",
    "floor_mod_int16",
    "gather_computed",
    "greater_broadcast_int8",
    "less_equal_broadcast_int32",
    "linear_batch_relu",
    "lstm",
    "max_pool_same",
    "select_v2_broadcast_int16",
    "softmax_0",
    "squared_difference_scales_2",
    "svdf_i8_state",
];

/// Of the signal operators: each, with a state where it has one.
const SIGNALS: [&str; 14] = [
    "auto_scale",
    "delay_long",
    "energy",
    "filter_bank",
    "framer_prefill",
    "irfft_rows",
    "log_large",
    "overlap_add_rows",
    "pcan",
    "rfft_480",
    "rfft_i32_90",
    "stacker_alone",
    "subtraction",
    "window_rows",
];

/// One test for each board of the table: few inputs in `quick`, everything in `long`.
macro_rules! on_boards {
    ($($name:ident $board:literal)*) => {
        const TESTED: &[&str] = &[$($board),*];

        mod quick {
            use super::*;
            $(#[test]
            fn $name() {
                quick(concat!("quick::", stringify!($name)), $board);
            })*
        }

        mod long {
            use super::*;
            $(#[test]
            #[ignore = "long: every input of every int8 model"]
            fn $name() {
                long(concat!("long::", stringify!($name)), $board);
            })*
        }
    };
}

on_boards! {
    mps2_an385 "mps2-an385"
    mps2_an385_thumbv6m "mps2-an385:thumbv6m"
    mps2_an386 "mps2-an386"
    mps2_an500 "mps2-an500"
    mps2_an505 "mps2-an505"
    mps3_an547 "mps3-an547"
    microbit "microbit"
    riscv32_virt "riscv32-virt"
    riscv32_virt_v128 "riscv32-virt:v128"
    riscv64_virt "riscv64-virt"
    riscv64_virt_v128 "riscv64-virt:v128"
    riscv64_virt_v256 "riscv64-virt:v256"
    sifive_u "sifive-u"
    aarch64_virt "aarch64-virt"
    aarch64_virt_max "aarch64-virt:max"
    aarch64_virt_sme512 "aarch64-virt:sme512"
}

#[test]
fn every_board_of_the_table_is_tested() {
    // Boards of several cores are others' with more of them: `cores` has theirs.
    let boards = BOARDS.iter().filter(|board| board.cores() == 1);
    let boards: Vec<&str> = boards.map(|board| board.name).collect();
    assert_eq!(TESTED, boards);
}

fn board(name: &str) -> &'static Board {
    Board::find(name).unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// Two independent inputs, three of a sequence.
fn quick(test: &str, name: &str) {
    let Some(shared) = shared() else {
        return skip(test, "no shared data");
    };
    // Those of several cores are tested elsewhere: `cores`.
    let single = BOARDS.iter().filter(|board| board.cores() == 1);
    if boards_by_turns(test, single).iter().all(|board| board.name != name) {
        return;
    }
    let mut cases = Case::real(&shared, |model| QUICK.contains(&model), 3);
    for group in cases.iter_mut().flat_map(|case| &mut case.groups) {
        group.truncate(if group.sequence { 3 } else { 2 });
    }
    assert_eq!(cases.len(), QUICK.len());
    compare(test, board(name), &cases, true);
}

fn long(test: &str, name: &str) {
    let Some(shared) = shared() else {
        return skip(test, "no shared data");
    };
    let cases = Case::real(&shared, is_int8, usize::MAX);
    assert_eq!(cases.len(), 14);
    // The host gives the reference's bits too (`tflite_run`), so equal outputs are equal digests.
    compare(test, board(name), &cases, false);
}

/// Needs no shared data: a board of each vector backend and one without.
#[test]
fn single_operators() {
    let cases = Case::operators("models/tflite_ops", &OPERATORS);
    for board in named_by_turns("single_operators", &["mps2-an386", "mps3-an547", "riscv32-virt"]) {
        compare("single_operators", board, &cases, true);
    }
}

/// Operators whose only kernel has loops of its own on some cores.
const LOOPS: [&str; 20] = [
    "conv_i16",
    "conv_i16_dilated",
    "conv_i16_nearly_a_power",
    "conv_i16_relu",
    "depthwise_i16",
    "depthwise_i16_multiplier",
    "depthwise_i16_no_bias",
    "lstm",
    "lstm_blocks",
    "lstm_clip",
    "lstm_coarse",
    "lstm_i16_blocks",
    "lstm_i16_long",
    "quantize_i8",
    "svdf_i16_state",
    "svdf_i16_state_many",
    "svdf_i16_state_rank1",
    "svdf_i16_state_vector",
    "svdf_i16_state_vectors",
    "svdf_i8_state",
];

/// These, and all single layers as large as those of models are and with odd extents.
#[test]
fn loops_of_cores() {
    const WIDE: &str = "models/tflite_wide";
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(WIDE)).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut wide: Vec<String> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tflite"))
        .map(stem)
        .collect();
    wide.sort();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    for (folder, names) in [("models/tflite_ops", &LOOPS[..]), (WIDE, &wide)] {
        let mut cases = Case::operators(folder, names);
        cases
            .iter_mut()
            .flat_map(|case| &mut case.groups)
            .for_each(|group| group.truncate(3));
        let boards = [
            "mps2-an385",
            "mps2-an385:thumbv6m",
            "mps2-an386",
            "mps3-an547",
            "riscv32-virt",
        ];
        for board in named_by_turns("loops_of_cores", &boards) {
            compare("loops_of_cores", board, &cases, true);
        }
    }
}

/// Cores without a long multiplication and without a division among them.
const SIGNAL_BOARDS: [&str; 4] = ["mps2-an385:thumbv6m", "mps2-an386", "mps3-an547", "riscv32-virt"];

#[test]
fn signal_operators() {
    let cases = Case::operators("models/tflite_signal", &SIGNALS);
    for board in named_by_turns("signal_operators", &SIGNAL_BOARDS) {
        compare("signal_operators", board, &cases, true);
    }
}

#[test]
fn a_front_end_for_speech() {
    const TEST: &str = "a_front_end_for_speech";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    for board in named_by_turns(TEST, &SIGNAL_BOARDS) {
        compare(TEST, board, &[front_end(&shared, 24)], true);
    }
}

#[test]
fn float_models_are_within_1e_minus_5() {
    const TEST: &str = "float_models_are_within_1e_minus_5";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let cases = Case::real(
        &shared,
        |model| ["ad01_fp32", "tflm_hello_world_float"].contains(&model),
        2,
    );
    for board in named_by_turns(TEST, &["mps2-an386", "aarch64-virt"]) {
        compare(TEST, board, &cases, false);
    }
}

#[test]
#[ignore = "long: every f32 model"]
fn every_float_model_is_within_1e_minus_5() {
    const TEST: &str = "every_float_model_is_within_1e_minus_5";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let cases = Case::real(&shared, |model| FLOAT.contains(&model), 2);
    assert_eq!(cases.len(), FLOAT.len());
    for name in ["mps2-an386", "aarch64-virt"] {
        compare(TEST, board(name), &cases, false);
    }
}

#[test]
fn models_too_large_for_a_board_are_refused_with_both_figures() {
    const TEST: &str = "models_too_large_for_a_board_are_refused_with_both_figures";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let microbit = board("microbit");
    if let Err(reason) = ready(microbit) {
        return skip(TEST, &reason.to_string());
    }
    // A file beyond the flash, and a small one whose arena is beyond the RAM.
    let cases = [
        Case::real(&shared, |model| model == "ad01_int8", 1).remove(0),
        Case::operators("models/tflite_wide", &["wide_movement"]).remove(0),
    ];
    let refused = cases.map(|case| {
        let name = &case.name;
        let folder = tempfile::tempdir().expect("a folder");
        let file = packed(&case.file, folder.path(), Target::CortexM0).unwrap_or_else(|e| panic!("{e}"));
        match on_board(microbit, &file, &case.groups) {
            Outcome::DoesNotFit(error) => {
                assert!(states_both_figures(&error, &file), "{name}: {error}");
                error
            }
            Outcome::Same(..) => panic!("{name} runs"),
            Outcome::LeftOut(error) => panic!("{name}: {error}"),
            Outcome::Different(text) => panic!("{name}: {text}"),
        }
    });
    assert!(
        matches!(
            refused,
            [
                BoardError::BlobTooLarge { place: "flash", .. },
                BoardError::OutOfMemory { .. }
            ]
        ),
        "{refused:?}"
    );
}

/// The microbit's flash has no room for every kernel: a model with one that its program leaves out is refused at load, and says which.
#[test]
fn a_kernel_that_small_flash_leaves_out_is_refused_by_name() {
    const TEST: &str = "a_kernel_that_small_flash_leaves_out_is_refused_by_name";
    let microbit = board("microbit");
    if let Err(reason) = ready(microbit) {
        return skip(TEST, &reason.to_string());
    }
    for (folder, name, kernel) in [
        ("models/tflite_ops", "lstm", KernelId::LstmInt),
        ("models/tflite_ops", "select_v2_broadcast_int16", KernelId::Choose),
        ("models/tflite_signal", "energy", KernelId::SignalEnergy),
    ] {
        let case = Case::operators(folder, &[name]).remove(0);
        let scratch = tempfile::tempdir().expect("a folder");
        let file = packed(&case.file, scratch.path(), Target::CortexM0).unwrap_or_else(|e| panic!("{e}"));
        let inputs = vec![0; file.view().expect("a model").header().input_bytes as usize];
        let error = run(microbit, Blob::File(file.path()), &inputs, &RunOptions::default());
        let error = error.expect_err("refused");
        assert!(names_left_out(&error, microbit, &file), "{name}: {error}");
        let error = error.to_string();
        assert!(
            error.contains("load") && error.contains(&format!("{kernel:?}")),
            "{name}: {error}"
        );
    }
}

/// A program that is compiled for more than its core has asks the core: the file is refused by name, and no instruction is undefined.
#[test]
fn what_a_core_lacks_is_refused_by_name() {
    const TEST: &str = "what_a_core_lacks_is_refused_by_name";
    let case = Case::operators("models/tflite_wide", &["wide_conv_odd"]).remove(0);
    for (name, target, lacks, processor, portable) in [
        (
            "aarch64-virt:max",
            Target::Aarch64Dotprod,
            "dotprod",
            "cortex-a57",
            Target::Aarch64,
        ),
        (
            "aarch64-virt:max",
            Target::Aarch64I8mm,
            "i8mm",
            "neoverse-n1",
            Target::Aarch64Dotprod,
        ),
        (
            "aarch64-virt:max",
            Target::Aarch64Sme,
            "sme",
            "neoverse-n1",
            Target::Aarch64,
        ),
        (
            "riscv64-virt:v128",
            Target::Riscv64gcv,
            "rvv",
            "rv64",
            Target::Riscv64gc,
        ),
        (
            "riscv32-virt:v128",
            Target::Riscv32imacv,
            "rvv",
            "rv32",
            Target::Riscv32imac,
        ),
    ] {
        let board = board(name);
        if named_by_turns(TEST, &[name]).is_empty() {
            continue;
        }
        if let Err(reason) = ready(board) {
            return skip(TEST, &reason.to_string());
        }
        let scratch = tempfile::tempdir().expect("a folder");
        let options = RunOptions {
            qemu_arguments: ["-cpu", processor].map(str::to_owned).to_vec(),
            ..RunOptions::default()
        };
        let on = |target| {
            let file = packed(&case.file, scratch.path(), target).unwrap_or_else(|e| panic!("{e}"));
            let inputs = vec![0; file.view().expect("a model").header().input_bytes as usize];
            run(board, Blob::File(file.path()), &inputs, &options)
        };
        let error = on(target).expect_err("refused").to_string();
        assert!(
            error.contains(&format!("not the instructions of `{lacks}`")),
            "{name}: {error}"
        );
        // Portable kernels, which the core has, run there.
        on(portable).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Every step's result on a board is that on the host, and that of the portable kernels there; `tflite_intermediates` compares those with the references.
#[test]
fn every_steps_result_is_the_hosts() {
    const TEST: &str = "every_steps_result_is_the_hosts";
    let Some(shared) = shared() else {
        return skip(TEST, "no shared data");
    };
    let models = [
        "ad01_int8",
        "kws_ref_model",
        "pretrainedResnet_quant",
        "tinyengine_vww",
        "vww_96_int8",
    ];
    for case in Case::real(&shared, |name| models.contains(&name), 1) {
        let input = &case.groups[0].inputs[..1];
        let portable = results(&case, input, Target::Portable);
        for board in named_by_turns(TEST, &["mps2-an385", "mps2-an386", "mps3-an547", "riscv32-virt"]) {
            if let Err(reason) = ready(board) {
                skip(TEST, &format!("{}: {reason}", board.name));
                continue;
            }
            let (target, _) = packings(board)[0];
            let what = format!("{} for {} on {}", case.name, target.name(), board.name);
            let own = results(&case, input, target);
            let common: Vec<&String> = own.keys().filter(|name| portable.contains_key(*name)).collect();
            assert!(
                2 * common.len() >= portable.len(),
                "{what}: {} tensors in common",
                common.len()
            );
            for name in common {
                assert!(
                    first_difference(&own[name], &portable[name]).is_none(),
                    "{what}: `{name}` is not the portable kernels'"
                );
            }
            dumps(&case, input, target, board, &what);
        }
    }
}

/// The tensors that the steps complete on the host, by name.
fn results(case: &Case, input: &[Vec<Vec<u8>>], target: Target) -> BTreeMap<String, Restored> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(&case.file, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
    let metadata = file.view().and_then(|view| view.metadata()).expect("metadata");
    let mut found = BTreeMap::new();
    model::run(&file.load().expect("loads"), input, true, &mut |_, step, session| {
        if let Some((names, tensor)) = completed(&metadata, step, session) {
            found.extend(names.iter().map(|name| (name.clone(), tensor.clone())));
        }
    })
    .expect("runs");
    found
}

/// Compares everything that the steps of the first run write, place by place.
fn dumps(case: &Case, input: &[Vec<Vec<u8>>], target: Target, board: &'static Board, what: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = packed(&case.file, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        dump_steps: true,
        timeout: Duration::from_secs(1200),
        ..RunOptions::default()
    };
    let report = run(board, Blob::File(file.path()), &input[0].concat(), &options).unwrap_or_else(|e| panic!("{e}"));
    let mut compared = 0;
    let model = file.load().expect("loads");
    model::run(&model, input, true, &mut |_, step, session| {
        for dump in report.dumps.iter().filter(|dump| dump.step == step) {
            let here = session.read(dump.slot, dump.bytes.len() as u32).expect("in bounds");
            assert!(here == dump.bytes, "{what}: step {step} leaves other bytes");
            compared += 1;
        }
    })
    .expect("runs");
    assert!(compared == report.dumps.len() && compared >= model.header().step_count as usize);
    println!("{what}: {compared} results");
}
