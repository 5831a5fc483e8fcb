//! Keys, signed files and files of other versions, as a user meets them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, done, json, refused, run};

/// Packs the small network, signed with the counter 5.
fn signed(bench: &Bench) -> (std::path::PathBuf, std::path::PathBuf) {
    let (key, model) = (bench.path("key.pem"), bench.path("signed.bin"));
    done(run(ARENITE, &[Path::new("keygen"), Path::new("-o"), &key]));
    let mut command = Command::new(PACK);
    command.arg(digits("mlp.trace.json")).arg("-o").arg(&model);
    command.arg("--sign").arg(&key).args(["--sign-counter", "5", "--json"]);
    let summary = json(&done(command.output().expect("it starts")));
    assert_eq!(
        summary["model_bytes"].as_u64(),
        Some(fs::metadata(&model).expect("a model").len())
    );
    (key, model)
}

#[test]
fn a_key_is_private_and_never_replaced() {
    let bench = Bench::new();
    let key = bench.path("key.pem");
    let arguments = [Path::new("keygen"), Path::new("-o"), &key];
    let told = done(run(ARENITE, &arguments));
    assert!(
        told.contains("arenite::TrustedKey") && told.contains("-----BEGIN PUBLIC KEY-----"),
        "{told}"
    );
    let pem = fs::read_to_string(&key).expect("the key");
    assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{pem}");
    assert!(
        !told.contains(pem.lines().nth(1).expect("a line")),
        "the private key is told"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&key).expect("the key").permissions().mode() & 0o777, 0o600);
    }
    let message = refused(run(ARENITE, &arguments), 2);
    assert!(message.contains("never replaced"), "{message}");
    assert_eq!(fs::read_to_string(&key).expect("the key"), pem);
    let other = json(&done(run(
        ARENITE,
        &["keygen", "--json", "-o", bench.path("b.pem").to_str().expect("UTF-8")],
    )));
    assert_eq!(other["public_key"].as_str().map(str::len), Some(64));
    // To standard output goes the key alone.
    let piped = run(ARENITE, &["keygen", "-o", "-"]);
    assert!(String::from_utf8_lossy(&piped.stderr).contains("BEGIN PUBLIC KEY"));
    let piped = done(piped);
    assert!(
        piped.starts_with("-----BEGIN PRIVATE KEY-----") && !piped.contains("PUBLIC"),
        "{piped}"
    );
}

#[test]
fn a_signed_file_is_verified_and_otherwise_used_as_any_other() {
    let bench = Bench::new();
    let (key, model) = signed(&bench);
    let verify = |more: &[&str]| {
        let mut command = Command::new(ARENITE);
        command.args(["verify", "--json"]).arg(&model).args(more);
        command.output().expect("it starts")
    };
    let key = key.to_str().expect("UTF-8");
    let found = json(&done(verify(&["--trust", key, "--at-least", "5"])));
    assert_eq!(found["signature"]["counter"].as_u64(), Some(5));
    let old = refused(verify(&["--trust", key, "--at-least", "6"]), 1);
    assert!(old.contains("older than 6"), "{old}");
    let other = bench.path("other.pem");
    done(run(ARENITE, &[Path::new("keygen"), Path::new("-o"), &other]));
    let strange = refused(verify(&["--trust", other.to_str().expect("UTF-8")]), 1);
    assert!(strange.contains("not trusted"), "{strange}");
    assert!(json(&done(verify(&[])))["signature"].is_null(), "nobody verified it");
    refused(verify(&["--at-least", "6"]), 2);

    let inspected = json(&done(run(
        ARENITE,
        &[Path::new("inspect"), Path::new("--json"), &model],
    )));
    assert_eq!(inspected["signature"]["counter"].as_u64(), Some(5));
    assert!(
        json(&done(run(
            ARENITE,
            &[Path::new("inspect"), Path::new("--json"), &bench.packed("mlp")]
        )))["signature"]
            .is_null()
    );

    let mut changed = fs::read(&model).expect("the model");
    *changed.last_mut().expect("bytes") ^= 1;
    fs::write(&model, changed).expect("written");
    let message = refused(verify(&["--trust", key]), 1);
    assert!(message.contains("the file was changed"), "{message}");
}

