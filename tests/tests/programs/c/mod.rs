//! The library for C: its header, and programs in C and C++ that the cross compiler makes and qemu runs. Their output is the one that this machine computes.

mod built;
mod emitted;
mod header;
mod learning;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::codes::{CAUSES, Code};
use arenite::{LoadError, MODEL_ALIGN, RunError, SelfTestError, SessionError, Target};
use arenite_host::board::{Board, Firmware, find_program, panics, ready};
use arenite_host::model::{Aligned, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::{digits_options, skip};
use arenite_xtask::places::{self, Core};

/// The core that the example is for.
fn core() -> &'static Core {
    Core::named("cortex-m4f").unwrap_or_else(|error| panic!("{error}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn example() -> PathBuf {
    root().join("firmware/c/example")
}

/// Runs a program to its end, for what it prints.
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{command:?}\n{}{}",
        text(&done.stdout),
        text(&done.stderr)
    );
    text(&done.stdout)
}

/// The board, where it, the compiler and its C library are here.
fn prepared(test: &str, compiler: &str) -> Option<&'static Board> {
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        skip(test, &reason.to_string());
        return None;
    }
    // A file that the compiler has not is named as it was asked for.
    let library = Command::new(compiler).arg("-print-file-name=rdimon.specs").output();
    let found = library.is_ok_and(|library| String::from_utf8_lossy(&library.stdout).contains('/'));
    if !found {
        skip(
            test,
            &format!("{compiler} and its newlib are missing (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi)"),
        );
        return None;
    }
    Some(board)
}

/// The static library with the kernels of these models, or with all, and with `more` features.
fn library(to: &Path, models: &[&str], more: &[&str]) -> PathBuf {
    let models: Vec<PathBuf> = models.iter().map(|model| to.join(model)).collect();
    let library = to.join("libarenite_c.a");
    let bytes = places::library(core(), &models, more).unwrap_or_else(|error| panic!("{error}"));
    fs::write(&library, bytes).expect("written");
    library
}

/// The digits network and a smaller one, packed for the core; the first one tests itself.
fn models(folder: &Path) {
    let samples = folder.join("samples.npy");
    let array = ndarray::Array::from_shape_fn((1, 1, 1, 8, 8), |(.., y, x)| (y + 2 * x) as f32 / 16.0);
    ndarray_npy::write_npy(&samples, &array).expect("written");
    for (network, self_test) in [("digits", Some(samples)), ("mlp", None)] {
        let output = folder.join(format!("{network}.bin"));
        let options = Options {
            target: Target::CortexM4,
            self_test,
            ..digits_options(network, &output)
        };
        pack(&options, &mut |_, _, _| {}).expect("a model");
    }
}

/// Compiles and links the example's program of this file, as its CMakeLists.txt does.
fn compiled(folder: &Path, compiler: &str, main: &str, library: &Path) -> PathBuf {
    let program = folder.join(main).with_extension("elf");
    // A C++ compiler takes a file of C for C++: the start-up code is compiled by itself.
    let startup = folder.join("startup.o");
    let warnings = ["-Wall", "-Wextra", "-Werror", "-Os"];
    let mut first = Command::new("arm-none-eabi-gcc");
    first
        .args(core().options)
        .args(warnings)
        .arg("-c")
        .arg(example().join("startup.c"));
    output(first.arg("-o").arg(&startup));
    let mut link = Command::new(compiler);
    link.args(core().options)
        .args(warnings)
        .args(["-ffunction-sections", "-fdata-sections"]);
    if compiler.ends_with("g++") {
        link.args([
            "-std=c++17",
            "-fno-exceptions",
            "-fno-rtti",
            "-fno-threadsafe-statics",
            "-nodefaultlibs",
        ]);
    }
    link.arg("-I").arg(root().join("firmware/c/include"));
    link.arg("-I").arg(folder).arg(format!("-Wa,-I,{}", folder.display()));
    link.arg(example().join(main))
        .arg(&startup)
        .arg(example().join("models.S"))
        .arg(library);
    link.args(["-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections", "-T"]);
    link.arg(example().join("mps2-an386.ld"));
    if compiler.ends_with("g++") {
        // Debian has no C++ library for it, and the program wants none.
        link.args([
            "-Wl,--start-group",
            "-lc",
            "-lm",
            "-lrdimon",
            "-lgcc",
            "-Wl,--end-group",
        ]);
    }
    output(link.arg("-o").arg(&program));
    program
}

