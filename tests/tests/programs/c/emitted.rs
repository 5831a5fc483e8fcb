//! Models as C (`pack --emit c`): two in one program, compiled as C99 and as C++, with every warning an error. Outputs are those of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite_host::cli::calls;
use arenite_host::model::{Aligned, ModelFile};

use super::{agrees, computed, core, emulated, example, library, output, picture, prepared, root};

/// A label that is an end of a string, of a comment and of a line.
const LABELS: &str = "zero\none \"1\" \\\ntwo ??/ */ %s\nthree \u{e9}9\n4\n5\n6\n7\n8\n9\n";

/// The digits once, and a network with a state twice.
const MAIN: &str = r#"
#include <stdio.h>
#include <string.h>

#include "digits_1.h"
#include "lstm.h"

static int failed(arenite_code code)
{
    if (code != ARENITE_OK)
        printf("%08lx\n", (unsigned long)code);
    return code != ARENITE_OK;
}

int main(void)
{
    static float image[DIGITS_1_INPUT_0_ELEMENTS], scores[DIGITS_1_OUTPUT_0_ELEMENTS];
    static int8_t x[LSTM_INPUT_0_ELEMENTS], y[LSTM_OUTPUT_0_ELEMENTS];
    unsigned i, best = 0;
    for (i = 0; i < DIGITS_1_INPUT_0_ELEMENTS; i++)
        image[i] = (float)(3 * (i / 8) + i % 8) / 32.0f;
    for (i = 0; i < LSTM_INPUT_0_ELEMENTS; i++)
        x[i] = (int8_t)(i * 37 % 251 - 128);
    if (failed(digits_1_run(image, scores)) != 1 || failed(digits_1_open()) || failed(lstm_open()))
        return 1;
    if (arenite_turn_to_training(&digits_1_session) != ARENITE_NOT_FOR_TRAINING)
        return 1;
    if (failed(digits_1_run(image, scores)) || failed(lstm_run(x, y)) || failed(lstm_run(x, y)))
        return 1;
    printf("digits");
    for (i = 0; i < DIGITS_1_OUTPUT_0_ELEMENTS; i++) {
        uint32_t bits;
        memcpy(&bits, &scores[i], sizeof bits);
        printf(" %08lx", (unsigned long)bits);
        best = scores[i] > scores[best] ? i : best;
    }
    printf(" class %u\n", best);
    for (i = 0; i < 4; i++)
        printf("%s\n", digits_1_labels[i]);
    for (i = 0; i < LSTM_OUTPUT_0_ELEMENTS; i++)
        printf("%d ", y[i]);
    printf("\n%ld %d\n", (long)(LSTM_OUTPUT_0_SCALE * 1e9f), LSTM_OUTPUT_0_ZERO_POINT);
    return 0;
}
"#;

/// `pack` of a network for the core, as C in the same folder.
pub(super) fn emit(
    network: &Path,
    to: &Path,
    model: &str,
    more: &[&str],
) -> Result<calls::Answer, arenite_host::Error> {
    let model = to.join(model);
    let words = [
        "pack".into(),
        network.into(),
        "-o".into(),
        model.into(),
        "--emit".into(),
        "c".into(),
        to.into(),
    ];
    let target = if more.contains(&"--target") {
        &[][..]
    } else {
        &["--target", "cortex-m4"]
    };
    let more = target.iter().chain(more).map(OsString::from);
    calls::call(words.into_iter().chain(more).collect(), Box::new(|_, _, _| ()))
}

