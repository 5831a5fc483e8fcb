//! `firmware/c/include/arenite.h` is generated from the library's sources. `ARENITE_BLESS=1` writes it anew.

use std::fs;

use crate::c::root;

const ABOUT: &str = "\
/* Arenite for C and C++: docs/c.md. Generated from firmware/c/src; ARENITE_BLESS=1 cargo test -p arenite-tests --test programs c::header */";

/// Turns text into C's customs where the generator keeps Rust's: codes are unsigned and told by their bytes, and a caller's promises have no heading.
fn in_c(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(' ').map(|(name, value)| (name, value.parse::<u32>())) {
        Some((name, Ok(value))) if name.starts_with("#define") && value > 0xFFFF => format!("{name} 0x{value:08X}u\n"),
        _ if line == "// # Safety" => "// The caller promises:\n".to_owned(),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn the_header_says_what_the_library_has() {
    let folder = root().join("firmware/c");
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        include_guard: Some("ARENITE_H".to_owned()),
        header: Some(ABOUT.to_owned()),
        usize_is_size_t: true,
        style: cbindgen::Style::Both,
        line_length: 120,
        documentation_style: cbindgen::DocumentationStyle::C99,
        ..cbindgen::Config::default()
    };
    config.sys_includes = ["stdbool.h", "stddef.h", "stdint.h"].map(str::to_owned).to_vec();
    config.no_includes = true;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["code", "memory", "lib"] {
        builder = builder.with_src(folder.join(format!("src/{file}.rs")));
    }
    let bindings = builder.generate().unwrap_or_else(|error| panic!("{error}"));
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = in_c(&String::from_utf8(text).expect("text"));
    let path = folder.join("include/arenite.h");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&path, &text).expect("it can be written");
        return;
    }
    let tracked = fs::read_to_string(&path).expect("the header");
    assert!(
        tracked == text,
        "the header is not that of the sources: ARENITE_BLESS=1 cargo test -p arenite-tests --test programs c::header"
    );
    // Every function of the sources is in it.
    let source = fs::read_to_string(folder.join("src/lib.rs")).expect("the sources");
    let functions = source.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("pub unsafe extern \"C\" fn ")?.split_once('(')?;
        Some(name.to_owned())
    });
    let functions: Vec<String> = functions.collect();
    assert!(functions.len() > 9);
    for name in functions {
        assert!(tracked.contains(&format!(" {name}(")), "{name}");
    }
}
