//! A library that cargo builds for programs in C (`arenite new --c`): linked as C99 and as C++, it gives what this machine computes.

use std::fs;

use arenite::Target;
use arenite_host::pack::{Options, pack};
use arenite_tests::turns;

use super::{agrees, computed, emulated, output, picture, prepared, root};
use crate::new;

/// The network twice: the second run is that of the first one's memory.
const MAIN: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "digits.h"

int main(void)
{
    static float image[DIGITS_INPUT], scores[DIGITS_OUTPUT];
    unsigned i, run, best = 0;
    for (i = 0; i < DIGITS_INPUT; i++)
        image[i] = (float)(3 * (i / 8) + i % 8) / 32.0f;
    digits_reset();
    for (run = 0; run < 2; run++) {
        digits_run(image, scores);
        printf("digits");
        for (i = 0; i < DIGITS_OUTPUT; i++) {
            uint32_t bits;
            memcpy(&bits, &scores[i], sizeof bits);
            printf(" %08lx", (unsigned long)bits);
            best = scores[i] > scores[best] ? i : best;
        }
        printf(" class %u\n", best);
    }
    return 0;
}
"#;

#[test]
fn a_new_library_is_linked_by_c_and_cpp() {
    const TEST: &str = "a_new_library_is_linked_by_c_and_cpp";
    let Some(board) = prepared(TEST, "arm-none-eabi-gcc") else {
        return;
    };
    // The host tools are compiled for its build script.
    if turns(TEST, 2, [board]).is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path().join("my-net");
    new::project(&["--c", "--chip", board.name], &project);
    new::good(&new::cargo(&project, &["build", "--quiet"]));
    let library = root().join("target/new").join(board.triple).join("release/libmy_net.a");

    let to = folder.path().join("c");
    fs::create_dir(&to).expect("made");
    fs::copy(project.join("include/digits.h"), to.join("digits.h")).expect("copied");
    let programs = super::emitted::programs(&to, MAIN, &[], &library);
    let printed = programs.map(|program| output(&mut emulated(board, &program)));
    assert_eq!(printed[0], printed[1]);

    let mut options = Options::new(project.join("net/digits.trace.json"), to.join("digits.bin"));
    options.target = Target::CortexM4;
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let expected = computed(&to.join("digits.bin"), picture);
    let mut lines = printed[0].lines();
    agrees("digits", lines.next(), expected.clone());
    agrees("digits", lines.next(), expected);

    // The program that it comes with finds the 7 that it holds.
    let example = fs::read_to_string(project.join("example/main.c")).expect("written");
    let example = example.replace("return best;", "printf(\"%d\\n\", best); return 0;");
    let [program, _] = super::emitted::programs(&to, &format!("#include <stdio.h>\n{example}"), &[], &library);
    assert_eq!(output(&mut emulated(board, &program)).trim(), "7");

    // A header of another network, and of numbers of another type that take as many bytes: the library does not compile.
    let source = project.join("src/lib.rs");
    let text = fs::read_to_string(&source).expect("written");
    for other in ["[f32; 63]", "[i8; 256]"] {
        assert!(text.contains("type Input = [f32; 64];"));
        fs::write(&source, text.replace("[f32; 64]", other)).expect("written");
        let refused = new::cargo(&project, &["build", "--quiet"]);
        assert!(
            !refused.status.success() && new::said(&refused).contains("mismatched types"),
            "{other}"
        );
    }
}
