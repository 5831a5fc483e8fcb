//! Programs that compile, and ones that do not: each for the reason that it should not.

use arenite::{Header, KernelId};
use arenite_tests::blob::{Blob, seal};
use arenite_tests::golden::packed;
use arenite_tests::typed::{bundle, other, written};
use arenite_tests::{shared, skip};

use super::project::{Project, installed};

const MODULE: &str = "arenite::include_model!(pub mod m = \"m.bin\", loaded);\n";
pub(super) const COMPILED: &str = "arenite::include_model!(pub mod m = \"m.bin\");\n";

/// A library that embeds `file`, and what its check says.
fn embedded(file: &[u8], more: &str) -> Result<String, String> {
    let project = Project::new("files", &[], "");
    project.file("m.bin", file);
    project.check(&format!("{MODULE}{more}"), None)
}

/// That a program does not compile, with one error whose text holds `reason`.
pub(super) fn refused(outcome: Result<String, String>, what: &str, reason: &str) {
    let said = outcome.expect_err(what);
    let errors = said
        .lines()
        .filter(|line| line.starts_with("error"))
        .collect::<Vec<_>>();
    let ours = errors
        .iter()
        .filter(|line| !line.starts_with("error: could not compile"));
    assert!(ours.count() == 1 && said.contains(reason), "{what}:\n{said}");
}

/// A change behind which the checksum is put right.
fn sealed(mut file: Vec<u8>, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    change(&mut file);
    seal(&mut file);
    file
}

#[test]
fn what_is_wrong_with_a_file_is_an_error_of_the_compiler() {
    let file = written().file();
    let small = file.len();
    let mut damaged = file.clone();
    *damaged.last_mut().expect("a byte") ^= 1;
    let with_kernel =
        |kernel: u8| written().file_with(|header: &mut Header| header.kernels = header.kernels.with(kernel));
    let cases: [(&str, Vec<u8>, &str); 9] = [
        (
            "no model",
            b"{\"format\": 1}".repeat(20),
            "this is no model file: `pack` writes them",
        ),
        ("an empty file", vec![], "this is no model file"),
        (
            "another version",
            sealed(file.clone(), |file| file[8] = 3),
            "update the runtime",
        ),
        ("a cut file", file[..small - 1].to_vec(), "the model file is cut"),
        ("a damaged file", damaged, "its checksum does not match"),
        (
            "a section outside",
            sealed(file.clone(), |file| file[46] = 1),
            "the model's header contradicts itself",
        ),
        (
            "an unknown kernel",
            with_kernel(255),
            "a kernel that this version does not know",
        ),
        (
            "a bundle",
            bundle(&[("several", file.clone())]),
            "name those that you want with arenite::include_bundle!",
        ),
        (
            "a port of too many axes",
            many_axes(),
            "an input or output has too many axes",
        ),
    ];
    for (what, file, reason) in cases {
        refused(embedded(&file, ""), what, reason);
    }
    embedded(&file, "").unwrap_or_else(|said| panic!("{said}"));
}

fn many_axes() -> Vec<u8> {
    let blob = written();
    let name = blob.inputs[0].name.len();
    // Length and text of the name, region, offset and type stand before the number of axes.
    sealed(blob.file(), |file| file[arenite::HEADER_BYTES + 1 + name + 3] = 9)
}

