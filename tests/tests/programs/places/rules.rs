//! The files of each place against its published rules.

use std::collections::BTreeSet;

use arenite_xtask::places::{CORES, Libraries, PLACES};
use regex::Regex;

use super::bare::files;
use super::yaml::{keys, matches, parsed, texts};

/// All libraries, with nothing in them.
fn all() -> Libraries {
    CORES.iter().map(|core| (core.name, b"!<arch>\n".to_vec())).collect()
}

/// `scripts/zephyr_module.py` of Zephyr: the schema of `zephyr/module.yml`, and where its settings have to lead.
#[test]
fn the_zephyr_module_is_one() {
    let files = files("zephyr", &all());
    let text = String::from_utf8(files["zephyr/module.yml"].clone()).expect("text");
    let module = parsed(&text);
    keys(
        &module,
        &["name", "build", "tests", "samples", "boards", "blobs"],
        &["name", "build"],
    );
    assert!(matches("^[a-z][a-z0-9_-]*$", module["name"].as_str().expect("a name")));
    let build = &module["build"];
    keys(
        build,
        &[
            "cmake",
            "kconfig",
            "cmake-ext",
            "kconfig-ext",
            "sysbuild-cmake",
            "sysbuild-kconfig",
            "depends",
            "settings",
        ],
        &["cmake", "kconfig"],
    );
    let cmake = build["cmake"]
        .as_str()
        .expect("a folder")
        .trim_matches('.')
        .trim_matches('/')
        .to_owned();
    assert!(
        files.contains_key(format!("{cmake}/CMakeLists.txt").trim_start_matches('/')),
        "{cmake}"
    );
    assert!(files.contains_key(build["kconfig"].as_str().expect("a file")));
    for folder in texts(&module["samples"]) {
        let sample = format!("{folder}/digit/");
        for name in [
            "CMakeLists.txt",
            "prj.conf",
            "sample.yaml",
            "src/main.c",
            "src/digit.c",
            "src/digit.h",
            "digits.bin",
        ] {
            assert!(files.contains_key(&format!("{sample}{name}")), "{sample}{name}");
        }
    }
    // Of Twister's schema of `sample.yaml`.
    let text = String::from_utf8(files["samples/digit/sample.yaml"].clone()).expect("text");
    let sample = parsed(&text);
    keys(&sample, &["sample", "common", "tests"], &["sample", "tests"]);
    keys(&sample["sample"], &["name", "description"], &["name"]);
    for (name, test) in sample["tests"].as_hash().expect("tests") {
        assert!(matches(
            r"^[a-zA-Z0-9_]+(\.[a-zA-Z0-9_]+)+$",
            name.as_str().expect("a name")
        ));
        keys(
            test,
            &[
                "tags",
                "integration_platforms",
                "harness",
                "harness_config",
                "platform_allow",
            ],
            &[],
        );
        keys(
            &test["harness_config"],
            &["type", "regex", "ordered", "repeat"],
            &["type", "regex"],
        );
    }
}

/// Whether a condition of Kconfig holds where these symbols are `y`.
fn holds(condition: &str, symbols: &BTreeSet<&str>) -> bool {
    let tokens = Regex::new(r"&&|\|\||[!()]|\w+").expect("a pattern");
    let tokens: Vec<&str> = tokens.find_iter(condition).map(|found| found.as_str()).collect();
    fn all(tokens: &mut &[&str], symbols: &BTreeSet<&str>) -> bool {
        let mut value = one(tokens, symbols);
        while let ["&&", rest @ ..] = *tokens {
            *tokens = rest;
            value &= one(tokens, symbols);
        }
        value
    }
    fn any(tokens: &mut &[&str], symbols: &BTreeSet<&str>) -> bool {
        let mut value = all(tokens, symbols);
        while let ["||", rest @ ..] = *tokens {
            *tokens = rest;
            value |= all(tokens, symbols);
        }
        value
    }
    fn one(tokens: &mut &[&str], symbols: &BTreeSet<&str>) -> bool {
        let (first, rest) = tokens.split_first().expect("a condition that ends");
        *tokens = rest;
        match *first {
            "!" => !one(tokens, symbols),
            "(" => {
                let value = any(tokens, symbols);
                let (last, rest) = tokens.split_first().expect("a closing parenthesis");
                assert_eq!(*last, ")");
                *tokens = rest;
                value
            }
            name => symbols.contains(name),
        }
    }
    let mut rest = &tokens[..];
    let value = any(&mut rest, symbols);
    assert!(rest.is_empty(), "{condition}");
    value
}

