//! The runtime under every set of features, for every target, with every kind of optimisation at link time: a combination builds, or it stops with
//! one error of ours that says why. None gets as far as an assembler that refuses an instruction, or as a program that faults on one.

use std::path::{Path, PathBuf};
use std::process::Command;

use arenite_host::board::BOARDS;
use arenite_tests::{skip, turns};

/// Extensions that a core's instruction set may have, from the architecture's manuals.
struct Target {
    triple: &'static str,
    /// The DSP extension of ARMv7E-M and ARMv8-M Mainline.
    dsp: bool,
    /// Helium, whose registers are those of the hard-float calling convention.
    mve: bool,
    /// The vectors of RISC-V.
    rvv: bool,
}

const fn target(triple: &'static str, dsp: bool, mve: bool) -> Target {
    Target {
        triple,
        dsp,
        mve,
        rvv: false,
    }
}

const fn risc_v(triple: &'static str) -> Target {
    Target {
        rvv: true,
        ..target(triple, false, false)
    }
}

const TARGETS: [Target; 11] = [
    target("thumbv6m-none-eabi", false, false),
    target("thumbv7m-none-eabi", false, false),
    target("thumbv7em-none-eabi", true, false),
    target("thumbv7em-none-eabihf", true, false),
    target("thumbv8m.base-none-eabi", false, false),
    target("thumbv8m.main-none-eabi", true, false),
    target("thumbv8m.main-none-eabihf", true, true),
    risc_v("riscv32imc-unknown-none-elf"),
    risc_v("riscv32imac-unknown-none-elf"),
    risc_v("riscv64gc-unknown-none-elf"),
    target("aarch64-unknown-none", false, false),
];

const FEATURES: [&str; 6] = ["", "dsp", "mve", "dsp,mve", "rvv", "all"];
const PROFILES: [&str; 2] = ["release", "dev"];
const LTO: [&str; 3] = ["fat", "thin", "off"];

/// Triple, features, profile and optimisation at link time of what is built to the end here; `the_whole_matrix` builds all the rest.
const NAMED: [(&str, &str, &str, &str); 10] = [
    ("thumbv6m-none-eabi", "", "release", "thin"),
    ("thumbv7m-none-eabi", "", "dev", "off"),
    ("thumbv7em-none-eabi", "dsp", "release", "off"),
    ("thumbv7em-none-eabihf", "", "release", "fat"),
    ("thumbv7em-none-eabihf", "dsp", "dev", "thin"),
    ("thumbv8m.main-none-eabihf", "mve", "release", "fat"),
    ("thumbv8m.main-none-eabihf", "all", "dev", "fat"),
    ("riscv32imac-unknown-none-elf", "", "release", "fat"),
    ("riscv32imc-unknown-none-elf", "rvv", "release", "fat"),
    ("riscv64gc-unknown-none-elf", "rvv", "dev", "thin"),
];

/// The feature that the core has no instructions for, the first where there are two.
fn refused(target: &Target, features: &str) -> Option<&'static str> {
    let wants = |name| features == "all" || features.split(',').any(|feature| feature == name);
    if wants("dsp") && !target.dsp {
        return Some("dsp");
    }
    if wants("mve") && !target.mve {
        return Some("mve");
    }
    // No core has it and Arm's: `all` is without it.
    (features == "rvv" && !target.rvv).then_some("rvv")
}

fn installed(triple: &str) -> bool {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .output();
    output.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    })
}

/// Runs cargo on the runtime for all of these targets at once; the compiler's errors where it fails, each for each target.
fn cargo(command: &str, targets: &[&Target], features: &str, profile: &str, lto: &str) -> Result<(), Vec<String>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for inherited in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(inherited);
    }
    let output = cargo
        .args([command, "--quiet", "--keep-going", "--message-format", "json"])
        .args(["--package", "arenite-c", "--lib"])
        .args(["--profile", profile, "--features", features])
        .args(targets.iter().flat_map(|target| ["--target", target.triple]))
        .arg("--target-dir")
        .arg(root.join("target/matrix").join(command))
        .current_dir(root.join("firmware"))
        .env(format!("CARGO_PROFILE_{}_LTO", profile.to_uppercase()), lto)
        .output()
        .expect("cargo starts");
    if output.status.success() {
        return Ok(());
    }
    // Messages as data: what cargo prints has equal ones once.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let errors: Vec<String> = messages
        .filter(|message| message["reason"] == "compiler-message" && message["message"]["level"] == "error")
        .filter_map(|message| Some(message["message"]["message"].as_str()?.to_owned()))
        .filter(|error| !error.starts_with("aborting due to"))
        .collect();
    if errors.is_empty() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    Err(errors)
}

