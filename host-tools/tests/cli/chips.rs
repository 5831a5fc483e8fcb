//! Chips: projects for them, what a probe is told, what fits.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, done, json, refused, run};

#[test]
fn a_project_is_made_whole_and_over_nothing() {
    let bench = Bench::new();
    let folder = bench.path("first");
    let new = |folder: &Path, chip: &str| {
        let mut command = Command::new(ARENITE);
        command.args(["new", "--chip", chip]).arg(folder);
        command.output().expect("it starts")
    };
    let said = done(new(&folder, "nRF52840"));
    assert!(
        said.contains("nrf52840") && said.contains("rustup target add thumbv7em-none-eabihf"),
        "{said}"
    );
    let files = [
        "Cargo.toml",
        "build.rs",
        "memory.x",
        "src/main.rs",
        ".cargo/config.toml",
        "net/digits.trace.json",
    ];
    assert!(files.iter().all(|file| folder.join(file).is_file()));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("written");
    assert!(
        manifest.contains("name = \"first\"") && manifest.contains("features = [\"dsp\", \"defmt\"]"),
        "{manifest}"
    );
    assert_eq!(bench.names(), ["first"]);
    let program = fs::read_to_string(folder.join("src/main.rs")).expect("written");
    assert!(
        program.contains("defmt::unwrap!(digits::session())") && !program.contains(".unwrap()"),
        "{program}"
    );

    // A library for C has no program, and features of the core alone.
    let library = bench.path("lib");
    let mut command = Command::new(ARENITE);
    command.args(["new", "--c", "--chip", "nRF52840"]).arg(&library);
    let said = done(command.output().expect("it starts"));
    assert!(
        said.contains("a library for C") && said.contains("Rust is needed"),
        "{said}"
    );
    let files = ["build.rs", "src/lib.rs", "include/digits.h", "example/main.c"];
    assert!(files.iter().all(|file| library.join(file).is_file()));
    assert!(!library.join("src/main.rs").exists());
    let of_library = fs::read_to_string(library.join("Cargo.toml")).expect("written");
    assert!(
        of_library.contains("crate-type = [\"staticlib\"]") && of_library.contains("features = [\"dsp\"]"),
        "{of_library}"
    );
    fs::remove_dir_all(library).expect("removed");

    // A project is never replaced, nor is a file; an empty folder is taken.
    let message = refused(new(&folder, "rp2040"), 2);
    assert!(message.contains("not empty"), "{message}");
    assert_eq!(fs::read_to_string(folder.join("Cargo.toml")).expect("there"), manifest);
    fs::write(bench.path("file"), "x").expect("written");
    assert!(refused(new(&bench.path("file"), "rp2040"), 2).contains("no folder"));
    fs::create_dir(bench.path("empty")).expect("made");
    done(new(&bench.path("empty"), "rp2040"));
    assert!(
        fs::read_to_string(bench.path("empty/memory.x"))
            .expect("written")
            .contains("BOOT2")
    );

    assert!(refused(new(&bench.path("a b"), "rp2040"), 2).contains("cargo takes no package"));
    assert!(refused(new(&bench.path("c"), "stm32"), 2).contains("stm32f407vg"));
    assert!(refused(new(&bench.path("no/where"), "rp2040"), 1).contains("no/where"));
    assert_eq!(bench.names(), ["empty", "file", "first"]);
}

#[test]
fn an_estimate_wants_a_chip_of_known_flash_and_a_board_of_its_core() {
    let bench = Bench::new();
    let model = bench.packed("digits");
    let estimate = |board: &str, chip: &str| {
        let mut command = Command::new(ARENITE);
        command.arg("bench").arg(&model).args(["--on", board, "--chip", chip]);
        refused(command.output().expect("it starts"), 2)
    };
    let message = estimate("qemu:mps2-an386", "stm32l4r6");
    assert!(
        message.contains("stm32l4r6") && message.contains("stm32l4r5, stm32f407vg"),
        "{message}"
    );
    let message = estimate("qemu:mps2-an385", "stm32l4r5");
    assert!(
        message.contains("another core") && message.contains("qemu:mps2-an386"),
        "{message}"
    );
}

