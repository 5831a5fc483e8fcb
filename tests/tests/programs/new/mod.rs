//! Projects that users build with these tools: a package whose build script packs its network, and projects of `arenite new`.

mod emulated;
mod sizes;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arenite_host::board::{Board, find_program, ready};
use arenite_host::chips::{self, Chip};
use arenite_tests::{skip, turns};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the checkout")
}

/// cargo in a folder, with the versions that everything else here is built with. The profile is one for all, so that the host tools are compiled once, and has
/// no debug information, which nobody looks at.
pub(super) fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    cargo_with(folder, arguments, &[])
}

fn cargo_with(folder: &Path, arguments: &[&str], environment: &[(&str, &Path)]) -> Output {
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        fs::copy(root().join("Cargo.lock"), lock).expect("copied");
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for inherited in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(inherited);
    }
    if let Some(qemu) = find_program("qemu-system-arm") {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(qemu.parent().map(Path::to_owned));
        cargo.env("PATH", std::env::join_paths(folders).expect("a path"));
    }
    cargo
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .envs(environment.iter().copied())
        .env("CARGO_TARGET_DIR", root().join("target/new"))
        .args(arguments)
        .args(["--color", "never"])
        .current_dir(folder);
    // The others build nothing, or say so themselves.
    if ["build", "run"].contains(&arguments[0]) {
        cargo.arg("--release");
    }
    cargo.output().expect("cargo starts")
}

pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes a project with the tool itself.
pub(super) fn project(arguments: &[&str], folder: &Path) {
    let made = Command::new(arenite_tests::programs().join("arenite"))
        .arg("new")
        .args(arguments)
        .arg(folder)
        .current_dir(root())
        .output()
        .expect("the tool starts");
    good(&made);
}

/// A package of a host's that packs a network beside it.
fn packing(folder: &Path, script: &str) {
    let root = root();
    fs::create_dir(folder.join("src")).expect("made");
    let manifest = format!(
        "[package]\nname = \"packing\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [profile.release]\nopt-level = 0\n\n[dependencies]\narenite = {{ path = {:?} }}\n\n\
         [build-dependencies]\narenite-host = {{ path = {:?} }}\n",
        root.join("core"),
        root.join("host-tools")
    );
    let main = "arenite::include_model!(mod mlp = concat!(env!(\"OUT_DIR\"), \"/mlp.bin\"), loaded);\n\n\
                fn main() -> Result<(), arenite::Error> {\n    let mut session = mlp::session()?;\n    \
                let [(class, _)] = arenite::top(mlp::run(&mut session, &[0.5; 64])?);\n    \
                println!(\"{class} {}\", mlp::LABELS[class]);\n    Ok(())\n}\n";
    fs::write(folder.join("Cargo.toml"), manifest).expect("written");
    fs::write(folder.join("src/main.rs"), main).expect("written");
    fs::write(folder.join("build.rs"), format!("fn main() {{\n    {script}\n}}\n")).expect("written");
    for kind in ["trace.json", "safetensors", "samples.safetensors"] {
        let name = format!("mlp.{kind}");
        fs::copy(root.join("tests/models/digits").join(&name), folder.join(name)).expect("copied");
    }
}

#[test]
fn a_build_script_packs_again_on_change_and_cargo_shows_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    packing(
        folder,
        "arenite_host::build::Pack::new(\"mlp.trace.json\").labels(\"labels.txt\").write(\"mlp\");",
    );
    let labels = |last: &str| {
        let names: Vec<String> = (0..10).map(|digit| format!("digit-{digit}{last}")).collect();
        fs::write(folder.join("labels.txt"), names.join("\n")).expect("written");
    };
    // A file that is missing: cargo shows the message, once.
    let missing = cargo(folder, &["run", "--quiet"]);
    assert!(!missing.status.success());
    let text = said(&missing);
    assert!(
        text.contains("labels.txt") && text.contains("read the labels"),
        "{text}"
    );
    assert!(!text.contains("panicked"), "{text}");

    labels("");
    let first = good(&cargo(folder, &["run", "--quiet"]));
    let (class, label) = first.trim().split_once(' ').expect("class and label");
    assert_eq!(label, format!("digit-{class}"));
    // Nothing changed, nothing is packed; another label is another file.
    let again = cargo(folder, &["build", "-v"]);
    assert!(said(&again).contains("Fresh packing"), "{}", said(&again));
    labels("!");
    assert_eq!(
        good(&cargo(folder, &["run", "--quiet"])).trim(),
        format!("{class} digit-{class}!")
    );
    // Files that the trace names count as well: without its weights there is no model.
    let weights = folder.join("mlp.safetensors");
    let kept = fs::read(&weights).expect("readable");
    fs::write(&weights, &kept[..kept.len() - 4]).expect("written");
    let broken = cargo(folder, &["run", "--quiet"]);
    assert!(
        !broken.status.success() && said(&broken).contains("mlp.safetensors"),
        "{}",
        said(&broken)
    );
}

