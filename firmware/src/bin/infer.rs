//! Runs any blob on any inputs, as often as asked, and reports outputs, instruction counts and memory high-water marks.
//!
//! The blob is in memory when the program starts; everything else goes through the [`Exchange`]. Counted intervals hold calls
//! of the runtime and nothing else.
#![no_std]
#![no_main]

use core::slice;

use arenite::{MAX_REGIONS, Progress, Session};
use arenite_firmware::answers::{answer, file_failed, out_of_memory, refused};
use arenite_firmware::counter::Counter;
use arenite_firmware::exchange::Exchange;
use arenite_firmware::linked::{self, Linked};
use arenite_firmware::memory::{self, Areas, Piece};
use arenite_firmware::protocol::{Command, DumpEntry, During, Guarded, Infer, Purpose, Record, exit};
use arenite_firmware::stack;

arenite_firmware::entry!(main);

fn main(exchange: &mut Exchange) -> i32 {
    let served = |command| match command {
        Command::Infer(request) => Some(request),
        _ => None,
    };
    answer(exchange, served, infer)
}

/// Carries out the request; an error is the exit status of what has been recorded.
fn infer(exchange: &mut Exchange, request: &Infer) -> Result<(), i32> {
    let blob_range = (request.blob_address as usize, request.blob_length as usize);
    let blob = blob(blob_range);
    let guard = || if request.guard_blob { memory::sum(blob) } else { 0 };
    let before = guard();

    let meter = Meter::start();
    let mut loaded = None;
    let cost = meter.measure(true, &mut || loaded = Some(linked::load(blob)));
    let model = match loaded {
        Some(Ok(model)) => model,
        Some(Err(error)) => {
            defmt::error!("load: {}", error);
            return Err(refused(exchange, During::Load, &error));
        }
        None => return Err(exit::REFUSED),
    };
    let header = model.header();
    #[cfg(accelerator)]
    let hands_over = model.accelerator().is_some();
    let arena_bytes = (0..MAX_REGIONS).map(|region| model.arena_bytes(region) as u64).sum();
    exchange.record(&Record::Loaded {
        instructions: cost.instructions,
        stack: cost.stack,
        steps: header.step_count,
        input_bytes: header.input_bytes.into(),
        output_bytes: header.output_bytes.into(),
        arena_bytes,
        state_bytes: model.state_bytes() as u64,
    });
    defmt::info!(
        "loaded {} steps, arena {} bytes, state {} bytes",
        header.step_count,
        arena_bytes,
        model.state_bytes()
    );

    let given = exchange.input_length();
    if given != u64::from(header.input_bytes) * u64::from(request.runs) {
        let (runs, each) = (request.runs, header.input_bytes.into());
        exchange.record(&Record::InputSize { runs, each, given });
        return Err(exit::REFUSED);
    }

    // SAFETY: called once a program.
    let mut areas = unsafe { Areas::new(blob_range) };
    let mut take = |bytes, purpose| areas.take(bytes, purpose).map_err(|none| out_of_memory(exchange, none));
    let mut arenas: [Option<Piece>; MAX_REGIONS] = [const { None }; MAX_REGIONS];
    for (region, piece) in arenas.iter_mut().enumerate() {
        if model.arena_bytes(region) > 0 {
            *piece = Some(take(model.arena_bytes(region), Purpose::Arena)?);
        }
    }
    let state = take(model.state_bytes(), Purpose::State)?;

    let slices = arenas.each_ref().map(|piece| {
        // SAFETY: the pieces were just taken, and each gives its bytes once.
        piece.as_ref().map_or(&mut [][..], |piece| unsafe { piece.bytes() })
    });
    // SAFETY: the piece was just taken, and gives its bytes once.
    let session = Session::new(model, slices, unsafe { state.bytes() });
    let mut session = session.map_err(|error| refused(exchange, During::Session, &error))?;

    #[cfg(smp)]
    // SAFETY: called once a program, on the first core.
    let mut cores = unsafe { arenite_firmware::cores::All::wake() };
    #[cfg(all(accelerator, feature = "second"))]
    // SAFETY: called once a program, on the first core.
    let mut accelerator = unsafe { arenite_firmware::second::Second::wake() };
    #[cfg(all(accelerator, feature = "sme"))]
    let mut accelerator = arenite_firmware::sme::Sme::find();
    let mut deepest = 0;
    let mut next_place = if request.dump_steps {
        exchange.next_place()
    } else {
        None
    };
    for run in 0..request.runs {
        if request.reset_each {
            session.reset_state();
        }
        // Which way a kernel takes does not depend on the data, so neither does the stack; painting it costs more than a
        // small network's run.
        let watch_stack = run == 0;
        // Rows are those of a new run.
        #[cfg(feature = "rolling")]
        session.restart();
        #[cfg_attr(not(feature = "rolling"), allow(unused_mut))]
        let mut of_rows = 0;
        for index in 0..usize::from(header.inputs) {
            #[cfg(feature = "rolling")]
            if let Some((bytes, rows)) = session.model().rows_of_input(index) {
                let cost = feed(exchange, &mut session, (index, bytes, rows), (&meter, watch_stack))?;
                of_rows += cost.instructions;
                deepest = deepest.max(cost.stack);
                continue;
            }
            let input = session
                .input_mut(index)
                .map_err(|error| refused(exchange, During::Run, &error))?;
            exchange
                .read_input(input)
                .map_err(|error| file_failed(exchange, error))?;
        }
        let instructions = if request.profile || next_place.is_some() {
            run_stepwise(
                exchange,
                &mut session,
                &meter,
                watch_stack,
                &mut deepest,
                &mut next_place,
            )?
        } else {
            let mut result = Ok(());
            #[cfg(smp)]
            let cost = meter.measure(watch_stack, &mut || result = session.run_on(&mut cores));
            #[cfg(accelerator)]
            let cost = if hands_over {
                meter.measure(watch_stack, &mut || result = session.run_accelerated(&mut accelerator))
            } else {
                meter.measure(watch_stack, &mut || result = alone(&mut session))
            };
            #[cfg(not(any(smp, accelerator)))]
            let cost = meter.measure(watch_stack, &mut || result = alone(&mut session));
            result.map_err(|error| refused(exchange, During::Run, &error))?;
            deepest = deepest.max(cost.stack);
            cost.instructions
        };
        for index in 0..usize::from(header.outputs) {
            let output = session
                .output(index)
                .map_err(|error| refused(exchange, During::Run, &error))?;
            exchange
                .write_output(output)
                .map_err(|error| file_failed(exchange, error))?;
        }
        exchange.record(&Record::Ran {
            instructions: instructions + of_rows,
        });
    }

    let pieces = arenas.iter().flatten();
    let touched = pieces.clone().map(Piece::touched).sum();
    for piece in pieces.chain([&state]) {
        piece.intact().map_err(|what| corrupted(exchange, what))?;
    }
    if guard() != before {
        return Err(corrupted(exchange, Guarded::Blob));
    }
    exchange.record(&Record::Finished {
        stack: deepest,
        arena_touched: touched,
    });
    Ok(())
}

