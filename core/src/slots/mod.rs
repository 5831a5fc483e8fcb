//! Two places for a model in flash, one in use and one to be written: updates after which a model is there, whatever happens. Feature `slots`.
//!
//! An update is written in pieces to the slot that is not in use, checked there as a load checks it, tested with the vectors that the file brings along
//! (`pack --self-test`), and then started on trial. The model that was in use stays where it is until the new model is confirmed by the program; one that is
//! not confirmed within a number of starts, or does not load any more, gives way to it. Which slot counts stands in a journal of records; each step from one
//! state to the next is one record, so that power may fail at any write or erase.
//!
//! ```
//! # use arenite::slots::{Layout, MappedFlash, SlotError, Slots, Unsigned};
//! # fn doc<F: MappedFlash>(flash: F, pieces: &[&[u8]], length: u32, arena: &mut [u8]) -> Result<(), SlotError> {
//! let layout = Layout { slots: [0x0_0000..0x2_0000, 0x2_0000..0x4_0000], journal: 0x4_0000..0x4_2000, trials: 3 };
//! let mut slots = Slots::open(flash, layout, Unsigned)?; // at every start of the program
//! let model = slots.model()?; // of the slot that counts; run it, and where it works:
//! slots.confirm()?;
//!
//! let mut update = slots.begin(length)?; // erases the other slot
//! for piece in pieces {
//!     slots.write(&mut update, piece)?; // between pieces, `slots.model()` is there to be run
//! }
//! slots.finish(update, &mut *arena, &mut [])?; // checked, tested: from the next start on it is on trial
//! slots.start()?; // or restart the program
//! # Ok(())
//! # }
//! ```

mod error;
mod journal;

use core::marker::PhantomData;
use core::ops::Range;

use embedded_storage::nor_flash::NorFlash;

use crate::blob::{Model, Receipt};
use crate::kernels::table::{All, Kernels};
use crate::session::Arenas;
use crate::signed::content;
#[cfg(feature = "verify")]
use crate::verify::{Trust, TrustedKey, verify};

pub use error::SlotError;
use journal::{ERASED, Journal, Record, UNIT, stride};

/// A flash that can be read as memory, as a chip's own flash is, or a serial one that is mapped. A mapping behind a cache has to show what was written.
pub trait MappedFlash: NorFlash {
    /// The bytes from `offset` on; `None` where they are not all mapped. A slot's first one lies at a multiple of 16 of the memory.
    fn mapped(&self, offset: u32, bytes: u32) -> Option<&[u8]>;
}

impl<F: MappedFlash> MappedFlash for &mut F {
    fn mapped(&self, offset: u32, bytes: u32) -> Option<&[u8]> {
        (**self).mapped(offset, bytes)
    }
}

/// Position of slots and journal: in whole sectors of the flash, apart from each other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Layout {
    /// The slots. The model that is flashed together with the program goes into the first.
    pub slots: [Range<u32>; 2],
    /// The journal, an even number of sectors. A record takes 32 bytes or a unit of writing, and each update four records or so.
    pub journal: Range<u32>,
    /// Number of starts of a model on trial before it has to be confirmed: 1 to 254.
    pub trials: u8,
}

/// Policy on the files that are taken: [`Unsigned`], or `Signed`.
pub trait Policy {
    /// The model in `file` and its counter; `at_least` is the least counter that is taken.
    ///
    /// # Errors
    /// [`SlotError`] where the policy refuses the file.
    fn accept<'f>(&self, file: &'f [u8], at_least: u64) -> Result<(&'f [u8], u64), SlotError>;
}

/// Any model that loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unsigned;

impl Policy for Unsigned {
    fn accept<'f>(&self, file: &'f [u8], _: u64) -> Result<(&'f [u8], u64), SlotError> {
        Ok((file, 0))
    }
}

/// Models that one of these keys has signed, an update with a higher counter than that of the model in use and of every one that was confirmed. The journal
/// keeps it: who can write there can write anything.
#[cfg(feature = "verify")]
#[derive(Debug, Clone, Copy)]
pub struct Signed<'k>(pub &'k [TrustedKey]);