#[test]
fn emitted_models_run_from_c_and_cpp() {
    const TEST: &str = "emitted_models_run_from_c_and_cpp";
    let Some(board) = prepared(TEST, "arm-none-eabi-gcc") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path();
    let models = root().join("tests/models");
    let labels = to.join("labels.txt");
    fs::write(&labels, LABELS).expect("written");
    let hostile = [
        "--name",
        "digits */ #error \\",
        "--labels",
        &labels.display().to_string(),
    ];
    let digits = models.join("digits/digits.trace.json");
    emit(&digits, to, "digits-1.bin", &hostile).unwrap_or_else(|error| panic!("{error}"));
    emit(&models.join("tflite_ops/lstm.tflite"), to, "lstm.bin", &[]).unwrap_or_else(|error| panic!("{error}"));
    // Its own files are replaced, those of another network of this name are not.
    emit(&digits, to, "digits-1.bin", &hostile).unwrap_or_else(|error| panic!("{error}"));
    let before = fs::read(to.join("digits-1.bin")).expect("a model");
    let refused = emit(&digits, to, "digits-1.bin", &[])
        .expect_err("another name")
        .to_string();
    assert!(refused.contains("it is there, and is not of this network"), "{refused}");
    assert_eq!(fs::read(to.join("digits-1.bin")).expect("a model"), before);

    let library = library(to, &["digits-1.bin", "lstm.bin"], &[]);
    let programs = programs(to, MAIN, &["digits_1", "lstm"], &library);
    let printed = programs.map(|program| output(&mut emulated(board, &program)));
    assert_eq!(printed[0], printed[1]);

    let mut lines = printed[0].lines();
    // A run before the session is open.
    assert_eq!(lines.next(), Some("f1ffffff"), "{}", printed[0]);
    agrees("digits", lines.next(), computed(&to.join("digits-1.bin"), picture));
    let said: Vec<&str> = lines.by_ref().take(4).collect();
    assert_eq!(said, LABELS.lines().take(4).collect::<Vec<_>>());
    let (outputs, scale, zero_point) = twice(&to.join("lstm.bin"));
    let outputs: Vec<String> = outputs.iter().map(i8::to_string).collect();
    assert_eq!(lines.next().map(str::trim), Some(outputs.join(" ").as_str()));
    assert_eq!(
        lines.next(),
        Some(format!("{} {zero_point}", (scale * 1e9) as i64).as_str())
    );
}

/// The digits in two memories, of which `digits_2_open` wants both.
const IN_TWO: &str = r#"
#include <stdio.h>
#include <string.h>

#include "digits_2.h"

#if defined(__cplusplus)
#define ALIGNED alignas(16)
#else
#define ALIGNED __attribute__((aligned(16)))
#endif

ALIGNED static uint8_t fast[DIGITS_2_ARENA_0_BYTES], slow[DIGITS_2_ARENA_1_BYTES];

int main(void)
{
    static float image[DIGITS_2_INPUT_0_ELEMENTS], scores[DIGITS_2_OUTPUT_0_ELEMENTS];
    arenite_memory memories[ARENITE_REGIONS];
    unsigned i, best = 0;
    for (i = 0; i < DIGITS_2_INPUT_0_ELEMENTS; i++)
        image[i] = (float)(3 * (i / 8) + i % 8) / 32.0f;
    memset(memories, 0, sizeof memories);
    memories[0].start = fast;
    memories[0].bytes = sizeof fast;
    if (digits_2_open(memories) == ARENITE_OK)
        return 1;
    memories[1].start = slow;
    memories[1].bytes = sizeof slow;
    if (digits_2_open(memories) != ARENITE_OK || digits_2_run(image, scores) != ARENITE_OK)
        return 1;
    printf("digits");
    for (i = 0; i < DIGITS_2_OUTPUT_0_ELEMENTS; i++) {
        uint32_t bits;
        memcpy(&bits, &scores[i], sizeof bits);
        printf(" %08lx", (unsigned long)bits);
        best = scores[i] > scores[best] ? i : best;
    }
    printf(" class %u\n", best);
    return 0;
}
"#;

