//! Emulators that compute instructions wrongly: commands that run a file which has such instructions say so, and no others do.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use ndarray::{Array4, Array5, arr1};
use ndarray_npy::{NpzWriter, write_npy};

use crate::common::{ARENITE, Bench, PACK, done, models, run};

/// A machine with an emulator of that version, which runs nothing, and a compiler that builds nothing.
fn machine(bench: &Bench, version: &str) -> Command {
    let scripts = r#"
        cd "$1"
        mkdir -p path lib checkout/firmware
        : > checkout/firmware/Cargo.toml
        here=$PWD
        write() { { echo '#!/bin/sh'; cat; } > "path/$1"; chmod 755 "path/$1"; }
        echo "exit 1" | write cargo
        echo "case \$* in --version) echo rustc 1.95.0;; *) echo $here/lib;; esac" | write rustc
        echo "echo 'QEMU emulator version $2'; test \"\$*\" = --version" | write qemu-system-aarch64
    "#;
    let mut made = Command::new("sh");
    made.args(["-c", scripts, "sh"]).arg(bench.path("")).arg(version);
    assert!(made.status().expect("sh starts").success());
    let mut arenite = Command::new(ARENITE);
    arenite
        .env("PATH", bench.path("path"))
        .env("ARENITE_ROOT", bench.path("checkout"))
        .env("ARENITE_CACHE", bench.path("cache"))
        .env_remove("RUSTC");
    arenite
}

#[test]
fn what_an_emulator_computes_wrongly_is_said() {
    let bench = Bench::new();
    let [x, stacked, labels, reference] = ["x.npy", "xs.npy", "y.npy", "r.npz"].map(|name| bench.path(name));
    write_npy(&x, &Array4::<i8>::zeros((1, 7, 12, 1))).expect("written");
    write_npy(&stacked, &Array5::<i8>::zeros((1, 1, 7, 12, 1))).expect("written");
    write_npy(&labels, &arr1(&[0i64])).expect("written");
    let mut npz = NpzWriter::new(File::create(&reference).expect("created"));
    npz.add_array("y", &arr1(&[0i8])).expect("written");
    npz.finish().expect("written");
    let network = models().join("tflite_ops/conv_asymmetric_stride.tflite");
    let packed = |target: &str, more: &[&OsStr]| {
        let model = bench.path(&format!("{target}-{}.bin", more.len()));
        let mut words = vec![
            network.as_os_str(),
            "-o".as_ref(),
            model.as_os_str(),
            "--target".as_ref(),
            target.as_ref(),
        ];
        words.extend(more);
        done(run(PACK, &words));
        model
    };
    let sme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware/sme.toml");
    let text = fs::read_to_string(sme).expect("committed").replace("least_work", "#");
    fs::write(bench.path("sme.toml"), text).expect("written");
    let declared = bench.path("sme.toml");
    let handing = ["--accelerator".as_ref(), declared.as_os_str()];
    let files = [
        (packed("aarch64-sme", &[]), true),
        (packed("aarch64-dotprod", &handing), true),
        (packed("aarch64-dotprod", &[]), false),
    ];
    for (version, wrong) in [
        ("7.2.22 (Debian 1:7.2+dfsg-7)", true),
        ("8.2.0", true),
        ("8.2.1", false),
        ("10.0.2", false),
    ] {
        for (model, takes) in &files {
            let commands: [&[&OsStr]; 4] = [
                &["run".as_ref(), model.as_ref(), "--input".as_ref(), x.as_ref()],
                &[
                    "eval".as_ref(),
                    model.as_ref(),
                    "--inputs".as_ref(),
                    stacked.as_ref(),
                    "--labels".as_ref(),
                    labels.as_ref(),
                ],
                &[
                    "diff".as_ref(),
                    model.as_ref(),
                    reference.as_ref(),
                    "--input".as_ref(),
                    x.as_ref(),
                ],
                &["bench".as_ref(), model.as_ref()],
            ];
            for command in commands {
                let mut arenite = machine(&bench, version);
                let output = arenite.args(command).args(["--on", "qemu:aarch64-virt:max"]).output();
                let output = output.expect("it starts");
                let said = String::from_utf8_lossy(&output.stderr);
                let number = version.split(' ').next().unwrap_or_default();
                let warning = format!(
                    "warning: aarch64-virt:max: the emulator, of version {number}, computes SMOPA wrongly, mended in 8.2.1"
                );
                assert_eq!(
                    said.contains(&warning),
                    wrong && *takes,
                    "{version}, {command:?}: {said}"
                );
                // Nothing else stops before: it goes on to build the firmware.
                assert!(
                    !output.status.success() && said.contains("building `infer`"),
                    "{version}, {command:?}: {said}"
                );
            }
        }
    }
}
