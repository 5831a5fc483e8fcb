//! Programs that are installed, far from any checkout: firmware is built once from the sources in them, or comes along in the archive.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use arenite_host::board::{Board, Firmware, PREBUILT_FOLDER, ready};
use arenite_tests::skip;
use arenite_xtask::dist;
use arenite_xtask::places::Libraries;
use serde_json::Value;
use tempfile::TempDir;

const ON: &str = "qemu:mps2-an385";

fn board() -> &'static Board {
    Board::find("mps2-an385").expect("a board")
}

fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(arenite_tests::programs)
}

/// Copies what is started later with another process: a program that this process wrote may not be started while another test's child still holds
/// it open for writing.
fn copied(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-R").arg(from).arg(to).status();
    assert!(
        status.expect("cp starts").success(),
        "{} -> {}",
        from.display(),
        to.display()
    );
}

/// A prefix with the programs, a cache and an empty folder to work in.
struct Installed {
    folder: TempDir,
    prefix: PathBuf,
}

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = folder.path().join("prefix");
        fs::create_dir_all(prefix.join("bin")).expect("made");
        for program in ["pack", "arenite"] {
            copied(&programs().join(program), &prefix.join("bin"));
        }
        Self::at(folder, prefix)
    }

    /// With the network in the empty folder, packed by the installed program.
    fn at(folder: TempDir, prefix: PathBuf) -> Self {
        let work = folder.path().join("work");
        fs::create_dir(&work).expect("made");
        let installed = Self { folder, prefix };
        let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
        for file in [
            "mlp.trace.json",
            "mlp.safetensors",
            "mlp.samples.safetensors",
            "test_images.npy",
        ] {
            fs::copy(digits.join(file), work.join(file)).expect("copied");
        }
        let packed = installed.command("pack", &["mlp.trace.json", "-o", "mlp.bin"]).output();
        done(&packed.expect("it starts"));
        installed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that knows of no checkout and asks no registry.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.prefix.join("bin").join(program));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_remove("ARENITE_ROOT")
            .env("ARENITE_CACHE", self.path("cache"))
            .env("CARGO_NET_OFFLINE", "true");
        command
    }

    fn run(&self, on: &str) -> Command {
        let arguments = ["run", "mlp.bin", "--on", on, "--input", "test_images.npy", "--json"];
        self.command("arenite", &arguments)
    }

    /// The files of the cache that a board's program can be started from.
    fn built(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("cache")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.ends_with("elf/mps2-an385/infer") {
                    found.push(path);
                }
            }
        }
        found
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that a command did its work; returns its output.
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(mut command: Command) -> String {
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(output.stdout.is_empty());
    said(&output)
}

/// The outputs of a run.
fn outputs(output: &Output) -> Value {
    let report: Value = serde_json::from_str(&done(output)).expect("JSON");
    assert_eq!(report["outputs"][0]["shape"], serde_json::json!([360, 1, 10]));
    report["outputs"].clone()
}

fn cannot_run(test: &str) -> bool {
    let missing = ready(board()).err();
    if let Some(error) = &missing {
        skip(test, &format!("qemu: {error}"));
    }
    missing.is_some()
}

/// A stand-in for cargo that notes its calls and, after a while, "builds" the program that the checkout has.
fn stand_in(installed: &Installed, command: &mut Command) {
    let script = "#!/bin/sh\necho \"$*\" >> \"$NOTES\"\n/bin/sleep 1\n\
        while [ $# -gt 0 ]; do case $1 in --target) triple=$2;; --target-dir) folder=$2;; --bin) program=$2;; esac; shift; done\n\
        /bin/mkdir -p \"$folder/$triple/release\" && /bin/cp \"$BUILT\" \"$folder/$triple/release/$program\"\n";
    let cargo = installed.path("cargo");
    if !cargo.exists() {
        let write = r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#;
        let written = Command::new("sh").args(["-c", write]).arg(&cargo).arg(script).status();
        assert!(written.expect("sh starts").success());
    }
    let firmware = Firmware::build(board(), "infer").expect("it builds");
    command
        .env("CARGO", cargo)
        .env("NOTES", installed.path("notes"))
        .env("BUILT", firmware.path());
}

