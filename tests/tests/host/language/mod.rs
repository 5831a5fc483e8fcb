//! A language model (stories260K) against its NumPy reference: tokens, logits, text, what is refused.

mod forged;
mod gguf;
mod given;
mod merges;
mod refused;
mod samplers;
mod tokenizers;

use arenite::text::{Ended, Sampler, TextError, Tokenizer, context, generate};
use arenite::{DType, RunError, Session, Slot, Target};
use arenite_host::model::{Aligned, ModelFile};
use arenite_tests::golden::Archive;

use given::{Given, numbers};

/// A session on memory of its own.
fn with_session<T>(file: &ModelFile, work: impl FnOnce(&mut Session<'_, '_>) -> T) -> T {
    let model = file.load().expect("it loads");
    let (mut arena, mut state) = (Aligned::new(model.arena_bytes(0)), Aligned::new(model.state_bytes()));
    let mut session = Session::new(model, arena.bytes(), state.bytes()).expect("memory of its size");
    work(&mut session)
}

/// A run of a token at a position: its logits.
fn step(session: &mut Session<'_, '_>, token: i32, position: i32) -> Result<Vec<f32>, RunError> {
    session.set_input(0, &token.to_le_bytes())?;
    session.set_input(1, &position.to_le_bytes())?;
    session.run()?;
    Ok(numbers(session.output(0)?))
}

/// The first of the largest.
fn likeliest(logits: &[f32]) -> usize {
    let mut best = 0;
    for (token, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = token;
        }
    }
    best
}

fn out_of_range(result: Result<Vec<f32>, RunError>) -> Option<(i32, u32)> {
    match result {
        Err(RunError::OutOfRange { index, count, .. }) => Some((index, count)),
        _ => None,
    }
}

#[test]
fn greedy_tokens_and_logits_are_the_references() {
    let Some(given) = Given::open("greedy tokens") else {
        return;
    };
    for target in [Target::Portable, Target::CortexM4, Target::CortexM55, Target::X8664] {
        let file = given.packed(target, None);
        let (story, expected) = (given.story(), given.logits());
        with_session(&file, |session| {
            let (mut tokens, mut worst) = (given.prompt(), 0.0_f64);
            for position in 0..255 {
                let logits = step(session, tokens[position], position as i32).expect("a run");
                if let Some(expected) = expected.get(position) {
                    let most = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                    let apart = logits.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs());
                    worst = apart.fold(0.0, f64::max).max(worst * most) / most;
                }
                if position + 1 == tokens.len() {
                    tokens.push(likeliest(&logits) as i32);
                }
            }
            assert_eq!(tokens, story, "{}", target.name());
            assert!(worst < 1e-5, "{}: {worst:e}", target.name());
        });
    }
}

#[test]
fn text_goes_in_and_comes_out() {
    let Some(given) = Given::open("text") else { return };
    let file = given.packed(Target::Portable, None);
    let told = given.text_of(&given.story());
    with_session(&file, |session| {
        let tokenizer = Tokenizer::of(session.model()).expect("a tokenizer");
        let mut room = [0; 32];
        let prompt = tokenizer.encode(b"Once upon a time", &mut room).expect("tokens");
        assert_eq!(
            prompt.iter().map(|&token| token as i32).collect::<Vec<_>>(),
            given.prompt()
        );
        let mut text = b"Once upon a time".to_vec();
        let written = generate(session, &tokenizer, prompt, 251, &mut Sampler::greedy(), &mut |piece| {
            text.extend(piece);
            true
        });
        let written = written.expect("a text");
        assert_eq!((written.tokens, written.runs, written.ended), (251, 255, Ended::Tokens));
        assert_eq!(String::from_utf8_lossy(&text), String::from_utf8_lossy(&told));
        // Another one from the beginning: nothing of the first is left.
        let mut again = b"Once upon a time".to_vec();
        let prompt = tokenizer.encode(b"Once upon a time", &mut room).expect("tokens");
        let written = generate(session, &tokenizer, prompt, 251, &mut Sampler::greedy(), &mut |piece| {
            again.extend(piece);
            again.len() < 100
        });
        assert_eq!(written.expect("a text").ended, Ended::Caller);
        assert!(told.starts_with(&again) && again.len() >= 100);
    });
}

