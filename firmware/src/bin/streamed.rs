//! Runs a model in pieces from the flash at the board's serial bus, and reports as the program for models in memory does: of each piece what it took to read,
//! to check and to run it.
#![no_std]
#![no_main]

use arenite::Progress;
use arenite_firmware::answers::{answer, file_failed, out_of_memory, refused};
use arenite_firmware::counter::Counter;
use arenite_firmware::exchange::Exchange;
use arenite_firmware::linked::Linked;
use arenite_firmware::memory::Areas;
use arenite_firmware::protocol::{Command, During, Infer, Purpose, Record, exit};
use arenite_firmware::spi::Spi;
use arenite_firmware::{SPI_FLASH_BYTES, SPI_FLASH_ID};
use arenite_stream::{Chip, NorFlash, Stream};

arenite_firmware::entry!(main);

const CHIP: Chip = Chip {
    id: SPI_FLASH_ID,
    bytes: SPI_FLASH_BYTES,
    polls: 1000,
};

type Network<'b> = Stream<'b, NorFlash<Spi>, Linked>;

fn main(exchange: &mut Exchange) -> i32 {
    let served = |command| match command {
        Command::Infer(request) => Some(request),
        _ => None,
    };
    answer(exchange, served, infer)
}

/// Carries out the request, whose model lies at that address of the flash; an error is the exit status of what has been recorded.
fn infer(exchange: &mut Exchange, request: &Infer) -> Result<(), i32> {
    // SAFETY: called once a program.
    let spi = unsafe { Spi::start() };
    let mut flash = NorFlash::open(spi, CHIP).map_err(|error| refused(exchange, During::Load, &error))?;
    let start = u32::try_from(request.blob_address).unwrap_or(u32::MAX);
    let sizes = Network::sizes(&mut flash, start).map_err(|error| refused(exchange, During::Load, &error))?;

    // SAFETY: called once a program.
    let mut areas = unsafe { Areas::new((0, 0)) };
    let mut take = |bytes: u32| {
        let piece = areas.take(bytes as usize, Purpose::Arena);
        piece.map_err(|none| out_of_memory(exchange, none))
    };
    let (arena, buffer) = (take(sizes.arena)?, take(sizes.buffer)?);
    // SAFETY: each piece was just taken, and gives its bytes once.
    let (arena_bytes, buffer_bytes) = unsafe { (arena.bytes(), buffer.bytes()) };

    let counter = Counter::start();
    let before = flash.device().bytes();
    let mut opened = None;
    // The parts that open it are moved into it.
    let mut parts = Some((flash, arena_bytes, buffer_bytes));
    let instructions = counter.count(&mut || {
        opened = parts
            .take()
            .map(|(flash, arena, buffer)| Network::open(flash, start, buffer, arena));
    });
    let mut network = match opened {
        Some(Ok(network)) => network,
        Some(Err(error)) => return Err(refused(exchange, During::Load, &error)),
        None => return Err(exit::REFUSED),
    };
    let moved = |network: &Network<'_>| network.source().device().bytes();
    let mut after = moved(&network);
    defmt::info!("opened: {} bytes over the bus", after - before);
    let [inputs, outputs] = network.ports();
    let given = exchange.input_length();
    let each = inputs.bytes.into();
    exchange.record(&Record::Loaded {
        instructions,
        stack: 0,
        steps: sizes.pieces,
        input_bytes: each,
        output_bytes: outputs.bytes.into(),
        arena_bytes: sizes.arena.into(),
        state_bytes: 0,
    });
    if given != each * u64::from(request.runs) {
        let runs = request.runs;
        exchange.record(&Record::InputSize { runs, each, given });
        return Err(exit::REFUSED);
    }

    for _ in 0..request.runs {
        for index in 0..inputs.count {
            let read = network.fill_input(index.into(), |bytes| exchange.read_input(bytes));
            match read {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(file_failed(exchange, error)),
                Err(error) => return Err(refused(exchange, During::Run, &error)),
            }
        }
        let (mut total, mut done) = (0, false);
        let mut index = 0;
        while !done {
            let mut progress = Ok(Progress::Done);
            let instructions = counter.count(&mut || progress = network.step());
            done = progress.map_err(|error| refused(exchange, During::Run, &error))? == Progress::Done;
            if request.profile {
                exchange.record(&Record::Step { index, instructions });
            }
            (index, total) = (index + 1, total + instructions);
        }
        for index in 0..outputs.count {
            let written = network.show_output(index.into(), |bytes| exchange.write_output(bytes));
            match written {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(file_failed(exchange, error)),
                Err(error) => return Err(refused(exchange, During::Run, &error)),
            }
        }
        let now = moved(&network);
        defmt::info!("a run: {} bytes over the bus", now - after);
        after = now;
        exchange.record(&Record::Ran { instructions: total });
    }
    for piece in [&arena, &buffer] {
        piece.intact().map_err(|what| {
            exchange.record(&Record::Corrupted { what });
            exit::CORRUPTED
        })?;
    }
    exchange.record(&Record::Finished {
        stack: 0,
        arena_touched: arena.touched(),
    });
    Ok(())
}