fn calls(installed: &Installed) -> usize {
    let notes = fs::read_to_string(installed.path("notes")).unwrap_or_default();
    notes.lines().count()
}

#[test]
fn an_installed_program_builds_firmware_once_from_the_sources_in_it() {
    if cannot_run("installed: a build from packed sources") {
        return;
    }
    let installed = Installed::new();
    let expected = outputs(&installed.run("host").output().expect("it starts"));
    assert_eq!(installed.built(), [""; 0].map(PathBuf::from));
    // The crates of the registry are those of this machine: nothing is asked of a network.
    let first = installed.run(ON).output().expect("it starts");
    assert_eq!(outputs(&first), expected);
    let built = installed.built();
    let [program] = &built[..] else { panic!("{built:?}") };
    let version = concat!("cache/", env!("CARGO_PKG_VERSION"), "-");
    let place = program.to_string_lossy().into_owned();
    assert!(place.contains(version) && place.contains("/rustc-1."), "{place}");

    // From then on without cargo, and where the checkout is not even readable to ask it for sources.
    let again = || {
        let mut run = installed.run(ON);
        run.env("CARGO", "/nonexistent/cargo");
        run
    };
    assert_eq!(outputs(&again().output().expect("it starts")), expected);
    // A program that was damaged is no program: it is built again.
    let mut bytes = fs::read(program).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(program, bytes).expect("written");
    let message = refused(again());
    assert!(message.contains("`cargo` is not installed"), "{message}");
    assert_eq!(outputs(&installed.run(ON).output().expect("it starts")), expected);
    assert_eq!(outputs(&again().output().expect("it starts")), expected);
}

#[test]
fn two_processes_build_once() {
    if cannot_run("installed: two processes") {
        return;
    }
    let installed = Installed::new();
    let expected = outputs(&installed.run("host").output().expect("it starts"));
    let start = || {
        let mut run = installed.run(ON);
        stand_in(&installed, &mut run);
        run.stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let both = [start(), start(), start()];
    for child in both {
        assert_eq!(outputs(&child.wait_with_output().expect("it ends")), expected);
    }
    assert_eq!(calls(&installed), 1);
    // Nothing of an unpacking is left.
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect()
    };
    let versions = names(&installed.path("cache"));
    assert_eq!(versions.len(), 1, "{versions:?}");
    let inside = names(&installed.path("cache").join(versions.first().expect("one")));
    assert_eq!(
        inside.iter().filter(|name| name.contains("sources")).count(),
        1,
        "{inside:?}"
    );
}

#[test]
fn an_unpacking_that_was_cut_off_is_begun_again() {
    if cannot_run("installed: a cut unpacking") {
        return;
    }
    let installed = Installed::new();
    let mut run = installed.run(ON);
    stand_in(&installed, &mut run);
    outputs(&run.output().expect("it starts"));
    let version = fs::read_dir(installed.path("cache")).expect("made").next();
    let version = version.expect("one").expect("an entry").path();
    // As a process leaves it that ends while it unpacks: nothing under the last name, a part under another.
    fs::rename(version.join("sources"), version.join("sources.part")).expect("renamed");
    fs::remove_file(version.join("sources.part/core/src/lib.rs")).expect("removed");
    fs::write(version.join("sources.part/stray"), "").expect("written");
    fs::remove_file(&installed.built()[0]).expect("removed");
    let mut run = installed.run(ON);
    stand_in(&installed, &mut run);
    outputs(&run.output().expect("it starts"));
    assert!(version.join("sources/core/src/lib.rs").is_file() && !version.join("sources/stray").exists());
    assert!(!version.join("sources.part").exists());
    assert_eq!(calls(&installed), 2);
}

/// The command as a user who may write little: root may write everywhere, so it becomes another.
fn as_nobody(mut command: Command) -> Command {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if is_root {
        command.uid(65534).gid(65534);
    }
    command
}

fn mode(path: &Path, mode: &str) {
    let status = Command::new("chmod").args(["-R", mode]).arg(path).status();
    assert!(status.expect("chmod starts").success());
}

