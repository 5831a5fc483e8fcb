//! Every tracked model packs to the bytes that it packed to before: `tests/results/bytes.txt` has a digest for each model and target.
//!
//! A change of the format, of a packed layout or of the planner shows here, model by model. Where it is meant, `ARENITE_BLESS=1` writes the file anew;
//! the commit then says why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arenite::Target;
use arenite_host::pack::{Options, pack};
use arenite_tests::{shared, skip};
use sha2::{Digest, Sha256};

/// One target for each way of choosing kernels, and whether it is packed for size.
const WAYS: [(Target, bool); 12] = [
    (Target::Portable, false),
    (Target::CortexM0, false),
    (Target::CortexM4, false),
    (Target::CortexM4, true),
    (Target::CortexM55, false),
    (Target::Riscv64gc, false),
    (Target::Aarch64, false),
    (Target::Aarch64Dotprod, false),
    (Target::Aarch64I8mm, false),
    (Target::Riscv64gcv, false),
    (Target::X8664, false),
    (Target::Aarch64Sme, false),
];

const HEADER: &str =
    "# The first 12 hexadecimal digits of the SHA-256 of each packed file; `-` where pack refuses the model.\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The project's own models, and those of the shared data where it is there.
fn models() -> Vec<(String, PathBuf)> {
    let mut folders = vec![
        ("digits", root().join("models/digits")),
        ("ops", root().join("models/tflite_ops")),
    ];
    match shared() {
        Some(folder) => folders.push(("shared", folder.join("data/models"))),
        None => skip("same_bytes: the models of the shared data", "no shared data"),
    }
    let mut models = Vec::new();
    for (prefix, folder) in folders {
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in entries.map(|entry| entry.expect("a folder that can be read").path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".tflite") || name.ends_with(".trace.json") {
                models.push((format!("{prefix}/{name}"), path));
            }
        }
    }
    models.sort();
    models
}

fn digest(model: &Path, (target, size): (Target, bool), folder: &Path) -> String {
    let output = folder.join(format!("{target:?}-{size}.bin"));
    let options = Options {
        target,
        size,
        ..Options::new(model, &output)
    };
    match pack(&options, &mut |_, _, _| {}) {
        Err(_) => "-".to_owned(),
        Ok(_) => {
            let bytes = fs::read(&output).unwrap_or_else(|e| panic!("{}: {e}", output.display()));
            Sha256::digest(bytes)[..6].iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        }
    }
}

/// A line for each model: its name, then a digest for each way of packing it.
fn lines() -> BTreeMap<String, String> {
    let (todo, done) = (Mutex::new(models()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a temporary folder");
                loop {
                    let next = todo.lock().expect("no other thread panicked").pop();
                    let Some((name, path)) = next else { break };
                    let digests = WAYS.map(|way| {
                        let (target, size) = way;
                        let digest = digest(&path, way, folder.path());
                        format!(" {}{}={digest}", target.name(), if size { "+size" } else { "" })
                    });
                    done.lock()
                        .expect("no other thread panicked")
                        .insert(name, digests.concat());
                }
            });
        }
    });
    done.into_inner().expect("no thread panicked")
}

#[test]
fn every_tracked_model_packs_to_the_bytes_on_record() {
    let record = root().join("results/bytes.txt");
    let found = lines();
    if std::env::var_os("ARENITE_BLESS").is_some() {
        let text: String = found
            .iter()
            .map(|(name, digests)| format!("{name}{digests}\n"))
            .collect();
        fs::write(&record, format!("{HEADER}{text}")).unwrap_or_else(|e| panic!("{}: {e}", record.display()));
        return;
    }
    let text = fs::read_to_string(&record).unwrap_or_else(|e| panic!("{}: {e}", record.display()));
    let tracked: BTreeMap<&str, &str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .collect();
    let with_shared = found.keys().any(|name| name.starts_with("shared/"));
    let mut differences: Vec<String> = found
        .iter()
        .filter_map(|(name, digests)| match tracked.get(name.as_str()) {
            None => Some(format!("{name}: not on record")),
            Some(tracked) if *tracked == digests.trim_start() => None,
            Some(tracked) => Some(format!("{name}:\n  was {tracked}\n  is {digests}")),
        })
        .collect();
    let gone = tracked
        .keys()
        .filter(|name| !found.contains_key(**name) && (with_shared || !name.starts_with("shared/")));
    differences.extend(gone.map(|name| format!("{name}: on record, and there is no such model")));
    assert!(
        differences.is_empty(),
        "{}\nwhere this is meant: ARENITE_BLESS=1 cargo test -p arenite-tests --test host same_bytes::",
        differences.join("\n")
    );
}
