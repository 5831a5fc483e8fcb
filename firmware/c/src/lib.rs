//! The runtime for C and C++: a static library, and the header `include/arenite.h`, which is generated from this file. It has every kernel of the build, or
//! those of the models that `ARENITE_MODELS` names; the linker drops functions that a program does not call. The build matrix
//! (`tests/tests/programs/matrix.rs`) compiles it for every target with every set of features.
#![no_std]
#![allow(non_camel_case_types, reason = "names as C has them")]

mod code;
mod kernels;
mod memory;
mod text;

use arenite::{Error, LoadError, Model, Progress, RunError, SelfTestError, SessionError};

pub use code::{
    ARENITE_MISALIGNED, ARENITE_NOT_FOR_TRAINING, ARENITE_NOT_OPEN, ARENITE_NULL, ARENITE_OK, arenite_code,
};
use kernels::Linked;
pub use memory::arenite_session;
use memory::{Held, bytes, bytes_mut, held, held_mut};

/// Memories that an arena may be spread over.
pub const ARENITE_REGIONS: usize = 4;

/// Bytes that a model needs, and counts of its parts.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct arenite_needs {
    /// Bytes of arena, by region; most models have one.
    pub arena: [u32; ARENITE_REGIONS],
    /// Bytes of state, 0 for a model without.
    pub state: u32,
    /// Bytes of the file.
    pub file: u32,
    /// Steps of a run.
    pub steps: u32,
    /// Number of inputs.
    pub inputs: u32,
    /// Number of outputs.
    pub outputs: u32,
}

/// Reads what a model needs from its header; the rest of the file is not looked at. `model` starts at a multiple of 16.
///
/// # Safety
/// `model` points to `model_bytes` readable bytes, `needs` to writable memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_needs_of(
    model: *const u8,
    model_bytes: usize,
    needs: *mut arenite_needs,
) -> arenite_code {
    // SAFETY: `model` points to `model_bytes` readable bytes, or is null (fn docs).
    let (Some(file), false) = (unsafe { bytes(model, model_bytes) }, needs.is_null()) else {
        return ARENITE_NULL;
    };
    let header = match arenite::Header::parse(file) {
        Ok(header) => header,
        Err(error) => return error.code(),
    };
    if !needs.is_aligned() {
        return ARENITE_MISALIGNED;
    }
    let found = arenite_needs {
        arena: header.arena,
        state: header.state_init.len,
        file: header.total,
        steps: header.step_count,
        inputs: header.inputs.into(),
        outputs: header.outputs.into(),
    };
    // SAFETY: not null, aligned, and writable (fn docs).
    unsafe { needs.write(found) };
    ARENITE_OK
}

/// Checks all of a model and opens a session on it. `model`, `arena` and `state` start at multiples of 16 and stay where they are, the model unchanged, for as
/// long as the session is used; `state` is null for a model without.
///
/// # Safety
/// The pointers point to as many bytes as said: of the model readable, of arena and state writable and used by nothing else meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_open(
    session: *mut arenite_session,
    model: *const u8,
    model_bytes: usize,
    arena: *mut u8,
    arena_bytes: usize,
    state: *mut u8,
    state_bytes: usize,
) -> arenite_code {
    let arenas = one(arena, arena_bytes);
    // SAFETY: the pointers are the caller's, and point to as many bytes as said (fn docs); `arenas` are `ARENITE_REGIONS` memories.
    unsafe { arenite_open_in(session, model, model_bytes, arenas.as_ptr(), state, state_bytes) }
}

/// `arenite_open` on a state that an earlier session of the model left, in `state` or wherever it was kept: what the network remembers, and what it has learnt.
///
/// # Safety
/// As `arenite_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_resume(
    session: *mut arenite_session,
    model: *const u8,
    model_bytes: usize,
    arena: *mut u8,
    arena_bytes: usize,
    state: *mut u8,
    state_bytes: usize,
) -> arenite_code {
    let arenas = one(arena, arena_bytes);
    // SAFETY: the pointers are the caller's, and point to as many bytes as said (fn docs); `arenas` are `ARENITE_REGIONS` memories.
    unsafe { arenite_resume_in(session, model, model_bytes, arenas.as_ptr(), state, state_bytes) }
}

/// One memory, and no others.
fn one(start: *mut u8, bytes: usize) -> [arenite_memory; ARENITE_REGIONS] {
    const NONE: arenite_memory = arenite_memory {
        start: core::ptr::null_mut(),
        bytes: 0,
    };
    [arenite_memory { start, bytes }, NONE, NONE, NONE]
}

/// A memory of the program.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_memory {
    /// Its first byte; null for none.
    pub start: *mut u8,
    /// Its length.
    pub bytes: usize,
}

