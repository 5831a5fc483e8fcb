//! An Arduino library: <https://docs.arduino.cc/arduino-cli/library-specification>.

use super::cores::CORES;
use super::digit::{array, digit};
use super::files::{Files, Libraries, Result, add, texts};

/// The files of the library.
pub(super) fn files(libraries: &Libraries) -> Result<Files> {
    let mut files = texts("arduino", "src/arenite.h", &[])?;
    for core in &CORES {
        if let Some(library) = libraries.get(core.name) {
            for folder in core.arduino {
                files.insert(format!("src/{folder}/libarenite_c.a"), library.clone());
            }
        }
    }
    let digit = digit()?;
    let example = "examples/Digit";
    files.insert(format!("{example}/digit.c"), digit.source.into_bytes());
    files.insert(format!("{example}/digits_model.h"), array(&digit.model).into_bytes());
    add(&mut files, &format!("{example}/digit.h"), "firmware/c/places/digit.h")?;
    Ok(files)
}