#[cfg(feature = "verify")]
impl Policy for Signed<'_> {
    fn accept<'f>(&self, file: &'f [u8], at_least: u64) -> Result<(&'f [u8], u64), SlotError> {
        let trust = Trust { keys: self.0, at_least };
        let verified = verify(file, &trust).map_err(SlotError::Verify)?;
        Ok((verified.content, verified.counter))
    }
}

/// The model in use.
#[derive(Debug, Clone, Copy)]
struct Active {
    record: Record,
    /// Its own counter, which is recorded when it is confirmed.
    counter: u64,
    receipt: Receipt,
}

/// An update that is being written. It is worth nothing once another one was begun, or the flash failed.
#[derive(Debug)]
pub struct Update {
    slot: u8,
    round: u32,
    stated: u32,
    written: u32,
    /// Bytes that do not fill a unit of writing yet.
    rest: [u8; UNIT],
    held: usize,
}

/// Two slots of a flash, and what the journal says of them.
#[derive(Debug)]
pub struct Slots<F, P = Unsigned, K: Kernels = All> {
    flash: F,
    layout: Layout,
    policy: P,
    journal: Journal,
    active: Option<Active>,
    /// Counts updates and starts, so that an update of before is told.
    round: u32,
    kernels: PhantomData<K>,
}

impl<F: MappedFlash, P: Policy> Slots<F, P> {
    /// Opens the slots and starts what is in use, with every kernel of this build linked; see [`Slots::open_with`].
    ///
    /// # Errors
    /// See [`Slots::open_with`].
    pub fn open(flash: F, layout: Layout, policy: P) -> Result<Self, SlotError> {
        Self::open_with(flash, layout, policy)
    }
}

impl<F: MappedFlash, P: Policy, K: Kernels + Copy> Slots<F, P, K> {
    /// Opens the slots and starts what is in use ([`Slots::start`]). That there is no model yet is no error here.
    ///
    /// # Errors
    /// [`SlotError::Layout`], [`SlotError::Flash`].
    pub fn open_with(mut flash: F, layout: Layout, policy: P) -> Result<Self, SlotError> {
        if !fits(&flash, &layout) {
            return Err(SlotError::Layout);
        }
        let journal = Journal::read(&mut flash, &layout.journal)?;
        let mut slots = Self {
            flash,
            layout,
            policy,
            journal,
            active: None,
            round: 0,
            kernels: PhantomData,
        };
        slots.start()?;
        Ok(slots)
    }

    /// Decides which model is used from now on: the one that the journal names, where it loads and its trial is not over; else the other one. A model on trial
    /// is started once more by this.
    ///
    /// # Errors
    /// [`SlotError::Flash`].
    pub fn start(&mut self) -> Result<(), SlotError> {
        self.active = None;
        self.round = self.round.wrapping_add(1);
        let mut record = self.journal.newest();
        if let Some(starts) = record.trial {
            if starts < self.layout.trials {
                // Recorded before anything of the model is looked at: a program that dies of it has used one of its starts.
                record.trial = Some(starts + 1);
                self.append(record)?;
                if let Ok((receipt, counter)) = self.check(record.slot, record.counter) {
                    self.active = Some(Active {
                        record,
                        counter,
                        receipt,
                    });
                    return Ok(());
                }
            }
            record = Record {
                slot: 1 - record.slot,
                trial: None,
                ..record
            };
            self.append(record)?;
        }
        for slot in [record.slot, 1 - record.slot] {
            if let Ok((receipt, counter)) = self.check(slot, record.counter) {
                if slot != record.slot {
                    record.slot = slot;
                    self.append(record)?;
                }
                self.active = Some(Active {
                    record,
                    counter,
                    receipt,
                });
                return Ok(());
            }
        }
        Ok(())
    }