#[test]
fn a_new_project_builds_and_runs() {
    const TEST: &str = "a_new_project_builds_and_runs";
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let project_folder = folder.path().join("first");
    project(&["--chip", board.name], &project_folder);
    let printed = good(&cargo(&project_folder, &["run", "--quiet"]));
    assert!(printed.starts_with("this is a 7, or else a "), "{printed}");
}

/// The most packages that cargo compiles for a project: the host tools alone are more than that.
const PACKAGES: usize = 40;

#[test]
fn a_project_of_a_checkout_builds_nothing_of_the_host_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [&["--chip", "mps2-an386"][..], &["--chip", "mps2-an386", "--c"]] {
        let project_folder = folder.path().join(format!("project{}", arguments.len()));
        project(arguments, &project_folder);
        fs::copy(root().join("Cargo.lock"), project_folder.join("Cargo.lock")).expect("copied");
        let tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
            .current_dir(&project_folder)
            .output();
        let tree = good(&tree.expect("cargo starts"));
        let packages: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
        assert!(
            packages.iter().any(|package| package.starts_with("arenite v")),
            "{tree}"
        );
        assert!(
            !packages.iter().any(|package| package.starts_with("arenite-host ")),
            "{tree}"
        );
        assert!(packages.len() <= PACKAGES, "{}:\n{tree}", packages.len());
    }
}

/// All files of a folder.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] })
        .collect()
}

/// An installed tool knows of no checkout: its projects bring the runtime, and are packed by the program beside it.
#[test]
fn a_project_of_an_installed_tool_builds_and_runs() {
    const TEST: &str = "a_project_of_an_installed_tool_builds_and_runs";
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(TEST, &reason.to_string());
    }
    // The runtime that it brings is compiled anew.
    if turns(TEST, 2, [board]).is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("prefix/bin");
    fs::create_dir_all(&bin).expect("made");
    for program in ["pack", "arenite"] {
        // By another process: what this one wrote may not be started while a test's child still holds it open.
        let from = arenite_tests::programs().join(program);
        let copied = Command::new("cp").arg(from).arg(&bin).status();
        assert!(copied.expect("cp starts").success());
    }
    let made = Command::new(bin.join("arenite"))
        .args(["new", "--chip", board.name, "first"])
        .current_dir(folder.path())
        .env_remove("ARENITE_ROOT")
        .output();
    assert!(good(&made.expect("the tool starts")).contains("wants `pack`"));
    let project = folder.path().join("first");
    let checkout = root().display().to_string();
    for file in all_files(&project) {
        let text = String::from_utf8_lossy(&fs::read(&file).expect("readable")).into_owned();
        assert!(!text.contains(&checkout), "{} names the checkout", file.display());
    }
    assert_eq!(
        fs::read(project.join("arenite/core/src/lib.rs")).expect("brought"),
        fs::read(root().join("core/src/lib.rs")).expect("readable")
    );
    let path = std::env::var_os("PATH").unwrap_or_default();
    let with = |program: &Path, arguments: &[&str]| cargo_with(&project, arguments, &[("ARENITE_PACK", program)]);
    let printed = good(&with(&bin.join("pack"), &["run", "--quiet"]));
    assert!(printed.starts_with("this is a 7, or else a "), "{printed}");

    // Without the program, and with a network that is damaged, cargo shows why.
    let lost = with(&folder.path().join("none"), &["build"]);
    assert!(
        !lost.status.success() && said(&lost).contains("does not start"),
        "{}",
        said(&lost)
    );
    let weights = project.join("net/mlp.safetensors");
    let kept = fs::read(&weights).expect("readable");
    fs::write(&weights, &kept[..kept.len() - 4]).expect("written");
    let broken = with(&bin.join("pack"), &["build"]);
    assert!(
        !broken.status.success() && said(&broken).contains("mlp.safetensors"),
        "{}",
        said(&broken)
    );
    // Found in the path as well.
    fs::write(&weights, &kept).expect("written");
    let folders = std::iter::once(bin).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("a path");
    good(&cargo_with(&project, &["build"], &[("PATH", Path::new(&path))]));
}

/// Whether the chip's standard library is installed; where not, the test is skipped for it.
fn has_library(test: &str, chip: &Chip) -> bool {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", chip.triple])
        .output();
    let there = libraries.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if !there {
        skip(
            &format!("{test}: {}", chip.name),
            &format!("no standard library for {}", chip.triple),
        );
    }
    there
}

/// A project for a chip, checked with the crates of its HAL.
fn checks(test: &str, chip: &Chip) {
    if !has_library(test, chip) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let project_folder = folder.path().join(chip.name);
    project(&["--chip", chip.name], &project_folder);
    let output = cargo(&project_folder, &["build"]);
    assert!(output.status.success(), "{}:\n{}", chip.name, said(&output));
    assert!(
        !said(&output).contains("warning: unused"),
        "{}:\n{}",
        chip.name,
        said(&output)
    );
}

#[test]
#[ignore = "long: the HAL crates of every chip, from the registry"]
fn a_project_for_every_chip_builds() {
    for chip in chips::all() {
        checks("a_project_for_every_chip_builds", &chip);
    }
}
