//! Texts that commands print for people, word for word.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use ndarray::{Array2, Array4};
use ndarray_npy::{NpzWriter, write_npy};
use sha2::{Digest, Sha256};

use crate::common::{ARENITE, Bench, PACK, done, run};

/// Gives back what it gets, where that is not negative: a row.
fn packed(bench: &Bench, elements: usize) -> PathBuf {
    packed_of(bench, &[1, elements])
}

fn packed_of(bench: &Bench, shape: &[usize]) -> PathBuf {
    let (trace, model) = (bench.path("relu.trace.json"), bench.path("relu.bin"));
    let text = format!(
        r#"{{
  "arenite_trace": 1, "name": "relu", "inputs": ["x"], "outputs": ["y"],
  "tensors": {{
    "x": {{"dtype": "f32", "shape": {shape:?}, "role": "input"}},
    "y": {{"dtype": "f32", "shape": {shape:?}, "role": "activation"}}
  }},
  "ops": [{{"name": "relu", "op": "relu", "inputs": ["x"], "outputs": ["y"]}}]
}}"#
    );
    fs::write(&trace, text).expect("written");
    done(run(PACK, &[&trace, Path::new("-o"), &model]));
    model
}

#[test]
fn a_run_shows_eight_values_and_says_that_there_are_more() {
    for (elements, shown) in [
        (3, "0, 1.5, 2.5"),
        (8, "0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5"),
        (9, "0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, …"),
    ] {
        let bench = Bench::new();
        let (model, x) = (packed(&bench, elements), bench.path("x.npy"));
        let mut values: Vec<f32> = (0..elements).map(|i| i as f32 + 0.5).collect();
        values[0] = -1.0;
        write_npy(
            &x,
            &Array2::from_shape_vec((1, elements), values.clone()).expect("a row"),
        )
        .expect("written");
        values[0] = 0.0;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let digest = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string");
            text
        });
        let words = ["run".into(), model, "--input".into(), x];
        assert_eq!(
            done(run(ARENITE, &words)),
            format!("1 run on host\ny f32 [1, {elements}]: [{shown}]\n  sha256 {digest}\n")
        );
    }
}

#[test]
fn a_comparison_names_five_arrays_and_says_that_there_are_more() {
    for (further, said) in [
        (5, "5: `n0`, `n1`, `n2`, `n3`, `n4`\n"),
        (6, "6: `n0`, `n1`, `n2`, `n3`, `n4`, …\n"),
    ] {
        let bench = Bench::new();
        let (model, reference) = (packed(&bench, 3), bench.path("r.npz"));
        let mut arrays = NpzWriter::new(File::create(&reference).expect("created"));
        let (x, y) = (Array2::from_elem((1, 3), -2.0_f32), Array2::<f32>::zeros((1, 3)));
        arrays.add_array("x", &x).expect("written");
        arrays.add_array("y", &y).expect("written");
        for index in 0..further {
            arrays.add_array(format!("n{index}"), &y).expect("written");
        }
        arrays.finish().expect("written");
        let words = ["diff".into(), model, reference];
        let text = done(run(ARENITE, &words));
        assert!(
            text.contains(&format!("arrays that no step completes, {said}")),
            "{text}"
        );
        assert!(text.contains("\n1 layer compared; largest difference 0"), "{text}");
    }
}

#[test]
fn the_element_that_differs_most_is_named_by_its_index() {
    for (index, [i, j, k]) in [
        ("[0, 0, 2, 3]", [0, 2, 3]),
        ("[0, 1, 0, 4]", [1, 0, 4]),
        ("[0, 1, 1, 0]", [1, 1, 0]),
    ] {
        let bench = Bench::new();
        let (model, reference) = (packed_of(&bench, &[1, 2, 3, 5]), bench.path("r.npz"));
        let mut arrays = NpzWriter::new(File::create(&reference).expect("created"));
        let x = Array4::from_shape_fn((1, 2, 3, 5), |(_, a, b, c)| (a + 2 * b + 4 * c) as f32);
        let mut y = x.clone();
        y[[0, 1, 2, 2]] += 0.5;
        y[[0, i, j, k]] += 8.0;
        arrays.add_array("x", &x).expect("written");
        arrays.add_array("y", &y).expect("written");
        arrays.finish().expect("written");
        let output = run(ARENITE, &["diff".into(), model, reference]);
        assert_eq!(output.status.code(), Some(1));
        let (text, ours) = (String::from_utf8_lossy(&output.stdout), x[[0, i, j, k]]);
        let said = format!("most at {index}: {ours} instead of {}\n", ours + 8.0);
        assert!(text.contains(&said), "{said}{text}");
    }
}

#[test]
fn a_key_is_told_as_rust_writes_an_array() {
    let bench = Bench::new();
    let told = done(run(ARENITE, &["keygen".into(), "-o".into(), bench.path("key.pem")]));
    let (_, constant) = told
        .split_once("const KEY: arenite::TrustedKey = (0x")
        .expect("a constant");
    let (id, bytes) = constant.split_once(", [").expect("an array");
    let (bytes, _) = bytes.split_once("]);\n").expect("its end");
    assert!(told.starts_with(&format!("key {id}; ")) && id.len() == 16, "{told}");
    let bytes: Vec<&str> = bytes.split(", ").collect();
    assert_eq!(bytes.len(), 32, "{told}");
    for byte in bytes {
        let digits = byte.strip_prefix("0x").unwrap_or_else(|| panic!("{byte} of {told}"));
        assert!(
            digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok(),
            "{byte} of {told}"
        );
    }
}

/// The second stage of the RP2040's loader lies in front of the program, in the first 256 bytes of its flash.
#[test]
fn the_memories_of_a_chip_are_those_of_its_datasheet() {
    let bench = Bench::new();
    for (chip, memories) in [
        (
            "rp2040",
            "  BOOT2 : ORIGIN = 0x10000000, LENGTH = 0x100\n  FLASH : ORIGIN = 0x10000100, LENGTH = 2048K - 0x100\n  \
             RAM   : ORIGIN = 0x20000000, LENGTH = 256K\n",
        ),
        (
            "mps2-an386",
            "  FLASH : ORIGIN = 0x00000000, LENGTH = 4096K\n  RAM   : ORIGIN = 0x20000000, LENGTH = 4096K\n",
        ),
    ] {
        let folder = bench.path(chip);
        done(run(
            ARENITE,
            &["new".into(), "--chip".into(), PathBuf::from(chip), folder.clone()],
        ));
        let text = fs::read_to_string(folder.join("memory.x")).expect("memory.x");
        assert!(text.contains(&format!("MEMORY\n{{\n{memories}}}\n")), "{chip}: {text}");
        // Where the memory begins, not where the program does.
        let boot = text.contains("  .boot2 ORIGIN(BOOT2) : { KEEP(*(.boot2)); } > BOOT2\n");
        assert_eq!(boot, chip == "rp2040", "{chip}: {text}");
    }
}

/// The other half of [`a_build_script_that_cargo_does_not_run_is_told`]; by itself it has nothing to do.
#[test]
#[ignore = "a child of another test"]
fn a_build_script_without_cargo() {
    arenite_host::build::Pack::new("net.tflite").write("net.bin");
}

#[test]
fn a_build_script_that_cargo_does_not_run_is_told() {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["a_build_script_without_cargo", "--ignored", "--nocapture"]);
    let output = child.env_remove("OUT_DIR").output().expect("it starts");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("cargo::error=OUT_DIR is not set; help: call this from a build script that cargo runs"),
        "{said}"
    );
}