    /// The model in use. Its checksum was taken when it was started; everything else is checked anew.
    ///
    /// # Errors
    /// [`SlotError::Empty`]; [`SlotError::Load`] where the flash has changed since.
    pub fn model(&self) -> Result<Model<'_, K>, SlotError> {
        let active = self.active.ok_or(SlotError::Empty)?;
        let file = self.file(active.record.slot)?;
        Ok(Model::load_receipt_with(content(file), &active.receipt)?)
    }

    /// The slot in use, 0 or 1; `None` where there is no model.
    pub fn active(&self) -> Option<u8> {
        self.active.map(|active| active.record.slot)
    }

    /// Whether the model in use is on trial: until [`Slots::confirm`], the one before it is kept.
    pub fn on_trial(&self) -> bool {
        self.active.is_some_and(|active| active.record.trial.is_some())
    }

    /// The counter that the model in use was signed with, 0 where files are not signed; `None` where there is no model.
    pub fn counter(&self) -> Option<u64> {
        self.active.map(|active| active.counter)
    }

    /// Ends the trial of the model in use: it works. Does nothing where it is confirmed.
    ///
    /// # Errors
    /// [`SlotError::Empty`], [`SlotError::Flash`].
    pub fn confirm(&mut self) -> Result<(), SlotError> {
        let mut active = self.active.ok_or(SlotError::Empty)?;
        if active.record.trial.is_some() {
            active.record = Record {
                trial: None,
                counter: active.counter,
                ..active.record
            };
            self.append(active.record)?;
            self.active = Some(active);
        }
        Ok(())
    }

    /// Ends the trial of the model in use: it does not work. The one before it is in use again. Does nothing where it is confirmed.
    ///
    /// # Errors
    /// [`SlotError::Empty`], [`SlotError::Flash`].
    pub fn roll_back(&mut self) -> Result<(), SlotError> {
        let Record { slot, trial, counter } = self.active.ok_or(SlotError::Empty)?.record;
        if trial.is_some() {
            self.append(Record {
                slot: 1 - slot,
                trial: None,
                counter,
            })?;
            self.start()?;
        }
        Ok(())
    }

    /// Erases the slot that is not in use, for a file of `length` bytes: a model, or a signed one with its envelope.
    ///
    /// # Errors
    /// [`SlotError::OnTrial`], [`SlotError::TooLarge`], [`SlotError::Flash`].
    pub fn begin(&mut self, length: u32) -> Result<Update, SlotError> {
        if self.on_trial() {
            return Err(SlotError::OnTrial);
        }
        let slot = self.active.map_or(0, |active| 1 - active.record.slot);
        let place = self.place(slot);
        let room = place.end - place.start;
        if length > room {
            return Err(SlotError::TooLarge { length, slot: room });
        }
        self.round = self.round.wrapping_add(1);
        let end = place.start + length.next_multiple_of(F::ERASE_SIZE as u32);
        self.flash.erase(place.start, end).map_err(SlotError::of)?;
        Ok(Update {
            slot,
            round: self.round,
            stated: length,
            written: 0,
            rest: [ERASED; UNIT],
            held: 0,
        })
    }

    /// Writes the next piece, of any length.
    ///
    /// # Errors
    /// [`SlotError::Stale`], [`SlotError::Length`] beyond the stated length, [`SlotError::Flash`], after which the update is worth nothing.
    pub fn write(&mut self, update: &mut Update, piece: &[u8]) -> Result<(), SlotError> {
        let (stated, held) = (update.stated, update.written.saturating_add(update.held as u32));
        let written = held.saturating_add(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        if update.round != self.round {
            return Err(SlotError::Stale);
        }
        if written > stated {
            return Err(SlotError::Length { stated, written });
        }
        for &byte in piece {
            if let Some(place) = update.rest.get_mut(update.held) {
                *place = byte;
                update.held += 1;
            }
            if update.held == F::WRITE_SIZE {
                self.flush(update)?;
            }
        }
        Ok(())
    }

    /// Ends an update: what was written is accepted, loaded and run on its self-test in this memory, which a session wants as well. Then it is on trial: the
    /// next [`Slots::start`] uses it. Gives the number of runs.
    ///
    /// # Errors
    /// [`SlotError::Length`] where bytes are missing, [`SlotError::Load`], [`SlotError::SelfTest`], `SlotError::Verify`: what was in use before stays so.
    pub fn finish<'s>(
        &mut self,
        update: Update,
        arenas: impl Into<Arenas<'s>>,
        state: &'s mut [u8],
    ) -> Result<u32, SlotError> {
        self.finish_after(update, |model| {
            model.self_test_with(arenas, state).map_err(SlotError::SelfTest)
        })
    }

    /// [`Slots::finish`] with another test than the file's own, or none.
    ///
    /// # Errors
    /// As [`Slots::finish`], and those of `test`.
    pub fn finish_after<T>(
        &mut self,
        mut update: Update,
        test: impl FnOnce(&Model<'_, K>) -> Result<T, SlotError>,
    ) -> Result<T, SlotError> {
        if update.round != self.round {
            return Err(SlotError::Stale);
        }
        let (stated, written) = (update.stated, update.written + update.held as u32);
        if written != stated {
            return Err(SlotError::Length { stated, written });
        }
        if update.held > 0 {
            self.flush(&mut update)?;
        }
        self.round = self.round.wrapping_add(1);
        // A model flashed with the program has a counter of its own, which no record holds.
        let confirmed = self
            .active
            .map_or(0, |active| active.counter)
            .max(self.journal.newest().counter);
        let (receipt, _) = self.check(update.slot, confirmed.saturating_add(1))?;
        let model = Model::load_receipt_with(content(self.file(update.slot)?), &receipt)?;
        let passed = test(&model)?;
        self.append(Record {
            slot: update.slot,
            trial: Some(0),
            counter: confirmed,
        })?;
        Ok(passed)
    }

    /// The flash, which a program may use beside slots and journal.
    pub fn flash(&mut self) -> &mut F {
        &mut self.flash
    }

    /// Gives the flash back.
    pub fn release(self) -> F {
        self.flash
    }

    /// Writes what is held, to the end of its unit.
    fn flush(&mut self, update: &mut Update) -> Result<(), SlotError> {
        let at = self.place(update.slot).start + update.written;
        let unit = update.rest.get(..F::WRITE_SIZE).ok_or(SlotError::Layout)?;
        if let Err(error) = self.flash.write(at, unit) {
            // After an error nobody knows how much of the unit was written, and most flashes write no unit twice.
            self.round = self.round.wrapping_add(1);
            return Err(SlotError::of(error));
        }
        update.written += update.held as u32;
        (update.rest, update.held) = ([ERASED; UNIT], 0);
        Ok(())
    }

    /// Checks a slot, whose checksum is taken, by the policy and a load.
    fn check(&self, slot: u8, at_least: u64) -> Result<(Receipt, u64), SlotError> {
        let (content, counter) = self.policy.accept(self.file(slot)?, at_least)?;
        let receipt = Receipt::of(content)?;
        Model::<K>::load_receipt_with(content, &receipt)?;
        Ok((receipt, counter))
    }

    fn append(&mut self, record: Record) -> Result<(), SlotError> {
        self.journal.append(&mut self.flash, record)
    }

    fn place(&self, slot: u8) -> Range<u32> {
        let [first, second] = &self.layout.slots;
        if slot == 0 { first.clone() } else { second.clone() }
    }

    fn file(&self, slot: u8) -> Result<&[u8], SlotError> {
        let Range { start, end } = self.place(slot);
        self.flash.mapped(start, end - start).ok_or(SlotError::Layout)
    }
}

/// Whether the layout is one of the flash.
fn fits<F: NorFlash>(flash: &F, layout: &Layout) -> bool {
    let [first, second] = &layout.slots;
    let ranges = [first, second, &layout.journal];
    let (unit, sector) = (F::WRITE_SIZE, F::ERASE_SIZE as u32);
    let whole = |range: &Range<u32>| {
        range.start < range.end
            && range.end as usize <= flash.capacity()
            && range.start.is_multiple_of(sector)
            && range.end.is_multiple_of(sector)
    };
    let apart = |a: &Range<u32>, b: &Range<u32>| a.end <= b.start || b.end <= a.start;
    let half = (layout.journal.end.saturating_sub(layout.journal.start)) / 2;
    (1..=UNIT).contains(&unit)
        && sector > 0
        && ranges.into_iter().all(whole)
        && apart(first, second)
        && apart(first, &layout.journal)
        && apart(second, &layout.journal)
        && half.is_multiple_of(sector)
        && (1..u8::MAX).contains(&layout.trials)
        && half >= stride::<F>()
}
