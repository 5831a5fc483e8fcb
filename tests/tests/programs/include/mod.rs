//! Models that are part of a program: what their modules compute, what they refuse to compile, and on which cores they build.

mod compiled;
mod loaded;
mod programs;
mod project;
mod same;

use arenite::{DType, Progress, RunError, SessionError};

arenite::include_model!(mod several = "models/typed/several.bin");
arenite::include_bundle!(mod models = "models/typed/bundle.bin", first = "several", second = "square-sum");
arenite::include_model!(mod accumulator = concat!(env!("CARGO_MANIFEST_DIR"), "/models/stateful/accumulator.bin"));

#[test]
fn a_module_says_what_its_file_says() {
    assert_eq!((several::ARENA_BYTES, several::STATE_BYTES), (40, 0));
    assert_eq!(several::LABELS, ["no", "yes", "Käse"]);
    assert_eq!(accumulator::LABELS, [""; 0]);
    let [a, b] = several::INPUTS;
    assert_eq!(
        (a.name, a.dtype, a.shape(), a.scale, a.zero_point),
        ("a", DType::I8, &[1, 3][..], 0.5, -1)
    );
    assert_eq!((b.name, b.dtype, b.shape(), b.scale), ("b", DType::F32, &[2][..], 0.0));
    assert_eq!(several::OUTPUTS[1].name, "squares");
    assert_eq!((several::quantize(1.0), several::dequantize(1)), (1, 1.0));
    assert_eq!((models::ARENA_BYTES, models::first::ARENA_BYTES), (64, 40));
}

#[test]
fn several_inputs_and_outputs_are_tuples() -> Result<(), RunError> {
    let mut memory = several::Memory::new();
    let mut session = several::open(&mut memory);
    let (a, squares): (&[i8; 3], &[f32; 2]) = several::run(&mut session, (&[5, -6, 7], &[1.5, -3.0]));
    assert_eq!((a, squares), (&[5, -6, 7], &[2.25, 9.0]));
    // In steps, with the two ends apart.
    several::set_inputs(&mut session, (&[1, 2, 3], &[2.0, 4.0]));
    session.step()?;
    assert_eq!(several::outputs(&session), (&[1, 2, 3], &[4.0, 16.0]));
    Ok(())
}

#[test]
fn models_of_a_bundle_share_an_arena_and_keep_their_types() -> Result<(), SessionError> {
    let mut arena = models::Arena::new();
    let mut first = models::first::open_in(arena.bytes(), &mut [])?;
    assert_eq!(
        models::first::run(&mut first, (&[1, 2, 3], &[0.5, 2.0])).1,
        &[0.25, 4.0]
    );
    let mut second = models::second::open_in(arena.bytes(), &mut [])?;
    assert_eq!(models::second::run(&mut second, &[1.0, 2.0, -3.0]), &[1.0, 4.0, 9.0]);
    Ok(())
}

#[test]
fn a_modules_memory_is_taken_once_and_the_state_goes_on() {
    let mut session = accumulator::session().expect("the first");
    assert!(accumulator::session().is_none());
    assert!(accumulator::take().is_none());
    accumulator::run(&mut session, &[1.0; 6]);
    assert_eq!(
        accumulator::run(&mut session, &[2.0; 6]),
        &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    );
    session.reset_state();
    assert_eq!(accumulator::run(&mut session, &[0.0; 6])[..2], [1.0, 2.0]);
}

