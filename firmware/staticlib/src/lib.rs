//! Every kernel of the build, compiled and assembled down to machine code for whatever target it is built for: no linker script, no board.
//! The build matrix (`tests/tests/matrix.rs`) compiles it for every target with every set of features and every kind of optimisation at link time.
#![no_std]

use core::slice;

use arenite::{All, Model, Session};

/// Loads the model at `model` and runs it once, on inputs of zeros; 0 where both succeed.
///
/// # Safety
/// `model` points to `model_bytes` readable bytes, `arena` and `state` to as many writable bytes as said that nothing else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arenite_run(
    model: *const u8,
    model_bytes: usize,
    arena: *mut u8,
    arena_bytes: usize,
    state: *mut u8,
    state_bytes: usize,
) -> i32 {
    // SAFETY: as the caller promises.
    let (model, arena, state) = unsafe {
        (
            slice::from_raw_parts(model, model_bytes),
            slice::from_raw_parts_mut(arena, arena_bytes),
            slice::from_raw_parts_mut(state, state_bytes),
        )
    };
    match run(model, arena, state) {
        Some(()) => 0,
        None => -1,
    }
}

fn run(model: &[u8], arena: &mut [u8], state: &mut [u8]) -> Option<()> {
    let model = Model::<All>::load_with(model).ok()?;
    let inputs = model.header().inputs;
    let mut session = Session::new(model, arena, state).ok()?;
    for index in 0..usize::from(inputs) {
        session.input_mut(index).ok()?.fill(0);
    }
    session.run().ok()
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
