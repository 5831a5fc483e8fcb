//! A model that tests itself after it was loaded and runs between canaries, as a product's firmware would: the self-test, what canaries and marks cost, and
//! that a stray write is seen. With the feature `events`, sessions log what they do, and what memory the last one took is logged as well.
//!
//! `ARENITE_MODEL` names a file packed with `--self-test`.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::hint::black_box;

use arenite::Session;
use arenite::guard::{Marks, Overrun, guarded_bytes};
use arenite_firmware::protocol::exit;
use arenite_firmware::{Exchange, counter::Counter};

arenite_firmware::entry!(main);

arenite::include_model!(mod monitored = env!("ARENITE_MODEL"), loaded);

const ARENA: usize = guarded_bytes(monitored::ARENA_BYTES);
const STATE: usize = guarded_bytes(monitored::STATE_BYTES);

/// Memory that only `main` uses.
#[repr(C, align(16))]
struct Memory<T>(UnsafeCell<T>);
// SAFETY: one thread of execution, and `main` borrows each once.
unsafe impl<T> Sync for Memory<T> {}

static ARENA_BYTES: Memory<[u8; ARENA]> = Memory(UnsafeCell::new([0; ARENA]));
static STATE_BYTES: Memory<[u8; STATE]> = Memory(UnsafeCell::new([0; STATE]));

fn main(_: &mut Exchange) -> i32 {
    // SAFETY: `main` runs once, and these are the only references to both.
    let (arena, state) = unsafe { (&mut *ARENA_BYTES.0.get(), &mut *STATE_BYTES.0.get()) };
    match monitor(arena, state) {
        Ok(()) => exit::DONE,
        Err(code) => {
            defmt::error!("code {=u32:#010x}", code);
            exit::REFUSED
        }
    }
}

/// Logs: runs of the self-test; instructions of opening a session plainly and guarded, of a check, of reading the marks; the marks of the arena.
fn monitor(arena: &mut [u8], state: &mut [u8]) -> Result<(), u32> {
    let model = monitored::load().map_err(|error| error.code())?;
    let own = state.get_mut(..monitored::STATE_BYTES).unwrap_or_default();
    let runs = model.self_test_with(&mut *arena, own).map_err(|error| error.code())?;

    let counter = Counter::start();
    let own = state.get_mut(..monitored::STATE_BYTES).unwrap_or_default();
    let (mut plain, mut guarded) = (None, None);
    let mut memory = Some((&mut *arena, own));
    let opened = counter.count(&mut || plain = memory.take().map(|(arena, state)| Session::new(model, arena, state)));
    black_box(plain.is_some_and(|session| session.is_ok()));
    let end = arena.as_mut_ptr_range().end;
    let mut memory = Some((arena, state));
    let opened_guarded = counter.count(&mut || {
        guarded = memory
            .take()
            .map(|(arena, state)| Session::guarded(model, arena, state))
    });
    let (mut session, guard) = guarded.ok_or(0u32)?.map_err(|error| error.code())?;
    for index in 0..usize::from(model.header().inputs) {
        session.input_mut(index).map_err(|error| error.code())?.fill(1);
    }
    session.run().map_err(|error| error.code())?;
    let mut intact = Ok(());
    let check = counter.count(&mut || intact = black_box(&guard).check());
    intact.map_err(|error| error.code())?;
    let mut marks = Marks::default();
    let marking = counter.count(&mut || marks = session.marks());
    defmt::info!(
        "{=u32} {=u64} {=u64} {=u64} {=u64} {=u32}",
        runs,
        opened,
        opened_guarded,
        check,
        marking,
        marks.arena[0]
    );
    #[cfg(feature = "events")]
    defmt::info!("{}", session.memory_report().with_marks(marks));

    // SAFETY: none: this is the stray write, into the last byte of the canary, that the check must show.
    unsafe { end.sub(1).write_volatile(0) };
    match guard.check() {
        Err(Overrun::Arena { region: 0 }) => Ok(()),
        _ => Err(u32::MAX),
    }
}
