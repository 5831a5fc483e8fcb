//! A Zephyr module: <https://docs.zephyrproject.org/latest/develop/modules.html>.

use std::fmt::Write as _;

use super::cores::CORES;
use super::digit::digit;
use super::files::{Files, Libraries, Result, add, texts, with_cmake};

/// The files of the module.
pub(super) fn files(libraries: &Libraries) -> Result<Files> {
    let mut defaults = String::new();
    for core in CORES.iter().filter(|core| libraries.contains_key(core.name)) {
        let _ = writeln!(defaults, "\tdefault \"{}\" if {}", core.name, core.zephyr);
    }
    let mut files = texts(
        "zephyr",
        "include/arenite.h",
        &[("@DEFAULTS@", defaults.trim_end().to_owned())],
    )?;
    with_cmake(&mut files, libraries, |_| true)?;
    let digit = digit()?;
    let sample = "samples/digit";
    files.insert(format!("{sample}/src/digit.c"), digit.source.into_bytes());
    files.insert(format!("{sample}/digits.bin"), digit.model);
    add(
        &mut files,
        &format!("{sample}/src/digit.h"),
        "firmware/c/places/digit.h",
    )?;
    Ok(files)
}
