//! A model in both forms: compiled, and loaded. Their outputs are the same bytes, as are their refusals of an index; what both take is counted.
//!
//! `ARENITE_MODEL` names the packed model when this is built.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;

use arenite::{DType, Progress, RunError};
use arenite_firmware::protocol::exit;
use arenite_firmware::{Exchange, counter::Counter};

arenite_firmware::entry!(main);

arenite::include_model!(mod compiled = env!("ARENITE_MODEL"));
arenite::include_model!(mod loaded = env!("ARENITE_MODEL"), loaded);

/// Memory that only `main` uses.
struct Memory<T>(UnsafeCell<T>);
// SAFETY: one thread of execution, and `main` borrows each once.
unsafe impl<T> Sync for Memory<T> {}

static OURS: Memory<compiled::Memory> = Memory(UnsafeCell::new(compiled::Memory::new()));
static THEIRS: Memory<loaded::Memory> = Memory(UnsafeCell::new(loaded::Memory::new()));

/// Runs, of which the last one goes by steps.
const RUNS: u32 = 3;

fn main(_: &mut Exchange) -> i32 {
    // SAFETY: `main` runs once, and these are the only references to both.
    let (ours, theirs) = unsafe { (&mut *OURS.0.get(), &mut *THEIRS.0.get()) };
    match same(ours, theirs) {
        Ok(Some([opened, run, by_load])) => {
            defmt::info!("{=u64} {=u64} {=u64}", opened, run, by_load);
            exit::DONE
        }
        Ok(None) => exit::REFUSED,
        Err(error) => {
            defmt::error!("{}", error);
            exit::REFUSED
        }
    }
}

/// Instructions of opening the compiled model, of a run, and of a loaded one's run; `None` where outputs differ.
fn same(ours: &mut compiled::Memory, theirs: &mut loaded::Memory) -> Result<Option<[u64; 3]>, arenite::Error> {
    let model = loaded::load()?;
    let costs = model.costs().map(|cost| cost.total());
    if model.cost().total() != compiled::COST || !costs.eq(compiled::COSTS) {
        return Ok(None);
    }
    let counter = Counter::start();
    let (mut memory, mut session) = (Some(ours), None);
    let opened = counter.count(&mut || session = memory.take().map(compiled::open));
    let Some(mut ours) = session else { return Ok(None) };
    let mut theirs = loaded::open(theirs)?;
    let mut seed = 7;
    let (mut by_compiled, mut by_load) = (0, 0);
    for run in 0..RUNS {
        for (index, port) in compiled::INPUTS.iter().enumerate() {
            let input = ours.input_mut(index)?;
            fill(input, port.dtype, run as i32, &mut seed);
            theirs.set_input(index, input)?;
        }
        let mut result: Result<(), RunError> = Ok(());
        by_load = counter.count(&mut || result = theirs.run());
        result?;
        if run + 1 < RUNS {
            by_compiled = counter.count(&mut || result = ours.run());
            result?;
        } else {
            while let Progress::Step { .. } = ours.step()? {}
        }
        for index in 0..compiled::OUTPUTS.len() {
            if ours.output(index)? != theirs.output(index)? {
                return Ok(None);
            }
        }
    }
    // A token or a position that is none: the run is over for both, and the next one wants its inputs anew.
    for (index, port) in compiled::INPUTS.iter().enumerate() {
        let input = ours.input_mut(index)?;
        fill(input, port.dtype, i32::MAX, &mut seed);
        theirs.set_input(index, input)?;
    }
    let same = ours.run() == theirs.run() && ours.run() == theirs.run();
    Ok(same.then_some([opened, by_compiled, by_load]))
}

/// Numbers that follow from a seed; words are indices.
fn fill(input: &mut [u8], dtype: DType, index: i32, seed: &mut u32) {
    let mut next = || {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *seed >> 16
    };
    if dtype as u8 == DType::I32 as u8 {
        for word in input.as_chunks_mut().0 {
            *word = index.to_le_bytes();
        }
    } else if dtype as u8 == DType::F32 as u8 {
        for real in input.as_chunks_mut().0 {
            *real = (next() as f32 / 65536.0 - 0.25).to_le_bytes();
        }
    } else {
        input.iter_mut().for_each(|byte| *byte = (next() >> 8) as u8);
    }
}
