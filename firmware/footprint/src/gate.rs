//! Everything that a program can call of the runtime, for its symbols alone: `tests/tests/programs/panics.rs` builds it for every target and finds nothing
//! of the panic machinery. It is never run. With the feature `embedded-model` it links the kernels of `ARENITE_MODEL`, else all of the build.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::hint::black_box;

use embedded_storage::nor_flash::{ErrorType, NorFlash, NorFlashErrorKind, ReadNorFlash};

use arenite::cycles::CycleCounter;
use arenite::slots::{Layout, MappedFlash, Slots, Unsigned};
use arenite::{Bundle, CrcUnit, Error, Header, Model, Receipt, Session, Slot};

#[cfg(not(feature = "embedded-model"))]
use arenite::All as Set;
#[cfg(feature = "embedded-model")]
use model::Kernels as Set;

#[cfg(feature = "embedded-model")]
arenite::include_model!(mod model = env!("ARENITE_MODEL"), loaded);
#[cfg(feature = "embedded-model")]
arenite::include_model!(mod compiled = env!("ARENITE_MODEL"));

/// Memory that only `_start` uses.
#[repr(C, align(16))]
struct StaticCell(UnsafeCell<[u8; 4096]>);
// SAFETY: one thread of execution, and `_start` borrows each once.
unsafe impl Sync for StaticCell {}

static FILE: StaticCell = StaticCell(UnsafeCell::new([0; 4096]));
static ARENA: StaticCell = StaticCell(UnsafeCell::new([0; 4096]));
static STATE: StaticCell = StaticCell(UnsafeCell::new([0; 4096]));
static FLASH: StaticCell = StaticCell(UnsafeCell::new([0; 4096]));

/// Memory of a content and length that the compiler does not know.
fn memory(memory: &'static StaticCell) -> &'static mut [u8] {
    // SAFETY: `_start` asks for each once.
    let bytes = unsafe { &mut *memory.0.get() };
    let len = black_box(bytes.len()).min(bytes.len());
    black_box(bytes.split_at_mut_checked(len).map_or(&mut [], |(bytes, _)| bytes))
}

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let (file, arena, state) = (memory(&FILE), memory(&ARENA), memory(&STATE));
    let done = [
        single(file, arena, state),
        bundled(file),
        typed(file, arena),
        updated(memory(&FLASH), arena),
        compiled(arena, state),
    ];
    for result in &done {
        if let Err(error) = result {
            black_box(error.code());
        }
    }
    loop {
        black_box(&done);
    }
}

/// A model with state, in two sessions: one from the start, one that goes on.
fn single(file: &[u8], arena: &mut [u8], state: &mut [u8]) -> Result<(), Error> {
    let model = Model::<Set>::load_with(file)?;
    let index = black_box(0);
    black_box((model.arena_bytes(index), model.state_bytes(), model.target_name()));
    black_box((model.input(index), model.output(index), model.metadata()));
    black_box(model.steps().count());
    #[cfg(feature = "verify")]
    black_box(verified(file));
    black_box(Header::parse(file)?);
    let receipt = Receipt::from_bytes(black_box(Receipt::of(file)?.to_bytes()));
    if let Some(receipt) = receipt {
        black_box(Model::<Set>::load_receipt_with(file, &receipt)?.steps());
    }
    black_box(Model::<Set>::load_crc_with(file, &mut Unit)?.steps());
    let mut session = Session::new(model, &mut *arena, &mut *state)?;
    session.input_mut(index)?.fill(1);
    session.run()?;
    black_box(session.output(index)?);
    let mut session = Session::resume(model, arena, state)?;
    session.set_input(index, black_box(&[0; 4]))?;
    session.run_with(|step| {
        black_box(step);
    })?;
    black_box(session.step()?);
    black_box(session.run_counted(Ticks, |step, cycles| {
        black_box((step, cycles));
    })?);
    black_box(session.memory_report());
    black_box(session.read(black_box(Slot::default()), black_box(4)));
    session.reset_state();
    Ok(())
}

/// A session of a compiled model.
#[cfg(feature = "embedded-model")]
fn compiled(arena: &mut [u8], state: &mut [u8]) -> Result<(), Error> {
    let mut session = compiled::open_in(arena, state)?;
    let index = black_box(0);
    session.set_input(index, black_box(&[0; 4]))?;
    session.input_mut(index)?.fill(1);
    session.set_values(index, black_box(&[1i8; 3]))?;
    session.run()?;
    session.run_with(|step| {
        black_box(step);
    })?;
    black_box(session.step()?);
    black_box(session.run_counted(Ticks, |step, cycles| {
        black_box((step, cycles));
    })?);
    black_box((session.output(index)?, session.values::<f32>(index)?.len()));
    session.reset_state();
    black_box(compiled::self_test(&mut session)?);
    black_box(compiled::verify_weights());
    #[cfg(target_has_atomic = "8")]
    black_box(compiled::session().map(|mut session| session.step().is_ok()));
    Ok(())
}

