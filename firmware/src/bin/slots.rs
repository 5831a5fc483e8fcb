//! Keeps a model in two slots of the flash at the board's serial bus: starts the one that counts, says which it is and whether it passes its self-test, and
//! writes a new one in pieces where it is told to. Power may go at any time.
//!
//! It believes files that were signed with a key that everybody knows.
#![no_std]
#![no_main]

use arenite::Model;
use arenite::slots::{Layout, Signed, SlotError};
use arenite_firmware::answers::{answer, file_failed, out_of_memory, refused};
use arenite_firmware::exchange::Exchange;
use arenite_firmware::key::KNOWN;
use arenite_firmware::linked::Linked;
use arenite_firmware::memory::Areas;
use arenite_firmware::protocol::{Command, During, Purpose, Record, Slots, exit};
use arenite_firmware::spi::Spi;
use arenite_firmware::{SPI_FLASH_BYTES, SPI_FLASH_ID};
use arenite_stream::{Chip, NorFlash, Shadow};

arenite_firmware::entry!(main);

const CHIP: Chip = Chip {
    id: SPI_FLASH_ID,
    bytes: SPI_FLASH_BYTES,
    polls: 1_000_000,
};
/// The chip erases so many bytes at once.
const SECTOR: u32 = 4096;
/// Bytes of the new file that come at once.
const PIECE: u32 = 200;
/// For the arena and the state of either model.
const MEMORY: [usize; 2] = [1 << 20, 1 << 16];

type Kept<'m> = arenite::slots::Slots<Shadow<'m, NorFlash<Spi>>, Signed<'static>, Linked>;

fn main(exchange: &mut Exchange) -> i32 {
    let served = |command| match command {
        Command::Slots(request) => Some(request),
        _ => None,
    };
    answer(exchange, served, keep)
}

/// Carries out the request; an error is the exit status of what has been recorded.
fn keep(exchange: &mut Exchange, request: &Slots) -> Result<(), i32> {
    let Slots { start, bytes, update } = *request;
    let end = |slots: u32| start.saturating_add(bytes.saturating_mul(slots));
    let layout = Layout {
        slots: [start..end(1), end(1)..end(2)],
        journal: end(2)..end(2).saturating_add(2 * SECTOR),
        trials: 3,
    };

    // SAFETY: called once a program.
    let mut areas = unsafe { Areas::new((0, 0)) };
    let mut take = |bytes, purpose| {
        let piece = areas.take(bytes, purpose);
        piece.map_err(|none| out_of_memory(exchange, none))
    };
    let [arena, state] = MEMORY;
    let copy = take((end(2) - start) as usize, Purpose::Arena)?;
    let (arena, state) = (take(arena, Purpose::Arena)?, take(state, Purpose::State)?);
    // SAFETY: each piece was just taken, and gives its bytes once.
    let (copy_bytes, mut memory) = unsafe { (copy.bytes(), (arena.bytes(), state.bytes())) };

    // SAFETY: called once a program.
    let spi = unsafe { Spi::start() };
    let flash = NorFlash::open(spi, CHIP).map_err(|error| refused(exchange, During::Load, &error))?;
    let shadow = Shadow::open(flash, start, copy_bytes).map_err(|error| refused(exchange, During::Load, &error))?;
    let slots = Kept::open_with(shadow, layout, Signed(&[KNOWN]));
    let mut slots = slots.map_err(|error| refused(exchange, During::Load, &error))?;
    use_one(exchange, &mut slots, &mut memory).map_err(|error| refused(exchange, During::Load, &error))?;
    if update > 0 {
        write(exchange, &mut slots, &mut memory, update)?;
        let used = slots.start().and_then(|()| use_one(exchange, &mut slots, &mut memory));
        used.map_err(|error| refused(exchange, During::Update, &error))?;
    }
    for piece in [&copy, &arena, &state] {
        piece.intact().map_err(|what| {
            exchange.record(&Record::Corrupted { what });
            exit::CORRUPTED
        })?;
    }
    Ok(())
}

/// Arena and state.
type Memory = (&'static mut [u8], &'static mut [u8]);

/// Uses the model that counts, if it passes its self-test: one on trial is confirmed then, and gives way to the one before otherwise.
fn use_one(exchange: &mut Exchange, slots: &mut Kept<'_>, memory: &mut Memory) -> Result<(), SlotError> {
    loop {
        let tested = tested(&slots.model()?, memory);
        let trial = slots.on_trial();
        match tested {
            Err(_) if trial => slots.roll_back()?,
            Err(error) => return Err(error),
            Ok(tests) => {
                exchange.record(&in_use(slots, tests)?);
                if trial {
                    slots.confirm()?;
                    exchange.record(&in_use(slots, tests)?);
                }
                return Ok(());
            }
        }
    }
}

/// Runs a model's self-test; gives the number of its runs.
fn tested(model: &Model<'_, Linked>, (arena, state): &mut Memory) -> Result<u32, SlotError> {
    // Less than it needs is told by the session.
    let state = state.get_mut(..model.state_bytes()).unwrap_or_default();
    model.self_test_with(&mut **arena, state).map_err(SlotError::SelfTest)
}

fn in_use(slots: &Kept<'_>, tests: u32) -> Result<Record<'static>, SlotError> {
    Ok(Record::InUse {
        slot: slots.active().ok_or(SlotError::Empty)?,
        trial: slots.on_trial(),
        counter: slots.counter().ok_or(SlotError::Empty)?,
        tests,
    })
}

/// Writes the file of inputs to the slot that is not in use.
fn write(exchange: &mut Exchange, slots: &mut Kept<'_>, memory: &mut Memory, length: u32) -> Result<(), i32> {
    let begun = slots.begin(length);
    let mut update = begun.map_err(|error| refused(exchange, During::Update, &error))?;
    let mut bytes = 0;
    while bytes < length {
        exchange.record(&Record::Writing { bytes });
        let mut piece = [0; PIECE as usize];
        let piece = piece.get_mut(..PIECE.min(length - bytes) as usize).unwrap_or_default();
        let read = exchange.read_input(piece);
        read.map_err(|error| file_failed(exchange, error))?;
        let written = slots.write(&mut update, piece);
        written.map_err(|error| refused(exchange, During::Update, &error))?;
        bytes += piece.len() as u32;
    }
    exchange.record(&Record::Writing { bytes });
    let finished = slots.finish_after(update, |model| tested(model, memory));
    let tests = finished.map_err(|error| refused(exchange, During::Update, &error))?;
    exchange.record(&Record::Written { tests });
    Ok(())
}
