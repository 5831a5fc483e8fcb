//! Optimisers, beside their formulas in f64 on gradients of another file, that of plain gradient descent.

use arenite_host::gradient::{Loss, Optimiser};
use arenite_host::memory::prove;
use arenite_host::metadata::TrainedMeta;
use arenite_host::model::gradients::Gradients;
use arenite_host::pack::Options;
use arenite_tests::digits_options;

use super::*;

fn learner(folder: &std::path::Path, optimiser: Optimiser) -> ModelFile {
    let output = folder.join(format!("{optimiser}.bin"));
    let mut options = Options {
        train: request(Loss::CrossEntropy, &[]),
        ..digits_options("digits", &output)
    };
    if let Some(asked) = &mut options.train {
        asked.optimiser = optimiser;
    }
    let (file, told) = packed(options);
    prove::prove(&file.view().expect("intact")).expect("both plans are right");
    assert!(told.summary.plan_proven_optimal);
    let stored = told.summary.training.expect("steps of training").optimiser;
    assert_eq!(stored, (optimiser != Optimiser::Sgd).then(|| optimiser.to_string()));
    file
}

/// The places of trained parameters in a state, by name.
fn places(file: &ModelFile) -> Vec<TrainedMeta> {
    let metadata = file.view().expect("intact").metadata().expect("metadata");
    metadata.training.expect("steps of training").parameters
}

fn bytes_of(parameter: &TrainedMeta) -> std::ops::Range<usize> {
    let from = parameter.offset as usize;
    from..from + 4 * parameter.shape.iter().product::<u32>() as usize
}

/// The gradients of a step of plain gradient descent, as parameters lie in memory.
fn gradients(plain: &ModelFile, state: &[u8], inputs: Vec<Vec<u8>>) -> BTreeMap<String, Vec<f32>> {
    let view = plain.view().expect("intact");
    let training = view.training().expect("intact").expect("steps of training");
    let mut gradients = Gradients::of(&training).expect("updates");
    let mut given = Some(inputs);
    let model = plain.load().expect("loads");
    let kept = model::train_keeping(
        &model,
        Some(state),
        &mut |_| given.take(),
        &mut |_, _| Ok(()),
        &mut gradients,
    );
    kept.expect("it trains");
    let found = gradients.into_found().expect("a step was made");
    found
        .into_iter()
        .map(|gradient| (gradient.name, gradient.values))
        .collect()
}

/// Six steps: each parameter within 2e-7 of where the formula takes it in f64, from where it was.
#[test]
fn parameters_go_where_the_formulas_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = learner(folder.path(), Optimiser::Sgd);
    let (images, labels) = (training_images(sideways), training_labels());
    let (first, second, epsilon) = (0.8_f32, 0.95_f32, 1e-7_f32);
    let adam = Optimiser::Adam {
        betas: [first, second],
        epsilon,
    };
    for optimiser in [Optimiser::Momentum(0.7), adam] {
        let file = learner(folder.path(), optimiser);
        let mut state = initial(&file);
        let mut moments = BTreeMap::<String, Vec<[f64; 2]>>::new();
        for step in 0..6 {
            let rate = 0.01 * (1 + step % 2) as f32;
            let inputs = |rate| step_inputs(&images[step], labels[step], rate);
            let mut theirs = initial(&plain);
            for (own, other) in places(&file).iter().zip(&places(&plain)) {
                assert_eq!(own.name, other.name);
                theirs[bytes_of(other)].copy_from_slice(&state[bytes_of(own)]);
            }
            let none = BTreeMap::new();
            let before = parameters(&file, &state, &none);
            let gradients = gradients(&plain, &theirs, inputs(0.0));
            let mut given = Some(inputs(rate));
            let model = file.load().expect("loads");
            state = model::train(&model, Some(&state), &mut |_| given.take(), &mut |_, _| Ok(())).expect("it trains");
            let after = parameters(&file, &state, &none);
            for ((name, before), (_, after)) in before.iter().zip(&after) {
                let kept = moments
                    .entry(name.clone())
                    .or_insert_with(|| vec![[0.0; 2]; before.len()]);
                for (at, kept) in kept.iter_mut().enumerate() {
                    let g = f64::from(gradients[name][at]);
                    let direction = match optimiser {
                        Optimiser::Sgd => g,
                        Optimiser::Momentum(share) => {
                            kept[0] = f64::from(share) * kept[0] + g;
                            kept[0]
                        }
                        Optimiser::Adam { .. } => {
                            let [b1, b2] = [first, second].map(f64::from);
                            kept[0] = b1 * kept[0] + (1.0 - b1) * g;
                            kept[1] = b2 * kept[1] + (1.0 - b2) * g * g;
                            let [m, v] =
                                [(kept[0], b1), (kept[1], b2)].map(|(kept, b)| kept / (1.0 - b.powi(step as i32 + 1)));
                            m / (v.sqrt() + f64::from(epsilon))
                        }
                    };
                    let expected = f64::from(before[at]) - f64::from(rate) * direction;
                    let far = (f64::from(after[at]) - expected).abs();
                    let most = 2e-7 * (1.0 + direction.abs());
                    assert!(far <= most, "{optimiser}, step {step}, {name}[{at}]: {far:e}");
                }
            }
        }
    }
}

/// One pass over the digits, mounted sideways, as `docs/training.md` has it.
#[test]
fn digits_mounted_sideways_are_learnt() {
    let folder = tempfile::tempdir().expect("a folder");
    let order: Vec<i16> = array("training/order.npy");
    let (images, labels) = (training_images(sideways), training_labels());
    for (text, rate, expected) in [("momentum", 0.001, 320), ("adam", 0.001, 321)] {
        let file = learner(folder.path(), Optimiser::named(text).expect(text));
        let mut inputs = |step: usize| {
            let sample = *order.get(step)? as usize;
            Some(step_inputs(&images[sample], labels[sample], rate))
        };
        let state = model::train(&file.load().expect("loads"), None, &mut inputs, &mut |_, _| Ok(()));
        let right = right(&file, &state.expect("it trains"), sideways);
        assert_eq!(right, expected, "{text}");
    }
}