#[test]
fn seeds_write_the_same_text_and_others_another() {
    let Some(given) = Given::open("seeds") else { return };
    let file = given.packed(Target::Portable, Some(40));
    let text = |sampler: Sampler| {
        with_session(&file, |session| {
            let tokenizer = Tokenizer::of(session.model()).expect("a tokenizer");
            let (mut room, mut text, mut sampler) = ([0; 32], Vec::<u8>::new(), sampler);
            let prompt = tokenizer.encode(b"Lily", &mut room).expect("tokens");
            let each = &mut |piece: &[u8]| {
                text.extend(piece);
                true
            };
            generate(session, &tokenizer, prompt, 30, &mut sampler, each).expect("a text");
            text
        })
    };
    let seeded = |seed| Sampler::seeded(0.9, seed).top_k(40).top_p(0.95);
    assert_eq!(text(seeded(1)), text(seeded(1)));
    assert_ne!(text(seeded(1)), text(seeded(2)));
    assert_eq!(text(Sampler::seeded(0.9, 5).top_k(1)), text(Sampler::greedy()));
}

#[test]
fn tokens_and_positions_out_of_range_are_typed_errors_and_change_nothing() {
    let Some(given) = Given::open("positions") else { return };
    let file = given.packed(Target::Portable, Some(6));
    let tokens = given.story();
    with_session(&file, |session| {
        assert_eq!(context(session.model()), Some(6));
        let first = step(session, tokens[0], 0).expect("a run");
        for token in [-1, 512, i32::MIN, i32::MAX] {
            assert_eq!(out_of_range(step(session, token, 1)), Some((token, 512)));
        }
        // One line is there: position 1 is next, 2 jumps ahead.
        for position in [-1, 2, 5, 6, i32::MAX, i32::MIN] {
            assert_eq!(out_of_range(step(session, tokens[1], position)), Some((position, 2)));
        }
        // A token that is refused has written no line.
        assert_eq!(out_of_range(step(session, 512, 1)), Some((512, 512)));
        assert_eq!(out_of_range(step(session, tokens[1], 2)), Some((2, 2)));
        for (position, &token) in (0..).zip(&tokens).take(6).skip(1) {
            step(session, token, position).expect("a run");
        }
        // The cache is full, and no ring.
        assert_eq!(out_of_range(step(session, tokens[6], 6)), Some((6, 6)));
        // Going back truncates.
        assert_eq!(step(session, tokens[0], 0).expect("a run"), first);
        assert_eq!(out_of_range(step(session, tokens[2], 2)), Some((2, 2)));
    });
}

#[test]
fn lines_behind_a_position_are_never_read() {
    let Some(given) = Given::open("lines behind") else {
        return;
    };
    let file = given.packed(Target::Portable, Some(16));
    let tokens = given.story();
    let run = |spoil: bool| {
        with_session(&file, |session| {
            if spoil {
                let bytes = session.model().state_bytes();
                // All but the number of lines, which lies first.
                let rest = Slot {
                    region: Slot::STATE,
                    offset: 16,
                };
                session
                    .write(rest, &f32::NAN.to_le_bytes().repeat(bytes / 4 - 4))
                    .expect("in the state");
            }
            let each = (0..16).map(|position| step(session, tokens[position], position as i32).expect("a run"));
            each.collect::<Vec<_>>()
        })
    };
    let (clean, spoilt) = (run(false), run(true));
    assert!(clean.iter().flatten().all(|logit| logit.is_finite()));
    assert_eq!(clean, spoilt);
}