#[test]
fn a_cache_that_cannot_be_written_is_named_and_one_that_is_full_serves() {
    if cannot_run("installed: a cache that cannot be written") {
        return;
    }
    let installed = Installed::new();
    mode(installed.folder.path(), "a+rX");
    // The compiler is asked for its version and targets alone; another user may not see this one's.
    let asked = |arguments: &[&str]| {
        let output = Command::new("rustc")
            .args(arguments)
            .output()
            .expect("there is a compiler");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    fs::write(installed.path("version"), asked(&["-vV"])).expect("written");
    let libraries = installed.path("libraries");
    fs::create_dir(&libraries).expect("made");
    let script = format!(
        "#!/bin/sh\ncase $1 in -vV) while IFS= read -r line; do echo \"$line\"; done < '{}';; *) echo '{}';; esac\n",
        installed.path("version").display(),
        libraries.display()
    );
    let rustc = installed.path("rustc");
    let write = r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#;
    let written = Command::new("sh").args(["-c", write]).arg(&rustc).arg(script).status();
    assert!(written.expect("sh starts").success());
    let run = || {
        let mut run = installed.run(ON);
        run.env("RUSTC", &rustc).env("CARGO", "/nonexistent/cargo");
        as_nobody(run)
    };

    let cache = installed.path("cache");
    fs::create_dir(&cache).expect("made");
    mode(&cache, "0555");
    let message = refused(run());
    let folder = format!("cannot keep firmware in {}", cache.display());
    assert!(
        message.contains(&folder) && message.contains("Permission denied"),
        "{message}"
    );
    assert!(message.contains("ARENITE_CACHE"), "{message}");
    // A file where the folder would be.
    let mut blocked = run();
    blocked.env("ARENITE_CACHE", installed.path("version"));
    let message = refused(blocked);
    assert!(
        message.contains("cannot keep firmware in ") && message.contains("/version/"),
        "{message}"
    );

    // Once there is a build, reading is enough.
    mode(&cache, "0755");
    let mut build = installed.run(ON);
    stand_in(&installed, &mut build);
    let expected = outputs(&build.output().expect("it starts"));
    mode(&cache, "a+rX,a-w");
    let read = run().output().expect("it starts");
    assert_eq!(outputs(&read), expected);
    mode(&cache, "u+w");
}

#[test]
fn without_a_network_the_first_build_says_so() {
    if cannot_run("installed: no network") {
        return;
    }
    let installed = Installed::new();
    let nothing = |set: &dyn Fn(&mut Command)| {
        let mut run = installed.run(ON);
        run.env("CARGO_HOME", installed.path("home"))
            .env("CARGO_NET_RETRY", "0")
            .env("CARGO_HTTP_PROXY", "http://127.0.0.1:1");
        set(&mut run);
        refused(run)
    };
    for message in [
        nothing(&|run| _ = run.env_remove("CARGO_NET_OFFLINE")),
        nothing(&|run| _ = run.env("CARGO_NET_OFFLINE", "true")),
    ] {
        assert!(
            message.contains("building `infer` needs packages from the network"),
            "{message}"
        );
        assert!(message.contains("help: connect for the first build"), "{message}");
    }
}

/// The value of a key of `package.metadata.binstall`, with what cargo-binstall puts in.
fn binstall(key: &str, triple: &str, program: &str) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host-tools/Cargo.toml");
    let text = fs::read_to_string(manifest).expect("committed");
    let (_, section) = text.split_once("[package.metadata.binstall]\n").expect("a section");
    let line = section.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
    let template = line.expect(key).trim_matches('"').to_string();
    let value = template
        .replace("{ repo }", env!("CARGO_PKG_REPOSITORY"))
        .replace("{ version }", env!("CARGO_PKG_VERSION"))
        .replace("{ target }", triple)
        .replace("{ bin }", program)
        .replace("{ binary-ext }", "");
    assert!(!value.contains(['{', '}']), "{value}");
    value
}

