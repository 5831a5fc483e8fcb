//! A project for a chip: a program with a network in it that builds as it stands.

use std::fmt::Write as _;

use super::chip::{Chip, Emulation, Runner};

/// A file of a project.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path in the project.
    pub path: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The network that a new project begins with: the smallest of the digit classifiers, with its trained weights.
pub const NETWORK: [(&str, &[u8]); 3] = [
    ("net/digits.trace.json", include_bytes!("mlp.trace.json")),
    ("net/mlp.safetensors", include_bytes!("mlp.safetensors")),
    ("net/mlp.samples.safetensors", include_bytes!("mlp.samples.safetensors")),
];

/// An image that it classifies: a 7, eight rows of eight pixels, 0 to 1.
pub const IMAGE: &str = "\
    0.0, 0.0, 0.125, 0.8125, 1.0, 0.5625, 0.0, 0.0,
    0.0, 0.0, 0.75, 0.75, 0.4375, 1.0, 0.1875, 0.0,
    0.0, 0.0625, 0.875, 0.1875, 0.0, 1.0, 0.25, 0.0,
    0.0, 0.0, 0.0, 0.25, 0.625, 1.0, 0.375, 0.0,
    0.0, 0.0, 0.0, 0.8125, 1.0, 1.0, 0.5625, 0.0,
    0.0, 0.0, 0.0, 0.3125, 0.8125, 0.0625, 0.0, 0.0,
    0.0, 0.0, 0.0, 0.6875, 0.5625, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.0625, 1.0, 0.25, 0.0, 0.0, 0.0,";

/// More images, a 2 and a 6, which the programs of [`Emulation`](super::Emulation) classify beside [`IMAGE`].
const MORE_IMAGES: [&str; 2] = [
    "\
    0.0, 0.0625, 0.9375, 0.9375, 0.125, 0.0, 0.0, 0.0,
    0.0, 0.4375, 0.875, 0.8125, 0.5625, 0.0, 0.0, 0.0,
    0.0, 0.5625, 0.5625, 0.375, 0.8125, 0.0, 0.0, 0.0,
    0.0, 0.0625, 0.0, 0.5, 0.75, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.0, 0.5, 0.75, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.0, 0.6875, 0.375, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.4375, 1.0, 1.0, 1.0, 0.4375, 0.0,
    0.0, 0.0, 1.0, 0.9375, 0.75, 0.75, 0.1875, 0.0,",
    "\
    0.0, 0.0, 0.25, 0.875, 0.375, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.625, 0.9375, 0.125, 0.0, 0.0, 0.0,
    0.0, 0.0, 1.0, 0.6875, 0.0, 0.0, 0.0, 0.0,
    0.0, 0.0, 0.8125, 0.6875, 0.0, 0.0, 0.0, 0.0,
    0.0, 0.1875, 1.0, 0.75, 0.5, 0.1875, 0.0, 0.0,
    0.0, 0.125, 1.0, 0.875, 0.5, 0.75, 0.5625, 0.0,
    0.0, 0.0, 1.0, 0.8125, 0.25, 0.75, 0.75, 0.0,
    0.0, 0.0, 0.375, 0.9375, 1.0, 0.75, 0.0625, 0.0,",
];

/// The build script, but for its end. It starts a program, so that nothing of the host tools is compiled for a project.
const PACKS: &str = r#"//! Packs the network for the chip whenever its files change, by the program `pack`.

use std::env::var;
use std::process::{Command, exit};

/// Errors of a build are one line each.
fn fail(message: &str) -> ! {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    println!("cargo::error={}", lines.join("; "));
    exit(1)
}