/// The first default whose condition holds, as Kconfig takes it.
fn chosen<'a>(kconfig: &'a str, symbols: &[&str]) -> &'a str {
    let symbols = symbols.iter().copied().collect();
    let line = Regex::new(r#"(?m)^\tdefault "([^"]*)"(?: if (.*))?$"#).expect("a pattern");
    let mut defaults = line.captures_iter(kconfig);
    let found = defaults.find(|found| found.get(2).is_none_or(|condition| holds(condition.as_str(), &symbols)));
    found.map_or("", |found| found.get(1).expect("a name").as_str())
}

/// Symbols as `cmake/gcc-m-cpu.cmake` and `cmake/compiler/gcc/target_{arm,riscv}.cmake` of Zephyr read them.
#[test]
fn zephyr_chooses_the_library_of_the_core() {
    let files = files("zephyr", &all());
    let kconfig = String::from_utf8(files["Kconfig"].clone()).expect("text");
    let riscv = ["RISCV", "RISCV_ISA_EXT_M", "RISCV_ISA_EXT_A", "RISCV_ISA_EXT_C"];
    let rows: [(&[&str], &str); 17] = [
        (&["CPU_CORTEX_M0"], "cortex-m0plus"),
        (&["CPU_CORTEX_M0PLUS"], "cortex-m0plus"),
        (&["CPU_CORTEX_M23", "ARMV8_M_BASELINE"], "cortex-m0plus"),
        (&["CPU_CORTEX_M3"], "cortex-m3"),
        (&["CPU_CORTEX_M4"], "cortex-m4"),
        (&["CPU_CORTEX_M4", "FPU", "FP_SOFTABI"], "cortex-m4"),
        (&["CPU_CORTEX_M4", "FPU", "FP_HARDABI"], "cortex-m4f"),
        (&["CPU_CORTEX_M7", "FPU", "FP_HARDABI"], "cortex-m4f"),
        (&["CPU_CORTEX_M33", "ARMV8_M_MAINLINE"], "cortex-m33-nodsp"),
        (&["CPU_CORTEX_M33", "ARMV8_M_MAINLINE", "ARMV8_M_DSP"], "cortex-m33"),
        (
            &["CPU_CORTEX_M33", "ARMV8_M_MAINLINE", "ARMV8_M_DSP", "FPU", "FP_HARDABI"],
            "cortex-m33f",
        ),
        (
            &[
                "CPU_CORTEX_M55",
                "ARMV8_M_MAINLINE",
                "ARMV8_M_DSP",
                "ARMV8_1_M_MVEF",
                "FPU",
                "FP_HARDABI",
            ],
            "cortex-m55",
        ),
        (
            &["CPU_CORTEX_M55", "ARMV8_M_MAINLINE", "ARMV8_M_DSP", "ARMV8_1_M_MVEI"],
            "cortex-m33",
        ),
        (&[riscv[0], riscv[1], riscv[2], riscv[3]], "riscv32imac"),
        (&[riscv[0], riscv[1], riscv[3]], "riscv32imc"),
        (
            &[
                riscv[0],
                riscv[1],
                riscv[2],
                riscv[3],
                "64BIT",
                "FLOAT_HARD",
                "RISCV_ISA_EXT_D",
            ],
            "riscv64gc",
        ),
        (&["CPU_CORTEX_A53"], ""),
    ];
    for (symbols, core) in rows {
        assert_eq!(chosen(&kconfig, symbols), core, "{symbols:?}");
        assert!(
            core.is_empty() || files.contains_key(&format!("lib/{core}/libarenite_c.a")),
            "{core}"
        );
    }
    // Without its library a core has none.
    let few = Libraries::from([("cortex-m3", Vec::new())]);
    let kconfig = String::from_utf8(super::bare::files("zephyr", &few)["Kconfig"].clone()).expect("text");
    assert_eq!(chosen(&kconfig, &["CPU_CORTEX_M4"]), "");
}

