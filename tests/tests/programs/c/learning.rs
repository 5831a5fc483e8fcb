//! A model that learns, as C: steps of training by `…_train`, and a state that is kept and gone on with. Losses, scores and state are those of this machine.

use std::fs;
use std::path::Path;

use arenite::Session;
use arenite_host::model::{Aligned, ModelFile};

use super::emitted::{emit, programs};
use super::{emulated, library, output, prepared, root};

const STEPS: usize = 5;

/// The step behind which the session is opened anew.
const KEPT: usize = 3;

const MAIN: &str = r#"
#include <stdio.h>
#include <string.h>

#include "digits.h"

static int failed(arenite_code code)
{
    char text[160];
    if (code == ARENITE_OK)
        return 0;
    arenite_error_text(code, text, sizeof text);
    printf("%08lx %s\n", (unsigned long)code, text);
    return 1;
}

static void bits(const char *what, const float *numbers, unsigned count)
{
    unsigned i;
    printf("%s", what);
    for (i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &numbers[i], sizeof word);
        printf(" %08lx", (unsigned long)word);
    }
    printf("\n");
}

int main(void)
{
    static float image[64], scores[DIGITS_OUTPUT_0_ELEMENTS];
    static uint8_t kept[DIGITS_STATE_BYTES];
    const float rate = 0.03f;
    unsigned step, i;
    if (failed(digits_open()))
        return 1;
    for (step = 0; step < 5; step++) {
        int32_t label = (int32_t)(step * 3 % 10), ignored = -1;
        float loss = 0.0f;
        for (i = 0; i < 64; i++)
            image[i] = (float)((i * (step + 3)) % 17) / 16.0f;
        if (step == 3) {
            /* As after a start: what was learnt comes from elsewhere. */
            memcpy(kept, digits_state, sizeof kept);
            if (failed(digits_open()) || memcmp(kept, digits_state, sizeof kept) == 0)
                return 1;
            memcpy(digits_state, kept, sizeof kept);
            if (failed(digits_resume()))
                return 1;
        }
        if (failed(digits_train(image, &label, &rate, &loss, &ignored)))
            return 1;
        bits("loss", &loss, 1);
        if (ignored != 0)
            return 1;
    }
    if (failed(digits_run(image, scores)))
        return 1;
    bits("scores", scores, DIGITS_OUTPUT_0_ELEMENTS);
    return 0;
}
"#;

fn image(step: usize) -> Vec<u8> {
    let pixels = (0..64).map(|i| (i * (step + 3) % 17) as f32 / 16.0);
    pixels.flat_map(f32::to_le_bytes).collect()
}

fn bits(what: &str, numbers: &[u8]) -> String {
    let words = numbers
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    let words: Vec<String> = words.map(|word| format!(" {word:08x}")).collect();
    format!("{what}{}", words.concat())
}

/// Lines that the program prints, computed here without a break.
fn expected(model: &Path) -> Vec<String> {
    let file = ModelFile::open(model).expect("a model");
    let model = file.load().expect("it loads");
    let (mut arena, mut state) = (Aligned::new(model.arena_bytes(0)), Aligned::new(model.state_bytes()));
    let mut session = Session::new(model, arena.bytes(), state.bytes()).expect("a session");
    let mut said = Vec::new();
    for step in 0..STEPS {
        session.turn_to_training().expect("steps of training");
        session.set_input(0, &image(step)).expect("an image");
        session
            .set_input(1, &(step as i32 * 3 % 10).to_le_bytes())
            .expect("a label");
        session.set_input(2, &0.03_f32.to_le_bytes()).expect("a rate");
        session.run().expect("a step");
        said.push(bits("loss", session.output(0).expect("a loss")));
        session.turn_to_inference();
    }
    session.set_input(0, &image(STEPS - 1)).expect("an image");
    session.run().expect("a run");
    said.push(bits("scores", session.output(0).expect("scores")));
    said
}

#[test]
fn emitted_models_learn_from_c_and_cpp() {
    const TEST: &str = "emitted_models_learn_from_c_and_cpp";
    let Some(board) = prepared(TEST, "arm-none-eabi-gcc") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path();
    let digits = root().join("tests/models/digits/digits.trace.json");
    // The same bits on every core.
    let train = [
        "--target",
        "portable",
        "--train",
        "--loss",
        "cross-entropy",
        "--trainable",
        "fc*",
    ];
    emit(&digits, to, "digits.bin", &train).unwrap_or_else(|error| panic!("{error}"));
    let header = fs::read_to_string(to.join("digits.h")).expect("a header");
    let train = "arenite_code digits_train(const float input[64], const int32_t labels[1], const float learning_rate[1], float loss[1], \
                 int32_t ignored_labels[1]);";
    assert!(header.contains(train), "{header}");

    let with = library(to, &["digits.bin"], &["training"]);
    let expected = expected(&to.join("digits.bin"));
    assert_eq!(KEPT, 3, "as MAIN has it");
    assert_ne!(expected[0], expected[STEPS - 1]);
    for program in programs(to, MAIN, &["digits"], &with) {
        let printed = output(&mut emulated(board, &program));
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    }
}
