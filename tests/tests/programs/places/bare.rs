//! Programs without a system: compilers, linker scripts, boards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use arenite_host::board::{Board, find_program, ready};
use arenite_tests::skip;
use arenite_xtask::places::{self, Core, Files, Libraries, PLACES};

/// A folder of the checkout.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the checkout")
}

/// Beside this file.
pub(super) fn here() -> PathBuf {
    root().join("tests/tests/programs/places")
}

/// Runs a program to its end, for what it prints.
pub(super) fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}\n{}", said(&done));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// All that a program said.
pub(super) fn said(done: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&done.stdout) + &text(&done.stderr)
}

/// The first part of the names of the compilers for a core.
pub(super) fn tools(core: &Core) -> &'static str {
    if core.triple.starts_with("thumb") {
        "arm-none-eabi"
    } else {
        "riscv64-unknown-elf"
    }
}

/// Whether the compiler for a core, CMake and the core's Rust target are here; what is missing is named.
pub(super) fn can_build(test: &str, core: &Core) -> bool {
    let tools = tools(core);
    let test = format!("{test} for {}", core.name);
    if find_program(&format!("{tools}-gcc")).is_none() {
        skip(&test, &format!("{tools}-gcc is missing (Debian: gcc-{tools})"));
        return false;
    }
    if find_program("cmake").is_none() || find_program("make").is_none() {
        skip(&test, "cmake and make are missing (Debian: cmake, make)");
        return false;
    }
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", core.triple])
        .output();
    let there = libraries.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if !there {
        skip(&test, &format!("no standard library for {}", core.triple));
    }
    there
}

/// Whether newlib is here, which glue that prints wants.
pub(super) fn has_newlib(test: &str) -> bool {
    let found = Command::new("arm-none-eabi-gcc")
        .arg("-print-file-name=nosys.specs")
        .output();
    let there = found.is_ok_and(|found| String::from_utf8_lossy(&found.stdout).contains('/'));
    if !there {
        skip(
            test,
            "arm-none-eabi-gcc and its newlib are missing (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi)",
        );
    }
    there
}

/// The library for a core with every kernel, built once.
pub(super) fn library(core: &Core) -> Vec<u8> {
    static BUILT: Mutex<BTreeMap<&str, Vec<u8>>> = Mutex::new(BTreeMap::new());
    // A panic elsewhere leaves whole libraries.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let name = Core::named(core.name).expect("a core").name;
    built
        .entry(name)
        .or_insert_with(|| places::library(core, &[], &[]).unwrap_or_else(|error| panic!("{error}")))
        .clone()
}

/// The files of a place.
pub(super) fn files(place: &str, libraries: &Libraries) -> Files {
    let place = PLACES.iter().find(|known| known.name == place).expect("a place");
    (place.files)(libraries).unwrap_or_else(|error| panic!("{error}"))
}

/// Writes files below a folder.
pub(super) fn written(files: &Files, folder: &Path) {
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }
}

/// A linker script for a board: code in flash, or at the beginning of a RAM that has both. Beside a flash that has no room for every kernel and a model,
/// constants lie in the memory of models.
pub(super) fn script(board: &Board, folder: &Path) -> PathBuf {
    let mut ram = board.ram;
    let mut flash = board.flash;
    if !board.triple.starts_with("thumb") {
        flash = ram;
        flash.size /= 2;
        ram.start += flash.size;
        ram.size -= flash.size;
    }
    let constants = board.extra.filter(|_| flash.size < 1 << 20).unwrap_or(flash);
    let mut text = format!(
        "ENTRY(start)\nMEMORY {{\n  FLASH (rx) : ORIGIN = {:#x}, LENGTH = {:#x}\n  RAM (rwx) : ORIGIN = {:#x}, LENGTH = {:#x}\n",
        flash.start, flash.size, ram.start, ram.size
    );
    let beside = constants.start != flash.start;
    if beside {
        let _ = writeln!(
            text,
            "  CONSTANTS (r) : ORIGIN = {:#x}, LENGTH = {:#x}",
            constants.start, constants.size
        );
    }
    let constants = if beside { "CONSTANTS" } else { "FLASH" };
    let _ = write!(
        text,
        "}}\nstack_top = ORIGIN(RAM) + LENGTH(RAM);\nSECTIONS {{\n  \
         .text : {{ KEEP(*(.start)) *(.text .text.*) }} > FLASH\n  \
         .rodata : {{ *(.rodata .rodata.* .srodata .srodata.*) }} > {constants}\n  \
         .ARM.exidx : {{ *(.ARM.exidx .ARM.exidx.*) }} > FLASH\n  .data : {{ *(.data .data.* .sdata .sdata.*) }} > RAM\n  \
         .bss (NOLOAD) : {{ *(.bss .bss.* .sbss .sbss.* COMMON) . = ALIGN(8); }} > RAM\n  end = .;\n}}\n"
    );
    let path = folder.join("board.ld");
    fs::write(&path, text).expect("written");
    path
}

/// The board whose build is a core's, where its qemu is here.
pub(super) fn board(test: &str, core: &Core) -> Option<&'static Board> {
    let name = match core.name {
        "cortex-m0plus" => "mps2-an385:thumbv6m",
        "cortex-m3" => "mps2-an385",
        "cortex-m33f" => "mps2-an505",
        "cortex-m33-nodsp" => "mps2-an521",
        "cortex-m55" => "mps3-an547",
        "riscv64gc" => "riscv64-virt",
        "riscv32imac" | "riscv32imc" => "riscv32-virt",
        _ => "mps2-an386",
    };
    let board = Board::find(name).expect("a board");
    match ready(board) {
        Ok(_) => Some(board),
        Err(reason) => {
            skip(test, &reason.to_string());
            None
        }
    }
}

/// Runs a program on a board; returns the text that it prints.
pub(super) fn run(board: &Board, program: &Path) -> String {
    let mut qemu = Command::new(find_program(board.qemu).expect("qemu, which is ready"));
    qemu.args(board.machine)
        .args(["-display", "none", "-serial", "null", "-monitor", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(program);
    let done = qemu.output().expect("qemu starts");
    said(&done)
}

/// CMake with the compiler and the options of a core; the build folder is in `folder`.
pub(super) fn configured(core: &Core, options: &[&str], source: &Path, folder: &Path, defines: &[String]) -> Command {
    let tools = tools(core);
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(source).arg("-B").arg(folder.join("build"));
    cmake.args([
        "-G",
        "Unix Makefiles",
        "-DCMAKE_SYSTEM_NAME=Generic",
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
    ]);
    cmake.arg(format!("-DCMAKE_C_COMPILER={tools}-gcc"));
    cmake.arg(format!(
        "-DCMAKE_C_FLAGS={} -ffunction-sections -fdata-sections",
        options.join(" ")
    ));
    cmake.args(defines.iter().map(|define| format!("-D{define}")));
    cmake
}

/// Builds what is configured.
pub(super) fn built(folder: &Path) {
    output(
        Command::new("cmake")
            .arg("--build")
            .arg(folder.join("build"))
            .env_remove("RUSTFLAGS"),
    );
}