/// `idf_component_tools/manifest` of Espressif's component manager: fields, targets, names and versions.
#[test]
fn the_esp_idf_component_is_one() {
    const FIELDS: [&str; 17] = [
        "name",
        "version",
        "targets",
        "maintainers",
        "description",
        "license",
        "tags",
        "dependencies",
        "files",
        "examples",
        "url",
        "repository",
        "documentation",
        "issues",
        "discussion",
        "repository_info",
        "links",
    ];
    const DEPENDENCY: [&str; 10] = [
        "version",
        "public",
        "path",
        "git",
        "registry_url",
        "rules",
        "matches",
        "override_path",
        "require",
        "pre_release",
    ];
    const TARGETS: [&str; 14] = [
        "esp32", "esp32s2", "esp32c3", "esp32s3", "esp32s31", "esp32c2", "esp32c5", "esp32c6", "esp32c61", "esp32h2",
        "esp32h21", "esp32h4", "esp32p4", "linux",
    ];
    let files = files("esp-idf", &all());
    let text = |path: &str| String::from_utf8(files[path].clone()).expect("text");
    let manifest = parsed(&text("idf_component.yml"));
    keys(&manifest, &FIELDS, &["version", "description", "url", "license"]);
    assert_eq!(manifest["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    // One of SPDX's identifiers, and a file of it.
    assert!(["Apache-2.0", "MIT"].contains(&manifest["license"].as_str().expect("a licence")));
    assert!(files.contains_key("LICENSE-APACHE") && files.contains_key("LICENSE-MIT"));
    for link in ["url", "repository"] {
        assert!(
            matches("^https://[^ ]+$", manifest[link].as_str().expect("a link")),
            "{link}"
        );
    }
    assert!(
        manifest["repository"]
            .as_str()
            .is_some_and(|link| link.ends_with(".git"))
    );
    let targets = texts(&manifest["targets"]);
    assert_eq!(targets.len(), targets.iter().collect::<BTreeSet<_>>().len());
    assert!(targets.len() > 4);
    let cmake = text("CMakeLists.txt");
    for target in &targets {
        assert!(TARGETS.contains(&target.as_str()), "{target}");
        let line = Regex::new(&format!(r"(?m)^set\(ARENITE_CORE_OF_{target} (\S+)\)$")).expect("a pattern");
        let core = line
            .captures(&cmake)
            .unwrap_or_else(|| panic!("{target}: no core in {cmake}"))[1]
            .to_owned();
        assert!(files.contains_key(&format!("lib/{core}/libarenite_c.a")), "{core}");
    }
    // Component names are slugs, with a namespace or without.
    for (path, manifest) in [
        ("idf_component.yml", manifest),
        (
            "examples/digit/main/idf_component.yml",
            parsed(&text("examples/digit/main/idf_component.yml")),
        ),
    ] {
        for (name, dependency) in manifest["dependencies"].as_hash().expect("dependencies") {
            assert!(
                matches(r"^([a-zA-Z\d_-]+/)?[a-zA-Z\d_-]+$", name.as_str().expect("a name")),
                "{path}"
            );
            keys(dependency, &DEPENDENCY, &[]);
            assert!(
                dependency["version"]
                    .as_str()
                    .is_none_or(|version| matches(r"^(>=|~|\^)?\d+\.\d+(\.\d+)?$", version))
            );
            let up = dependency["path"].as_str();
            assert!(
                up.is_none_or(|up| up == "../../.."),
                "the example is three folders down"
            );
        }
    }
    for name in [
        "README.md",
        "CHANGELOG.md",
        "project_include.cmake",
        "examples/digit/CMakeLists.txt",
        "examples/digit/main/CMakeLists.txt",
    ] {
        assert!(files.contains_key(name), "{name}");
    }
}

/// The specification of libraries of arduino-cli, and the strict schema of arduino-lint.
#[test]
fn the_arduino_library_is_one() {
    const REQUIRED: [&str; 9] = [
        "name",
        "version",
        "author",
        "maintainer",
        "sentence",
        "paragraph",
        "category",
        "url",
        "architectures",
    ];
    const OPTIONAL: [&str; 5] = ["depends", "dot_a_linkage", "includes", "precompiled", "ldflags"];
    let files = files("arduino", &all());
    let text = String::from_utf8(files["library.properties"].clone()).expect("text");
    let properties: Vec<(&str, &str)> = text
        .lines()
        .map(|line| line.split_once('=').expect("key=value"))
        .collect();
    let value = |name: &str| properties.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    for (key, value) in &properties {
        assert!(REQUIRED.contains(key) || OPTIONAL.contains(key), "{key}");
        assert!(!value.is_empty() && value.trim() == *value, "{key}");
    }
    for key in REQUIRED {
        assert!(value(key).is_some(), "{key}");
    }
    let place = PLACES.iter().find(|place| place.name == "arduino").expect("a place");
    assert!(place.is_zip && matches("^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$", place.folder));
    let name = value("name").expect("a name");
    assert!(matches("^[a-zA-Z][a-zA-Z0-9_.-]{0,15}$", name) && !matches("(?i)arduino|library", name));
    assert!(!matches("(?i)^arduino", value("maintainer").expect("a maintainer")));
    assert_eq!(value("version"), Some(env!("CARGO_PKG_VERSION")));
    let categories = [
        "Display",
        "Communication",
        "Signal Input/Output",
        "Sensors",
        "Device Control",
        "Timing",
        "Data Storage",
        "Data Processing",
        "Other",
    ];
    assert!(categories.contains(&value("category").expect("a category")));
    assert!(["true", "full"].contains(&value("precompiled").expect("precompiled")));
    // The only header of `src` itself is the interface, and there is nothing to compile.
    let sources: Vec<&String> = files.keys().filter(|path| path.starts_with("src/")).collect();
    let headers: Vec<&&String> = sources
        .iter()
        .filter(|path| !path.ends_with("/libarenite_c.a"))
        .collect();
    assert_eq!(headers, [&"src/arenite.h"]);
    assert_eq!(value("includes"), Some("arenite.h"));
    assert_eq!(value("ldflags"), Some("-larenite_c"));
    let folder = Regex::new(r"^src/[a-z0-9-]+(/fpv\d(-sp)?-d16-(softfp|hard))?/libarenite_c\.a$").expect("a pattern");
    let libraries: Vec<&&String> = sources.iter().filter(|path| path.ends_with(".a")).collect();
    assert!(libraries.iter().all(|path| folder.is_match(path)), "{libraries:?}");
    assert!(files.contains_key("src/cortex-m4/fpv4-sp-d16-hard/libarenite_c.a"));
    assert!(files.contains_key("src/cortex-m0plus/libarenite_c.a"));
    // A hard-float library only where the folder says so.
    for core in &CORES {
        for folder in core.arduino {
            assert_eq!(folder.ends_with("-hard"), core.triple.ends_with("hf"), "{folder}");
        }
    }
    // A sketch is a folder with a file of its name.
    assert!(files.contains_key("examples/Digit/Digit.ino"));
    let keywords = String::from_utf8(files["keywords.txt"].clone()).expect("text");
    for line in keywords.lines() {
        let (word, kind) = line.split_once('\t').expect("a tab");
        assert!(["KEYWORD1", "KEYWORD2", "LITERAL1"].contains(&kind), "{line}");
        let header = String::from_utf8(files["src/arenite.h"].clone()).expect("text");
        assert!(header.contains(word), "{word}");
    }
}
