//! Programs with compiled models that do not compile, and what the compiler says of each.

use arenite_tests::typed::{bundle, other, written};

use super::programs::{COMPILED, refused};
use super::project::Project;

/// Names of what models have that are included as `loaded`: the error says so.
#[test]
fn what_loaded_models_have_is_refused_by_name() {
    let project = Project::new("loaded_names", &[], "");
    project.file("m.bin", &written().file());
    project.file(
        "b.bin",
        &bundle(&[("several", written().file()), ("other", other().file())]),
    );
    let models = "arenite::include_bundle!(pub mod b = \"b.bin\", one = \"several\", two = \"other\");\n";
    let check = |used: &str| project.check(&format!("{COMPILED}{models}pub fn f() {{ {used} }}\n"), None);
    check("let _ = m::STATE_BYTES + b::one::STATE_BYTES + b::ARENA_BYTES;").unwrap_or_else(|said| panic!("{said}"));
    for used in [
        "let _ = m::BYTES;",
        "let _ = m::RECEIPT;",
        "let _ = m::load();",
        "let _ = m::load_with_receipt;",
        "let _ = m::load_with_crc;",
        "let _ = m::load_verified;",
        "fn g(_: &m::Kernels) {}",
        "let _ = b::BYTES;",
        "let _ = b::two::load();",
    ] {
        let outcome = check(used);
        let said = outcome.clone().err().unwrap_or_default();
        assert!(said.contains("say `loaded` behind the path"), "{used}:\n{said}");
        refused(
            outcome,
            used,
            "this model is compiled, and has no file that a program could load",
        );
    }
}

/// A model in pieces is a bundle of numbers, and no program has its weights.
#[test]
fn a_model_in_pieces_is_refused_by_name() {
    let project = Project::new("pieces", &[], "");
    let file = written().file();
    project.file("s.bin", &bundle(&[("0/2", file.clone()), ("1/2", file.clone())]));
    let bundled = "arenite::include_bundle!(pub mod m = \"s.bin\", one = \"1/2\");\n";
    for text in ["arenite::include_model!(pub mod m = \"s.bin\");\n", bundled] {
        refused(
            project.check(text, None),
            text,
            "s.bin: the model is in pieces (`pack --region NAME=SIZE:stream`)",
        );
    }
    // Two of three are a bundle of models with strange names.
    project.file("s.bin", &bundle(&[("1/3", file.clone()), ("2/3", file)]));
    let bundled = bundled.replace("1/2", "1/3");
    project.check(&bundled, None).unwrap_or_else(|said| panic!("{said}"));
}

/// A variable's value is the file's name, and a relative one begins beside the source file; where it changes the compiler asks again.
#[test]
fn a_variable_that_changes_is_another_file() {
    let project = Project::new("variables", &[], "");
    let set = |path: &str| project.config(&format!("[env]\nARENITE_FILE = {path:?}\n"));
    project.file("src/a.bin", &written().file());
    project.file("src/b.bin", &other().file());
    let include = "arenite::include_model!(pub mod m = env!(\"ARENITE_FILE\"));\n";
    let of_the_first = "pub fn f<'o>(s: &'o mut m::Session<'_>) { let _ = m::run(s, (&[1, 2, 3], &[1.0, 2.0])); }\n";
    let of_the_second = "pub fn f<'o>(s: &'o mut m::Session<'_>) { let _ = m::run(s, &[0.0; 3]); }\n";
    set("a.bin");
    let check = |body: &str| project.check(&format!("{include}{body}"), None);
    check(of_the_first).unwrap_or_else(|said| panic!("{said}"));
    set("b.bin");
    let said = check(of_the_first).expect_err("another model");
    assert!(said.contains("error[E0308]: mismatched types"), "{said}");
    check(of_the_second).unwrap_or_else(|said| panic!("{said}"));
    set("a.bin");
    check(of_the_first).unwrap_or_else(|said| panic!("{said}"));
}