/// A compiled model is loaded where the program is compiled: what a load says, the compiler does, with the file's name.
#[test]
fn a_file_that_cannot_be_compiled_is_an_error_of_the_compiler() {
    let file = written().file();
    let mut damaged = file.clone();
    *damaged.last_mut().expect("a byte") ^= 1;
    let cases: [(&str, Option<Vec<u8>>, &str); 8] = [
        ("no file", None, "m.bin: No such file"),
        (
            "no model",
            Some(b"{\"format\": 1}".repeat(20)),
            "m.bin: these bytes are no Arenite model",
        ),
        ("an empty file", Some(vec![]), "m.bin: the model has 0 bytes of 144"),
        (
            "another version",
            Some(sealed(file.clone(), |file| file[8] = 3)),
            "update the runtime",
        ),
        (
            "a cut file",
            Some(file[..file.len() - 1].to_vec()),
            "m.bin: the model has",
        ),
        ("a damaged file", Some(damaged), "m.bin: the model is damaged: CRC-32"),
        (
            "a bundle",
            Some(bundle(&[("several", file.clone())])),
            "name those that you want with arenite::include_bundle!",
        ),
        (
            "a port of too many axes",
            Some(many_axes()),
            "m.bin: the description of input or output 0 is wrong",
        ),
    ];
    for (what, file, reason) in cases {
        let project = Project::new("compiled_files", &[], "");
        if let Some(file) = file {
            project.file("m.bin", &file);
        }
        refused(project.check(COMPILED, None), what, reason);
    }
    let project = Project::new("compiled_files", &[], "");
    project.file("m.bin", &file);
    project.check(COMPILED, None).unwrap_or_else(|said| panic!("{said}"));
    // The file is another one: the compiler asks again.
    project.file("m.bin", &other().file());
    let input = "pub fn f<'o>(s: &'o mut m::Session<'_>) -> &'o [f32; 3] { m::run(s, &[0.0; 3]) }\n";
    project
        .check(&format!("{COMPILED}{input}"), None)
        .unwrap_or_else(|said| panic!("{said}"));
    project.file("m.bin", &file[..file.len() - 1]);
    let outcome = project.check(&format!("{COMPILED}{input}"), None);
    refused(outcome, "a file that was cut since", "m.bin: the model has");
    // Paths that are no literals, and expressions that are none.
    project.file("m.bin", &file);
    let of = |path: &str| format!("arenite::include_model!(pub mod m = {path});\n");
    let path = "concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/m\", '.', r\"bin\")";
    project.check(&of(path), None).unwrap_or_else(|said| panic!("{said}"));
    for (path, reason) in [
        ("[\"m.bin\"][0]", "is no path that include_model! evaluates"),
        (
            "!core::env!(\"CARGO_MANIFEST_DIR\")",
            "is no path that include_model! evaluates",
        ),
        (
            "env!(\"ARENITE_NOT_SET\")",
            "environment variable `ARENITE_NOT_SET` is not set",
        ),
        (
            "stringify!(m.bin)",
            "`stringify!` is no macro that include_model! evaluates",
        ),
    ] {
        refused(project.check(&of(path), None), path, reason);
    }
}

