//! TensorFlow Lite files under stacked damage: an error, or a consistent network that packs into a file that loads; never a panic.
//! Files with odd metadata give what TensorFlow Lite Micro gives.

use std::path::{Path, PathBuf};

use arenite::Target;
use arenite_host::graph::check::check;
use arenite_host::graph::facts;
use arenite_host::import::tflite::import;
use arenite_host::import::{DIALECTS, ImportOptions};
use arenite_host::memory::lifetimes;
use arenite_host::model::run;
use arenite_host::passes::prune;
use arenite_tests::golden::packed;
use arenite_tests::writers::Random;

/// Largest network that a damaged file is packed for, in elements.
const LARGEST: usize = 1 << 18;

fn models(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(folder)
}

fn files() -> Vec<PathBuf> {
    let folders = ["tflite_ops", "tflite_odd", "tflite_signal"].map(models);
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "tflite"));
    files.sort();
    files
}

/// One to four changes: bytes and words replaced, cut out, repeated elsewhere, the end cut off.
fn mutated(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    const WORDS: [u32; 9] = [0, 1, 2, 4, 1 << 16, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF];
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let from = random.below(bytes.len().max(1)).min(bytes.len());
        let to = (from + random.below(24)).min(bytes.len());
        let part = bytes[from..to].to_vec();
        let at = random.below(bytes.len() + 1);
        match random.below(16) {
            0..=5 => bytes
                .iter_mut()
                .skip(from)
                .take(1)
                .for_each(|b| *b = random.below(256) as u8),
            6..=9 => {
                let word = WORDS[random.below(WORDS.len())].to_le_bytes();
                bytes.iter_mut().skip(from & !3).zip(word).for_each(|(b, w)| *b = w);
            }
            // Other words of the file: offsets, indices, extents.
            10..=12 => bytes.iter_mut().skip(at & !3).zip(part).for_each(|(b, p)| *b = p),
            13 => drop(bytes.splice(at..at, part)),
            14 => drop(bytes.drain(from..to)),
            _ => bytes.truncate(from),
        }
    }
    bytes
}

/// How far a damaged file came.
#[derive(PartialEq, PartialOrd)]
enum Reached {
    Refused,
    Network,
    Ran,
}

/// Imports, packs, loads and runs a damaged file as far as that goes.
fn through(round: u64, path: &Path, folder: &Path) -> Reached {
    let content = mutated(&std::fs::read(path).unwrap(), &mut Random::new(round));
    for dialect in DIALECTS {
        let _ = (dialect.recognises)(&content);
    }
    let damaged = folder.join("damaged.tflite");
    let Ok(imported) = import(&damaged, &content, &ImportOptions::default()) else {
        return Reached::Refused;
    };
    let mut graph = imported.graph;
    check(&graph).unwrap_or_else(|e| panic!("{e}"));
    let _ = (
        facts::params(&graph),
        facts::macs_per_element(&graph),
        lifetimes::max_live(&graph),
    );
    let pruned = prune::run(&mut graph).and_then(|_| check(&graph));
    pruned.unwrap_or_else(|e| panic!("pruned: {e}"));
    if graph.tensors.iter().map(|t| t.elements()).sum::<usize>() > LARGEST {
        return Reached::Network;
    }
    std::fs::write(&damaged, &content).unwrap();
    let target = [Target::Portable, Target::CortexM4, Target::CortexM55][round as usize % 3];
    let Ok(file) = packed(&damaged, folder, target) else {
        return Reached::Network;
    };
    let model = file.load().unwrap_or_else(|e| panic!("packed: {e}"));
    let inputs = (0..usize::from(model.header().inputs)).map(|port| {
        let port = model.input(port).expect("an input");
        vec![7; port.bytes().expect("its size") as usize]
    });
    run(&model, &[inputs.collect()], false, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("run: {e}"));
    Reached::Ran
}

/// `ARENITE_ROUNDS` says how many; a failure prints the round, which is the seed.
#[test]
fn stacked_mutations() {
    let rounds = std::env::var("ARENITE_ROUNDS").map_or(1000, |n| n.parse().expect("ARENITE_ROUNDS is a number"));
    let (files, folder) = (files(), tempfile::tempdir().unwrap());
    let (mut networks, mut ran, mut findings) = (0, 0, Vec::new());
    for round in 0..rounds {
        let path = &files[Random::new(!round).below(files.len())];
        match std::panic::catch_unwind(|| through(round, path, folder.path())) {
            Ok(reached) => {
                networks += u64::from(reached >= Reached::Network);
                ran += u64::from(reached == Reached::Ran);
            }
            Err(_) => findings.push(format!("round {round}, {}: a panic", path.display())),
        }
    }
    println!("{networks} of {rounds} damaged files still stated a network, {ran} packed and ran");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(rounds < 1000 || ran > rounds / 50);
}

