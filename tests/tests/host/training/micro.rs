//! Micro-batches: a step in parts has the gradients of its parts, each computed by a file of its own at their batch.

use arenite_host::ErrorKind;
use arenite_host::gradient::Loss;
use arenite_host::memory::prove;
use arenite_host::model::gradients::Gradients;
use arenite_host::pack::{Options, pack};
use arenite_tests::digits_options;
use serde_json::json;

use super::*;
use crate::quantise::network::Network;

/// Options of a network with steps of training of `batch` samples in `parts`.
fn options(name: &str, output: &std::path::Path, batch: usize, parts: usize, loss: Loss) -> Options {
    let mut options = digits_options(name, output);
    options.import.batch = Some(batch);
    options.train = request(loss, &[]);
    if let Some(asked) = &mut options.train {
        asked.micro_batches = parts;
    }
    options
}

/// Samples `from` to `to` as inputs of a step.
fn samples(loss: Loss, from: usize, to: usize, rate: f32) -> Vec<Vec<u8>> {
    let images: Vec<f32> = training_images(sideways)[from..to].concat();
    let labels: Vec<u8> = match loss {
        Loss::CrossEntropy => training_labels()[from..to]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect(),
        _ => bytes(
            &(0..(to - from) * CLASSES)
                .map(|n| (n % 7) as f32 * 0.25)
                .collect::<Vec<f32>>(),
        ),
    };
    match loss {
        Loss::L2 => vec![bytes(&images), bytes(&[rate])],
        _ => vec![bytes(&images), labels, bytes(&[rate])],
    }
}

/// A step's outputs, the state behind it, and its gradients by name.
type Step = (Vec<Vec<u8>>, Vec<u8>, BTreeMap<String, Vec<f32>>);

fn step(file: &ModelFile, state: Option<&[u8]>, inputs: Vec<Vec<u8>>) -> Step {
    let view = file.view().expect("intact");
    let training = view.training().expect("intact").expect("steps of training");
    let mut gradients = Gradients::of(&training).expect("updates");
    let model = file.load().expect("loads");
    let mut outputs = Vec::new();
    let mut given = Some(inputs.clone());
    let kept = model::train_keeping(&model, state, &mut |_| given.take(), &mut |_, _| Ok(()), &mut gradients);
    let mut given = Some(inputs);
    let after = model::train(&model, state, &mut |_| given.take(), &mut |_, found| {
        outputs = found.to_vec();
        Ok(())
    });
    let after = after.expect("it trains");
    assert!(
        kept.expect("it trains") == after,
        "gradients that are kept change nothing"
    );
    let found = gradients.into_found().expect("a step was made");
    let by_name = found.into_iter().map(|gradient| (gradient.name, gradient.values));
    (outputs, after, by_name.collect())
}

/// Two and four parts of a batch: gradients are the means of the parts' and parameters follow them, bit for bit; moving statistics follow each part.
#[test]
fn a_step_in_parts_has_the_gradients_of_its_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, batch, parts) in [("digits", 2, 2), ("digits", 12, 4), ("residual", 8, 2), ("mlp", 6, 2)] {
        let loss = Loss::CrossEntropy;
        let (file, told) = packed(options(name, &folder.path().join("whole.bin"), batch, parts, loss));
        let (part, _) = packed(options(name, &folder.path().join("part.bin"), batch / parts, 1, loss));
        prove::prove(&file.view().expect("intact")).expect("both plans are right");
        assert!(told.summary.plan_proven_optimal, "{name}");

        let rate = 0.03;
        let (outputs, after, gradients) = step(&file, None, samples(loss, 0, batch, rate));
        let (mut state, mut means, mut mean_loss) = (initial(&part), BTreeMap::<String, Vec<f32>>::new(), 0.0);
        let share = 1.0 / parts as f32;
        for at in 0..parts {
            let (from, to) = (at * batch / parts, (at + 1) * batch / parts);
            // By a rate of 0, parameters stay.
            let (found, behind, own) = step(&part, Some(&state), samples(loss, from, to, 0.0));
            state = behind;
            mean_loss += floats(&found[0])[0] * share;
            for (name, values) in own {
                let mean = means.entry(name).or_insert_with(|| vec![0.0; values.len()]);
                mean.iter_mut()
                    .zip(values)
                    .for_each(|(mean, value)| *mean += share * value);
            }
        }
        assert_eq!(gradients, means, "{name}");
        let loss = floats(&outputs[0])[0];
        assert!(
            (loss - mean_loss).abs() <= 1e-6 * mean_loss,
            "{name}: {loss}, {mean_loss}"
        );
        assert_eq!(outputs[1], 0_i32.to_le_bytes(), "{name}");

        let none = BTreeMap::new();
        let mut expected = parameters(&file, &initial(&file), &none);
        for (name, values) in &mut expected {
            let follow = |(value, mean): (&mut f32, &f32)| *value -= rate * mean;
            values.iter_mut().zip(&means[name]).for_each(follow);
        }
        assert_eq!(parameters(&file, &after, &none), expected, "{name}");
        let metadata = file.view().expect("intact").metadata().expect("metadata");
        let (mut rest, mut theirs) = (after, state);
        for parameter in metadata.training.expect("steps of training").parameters {
            let bytes = 4 * parameter.shape.iter().product::<u32>() as usize;
            let place = parameter.offset as usize..parameter.offset as usize + bytes;
            rest[place.clone()].fill(0);
            theirs[place].fill(0);
        }
        assert!(rest == theirs, "{name}: moving statistics");
    }
}