/// A kernel that a build has not is named by the compiler, of a compiled model too.
#[test]
fn a_compiled_model_for_another_core_is_refused() {
    const TEST: &str = "a_compiled_model_for_another_core_is_refused";
    let arm = "thumbv8m.main-none-eabihf";
    let Some(shared) = shared().filter(|_| installed(arm)) else {
        return skip(TEST, &format!("no shared data, or no standard library for {arm}"));
    };
    let folder = tempfile::tempdir().expect("a folder");
    let network = shared.join("data/models/tflm_hello_world_int8.tflite");
    let packed = packed(&network, folder.path(), arenite::Target::CortexM33).unwrap_or_else(|error| panic!("{error}"));
    let model = std::fs::read(packed.path()).expect("a file");
    let project = Project::new("compiled_cores", &[], "");
    project.file("m.bin", &model);
    refused(
        project.check(COMPILED, Some(arm)),
        "dsp",
        "m.bin: the model needs kernels of the feature `dsp`, which is off",
    );
    let project = Project::new("compiled_cores", &["dsp"], "");
    project.file("m.bin", &model);
    project
        .check(COMPILED, Some(arm))
        .unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn a_wrong_type_size_or_session_does_not_compile() {
    let project = Project::new("types", &[], "");
    project.file("m.bin", &written().file());
    project.file("o.bin", &other().file());
    let check = |body: &str| {
        let modules = format!("{MODULE}arenite::include_model!(pub mod o = \"o.bin\", loaded);\n");
        let text = format!(
            "{modules}pub fn f(s: &mut m::Session<'_>, o: &mut o::Session<'_>) -> Result<(), arenite::Error> {{\n    {body}\n    Ok(())\n}}\n"
        );
        project.check(&text, None)
    };
    let good = "let _: (&[i8; 3], &[f32; 2]) = m::run(s, (&[1, 2, 3], &[1.0, 2.0]))?; let _: &[f32; 3] = o::run(o, &[0.0; 3])?;";
    check(good).unwrap_or_else(|said| panic!("{said}"));
    let cases = [
        ("another size", "m::run(s, (&[1, 2], &[1.0, 2.0]))?;"),
        ("another type", "m::run(s, (&[1u8, 2, 3], &[1.0, 2.0]))?;"),
        ("one input of two", "m::run(s, &[1i8, 2, 3])?;"),
        (
            "an output of another type",
            "let _: &[u8; 3] = m::run(s, (&[1, 2, 3], &[1.0, 2.0]))?.0;",
        ),
        ("another model's session", "m::run(o, (&[1, 2, 3], &[1.0, 2.0]))?;"),
        (
            "an output that outlives the next run",
            "let a = o::run(o, &[0.0; 3])?; o::run(o, &[1.0; 3])?; let _ = a[0];",
        ),
    ];
    for (what, body) in cases {
        let said = check(body).expect_err(what);
        let mismatched = ["error[E0308]: mismatched types", "error[E0499]: cannot borrow"];
        assert!(mismatched.iter().any(|error| said.contains(error)), "{what}:\n{said}");
    }
}

/// A kernel that needs a feature.
fn wants(kernel: KernelId) -> Vec<u8> {
    written().file_with(|header: &mut Header| header.kernels = header.kernels.with(kernel as u8))
}

#[test]
fn a_kernel_of_a_feature_that_is_off_is_named() {
    const TEST: &str = "a_kernel_of_a_feature_that_is_off_is_named";
    let (arm, risc_v) = ("thumbv8m.main-none-eabihf", "riscv64gc-unknown-none-elf");
    for (kernel, feature, target, all) in [
        (KernelId::DspConv2dS8, "dsp", arm, &["dsp", "mve"][..]),
        (KernelId::MveConv2dS8, "mve", arm, &["dsp", "mve"]),
        (KernelId::RvvConv2dS8, "rvv", risc_v, &["rvv"]),
    ] {
        if !installed(target) {
            skip(TEST, &format!("no standard library for {target}"));
            continue;
        }
        for on in [false, true] {
            let project = Project::new("kernels", if on { all } else { &[] }, "");
            project.file("m.bin", &wants(kernel));
            let outcome = project.check(MODULE, Some(target));
            if on {
                outcome.unwrap_or_else(|said| panic!("{said}"));
            } else {
                let reason = format!("kernels of the feature `{feature}`, which is off");
                refused(outcome, feature, &reason);
            }
        }
    }
}

const SESSION: &str = "pub fn f() -> Result<m::Session<'static>, arenite::Error> { m::session() }\n";
const OPEN: &str = "pub fn f(memory: &mut m::Memory) -> Result<m::Session<'_>, arenite::Error> { m::open(memory) }\n";

#[test]
fn cores_without_compare_and_swap_take_memory_with_help_or_bring_their_own() {
    const TEST: &str = "cores_without_compare_and_swap_take_memory_with_help_or_bring_their_own";
    let portable = "portable-atomic = { version = \"1\", default-features = false, features = [\"critical-section\"] }";
    for target in ["thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"] {
        if !installed(target) {
            skip(TEST, &format!("no standard library for {target}"));
            continue;
        }
        let check = |features: &[&str], further: &str, text: &str| {
            let project = Project::new("cores", features, further);
            project.file("m.bin", &written().file());
            project.check(&format!("{MODULE}{text}"), Some(target))
        };
        refused(check(&[], "", SESSION), target, "this core has no compare-and-swap");
        for (features, further, text) in [
            (&[][..], "", OPEN),
            (&["critical-section"], "", SESSION),
            (&["portable-atomic"], portable, SESSION),
        ] {
            check(features, further, text).unwrap_or_else(|said| panic!("{target} {features:?}: {said}"));
        }
    }
}

#[test]
fn a_bundle_names_its_models() {
    let project = Project::new("bundles", &[], "");
    project.file(
        "b.bin",
        &bundle(&[("several", written().file()), ("other", other().file())]),
    );
    project.file("m.bin", &written().file());
    let include = |file, name| {
        let text = format!("arenite::include_bundle!(pub mod b = \"{file}\", loaded, one = \"{name}\");\n");
        project.check(&text, None)
    };
    include("b.bin", "other").unwrap_or_else(|said| panic!("{said}"));
    refused(
        include("b.bin", "othe"),
        "a name's beginning",
        "the bundle has no model of this name",
    );
    refused(
        include("b.bin", "other-one"),
        "a longer name",
        "the bundle has no model of this name",
    );
    refused(
        include("m.bin", "several"),
        "no bundle",
        "include a single model with arenite::include_model!",
    );
}

/// A model of about as many bytes.
fn large(bytes: usize) -> Vec<u8> {
    Blob {
        weights: (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect(),
        ..written()
    }
    .file()
}

/// Neither the compiler nor clippy says anything about files of any size, nor about what a program does not use of a module.
#[test]
fn nothing_is_said_about_large_files() {
    for bytes in [100_000, 250_000, 1_000_000, 30_000_000] {
        let project = Project::new("large", &[], "");
        project.file("m.bin", &large(bytes));
        let text = "#![warn(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]\n//! A program.\n";
        for (command, form) in [
            ("check", ""),
            ("clippy", ""),
            ("check", ", loaded"),
            ("clippy", ", loaded"),
        ] {
            let start = std::time::Instant::now();
            let said = project
                .cargo(
                    &[command],
                    &format!("{text}arenite::include_model!(mod m = \"m.bin\"{form});\n"),
                    None,
                )
                .unwrap_or_else(|said| panic!("{bytes} bytes: {said}"));
            println!("{command}{form}, {bytes} bytes: {:.1} s", start.elapsed().as_secs_f64());
            assert!(!said.contains("warning"), "{command}, {bytes} bytes:\n{said}");
        }
    }
}
