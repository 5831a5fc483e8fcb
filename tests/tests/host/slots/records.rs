//! Records of the journal, made by hand: which of them is believed, and what it says.

use arenite::slots::{SlotError, Slots, Unsigned};

use crate::slots::flash::Mock;
use crate::slots::{LAYOUT, NEW, OLD, SECTOR, SLOT, TRIALS, factory, models, open, state, used, write};

/// The trial's byte of a model that is confirmed.
const CONFIRMED: u8 = 0xFF;
/// Where records begin.
const JOURNAL: usize = 2 * SLOT as usize;
const RECORD: usize = 32;

/// A record as the journal has it.
fn record(sequence: u32, slot: u8, trial: u8, counter: u64) -> [u8; RECORD] {
    let mut bytes = [0xFF; RECORD];
    bytes[..4].copy_from_slice(b"ASL1");
    bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8..12].copy_from_slice(&[slot, trial, 0, 0]);
    bytes[12..20].copy_from_slice(&counter.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..20]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The old model in the first slot, the new one in the second, and records.
fn flash(records: &[[u8; RECORD]]) -> Mock<4, SECTOR> {
    let (old, new) = models();
    let mut flash = factory::<4>(&old);
    flash.program(SLOT as usize, &new);
    flash.program(JOURNAL, records.as_flattened());
    flash
}

#[test]
fn the_newest_record_holds_wherever_it_lies() {
    let (first, second) = (record(1, 0, CONFIRMED, 0), record(2, 1, CONFIRMED, 0));
    for records in [[first, second], [second, first]] {
        assert_eq!(state(&open(&mut flash(&records))), (Some(1), false, NEW.into()));
    }
    // In the other half, with nothing, something older or something newer in the first.
    for (first_half, expected) in [(None, NEW), (Some(first), NEW), (Some(record(3, 0, CONFIRMED, 0)), OLD)] {
        let mut flash = flash(&Vec::from_iter(first_half));
        flash.program(JOURNAL + SECTOR, &second);
        assert_eq!(used(&open(&mut flash)), expected);
        // The next record is newer than both, and found again.
        let mut slots = open(&mut flash);
        let (old, new) = models();
        write(&mut slots, if expected == OLD { &new } else { &old }).expect("written");
        slots.start().expect("started");
        slots.confirm().expect("confirmed");
        assert_ne!(used(&open(&mut flash)), expected);
    }
}

/// One bit of it, and the record before it holds; behind the checksum a record has nothing to lose.
#[test]
fn a_damaged_record_counts_for_nothing() {
    let (first, second) = (record(1, 0, CONFIRMED, 0), record(2, 1, CONFIRMED, 0));
    let clean = flash(&[first, second]);
    for bit in 0..8 * RECORD {
        let mut damaged = second;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let mut flash = clean.clone();
        flash.program(JOURNAL + RECORD, &damaged);
        let expected = if bit < 8 * 24 { OLD } else { NEW };
        assert_eq!(used(&open(&mut flash)), expected, "bit {bit}");
    }
    // A good checksum makes no slot of what is none, nor a record of another kind.
    for (at, value) in [(8, 2), (10, 1), (11, 1), (0, b'B')] {
        let mut other = second;
        other[at] = value;
        let crc = crc32fast::hash(&other[..20]);
        other[20..24].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(used(&open(&mut flash(&[first, other]))), OLD, "byte {at}");
    }
}

/// A model on trial is started as often as the layout says, and not once more.
#[test]
fn trials_end() {
    for trials in [1, TRIALS, 5, 254] {
        for begun in [0, trials - 1, trials, 254] {
            let mut flash = flash(&[record(1, 1, begun, 0)]);
            let layout = || arenite::slots::Layout { trials, ..LAYOUT };
            let mut starts = 0;
            loop {
                let slots = Slots::open(&mut flash, layout(), Unsigned).expect("power");
                if slots.active() == Some(0) {
                    assert!(!slots.on_trial());
                    break;
                }
                starts += 1;
                assert!(slots.on_trial() && starts <= 254, "{starts} starts of {trials}");
            }
            assert_eq!(starts, trials.saturating_sub(begun), "{begun} of {trials}");
            // It stays so.
            assert_eq!(state(&open(&mut flash)), (Some(0), false, OLD.into()));
        }
    }
}

/// No flash lives so long: what says so was not written here, and nothing can follow it.
#[test]
fn a_sequence_at_its_end_is_refused() {
    let mut full = flash(&[record(u32::MAX, 1, CONFIRMED, 0)]);
    let mut slots = open(&mut full);
    assert_eq!(state(&slots), (Some(1), false, NEW.into()));
    let (old, _) = models();
    assert_eq!(write(&mut slots, &old), Err(SlotError::Layout));
    assert_eq!(state(&slots), (Some(1), false, NEW.into()));
    // Nor is a model started on trial, whose start is to be recorded first.
    let mut trial = flash(&[record(u32::MAX, 1, 0, 0)]);
    assert_eq!(Slots::open(&mut trial, LAYOUT, Unsigned).err(), Some(SlotError::Layout));
    // The last record but one has a successor.
    let mut last = flash(&[record(u32::MAX - 1, 1, 0, 0)]);
    let mut slots = open(&mut last);
    assert_eq!(state(&slots), (Some(1), true, NEW.into()));
    assert_eq!(slots.confirm(), Err(SlotError::Layout));
}
