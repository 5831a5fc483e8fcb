//! Refusals of `pack` and `arenite generate` for files of llama2.c and for command lines.

use std::process::Command;

use arenite_host::pack::pack;
use arenite_tests::programs;

use super::given::Given;

#[test]
fn files_of_llama2c_that_are_cut_or_forged_are_refused() {
    let Some(given) = Given::open("forged files") else {
        return;
    };
    let whole = std::fs::read(given.folder.join("stories260K.bin")).expect("a file");
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |bytes: &[u8]| {
        let mut options = given.options("no.bin");
        options.input = folder.path().join("forged.bin");
        std::fs::write(&options.input, bytes).expect("written");
        let error = pack(&options, &mut |_, _, _| {})
            .expect_err("a forged file")
            .to_string();
        assert!(
            error.contains("forged.bin") && !error.contains("internal") && !options.output.exists(),
            "{error}"
        );
        error
    };
    assert!(refused(&whole[..20]).contains("the file has 20 bytes; expected a header of 28 bytes"));
    let expected = format!("the file has {} bytes; expected {} bytes", whole.len() - 1, whole.len());
    assert!(refused(&whole[..whole.len() - 1]).contains(&expected));
    let forged = |field: usize, value: i32| {
        let mut forged = whole.clone();
        forged[4 * field..4 * field + 4].copy_from_slice(&value.to_le_bytes());
        refused(&forged)
    };
    assert!(forged(3, 0).contains("a width of 64 in 0 heads"));
    assert!(forged(3, 7).contains("a width of 64 in 7 heads"));
    assert!(forged(4, 3).contains("8 heads over 3 heads of keys and values"));
    assert!(forged(3, 64).contains("heads of 1 elements"));
    assert!(forged(0, -64).contains("in 8 heads") || forged(0, -64).contains("width"));
    assert!(forged(1, i32::MAX).contains("hidden width"));
    assert!(forged(2, 1 << 20).contains("1048576 layers"));
    assert!(forged(5, i32::MIN).contains("vocabulary"));
    for field in 0..7 {
        for value in [0, -1, 1, i32::MAX, i32::MIN, 1 << 24] {
            forged(field, value);
        }
    }
}

#[test]
fn options_that_have_no_place_are_refused() {
    let Some(given) = Given::open("options") else { return };
    let refused = |change: &dyn Fn(&mut arenite_host::pack::Options)| {
        let mut options = given.options("no.bin");
        change(&mut options);
        pack(&options, &mut |_, _, _| {}).expect_err("refused").to_string()
    };
    for context in [0, 513, usize::MAX] {
        let error = refused(&|options| options.import.context = Some(context));
        assert!(
            error.contains(&format!("--context {context}; expected 1 to 512")),
            "{error}"
        );
    }
    assert!(refused(&|options| options.import.batch = Some(2)).contains("--batch 2"));
    assert!(refused(&|options| options.import.input_shape = Some(vec![1])).contains("--input-shape [1]"));
    // A network without a cache.
    let digits = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits/digits.trace.json");
    let error = refused(&|options| {
        options.input.clone_from(&digits);
        options.dialect = None;
        options.import.tokenizer = None;
        options.import.context = Some(8);
    });
    assert!(
        error.contains("--context 8: the network keeps no keys and values by position"),
        "{error}"
    );
    // The tokenizer of another network.
    let error = refused(&|options| {
        options.input.clone_from(&digits);
        options.dialect = None;
    });
    assert!(error.contains("the tokenizer has 512 pieces; expected 10"), "{error}");
}

#[test]
fn command_lines_write_text_or_are_refused() {
    let Some(given) = Given::open("command lines") else {
        return;
    };
    let programs = programs();
    let folder = tempfile::tempdir().expect("a folder");
    let story = folder.path().join("story.bin");
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(programs.join(program));
        let output = command.args(arguments).output().expect("it starts");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
        (output.status.code(), out, err)
    };
    let [model, tokens] = ["stories260K.bin", "tok512.bin"].map(|name| given.folder.join(name).display().to_string());
    let out = story.display().to_string();
    // Recognised without `--dialect`.
    let (status, _, err) = run("pack", &[&model, "--tokenizer", &tokens, "--context", "48", "-o", &out]);
    assert_eq!(status, Some(0), "{err}");
    let (status, text, err) = run(
        "arenite",
        &["generate", &out, "--prompt", "Once upon a time", "--tokens", "35"],
    );
    let expected = String::from_utf8(given.text_of(&given.story()[..40])).expect("text");
    assert_eq!(
        (status, format!("Once upon a time{text}")),
        (Some(0), format!("{expected}\n")),
        "{err}"
    );
    assert!(
        err.contains("35 tokens, 39 runs of the model (as many as asked for)"),
        "{err}"
    );
    let (status, _, err) = run(
        "arenite",
        &["generate", &out, "--prompt", "Hello", "--tokens", "3", "--chat"],
    );
    let refusal = "the model's tokenizer has no template of a talk";
    assert!(
        status == Some(1) && err.contains(refusal) && err.contains("leave --chat out"),
        "{err}"
    );
    let (_, _, err) = run("arenite", &["generate", &out, "--prompt", "Once", "--tokens", "500"]);
    assert!(err.contains("the context of 48 is full"), "{err}");
    let (_, text, err) = run(
        "arenite",
        &[
            "generate",
            &out,
            "--prompt",
            "Once upon a time",
            "--tokens",
            "35",
            "--stop",
            "named",
        ],
    );
    assert!(
        expected.starts_with(&format!("Once upon a time{}", text.trim_end()))
            && err.contains("the text that ends it has come")
    );
    for (arguments, status, told) in [
        (&["--temperature", "nan"][..], 2, "--temperature NaN"),
        (&["--temperature", "0.5", "--top-p", "1.5"], 2, "--top-p 1.5"),
        (&["--top-k", "4"], 2, "--temperature 0 takes the likeliest token"),
        (
            &["--on", "serial:/dev/null"],
            2,
            "text is generated on the host and in qemu",
        ),
    ] {
        let all = [&["generate", &out, "--prompt", "x", "--tokens", "3"], arguments].concat();
        let (found, _, err) = run("arenite", &all);
        assert!(found == Some(status) && err.contains(told), "{arguments:?}: {err}");
    }
    let (status, _, err) = run(
        "arenite",
        &["generate", &out, "--prompt", &"x".repeat(100), "--tokens", "3"],
    );
    assert!(status == Some(1) && err.contains("more tokens than the 48"), "{err}");
    // A text of many pages is refused before it is joined, which takes the square of its length.
    let pages = "once upon a time ".repeat(7_000);
    let (status, _, err) = run("arenite", &["generate", &out, "--prompt", &pages, "--tokens", "3"]);
    assert!(status == Some(1) && err.contains("more tokens than the 48"), "{err}");
    // Without a tokenizer there is no text.
    let (status, _, err) = run("pack", &[&model, "-o", &out]);
    assert_eq!(status, Some(0), "{err}");
    let (status, _, err) = run("arenite", &["generate", &out, "--prompt", "x", "--tokens", "3"]);
    assert!(
        status == Some(1) && err.contains("pack it with `--tokenizer FILE`"),
        "{err}"
    );
}
