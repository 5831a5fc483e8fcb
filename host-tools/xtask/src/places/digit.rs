//! The network of the examples: `arenite new` begins with the same one.

use std::fmt::Write as _;

use arenite_host::chips::{IMAGE, NETWORK};
use arenite_host::pack::{Options, pack};

use super::files::{Result, checkout};

/// A packed network and the text that runs it.
pub(super) struct Digit {
    /// The model file. Any core runs it.
    pub(super) model: Vec<u8>,
    /// `digit.c`, with its image and the bytes of its arena.
    pub(super) source: String,
}

/// Packs the network for `portable`.
pub(super) fn digit() -> Result<Digit> {
    let folder = tempfile::tempdir()?;
    for (path, bytes) in NETWORK {
        let name = path.rsplit('/').next().unwrap_or(path);
        std::fs::write(folder.path().join(name), bytes)?;
    }
    let output = folder.path().join("digits.bin");
    let options = Options::new(folder.path().join("digits.trace.json"), &output);
    let packed = pack(&options, &mut |_, _, _| {})?;
    let source = std::fs::read_to_string(checkout().join("firmware/c/places/digit.c"))?;
    let pixels: Vec<_> = IMAGE.lines().map(str::trim).collect();
    Ok(Digit {
        model: std::fs::read(&output)?,
        source: source
            .replace("@IMAGE@", &pixels.join("\n    "))
            .replace("@ARENA@", &packed.summary.arena_bytes.to_string()),
    })
}

/// A header of C++ with the model as an array, for places that embed no files.
pub(super) fn array(model: &[u8]) -> String {
    let mut text =
        "// A model file at a multiple of 16, as arenite_open wants it.\n#pragma once\n#include <stdint.h>\n\n\
                    alignas(16) static const uint8_t digits_model[] = {\n"
            .to_owned();
    for line in model.chunks(16) {
        for byte in line {
            let _ = write!(text, "0x{byte:02x},");
        }
        text.push('\n');
    }
    text + "};\n"
}