/// The largest row that is fed, in bytes; it lies on the stack.
#[cfg(feature = "rolling")]
const MOST_ROW: usize = if cfg!(feature = "small-flash") { 512 } else { 2048 };

/// Feeds all rows of an input, so many of so many bytes: what the runtime takes for them, and for what it makes of them.
#[cfg(feature = "rolling")]
#[inline(never)]
fn feed(
    exchange: &mut Exchange,
    session: &mut Session<'_, '_, Linked>,
    (index, bytes, rows): (usize, usize, usize),
    (meter, watch_stack): (&Meter, bool),
) -> Result<Cost, i32> {
    let mut place = [0; MOST_ROW];
    let mut whole = Cost {
        instructions: 0,
        stack: 0,
    };
    let row = place.get_mut(..bytes).unwrap_or_default();
    for _ in 0..rows {
        exchange.read_input(row).map_err(|error| file_failed(exchange, error))?;
        let mut result = Ok(0);
        let cost = meter.measure(watch_stack, &mut || result = session.feed_rows(index, row));
        result.map_err(|error| refused(exchange, During::Run, &error))?;
        whole.instructions += cost.instructions;
        whole.stack = whole.stack.max(cost.stack);
    }
    Ok(whole)
}

/// A run on the core alone. Beside one with an accelerator it is not inlined, nor is it in the program that the table of stacks is made of.
#[cfg(not(smp))]
#[cfg_attr(feature = "sme", inline(never))]
#[cfg_attr(not(feature = "sme"), inline(always))]
fn alone(session: &mut Session<'_, '_, Linked>) -> Result<(), arenite::RunError> {
    session.run()
}

/// One run, every step counted by itself; returns the sum.
fn run_stepwise(
    exchange: &mut Exchange,
    session: &mut Session<'_, '_, Linked>,
    meter: &Meter,
    watch_stack: bool,
    deepest: &mut u32,
    next_place: &mut Option<DumpEntry>,
) -> Result<u64, i32> {
    let mut total = 0;
    for index in 0.. {
        let mut progress = Ok(Progress::Done);
        let cost = meter.measure(watch_stack, &mut || progress = session.step());
        let progress = progress.map_err(|error| refused(exchange, During::Run, &error))?;
        exchange.record(&Record::Step {
            index,
            instructions: cost.instructions,
        });
        total += cost.instructions;
        *deepest = (*deepest).max(cost.stack);
        while let Some(place) = next_place.filter(|place| place.step == index) {
            let slot = arenite::Slot {
                region: place.region as u8,
                offset: place.offset,
            };
            let bytes = session.read(slot, place.length).unwrap_or_default();
            exchange
                .write_dump(bytes)
                .map_err(|error| file_failed(exchange, error))?;
            *next_place = exchange.next_place();
        }
        if progress == Progress::Done {
            break;
        }
    }
    Ok(total)
}

/// Counts instructions and stack bytes of the runtime alone: the meter's own are measured once and subtracted.
struct Meter {
    counter: Counter,
    own_stack: u32,
}

struct Cost {
    instructions: u64,
    stack: u32,
}

impl Meter {
    fn start() -> Self {
        let mut meter = Self {
            counter: Counter::start(),
            own_stack: 0,
        };
        meter.own_stack = meter.measure(true, &mut || ()).stack;
        meter
    }

    fn measure(&self, watch_stack: bool, work: &mut dyn FnMut()) -> Cost {
        let mut interval = None;
        let mut time = || interval = Some(Counter::time(work));
        let stack = if watch_stack {
            stack::high_water(&mut time).saturating_sub(self.own_stack)
        } else {
            time();
            0
        };
        let instructions = interval.map_or(0, |interval| self.counter.instructions(interval));
        Cost { instructions, stack }
    }
}

fn blob((address, length): (usize, usize)) -> &'static [u8] {
    // SAFETY: the host put the blob there, in memory that is not handed out to anything else.
    unsafe { slice::from_raw_parts(core::ptr::with_exposed_provenance(address), length) }
}

fn corrupted(exchange: &mut Exchange, what: Guarded) -> i32 {
    exchange.record(&Record::Corrupted { what });
    exit::CORRUPTED
}
