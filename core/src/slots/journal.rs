//! Journal of the slot in use: records that are only ever appended, of which the newest one with a right checksum holds. The remains of a record after a power
//! cut are no record, and the one before it stays.
//!
//! The journal has two halves. When one is full the other is erased and begun; the newest record is in the full one until then.

use core::ops::Range;

use embedded_storage::nor_flash::{NorFlash, ReadNorFlash};

use super::error::SlotError;
use crate::crc::Crc32;

/// Bytes of a record, which may be followed by padding: the unit of a write may be larger.
const RECORD: usize = 32;

/// The largest unit of writing.
pub(super) const UNIT: usize = 256;

/// Value of an erased byte of flash.
pub(super) const ERASED: u8 = 0xFF;

const MAGIC: [u8; 4] = *b"ASL1";

/// State of the slots from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// The slot whose model is used.
    pub(super) slot: u8,
    /// `None` where the model is confirmed, else how often it was started on trial.
    pub(super) trial: Option<u8>,
    /// The counter of the last confirmed file; 0 where files are not signed.
    pub(super) counter: u64,
}

impl Record {
    /// State before any record: the first slot has the model that was flashed with the program.
    pub(super) const FIRST: Self = Self {
        slot: 0,
        trial: None,
        counter: 0,
    };

    /// The trial's byte of a confirmed model.
    const CONFIRMED: u8 = 0xFF;

    fn to_bytes(self, sequence: u32) -> [u8; RECORD] {
        let mut bytes = [ERASED; RECORD];
        let parts: [&[u8]; 4] = [
            &MAGIC,
            &sequence.to_le_bytes(),
            &[self.slot, self.trial.unwrap_or(Self::CONFIRMED), 0, 0],
            &self.counter.to_le_bytes(),
        ];
        put(&mut bytes, parts.into_iter().flatten().copied());
        let crc = checksum(&bytes).to_le_bytes();
        put(&mut bytes[CHECKED..], crc.into_iter());
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Option<(u32, Self)> {
        let [m0, m1, m2, m3, s0, s1, s2, s3, slot, trial, 0, 0, counter @ ..] = bytes else {
            return None;
        };
        let (counter, rest) = counter.split_first_chunk()?;
        let crc = u32::from_le_bytes(*rest.first_chunk()?);
        if [*m0, *m1, *m2, *m3] != MAGIC || *slot > 1 || crc != checksum(bytes) {
            return None;
        }
        let record = Self {
            slot: *slot,
            trial: (*trial != Self::CONFIRMED).then_some(*trial),
            counter: u64::from_le_bytes(*counter),
        };
        Some((u32::from_le_bytes([*s0, *s1, *s2, *s3]), record))
    }
}

/// Bytes that the checksum covers.
const CHECKED: usize = 20;

fn checksum(bytes: &[u8; RECORD]) -> u32 {
    Crc32::new().update(&bytes[..CHECKED]).finish()
}

fn put(to: &mut [u8], from: impl Iterator<Item = u8>) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from);
}

/// The journal of a flash.
#[derive(Debug)]
pub(super) struct Journal {
    /// Each half.
    halves: [Range<u32>; 2],
    /// Bytes from record to record.
    stride: u32,
    /// The half with the newest record.
    half: usize,
    /// Offset of its free space; its end where there is none.
    room: u32,
    /// The newest record.
    newest: Record,
    sequence: u32,
}

impl Journal {
    /// Reads the records in `range`, which is an even number of the flash's sectors.
    pub(super) fn read<F: NorFlash>(flash: &mut F, range: &Range<u32>) -> Result<Self, SlotError> {
        let middle = range.start + (range.end - range.start) / 2;
        let mut journal = Self {
            halves: [range.start..middle, middle..range.end],
            stride: stride::<F>(),
            half: 0,
            room: range.start,
            newest: Record::FIRST,
            sequence: 0,
        };
        let mut rooms = [range.start, middle];
        for (half, (place, room)) in journal.halves.clone().into_iter().zip(&mut rooms).enumerate() {
            let mut at = place.start;
            while journal.stride <= place.end - at {
                let Some((bytes, erased)) = entry(flash, at, journal.stride)? else {
                    return Err(SlotError::Layout);
                };
                at += journal.stride;
                if !erased {
                    // Bytes before are written, whatever they are: a record goes behind the last byte that is not erased.
                    *room = at;
                }
                match Record::from_bytes(&bytes) {
                    Some((sequence, record)) if sequence > journal.sequence => {
                        (journal.half, journal.sequence, journal.newest) = (half, sequence, record);
                    }
                    _ => {}
                }
            }
        }
        let [first, second] = rooms;
        journal.room = if journal.half == 0 { first } else { second };
        Ok(journal)
    }

    /// The newest record.
    pub(super) fn newest(&self) -> Record {
        self.newest
    }

    /// Appends a record: from its last byte on it holds.
    pub(super) fn append<F: NorFlash>(&mut self, flash: &mut F, record: Record) -> Result<(), SlotError> {
        // So many records outlive every flash: a journal that says so was not written here.
        let sequence = self.sequence.checked_add(1).ok_or(SlotError::Layout)?;
        let [first, second] = &self.halves;
        let (here, other) = if self.half == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let (half, at) = if self.stride <= here.end - self.room {
            let at = self.room;
            // A record that fails half-way takes its place all the same.
            self.room += self.stride;
            (self.half, at)
        } else {
            flash.erase(other.start, other.end).map_err(SlotError::of)?;
            (1 - self.half, other.start)
        };
        let mut bytes = [ERASED; UNIT];
        put(&mut bytes, record.to_bytes(sequence).into_iter());
        let written = bytes.get(..self.stride as usize).ok_or(SlotError::Layout)?;
        // If this fails in the other half, this half keeps the newest record, and the next attempt erases the other anew.
        flash.write(at, written).map_err(SlotError::of)?;
        (self.half, self.room) = (half, at + self.stride);
        (self.newest, self.sequence) = (record, sequence);
        Ok(())
    }
}

/// Bytes from record to record, a multiple of what the flash writes at once.
pub(super) const fn stride<F: NorFlash>() -> u32 {
    RECORD.next_multiple_of(if F::WRITE_SIZE == 0 { 1 } else { F::WRITE_SIZE }) as u32
}

/// The bytes of a record's place, and whether all of the place is erased; `None` where the flash reads in larger pieces than a record.
fn entry<F: ReadNorFlash>(flash: &mut F, at: u32, stride: u32) -> Result<Option<([u8; RECORD], bool)>, SlotError> {
    if F::READ_SIZE == 0 || !RECORD.is_multiple_of(F::READ_SIZE) {
        return Ok(None);
    }
    let mut first = [0; RECORD];
    flash.read(at, &mut first).map_err(SlotError::of)?;
    let mut erased = first.iter().all(|&byte| byte == ERASED);
    let mut done = RECORD as u32;
    while erased && done < stride {
        let mut more = [0; RECORD];
        flash.read(at + done, &mut more).map_err(SlotError::of)?;
        erased = more.iter().all(|&byte| byte == ERASED);
        done += RECORD as u32;
    }
    Ok(Some((first, erased)))
}
