//! Models that are part of a program and loaded by it: what their modules compute and refuse.

use arenite::{DType, Error, RunError, SessionError};
use arenite_tests::typed::written;

arenite::include_model!(mod several = "models/typed/several.bin", loaded);
arenite::include_bundle!(mod models = "models/typed/bundle.bin", loaded, first = "several", second = "square-sum");
arenite::include_model!(mod accumulator = concat!(env!("CARGO_MANIFEST_DIR"), "/models/stateful/accumulator.bin"), loaded);

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
    assert!(several::BYTES.as_ptr().addr().is_multiple_of(64));
}

#[test]
fn several_inputs_and_outputs_are_tuples() -> Result<(), Error> {
    let mut memory = several::Memory::new();
    let mut session = several::open(&mut memory)?;
    let (a, squares): (&[i8; 3], &[f32; 2]) = several::run(&mut session, (&[5, -6, 7], &[1.5, -3.0]))?;
    assert_eq!((a, squares), (&[5, -6, 7], &[2.25, 9.0]));
    // In steps, with the two ends apart.
    several::set_inputs(&mut session, (&[1, 2, 3], &[2.0, 4.0]))?;
    session.step()?;
    assert_eq!(several::outputs(&session)?, (&[1, 2, 3], &[4.0, 16.0]));
    Ok(())
}

#[test]
fn models_of_a_bundle_share_an_arena_and_keep_their_types() -> Result<(), Error> {
    let mut arena = models::Arena::new();
    let mut first = models::first::open_in(arena.bytes(), &mut [])?;
    assert_eq!(
        models::first::run(&mut first, (&[1, 2, 3], &[0.5, 2.0]))?.1,
        &[0.25, 4.0]
    );
    let mut second = models::second::open_in(arena.bytes(), &mut [])?;
    assert_eq!(models::second::run(&mut second, &[1.0, 2.0, -3.0])?, &[1.0, 4.0, 9.0]);
    Ok(())
}

#[test]
fn a_modules_memory_is_taken_once_and_the_state_goes_on() -> Result<(), Error> {
    let mut session = accumulator::session()?;
    let taken = Error::Session(SessionError::MemoryTaken);
    assert_eq!(accumulator::session().map(|_| ()), Err(taken));
    assert!(accumulator::take().is_none());
    accumulator::run(&mut session, &[1.0; 6])?;
    assert_eq!(
        accumulator::run(&mut session, &[2.0; 6])?,
        &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    );
    session.reset_state();
    assert_eq!(accumulator::run(&mut session, &[0.0; 6])?[..2], [1.0, 2.0]);
    Ok(())
}

#[test]
fn numbers_of_another_type_or_count_are_refused_where_the_compiler_cannot_know() -> Result<(), Error> {
    let mut memory = several::Memory::new();
    let mut session = several::open(&mut memory)?;
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

    // Another file in the session of a module: its outputs are not those of the module.
    let mut changed = written();
    changed.outputs[1].shape = vec![1];
    let file = arenite_tests::blob::aligned(&changed.file());
    let mut file = file;
    let bytes: &'static [u8] = Box::leak(Box::new(std::mem::replace(
        &mut file,
        arenite_host::model::Aligned::new(0),
    )))
    .bytes();
    let model = arenite::Model::load_with(bytes)?;
    let (arena, state) = memory.bytes();
    let mut session = several::Session::new(model, arena, state)?;
    let run = several::run(&mut session, (&[1, 2, 3], &[1.0, 2.0]));
    assert_eq!(run.map(|_| ()), Err(Error::Run(RunError::PortType { port: 3 })));
    Ok(())
}