/// That a combination ends, for each of these targets, as the core's instruction set says. All that build go through one command, which starts as many
/// compilers as there are cores, and so do all that are refused for the same feature.
fn hold(command: &str, targets: &[&Target], features: &str, profile: &str, lto: &str) {
    let (refusing, building): (Vec<&Target>, Vec<&Target>) =
        targets.iter().partition(|target| refused(target, features).is_some());
    if let Err(said) = builds(command, &building, features, profile, lto) {
        panic!("{said}");
    }
    for feature in ["dsp", "mve", "rvv"] {
        let of = |target: &&Target| refused(target, features) == Some(feature);
        let targets: Vec<&Target> = refusing.iter().copied().filter(of).collect();
        if let Err(said) = refuses(command, &targets, features, profile, lto, feature) {
            panic!("{said}");
        }
    }
}

fn combination(command: &str, targets: &[&Target], features: &str, profile: &str, lto: &str) -> String {
    let triples: Vec<_> = targets.iter().map(|target| target.triple).collect();
    format!("{command} {} [{features}], {profile}, LTO {lto}", triples.join(" "))
}

fn builds(command: &str, targets: &[&Target], features: &str, profile: &str, lto: &str) -> Result<(), String> {
    if targets.is_empty() {
        return Ok(());
    }
    let Err(errors) = cargo(command, targets, features, profile, lto) else {
        return Ok(());
    };
    // Which of them it is, each tells by itself.
    if targets.len() > 1 {
        for target in targets {
            builds(command, &[*target], features, profile, lto)?;
        }
    }
    let combination = combination(command, targets, features, profile, lto);
    Err(format!("{combination} does not build:\n{}", errors.join("\n")))
}

fn refuses(
    command: &str,
    targets: &[&Target],
    features: &str,
    profile: &str,
    lto: &str,
    feature: &str,
) -> Result<(), String> {
    if targets.is_empty() {
        return Ok(());
    }
    let errors = cargo(command, targets, features, profile, lto)
        .err()
        .unwrap_or_default();
    let ours = |error: &String| error.starts_with(&format!("the feature `{feature}` "));
    // One error of ours for each target, and no other.
    if errors.len() == targets.len() && errors.iter().all(ours) {
        return Ok(());
    }
    if targets.len() > 1 {
        for target in targets {
            refuses(command, &[*target], features, profile, lto, feature)?;
        }
    }
    let combination = combination(command, targets, features, profile, lto);
    Err(format!(
        "{combination} is to stop with one error about `{feature}` for each target:\n{}",
        errors.join("\n")
    ))
}

/// The targets that this machine can build for; the others are skipped by name.
fn targets(test: &str) -> Vec<&'static Target> {
    let here = TARGETS.iter().filter(move |target| {
        let there = installed(target.triple);
        if !there {
            skip(
                &format!("{test} for {}", target.triple),
                &format!("no standard library for {}", target.triple),
            );
        }
        there
    });
    here.collect()
}

#[test]
fn every_board_is_in_the_matrix() {
    for board in &BOARDS {
        assert!(
            TARGETS.iter().any(|target| target.triple == board.triple),
            "{} is built for {}, which the matrix has not",
            board.name,
            board.triple
        );
    }
}

#[test]
fn every_combination_checks_or_says_why_not() {
    const TEST: &str = "every_combination_checks_or_says_why_not";
    let targets = targets(TEST);
    for features in turns(TEST, 6, FEATURES) {
        hold("check", &targets, features, "dev", "off");
    }
}

#[test]
fn named_combinations_build_to_the_end() {
    const TEST: &str = "named_combinations_build_to_the_end";
    let named = turns(TEST, 5, NAMED);
    for target in targets(TEST) {
        for (_, features, profile, lto) in named.iter().filter(|named| named.0 == target.triple) {
            hold("build", &[target], features, profile, lto);
        }
    }
}

#[test]
#[ignore = "long: four hundred builds"]
fn the_whole_matrix() {
    let targets = targets("the_whole_matrix");
    for features in FEATURES {
        for profile in PROFILES {
            for lto in LTO {
                hold("build", &targets, features, profile, lto);
            }
        }
    }
}