#[test]
fn a_model_fits_or_it_is_said_why_not() {
    let bench = Bench::new();
    let model = bench.path("m.bin");
    let trace = digits("digits.trace.json");
    done(run(
        PACK,
        &[
            trace.as_os_str(),
            "--target".as_ref(),
            "cortex-m4".as_ref(),
            "-o".as_ref(),
            model.as_os_str(),
        ],
    ));
    let size = |chip: &str| {
        Command::new(ARENITE)
            .arg("size")
            .arg(&model)
            .args(["--chip", chip, "--json"])
            .output()
            .expect("it starts")
    };
    let fit = json(&done(size("STM32F407VGT6")));
    assert_eq!(
        (fit["chip"].as_str(), fit["fits"].as_bool()),
        (Some("stm32f407vg"), Some(true))
    );
    // 137,024 products at 5.5 cycles and 168 MHz.
    let milliseconds = fit["milliseconds"].as_f64().expect("an estimate");
    assert!((milliseconds - 4.486).abs() < 0.01, "{milliseconds}");
    // An emulated board has no clock.
    assert!(json(&done(size("mps2-an386")))["milliseconds"].is_null());

    // 16 KiB of RAM, of a board whose core is another.
    let ad01 = bench.path("wide.trace.json");
    fs::write(&ad01, WIDE).expect("written");
    done(run(PACK, &[ad01.as_path(), Path::new("-o"), &model]));
    let output = size("microbit");
    assert_eq!(output.status.code(), Some(1));
    let fit = json(&String::from_utf8(output.stdout).expect("UTF-8"));
    let reasons = fit["reasons"].as_array().expect("a list");
    assert!(
        reasons.len() == 1
            && reasons[0]
                .as_str()
                .is_some_and(|reason| reason.contains("bytes of RAM")),
        "{fit}"
    );

    let all = done(run(ARENITE, &[Path::new("size"), &model]));
    let line = |chip: &str| {
        all.lines()
            .find(|line| line.starts_with(chip))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        line("microbit").contains("does not fit") && line("stm32h743zi").contains(" fits "),
        "{all}"
    );
    assert!(refused(size("none"), 2).contains("--chip none"));

    // Kernels that the chip's core has not.
    for (target, chip, said) in [
        ("cortex-m55", "stm32f407vg", "mve kernels"),
        (
            "x86-64",
            "nrf52840",
            "neon kernels, which a Cortex-M4F cannot run: pack it with --target cortex-m4",
        ),
        ("cortex-m4", "nrf52840", ""),
    ] {
        done(run(
            PACK,
            &[
                trace.as_os_str(),
                "--target".as_ref(),
                target.as_ref(),
                "-o".as_ref(),
                model.as_os_str(),
            ],
        ));
        let output = size(chip);
        assert_eq!(output.status.code(), Some(i32::from(!said.is_empty())), "{target}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(said), "{target}");
    }
}

/// Two tensors of 10,000 numbers.
const WIDE: &str = r#"{
  "arenite_trace": 1, "name": "wide", "inputs": ["x"], "outputs": ["a"],
  "tensors": {
    "x": {"dtype": "f32", "shape": [1, 10000], "role": "input"},
    "a": {"dtype": "f32", "shape": [1, 10000], "role": "activation"}
  },
  "ops": [{"name": "one", "op": "tanh", "inputs": ["x"], "outputs": ["a"]}]
}"#;

#[test]
fn what_a_probe_is_told_is_printed() {
    let bench = Bench::new();
    let (model, elf) = (bench.packed("mlp"), bench.path("program"));
    let text = bench.path("text");
    fs::write(&elf, b"\x7fELF and the rest").expect("written");
    fs::write(&text, "neither of them").expect("written");
    let flash = |file: &Path, more: &[&str]| {
        Command::new(ARENITE)
            .arg("flash")
            .arg(file)
            .args(more)
            .output()
            .expect("it starts")
    };
    let dry = done(flash(&elf, &["--chip", "rp2040", "--dry-run"]));
    let expected = format!(
        "probe-rs download --chip RP2040 --verify {}\nprobe-rs reset --chip RP2040\n",
        elf.display()
    );
    assert_eq!(dry, expected);
    let dry = done(flash(
        &model,
        &["--chip", "stm32h743zi", "--address", "0x08060000", "--dry-run"],
    ));
    assert!(
        dry.starts_with(
            "probe-rs download --chip STM32H743ZITx --verify --binary-format bin --base-address 0x8060000 "
        ),
        "{dry}"
    );
    let wrong: [(&Path, &[&str], i32, &str); 6] = [
        (&model, &["--chip", "stm32h743zi"], 2, "--address"),
        (
            &model,
            &["--chip", "stm32h743zi", "--address", "0x08060008"],
            1,
            "a multiple of 16",
        ),
        (
            &model,
            &["--chip", "stm32h743zi", "--address", "0x081ffff0"],
            1,
            "0x8000000 to 0x8200000",
        ),
        (&elf, &["--chip", "rp2040", "--address", "0x10000000"], 2, "says itself"),
        (&elf, &["--chip", "mps2-an386"], 2, "is emulated"),
        (&text, &["--chip", "rp2040"], 1, "an ELF file or a model file"),
    ];
    for (file, more, status, words) in wrong {
        let message = refused(flash(file, &[more, &["--dry-run"]].concat()), status);
        assert!(message.contains(words), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_probe_is_driven_and_its_failure_is_told() {
    let bench = Bench::new();
    let (elf, probe, log) = (bench.path("program"), bench.path("probe-rs"), bench.path("log"));
    fs::write(&elf, b"\x7fELF and the rest").expect("written");
    let flash = || {
        let mut command = Command::new(ARENITE);
        command
            .args(["flash", "--chip", "nrf52840"])
            .arg(&elf)
            .env("PATH", format!("{}:/usr/bin:/bin", bench.path("").display()));
        command.output().expect("it starts")
    };
    let message = refused(flash(), 1);
    assert!(
        message.contains("probe-rs is not installed") && message.contains("https://probe.rs"),
        "{message}"
    );
    for (fails, status) in [("never", 0), ("download", 1), ("reset", 1)] {
        let script = format!("#!/bin/sh\necho \"$@\" >> {}\n[ \"$1\" != {fails} ]\n", log.display());
        // Another process writes it: what this one wrote may not be started while a child of another test holds it open for writing.
        let _ = fs::remove_file(&probe);
        let mut write = Command::new("sh");
        write
            .args(["-c", r#"printf %s "$1" > "$0" && chmod 755 "$0""#])
            .arg(&probe)
            .arg(script);
        assert!(write.status().expect("starts").success());
        let _ = fs::remove_file(&log);
        let output = flash();
        assert_eq!(output.status.code(), Some(status), "{fails}");
        let told = fs::read_to_string(&log).expect("a log");
        let download = format!("download --chip nRF52840_xxAA --verify {}\n", elf.display());
        let reset = if fails == "download" {
            ""
        } else {
            "reset --chip nRF52840_xxAA\n"
        };
        assert_eq!(told, format!("{download}{reset}"));
        if status == 1 {
            assert!(refused(output, 1).contains(&format!("probe-rs {fails} failed")));
        }
    }
}