#[test]
fn a_signature_wants_its_counter_and_a_key() {
    let bench = Bench::new();
    let (key, _) = signed(&bench);
    let pack = |more: &[&str]| {
        let mut command = Command::new(PACK);
        command
            .arg(digits("mlp.trace.json"))
            .arg("-o")
            .arg(bench.path("new.bin"))
            .args(more);
        command.output().expect("it starts")
    };
    let key = key.to_str().expect("UTF-8");
    refused(pack(&["--sign", key]), 2);
    refused(pack(&["--sign-counter", "1"]), 2);
    let trace = digits("mlp.trace.json");
    let message = refused(
        pack(&["--sign-counter", "1", "--sign", trace.to_str().expect("UTF-8")]),
        1,
    );
    assert!(
        message.contains("no private key") && message.contains("arenite keygen"),
        "{message}"
    );
    let encrypted = bench.path("encrypted.pem");
    fs::write(&encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n").expect("written");
    let message = refused(
        pack(&["--sign-counter", "1", "--sign", encrypted.to_str().expect("UTF-8")]),
        1,
    );
    assert!(message.contains("encrypted"), "{message}");
    assert!(!bench.path("new.bin").exists());
    let onto_the_key = Command::new(PACK)
        .arg(&trace)
        .args(["-o", key, "--sign", key, "--sign-counter", "1"])
        .output();
    refused(onto_the_key.expect("it starts"), 2);
}

#[test]
fn migrating_drops_a_signature_and_says_so() {
    let bench = Bench::new();
    let (key, model) = signed(&bench);
    let plain = bench.path("plain.bin");
    let migrate = |from: &Path, more: &[&str]| {
        let mut command = Command::new(ARENITE);
        command.arg("migrate").arg(from).arg("-o").arg(&plain).args(more);
        command.output().expect("it starts")
    };
    let output = migrate(&model, &[]);
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(note.contains("counter 5, is dropped"), "{note}");
    assert!(done(output).contains(&format!("version {} already", arenite::FORMAT_VERSION)));
    assert_eq!(
        fs::read(&plain).expect("written"),
        fs::read(bench.packed("mlp")).expect("packed")
    );
    let again = ["--sign", key.to_str().expect("UTF-8"), "--sign-counter", "5"];
    done(migrate(&model, &again));
    assert_eq!(fs::read(&plain).expect("written"), fs::read(&model).expect("signed"));

    let mut newer = fs::read(bench.packed("mlp")).expect("packed");
    newer[8] = 9;
    arenite::blob::seal(&mut newer);
    let path = bench.path("newer.bin");
    fs::write(&path, newer).expect("written");
    let message = refused(migrate(&path, &[]), 1);
    assert!(
        message.contains("format version 9") && message.contains("pack INPUT -o MODEL"),
        "{message}"
    );
    let message = refused(run(ARENITE, &[Path::new("inspect"), &path]), 1);
    assert!(
        message.contains("update the runtime") && !message.contains("arenite migrate"),
        "{message}"
    );

    // A fault of the old file is no fault of the conversion.
    let mut damaged = fs::read(bench.packed("mlp")).expect("packed");
    let metadata = arenite::Header::parse(&damaged).expect("a model").meta.offset as usize;
    damaged[metadata] ^= 0xFF;
    arenite::blob::seal(&mut damaged);
    let path = bench.path("damaged.bin");
    fs::write(&path, damaged).expect("written");
    let message = refused(migrate(&path, &[]), 1);
    assert!(
        message.contains("damaged.bin: the metadata does not decode") && !message.contains("report it"),
        "{message}"
    );
}
