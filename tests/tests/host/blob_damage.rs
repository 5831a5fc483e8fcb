//! Model files of every operator under damage that the checksum does not show: refused, or run; never a panic. Test builds
//! check arithmetic for overflow and slices for their bounds, so a kernel that trusts its weights too far fails here.

use std::path::Path;

use arenite::{MAX_REGIONS, Model, Progress, Session, Target};
use arenite_host::model::Aligned;
use arenite_tests::golden::{packed, packed_small};
use arenite_tests::writers::Random;

/// One of each backend, beside the compact one of `--size`; hosts have all kernels in portable Rust.
const TARGETS: [Target; 4] = [Target::Portable, Target::CortexM3, Target::CortexM4, Target::CortexM55];

/// Largest arena or state that a damaged model gets.
const MEMORY: usize = 1 << 20;

/// Most steps that are run.
const STEPS: u32 = 64;

/// Outcome of a damaged file.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    Ran,
}

/// Loads bytes with a good checksum and runs what loads.
fn attempt(damaged: &[u8]) -> Outcome {
    let mut memory = Aligned::new(damaged.len());
    let bytes = memory.bytes();
    bytes.copy_from_slice(damaged);
    if damaged.len() >= 24 {
        bytes[16..20].copy_from_slice(&(damaged.len() as u32).to_le_bytes());
        let crc = arenite::checksum(bytes);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(model) = Model::load(bytes) else {
        return Outcome::Refused;
    };
    let needed: [usize; MAX_REGIONS] = std::array::from_fn(|region| model.arena_bytes(region));
    if needed.iter().any(|&bytes| bytes > MEMORY) || model.state_bytes() > MEMORY {
        return Outcome::Refused;
    }
    let mut arenas = needed.map(Aligned::new);
    let mut state = Aligned::new(model.state_bytes());
    let arenas = arenas.each_mut().map(Aligned::bytes);
    let mut session = Session::new(model, arenas, state.bytes()).expect("memory as stated");
    for port in 0..usize::from(model.header().inputs) {
        session.input_mut(port).expect("an input").fill(0x35);
    }
    for _ in 0..STEPS {
        match session.step() {
            Ok(Progress::Step { .. }) => {}
            Ok(Progress::Done) => break,
            Err(error) => panic!("a loaded model does not run: {error}"),
        }
    }
    Outcome::Ran
}

/// Every committed operator, packed for every backend: its name and bytes.
fn blobs() -> Vec<(String, Vec<u8>)> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tflite_ops");
    let folder = tempfile::tempdir().expect("a folder");
    let mut blobs = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(models)
        .expect("models")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "tflite"))
        .collect();
    files.sort();
    for file in files {
        for target in TARGETS {
            // Some are there to be refused.
            let Ok(model) = packed(&file, folder.path(), target) else {
                continue;
            };
            let name = format!("{} for {}", file.display(), target.name());
            blobs.push((name, model.bytes().to_vec()));
        }
        if let Ok(model) = packed_small(&file, folder.path(), Target::Portable) {
            blobs.push((format!("{} with --size", file.display()), model.bytes().to_vec()));
        }
    }
    assert!(blobs.len() > 1000, "{} model files", blobs.len());
    blobs
}

/// Runs `attempt` and notes a panic.
fn noted(what: &str, damaged: &[u8], findings: &mut Vec<String>) -> Option<Outcome> {
    let outcome = std::panic::catch_unwind(|| attempt(damaged));
    if outcome.is_err() {
        findings.push(format!("{what}: a panic"));
    }
    outcome.ok()
}

/// Weights, tables and records that mean nothing.
#[test]
fn weights_of_any_value() {
    let mut random = Random::new(11);
    let (mut findings, mut ran, mut refused) = (Vec::new(), 0, 0);
    for (name, blob) in blobs() {
        assert_eq!(attempt(&blob), Outcome::Ran, "{name}");
        let word = |at: usize| u32::from_le_bytes(blob[at..at + 4].try_into().expect("four bytes")) as usize;
        let weights = word(52)..word(52) + word(56);
        for pattern in ["ones", "largest", "smallest", "random"] {
            let mut damaged = blob.clone();
            for (at, byte) in damaged[weights.clone()].iter_mut().enumerate() {
                *byte = match pattern {
                    "ones" => 0xFF,
                    "largest" => [0xFF, 0xFF, 0xFF, 0x7F][at % 4],
                    "smallest" => [0, 0, 0, 0x80][at % 4],
                    _ => random.below(256) as u8,
                };
            }
            match noted(&format!("{name}, weights of {pattern}"), &damaged, &mut findings) {
                Some(Outcome::Ran) => ran += 1,
                Some(Outcome::Refused) => refused += 1,
                None => {}
            }
        }
    }
    println!("{ran} ran, {refused} were refused for their records");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(ran > 1000 && refused > 0, "{ran} ran, {refused} were refused");
}

/// One to three changes before the weights; `ARENITE_ROUNDS` says how many files, a failure prints the round, which is the seed.
#[test]
fn stacked_mutations() {
    let rounds = std::env::var("ARENITE_ROUNDS").map_or(20_000, |n| n.parse().expect("ARENITE_ROUNDS is a number"));
    let blobs = blobs();
    let (mut findings, mut ran) = (Vec::new(), 0);
    for round in 0..rounds {
        let mut random = Random::new(round);
        let (name, blob) = &blobs[random.below(blobs.len())];
        let mut damaged = blob.clone();
        for _ in 0..=random.below(3) {
            let at = 24 + random.below(damaged.len().min(400) - 24);
            let value = [
                random.below(256) as u8,
                0,
                1,
                0x7F,
                0x80,
                0xFF,
                damaged[at].wrapping_add(1),
            ];
            damaged[at] = value[random.below(value.len())];
        }
        let outcome = noted(&format!("round {round}, {name}"), &damaged, &mut findings);
        ran += u64::from(outcome == Some(Outcome::Ran));
    }
    println!("{ran} of {rounds} damaged files loaded and ran");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(ran > rounds / 100, "{ran} ran");
}
