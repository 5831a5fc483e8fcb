//! Files that a change of each kind touches: a small one is a patch in `tests/patches`, and touches those that `CONTRIBUTING.md` names and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arenite::KernelId;
use arenite_host::board::{Board, QEMU_FOLDER, ready};
use arenite_host::import::{ImportOptions, import};
use arenite_tests::skip;
use regex::Regex;

/// The patches, `tests/patches/NAME.patch`, and the section of `CONTRIBUTING.md` that each is an example of.
const PATCHES: [(&str, &str); 8] = [
    ("backend", "A backend"),
    ("board", "A board"),
    ("dialect", "A dialect"),
    ("kernel", "A kernel"),
    ("loop", "A loop for a core"),
    ("operator", "Another operator"),
    ("pass", "A pass"),
    ("pointwise", "A pointwise operator"),
];

/// Patches that spoil a kernel's assembly, `tests/patches/NAME.patch`; the kernel, and parts of what the test kit says of it.
const BAD: [(&str, &str, &[&str]); 3] = [
    // Two fields of the arguments change places.
    (
        "bad_field",
        "DspSumS8",
        &["DspSumS8 on mps2-an386, seed ", ": Differs("],
    ),
    // An element behind the input is read.
    (
        "bad_read",
        "DspConv2dS8",
        &[
            "kernel: DspConv2dS8, ",
            "operand: 1, start: false, ",
            "im2col_s16_loops::arm::widen_4",
        ],
    ),
    // A register of the caller is not saved.
    (
        "bad_register",
        "DspSlidingDepthwiseS8",
        &[
            "DspSlidingDepthwiseS8 on mps2-an386, seed ",
            "Unsaved { registers: \"r10\", ",
            "dwconv_s8_3x3_s1_loops::arm::widen",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn patch(name: &str) -> String {
    read(&format!("tests/patches/{name}.patch"))
}

/// The kernels of the patch of a backend.
const KERNELS: [&str; 2] = ["DemoConv2dF32", "DemoDepthwiseS8"];

/// A network of the operator's patch.
const OPERATOR_TRACE: &str = r#"{
  "arenite_trace": 1,
  "name": "zone",
  "inputs": ["x"],
  "outputs": ["y"],
  "tensors": {
    "x": {"shape": [2, 3], "dtype": "f32", "role": "input"},
    "y": {"shape": [2, 3], "dtype": "f32", "role": "activation"}
  },
  "ops": [{"name": "zone", "op": "dead_zone", "inputs": ["x"], "outputs": ["y"], "attrs": {"limit": 0.25}}]
}"#;

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

/// The numbers of all kernels.
fn used() -> BTreeSet<u8> {
    KernelId::ALL.iter().map(|&kernel| kernel as u8).collect()
}

/// The patch with the largest numbers that are not used: the numbers of the file itself are taken by kernels that came later.
fn renumbered(patch: &str, used: &BTreeSet<u8>) -> String {
    let mut free = (0..=u8::MAX).rev().filter(|number| !used.contains(number));
    let row = Regex::new(r"^\+            [0-9]+ ([A-Z].*;)$").expect("an expression");
    let lines = patch.lines().map(|line| match row.captures(line) {
        Some(row) => format!("+            {} {}\n", free.next().expect("an unused number"), &row[1]),
        None => format!("{line}\n"),
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

/// Words of `CONTRIBUTING.md` that stand for any name.
const ANY: &str = "BACKEND|DIALECT|NAME|ISA|PASS";

/// The paths of a section's numbered lines, each an expression: those words stand for any name, and a folder for what is in it.
fn documented(text: &str, title: &str) -> Vec<Regex> {
    let section = text
        .split("\n## ")
        .find(|section| section.starts_with(&format!("{title}\n")));
    let lines = section.unwrap_or_else(|| panic!("no section on `{title}`")).lines();
    let numbered = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let heads = numbered.filter_map(|line| line.split_once(':')).map(|(head, _)| head);
    let any = Regex::new(ANY).expect("an expression");
    let paths = heads.flat_map(|head| head.split('`').skip(1).step_by(2)).map(|path| {
        let path = any.replace_all(path, "[a-z0-9_]+");
        let inside = if path.ends_with('/') { ".+" } else { "" };
        Regex::new(&format!("^{path}{inside}$")).expect("an expression")
    });
    paths.collect()
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
        // The firmware's `.cargo` is among the sources that the host tools take in.
        let is_hidden = name.to_string_lossy().starts_with('.') && name != ".cargo";
        if name != "target" && !is_hidden {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

/// Applies a patch in `folder`, which is in no repository; `None` without a program for it.
fn apply(name: &str, folder: &Path) -> Option<()> {
    let patch = folder.join(format!("{name}.patch"));
    // Another patch may have added kernels.
    let table = fs::read_to_string(folder.join(TABLE));
    let used = table.map_or_else(
        |_| used(),
        |table| numbered(&table).into_iter().map(|(number, _)| number).collect(),
    );
    fs::write(&patch, renumbered(&self::patch(name), &used)).expect("written");
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
        assert!(
            output.status.success(),
            "{name}.patch does not apply any more: {errors}"
        );
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
fn each_patch_touches_what_is_documented() {
    let text = read("CONTRIBUTING.md");
    for (name, title) in PATCHES {
        let (touched, documented) = (touched(&patch(name)), documented(&text, title));
        for (path, _) in &touched {
            let is_said = documented.iter().any(|of| of.is_match(path));
            assert!(
                is_said,
                "`{title}` of CONTRIBUTING.md does not say {path}, which {name}.patch touches"
            );
        }
        for of in &documented {
            let is_touched = touched.iter().any(|(path, _)| of.is_match(path));
            assert!(
                is_touched,
                "{name}.patch touches nothing of {of}, which `{title}` of CONTRIBUTING.md says"
            );
        }
    }
}

#[test]
fn the_files_of_each_patch_are_counted() {
    let text = read("CONTRIBUTING.md");
    for (name, _) in PATCHES {
        let row = format!("| `{name}` | {} | ", touched(&patch(name)).len());
        assert!(text.contains(&row), "CONTRIBUTING.md has no row `{row}`");
    }
}

#[test]
fn each_patch_applies() {
    let names = PATCHES
        .map(|(name, _)| name)
        .into_iter()
        .chain(BAD.map(|(name, ..)| name));
    for name in names {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, there) in touched(&patch(name)) {
            if there {
                copy(&root().join(&path), &folder.path().join(&path));
            }
        }
        if apply(name, folder.path()).is_none() {
            return skip("each_patch_applies", "neither git nor patch is installed");
        }
        let Ok(table) = fs::read_to_string(folder.path().join(TABLE)) else {
            continue;
        };
        let rows = numbered(&table);
        let numbers: BTreeSet<u8> = rows.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers.len(), rows.len(), "two kernels of one number: {rows:?}");
        let added = if name == "backend" { KERNELS.len() } else { 1 };
        assert_eq!(rows.len(), KernelId::ALL.len() + added, "{rows:?}");
        // A patch's kernels have the largest numbers that there are, beyond the first words of the set.
        let largest: Vec<u8> = numbers.into_iter().rev().take(added).collect();
        assert_eq!(largest, [255, 254][..added]);
    }
}

/// With an operator that there is in its place, which takes a number as well.
#[test]
fn the_trace_of_the_operator_is_one_that_the_importer_reads() {
    let trace = OPERATOR_TRACE
        .replace("dead_zone", "leaky_relu")
        .replace("limit", "negative_slope");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("zone.trace.json");
    fs::write(&path, trace).expect("written");
    let (dialect, imported) = import(&path, None, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((dialect, imported.graph.nodes.len()), ("native", 1));
}

/// Kernels that took a patch's own numbers do not stop it.
#[test]
fn a_patch_takes_numbers_that_no_kernel_has() {
    let (first, used) = (KernelId::ALL[0] as u8, used());
    let own = patch("backend");
    let taken: String = own
        .lines()
        .map(|line| match line.split_once(" DemoConv2dF32 Demo ") {
            Some((_, kernel)) => format!("+            {first} DemoConv2dF32 Demo {kernel}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    assert_ne!(taken, own);
    assert_eq!(renumbered(&taken, &used), renumbered(&own, &used));
}

/// A copy of the sources with patches; `None` without a program that applies them.
fn patched(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let copied = folder.join("sources");
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
    names.iter().try_for_each(|name| apply(name, &copied))?;
    Some(copied)
}

/// The kernel's convolution and the operator equal the reference, the loop is built for its core, dialect, pass and pointwise operator run with their crates'
/// own tests, the board has its row.
#[test]
#[ignore = "long: builds the runtime and the packer from a copy of the sources"]
fn the_other_patches_build_and_their_kernels_run() {
    let test = "the_other_patches_build_and_their_kernels_run";
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["board", "dialect", "kernel", "loop", "operator", "pass", "pointwise"];
    let Some(copied) = patched(folder.path(), &names) else {
        return skip(test, "neither git nor patch is installed");
    };
    for name in ["kernel.rs", "operator.rs"] {
        copy(
            &root().join("tests/patches").join(name),
            &copied.join("core/tests").join(name),
        );
    }
    let target = folder.path().join("target");
    let run = |arguments: &str| cargo(&copied, &target, &arguments.split(' ').collect::<Vec<_>>());
    let printed = run("test -p arenite --features testkit,pack --test kernel --test operator -- --nocapture");
    assert!(
        printed.contains("InputConv2dF32: ") && printed.contains("DeadZoneF32: "),
        "{printed}"
    );
    run("test -p arenite-import --lib lines");
    run("test -p arenite-plan --lib passes");
    run("check -p arenite-board");
    if let Err(reason) = ready(Board::find("riscv32-virt").expect("a known board")) {
        return skip(&format!("{test}: the loop"), &reason.to_string());
    }
    run("check -p arenite --features testkit --target riscv32imac-unknown-none-elf");
}

/// In a copy of the sources with the patches of a backend and of an operator, the backend's kernels equal the scalar ones, survive damaged weights, and are
/// what `pack` chooses for their target; a trace of the operator packs to its kernel.
#[test]
#[ignore = "long: builds the runtime and the packer from a copy of the sources"]
fn a_backend_added_by_its_patch_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(copied) = patched(folder.path(), &["backend", "operator"]) else {
        return skip(
            "a_backend_added_by_its_patch_runs",
            "neither git nor patch is installed",
        );
    };
    copy(
        &root().join("tests/patches/backend.rs"),
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
    let table = fs::read_to_string(copied.join(TABLE)).expect("the table");
    let trace = folder.path().join("zone.trace.json");
    fs::write(&trace, OPERATOR_TRACE).expect("written");
    let digits = copied.join("tests/models/digits/digits.trace.json");
    for (model, kernel) in [(digits, KERNELS[0]), (trace, "DeadZoneF32")] {
        let output = folder.path().join("model.bin");
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
        println!("{}", cargo(&copied, &target, &pack));
        let kernels = arenite::kernel_set(&fs::read(output.as_ref()).expect("the model file"));
        let row = numbered(&table).into_iter().find(|(_, name)| name == kernel);
        let (number, _) = row.unwrap_or_else(|| panic!("no row of {kernel}"));
        assert!(kernels.has(number), "the kernels of {model} are {kernels:x?}");
    }
}

/// A register that is not saved, a byte that is read behind an operand and two fields of arguments in each other's place: on the board the test kit sees
/// each, and says what it is.
#[test]
#[ignore = "long: builds firmware from a copy of the sources"]
fn bad_assembly_is_seen_by_the_test_kit() {
    let test = "bad_assembly_is_seen_by_the_test_kit";
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = ready(board) {
        return skip(test, &reason.to_string());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(copied) = patched(folder.path(), &BAD.map(|(name, ..)| name)) else {
        return skip(test, "neither git nor patch is installed");
    };
    // Emulators that `cargo xtask setup` brought lie in the checkout.
    let own = root().join(QEMU_FOLDER).join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path))).expect("a path");
    for (name, kernel, said) in BAD {
        let output = Command::new(env!("CARGO"))
            .args(["xtask", "test", "kernel", kernel])
            .env("ARENITE_ROOT", &copied)
            .env("PATH", &path)
            .current_dir(root())
            .output()
            .expect("cargo runs");
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}.patch: {kernel} passes: {printed}");
        for part in said {
            assert!(printed.contains(part), "{name}.patch: no `{part}` in {printed}");
        }
    }
}