/// Parts of any number are near the whole batch, with every loss, and take less memory where activations are the most of it.
#[test]
fn parts_are_near_the_whole_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    for loss in Loss::ALL {
        let (whole, told) = packed(options("digits", &folder.path().join("whole.bin"), 12, 1, loss));
        let (_, whole_state, whole_gradients) = step(&whole, None, samples(loss, 0, 12, 0.01));
        for parts in [3, 12] {
            let (file, in_parts) = packed(options("digits", &folder.path().join("m.bin"), 12, parts, loss));
            let (outputs, state, gradients) = step(&file, None, samples(loss, 0, 12, 0.01));
            assert!(floats(&outputs[0])[0].is_finite());
            for (name, values) in &whole_gradients {
                let largest = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
                let far = values.iter().zip(&gradients[name]).map(|(a, b)| (a - b).abs());
                let far = far.fold(0.0, f32::max);
                assert!(
                    far <= 1e-5 * largest,
                    "{} in {parts}, {name}: {far} of {largest}",
                    loss.name()
                );
            }
            let pairs = floats(&whole_state).into_iter().zip(floats(&state));
            assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-6), "{}", loss.name());
            let arena = |packed: &arenite_host::pack::Packed| {
                packed
                    .summary
                    .training
                    .as_ref()
                    .map_or(0, |training| training.train_arena_bytes)
            };
            assert!(
                arena(&in_parts) < arena(&told),
                "{} and {}",
                arena(&in_parts),
                arena(&told)
            );
        }
    }
}

/// Labels that are no class are counted over all parts.
#[test]
fn labels_of_all_parts_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = packed(options(
        "digits",
        &folder.path().join("m.bin"),
        6,
        3,
        Loss::CrossEntropy,
    ));
    let mut inputs = samples(Loss::CrossEntropy, 0, 6, 0.01);
    for at in [0, 1, 5] {
        inputs[1][4 * at..4 * at + 4].copy_from_slice(&(-1_i32).to_le_bytes());
    }
    assert_eq!(step(&file, None, inputs).0[1], 3_i32.to_le_bytes());
}

/// Labels of a part are the next ones of the batch: where the batch is not in front of the results, they would be others'.
#[test]
fn results_without_the_batch_in_front_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut network = Network::new(5, &[2, 5]);
    let weights = network.parameter(&[3, 5], |v| v);
    let y = network.push("linear", &["x", &weights], json!({}));
    network.push("transpose", &[&y], json!({"perm": [1, 0]}));
    for (loss, parts) in [(Loss::Mse, 1), (Loss::Mse, 2), (Loss::L2, 2)] {
        let mut asked = Options::new(network.write(folder.path()), folder.path().join("m.bin"));
        asked.import.batch = Some(4);
        asked.train = request(loss, &[]);
        if let Some(asked) = &mut asked.train {
            asked.micro_batches = parts;
        }
        match pack(&asked, &mut |_, _, _| {}) {
            Ok(_) => assert!(parts == 1 || loss == Loss::L2),
            Err(error) => {
                assert_eq!(
                    (error.kind(), loss, parts),
                    (ErrorKind::Unsupported, Loss::Mse, 2),
                    "{error}"
                );
                assert!(error.to_string().contains("holds no samples"), "{error}");
            }
        }
    }
}

#[test]
fn batches_that_are_no_multiple_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("m.bin");
    let asked = options("digits", &output, 8, 3, Loss::CrossEntropy);
    let error = pack(&asked, &mut |_, _, _| {}).map(|_| ()).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Usage);
    let text = error.to_string();
    assert!(
        text.contains("--micro-batches 3 of a batch of 8") && text.contains("--batch 9"),
        "{text}"
    );
    assert!(!output.exists());
}
