//! Hands the linker the board's layout and the compiler the images that the boards' camera shows and the motion that the accelerometer measures.

use std::fmt::Write;
use std::{env, fs, path::PathBuf};

#[path = "../../host-tools/board/src/board/parts.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod parts;
#[path = "../../host-tools/board/src/board/table.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod table;

/// Images of the digits' test set, and pixels of each.
const IMAGES: &str = "../../tests/models/digits/test_images.npy";
const COUNT: usize = 3;
const PIXELS: usize = 64;

/// Held-out windows of generated motion, 64 readings of three axes each, of which every eleventh is measured.
const MOTION: &str = "../../tests/models/gestures/test_windows.npy";
const WINDOW: usize = 64;
const EVERY: usize = 11;

fn main() {
    println!("cargo:rerun-if-env-changed=ARENITE_MODEL");
    println!("cargo:rerun-if-changed=../../host-tools/board/src/board/parts.rs");
    println!("cargo:rerun-if-changed=../../host-tools/board/src/board/table.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo:rustc-link-search={}", out.display());

    let chosen = |board: &&table::Board| {
        let feature = board.feature.to_uppercase().replace('-', "_");
        env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
    };
    let board = table::BOARDS
        .iter()
        .find(chosen)
        .expect("a feature for the board: mps2-an386, riscv32-virt");
    let mut layout = board.memory_x();
    let mut arguments = vec!["-Tlink.x", "--nmagic"];
    if board.triple.starts_with("riscv") {
        // riscv-rt's link.x takes its memories by these names, from a file that comes before it.
        for region in ["TEXT", "RODATA", "DATA", "BSS", "HEAP", "STACK"] {
            writeln!(layout, "REGION_ALIAS(\"REGION_{region}\", RAM);").expect("writes to memory");
        }
        arguments.insert(0, "-Tmemory.x");
    } else {
        // The names of the interrupts, for handlers that no program has: src/mps2.rs.
        let names = ["TIMER0", "GPIO2", "GPIO3"].map(|name| format!("PROVIDE({name} = DefaultHandler);\n"));
        fs::write(out.join("device.x"), names.concat()).expect("OUT_DIR is writable");
    }
    fs::write(out.join("memory.x"), layout).expect("OUT_DIR is writable");
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins={argument}");
    }

    let file = elements(IMAGES);
    let (pixels, _) = file.as_chunks::<4>();
    let images: Vec<Vec<f32>> = pixels
        .chunks(PIXELS)
        .take(COUNT)
        .map(|image| image.iter().map(|pixel| f32::from_le_bytes(*pixel)).collect())
        .collect();
    let code = format!("/// What the camera shows.\npub static IMAGES: [digits::Input; {COUNT}] = {images:?};\n");
    fs::write(out.join("images.rs"), code).expect("OUT_DIR is writable");

    let file = elements(MOTION);
    let samples: Vec<i16> = file
        .as_chunks::<2>()
        .0
        .iter()
        .map(|sample| i16::from_le_bytes(*sample))
        .collect();
    let windows: Vec<&[[i16; 3]]> = samples.as_chunks::<3>().0.chunks(WINDOW).step_by(EVERY).collect();
    let count = windows.len();
    let code = format!("/// What the chip measures.\nstatic WINDOWS: [[[i16; 3]; {WINDOW}]; {count}] = {windows:?};\n");
    fs::write(out.join("windows.rs"), code).expect("OUT_DIR is writable");
}

/// Returns the elements of a NumPy file of version 1: magic and version take 8 bytes, the header's length 2.
fn elements(path: &str) -> Vec<u8> {
    println!("cargo:rerun-if-changed={path}");
    let mut file = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let start = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    file.split_off(start)
}