/// A program without a model compiles none.
#[cfg(not(feature = "embedded-model"))]
fn compiled(_: &mut [u8], _: &mut [u8]) -> Result<(), Error> {
    Ok(())
}

/// A counter of a chip.
struct Ticks;

impl CycleCounter for Ticks {
    fn cycles(&mut self) -> u64 {
        black_box(1)
    }
}

/// An update in the slots of a flash.
fn updated(memory: &mut [u8], arena: &mut [u8]) -> Result<(), Error> {
    let layout = Layout {
        slots: [0..1024, 1024..2048],
        journal: 2048..4096,
        trials: 3,
    };
    let mut slots = Slots::<_, _, Set>::open_with(Flash(memory), black_box(layout), Unsigned)?;
    slots.confirm()?;
    let mut update = slots.begin(black_box(100))?;
    slots.write(&mut update, black_box(&[1; 9]))?;
    black_box(slots.finish(update, arena, &mut [])?);
    slots.roll_back()?;
    slots.start()?;
    black_box((
        slots.active(),
        slots.counter(),
        slots.on_trial(),
        slots.model()?.header(),
    ));
    Ok(())
}

/// A flash that is memory, whose driver cannot panic either.
struct Flash<'a>(&'a mut [u8]);

impl Flash<'_> {
    fn put(&mut self, from: u32, bytes: impl Iterator<Item = u8>) {
        let places = self.0.iter_mut().skip(from as usize);
        places.zip(bytes).for_each(|(to, from)| *to = from);
    }
}

impl ErrorType for Flash<'_> {
    type Error = NorFlashErrorKind;
}

impl ReadNorFlash for Flash<'_> {
    const READ_SIZE: usize = 4;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error> {
        let places = self.0.iter().skip(offset as usize);
        bytes.iter_mut().zip(places).for_each(|(to, from)| *to = *from);
        black_box(Ok(()))
    }

    fn capacity(&self) -> usize {
        self.0.len()
    }
}

impl NorFlash for Flash<'_> {
    const WRITE_SIZE: usize = 8;
    const ERASE_SIZE: usize = 1024;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Self::Error> {
        self.put(from, (from..to).map(|_| 0xFF));
        black_box(Ok(()))
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Self::Error> {
        self.put(offset, bytes.iter().copied());
        black_box(Ok(()))
    }
}

impl MappedFlash for Flash<'_> {
    fn mapped(&self, offset: u32, bytes: u32) -> Option<&[u8]> {
        self.0.get(offset as usize..)?.get(..bytes as usize)
    }
}

/// A unit of a chip.
struct Unit;

impl CrcUnit for Unit {
    fn crc32(&mut self, pieces: [&[u8]; 2]) -> u32 {
        black_box(pieces);
        black_box(0)
    }
}

/// Numbers in and out, as the module of an embedded model does it, in the forms that it may have.
fn typed(file: &[u8], arena: &mut [u8]) -> Result<(), Error> {
    let mut session = Session::new(Model::<Set>::load_with(file)?, arena, &mut [])?;
    let numbers = black_box(&[1.0f32, 2.0, 3.0]);
    let output: &[i8; 4] = arenite::typed::run(&mut session, numbers)?;
    let [(class, score), (second, _)] = arenite::top(output);
    black_box((class, score, second));
    let outputs: (&[u8; 2], &[i32; 3]) = arenite::typed::run(&mut session, (numbers, &[1i16; 5]))?;
    black_box(outputs);
    black_box(session.values::<f32>(black_box(0))?);
    #[cfg(feature = "embedded-model")]
    for port in model::INPUTS.iter().chain(&model::OUTPUTS) {
        let stored: i8 = port.quantize(black_box(0.5));
        black_box((port.shape(), port.dequantize(stored), port.quantize::<i64>(1.5)));
    }
    #[cfg(all(feature = "embedded-model", target_has_atomic = "8"))]
    black_box(model::session()?.step()?);
    Ok(())
}

/// A signed file, whose model was checked above.
#[cfg(feature = "verify")]
fn verified(file: &[u8]) -> Result<usize, arenite::VerifyError> {
    let trust = arenite::Trust {
        keys: black_box(&[(1, [2; 32])]),
        at_least: black_box(3),
    };
    let verified = arenite::verify(file, &trust)?;
    Ok(verified.content.len() + Bundle::open_verified(file, &trust)?.len())
}

/// A model out of several.
fn bundled(file: &[u8]) -> Result<(), Error> {
    let bundle = Bundle::open(file)?;
    let index = black_box(1);
    black_box(bundle.entry(index).map(|entry| entry.name));
    black_box((bundle.len(), bundle.arena_bytes(index)));
    // Bundles link all kernels; a program of fewer loads their entries itself.
    #[cfg(not(feature = "embedded-model"))]
    black_box(bundle.load(index)?.header());
    Ok(())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
