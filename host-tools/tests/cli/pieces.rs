//! `pack --region NAME=SIZE:stream` and commands on what it writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, done, json, refused, run};

#[test]
fn a_model_in_pieces_is_a_bundle_of_them() {
    let bench = Bench::new();
    let model = bench.path("pieces.bin");
    let pack = |more: &[&str]| {
        let mut command = Command::new(PACK);
        command.arg(digits("digits.trace.json")).arg("-o").arg(&model);
        command.args(["--region", "spi=1M:stream"]).args(more);
        command.output().expect("it starts")
    };
    let summary = json(&done(pack(&["--json"])));
    let pieces = summary["stream"]["pieces"].as_u64().expect("pieces");
    assert_eq!(summary["model_bytes"], fs::metadata(&model).expect("a file").len());
    let told = done(pack(&[]));
    let buffer = &summary["stream"]["buffer_bytes"];
    assert!(
        told.contains(&format!("{pieces} pieces, a buffer of {buffer} bytes")),
        "{told}"
    );
    let last = format!("{}#{}/{pieces}", model.display(), pieces - 1);
    let inspected = json(&done(run(
        ARENITE,
        &[Path::new("inspect"), Path::new(&last), Path::new("--json")],
    )));
    assert_eq!(inspected["name"], format!("digits, piece {}", pieces - 1));

    // No option of a bench that tells nothing of pieces.
    let bench_with = |more: &[&str]| {
        let mut command = Command::new(ARENITE);
        command.arg("bench").arg(&model).args(more);
        refused(command.output().expect("it starts"), 2)
    };
    for more in [&["--quick"][..], &["--chip", "stm32l4r5"]] {
        assert!(bench_with(more).contains(more[0]), "{more:?}");
    }
    // Pieces that load one by one, of which a device has too small an arena: that of the first.
    let good = fs::read(&model).expect("a file");
    let verify = || run(ARENITE, &[Path::new("verify"), &model]);
    done(verify());
    let second = (1..good.len() / 16)
        .map(|block| 16 * block)
        .filter(|&at| arenite::Header::parse(&good[at..]).is_ok())
        .nth(1)
        .expect("a second piece");
    let header = arenite::Header::parse(&good[second..]).expect("a piece");
    let larger = |at: &usize| {
        let mut file = good.clone();
        file[*at + 1] += 16;
        let found = arenite::Header::parse(&file[second..]).ok()?;
        (found.arena[0] == header.arena[0] + 4096).then_some(file)
    };
    let mut file = (second..second + arenite::HEADER_BYTES)
        .filter(|&at| good[at + 1] < 200)
        .find_map(|at| larger(&at))
        .expect("the field of the arena");
    arenite::blob::seal(&mut file[second..second + header.total as usize]);
    fs::write(&model, &file).expect("written");
    assert!(refused(verify(), 1).contains("arena"), "the arena of another piece");

    fs::remove_file(&model).expect("it is there");
    // Limits are of the pieces, which are more than the whole.
    let whole = done(run(
        PACK,
        &[
            &digits("digits.trace.json"),
            Path::new("--json"),
            Path::new("-o"),
            &model,
        ],
    ));
    let bytes = json(&whole)["model_bytes"].to_string();
    fs::remove_file(&model).expect("it is there");
    assert!(refused(pack(&["--max-flash", &bytes]), 1).contains("--max-flash"));
    let page = bench.path("page.html");
    assert!(refused(pack(&["--report", &page.to_string_lossy()]), 2).contains("--report"));
    let second = digits("mlp.trace.json");
    assert!(refused(pack(&[&second.to_string_lossy()]), 2).contains("several inputs"));
    assert_eq!(bench.names(), [""; 0]);
}
