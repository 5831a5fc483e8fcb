//! The cores' own counters of cycles, in qemu where it has them, and cycles by step. The counters behind the registers are tested beside them, on mocks.

use std::path::Path;
use std::time::Duration;

use arenite::cycles::CycleCounter;
use arenite::{Model, Session};
use arenite_host::board::{Board, Firmware, execute, ready};
use arenite_host::model::{Aligned, ModelFile};
use arenite_tests::skip;

const TIMEOUT: Duration = Duration::from_secs(600);

/// Rounds, instructions and cycles of each loop, and what the board warned of.
fn counted(name: &str) -> Option<(Vec<[u64; 3]>, Vec<String>)> {
    let board = Board::find(name).expect("a known board");
    if let Err(reason) = ready(board) {
        skip(&format!("cycles on {name}"), &reason.to_string());
        return None;
    }
    let firmware = Firmware::build(board, "cycles").unwrap_or_else(|error| panic!("{error}"));
    let logs = execute(&firmware, TIMEOUT).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (counts, warnings) = logs.into_iter().partition::<Vec<_>, _>(|line| line.level == "info");
    let of = |text: &str| -> [u64; 3] {
        let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{name}: {text}"))
    };
    let counts = counts.iter().map(|line| of(&line.text)).collect();
    Some((counts, warnings.into_iter().map(|line| line.text).collect()))
}

/// That a loop of `rounds` took its two instructions each, and `per` cycles in `of` instructions.
fn hold(name: &str, counts: &[[u64; 3]], (per, of): (u64, u64)) {
    assert_eq!(counts.len(), 6, "{name}: {counts:?}");
    for &[rounds, instructions, cycles] in counts {
        assert!(
            instructions >= 2 * rounds && instructions < 2 * rounds + rounds / 100 + 1000,
            "{name}: {instructions} instructions of {rounds} rounds"
        );
        let expected = 2 * rounds * per / of;
        assert!(
            cycles >= expected - 10 && cycles < expected + expected / 100 + 1000,
            "{name}: {cycles} cycles, expected {expected}"
        );
    }
}

#[test]
fn the_system_timer_counts_across_its_wraps() {
    // The board's clock has 25 MHz, and an instruction takes 128 ns of the board's time.
    for (name, warned) in [("mps2-an385:thumbv6m", 0), ("mps2-an386", 1)] {
        let Some((counts, warnings)) = counted(name) else {
            continue;
        };
        hold(name, &counts, (128, 40));
        // qemu has no counter in the watchpoint unit, and a build for ARMv6-M does not ask.
        assert_eq!(warnings.len(), warned, "{name}: {warnings:?}");
    }
}

#[test]
fn machine_mode_counts_cycles() {
    for name in ["riscv32-virt", "riscv64-virt"] {
        if let Some((counts, warnings)) = counted(name) {
            hold(name, &counts, (1, 1));
            assert!(warnings.is_empty(), "{warnings:?}");
        }
    }
}

/// Goes on by 13, then by 87: a step takes 13, and what looks at it 87.
struct Uneven(u64);

impl CycleCounter for Uneven {
    fn cycles(&mut self) -> u64 {
        let asked = self.0;
        self.0 += 1;
        100 * (asked / 2) + 13 * (asked % 2)
    }
}

#[test]
fn steps_are_counted_without_what_looks_at_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/compat/mlp-v2.bin");
    let file = ModelFile::open(&path).expect("a tracked file");
    let model: Model<'_> = file.load().expect("a model");
    let mut arena = Aligned::new(model.arena_bytes(0));
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("a session");
    session.set_input(0, &[0; 256]).expect("an input");
    let mut steps = Vec::new();
    let sum = session.run_counted(&mut Uneven(0), |step, cycles| steps.push((step, cycles)));
    let count = model.header().step_count;
    assert!(count > 1);
    assert_eq!(steps, (0..count).map(|step| (step, 13)).collect::<Vec<_>>());
    assert_eq!(sum, Ok(u64::from(count) * 13));
}
