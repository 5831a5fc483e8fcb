//! Updates in the flash that qemu emulates, with qemu killed while they are under way: the flash is a file, and what a start finds there afterwards is a model
//! that loads, is believed and passes its self-test; the one before or the new one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arenite::Target;
use arenite_host::board::{Board, BoardError, Cut, ModelInUse, SlotsReport, factory_flash, ready, run_slots};
use arenite_host::pack::{Options, pack};
use arenite_host::sign::Signer;
use arenite_tests::{digits_options, skip};
use ed25519_dalek::SigningKey;

/// Kills in a test: with the starts after them, half a minute or less.
const KILLS: usize = 30;

/// The secret key of RFC 8032, 7.1, test 1, whose public one the program believes.
const KNOWN: [u8; 32] = [
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5,
    0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
];

/// A board, its flash, and two models of which files are made. A file of an even counter has the second one, whose self-test has another number of runs.
struct Bench {
    board: &'static Board,
    folder: tempfile::TempDir,
    models: [Vec<u8>; 2],
}

/// Runs of the self-tests.
const RUNS: [u32; 2] = [3, 2];

impl Bench {
    /// A board whose flash has the file of counter 1; `None` where it cannot be run.
    fn new(test: &str) -> Option<Self> {
        let board = Board::find("sifive-u").expect("a known board");
        if let Err(reason) = ready(board) {
            skip(test, &reason.to_string());
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let models =
            [("residual", RUNS[0]), ("mlp", RUNS[1])].map(|(network, runs)| model(folder.path(), network, runs));
        let bench = Self { board, folder, models };
        factory_flash(board, &bench.flash(), &bench.file(1)).unwrap_or_else(|error| panic!("{error}"));
        Some(bench)
    }

    fn flash(&self) -> PathBuf {
        self.folder.path().join("flash")
    }

    /// A signed file.
    fn file(&self, counter: u64) -> Vec<u8> {
        signed(KNOWN, counter, &self.models[counter as usize % 2])
    }

    /// A start without an update, which is not killed, `after` what was.
    fn start(&self, after: &str) -> ModelInUse {
        let report = run_slots(self.board, &self.flash(), None, None);
        let report = report.unwrap_or_else(|error| panic!("no model after {after}: {error}"));
        *report.used.last().expect("a model")
    }

    fn update(&self, file: &[u8], cut: Option<Cut>) -> Result<SlotsReport, BoardError> {
        run_slots(self.board, &self.flash(), Some(file), cut)
    }
}

/// A network with a self-test.
fn model(folder: &Path, network: &str, runs: u32) -> Vec<u8> {
    let (samples, output) = (folder.join("samples.npy"), folder.join("model.bin"));
    let array = ndarray::Array::from_shape_fn((runs as usize, 1, 1, 8, 8), |(run, _, _, y, x)| {
        ((5 * (8 * y + x) + 3 * run) % 19) as f32 / 8.0
    });
    ndarray_npy::write_npy(&samples, &array).expect("written");
    let options = Options {
        target: Target::Riscv64gc,
        self_test: Some(samples),
        ..digits_options(network, &output)
    };
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    fs::read(&output).expect("a model")
}

fn signed(key: [u8; 32], counter: u64, content: &[u8]) -> Vec<u8> {
    let signer = Signer::new(SigningKey::from_bytes(&key), counter);
    signer.sign(content).unwrap_or_else(|error| panic!("{error}"))
}

/// A file of [`Bench::file`] in use.
fn used(slot: u8, trial: bool, counter: u64) -> ModelInUse {
    ModelInUse {
        slot,
        trial,
        counter,
        tests: RUNS[counter as usize % 2],
    }
}

/// Numbers of no pattern.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

#[test]
fn an_update_in_an_emulated_flash_is_written_tested_and_used() {
    let Some(bench) = Bench::new("an_update_in_an_emulated_flash_is_written_tested_and_used") else {
        return;
    };
    assert_eq!(bench.start("the factory"), used(0, false, 1));
    let begun = Instant::now();
    let file = bench.file(2);
    let report = bench.update(&file, None).unwrap_or_else(|error| panic!("{error}"));
    println!(
        "{} bytes, {} records, {:?}",
        file.len(),
        report.records,
        begun.elapsed()
    );
    assert_eq!(report.used, [used(0, false, 1), used(1, true, 2), used(1, false, 2)]);
    assert_eq!((report.taken, report.written), (Some(file.len() as u32), true));
    assert_eq!(bench.start("an update"), used(1, false, 2));
}

/// One chip through all of it: after each kill the next update goes on from what is left.
#[test]
fn a_kill_at_any_time_leaves_the_old_model_or_the_new_one() {
    let Some(bench) = Bench::new("a_kill_at_any_time_leaves_the_old_model_or_the_new_one") else {
        return;
    };
    let begun = Instant::now();
    // Records of an update that comes to its end: boot, the model, pieces, the new model written, on trial, confirmed.
    let whole = bench
        .update(&bench.file(2), None)
        .unwrap_or_else(|error| panic!("{error}"));
    let all = whole.records as u64;
    assert!(all > 40, "{all} records");
    let (mut random, mut before) = (Random(0x5eed_0011), bench.start("an update"));
    let (mut kills, mut killed_starts, mut old, mut new, mut ended) = (0, 0, 0, 0, 0);
    let mut places = std::collections::BTreeSet::new();
    // Each kind of end often enough, whatever the machine's pace.
    let enough = |old: usize, new: usize, starts: usize| old > KILLS / 5 && new > KILLS / 10 && starts > KILLS / 10;
    while kills < KILLS || (kills < 4 * KILLS && !enough(old, new, killed_starts)) {
        let next = before.counter + 1;
        // Every other one in the midst of pieces, the others where the slot is erased, the model tested and switched.
        let records = match random.below(2) {
            0 => 1 + random.below(all - 1),
            _ => [2, all - 4, all - 3, all - 2, all - 1][random.below(5) as usize],
        };
        let cut = Cut {
            records: records as usize,
            after: Duration::from_micros(random.below(4000)),
        };
        let report = bench
            .update(&bench.file(next), Some(cut))
            .unwrap_or_else(|error| panic!("{error}"));
        kills += usize::from(report.killed);
        places.insert(report.records);
        // The start that follows may be killed as well, and the one behind it.
        for _ in 0..2 {
            if random.below(3) == 0 {
                let cut = Cut {
                    records: 1,
                    after: Duration::from_micros(random.below(30_000)),
                };
                let report = run_slots(bench.board, &bench.flash(), None, Some(cut));
                killed_starts += usize::from(report.unwrap_or_else(|error| panic!("{error}")).killed);
            }
        }
        let after = bench.start(&format!("{kills} kills, the last at {cut:?}"));
        let is_new = after.counter == next;
        assert!(
            is_new || after.counter == before.counter,
            "{before:?}, {cut:?}, {after:?}"
        );
        let slot = if is_new { 1 - before.slot } else { before.slot };
        // A model on trial that passed is confirmed at once.
        assert_eq!(after, used(slot, false, after.counter), "{cut:?}");
        // A confirmed model is not taken back. One that is killed may have said so before its last writes were in the file: qemu tells the program at once that
        // they are done.
        let last = report.used.last().filter(|_| !report.killed);
        let confirmed = last.is_some_and(|last| !last.trial && last.counter == next);
        ended += usize::from(confirmed);
        assert!(is_new || !confirmed, "{cut:?}, {report:?}");
        old += usize::from(!is_new);
        new += usize::from(is_new);
        before = after;
    }
    println!(
        "{kills} kills after {} different numbers of records, {killed_starts} of starts: {old} times the old model, {new} times the new one; {ended} ended \
         before; {:?}",
        places.len(),
        begun.elapsed()
    );
    assert!(enough(old, new, killed_starts));
    assert!(places.len() >= 8, "killed at {places:?} alone");
    // An update that nobody kills brings the new one.
    let next = before.counter + 1;
    let report = bench
        .update(&bench.file(next), None)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.used.last(), Some(&used(1 - before.slot, false, next)));
    assert_eq!(bench.start("an update"), used(1 - before.slot, false, next));
}

