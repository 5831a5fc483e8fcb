//! A component of ESP-IDF: <https://docs.espressif.com/projects/idf-component-manager/en/latest/reference/manifest_file.html>.

use std::fmt::Write as _;

use super::cores::CORES;
use super::digit::digit;
use super::files::{Files, Libraries, Result, add, texts, with_cmake};

/// The files of the component.
pub(super) fn files(libraries: &Libraries) -> Result<Files> {
    let mut chips: Vec<(&str, &str)> = CORES
        .iter()
        .filter(|core| libraries.contains_key(core.name))
        .flat_map(|core| core.esp_idf.iter().map(|chip| (*chip, core.name)))
        .collect();
    chips.sort_unstable();
    let (mut targets, mut cores) = (String::new(), String::new());
    for (chip, core) in chips {
        let _ = writeln!(targets, "  - {chip}");
        let _ = writeln!(cores, "set(ARENITE_CORE_OF_{chip} {core})");
    }
    let replaced = [
        ("@TARGETS@", targets.trim_end().to_owned()),
        ("@CORES@", cores.trim_end().to_owned()),
    ];
    let mut files = texts("esp-idf", "include/arenite.h", &replaced)?;
    with_cmake(&mut files, libraries, |core| !core.esp_idf.is_empty())?;
    add(&mut files, "CHANGELOG.md", "CHANGELOG.md")?;
    let digit = digit()?;
    let example = "examples/digit/main";
    files.insert(format!("{example}/digit.c"), digit.source.into_bytes());
    files.insert(format!("{example}/digits.bin"), digit.model);
    add(&mut files, &format!("{example}/digit.h"), "firmware/c/places/digit.h")?;
    Ok(files)
}