#[test]
fn a_hundred_megabytes_of_garbage() {
    let mut random = Random::new(5);
    let mut noise: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    let mut long = [0, 0, 0, 0x10, b'T', b'F', b'L', b'3'].to_vec();
    long.resize(100 << 20, 0);
    let ones = vec![0xFF; 100 << 20];
    noise[..8].copy_from_slice(b"\x10\0\0\0TFL3");
    for (what, content) in [("zeros", &long), ("ones", &ones), ("noise", &noise)] {
        let error = import(Path::new("x.tflite"), content, &ImportOptions::default()).expect_err(what);
        assert!(!error.message().is_empty(), "{what}");
    }
}

/// Files read with a warning compute the results of TensorFlow Lite Micro (tests/oracle/make_odd.py ran them there).
#[test]
fn odd_metadata_changes_no_output() {
    let text = std::fs::read_to_string(models("tflite_odd/expected.json")).unwrap();
    let expected: std::collections::BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let numbers = |value: &serde_json::Value| -> Option<Vec<u8>> {
        let values = value.as_array()?.iter();
        values.map(|v| v.as_i64().map(|v| v as u8)).collect()
    };
    let mut compared = 0;
    for (name, expected) in expected {
        let Some(_) = expected.get("warning") else { continue };
        let input = numbers(&expected["input"]).unwrap_or_else(|| panic!("{name} has no input"));
        let output = numbers(&expected["output"]).unwrap_or_else(|| panic!("{name} has no output"));
        let path = models("tflite_odd").join(format!("{name}.tflite"));
        for target in [Target::Portable, Target::CortexM4] {
            let file = packed(&path, folder.path(), target).unwrap_or_else(|e| panic!("{e}"));
            let model = file.load().unwrap_or_else(|e| panic!("{e}"));
            let found = run(&model, &[vec![input.clone()]], false, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(found[0][0], output, "{name} for {}", target.name());
        }
        compared += 1;
    }
    assert!(compared >= 4, "{compared} files were compared");
}

/// The place of a table's field, from the table's place.
fn field(file: &[u8], table: usize, number: usize) -> usize {
    let word = |at: usize| i32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let vtable = (table as i64 - i64::from(word(table))) as usize + 4 + 2 * number;
    table + usize::from(u16::from_le_bytes(file[vtable..vtable + 2].try_into().unwrap()))
}

/// Where the offset at a place leads.
fn follow(file: &[u8], at: usize) -> usize {
    at + u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize
}

/// A file of a few megabytes whose tensors all have one long name would take gigabytes in memory.
#[test]
fn what_tensors_share_takes_bounded_memory() {
    const TENSORS: u32 = 200_000;
    const NAME: u32 = 1 << 16;
    let mut file = std::fs::read(models("tflite_ops/add_int8.tflite")).unwrap();
    file.resize(file.len().next_multiple_of(4), 0);
    let subgraphs = follow(&file, field(&file, follow(&file, 0), 2));
    let graph = follow(&file, subgraphs + 4);
    // The vector of tensors is made anew at the end: offsets to one and the same table, which has a name (field 3) and nothing else.
    let tensors = field(&file, graph, 0);
    let vector = file.len() as u32;
    let table = vector + 4 + 4 * TENSORS + 12;
    file[tensors..tensors + 4].copy_from_slice(&(vector - tensors as u32).to_le_bytes());
    file.extend(TENSORS.to_le_bytes());
    for index in 0..TENSORS {
        file.extend((table - (vector + 4 + 4 * index)).to_le_bytes());
    }
    file.extend([12u16, 8, 0, 0, 0, 4].iter().flat_map(|word| word.to_le_bytes()));
    file.extend([12u32, 4, NAME].iter().flat_map(|word| word.to_le_bytes()));
    file.resize(file.len() + NAME as usize, b'x');
    let error = import(Path::new("x.tflite"), &file, &ImportOptions::default()).unwrap_err();
    let said = "the names, shapes and scales of the tensors take far more memory than the file";
    assert!(error.to_string().contains(said), "{error}");
}
