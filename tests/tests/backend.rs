//! What adding a backend takes: a small one is kept as `tests/backend/demo.patch`, and touches what `CONTRIBUTING.md` says and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::KernelId;
use arenite_tests::skip;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const PATCH: &str = "tests/backend/demo.patch";

/// The kernels that it adds.
const KERNELS: [&str; 2] = ["DemoConv2dF32", "DemoDepthwiseS8"];

/// The table of kernels.
const TABLE: &str = "core/src/kernels/table.rs";

/// Number and name of each row in the table of kernels.
fn numbered(table: &str) -> Vec<(u8, String)> {
    let (_, rows) = table.split_once("$with! {\n").expect("a table of kernels");
    let (rows, _) = rows.split_once("\n        }").expect("the table's end");
    let rows = rows.lines().map(str::trim).filter(|row| !row.starts_with("//"));
    rows.map(|row| {
        let mut words = row.split(' ');
        let number = words.next().and_then(|word| word.parse().ok());
        let number = number.unwrap_or_else(|| panic!("no number: {row}"));
        (number, words.next().expect("a name").to_owned())
    })
    .collect()
}

/// The patch with the largest numbers that no kernel has: the numbers of the file itself are taken by kernels that came later.
fn renumbered(patch: &str) -> String {
    let used: BTreeSet<u8> = KernelId::ALL.iter().map(|&kernel| kernel as u8).collect();
    let mut free = (0..=u8::MAX).rev().filter(|number| !used.contains(number));
    let lines = patch.lines().map(|line| {
        let row = line.strip_prefix("+            ").and_then(|row| row.split_once(' '));
        match row.filter(|(_, row)| KERNELS.iter().any(|name| row.starts_with(&format!("{name} ")))) {
            Some((_, row)) => format!("+            {} {row}\n", free.next().expect("an unused number")),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

/// The files that a patch touches, and whether each is there before.
fn touched(patch: &str) -> Vec<(String, bool)> {
    let lines: Vec<&str> = patch.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        let (before, after) = (pair[0].strip_prefix("--- ")?, pair[1].strip_prefix("+++ b/")?);
        Some((after.to_owned(), before != "/dev/null"))
    });
    pairs.collect()
}

/// The paths that the numbered lines below "A backend" begin with.
fn documented(text: &str) -> BTreeSet<String> {
    let section = text.split("\n## ").find(|section| section.starts_with("A backend\n"));
    let lines = section.expect("a section on backends").lines();
    lines
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(|line| line.split('`').nth(1).expect("a path in backticks").to_owned())
        .collect()
}

/// Copies files and folders, but for what is built or hidden.
fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder is made");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        return;
    }
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let name = entry.expect("an entry").file_name();
        if name != "target" && !name.to_string_lossy().starts_with('.') {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

/// Applies the patch in `folder`, which is in no repository; `None` without a program for it.
fn apply(folder: &Path) -> Option<()> {
    let patch = folder.join("backend.patch");
    fs::write(&patch, renumbered(&read(PATCH))).expect("written");
    for command in [["git", "apply"].as_slice(), &["patch", "--strip=1", "--input"]] {
        let (program, arguments) = command.split_first().expect("a program");
        let Ok(output) = Command::new(program)
            .args(arguments)
            .arg(&patch)
            .current_dir(folder)
            .output()
        else {
            continue;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{PATCH} does not apply any more: {errors}");
        return Some(());
    }
    None
}

/// Runs cargo in a copy of the sources, without a network, and returns what it printed.
fn cargo(folder: &Path, target: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .arg("--offline")
        .args(arguments)
        .env("CARGO_TARGET_DIR", target)
        .current_dir(folder)
        .output()
        .expect("cargo runs");
    let (printed, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "cargo {}:\n{printed}\n{errors}",
        arguments.join(" ")
    );
    printed.into_owned()
}

#[test]
fn a_backend_touches_what_is_documented() {
    let touched: BTreeSet<String> = touched(&read(PATCH))
        .into_iter()
        .map(|(path, _)| match path.strip_prefix("core/src/kernels/demo/") {
            Some(_) => "core/src/kernels/BACKEND/".to_owned(),
            None => path,
        })
        .collect();
    assert_eq!(touched, documented(&read("CONTRIBUTING.md")));
}

#[test]
fn the_patch_of_a_backend_applies() {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, there) in touched(&read(PATCH)) {
        if there {
            copy(&root().join(&path), &folder.path().join(&path));
        }
    }
    if apply(folder.path()).is_none() {
        return skip("the_patch_of_a_backend_applies", "neither git nor patch is installed");
    }
    let table = fs::read_to_string(folder.path().join(TABLE)).expect("the table");
    let rows = numbered(&table);
    let numbers: BTreeSet<u8> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers.len(), rows.len(), "two kernels of one number: {rows:?}");
    // The patch's kernels have the largest numbers that there are, beyond the first words of the set.
    assert_eq!(numbers.iter().rev().take(2).collect::<Vec<_>>(), [&255, &254]);
    assert_eq!(rows.len(), KernelId::ALL.len() + KERNELS.len(), "{rows:?}");
}

/// Kernels that took the patch's own numbers do not stop it.
#[test]
fn the_patch_takes_numbers_that_no_kernel_has() {
    let used = KernelId::ALL[0] as u8;
    let taken: String = read(PATCH)
        .lines()
        .map(|line| match line.split_once(" DemoConv2dF32 Demo ") {
            Some((_, kernel)) => format!("+            {used} DemoConv2dF32 Demo {kernel}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    assert!(
        taken.contains(&format!("+            {used} DemoConv2dF32 Demo")),
        "{taken}"
    );
    assert_eq!(renumbered(&taken), renumbered(&read(PATCH)));
}

/// In a copy of the sources with the patch, its kernels equal the scalar ones, survive damaged weights, and are what `pack` chooses for their target.
#[test]
#[ignore = "long: builds the runtime and the packer from a copy of the sources"]
fn a_backend_added_by_its_patch_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let copied = folder.path().join("sources");
    for part in [
        "core",
        "host-tools",
        "firmware",
        "tests",
        "docs",
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        copy(&root().join(part), &copied.join(part));
    }
    if apply(&copied).is_none() {
        skip(
            "a_backend_added_by_its_patch_runs",
            "neither git nor patch is installed",
        );
        return;
    }
    copy(
        &root().join("tests/backend/demo.rs"),
        &copied.join("core/tests/backend.rs"),
    );
    let target = folder.path().join("target");
    let kit = [
        "test",
        "-p",
        "arenite",
        "--features",
        "testkit,pack",
        "--test",
        "backend",
        "--",
        "--nocapture",
    ];
    let printed = cargo(&copied, &target, &kit);
    for kernel in KERNELS {
        assert!(printed.contains(&format!("{kernel}: ")), "{kernel}:\n{printed}");
    }
    let model = copied.join("tests/models/digits/digits.trace.json");
    let output = folder.path().join("digits.bin");
    let (model, output) = (model.to_string_lossy(), output.to_string_lossy());
    let pack = [
        "run",
        "-p",
        "arenite-host",
        "--bin",
        "pack",
        "--",
        &model,
        "-o",
        &output,
        "--target",
        "portable",
    ];
    println!("{printed}{}", cargo(&copied, &target, &pack));
    let packed = fs::read(output.as_ref()).expect("the model file");
    let kernels = arenite::kernel_set(&packed);
    let table = fs::read_to_string(copied.join(TABLE)).expect("the table");
    let conv2d = numbered(&table).into_iter().find(|(_, name)| name == KERNELS[0]);
    let (number, _) = conv2d.expect("the convolution's row");
    assert!(kernels.has(number), "the model's kernels are {kernels:x?}");
}
