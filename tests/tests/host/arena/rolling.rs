//! Networks that roll: the outputs of the unfitted file, bit for bit, in an arena smaller than the input.

use super::*;
use arenite::{Fault, LoadError, Progress, RunError, Session};
use arenite_host::model::Aligned;
use arenite_host::quantize::Activations;

use crate::quantise::network::{Network, calibrated_to};

/// The options with the input fed by rows.
fn rolled(options: &Options) -> Options {
    Options {
        stream_input: true,
        output: options.output.with_extension("rolled"),
        ..options.clone()
    }
}

#[test]
fn networks_roll_bit_for_bit_in_less_than_their_input() {
    let Some(models) = models("networks_roll_bit_for_bit_in_less_than_their_input") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, target, most) in [
        ("vww_96_int8", Target::Portable, 10_304),
        ("kws_ref_model", Target::Portable, 3_700),
        ("pretrainedResnet_quant", Target::Portable, 9_600),
        ("tinyengine_vww", Target::Portable, 14_400),
        ("vww_96_int8", Target::CortexM4, 10_600),
        ("kws_ref_model", Target::CortexM4, 4_224),
        ("pretrainedResnet_quant", Target::CortexM4, 12_800),
        ("tinyengine_vww", Target::CortexM4, 15_000),
    ] {
        let whole = Options {
            // One of them converts an f32 input at once.
            input_dtype: (name == "tinyengine_vww").then_some(DType::I8),
            ..options(&models.join(format!("{name}.tflite")), folder.path(), target)
        };
        let (plain, expected) = packed_outputs(&whole, 1);
        let (small, found) = packed_outputs(&rolled(&whole), 1);
        eprintln!(
            "{name}: {} bytes, bound {}, file {} of {}",
            small.arena_bytes, small.plan_lower_bound_bytes, small.model_bytes, plain.model_bytes
        );
        assert!(found == expected, "{name}: the outputs differ");
        assert!(small.arena_bytes <= most, "{name}: {}", small.arena_bytes);
        assert_eq!(small.extra_macs, 0, "{name}");
        assert!(
            small.model_bytes * 100 <= plain.model_bytes * 103,
            "{name}: {}",
            small.model_bytes
        );
    }
}

/// Networks of inverted residuals, whose sums keep rows of two tensors; their channels are of any number.
#[test]
fn networks_of_residual_sums_roll_bit_for_bit() {
    let Some(shared) = shared() else {
        return skip("networks_of_residual_sums_roll_bit_for_bit", "no shared data");
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, side, target, most) in [
        ("mobilenet_v2_035_144", 144, Target::Portable, 19_900),
        ("mobilenet_v2_035_144", 144, Target::CortexM4, 22_200),
    ] {
        let trace = shared.join(format!("data/rolling/{name}.trace.json"));
        let samples = Network::new(3, &[1, side, side, 3]).samples(2);
        let whole = Options {
            target,
            weights: Some("seeded:1".into()),
            ..calibrated_to(Activations::Int8, &trace, folder.path(), &samples, &[])
        };
        let (_, expected) = packed_outputs(&whole, 1);
        let (small, found) = packed_outputs(&rolled(&whole), 1);
        assert!(found == expected, "{name}: the outputs differ");
        assert!(small.arena_bytes <= most, "{name}: {}", small.arena_bytes);
        assert_eq!(small.extra_macs, 0, "{name}");
    }
}

#[test]
fn commands_that_look_at_whole_tensors_refuse_what_rolls() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::new(5, &[1, 1, 9, 7]);
    network.conv2d("x", [4, 1, 3, 3], serde_json::json!({}));
    let samples = network.samples(3);
    let trace = network.write(folder.path());
    let whole = calibrated_to(Activations::Int8, &trace, folder.path(), &samples, &[]);
    for (options, expected) in [(rolled(&whole), true), (whole, false)] {
        summary(&options);
        let file = ModelFile::open(&options.output).expect("the model");
        let refused = file.view().expect("a view").refuse_rolling("arenite diff");
        assert_eq!(refused.is_err(), expected);
        let model = file.load().expect("it loads");
        let mut arena = Aligned::new(model.arena_bytes(0));
        let mut session = Session::new(model, arena.bytes(), &mut []).expect("a session");
        let not_by_rows = Err(RunError::NotByRows { input: 0 });
        assert_eq!(session.feed_rows(0, &[1; 7]) == not_by_rows, !expected);
        if let Err(error) = refused {
            assert!(
                error.to_string().contains("arenite diff of a model that rolls"),
                "{error}"
            );
        }
    }
}

/// A session in memory of its own, for each test of what it refuses.
fn with_session(test: impl Fn(&mut Session<'_, '_>, usize, usize)) {
    let Some(models) = models("a_session_that_rolls") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let options = rolled(&options(
        &models.join("pretrainedResnet_quant.tflite"),
        folder.path(),
        Target::Portable,
    ));
    summary(&options);
    let file = ModelFile::open(&options.output).expect("the model");
    let model = file.load().expect("it loads");
    let (bytes, rows) = model.rows_of_input(0).expect("rows");
    let mut arena = Aligned::new(model.arena_bytes(0));
    let mut session = Session::new(model, arena.bytes(), &mut []).expect("a session");
    test(&mut session, bytes, rows);
}

