//! The gates of `cargo xtask test` beside the tests themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use arenite_host::board::{BOARDS, Board, packed_sources};
use arenite_xtask::playground::TRIPLE;
use serde_json::Value;

use super::setup::everything::has_deny;
use super::suite::{self, Outcome};
use super::{Result, cargo, root, run, setup};

/// Published packages, in the order of their dependencies.
const PUBLISHED: [&str; 13] = [
    "arenite-checks",
    "arenite-include",
    "arenite",
    "arenite-protocol",
    "arenite-sensors",
    "arenite-serial",
    "arenite-stream",
    "arenite-graph",
    "arenite-import",
    "arenite-plan",
    "arenite-quantise",
    "arenite-board",
    "arenite-host",
];

/// The workspaces of the product.
const WORKSPACES: [&str; 2] = ["Cargo.toml", "firmware/Cargo.toml"];

/// Features of the runtime that leave parts of it out, each alone, and none.
const ALONE: [&str; 10] = [
    "",
    "testkit",
    "pack",
    "cores",
    "accelerators",
    "ethos-u",
    "rolling",
    "training",
    "guard",
    "slots",
];

pub(super) fn format() -> Result<Outcome> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    for manifest in [
        "firmware/Cargo.toml",
        "firmware/tasks/Cargo.toml",
        "host-tools/qemu-plugin/Cargo.toml",
    ] {
        run(&mut cargo(&["fmt", "--all", "--check", "--manifest-path", manifest]))?;
    }
    Ok(Outcome::Held)
}

pub(super) fn clippy() -> Result<Outcome> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(&mut cargo(&arguments))?;
    Ok(Outcome::Held)
}

