//! A library for programs in C: one archive with a compiled network, its memory and a function that runs it. Cargo builds it; C links it.

use super::chip::Chip;
use super::project::{Crates, File, IMAGE, NETWORK, brought, build, dependencies};

/// Features of the runtime that say what a core has; the others are about programs.
const BACKENDS: [&str; 4] = ["dsp", "mve", "rvv", "sme"];

/// The files of a library called `name`, but for a runtime that it brings along.
pub fn library(chip: &Chip, name: &str, crates: &Crates) -> Vec<File> {
    let text = |path, text: String| File {
        path,
        bytes: text.into_bytes(),
    };
    let mut files = vec![
        text("Cargo.toml", manifest(chip, name, crates)),
        text(".cargo/config.toml", config(chip)),
        text("build.rs", build(chip, crates, "")),
        text("src/lib.rs", SOURCE.into()),
        text("include/digits.h", HEADER.into()),
        text("example/main.c", EXAMPLE.replace("@IMAGE@", &c_image())),
        text(".gitignore", "/target\n".into()),
        text("README.md", readme(chip, name, crates)),
    ];
    files.extend(NETWORK.iter().map(|&(path, bytes)| File {
        path,
        bytes: bytes.to_vec(),
    }));
    files
}

/// The name of the archive's crate: what cargo writes behind `lib`.
fn archive(name: &str) -> String {
    name.replace('-', "_")
}

fn manifest(chip: &Chip, name: &str, crates: &Crates) -> String {
    let backends: Vec<&str> = chip
        .features
        .iter()
        .copied()
        .filter(|it| BACKENDS.contains(it))
        .collect();
    let [exclude, arenite] = dependencies(crates, &backends);
    format!(
        "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n{exclude}\n{arenite}\n\
         [lib]\ncrate-type = [\"staticlib\"]\ntest = false\ndoctest = false\nbench = false\n\n\
         # The runtime's loops for speed, everything else for size.\n[profile.release]\npanic = \"abort\"\nopt-level = \"s\"\nlto = \"fat\"\n\
         codegen-units = 1\n\n[profile.release.package.arenite]\nopt-level = 2\n\n[profile.dev]\npanic = \"abort\"\nopt-level = 1\n"
    )
}

fn config(chip: &Chip) -> String {
    format!("[build]\ntarget = {:?}\n", chip.triple)
}

/// The image as C writes numbers.
fn c_image() -> String {
    let numbers = IMAGE.split_whitespace().map(|number| number.trim_end_matches(','));
    let numbers: Vec<String> = numbers.map(|number| format!("{number}f")).collect();
    let rows: Vec<String> = numbers
        .chunks(8)
        .map(|row| format!("    {},\n", row.join(", ")))
        .collect();
    rows.concat()
}

const SOURCE: &str = r#"//! The network of include/digits.h: compiled, with memory of its own.
#![no_std]

use core::cell::UnsafeCell;

arenite::include_model!(mod digits = concat!(env!("OUT_DIR"), "/digits.bin"));

/// Memory that one call at a time uses.
struct Alone<T>(UnsafeCell<T>);
// SAFETY: the header asks for one call at a time.
unsafe impl<T> Sync for Alone<T> {}

static MEMORY: Alone<digits::Memory> = Alone(UnsafeCell::new(digits::Memory::new()));

// Inputs and outputs as include/digits.h has them: where the compiler finds that the network's are others, change both files.
type Input = [f32; 64];
type Output = [f32; 10];

/// Gives the network's state, where it has one, its first value.
///
/// # Safety
/// No other call is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn digits_reset() {
    // SAFETY: nothing else uses the memory meanwhile, which the caller promises.
    digits::open(unsafe { &mut *MEMORY.0.get() });
}

/// Runs the network.
///
/// # Safety
/// `input` and `output` point to as many numbers as the header says, and no other call is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn digits_run(input: *const Input, output: *mut Output) {
    // SAFETY: nothing else uses the memory meanwhile, which the caller promises.
    let (arena, state) = unsafe { &mut *MEMORY.0.get() }.bytes();
    // Memory of the module's own lengths is never refused.
    let Ok(mut session) = digits::Session::resume(arena, state) else { return };
    // SAFETY: the caller's pointers are valid for these types, of which every value of every byte is one.
    unsafe { *output = *digits::run(&mut session, &*input) };
}

/// The runtime has no code that panics; Rust asks for this all the same.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
"#;

const HEADER: &str = r#"/* A network that classifies images of digits. Its weights, its code and its memory are in the library. */
#ifndef DIGITS_H
#define DIGITS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of an input: eight rows of eight pixels, 0 to 1. */
#define DIGITS_INPUT 64
/* Numbers of an output: a score for each digit. */
#define DIGITS_OUTPUT 10

/* Gives the network's state its first value; this one has none. */
void digits_reset(void);

/* Runs the network: DIGITS_INPUT numbers are read, DIGITS_OUTPUT written. One call at a time, for all share one memory. */
void digits_run(const float input[DIGITS_INPUT], float output[DIGITS_OUTPUT]);

#ifdef __cplusplus
}
#endif

#endif
"#;

const EXAMPLE: &str = r#"/* Classifies an image of a 7. */
#include "digits.h"

static const float image[DIGITS_INPUT] = {
@IMAGE@};

int main(void)
{
    float scores[DIGITS_OUTPUT];
    int digit, best = 0;

    digits_reset();
    digits_run(image, scores);
    for (digit = 1; digit < DIGITS_OUTPUT; digit++)
        if (scores[digit] > scores[best])
            best = digit;
    return best;
}
"#;

fn readme(chip: &Chip, name: &str, crates: &Crates) -> String {
    let brought = brought(crates, "library");
    format!(
        "# {name}\n\nA network for programs in C on the {} ({}). It is built by Rust (https://rustup.rs); whoever links it needs none.\n\n    \
         rustup target add {triple}\n    cargo build --release          # target/{triple}/release/lib{archive}.a\n\n\
         Link that archive, and put `include/` into the compiler's path: `example/main.c` runs the network. Compile for a core with the same floating-point\n\
         calls as `{triple}`.\n\n\
         `net/` holds the network, `build.rs` packs it: put your own there (`.tflite`, `.onnx` or a trace), and its name into `build.rs`. `src/lib.rs`\n\
         does not compile before its two types are those of your network; the header has the same. Two libraries in one program want functions\n\
         of two names.\n{brought}",
        chip.name,
        chip.core,
        triple = chip.triple,
        archive = archive(name),
    )
}
