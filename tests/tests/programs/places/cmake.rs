//! The CMake package of an archive, and the sources of a checkout as a subdirectory; of the latter on a Cortex-M4F the example for C (`c/mod.rs`) shows it.

use std::path::Path;

use arenite_tests::turns;
use arenite_xtask::dist;
use arenite_xtask::places::{CORES, Core, Libraries};

use super::bare::{board, built, can_build, configured, files, here, library, root, run, said, script, written};

/// Cores that are compiled for; the others' libraries differ by the features of `tests/tests/matrix.rs` alone.
const BUILT: [&str; 5] = ["cortex-m0plus", "cortex-m4f", "cortex-m33f", "cortex-m55", "riscv64gc"];

/// The digit of the examples, in a folder.
fn digit(folder: &Path) -> String {
    let sample = files("zephyr", &Libraries::new());
    written(&sample, folder);
    format!("DIGIT={}", folder.join("samples/digit").display())
}

/// The package with libraries, below a prefix.
fn package(libraries: &Libraries, prefix: &Path) -> String {
    let package = dist::cmake_package(libraries).unwrap_or_else(|error| panic!("{error}"));
    written(&package, prefix);
    format!("CMAKE_PREFIX_PATH={}", prefix.display())
}

fn core(name: &str) -> &'static Core {
    Core::named(name).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn find_package_takes_the_library_of_the_core() {
    const TEST: &str = "find_package_takes_the_library_of_the_core";
    for core in turns(TEST, 2, BUILT.map(core)) {
        let (true, Some(board)) = (can_build(TEST, core), board(TEST, core)) else {
            continue;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        // A library of another core beside it is not taken.
        let mut libraries = Libraries::from([(core.name, library(core))]);
        libraries.insert(
            if core.name == "cortex-m4" {
                "cortex-m3"
            } else {
                "cortex-m4"
            },
            b"!<arch>\n".to_vec(),
        );
        let defines = [
            package(&libraries, &folder.join("prefix")),
            digit(folder),
            format!("SCRIPT={}", script(board, folder).display()),
            format!("WANTED={}", env!("CARGO_PKG_VERSION")),
        ];
        let mut cmake = configured(core, core.options, &here().join("bare"), folder, &defines);
        let done = cmake.output().expect("cmake starts");
        assert!(done.status.success(), "{}: {}", core.name, said(&done));
        built(folder);
        assert_eq!(run(board, &folder.join("build/bare")), "this is a 7\n", "{}", core.name);
    }
}

#[test]
fn add_subdirectory_builds_the_library_of_the_core() {
    const TEST: &str = "add_subdirectory_builds_the_library_of_the_core";
    let others = BUILT.into_iter().filter(|name| *name != "cortex-m4f").map(core);
    for core in turns(TEST, 4, others) {
        let (true, Some(board)) = (can_build(TEST, core), board(TEST, core)) else {
            continue;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let defines = [
            digit(folder),
            format!("SCRIPT={}", script(board, folder).display()),
            format!("SUBDIRECTORY={}", root().join("firmware/c").display()),
        ];
        let mut cmake = configured(core, core.options, &here().join("bare"), folder, &defines);
        let done = cmake.output().expect("cmake starts");
        assert!(done.status.success(), "{}: {}", core.name, said(&done));
        let said = said(&done);
        assert!(said.contains(&format!("arenite: builds for {}\n", core.name)), "{said}");
        built(folder);
        assert_eq!(run(board, &folder.join("build/bare")), "this is a 7\n", "{}", core.name);
    }
}

/// Each row of the table is found by the options that it states, and by no others.
#[test]
fn the_core_follows_from_the_options() {
    const TEST: &str = "the_core_follows_from_the_options";
    let others: [(&str, &[&str]); 7] = [
        ("cortex-m0plus", &["-mcpu=cortex-m0", "-mthumb"]),
        ("cortex-m0plus", &["-mcpu=cortex-m23", "-mthumb"]),
        (
            "cortex-m4",
            &["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=softfp", "-mfpu=fpv4-sp-d16"],
        ),
        (
            "cortex-m4f",
            &["-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"],
        ),
        (
            "cortex-m33f",
            &["-mcpu=cortex-m55+nomve", "-mthumb", "-mfloat-abi=hard"],
        ),
        (
            "cortex-m33f",
            &["-mcpu=cortex-m55+nomve.fp", "-mthumb", "-mfloat-abi=hard"],
        ),
        ("", &["-mcpu=cortex-a9"]),
    ];
    let rows = CORES.iter().map(|core| (core.name, core.options)).chain(others);
    // With a library for each core: what stands in it is not read.
    let libraries: Libraries = CORES.iter().map(|core| (core.name, b"!<arch>\n".to_vec())).collect();
    for (name, options) in rows {
        let for_tools = CORES.iter().find(|core| core.name == name).unwrap_or(&CORES[0]);
        if !can_build_any(TEST, for_tools) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let defines = [package(&libraries, &folder.join("prefix")), digit(folder)];
        let mut cmake = configured(for_tools, options, &here().join("bare"), folder, &defines);
        let done = cmake.output().expect("cmake starts");
        // CMake breaks the lines of messages.
        let said = said(&done).split_whitespace().collect::<Vec<_>>().join(" ");
        if name.is_empty() {
            assert!(
                !done.status.success() && said.contains("no library for the core ``"),
                "{said}"
            );
            assert!(said.contains("cortex-m0plus"), "{said}");
            continue;
        }
        assert!(done.status.success(), "{options:?}: {said}");
        let flags = std::fs::read_to_string(folder.join("build/CMakeFiles/bare.dir/link.txt")).expect("written");
        assert!(
            flags.contains(&format!("/lib/arenite/{name}/libarenite_c.a")),
            "{options:?}: {flags}"
        );
    }
}

/// As `can_build`, without the Rust target.
fn can_build_any(test: &str, core: &Core) -> bool {
    let host = Core {
        triple: CORES[4].triple,
        ..*core
    };
    // The compiler's name follows from the triple.
    let asked = if core.triple.starts_with("thumb") { &host } else { core };
    can_build(test, asked)
}

#[test]
fn another_version_is_refused() {
    const TEST: &str = "another_version_is_refused";
    let core = core("cortex-m4f");
    if !can_build(TEST, core) {
        return;
    }
    let version = env!("CARGO_PKG_VERSION");
    let (minor, _) = version.rsplit_once('.').expect("three numbers");
    let next = format!(
        "{}.0",
        minor
            .split('.')
            .next()
            .map_or(1, |major| major.parse::<u32>().expect("a number") + 1)
    );
    for (wanted, taken) in [
        (minor, true),
        (version, true),
        ("", true),
        ("9.0", false),
        (next.as_str(), false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let libraries = Libraries::from([(core.name, b"!<arch>\n".to_vec())]);
        let defines = [
            package(&libraries, &folder.join("prefix")),
            digit(folder),
            format!("WANTED={wanted}"),
        ];
        let mut cmake = configured(core, core.options, &here().join("bare"), folder, &defines);
        let done = cmake.output().expect("cmake starts");
        assert_eq!(done.status.success(), taken, "{wanted}: {}", said(&done));
    }
}
