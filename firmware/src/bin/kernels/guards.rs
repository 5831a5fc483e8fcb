//! Kernels between bytes that nothing may touch: generated cases, and the steps of a model.

use core::ptr;
use core::slice;

use arenite::testkit::{Finding, Found, Guard, NetworkMemory, Workspace, guard, guard_network};
use arenite::{KernelId, MAX_REGIONS};
use arenite_firmware::answers::{file_failed, out_of_memory, refused};
use arenite_firmware::exchange::Exchange;
use arenite_firmware::guards;
use arenite_firmware::linked;
use arenite_firmware::memory::Areas;
use arenite_firmware::protocol::{During, Guards, Probe, Purpose, Record};
use arenite_firmware::subject;

/// Bytes for encoded parameters.
const ROOM: usize = 2048;

/// Carries out the request; an error is the exit status of what has been recorded.
pub(crate) fn answer(exchange: &mut Exchange, request: &Guards, workspace: &mut Workspace) -> Result<(), i32> {
    let blob = (request.blob_address as usize, request.blob_length as usize);
    // SAFETY: called once a program.
    let mut areas = unsafe { Areas::new(blob) };
    // SAFETY: called once a program.
    let field = unsafe { guards::field(&mut areas, request.field as usize) };
    let field = match field {
        Ok(Some(field)) => field,
        Ok(None) => {
            let none = Record::Outside {
                kernel: 0,
                seed: 0,
                operand: 0,
                start: false,
                finding: "unprotected",
            };
            exchange.record(&none);
            return Ok(());
        }
        Err(none) => return Err(out_of_memory(exchange, none)),
    };
    if let Some(probe) = request.probe {
        touch(field, probe);
        return Ok(());
    }
    let mut room = [0; ROOM];
    if request.blob_length > 0 {
        return network(exchange, request, &mut areas, field, &mut room);
    }
    let is_asked = |kernel: &&KernelId| request.only.is_none_or(|only| only == **kernel as u8);
    let built = KernelId::ALL
        .iter()
        .filter(|kernel| kernel.backend().available())
        .filter(is_asked);
    for &kernel in built.skip(request.from as usize) {
        let (mut computed, mut found) = (0, Found::default());
        let mut finding = None;
        for seed in request.first..request.first.saturating_add(request.cases) {
            subject::of(kernel, seed);
            let mut guarded = Guard {
                field: &mut *field,
                room: &mut room,
                watch: &mut subject::Watcher,
                found: &mut found,
            };
            match guard(kernel, seed, workspace, &mut guarded) {
                Ok(done) => computed += u32::from(done),
                Err(of) => {
                    finding = Some((seed, of));
                    break;
                }
            }
        }
        record(exchange, kernel, (computed, found.runs), finding);
    }
    Ok(())
}

/// The steps of a model on its inputs.
fn network(
    exchange: &mut Exchange,
    request: &Guards,
    areas: &mut Areas,
    field: &mut [u8],
    room: &mut [u8],
) -> Result<(), i32> {
    let (address, length) = (request.blob_address as usize, request.blob_length as usize);
    // SAFETY: the host put the blob there, in memory that is not handed out to anything else.
    let blob = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(address), length) };
    let model = linked::load(blob).map_err(|error| refused(exchange, During::Load, &error))?;
    let mut take = |bytes| match areas.take(bytes, Purpose::Arena) {
        // SAFETY: the piece was just taken, and gives its bytes once.
        Ok(piece) => Ok(unsafe { piece.bytes() }),
        Err(none) => Err(out_of_memory(exchange, none)),
    };
    let mut regions: [&mut [u8]; MAX_REGIONS] = [&mut [], &mut [], &mut [], &mut []];
    let mut total = model.state_bytes();
    for (index, region) in regions.iter_mut().enumerate() {
        if model.arena_bytes(index) > 0 {
            *region = take(model.arena_bytes(index))?;
        }
        total += model.arena_bytes(index);
    }
    let (state, saved) = (take(model.state_bytes())?, take(total)?);
    for index in 0..usize::from(model.header().inputs) {
        let input = model.input(index).and_then(|port| {
            let region = regions.get_mut(usize::from(port.slot.region))?;
            region
                .get_mut(port.slot.offset as usize..)?
                .get_mut(..port.bytes()? as usize)
        });
        if let Some(input) = input {
            exchange
                .read_input(input)
                .map_err(|error| file_failed(exchange, error))?;
        }
    }
    let memory = NetworkMemory { regions, state, saved };
    let mut found = Found::default();
    let mut guarded = Guard {
        field,
        room,
        watch: &mut subject::Watcher,
        found: &mut found,
    };
    guard_network(
        &model,
        memory,
        request.from,
        &mut guarded,
        &mut |(step, kernel), done| match done {
            None => subject::of(kernel, step),
            Some(done) => record(exchange, kernel, (1, 0), done.err().map(|finding| (step, finding))),
        },
    );
    Ok(())
}

fn record(exchange: &mut Exchange, kernel: KernelId, (cases, runs): (u32, u64), finding: Option<(u32, Finding)>) {
    let kernel = kernel as u8;
    exchange.record(&match finding {
        None => Record::Guarded { kernel, cases, runs },
        Some((seed, finding)) => {
            let (finding, guarded) = finding.parts();
            Record::Outside {
                kernel,
                seed,
                operand: guarded.map_or(0, |guarded| guarded.operand),
                start: guarded.is_some_and(|guarded| guarded.side == arenite::testkit::Side::Start),
                finding,
            }
        }
    });
}

/// Touches the byte before a field, or the one behind it.
fn touch(field: &mut [u8], Probe { behind, write }: Probe) {
    let bytes = field.as_mut_ptr_range();
    let byte = if behind { bytes.end } else { bytes.start.wrapping_sub(1) };
    // SAFETY: none: it is what must fault, and of memory that is the field's.
    unsafe {
        if write {
            byte.write_volatile(0);
        } else {
            byte.read_volatile();
        }
    }
}