#[test]
fn emitted_models_take_several_memories() {
    const TEST: &str = "emitted_models_take_several_memories";
    let Some(board) = prepared(TEST, "arm-none-eabi-gcc") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path();
    let digits = root().join("tests/models/digits/digits.trace.json");
    // The first is too small for the first layer's outputs.
    let regions = ["--region", "fast=2K", "--region", "slow=64K"];
    emit(&digits, to, "digits-2.bin", &regions).unwrap_or_else(|error| panic!("{error}"));
    let file = ModelFile::open(&to.join("digits-2.bin")).expect("a model");
    let model = file.load().expect("it loads");
    let sizes = [0, 1].map(|region| model.arena_bytes(region));
    assert!(sizes.iter().all(|bytes| *bytes > 0), "{sizes:?}");
    let library = library(to, &["digits-2.bin"], &[]);
    let programs = programs(to, IN_TWO, &["digits_2"], &library);
    let printed = programs.map(|program| output(&mut emulated(board, &program)));
    assert_eq!(printed[0], printed[1]);
    let mut arenas = sizes.map(Aligned::new);
    let [fast, slow] = &mut arenas;
    let arenas = [fast.bytes(), slow.bytes(), &mut [], &mut []];
    let mut session = arenite::Session::new(model, arenas, &mut []).expect("a session");
    let input: Vec<f32> = (0..64).map(picture).collect();
    session.set_values(0, &input).expect("an input");
    session.run().expect("a run");
    let outputs: Vec<f32> = session.values(0).expect("outputs").to_vec();
    let class = outputs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let class = class.map_or(0, |(class, _)| class);
    agrees("digits", printed[0].lines().next(), (outputs, class));
}

/// A program of `main` and emitted sources, compiled as C99 and as C++, with every warning an error.
pub(super) fn programs(to: &Path, main: &str, emitted: &[&str], library: &Path) -> [PathBuf; 2] {
    fs::write(to.join("main.c"), main).expect("written");
    let startup = to.join("startup.o");
    let mut first = Command::new("arm-none-eabi-gcc");
    first.args(core().options).arg("-c").arg(example().join("startup.c"));
    output(first.arg("-o").arg(&startup));
    let compilers = [
        ("arm-none-eabi-gcc", &["-std=c99", "-pedantic"][..]),
        ("arm-none-eabi-g++", &["-x", "c++", "-std=c++17", "-fno-exceptions"]),
    ];
    compilers.map(|(compiler, options)| {
        let mut objects = vec![];
        for source in [&["main"], emitted].concat() {
            let object = to.join(source).with_extension("o");
            let mut compile = Command::new(compiler);
            compile
                .args(core().options)
                .args(options)
                .args(["-Wall", "-Wextra", "-Werror", "-Os", "-c"]);
            compile.arg("-I").arg(root().join("firmware/c/include"));
            output(compile.arg(to.join(source).with_extension("c")).arg("-o").arg(&object));
            objects.push(object);
        }
        let program = to.join(compiler).with_extension("elf");
        let mut link = Command::new("arm-none-eabi-gcc");
        link.args(core().options).args(&objects).arg(&startup).arg(library);
        link.args(["-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections", "-T"]);
        link.arg(example().join("mps2-an386.ld"));
        output(link.arg("-o").arg(&program));
        program
    })
}

/// The second run's outputs of the network with a state on this machine, with their scale and zero point.
fn twice(path: &Path) -> (Vec<i8>, f32, i32) {
    let file = ModelFile::open(path).expect("a model");
    let model = file.load().expect("it loads");
    let (mut arena, mut state) = (Aligned::new(model.arena_bytes(0)), Aligned::new(model.state_bytes()));
    assert!(model.state_bytes() > 0);
    let port = model.output(0).expect("an output");
    let (scale, zero_point) = (port.scale, port.zero_point);
    let inputs = model.input(0).and_then(|port| port.bytes()).expect("an input");
    let input: Vec<u8> = (0..inputs).map(|i| (i * 37 % 251).wrapping_sub(128) as u8).collect();
    let mut session = arenite::Session::new(model, arena.bytes(), state.bytes()).expect("a session");
    for _ in 0..2 {
        session.set_input(0, &input).expect("an input");
        session.run().expect("a run");
    }
    let outputs = session
        .output(0)
        .expect("an output")
        .iter()
        .map(|&byte| byte as i8)
        .collect();
    (outputs, scale, zero_point)
}