#[test]
fn prompts_that_have_no_place_are_refused() {
    let Some(given) = Given::open("prompts") else { return };
    let file = given.packed(Target::Portable, Some(5));
    with_session(&file, |session| {
        let tokenizer = Tokenizer::of(session.model()).expect("a tokenizer");
        let (mut room, mut greedy) = ([0; 64], Sampler::greedy());
        let mut written: Vec<u8> = Vec::new();
        let mut generated = |session: &mut Session<'_, '_>, prompt: &[u32]| {
            generate(session, &tokenizer, prompt, 100, &mut greedy, &mut |text| {
                written.extend(text);
                true
            })
        };
        assert_eq!(generated(session, &[]), Err(TextError::Empty));
        let long = tokenizer.encode(b"Once upon a time", &mut room).expect("tokens");
        assert_eq!(generated(session, long), Err(TextError::TooLong { room: 5 }));
        let beyond = generated(session, &[1, 512]);
        assert!(
            matches!(
                beyond,
                Err(TextError::Run(RunError::OutOfRange {
                    index: 512,
                    count: 512,
                    ..
                }))
            ),
            "{beyond:?}"
        );
        // An empty text begins with the token that begins texts.
        assert_eq!(
            tokenizer.encode(b"", &mut room).map(|tokens| tokens.to_vec()),
            Ok(vec![1])
        );
        let full = generated(session, &[1]).expect("a text");
        assert_eq!((full.tokens, full.runs, full.ended), (5, 5, Ended::Context));
        assert_eq!(
            tokenizer.encode(b"too long for three", &mut [0; 3]),
            Err(TextError::TooLong { room: 3 })
        );
    });
}

#[test]
fn the_state_of_another_context_is_refused() {
    let Some(given) = Given::open("another state") else {
        return;
    };
    let (small, large) = (
        given.packed(Target::Portable, Some(8)),
        given.packed(Target::Portable, Some(9)),
    );
    let (small, large) = (small.load().expect("it loads"), large.load().expect("it loads"));
    let (mut arena, mut state) = (Aligned::new(large.arena_bytes(0)), Aligned::new(small.state_bytes()));
    let error = Session::resume(large, arena.bytes(), state.bytes()).expect_err("a state of another size");
    assert!(matches!(error, arenite::SessionError::StateSize { .. }), "{error}");
}

#[test]
fn weights_of_eight_bits_share_one_table_and_keep_the_argmax() {
    let Some(given) = Given::open("weights of eight bits") else {
        return;
    };
    let file = given.packed_with(Target::Portable, |options| {
        options.weight_only = Some(given::eight_bits());
        options.import.context = Some(128);
    });
    let whole = file.whole().len();
    assert!(whole <= 310_000, "{whole} bytes");
    let (story, expected) = (given.story(), given.logits());
    with_session(&file, |session| {
        let (mut same, mut squares) = (0, [0.0_f64; 2]);
        for (position, expected) in expected.iter().enumerate() {
            let logits = step(session, story[position], position as i32).expect("a run");
            let reference: Vec<f32> = expected.iter().map(|x| *x as f32).collect();
            same += u32::from(likeliest(&logits) == likeliest(&reference));
            for (a, b) in logits.iter().zip(expected) {
                squares = [squares[0] + b * b, squares[1] + (f64::from(*a) - b).powi(2)];
            }
        }
        let snr = 10.0 * (squares[0] / squares[1]).log10();
        assert!(same >= 62 && snr >= 33.0, "{same} of 64, {snr:.1} dB");
    });
}

#[test]
fn ports_say_what_they_are() {
    let Some(given) = Given::open("ports") else { return };
    let file = given.packed(Target::Portable, Some(7));
    let view = file.view().expect("a file");
    let told = |ports: &[arenite::Port<'_>]| {
        ports
            .iter()
            .map(|port| (port.name.to_string(), port.dtype, port.shape.to_vec()))
            .collect::<Vec<_>>()
    };
    let one = |name: &str| (name.to_string(), DType::I32, vec![1]);
    assert_eq!(told(&view.inputs), [one("token"), one("position")]);
    assert_eq!(told(&view.outputs), [("logits".to_string(), DType::F32, vec![1, 512])]);
    // Five layers of keys and values of four heads of eight, of seven lines; and the number of lines.
    assert_eq!(file.load().expect("it loads").state_bytes(), 16 + 2 * 5 * 4 * 7 * 8 * 4);
}

#[test]
fn archives_hold_what_these_tests_take() {
    let Some(given) = Given::open("archives") else { return };
    let mut archive = Archive::open(&given.folder.join("stories260K.npz"));
    let mut names = archive.names();
    names.sort();
    assert_eq!(names, ["logits", "prompt", "story"]);
}
