//! Size of the smallest program with a network on every chip, beside the same network by the crate microflow: the same HAL, profile and toolchain. The table is
//! `docs/footprint.md`'s.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use arenite::Target;
use arenite_host::board::{Board, Firmware};
use arenite_host::chips::{self, Chip, Crates};
use arenite_tests::golden::packed;
use arenite_tests::{shared, skip};

use crate::new::{cargo, root, said};

/// Networks that microflow takes, with the elements of their inputs and the bytes of their weights and biases.
const NETWORKS: [(&str, usize, u64); 2] = [
    ("tflm_hello_world_int8", 1, 420),
    ("tflm_micro_speech_quantized", 1960, 16_688),
];

const MICROFLOW: &str = "microflow = \"=0.1.3\"\nnalgebra = { version = \"0.32\", default-features = false }";

/// How much a byte count may be off the record before a change has to be meant: HAL crates and compilers have versions of their own.
const SLACK: f64 = 0.1;

/// The lines that a user writes in `main.rs`: attributes, imports and code.
fn main_rs(chip: &Chip, declared: &str, body: &str) -> String {
    let support = &chip.support;
    let log = if chip.is_logged() {
        "use {defmt_rtt as _, panic_probe as _};\n"
    } else {
        ""
    };
    let text = format!(
        "#![no_std]\n#![no_main]\n{log}{}\n{declared}\n#[{}]\nfn main() -> ! {{\n{}{}    {}\n}}\n",
        support.head,
        support.entry,
        support.start,
        body.replace("print!", support.print),
        support.end
    );
    text.replace("\n\n", "\n")
}

/// Lines that are no comments.
fn lines(text: &str) -> usize {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
        .count()
}

/// Code and constants of a program, in bytes, or the compiler's first error.
fn measured(chip: &Chip, name: &str, runtime: &str, text: &str, model: Option<&Path>) -> Result<(u64, u64), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let crates = Crates {
        arenite: Some(format!("path = {:?}", root().join("core"))),
        pack: "pack".to_owned(),
    };
    for file in chips::project(chip, name, &crates) {
        let path = folder.path().join(file.path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, file.bytes).expect("written");
    }
    let manifest = fs::read_to_string(folder.path().join("Cargo.toml")).expect("written");
    let (head, rest) = manifest.split_once("\narenite = ").expect("the runtime");
    let (arenite, rest) = rest.split_once('\n').expect("a line");
    let arenite = format!("arenite = {arenite}");
    let dependency = runtime.replace("ARENITE", &arenite);
    fs::write(
        folder.path().join("Cargo.toml"),
        format!("{head}\n{dependency}\n{rest}"),
    )
    .expect("written");
    // The model is packed already.
    let script = "fn main() {\n    println!(\"cargo::rustc-link-search={}\", std::env::var(\"CARGO_MANIFEST_DIR\").unwrap());\n}\n";
    fs::write(folder.path().join("build.rs"), script).expect("written");
    fs::write(folder.path().join("src/main.rs"), text).expect("written");
    if let Some(model) = model {
        fs::copy(model, folder.path().join("model.bin")).expect("copied");
    }
    let output = cargo(folder.path(), &["build"]);
    if !output.status.success() {
        let said = said(&output);
        return Err(said
            .lines()
            .find(|line| line.starts_with("error"))
            .unwrap_or(&said)
            .to_owned());
    }
    let board = Board::find("mps2-an386").expect("a known board");
    let file = root().join("target/new").join(chip.triple).join("release").join(name);
    let firmware = Firmware::open(board, &file).unwrap_or_else(|error| panic!("{error}"));
    let bytes = |names: &[&str]| names.iter().map(|name| firmware.section_bytes(name)).sum();
    Ok((bytes(&[".text", ".rwtext"]), bytes(&[".rodata"])))
}

/// Rows of the table for a chip.
fn rows(chip: &Chip, networks: &Path, table: &mut String) {
    let start = main_rs(chip, "", "");
    let start = measured(chip, "smallest", "", &start, None).unwrap_or_else(|error| panic!("{}: {error}", chip.name));
    let place = tempfile::tempdir().expect("a folder");
    for (network, elements, parameters) in NETWORKS {
        let path = networks.join(format!("{network}.tflite"));
        let target = Target::ALL
            .into_iter()
            .find(|target| target.name() == chip.target)
            .expect("a target");
        let model = packed(&path, place.path(), target).unwrap_or_else(|error| panic!("{error}"));
        let input = format!("core::hint::black_box([0; {elements}])");
        let text = main_rs(
            chip,
            "arenite::include_model!(mod net = \"model.bin\", loaded);",
            &format!(
                "    if let Ok(mut session) = net::session()\n        && let Ok(output) = net::run(&mut session, &{input})\n    {{\n        \
                 print!(\"{{}}\", output[0]);\n    }}\n"
            ),
        );
        let user = lines(&text);
        let ours = measured(chip, "smallest", "ARENITE", &text, Some(model.path()))
            .unwrap_or_else(|error| panic!("{}: {error}", chip.name));
        let bytes = fs::metadata(model.path()).expect("a model").len();
        let text = main_rs(
            chip,
            &format!("#[microflow::model({path:?})]\nstruct Net;"),
            "    let output = Net::predict_quantized(core::hint::black_box(unsafe { core::mem::zeroed() }));\n    print!(\"{}\", output[0] as i32);\n",
        );
        let theirs = measured(chip, "smallest", MICROFLOW, &text, None);
        // Without the program that has no network, and without what each holds of the network itself.
        let beside = |(code, constants): (u64, u64), network: u64| {
            (code + constants).saturating_sub(start.0 + start.1 + network)
        };
        let (theirs, whole) = match theirs {
            Ok(found) => (beside(found, parameters).to_string(), (found.0 + found.1).to_string()),
            Err(error) => (format!("`{error}`"), "-".to_owned()),
        };
        let ours_whole = ours.0 + ours.1;
        let _ = writeln!(
            table,
            "| {} ({}) | {network} | {} | {user} | {} | {bytes} | {ours_whole} | {theirs} | {whole} |",
            chip.name,
            chip.core,
            start.0 + start.1,
            beside(ours, bytes),
        );
    }
}

/// The numbers of a text, in order.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[test]
#[ignore = "long: the HAL crates of every chip and microflow, from the registry"]
fn the_smallest_program_on_every_chip() {
    const BEGIN: &str = "<!-- chips -->\n";
    let Some(shared) = shared() else {
        return skip("the_smallest_program_on_every_chip", "no shared data");
    };
    let mut table = String::from(
        "\n| chip | network | start-up alone | lines of `main.rs` | Arenite | its model file | all of it | microflow | all of it |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let logged = |chip: &&Chip| chip.probe.is_some() && chip.emulation.is_none();
    for chip in chips::all().iter().filter(logged) {
        rows(chip, &shared.join("data/models"), &mut table);
        print!("{table}");
    }
    let path = root().join("docs/footprint.md");
    let document = fs::read_to_string(&path).expect("the document");
    let (head, rest) = document.split_once(BEGIN).expect("a place for the table");
    let (tracked, tail) = rest.split_once("\n<!-- end -->").expect("an end");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{table}\n<!-- end -->{tail}")).expect("written");
        return;
    }
    let (found, known) = (numbers(&table), numbers(tracked));
    assert_eq!(found.len(), known.len(), "{table}");
    for (found, known) in found.iter().zip(&known) {
        assert!(
            (found - known).abs() <= SLACK * known,
            "{found} instead of {known}:\n{table}"
        );
    }
}