/// A compiled session does the same as a loaded model's.
#[test]
fn runs_begin_go_on_and_end_as_those_of_loaded_models() -> Result<(), RunError> {
    let mut memory = several::Memory::new();
    let mut session = several::open(&mut memory);
    let missing = |input| Err(RunError::InputMissing { input });
    assert_eq!(session.run(), missing(0));
    session.set_values(0, &[1i8, 2, 3])?;
    assert_eq!(session.run(), missing(1));
    session.set_values(1, &[1.0f32, 2.0])?;
    let steps = 1;
    assert_eq!(session.step()?, Progress::Done);
    assert_eq!(session.values::<f32>(1)?, [1.0, 4.0]);
    // Inputs are gone with the run.
    assert_eq!(session.step().map(|_| ()), missing(0));
    several::set_inputs(&mut session, (&[1, 2, 3], &[2.0, 4.0]));
    let mut done = Vec::new();
    session.run_with(|step| done.push(step))?;
    assert_eq!(done.len(), steps);
    assert_eq!(several::outputs(&session).1, &[4.0, 16.0]);
    Ok(())
}

#[test]
fn weights_are_those_of_the_program_and_a_file_without_a_self_test_has_none() {
    assert!(several::verify_weights() && accumulator::verify_weights());
    // The check value of this CRC, and one bit of it.
    assert!(arenite::compiled::are_intact(b"123456789", 0xCBF4_3926));
    assert!(!arenite::compiled::are_intact(b"123456788", 0xCBF4_3926));
    let mut memory = several::Memory::new();
    let missing = arenite::SelfTestError::Missing;
    assert_eq!(several::self_test(&mut several::open(&mut memory)), Err(missing));
}

/// A file is another one where its length or its model's checksum is, and beginnings of files are none.
#[test]
fn a_file_that_was_changed_while_a_program_is_compiled_is_noticed() {
    let file = include_bytes!("../../../models/typed/several.bin");
    let crc = arenite::checksum(file);
    let is = arenite::compiled::is_file;
    assert!(is(file, file.len(), 0, crc));
    assert!(!is(file, file.len(), 0, crc ^ 1) && !is(&file[1..], file.len(), 0, crc));
    let mut behind = vec![0; 64];
    behind.extend(file);
    assert!(is(&behind, behind.len(), 64, crc) && !is(&behind, behind.len(), 0, crc));
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let mut memory = several::Memory::new();
    let (arena, _) = memory.bytes();
    let too_small = SessionError::ArenaTooSmall {
        region: 0,
        needed: 40,
        given: 39,
    };
    let refused = |arena: &mut [u8], state: &mut [u8]| several::open_in(arena, state).map(|_| ()).err();
    assert_eq!(refused(&mut arena[..39], &mut []), Some(too_small));
    let given = SessionError::StateSize { needed: 0, given: 1 };
    assert_eq!(refused(arena, &mut [0]), Some(given));
    let mut longer = [0u128; 4];
    // SAFETY: any bytes of an array of integers are valid `u8`s.
    let (_, longer, _) = unsafe { longer.align_to_mut::<u8>() };
    assert_eq!(refused(&mut longer[..56], &mut []), None);
    assert_eq!(
        refused(&mut longer[8..], &mut []),
        Some(SessionError::ArenaMisaligned { region: 0 })
    );
}

#[test]
fn numbers_of_another_type_or_count_are_refused_where_the_compiler_cannot_know() {
    let mut memory = several::Memory::new();
    let mut session = several::open(&mut memory);
    let wrong = |port| Err(RunError::PortType { port });
    assert_eq!(session.set_values(0, &[1u8, 2, 3]), wrong(0));
    assert_eq!(session.set_values(1, &[1i32, 2]), wrong(1));
    let size = RunError::InputSize {
        input: 1,
        needed: 8,
        given: 12,
    };
    assert_eq!(session.set_values(1, &[1.0f32; 3]), Err(size));
    assert_eq!(session.set_values(2, &[1.0f32]), Err(RunError::NoSuchPort { index: 2 }));
    assert_eq!(session.values::<u8>(0).map(|_| ()), wrong(2));
    assert_eq!(session.values::<i8>(0).map(<[i8]>::len), Ok(3));
    assert_eq!(
        session.values::<f32>(2).map(|_| ()),
        Err(RunError::NoSuchPort { index: 2 })
    );
}