#[test]
fn files_that_are_not_believed_are_not_used() {
    let Some(bench) = Bench::new("files_that_are_not_believed_are_not_used") else {
        return;
    };
    bench
        .update(&bench.file(2), None)
        .unwrap_or_else(|error| panic!("{error}"));
    let content = &bench.models[1];
    let mut changed = bench.file(3);
    let at = changed.len() / 2;
    changed[at] ^= 0x10;
    // Another output is expected by its vectors: signed, and yet no model that works.
    let mut wrong = content.clone();
    let test = arenite::Header::parse(&wrong).expect("a model").self_test;
    wrong[(test.offset + test.len) as usize - 1] ^= 0x40;
    arenite::blob::seal(&mut wrong);
    for (file, why) in [
        (signed([7; 32], 3, content), "key"),
        (bench.file(2), "counter"),
        (bench.file(1), "counter"),
        (changed, "signature"),
        (content.clone(), "signed"),
        (signed(KNOWN, 3, &wrong), "self-test"),
        (signed(KNOWN, 3, &[7; 500]), "model"),
    ] {
        match bench.update(&file, None) {
            Err(BoardError::Refused { text, .. }) => {
                println!("{text}");
                assert!(text.contains(why), "{why}: {text}");
            }
            other => panic!("{why}: {other:?}"),
        }
        assert_eq!(bench.start(why), used(1, false, 2), "{why}");
    }
    // Neither are they when they lie in the slots from the beginning.
    factory_flash(bench.board, &bench.flash(), &signed([7; 32], 3, content)).unwrap_or_else(|error| panic!("{error}"));
    let error = run_slots(bench.board, &bench.flash(), None, None).expect_err("no model");
    assert!(
        matches!(&error, BoardError::Refused { text, .. } if text.contains("neither slot")),
        "{error}"
    );
}