#[test]
fn the_archive_installs_programs_firmware_manuals_and_completions() {
    if cannot_run("installed: the archive") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let triple = "x86_64-unknown-linux-gnu";
    let parts = dist::Parts {
        programs: programs(),
        triple,
        boards: &[board()],
        libraries: &Libraries::new(),
    };
    let archive = dist::archive(&parts, folder.path()).expect("made");
    let bytes = fs::read(&archive).expect("there");
    let again = dist::archive(&parts, &folder.path().join("again")).expect("made");
    assert!(bytes == fs::read(again).expect("there"), "it differs the second time");

    // cargo-binstall finds it, and the programs in it, by what the package says.
    let name = archive.file_name().expect("a name").to_string_lossy().into_owned();
    let url = binstall("pkg-url", triple, "");
    assert!(
        url.ends_with(&format!("/releases/download/v{}/{name}", env!("CARGO_PKG_VERSION"))),
        "{url}"
    );
    assert_eq!(binstall("pkg-fmt", triple, ""), "tgz");
    let check = Command::new("sha256sum")
        .args(["--check", "--status"])
        .arg(format!("{name}.sha256"))
        .current_dir(folder.path())
        .status();
    assert!(check.expect("sha256sum starts").success());
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(&archive)
        .current_dir(folder.path())
        .status();
    assert!(unpacked.expect("tar starts").success());
    for program in ["pack", "arenite"] {
        assert!(folder.path().join(binstall("bin-dir", triple, program)).is_file());
    }

    let prefix = folder.path().join(name.trim_end_matches(".tgz"));
    let installed = Installed::at(folder, prefix.clone());
    let bare = |mut command: Command| {
        // No cargo, no compiler.
        command
            .env("PATH", "/usr/bin:/bin")
            .env_remove("CARGO")
            .env("RUSTC", "/nonexistent/rustc");
        command.output().expect("it starts")
    };
    let expected = outputs(&bare(installed.run("host")));
    assert_eq!(outputs(&bare(installed.run(ON))), expected);
    let bench = ["bench", "mlp.bin", "--on", ON, "--quick", "--json"];
    done(&bare(installed.command("arenite", &bench)));
    assert!(!installed.path("cache").exists(), "something was built");

    let page = |name: &str| fs::read_to_string(prefix.join("share/man/man1").join(name)).expect(name);
    assert!(page("pack.1").contains(".TH pack 1") && page("arenite-run.1").contains("\\-\\-input"));
    for program in ["pack", "arenite"] {
        let file = prefix.join("share/bash-completion/completions").join(program);
        assert!(fs::read_to_string(&file).expect("there").contains("--json"));
        let parsed = Command::new("bash").arg("-n").arg(file).status();
        assert!(parsed.expect("bash starts").success());
        for other in [
            format!("zsh/site-functions/_{program}"),
            format!("fish/vendor_completions.d/{program}.fish"),
        ] {
            assert!(prefix.join("share").join(&other).is_file(), "{other}");
        }
    }

    // A program that is not the listed one is not used; without a compiler that is the end.
    let program = prefix.join(PREBUILT_FOLDER).join("mps2-an385/infer");
    let mut bytes = fs::read(&program).expect("there");
    bytes.push(0);
    fs::write(&program, bytes).expect("written");
    let message = said(&bare(installed.run(ON)));
    assert_eq!(
        message.matches("its SHA-256 is not the one in firmware.json").count(),
        1,
        "{message}"
    );
    assert!(message.contains("error: "), "{message}");
    // With one it is built.
    let mut built = installed.run(ON);
    stand_in(&installed, &mut built);
    assert_eq!(outputs(&built.output().expect("it starts")), expected);
    assert_eq!(calls(&installed), 1);
}

#[test]
#[ignore = "long: builds the host tools and firmware anew"]
fn cargo_installs_the_programs_from_the_checkout() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("prefix");
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let installed = Command::new(cargo)
        .args(["install", "--locked", "--offline", "--path", "host-tools", "--root"])
        .arg(&prefix)
        .arg("--target-dir")
        .arg(checkout.join("target/installed"))
        .current_dir(&checkout)
        .status();
    assert!(installed.expect("cargo starts").success());
    let installed = Installed::at(folder, prefix);
    let version = installed.command("pack", &["--version"]).output().expect("it starts");
    assert_eq!(done(&version), concat!("pack ", env!("CARGO_PKG_VERSION"), "\n"));
    let expected = outputs(&installed.run("host").output().expect("it starts"));
    assert_eq!(outputs(&installed.run(ON).output().expect("it starts")), expected);
}