/// A program on the board.
fn emulated(board: &Board, program: &Path) -> Command {
    let qemu = find_program(board.qemu).expect("qemu, which is ready");
    let mut qemu = Command::new(qemu);
    qemu.args(board.machine)
        .args(["-display", "none", "-serial", "null", "-monitor", "none"]);
    qemu.args([
        "-icount",
        "shift=7,sleep=off",
        "-semihosting-config",
        "enable=on,target=native",
        "-kernel",
    ]);
    qemu.arg(program);
    qemu
}

fn run(board: &Board, program: &Path) -> String {
    output(&mut emulated(board, program))
}

/// Returns the outputs of a model on this host for a row of numbers.
fn computed(path: &Path, value: impl Fn(usize) -> f32) -> (Vec<f32>, usize) {
    let file = ModelFile::open(path).expect("a model");
    let model = file.load().expect("it loads");
    let mut arena = Aligned::new(model.arena_bytes(0));
    let mut session = arenite::Session::new(model, arena.bytes(), &mut []).expect("a session");
    let input: Vec<f32> = (0..64).map(value).collect();
    session.set_values(0, &input).expect("an input");
    session.run().expect("a run");
    let outputs: &[f32] = session.values(0).expect("outputs");
    let order = outputs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let (class, _) = order.expect("an output");
    (outputs.to_vec(), class)
}

/// That a line of the board is `name`, outputs as their bits and a class, and says what this machine computed.
fn agrees(name: &str, line: Option<&str>, (outputs, class): (Vec<f32>, usize)) {
    let line = line.unwrap_or_default();
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some(name), "{line}");
    let bits = words.by_ref().take_while(|word| *word != "class");
    let found: Vec<f32> = bits
        .map(|word| f32::from_bits(u32::from_str_radix(word, 16).expect("bits")))
        .collect();
    assert_eq!(words.next(), Some(class.to_string().as_str()), "{line}");
    assert_eq!(found.len(), outputs.len(), "{line}");
    let largest = outputs.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(&outputs) {
        assert!(
            (found - expected).abs() <= 1e-5 * largest,
            "{line}: {found} and {expected}"
        );
    }
}

fn picture(at: usize) -> f32 {
    (3 * (at / 8) + at % 8) as f32 / 32.0
}

/// Returns the refusals of the example, in its order: codes of the library's own errors, and those of pointers.
fn refusals(mlp: &Path) -> Vec<u32> {
    let bytes = fs::read(mlp).expect("a model");
    let length = bytes.len() as u32;
    let file = ModelFile::open(mlp).expect("a model");
    let needed = file.load().expect("it loads").arena_bytes(0) as u32;
    const NULL: u32 = 0xF0FF_FFFF;
    const NOT_OPEN: u32 = 0xF1FF_FFFF;
    const MISALIGNED: u32 = 0xF2FF_FFFF;
    vec![
        LoadError::Misaligned.code(),
        LoadError::Truncated {
            expected: length,
            found: length - 1,
        }
        .code(),
        LoadError::NotABlob.code(),
        SessionError::ArenaMisaligned { region: 0 }.code(),
        SessionError::ArenaTooSmall {
            region: 0,
            needed,
            given: 16,
        }
        .code(),
        SessionError::StateSize { needed: 0, given: 16 }.code(),
        NULL,
        NULL,
        LoadError::Truncated {
            expected: MODEL_ALIGN as u32,
            found: 20,
        }
        .code(),
        NOT_OPEN,
        NOT_OPEN,
        NULL,
        MISALIGNED,
        RunError::InputMissing { input: 0 }.code(),
        RunError::InputSize {
            input: 0,
            needed: 256,
            given: 255,
        }
        .code(),
        RunError::NoSuchPort { index: 3 }.code(),
        RunError::NoSuchPort { index: 7 }.code(),
        SelfTestError::Missing.code(),
    ]
}

