//! Promises of the arena plan, on emulated boards: a fitted network, one spread over two memories, the models of a bundle. The firmware puts canaries around
//! every region, and a run that changes one is an error.

use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_host::board::{BOARDS, Blob, Board, RunOptions, RunReport, ready, run};
use arenite_host::bundle::bundle;
use arenite_host::memory::Region;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::report::Summary;
use arenite_tests::golden::{Archive, options};
use arenite_tests::{shared, skip};

/// The board, or a word on why the test does not run there.
fn board(test: &str, name: &str) -> Option<&'static Board> {
    let board = BOARDS.iter().find(|b| b.name == name).expect("a known board");
    match ready(board) {
        Ok(()) => Some(board),
        Err(reason) => {
            skip(test, &format!("{name}: {reason}"));
            None
        }
    }
}

fn models(test: &str) -> Option<PathBuf> {
    let models = shared().map(|shared| shared.join("data/models"));
    if models.is_none() {
        skip(test, "no shared data");
    }
    models
}

/// The first random input of a model, and what TensorFlow Lite Micro makes of it.
fn reference(models: &Path, name: &str) -> (Vec<u8>, Vec<u8>) {
    let mut archive = Archive::open(&models.join(format!("golden/{name}.npz")));
    let mut first = |key: &str| archive.runs(key).0.swap_remove(0);
    (first("in_rand_0"), first("out_rand_tflm_0"))
}

fn region(name: &str, size: u64) -> Region {
    Region {
        name: name.into(),
        size: Some(size),
    }
}

fn summary(options: &Options) -> Summary {
    match pack(options, &mut |_, _, _| {}) {
        Ok(packed) => packed.summary,
        Err(error) => panic!("{}: {error}", options.input.display()),
    }
}

fn report(board: &'static Board, blob: Blob<'_>, input: &[u8]) -> RunReport {
    run(board, blob, input, &RunOptions::default()).unwrap_or_else(|error| panic!("{}: {error}", board.name))
}

/// Rows that are fed, in less memory than the input takes: the reference's bits, and on the M4F at most 1.08 times the unfitted network's instructions.
#[test]
fn visual_wake_words_by_rows_is_bit_exact_in_10_600_bytes() {
    const NAME: &str = "visual_wake_words_by_rows_is_bit_exact_in_10_600_bytes";
    let Some(models) = models(NAME) else { return };
    let (input, expected) = reference(&models, "vww_96_int8");
    for (name, target) in [("mps2-an386", Target::CortexM4), ("riscv32-virt", Target::Portable)] {
        let Some(board) = board(NAME, name) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let whole = options(&models.join("vww_96_int8.tflite"), folder.path(), target);
        let by_rows = Options {
            stream_input: true,
            output: folder.path().join("rolled.bin"),
            ..whole.clone()
        };
        let small = summary(&by_rows);
        assert!(small.arena_bytes <= 10_600, "{name}: {}", small.arena_bytes);
        let rolled = report(board, Blob::File(&by_rows.output), &input);
        assert_eq!(rolled.arena_bytes, small.arena_bytes, "{name}");
        assert_eq!(rolled.outputs, expected, "{} on {name}", target.name());
        if target == Target::CortexM4 {
            summary(&whole);
            let [rolled, whole] = [&rolled, &report(board, Blob::File(&whole.output), &input)]
                .map(|report| report.instructions.first().copied().unwrap_or_default());
            assert!(whole > 0 && rolled * 100 <= whole * 108, "{name}: {rolled} for {whole}");
            eprintln!("{rolled} instructions by rows, {whole} unfitted");
        }
    }
}

/// Its input alone is 27,648 bytes.
#[test]
fn visual_wake_words_in_32_kib_is_bit_exact_on_every_core() {
    const NAME: &str = "visual_wake_words_in_32_kib_is_bit_exact_on_every_core";
    let Some(models) = models(NAME) else { return };
    let (input, expected) = reference(&models, "vww_96_int8");
    for (name, target) in [
        ("mps2-an385:thumbv6m", Target::CortexM0),
        ("mps2-an385", Target::CortexM3),
        ("mps2-an386", Target::CortexM4),
        ("mps3-an547", Target::CortexM55),
        ("riscv32-virt", Target::Portable),
        ("riscv32-virt", Target::Riscv32imac),
    ] {
        let Some(board) = board(NAME, name) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            regions: vec![region("sram", 32 << 10)],
            fit: Some(32 << 10),
            ..options(&models.join("vww_96_int8.tflite"), folder.path(), target)
        };
        let small = summary(&options);
        assert!(small.arena_bytes <= 32 << 10, "{name}: {}", small.arena_bytes);
        let report = report(board, Blob::File(&options.output), &input);
        assert_eq!(report.arena_bytes, small.arena_bytes, "{name}");
        assert_eq!(report.outputs, expected, "{} on {name}", target.name());
        let (bytes, extra) = (small.arena_bytes, small.extra_macs);
        eprintln!(
            "{} on {name}: {bytes} bytes, {extra} extra MACs, the reference's bits",
            target.name()
        );
    }
}

/// Its input is 76,800 bytes of f32, so that a fast memory of 40 KiB cannot hold it; most of its inner tensors it can.
#[test]
fn a_real_network_runs_from_two_memories() {
    const NAME: &str = "a_real_network_runs_from_two_memories";
    let (Some(models), Some(board)) = (models(NAME), board(NAME, "mps2-an386")) else {
        return;
    };
    let (input, expected) = reference(&models, "tinyengine_vww");
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        regions: vec![region("sram", 40 << 10), region("psram", 8 << 20)],
        ..options(&models.join("tinyengine_vww.tflite"), folder.path(), Target::CortexM4)
    };
    let split = summary(&options);
    let [sram, psram] = &split.regions[..] else {
        panic!("{:?}", split.regions);
    };
    assert!(sram.bytes > 0 && sram.bytes <= 40 << 10, "{sram:?}");
    assert!(psram.bytes >= 76_800, "{psram:?}");
    let report = report(board, Blob::File(&options.output), &input);
    assert_eq!(report.arena_bytes, split.arena_bytes);
    assert_eq!(report.outputs, expected);
    eprintln!(
        "{} bytes in sram, {} in psram, the reference's bits",
        sram.bytes, psram.bytes
    );
}

#[test]
fn the_models_of_a_bundle_run_on_a_board() {
    let Some(board) = board("the_models_of_a_bundle_run_on_a_board", "mps2-an386") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("both.arenite");
    let network = |name: &str| {
        let file = format!("models/digits/{name}.trace.json");
        options(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(file),
            folder.path(),
            Target::CortexM4,
        )
    };
    let (both, _) = bundle(&[network("digits"), network("mlp")], &path, &mut |_, _, _| {}).expect("a bundle");
    let input: Vec<u8> = (0..64u16)
        .flat_map(|i| (f32::from(i % 17) / 16.0).to_le_bytes())
        .collect();
    let mut arenas = Vec::new();
    for name in ["digits", "mlp"] {
        let file =
            ModelFile::open(&PathBuf::from(format!("{}#{name}", path.display()))).expect("a model of the bundle");
        let bundled = report(board, Blob::Bytes(file.bytes()), &input);
        let alone = network(name);
        summary(&alone);
        let alone = report(board, Blob::File(&alone.output), &input);
        assert_eq!(bundled.outputs, alone.outputs, "{name}");
        assert!(bundled.outputs.iter().any(|&byte| byte != 0), "{name}");
        arenas.push(bundled.arena_bytes);
    }
    assert_eq!(Some(both.arena_bytes), arenas.into_iter().max());
}
