//! Lets a language model write: the prompt in, text out as it comes, and the instructions of each run of the model.
//!
//! The blob is in memory when the program starts. Counted intervals hold runs of the model and nothing else.
#![no_std]
#![no_main]

use core::slice;

use arenite::text::{Ended, Generated, Sampler, Stop, TextError, Tokenizer, context, generate_with};
use arenite::{MAX_REGIONS, RunError, Session};
use arenite_firmware::answers::{answer, file_failed, out_of_memory, refused};
use arenite_firmware::counter::Counter;
use arenite_firmware::exchange::Exchange;
use arenite_firmware::linked::{self, Linked};
use arenite_firmware::memory::{Areas, Piece};
use arenite_firmware::protocol::{self, Command, During, Generate, Purpose, Record, exit};
use arenite_firmware::stack;

arenite_firmware::entry!(main);

/// Tokens beside those of the prompt's bytes: the one that begins a text, and the space in front.
const BESIDE: usize = 4;

fn main(exchange: &mut Exchange) -> i32 {
    let served = |command| match command {
        Command::Generate(request) => Some(request),
        _ => None,
    };
    answer(exchange, served, write)
}

/// Carries out the request; an error is the exit status of what has been recorded.
fn write(exchange: &mut Exchange, request: &Generate) -> Result<(), i32> {
    let blob_range = (request.blob_address as usize, request.blob_length as usize);
    // SAFETY: the host put the blob there, in memory that is not handed out to anything else.
    let blob: &'static [u8] =
        unsafe { slice::from_raw_parts(core::ptr::with_exposed_provenance(blob_range.0), blob_range.1) };
    let model = linked::load(blob).map_err(|error| refused(exchange, During::Load, &error))?;
    let header = model.header();
    exchange.record(&Record::Loaded {
        instructions: 0,
        stack: 0,
        steps: header.step_count,
        input_bytes: header.input_bytes.into(),
        output_bytes: header.output_bytes.into(),
        arena_bytes: (0..MAX_REGIONS).map(|region| model.arena_bytes(region) as u64).sum(),
        state_bytes: model.state_bytes() as u64,
    });
    let tokenizer = Tokenizer::of(&model).map_err(|error| refused(exchange, During::Load, &error))?;

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
    let [prompt, stop] = [request.prompt, request.stop].map(|bytes| bytes as usize);
    let texts = take(prompt + stop, Purpose::Arena)?;
    let turn = tokenizer.turn_tokens(prompt).filter(|_| request.chat);
    let room = turn
        .unwrap_or(prompt.saturating_add(BESIDE))
        .saturating_mul(size_of::<u32>());
    let room = take(room, Purpose::Arena)?;

    // SAFETY: the piece was just taken, and gives its bytes once.
    let texts = unsafe { texts.bytes() };
    exchange
        .read_input(texts)
        .map_err(|error| file_failed(exchange, error))?;
    let (prompt, stop) = texts.split_at(prompt);
    // SAFETY: once for this piece; every pattern is a word, and what does not begin or end as one is left out.
    let (_, room, _) = unsafe { room.bytes().align_to_mut::<u32>() };
    let encoded = if request.chat {
        tokenizer.encode_turn(prompt, room)
    } else {
        tokenizer.encode(prompt, room)
    };
    let prompt = encoded.map_err(|error| refused(exchange, During::Run, &error))?;

    let slices = arenas.each_ref().map(|piece| {
        // SAFETY: the pieces were just taken, and each gives its bytes once.
        piece.as_ref().map_or(&mut [][..], |piece| unsafe { piece.bytes() })
    });
    // SAFETY: the piece was just taken, and gives its bytes once.
    let session = Session::new(model, slices, unsafe { state.bytes() });
    let mut session = session.map_err(|error| refused(exchange, During::Session, &error))?;
    let room = context(session.model()).unwrap_or(u32::MAX);
    defmt::info!("{} tokens of prompt, context {}", prompt.len(), room);

    let mut sampler = Sampler::seeded(f32::from_bits(request.temperature), request.seed)
        .top_k(request.top_k)
        .top_p(f32::from_bits(request.top_p));
    let (written, deepest) = generated(
        exchange,
        &mut session,
        &tokenizer,
        prompt,
        (request, stop),
        &mut sampler,
    )?;
    let touched = arenas.iter().flatten().map(Piece::touched).sum();
    for piece in arenas.iter().flatten().chain([&state]) {
        piece.intact().map_err(|what| {
            exchange.record(&Record::Corrupted { what });
            exit::CORRUPTED
        })?;
    }
    exchange.record(&Record::Generated {
        tokens: written.tokens,
        ended: match written.ended {
            Ended::Tokens => protocol::Ended::Tokens,
            Ended::Model => protocol::Ended::Model,
            Ended::Context => protocol::Ended::Context,
            Ended::Caller => protocol::Ended::Stop,
        },
    });
    exchange.record(&Record::Finished {
        stack: deepest,
        arena_touched: touched,
    });
    Ok(())
}

/// Text, token by token; what was written, and the deepest stack of a run.
fn generated(
    exchange: &mut Exchange,
    session: &mut Session<'_, '_, Linked>,
    tokenizer: &Tokenizer<'_>,
    prompt: &[u32],
    (request, stop): (&Generate, &[u8]),
    sampler: &mut Sampler,
) -> Result<(Generated, u32), i32> {
    let (counter, mut own, mut deepest) = (Counter::start(), None, 0);
    let exchange = core::cell::RefCell::new(exchange);
    let mut run = |session: &mut Session<'_, '_, Linked>| -> Result<(), RunError> {
        let mut measure = |work: &mut dyn FnMut()| {
            let mut interval = None;
            let stack = stack::high_water(&mut || interval = Some(Counter::time(work)));
            (interval.map_or(0, |interval| counter.instructions(interval)), stack)
        };
        let empty = *own.get_or_insert_with(|| measure(&mut || ()).1);
        let mut result = Ok(());
        let (instructions, stack) = measure(&mut || result = session.run());
        deepest = stack.saturating_sub(empty).max(deepest);
        result?;
        exchange.borrow_mut().record(&Record::Ran { instructions });
        Ok(())
    };
    let (mut failed, mut end) = (None, Stop::at(stop));
    let mut give = |bytes: &[u8]| {
        if failed.is_none() {
            failed = exchange.borrow_mut().write_output(bytes).err();
        }
    };
    let each = &mut |text: &[u8]| !end.push(text, &mut give);
    let written = generate_with(session, tokenizer, prompt, request.tokens, sampler, &mut run, each);
    if written.is_ok_and(|written| written.ended != Ended::Caller) {
        end.finish(&mut give);
    }
    let exchange = exchange.into_inner();
    if let Some(error) = failed {
        return Err(file_failed(exchange, error));
    }
    match written {
        Ok(written) => Ok((written, deepest)),
        Err(TextError::Run(error)) => Err(refused(exchange, During::Run, &error)),
        Err(error) => Err(refused(exchange, During::Run, &error)),
    }
}