/// `arenite_open` for a model whose arena is spread over `ARENITE_REGIONS` memories.
///
/// # Safety
/// As `arenite_open`; `arenas` points to `ARENITE_REGIONS` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_open_in(
    session: *mut arenite_session,
    model: *const u8,
    model_bytes: usize,
    arenas: *const arenite_memory,
    state: *mut u8,
    state_bytes: usize,
) -> arenite_code {
    // SAFETY: the pointers are the caller's (fn docs).
    unsafe { open(session, (model, model_bytes), arenas, (state, state_bytes), true) }
}

/// `arenite_resume` for a model whose arena is spread over `ARENITE_REGIONS` memories.
///
/// # Safety
/// As `arenite_open_in`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_resume_in(
    session: *mut arenite_session,
    model: *const u8,
    model_bytes: usize,
    arenas: *const arenite_memory,
    state: *mut u8,
    state_bytes: usize,
) -> arenite_code {
    // SAFETY: the pointers are the caller's (fn docs).
    unsafe { open(session, (model, model_bytes), arenas, (state, state_bytes), false) }
}

/// Opens a session on a state with its first value, or as it is.
///
/// # Safety
/// As `arenite_open_in`.
unsafe fn open(
    session: *mut arenite_session,
    (model, model_bytes): (*const u8, usize),
    arenas: *const arenite_memory,
    (state, state_bytes): (*mut u8, usize),
    first: bool,
) -> arenite_code {
    if session.is_null() || arenas.is_null() {
        return ARENITE_NULL;
    }
    if !session.is_aligned() || !arenas.is_aligned() {
        return ARENITE_MISALIGNED;
    }
    // SAFETY: not null, aligned, and writable (fn docs). The bytes before are a session without destructor, or anything.
    unsafe { Held::close(session) };
    // SAFETY: not null and aligned; `arenas` points to `ARENITE_REGIONS` memories (fn docs).
    let [a, b, c, d] = unsafe { *arenas.cast::<[arenite_memory; ARENITE_REGIONS]>() };
    // SAFETY: the pointers point to as many bytes as said, for as long as the session is used (fn docs).
    let memories = unsafe {
        (
            bytes(model, model_bytes),
            [a, b, c, d].map(|memory| bytes_mut(memory.start, memory.bytes)),
            bytes_mut(state, state_bytes),
        )
    };
    let (Some(model), [Some(a), Some(b), Some(c), Some(d)], Some(state)) = memories else {
        return ARENITE_NULL;
    };
    let opened = Model::<Linked>::load_with(model)
        .map_err(Error::from)
        .and_then(|model| {
            let mut session = arenite::Session::resume(model, [a, b, c, d], state).map_err(Error::from)?;
            if first {
                session.reset_state();
            }
            Ok(session)
        });
    match opened {
        Ok(opened) => {
            // SAFETY: not null, aligned, and writable (fn docs).
            unsafe { Held::open(session, opened) };
            ARENITE_OK
        }
        Err(error) => error.code(),
    }
}

/// Copies an input for the next run: as many bytes as the model's, each element little-endian.
///
/// # Safety
/// `session` points to a session, `input` to `input_bytes` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_set_input(
    session: *mut arenite_session,
    index: u32,
    input: *const core::ffi::c_void,
    input_bytes: usize,
) -> arenite_code {
    // SAFETY: `session` points to a session, `input` to `input_bytes` readable bytes, or they are null (fn docs).
    let (session, input) = unsafe { (held_mut(session), bytes(input.cast(), input_bytes)) };
    match (session, input) {
        (Ok(session), Some(input)) => code(session.set_input(index as usize, input)),
        (Ok(_), None) => ARENITE_NULL,
        (Err(code), _) => code,
    }
}

/// The place of an input in the arena, to be filled for the next run.
///
/// # Safety
/// `session` points to a session, `place` and `place_bytes` to writable memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_input(
    session: *mut arenite_session,
    index: u32,
    place: *mut *mut core::ffi::c_void,
    place_bytes: *mut usize,
) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    let session = match unsafe { held_mut(session) } {
        Ok(session) => session,
        Err(code) => return code,
    };
    match session.input_mut(index as usize) {
        // SAFETY: `place` and `place_bytes` point to writable memory, or are null (fn docs).
        Ok(input) => unsafe { memory::give(input.as_mut_ptr().cast(), input.len(), place, place_bytes) },
        Err(error) => error.code(),
    }
}

/// Runs all remaining steps.
///
/// # Safety
/// `session` points to a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_run(session: *mut arenite_session) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    match unsafe { held_mut(session) } {
        Ok(session) => code(session.run()),
        Err(code) => code,
    }
}

