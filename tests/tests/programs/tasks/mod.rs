//! The digit classifier as a task among others: under RTIC and Embassy's executor on an emulated Cortex-M4F, and in a loop on a RISC-V core without
//! compare-and-swap. All three print what this machine computes. And a sensor on an emulated bus, and gestures of motion that is generated.

mod gesture;
mod sensor;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::Target;
use arenite_host::board::{Board, find_program, ready};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::{digits_options, oracle, skip};

/// Images that the programs classify, and their pixels.
const IMAGES: usize = 3;
const PIXELS: usize = 64;

/// A program of `firmware/tasks`.
struct Program {
    name: &'static str,
    features: &'static str,
    triple: &'static str,
    board: &'static str,
    /// How the machine differs from the board's usual one.
    machine: &'static [&'static str],
    target: Target,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "rtic",
        features: "rtic",
        triple: "thumbv7em-none-eabihf",
        board: "mps2-an386",
        machine: &[],
        target: Target::CortexM4,
    },
    Program {
        name: "embassy",
        features: "embassy",
        triple: "thumbv7em-none-eabihf",
        board: "mps2-an386",
        machine: &[],
        target: Target::CortexM4,
    },
    Program {
        name: "superloop",
        features: "riscv32-virt",
        triple: "riscv32imc-unknown-none-elf",
        board: "riscv32-virt",
        machine: &["-cpu", "rv32,a=off,f=off,d=off"],
        target: Target::Riscv32imac,
    },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the checkout")
}

/// Packs the digits for a target.
fn packed(target: Target) -> PathBuf {
    packed_as("", target, |output| digits_options("digits", output))
}

/// Packs a network for a target. The path stays the same, so that only another model is compiled again.
fn packed_as(name: &str, target: Target, options: impl FnOnce(&Path) -> Options) -> PathBuf {
    let folder = root().join("target/tasks");
    fs::create_dir_all(&folder).expect("made");
    let model = folder.join(format!("{name}{}.bin", target.name()));
    let fresh = tempfile::NamedTempFile::new_in(&folder).expect("a file");
    let options = Options {
        target,
        ..options(fresh.path())
    };
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    if fs::read(&model).ok() != fs::read(fresh.path()).ok() {
        fs::copy(fresh.path(), &model).expect("copied");
    }
    model
}

/// The program's file, with these models in it; `None` where it cannot be built or run here.
fn built(program: &Program, models: &[(&str, &Path)]) -> Option<(PathBuf, &'static Board)> {
    let board = Board::find(program.board).expect("a known board");
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", program.triple])
        .output();
    if let Err(reason) = ready(board) {
        skip(program.name, &reason.to_string());
        return None;
    }
    if !libraries.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()) {
        skip(program.name, &format!("rustup target add {}", program.triple));
        return None;
    }
    let folder = root().join("target/tasks");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for inherited in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(inherited);
    }
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--color",
        "never",
        "--bin",
        program.name,
    ]);
    cargo.args([
        "--features",
        program.features,
        "--target",
        program.triple,
        "--target-dir",
    ]);
    cargo.arg(&folder).envs(models.iter().copied());
    let output = cargo
        .current_dir(root().join("firmware/tasks"))
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("warning"), "{said}");
    Some((folder.join(program.triple).join("release").join(program.name), board))
}

/// Lines that a program prints until it ends, which it does well.
fn printed(file: &Path, board: &Board, machine: &[&str]) -> Vec<String> {
    let mut qemu = Command::new(find_program(board.qemu).expect("it is ready"));
    // Counted instructions, so that the timer's interrupts come at the same places every time.
    let shift = format!("shift={},sleep=off", board.icount_shift);
    qemu.args(board.machine).args(machine).args(["-nographic", "-icount"]);
    qemu.args([&shift, "-semihosting-config", "enable=on,target=native", "-kernel"]);
    let output = qemu.arg(file).output().expect("qemu starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines().map(str::to_owned).collect()
}

fn largest(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}

fn floats(file: &str, count: usize) -> Vec<f32> {
    let path = root().join("tests/models/digits").join(file);
    let array: ndarray::ArrayD<f32> = ndarray_npy::read_npy(path).expect("a tracked file");
    array.into_iter().take(count).collect()
}

/// The digits that this machine sees, by a file for `portable`, and that PyTorch saw.
fn expected() -> Vec<usize> {
    let model = ModelFile::open(&packed(Target::Portable)).expect("a model");
    let images = floats("test_images.npy", IMAGES * PIXELS);
    let runs = images
        .chunks(PIXELS)
        .map(|image| vec![image.iter().flat_map(|pixel| pixel.to_le_bytes()).collect()]);
    let runs: Vec<Vec<Vec<u8>>> = runs.collect();
    let outputs = run(&model.load().expect("it loads"), &runs, false, &mut |_, _, _| {}).expect("it runs");
    let ours = outputs.iter().map(|output| {
        let (logits, _) = output[0].as_chunks::<4>();
        largest(
            &logits
                .iter()
                .map(|logit| f32::from_le_bytes(*logit))
                .collect::<Vec<_>>(),
        )
    });
    let ours: Vec<usize> = ours.collect();
    let theirs = floats("digits.test_logits.npy", IMAGES * 10);
    let theirs: Vec<usize> = theirs.chunks(10).map(largest).collect();
    assert_eq!(ours, theirs);
    oracle::compared("PyTorch", ours.len(), IMAGES);
    ours
}

#[test]
fn a_task_classifies_while_others_have_their_turns() {
    let expected = expected();
    for program in &PROGRAMS {
        let model = packed(program.target);
        let Some((file, board)) = built(program, &[("ARENITE_MODEL", &model)]) else {
            continue;
        };
        let lines = printed(&file, board, program.machine);
        let (last, digits) = lines.split_last().expect("lines");
        let wanted: Vec<String> = expected.iter().map(|digit| format!("this is a {digit}")).collect();
        assert_eq!(digits, wanted, "{}", program.name);
        let turns = last
            .strip_prefix("others had ")
            .and_then(|rest| rest.strip_suffix(" turns"));
        let turns: usize = turns.and_then(|turns| turns.parse().ok()).expect("turns");
        // A run has seven steps: six turns between them.
        println!("{}: {turns} turns", program.name);
        assert!(turns >= 6 * IMAGES, "{}: {turns} turns", program.name);
    }
}