/// Feeds all rows, so many at a time, and gives the output.
fn fed(session: &mut Session<'_, '_>, image: &[u8], at_once: usize) -> Vec<u8> {
    for rows in image.chunks(at_once) {
        session.feed_rows(0, rows).expect("rows");
    }
    session.run().expect("it runs");
    session.output(0).expect("an output").to_vec()
}

#[test]
fn rows_come_one_by_one_or_several_and_mistakes_leave_the_session_usable() {
    with_session(|session, bytes, rows| {
        let image: Vec<u8> = (0..bytes * rows).map(|at| (at * 31 % 251) as u8).collect();
        let input = 0;
        session.set_input(0, &image).expect("all of it");
        session.run().expect("it runs");
        let expected = session.output(0).expect("an output").to_vec();

        // After `Done` there is no row left.
        let over = RunError::RowsOver {
            input,
            left: 0,
            given: 1,
        };
        assert_eq!(session.feed_rows(0, &image[..bytes]), Err(over));
        assert_eq!(session.output(0).expect("an output"), expected);
        for at_once in [1, 2, 5, rows] {
            session.restart();
            assert_eq!(fed(session, &image, at_once * bytes), expected, "{at_once} at once");
        }

        session.restart();
        let needed = bytes as u32;
        for given in [0, 1, bytes - 1, bytes + 1] {
            let size = RunError::RowSize {
                input,
                needed,
                given: given as u32,
            };
            assert_eq!(session.feed_rows(0, &image[..given]), Err(size));
        }
        assert_eq!(session.feed_rows(0, &image[..3 * bytes]), Ok(rows as u32 - 3));
        let missing = RunError::RowsMissing {
            input,
            fed: 3,
            needed: rows as u32,
        };
        assert_eq!(session.run(), Err(missing));
        assert_eq!(session.step(), Err(missing));
        let over = RunError::RowsOver {
            input,
            left: rows as u32 - 3,
            given: rows as u32,
        };
        assert_eq!(session.feed_rows(0, &image), Err(over));
        assert_eq!(session.input_mut(0).err(), Some(RunError::FedByRows { input }));
        assert_eq!(
            session.feed_rows(1, &image).err(),
            Some(RunError::NoSuchPort { index: 1 })
        );
        // Rows that were fed count: the rest makes the picture whole.
        assert_eq!(fed(session, &image[3 * bytes..], bytes), expected);

        // A stream that ends half-way.
        session.restart();
        session.feed_rows(0, &image[..bytes]).expect("a row");
        session.restart();
        assert_eq!(fed(session, &image, bytes), expected);
        session.restart();
        session.set_input(0, &image).expect("all of it");
        while session.step().expect("a step") != Progress::Done {}
        assert_eq!(session.output(0).expect("an output"), expected);
    });
}

/// Every byte of the section and of its row in the table, with other values: load refuses the file, or it runs to its end inside of its memory.
#[test]
fn forged_sections_are_refused_or_stay_inside() {
    let Some(models) = models("forged_sections_are_refused_or_stay_inside") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let options = rolled(&options(
        &models.join("kws_ref_model.tflite"),
        folder.path(),
        Target::Portable,
    ));
    summary(&options);
    let file = std::fs::read(&options.output).expect("the model");
    let header = arenite::Header::parse(&file).expect("a header");
    let at = header.rolling.offset as usize..(header.rolling.offset + header.rolling.len) as usize;
    assert!(!at.is_empty());
    let table = arenite::HEADER_BYTES..header.bytes();
    let mut aligned = Aligned::new(file.len());
    let (mut refused, mut ran, mut rows) = (0, 0, false);
    for byte in table.chain(at) {
        for change in [1u8, 0x80, 0xFF, 0x10] {
            let forged = aligned.bytes();
            forged.copy_from_slice(&file);
            forged[byte] ^= change;
            arenite::blob::seal(forged);
            let model = match arenite::Model::load(aligned.as_slice()) {
                Ok(model) => model,
                Err(error) => {
                    refused += 1;
                    rows |= matches!(error, LoadError::Step { fault: Fault::Rows, .. });
                    continue;
                }
            };
            // Each run takes its time: of those that load, some.
            ran += 1;
            if ran % 40 != 1 {
                continue;
            }
            const GUARD: usize = 64;
            let bytes = model.arena_bytes(0);
            let mut arena = Aligned::new(bytes + GUARD);
            arena.bytes().fill(0xA5);
            let whole = arena.bytes();
            let (own, _) = whole.split_at_mut(bytes);
            let mut session = Session::new(model, own, &mut []).expect("a session");
            let image = vec![3; model.input(0).and_then(|port| port.bytes()).expect("bytes") as usize];
            let _ = session.set_input(0, &image);
            let _ = session.run();
            assert!(
                arena.as_slice()[bytes..].iter().all(|&byte| byte == 0xA5),
                "byte {byte}"
            );
        }
    }
    eprintln!("{refused} refused, {ran} loaded");
    assert!(refused > ran / 4);
    assert!(rows, "no turn that reads a row before it is made was refused as that");
}
