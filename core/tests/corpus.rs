//! The model files of the corpus, as they are and damaged, loaded and run in memory of exactly their bytes. Quick anywhere; made for Miri, which checks every
//! access and every borrow of what runs here: `cargo xtask long fuzz --stage miri`.

use std::fs;
use std::path::{Path, PathBuf};

use arenite::{Bundle, MAX_REGIONS, Model, Progress, Session};

/// Damaged copies of each file; Miri takes a thousand times as long for one.
const CHANGES: u64 = if cfg!(miri) { 1 } else { 300 };

/// Runs of a model: what the second finds in the arena is what the first left.
const RUNS: u32 = if cfg!(miri) { 1 } else { 2 };

/// Largest arena or state.
const MEMORY: usize = 1 << 16;

/// The most steps of a run.
const STEPS: u32 = 64;

/// Memory at the alignment of arenas and models.
struct Aligned(Vec<u128>, usize);

impl Aligned {
    fn new(len: usize) -> Self {
        Self(vec![0x3535_3535; len.div_ceil(16)], len)
    }

    fn of(bytes: &[u8]) -> Self {
        let mut copy = Self::new(bytes.len());
        copy.bytes().copy_from_slice(bytes);
        copy
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the words hold at least so many bytes, of any value.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.1) }
    }
}

/// A fixed sequence (splitmix).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed >> 32) as usize % n
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/corpus")
        .join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Runs a model on inputs of any value; false where it wants more memory than it gets here.
fn run(model: Model<'_>, random: &mut Random) -> bool {
    let needed: [usize; MAX_REGIONS] = std::array::from_fn(|region| model.arena_bytes(region));
    if needed.iter().any(|&bytes| bytes > MEMORY) || model.state_bytes() > MEMORY {
        return false;
    }
    let mut arenas = needed.map(Aligned::new);
    let mut state = Aligned::new(model.state_bytes());
    let mut session = Session::new(model, arenas.each_mut().map(Aligned::bytes), state.bytes()).expect("a session");
    for _ in 0..RUNS {
        for port in 0..usize::from(model.header().inputs) {
            let input = session.input_mut(port).expect("an input");
            input.fill_with(|| random.below(256) as u8);
        }
        for _ in 0..STEPS {
            match session.step().expect("what loads runs") {
                Progress::Step { .. } => {}
                Progress::Done => break,
            }
        }
    }
    true
}

#[test]
fn files_of_the_corpus_and_damaged_ones_load_and_run() {
    let (mut ran, mut refused) = (0, 0);
    for file in files("blob") {
        let mut random = Random(u64::from(arenite::checksum(file.to_string_lossy().as_bytes())));
        let intact = fs::read(&file).expect("a file of the corpus");
        for change in 0..=CHANGES {
            let mut blob = Aligned::of(&intact);
            let bytes = blob.bytes();
            for _ in 0..change.min(3) {
                // The header's lengths are looked at first; behind them is what this test is for.
                let at = 24 + random.below(bytes.len() - 24);
                bytes[at] ^= 1 << random.below(8);
            }
            let crc = arenite::checksum(bytes);
            bytes[20..24].copy_from_slice(&crc.to_le_bytes());
            match Model::load(bytes) {
                Ok(model) => ran += usize::from(run(model, &mut random)),
                Err(error) => {
                    assert_ne!(change, 0, "{}: {error}", file.display());
                    refused += 1;
                }
            }
        }
    }
    assert!(ran > 60 && refused > 0, "{ran} ran, {refused} refused");
}

#[test]
fn models_of_a_bundle_run() {
    let mut ran = 0;
    for file in files("bundle") {
        let mut bytes = Aligned::of(&fs::read(&file).expect("a file of the corpus"));
        if let Ok(bundle) = Bundle::open(bytes.bytes()) {
            for index in 0..bundle.len() {
                let model = bundle.load(index).expect("a model of an intact bundle");
                ran += usize::from(run(model, &mut Random(1)));
            }
        }
    }
    assert!(ran > 1, "{ran} ran");
}
