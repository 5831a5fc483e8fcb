//! Refusals of training, and effects of bad labels, numbers and files.

use arenite::Model;
use arenite_host::ErrorKind;
use arenite_host::gradient::Loss;
use arenite_host::model::saved::Saved;
use arenite_host::model::{self, Aligned};
use arenite_host::pack::{Options, pack};
use arenite_tests::digits_options;

use super::*;

/// A label that is no class is counted and changes nothing; NaN and an infinite rate are seen in the loss.
#[test]
fn labels_that_are_no_class_and_numbers_that_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    let image = &training_images(sideways)[0];
    let step = |image: &[f32], label: i32, rate: f32| {
        let (mut given, mut outputs) = (Some(step_inputs(image, label, rate)), Vec::new());
        let state = model::train(
            &file.load().expect("loads"),
            None,
            &mut |_| given.take(),
            &mut |_, found| {
                outputs = found.to_vec();
                Ok(())
            },
        );
        let ignored = i32::from_le_bytes(outputs[1][..].try_into().expect("a word"));
        (state.expect("it trains"), floats(&outputs[0])[0], ignored)
    };
    for label in [-1, 10, i32::MIN, i32::MAX] {
        assert_eq!(step(image, label, 0.1), (initial(&file), 0.0, 1), "label {label}");
    }
    let (state, loss, ignored) = step(image, 9, 0.1);
    assert!(state != initial(&file) && loss.is_finite() && ignored == 0);
    for (label, value) in [(3, f32::NAN), (-1, f32::NAN), (3, f32::INFINITY), (-1, f32::INFINITY)] {
        let mut broken = image.clone();
        broken[17] = value;
        assert!(!step(&broken, label, 0.1).1.is_finite(), "label {label} and {value}");
    }
    for rate in [f32::NAN, f32::INFINITY] {
        assert!(!step(image, 3, rate).1.is_finite(), "rate {rate}");
    }
}

#[test]
fn what_cannot_be_trained_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("refused.bin");
    let refusal = |name: &str, loss: Loss, trainable: &[&str]| {
        let options = Options {
            train: request(loss, trainable),
            ..digits_options(name, &output)
        };
        let error = pack(&options, &mut |_, _, _| {}).map(|_| ()).expect_err("refused");
        assert!(!output.exists());
        (error.kind(), error.to_string())
    };
    let (kind, text) = refusal("digits", Loss::CrossEntropy, &["fc*", "nothing*"]);
    assert_eq!(kind, ErrorKind::Input);
    assert!(
        text.contains("nothing* matches no parameter") && text.contains("conv1.weight"),
        "{text}"
    );
    // Batch norms of which nothing is trained are folded into the layers before them: all of these are named at once.
    let layers = ["stem.weight", "block1.depthwise.weight", "block2.pointwise.weight"];
    let patterns = layers.map(|name| format!("{name}*"));
    let (kind, text) = refusal("residual", Loss::CrossEntropy, &patterns.each_ref().map(String::as_str));
    assert_eq!(kind, ErrorKind::Unsupported);
    for name in layers.iter().chain(&["batch norm's gain or shift"]) {
        assert!(text.contains(name), "{name}: {text}");
    }
    let trained = digits("residual", folder.path(), Loss::CrossEntropy, &["fc*"])
        .1
        .summary;
    assert_eq!(trained.training.expect("the head alone").trained_params, 330);
    let beside = Options {
        train: request(Loss::CrossEntropy, &[]),
        cores: 2,
        ..digits_options("digits", &output)
    };
    let error = pack(&beside, &mut |_, _, _| {}).map(|_| ()).expect_err("refused");
    assert!(
        error.kind() == ErrorKind::Usage && error.to_string().contains("--train with --cores"),
        "{error}"
    );
}

#[test]
fn a_saved_state_goes_on_and_no_other_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    let view = file.view().expect("intact");
    let (images, labels) = (training_images(sideways), training_labels());
    let train = |from: Option<&[u8]>, samples: std::ops::Range<usize>| {
        let mut rest = samples;
        let mut inputs = |_| rest.next().map(|at| step_inputs(&images[at], labels[at], 0.01));
        model::train(&file.load().expect("loads"), from, &mut inputs, &mut |_, _| Ok(())).expect("it trains")
    };
    let half = train(None, 0..20);
    let saved = Saved {
        steps: 20,
        state: half.clone(),
    };
    let path = folder.path().join("half.state");
    let whole = saved.encode(&view);
    std::fs::write(&path, &whole).expect("written");
    let read = Saved::read(&path, &view).expect("it is of this model");
    assert_eq!(read, saved);
    assert_eq!(train(Some(&read.state), 20..40), train(None, 0..40));
    // Cut, or changed in any byte; or of another model.
    for len in [0, 31, 32, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).expect("written");
        assert_eq!(
            Saved::read(&path, &view).expect_err("cut").kind(),
            ErrorKind::Input,
            "{len} bytes"
        );
    }
    for at in (0..64).chain((64..whole.len()).step_by(997)) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&path, &changed).expect("written");
        assert!(Saved::read(&path, &view).is_err(), "byte {at}");
    }
    let (other, _) = digits("mlp", folder.path(), Loss::CrossEntropy, &[]);
    std::fs::write(&path, &whole).expect("written");
    let error = Saved::read(&path, &other.view().expect("intact")).expect_err("of another model");
    assert!(error.to_string().contains("another model"), "{error}");
}

/// Training files that are changed anywhere are refused or run: nothing panics, and inference and training stay in their memory.
#[test]
fn changed_training_files_are_refused_or_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = digits("digits", folder.path(), Loss::CrossEntropy, &["fc*"]);
    let header = file.view().expect("intact").header();
    let image = &training_images(sideways)[0];
    let (mut refused, mut ran) = (0, 0);
    let list = header.training.offset as usize..(header.training.offset + header.training.len) as usize;
    let table = 0..header.ports.offset as usize;
    for at in table.chain(list).filter(|at| !(20..24).contains(at)) {
        for bit in [0, 3, 7] {
            let mut changed = file.bytes().to_vec();
            changed[at] ^= 1 << bit;
            arenite::blob::seal(&mut changed);
            let mut aligned = Aligned::new(changed.len());
            aligned.bytes().copy_from_slice(&changed);
            let Ok(model) = Model::load(aligned.as_slice()) else {
                refused += 1;
                continue;
            };
            if model.arena_bytes(0) > 1 << 20 || model.state_bytes() > 1 << 20 || model.training().is_none() {
                continue;
            }
            let mut given = Some(step_inputs(image, 3, 0.1));
            let small = model.cost().total() < 1 << 32;
            if small && model::train(&model, None, &mut |_| given.take(), &mut |_, _| Ok(())).is_ok() {
                ran += 1;
            }
        }
    }
    assert!(refused > 1000 && ran > 100, "{refused} refused, {ran} ran");
}