pub(super) fn docs() -> Result<Outcome> {
    run(cargo(&["doc", "--workspace", "--no-deps", "--lib"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Held)
}

/// The kernels of each architecture, which a host never compiles; the runtime with few features.
pub(super) fn kernels() -> Result<Outcome> {
    // One command for all targets of the same features, which checks several at once.
    let mut builds: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let all: BTreeSet<_> = BOARDS
        .iter()
        .map(|board| (board.runtime.join(","), board.triple))
        .collect();
    for (features, triple) in suite::of_lint(3, all) {
        builds.entry(features).or_default().insert(triple);
    }
    for (features, triples) in builds {
        let mut clippy = cargo(&["clippy", "--package", "arenite", "--lib", "--features", &features]);
        triples.iter().for_each(|triple| _ = clippy.args(["--target", triple]));
        run(clippy.args(["--", "-D", "warnings"]))?;
    }
    // Without the features that are on by default: errors without their text.
    run(cargo(&["clippy", "--package", "arenite", "--lib", "--no-default-features"]).args(["--", "-D", "warnings"]))?;
    // As programs on hosts have it: the workspace's own lints see it with all that tests want, and so with nothing out of reach.
    for features in suite::of_lint(5, ALONE) {
        run(
            cargo(&["clippy", "--package", "arenite", "--lib", "--features", features]).args(["--", "-D", "warnings"]),
        )?;
    }
    Ok(Outcome::Held)
}

/// The firmware's library and programs for every board.
pub(super) fn firmware() -> Result<Outcome> {
    // The programs for a serial port and for a flash too, where the board has one, and the test kit's check of registers.
    let features = |board: &Board| {
        let serial = board.uart.map_or("", |_| ",serial");
        let stream = board.spi_flash().map_or("", |_| ",slots");
        format!("{}{serial}{stream},registers", board.feature)
    };
    let boards: BTreeSet<_> = BOARDS.iter().map(|board| (board.triple, features(board))).collect();
    for (triple, features) in suite::of_lint(3, &boards) {
        let arguments = ["clippy", "--lib", "--bins", "--target", triple, "--features", features];
        run(cargo(&arguments)
            .arg("--target-dir")
            .arg(root().join("target/clippy"))
            .args(["--", "-D", "warnings"])
            .current_dir(root().join("firmware")))?;
    }
    let model = root().join(format!("tests/models/compat/mlp-v{}.bin", arenite::FORMAT_VERSION));
    // The library for C, and the programs that are measured.
    for arguments in [
        &["--package", "arenite-c", "--lib", "--features", "dsp,training"][..],
        &[
            "--package",
            "arenite-footprint",
            "--bin",
            "footprint",
            "--bin",
            "compiled",
            "--bin",
            "printing",
            "--bin",
            "start",
            "--features",
            "dsp,embedded-model",
        ],
    ] {
        run(cargo(&["clippy", "--target", "thumbv7em-none-eabihf"])
            .args(arguments)
            .arg("--target-dir")
            .arg(root().join("target/clippy"))
            .args(["--", "-D", "warnings"])
            .env("ARENITE_MODEL", &model)
            .current_dir(root().join("firmware")))?;
    }
    // Those that are a workspace of their own; any model of a digit's form serves.
    for (triple, features) in [
        ("thumbv7em-none-eabihf", "rtic,embassy,sensor"),
        ("riscv32imc-unknown-none-elf", "riscv32-virt"),
    ] {
        let arguments = ["clippy", "--locked", "--target", triple, "--features", features];
        run(cargo(&arguments)
            .arg("--target-dir")
            .arg(root().join("target/clippy"))
            .args(["--", "-D", "warnings"])
            .env("ARENITE_MODEL", &model)
            .current_dir(root().join("firmware/tasks")))?;
    }
    Ok(Outcome::Held)
}

/// Compiles the functions that the playground's page calls, with the packing half of the host tools.
pub(super) fn browser() -> Result<Outcome> {
    setup::rust_target(TRIPLE)?;
    let arguments = [
        "clippy",
        "--locked",
        "--package",
        "arenite-playground",
        "--package",
        "arenite-host",
    ];
    run(cargo(&arguments).args([
        "--lib",
        "--no-default-features",
        "--target",
        TRIPLE,
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Outcome::Held)
}

/// Systems that the host tools run on and no test here does.
const SYSTEMS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// The programs for these systems. Nothing is linked, and no dependency has a compiler of C to ask.
pub(super) fn systems() -> Result<Outcome> {
    let mut clippy = cargo(&["clippy", "--locked", "--package", "arenite-host", "--lib", "--bins"]);
    for triple in suite::of_lint(2, SYSTEMS) {
        setup::rust_target(triple)?;
        clippy.args(["--target", triple]);
    }
    run(clippy.args(["--", "-D", "warnings"]))?;
    Ok(Outcome::Held)
}

/// One minimum version of Rust: every package states it, no dependency wants a later one, and the CI tests with it.
pub(super) fn msrv() -> Result<Outcome> {
    let mut stated = BTreeSet::new();
    let mut wanted = Vec::new();
    for manifest in WORKSPACES {
        let metadata = metadata(manifest)?;
        let members: Vec<&Value> = metadata["workspace_members"].as_array().into_iter().flatten().collect();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let (name, version) = (
                package["name"].as_str().unwrap_or_default(),
                package["rust_version"].as_str(),
            );
            match (members.contains(&&package["id"]), version) {
                (true, Some(version)) => _ = stated.insert(version.to_owned()),
                (true, None) => return Err(format!("{manifest}: {name} states no rust-version").into()),
                (false, Some(version)) => wanted.push((name.to_owned(), version.to_owned())),
                (false, None) => {}
            }
        }
    }
    let stated: Vec<_> = stated.into_iter().collect();
    let [minimum] = stated.as_slice() else {
        return Err(format!("the packages state different rust-versions: {}", stated.join(", ")).into());
    };
    if let Some((name, version)) = wanted.iter().find(|(_, version)| later(version, minimum)) {
        return Err(format!("{name} wants Rust {version}, the workspace states {minimum}").into());
    }
    let ci = root().join(".github/workflows/ci.yml");
    let tested = format!("RUSTUP_TOOLCHAIN: \"{minimum}\"");
    if std::fs::read_to_string(&ci)?.contains(&tested) {
        Ok(Outcome::Held)
    } else {
        Err(format!("{} does not say `{tested}`", ci.display()).into())
    }
}

fn later(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> { version.split('.').map(|part| part.parse().unwrap_or(0)).collect() };
    numbers(version) > numbers(than)
}

fn metadata(manifest: &str) -> Result<Value> {
    let output = cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--manifest-path",
        manifest,
    ])
    .output()?;
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout)?)
    } else {
        Err(format!("{manifest}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// Licences, sources and versions of the dependencies; `deny.toml` says what is allowed.
pub(super) fn deny() -> Result<Outcome> {
    if !has_deny() {
        return Ok(Outcome::skipped(
            "deny",
            "cargo-deny is missing (`cargo xtask setup --all`)",
        ));
    }
    for manifest in WORKSPACES {
        run(&mut cargo(&[
            "deny",
            "--manifest-path",
            manifest,
            "check",
            "licenses",
            "bans",
            "sources",
        ]))?;
    }
    Ok(Outcome::Held)
}

/// Known defects of the dependencies, from the database that is on this machine.
pub(super) fn advisories() -> Result<Outcome> {
    let home = std::env::var_os("CARGO_HOME").map(Into::into);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let databases = home.map(|home| home.join("advisory-dbs"));
    let lacking = if !has_deny() {
        "cargo-deny is missing (`cargo xtask setup --all`)"
    } else if databases.is_some_and(|folder| folder.is_dir()) {
        ""
    } else {
        "there is no database of advisories (`cargo deny fetch db`)"
    };
    if !lacking.is_empty() {
        return Ok(Outcome::skipped("advisories", lacking));
    }
    run(&mut cargo(&["deny", "--offline", "check", "advisories"]))?;
    Ok(Outcome::Held)
}

/// The references' own tests, and the tracer's.
pub(super) fn python() -> Result<Outcome> {
    let Some(python) = setup::python() else {
        let reason = "no Python with NumPy and safetensors (`cargo xtask setup --python`)";
        return Ok(Outcome::skipped("python: tests/reference", reason));
    };
    let arguments = ["-m", "unittest", "discover", "--quiet", "-s", "tests/reference"];
    run(Command::new(&python).args(arguments).current_dir(root()))?;
    let imports = ["-c", "import torch, torchao, pytest"];
    if !Command::new(&python)
        .args(imports)
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return Ok(Outcome::skipped(
            "python: host-tools/python",
            "no PyTorch, torchao and pytest",
        ));
    }
    let mut tests = Command::new(&python);
    tests.args(["-m", "pytest", "--quiet"]);
    super::suite::tell(&mut tests, 1);
    run(tests.current_dir(root().join("host-tools/python")))?;
    Ok(Outcome::Held)
}

/// The packages as they would be published: complete, with all that a registry shows.
pub(super) fn package() -> Result<Outcome> {
    let metadata = metadata("Cargo.toml")?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for name in PUBLISHED {
        let package = packages.iter().find(|package| package["name"] == name);
        let package = package.ok_or_else(|| format!("there is no package {name}"))?;
        for field in ["description", "license", "readme", "repository", "rust_version"] {
            if package[field].as_str().is_none_or(str::is_empty) {
                return Err(format!("{name} states no {field}").into());
            }
        }
        for field in ["keywords", "categories"] {
            if package[field].as_array().is_none_or(Vec::is_empty) {
                return Err(format!("{name} states no {field}").into());
            }
        }
    }
    // A package has no files from outside its folder: the firmware's sources go into it as an archive.
    std::fs::write(root().join("host-tools/board/sources.archive"), packed_sources())?;
    for (name, files) in [
        ("arenite-board", ["sources.archive", "build.rs", "src/board/table.rs"]),
        ("arenite-host", ["src/bin/arenite.rs", "src/bin/pack.rs", "README.md"]),
    ] {
        let listed = cargo(&["package", "--list", "--allow-dirty", "--package", name]).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for file in files {
            if !listed.lines().any(|line| line == file) {
                return Err(format!("the package {name} lacks {file}").into());
            }
        }
    }
    let copy = tempfile::tempdir()?;
    whole(copy.path())?;
    let mut package = cargo(&["package", "--quiet", "--no-verify", "--allow-dirty"]);
    PUBLISHED.iter().for_each(|name| _ = package.args(["--package", name]));
    package.arg("--target-dir").arg(root().join("target/package-check"));
    run(package.current_dir(copy.path()))?;
    Ok(Outcome::Held)
}

/// The checkout once more, with the sources of the runtime in the folder of `arenite-checks`, where it takes them from beside itself.
fn whole(folder: &Path) -> Result<()> {
    let left_out = |name: &str| name == "target" || (name.starts_with('.') && name != ".cargo");
    copy(&root(), folder, &left_out)?;
    let (core, checks) = (folder.join("core"), folder.join("core/checks"));
    std::fs::copy(core.join("build.rs"), checks.join("build.rs"))?;
    copy(&core.join("src"), &checks.join("src"), &left_out)?;
    let manifest = std::fs::read_to_string(checks.join("Cargo.toml"))?;
    let own: String = manifest
        .split_inclusive('\n')
        .filter(|line| !line.contains("= \"../"))
        .collect();
    let readme = manifest
        .lines()
        .find(|line| line.starts_with("readme"))
        .unwrap_or_default();
    let own = own.replacen("[package]", &format!("[package]\n{readme}"), 1);
    std::fs::write(checks.join("Cargo.toml"), own)?;
    Ok(())
}

/// Copies the files of a folder and of those within, but for some names.
fn copy(from: &Path, to: &Path, left_out: &dyn Fn(&str) -> bool) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        if left_out(&name.to_string_lossy()) {
            continue;
        }
        if path.is_dir() {
            copy(&path, &to.join(name), left_out)?;
        } else {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Features of the packages that a selection of the workspace compiles for the host, by name and version; no macros, which are compiled apart.
    fn features(selection: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
        let form = ["--prefix", "none", "--no-dedupe", "--format", "{p} {f}"];
        let output = cargo(&["tree", "--locked"]).args(selection).args(form).output();
        let output = output.expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let words: Vec<&str> = line.split(' ').filter(|word| !word.starts_with('(')).collect();
            if let [name, version, rest @ ..] = &words[..] {
                let features = rest.iter().flat_map(|features| features.split(',')).map(str::to_owned);
                found.entry(format!("{name} {version}")).or_default().extend(features);
            }
        }
        found
    }

    /// The host tools as this command compiles them are those of the tests: were a feature of a dependency another, all of them would be compiled twice.
    #[test]
    fn the_host_tools_are_compiled_once() {
        // The macro and what it has of its own are members too.
        let of_macros = ["--exclude", "arenite-include", "--exclude", "arenite-checks"];
        let of_tests = features(&[&["--workspace", "--edges", "normal,dev,no-proc-macro"], &of_macros[..]].concat());
        let here = features(&["--package", "arenite-xtask", "--edges", "normal,no-proc-macro"]);
        let unlike: Vec<_> = features(&["--package", "arenite-host", "--edges", "normal,no-proc-macro"])
            .into_keys()
            .filter(|package| of_tests[package] != here[package])
            .map(|package| {
                format!(
                    "{package}: {:?} here, {:?} in the tests",
                    here[&package], of_tests[&package]
                )
            })
            .collect();
        assert!(unlike.is_empty(), "host-tools/xtask/Cargo.toml: {unlike:#?}");
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(later("1.100", "1.95"));
        assert!(later("1.95.1", "1.95"));
        assert!(!later("1.9", "1.95"));
        assert!(!later("1.95", "1.95"));
    }
}