/// Runs one step, and says in `done` whether it was the last.
///
/// # Safety
/// `session` points to a session, `done` to a writable `bool`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_step(session: *mut arenite_session, done: *mut bool) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    let session = match unsafe { held_mut(session) } {
        Ok(_) if done.is_null() => return ARENITE_NULL,
        Ok(session) => session,
        Err(code) => return code,
    };
    match session.step() {
        Ok(progress) => {
            // SAFETY: not null, and writable (fn docs).
            unsafe { done.write(progress == Progress::Done) };
            ARENITE_OK
        }
        Err(error) => error.code(),
    }
}

/// The place of an output, valid after a run until the next input is set.
///
/// # Safety
/// `session` points to a session, `place` and `place_bytes` to writable memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_output(
    session: *const arenite_session,
    index: u32,
    place: *mut *const core::ffi::c_void,
    place_bytes: *mut usize,
) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    let session = match unsafe { held(session) } {
        Ok(session) => session,
        Err(code) => return code,
    };
    match session.output(index as usize) {
        // SAFETY: `place` and `place_bytes` point to writable memory, or are null (fn docs); the place is read through, as `const` says in C.
        Ok(output) => unsafe { memory::give(output.as_ptr().cast(), output.len(), place, place_bytes) },
        Err(error) => error.code(),
    }
}

/// Gives the state its initial value.
///
/// # Safety
/// `session` points to a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_reset_state(session: *mut arenite_session) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    match unsafe { held_mut(session) } {
        Ok(session) => {
            session.reset_state();
            ARENITE_OK
        }
        Err(code) => code,
    }
}

/// Goes on with the model's steps of training (`pack --train`), over the same arena and state: inputs and outputs are theirs now, and all inputs are to be set.
/// The library has to be built with the feature `training`.
///
/// # Safety
/// `session` points to a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_turn_to_training(session: *mut arenite_session) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    match unsafe { held_mut(session) } {
        #[cfg(feature = "training")]
        Ok(session) => session
            .turn_to_training()
            .map_or(ARENITE_NOT_FOR_TRAINING, |()| ARENITE_OK),
        #[cfg(not(feature = "training"))]
        Ok(_) => ARENITE_NOT_FOR_TRAINING,
        Err(code) => code,
    }
}

/// Goes on with the steps of inference, likewise.
///
/// # Safety
/// `session` points to a session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_turn_to_inference(session: *mut arenite_session) -> arenite_code {
    // SAFETY: `session` points to a session, or is null (fn docs).
    match unsafe { held_mut(session) } {
        Ok(session) => {
            #[cfg(feature = "training")]
            session.turn_to_inference();
            #[cfg(not(feature = "training"))]
            let _ = session;
            ARENITE_OK
        }
        Err(code) => code,
    }
}

/// Runs the self-test of a model (`pack --self-test`) in an arena and state as those of `arenite_open`; what they held is lost.
///
/// # Safety
/// As `arenite_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_self_test(
    model: *const u8,
    model_bytes: usize,
    arena: *mut u8,
    arena_bytes: usize,
    state: *mut u8,
    state_bytes: usize,
) -> arenite_code {
    // SAFETY: the pointers point to as many bytes as said, or are null (fn docs).
    let memories = unsafe {
        (
            bytes(model, model_bytes),
            bytes_mut(arena, arena_bytes),
            bytes_mut(state, state_bytes),
        )
    };
    let (Some(model), Some(arena), Some(state)) = memories else {
        return ARENITE_NULL;
    };
    match Model::<Linked>::load_with(model) {
        Ok(model) => code(model.self_test_with(arena, state)),
        Err(error) => error.code(),
    }
}

/// Writes what a code means to `text`, cut to `text_bytes` with a zero at the end, and gives the length of all of it.
///
/// # Safety
/// `text` points to `text_bytes` writable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_error_text(
    code: arenite_code,
    text: *mut core::ffi::c_char,
    text_bytes: usize,
) -> usize {
    // SAFETY: `text` points to `text_bytes` writable bytes, or is null (fn docs).
    let to = unsafe { bytes_mut(text.cast(), text_bytes) };
    text::write(code, to.unwrap_or_default())
}

/// An error of the runtime as its code.
trait Coded {
    fn code(&self) -> u32;
}

macro_rules! coded {
    ($($error:ident),*) => { $(impl Coded for $error { fn code(&self) -> u32 { $error::code(self) } })* };
}

coded!(LoadError, SessionError, RunError, SelfTestError);

fn code<T, E: Coded>(result: Result<T, E>) -> arenite_code {
    result.map_or_else(|error| error.code(), |_| ARENITE_OK)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // A release build of the runtime cannot panic: `tests/tests/programs/panics.rs`.
    loop {}
}