#[test]
fn a_program_in_c_runs_two_models_and_is_refused_what_is_wrong() {
    const TEST: &str = "a_program_in_c_runs_two_models_and_is_refused_what_is_wrong";
    let Some(board) = prepared(TEST, "arm-none-eabi-gcc") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    models(folder.path());
    let (digits, mlp) = (folder.path().join("digits.bin"), folder.path().join("mlp.bin"));
    let library = library(folder.path(), &["digits.bin", "mlp.bin"], &[]);
    let program = compiled(folder.path(), "arm-none-eabi-gcc", "main.c", &library);
    let linked = Firmware::open(board, &program).and_then(|program| panics(&program));
    assert_eq!(linked.unwrap_or_else(|error| panic!("{error}")), Vec::<String>::new());
    let printed = run(board, &program);
    let mut lines = printed.lines();
    let file = ModelFile::open(&digits).expect("a model");
    let (header, next) = (file.view().expect("intact").header(), lines.next());
    let needs = format!(
        "digits: arena {}, state 0, steps {}",
        header.arena[0], header.step_count
    );
    assert_eq!(next, Some(needs.as_str()), "{printed}");
    agrees("digits", lines.next(), computed(&digits, picture));
    agrees("mlp", lines.next(), computed(&mlp, |at| (7 * at % 23) as f32 / 8.0));

    let refusals = refusals(&mlp);
    for code in &refusals {
        let line = lines.next().unwrap_or_default();
        let (said, text) = line.split_once(' ').unwrap_or((line, ""));
        assert_eq!(said, format!("{code:08x}"), "{printed}");
        let cause = CAUSES.iter().find(|cause| cause.number == Code::from_u32(*code).cause);
        // Pointers are C's own; everything else has the text of the runtime.
        let right = cause.map_or(text.len() > 10, |cause| text.ends_with(cause.meaning));
        assert!(right, "{line}");
    }
    assert_eq!(lines.next(), Some("taken 0"), "{printed}");
    assert_eq!(lines.next(), Some("[a point] of 17"), "{printed}");
    assert_eq!(lines.next(), None);
    assert!(refusals.len() > 15);
}

#[test]
fn a_program_in_cpp_runs_a_model() {
    const TEST: &str = "a_program_in_cpp_runs_a_model";
    let Some(board) = prepared(TEST, "arm-none-eabi-g++") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    models(folder.path());
    let with = |models: &[&str]| {
        let library = library(folder.path(), models, &[]);
        compiled(folder.path(), "arm-none-eabi-g++", "main.cpp", &library)
    };
    let printed = run(board, &with(&[]));
    let (_, class) = computed(&folder.path().join("digits.bin"), picture);
    assert_eq!(printed.trim(), format!("class {class} of 10"));
    // A library for another model has not the kernels of this one.
    let refused = emulated(board, &with(&["mlp.bin"])).output().expect("qemu");
    let printed = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success(), "{printed}");
    assert!(printed.contains(": this build has not the kernel: "), "{printed}");
}

#[test]
fn cmake_builds_the_example() {
    const TEST: &str = "cmake_builds_the_example";
    let Some(board) = prepared(TEST, "arm-none-eabi-gcc") else {
        return;
    };
    if find_program("cmake").is_none() || find_program("make").is_none() {
        return skip(TEST, "cmake and make are missing (Debian: cmake, make)");
    }
    let folder = tempfile::tempdir().expect("a folder");
    models(folder.path());
    let build = folder.path().join("build");
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(example())
        .arg("-B")
        .arg(&build)
        .args(["-G", "Unix Makefiles"]);
    configure.arg(format!("-DMODELS={}", folder.path().display()));
    configure.arg(format!(
        "-DCMAKE_TOOLCHAIN_FILE={}",
        example().join("cortex-m4f.cmake").display()
    ));
    let said = output(&mut configure);
    assert!(said.contains("arenite: builds for cortex-m4f"), "{said}");
    output(Command::new("cmake").arg("--build").arg(&build).env_remove("RUSTFLAGS"));
    let printed = run(board, &build.join("example"));
    let line = printed.lines().find(|line| line.starts_with("digits "));
    agrees("digits", line, computed(&folder.path().join("digits.bin"), picture));
}