fn main() {
    println!("cargo::rerun-if-changed=net");
    println!("cargo::rerun-if-env-changed=ARENITE_PACK");
    let pack = var("ARENITE_PACK").unwrap_or_else(|_| @PACK@.to_string());
    if std::path::Path::new(&pack).is_file() {
        println!("cargo::rerun-if-changed={pack}");
    }
    let model = format!("{}/digits.bin", var("OUT_DIR").unwrap());
    let packed = Command::new(&pack)
        .args(["net/digits.trace.json", "--target", "@TARGET@", "-o", &model])
        .output();
    match packed {
        Ok(output) if output.status.success() => {}
        Ok(output) => fail(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => fail(&format!(
            "`{pack}` does not start: {error}\ntry: put the folder of Arenite's programs into the path, or set ARENITE_PACK"
        )),
    }
"#;

/// Where the build of a project finds the runtime and the program that packs.
#[derive(Debug, Clone)]
pub struct Crates {
    /// The runtime, as the part of a dependency behind its name; `None` for a runtime in the project itself, in [`RUNTIME`].
    pub arenite: Option<String>,
    /// The program `pack`: its path, or a name that is looked for in the path. `ARENITE_PACK` names another one.
    pub pack: String,
}

/// The folder of a project that brings the runtime along.
pub const RUNTIME: &str = "arenite";

/// The files of a project called `name`, but for a runtime that it brings along.
pub fn project(chip: &Chip, name: &str, crates: &Crates) -> Vec<File> {
    let text = |path, text: String| File {
        path,
        bytes: text.into_bytes(),
    };
    let mut files = vec![
        text("Cargo.toml", manifest(chip, name, crates)),
        text(".cargo/config.toml", config(chip)),
        text("build.rs", build(chip, crates, memory_of(chip))),
        text("src/main.rs", main(chip)),
        text(".gitignore", "/target\n".into()),
        text("README.md", readme(chip, name, crates)),
    ];
    if let Some(emulation) = &chip.emulation {
        files.push(text("src/chip.rs", emulation.chip.into()));
        files.push(text("src/cycles.rs", emulation.cycles.into()));
    }
    if let Some(sections) = chip.support.sections {
        files.push(text("memory.x", memory(chip, sections)));
    }
    files.extend(NETWORK.iter().map(|&(path, bytes)| File {
        path,
        bytes: bytes.to_vec(),
    }));
    files
}

fn manifest(chip: &Chip, name: &str, crates: &Crates) -> String {
    // Error messages over defmt take no text in the chip's flash.
    let log = chip.is_logged().then_some(&"defmt");
    let features: Vec<&str> = chip.features.iter().chain(log).copied().collect();
    let [exclude, arenite] = dependencies(crates, &features);
    let own = match chip.emulation {
        Some(_) => {
            "[features]\n# For qemu, which lacks some of the chip: see README.md.\nemulated = [\"dep:semihosting\"]\n\n"
        }
        None => "",
    };
    format!(
        "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n{exclude}\n{own}{arenite}{}\n\n\
         [[bin]]\nname = {name:?}\npath = \"src/main.rs\"\ntest = false\nbench = false\n\n\
         # The runtime's loops for speed, everything else for size.\n[profile.release]\npanic = \"abort\"\nopt-level = \"s\"\nlto = \"fat\"\n\
         codegen-units = 1\ndebug = true\n\n[profile.release.package.arenite]\nopt-level = 2\n\n[profile.dev]\npanic = \"abort\"\nopt-level = 1\n",
        chip.support.dependencies,
    )
}

/// Lines of a manifest: what the workspace leaves out, and the dependency on the runtime with these features.
pub(super) fn dependencies(crates: &Crates, features: &[&str]) -> [String; 2] {
    let (exclude, arenite) = match &crates.arenite {
        Some(arenite) => (String::new(), arenite.clone()),
        None => (
            format!("exclude = [{RUNTIME:?}]\n"),
            format!("path = \"{RUNTIME}/core\""),
        ),
    };
    let features: Vec<String> = features.iter().map(|feature| format!("{feature:?}")).collect();
    let features = features.join(", ");
    let arenite = format!("[dependencies]\narenite = {{ {arenite}, features = [{features}] }}\n");
    [exclude, arenite]
}

fn config(chip: &Chip) -> String {
    let runner = match &chip.support.runner {
        Runner::Probe => format!("probe-rs run --chip {}", chip.probe.unwrap_or(chip.name)),
        Runner::Qemu(board) => format!(
            "{} {} -nographic -semihosting-config enable=on,target=native -kernel",
            board.qemu,
            board.machine.join(" ")
        ),
    };
    let mut flags = String::new();
    if let Runner::Qemu(board) = &chip.support.runner {
        for flag in board.rustflags {
            let _ = writeln!(flags, "    {flag:?},");
        }
    }
    for argument in chip.support.link {
        let _ = writeln!(flags, "    \"-C\", \"link-arg={argument}\",");
    }
    format!(
        "{alias}[build]\ntarget = {triple:?}\n\n[target.{triple}]\nrunner = {runner:?}\nrustflags = [\n{flags}]\n\n[env]\nDEFMT_LOG = \"info\"\n",
        alias = emulate(chip),
        triple = chip.triple
    )
}

/// The command `cargo emulate` of a project whose chip qemu emulates.
fn emulate(chip: &Chip) -> String {
    let Some(emulation) = &chip.emulation else {
        return String::new();
    };
    let runner = format!(
        "target.{}.runner = 'qemu-system-arm -M {} -icount shift={},sleep=off -display none -monitor none -serial stdio \
         -semihosting-config enable=on,target=native -kernel'",
        chip.triple, emulation.machine, emulation.icount_shift
    );
    format!(
        "[alias]\n# In qemu, with its UART on standard output.\nemulate = [\"run\", \"--release\", \"--features\", \"emulated\", \"--config\", {runner:?}]\n\n"
    )
}

/// Lines of the build script for `memory.x`, where the project has one.
fn memory_of(chip: &Chip) -> &'static str {
    match chip.support.sections {
        Some(_) => {
            "    println!(\"cargo::rustc-link-search={}\", std::env::var(\"CARGO_MANIFEST_DIR\").unwrap());\n    \
             println!(\"cargo::rerun-if-changed=memory.x\");\n"
        }
        None => "",
    }
}

/// The build script, with these lines at its end.
pub(super) fn build(chip: &Chip, crates: &Crates, memory: &str) -> String {
    format!("{PACKS}{memory}}}\n")
        .replace("@TARGET@", chip.target)
        .replace("@PACK@", &format!("{:?}", crates.pack))
}

/// Lines of the project's `README.md`: where the runtime is, and which program packs.
pub(super) fn brought(crates: &Crates, made: &str) -> String {
    match crates.arenite {
        Some(_) => format!(
            "\n`build.rs` starts `{}`, or what `ARENITE_PACK` names; the runtime is that of the checkout.\n",
            crates.pack
        ),
        None => format!(
            "\n`{RUNTIME}/` is the runtime, of the version of the tool that made this {made}; `build.rs` wants `pack` of that version in the path, or where\n\
             `ARENITE_PACK` says.\n"
        ),
    }
}

fn memory(chip: &Chip, sections: &str) -> String {
    let (mut flash, mut boot) = (chip.flash, String::new());
    let mut flash_size = format!("{}K", flash.size / 1024);
    if sections.contains("BOOT2") {
        boot = format!("  BOOT2 : ORIGIN = {:#010x}, LENGTH = 0x100\n", flash.start);
        flash.start += 0x100;
        flash_size += " - 0x100";
    }
    format!(
        "/* {}: {} */\nMEMORY\n{{\n{boot}  FLASH : ORIGIN = {:#010x}, LENGTH = {}\n  RAM   : ORIGIN = {:#010x}, LENGTH = {}K\n}}\n{sections}",
        chip.name,
        chip.source,
        flash.start,
        flash_size,
        chip.ram.start,
        chip.ram.size / 1024
    )
}

fn main(chip: &Chip) -> String {
    if chip.emulation.is_some() {
        let images = [IMAGE].into_iter().chain(MORE_IMAGES);
        let images: Vec<String> = images.map(|image| format!("[\n    {image}\n]")).collect();
        return include_str!("program/main.rs")
            .replace("the CORE", &format!("the {}", chip.core))
            .replace("IMAGES_OF_DIGITS", &images.join(", "));
    }
    let support = &chip.support;
    let heads: Vec<&str> = [chip.log(), support.head]
        .into_iter()
        .filter(|head| !head.is_empty())
        .collect();
    let unwrapped = |result: &str| {
        if chip.is_logged() {
            format!("defmt::unwrap!({result})")
        } else {
            format!("{result}.unwrap()")
        }
    };
    format!(
        "//! Classifies an image of a digit on the {core}.\n#![no_std]\n#![no_main]\n\n{head}\n\n\
         arenite::include_model!(mod digits = concat!(env!(\"OUT_DIR\"), \"/digits.bin\"));\n\n\
         /// Eight rows of eight pixels.\n#[rustfmt::skip]\nstatic IMAGE: digits::Input = [\n    {IMAGE}\n];\n\n\
         #[{entry}]\nfn main() -> ! {{\n{start}    let mut session = {session};\n    \
         let logits = {logits};\n    let [(digit, _), (second, _)] = arenite::top(logits);\n    \
         {print}(\"this is a {{}}, or else a {{}}\", digit, second);\n    {end}\n}}\n",
        session = unwrapped("digits::session()"),
        logits = "digits::run(&mut session, &IMAGE)",
        core = chip.core,
        head = heads.join("\n"),
        entry = support.entry,
        start = support.start,
        print = support.print,
        end = support.end,
    )
}

/// The command of the README for qemu, and what ran where.
fn emulation(chip: &Chip) -> [String; 2] {
    let (Some(emulation), Some(rate)) = (&chip.emulation, chip.cycles_per_instruction()) else {
        return [String::new(), String::new()];
    };
    let Emulation {
        machine,
        uart,
        counter,
        lacks,
        ..
    } = emulation;
    [
        "    cargo emulate                  # in qemu: wants qemu-system-arm\n".to_owned(),
        format!(
            "The program classifies three digits and prints each over {uart}, 115,200 baud, with the cycles that {counter} counted.\n\n\
             It ran in qemu 7.2, as the machine `{machine}`. It did not run on silicon.\nThe machine lacks {lacks}.\n\n\
             The feature `emulated`, which `cargo emulate` sets, leaves out what the machine cannot do, and ends qemu: with an error where the program\n\
             panics. One emulated instruction counts as {rate:.3} cycles, so that figures in qemu are instructions and say nothing of time.\n\n"
        ),
    ]
}

fn readme(chip: &Chip, name: &str, crates: &Crates) -> String {
    let flash = match (chip.probe, &chip.support.runner) {
        (Some(_), _) => format!(
            "    cargo run --release            # flashes{}; wants probe-rs: https://probe.rs\n    \
             arenite flash target/{}/release/{name} --chip {}\n",
            if chip.emulation.is_none() {
                " and shows the log"
            } else {
                ""
            },
            chip.triple,
            chip.name
        ),
        _ => "    cargo run --release            # in qemu\n".to_string(),
    };
    let brought = brought(crates, "project");
    let [emulate, emulated] = emulation(chip);
    format!(
        "# {name}\n\nA network on the {} ({}).\n\n    rustup target add {}\n    cargo build --release\n{flash}{emulate}\n{emulated}\
         `net/` holds the network, `build.rs` packs it: put your own there (`.tflite`, `.onnx` or a trace), and its name into `build.rs`.\n{brought}",
        chip.name, chip.core, chip.triple
    )
}
