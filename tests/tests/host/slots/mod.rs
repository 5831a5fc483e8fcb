//! Updates in two slots: power that fails at any write or erase, models that do not pass, files that are not believed.

mod flash;
mod power;
mod records;
mod refusals;
mod signed;

use std::fs;

use arenite::Target;
use arenite::slots::{Layout, Policy, SlotError, Slots, Unsigned};
use arenite_host::model::Aligned;
use arenite_host::pack::{Options, pack};
use arenite_host::sign::Signer;
use arenite_tests::digits_options;

use flash::Mock;

/// Bytes of a slot.
const SLOT: u32 = 0x4000;
/// A small sector, so that the journal's halves are full often.
const SECTOR: usize = 256;
const TRIALS: u8 = 2;

const LAYOUT: Layout = Layout {
    slots: [0..SLOT, SLOT..2 * SLOT],
    journal: 2 * SLOT..2 * SLOT + 2 * SECTOR as u32,
    trials: TRIALS,
};

/// A network of a hidden layer, packed for a target by which it is told from others, with a self-test of `runs` runs.
fn model(target: Target, runs: usize, signer: Option<Signer>) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = folder.path().join("samples.npy");
    let array = ndarray::Array::from_shape_fn((runs, 1, 1, 8, 8), |(run, _, _, y, x)| {
        ((7 * (8 * y + x) + run) % 23) as f32 / 8.0
    });
    ndarray_npy::write_npy(&samples, &array).expect("written");
    let path = folder.path().join("model.bin");
    let options = Options {
        target,
        self_test: (runs > 0).then_some(samples),
        sign: signer,
        ..digits_options("mlp", &path)
    };
    pack(&options, &mut |_, _, _| {}).expect("a model");
    let file = fs::read(&path).expect("a model");
    assert!(file.len() < SLOT as usize, "{}", file.len());
    file
}

/// Writes a file to the slot that is not in use, in pieces of a length that fits nothing, and tests it there.
fn write<const W: usize, P: Policy>(slots: &mut Slots<&mut Mock<W, SECTOR>, P>, file: &[u8]) -> Result<u32, SlotError> {
    let mut update = slots.begin(file.len() as u32)?;
    for piece in file.chunks(37) {
        slots.write(&mut update, piece)?;
    }
    slots.finish(update, Aligned::new(4096).bytes(), &mut [])
}

/// The target of the model in use, which passes its self-test.
fn used<const W: usize, P: Policy>(slots: &Slots<&mut Mock<W, SECTOR>, P>) -> String {
    let model = slots.model().expect("a model");
    let mut arena = Aligned::new(4096);
    model.self_test(arena.bytes()).expect("it passes");
    model.target_name().to_owned()
}

/// A start of the program.
fn open<const W: usize>(flash: &mut Mock<W, SECTOR>) -> Slots<&mut Mock<W, SECTOR>> {
    flash.power(None);
    Slots::open(flash, LAYOUT, Unsigned).expect("power")
}

/// A flash as it leaves the factory: a model in the first slot, and nothing else.
fn factory<const W: usize>(file: &[u8]) -> Mock<W, SECTOR> {
    let mut flash = Mock::erased(LAYOUT.journal.end as usize + SECTOR);
    flash.program(0, file);
    flash
}

/// Slot, whether on trial, and target of the model in use.
fn state<const W: usize>(slots: &Slots<&mut Mock<W, SECTOR>>) -> (Option<u8>, bool, String) {
    (slots.active(), slots.on_trial(), used(slots))
}

const OLD: &str = "portable";
const NEW: &str = "cortex-m4";

/// Two models, the one in use and the one to come.
fn models() -> (Vec<u8>, Vec<u8>) {
    (model(Target::Portable, 2, None), model(Target::CortexM4, 3, None))
}

#[test]
fn an_update_is_tried_confirmed_and_used() {
    let (old, new) = models();
    assert_ne!(new.len() % 8, 0, "a length that fits nothing");
    let mut flash = factory::<8>(&old);
    let mut slots = open(&mut flash);
    assert_eq!(state(&slots), (Some(0), false, OLD.into()));
    // Between pieces the old model is there.
    let mut update = slots.begin(new.len() as u32).expect("room");
    for piece in new.chunks(501) {
        slots.write(&mut update, piece).expect("a piece");
        assert_eq!(used(&slots), OLD);
    }
    assert_eq!(slots.finish(update, Aligned::new(4096).bytes(), &mut []), Ok(3));
    // It is used from the next start on, and kept where it is confirmed.
    assert_eq!(state(&slots), (Some(0), false, OLD.into()));
    let mut slots = open(&mut flash);
    assert_eq!(state(&slots), (Some(1), true, NEW.into()));
    slots.confirm().expect("confirmed");
    for _ in 0..2 * TRIALS {
        assert_eq!(state(&open(&mut flash)), (Some(1), false, NEW.into()));
    }
}

#[test]
fn a_model_that_is_not_confirmed_gives_way() {
    let (old, new) = models();
    let mut flash = factory::<4>(&old);
    write(&mut open(&mut flash), &new).expect("written");
    for _ in 0..TRIALS {
        assert_eq!(state(&open(&mut flash)), (Some(1), true, NEW.into()));
    }
    let mut slots = open(&mut flash);
    assert_eq!(state(&slots), (Some(0), false, OLD.into()));
    // At once where the program says so.
    write(&mut slots, &new).expect("written");
    slots.start().expect("started");
    assert_eq!(state(&slots), (Some(1), true, NEW.into()));
    slots.roll_back().expect("rolled back");
    assert_eq!(state(&slots), (Some(0), false, OLD.into()));
    slots.roll_back().expect("nothing to do");
    slots.confirm().expect("nothing to do");
    assert_eq!(state(&open(&mut flash)), (Some(0), false, OLD.into()));
}

#[test]
fn a_model_that_rots_gives_way_to_the_other() {
    let (old, new) = models();
    for trial in [false, true] {
        let mut flash = factory::<4>(&old);
        let mut slots = open(&mut flash);
        write(&mut slots, &new).expect("written");
        slots.start().expect("started");
        if !trial {
            slots.confirm().expect("confirmed");
        }
        flash.program(SLOT as usize + 300, &[0, 0, 0, 0]);
        assert_eq!(state(&open(&mut flash)), (Some(0), false, OLD.into()));
        assert_eq!(open(&mut flash).active(), Some(0));
    }
}

/// A chip that comes without a model.
#[test]
fn the_first_model_may_come_as_an_update() {
    let (_, new) = models();
    let mut flash = Mock::<8, SECTOR>::erased(LAYOUT.journal.end as usize);
    let mut slots = open(&mut flash);
    assert_eq!((slots.active(), slots.on_trial()), (None, false));
    assert_eq!(write(&mut slots, &new), Ok(3));
    slots.start().expect("started");
    assert_eq!(state(&slots), (Some(0), true, NEW.into()));
    // There is nothing to go back to, so it stays.
    for _ in 0..2 * TRIALS {
        assert_eq!(used(&open(&mut flash)), NEW);
    }
}
