//! Training of batch norms: statistics of the batch, their gradients and the moving statistics, by formulas in f64 and beside PyTorch.

use arenite::Step;
use arenite_host::gradient::Loss;
use arenite_host::model;
use arenite_host::model::gradients::Gradients;
use arenite_tests::oracle;

use super::steps::{Seen, Written, each_step, stepped};
use super::*;

/// Returns what a step of a batch norm must write, in f64, from its operands' contents before it; none for other steps.
pub(super) fn expected(step: &Step, seen: &Seen<'_>) -> Option<Written> {
    let columns = |values: &[f64], channels: usize| -> Vec<Vec<f64>> {
        let column = |c: usize| values.iter().skip(c).step_by(channels).copied().collect();
        (0..channels).map(column).collect()
    };
    match step {
        Step::BatchStatisticsF32(op) => {
            let [rows, channels] = [op.rows, op.channels].map(|n| n as usize);
            let x = columns(&seen.floats(op.input, rows * channels), channels);
            let n = rows as f64;
            let mean: Vec<f64> = x.iter().map(|x| x.iter().sum::<f64>() / n).collect();
            let square = |(x, mean): (&Vec<f64>, &f64)| x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
            let squares: Vec<f64> = x.iter().zip(&mean).map(square).collect();
            let moved = |slot, fresh: &dyn Fn(usize) -> f64| {
                let share = f64::from(op.momentum);
                let before = seen.floats(slot, channels);
                (0..channels)
                    .map(|c| share * before[c] + (1.0 - share) * fresh(c))
                    .collect()
            };
            Some(vec![
                (op.mean, mean.clone()),
                (op.variance, squares.iter().map(|square| square / n).collect()),
                (op.moving_mean, moved(op.moving_mean, &|c| mean[c])),
                (
                    op.moving_variance,
                    moved(op.moving_variance, &|c| squares[c] / (n - 1.0)),
                ),
            ])
        }
        Step::BatchNormGradF32(op) => {
            let [rows, channels] = [op.rows, op.channels].map(|n| n as usize);
            let [dy, x] = [op.gradient, op.input].map(|slot| columns(&seen.floats(slot, rows * channels), channels));
            let gain = seen.floats(op.gain, channels);
            let n = rows as f64;
            let (mut dx, mut dgain, mut dshift) = (vec![0.0; rows * channels], Vec::new(), Vec::new());
            for c in 0..channels {
                // From the input alone, and not from the statistics that the run has.
                let mean = x[c].iter().sum::<f64>() / n;
                let variance = x[c].iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                let deviation = (variance + f64::from(op.epsilon)).sqrt();
                let normal: Vec<f64> = x[c].iter().map(|x| (x - mean) / deviation).collect();
                let sum: f64 = dy[c].iter().sum();
                let product: f64 = dy[c].iter().zip(&normal).map(|(dy, x)| dy * x).sum();
                // The Jacobian of the normalised values, row by row.
                for r in 0..rows {
                    let back = dy[c][r] - (sum + normal[r] * product) / n;
                    dx[r * channels + c] = gain[c] * back / deviation;
                }
                dgain.push(product);
                dshift.push(sum);
            }
            Some(vec![
                (op.output, dx),
                (op.gain_gradient, dgain),
                (op.shift_gradient, dshift),
            ])
        }
        _ => None,
    }
}

/// `residual` at batch 8, with its first images.
fn residual(folder: &std::path::Path, trainable: &[&str]) -> (ModelFile, Vec<Vec<u8>>) {
    let mut options = arenite_tests::digits_options("residual", &folder.join("residual.bin"));
    options.import.batch = Some(8);
    options.train = request(Loss::CrossEntropy, trainable);
    let (file, _) = packed(options);
    let images: Vec<f32> = training_images(|image| image.to_vec())[..8].concat();
    let labels = training_labels().into_iter().take(8).flat_map(i32::to_le_bytes);
    (file, vec![bytes(&images), labels.collect(), bytes(&[1.0])])
}

/// Batch norms, depthwise layers, averages and concatenation: loss, gradients and moving statistics within 2e-5 of PyTorch in f64.
#[test]
fn residual_trains_as_in_pytorch() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, inputs) = residual(folder.path(), &[]);
    let view = file.view().expect("intact");
    let training = view.training().expect("intact").expect("steps of training");
    let mut gradients = Gradients::of(&training).expect("updates");
    let (mut given, mut loss) = (Some(inputs.clone()), 0.0);
    let after = model::train_keeping(
        &file.load().expect("loads"),
        None,
        &mut |_| given.take(),
        &mut |_, outputs| {
            loss = f64::from(floats(&outputs[0])[0]);
            Ok(())
        },
        &mut gradients,
    );
    let after = after.expect("it trains");
    let expected: Vec<f64> = array("training/residual.gradients.npy");
    assert!((loss - expected[0]).abs() <= 2e-5, "{loss} and {}", expected[0]);
    let mut found = gradients.into_found().expect("a step was made");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found.len(), 17);
    let mut at = 1;
    for gradient in &found {
        let theirs = &expected[at..at + gradient.values.len()];
        at += gradient.values.len();
        let ours: Vec<f64> = gradient.values.iter().map(|&value| f64::from(value)).collect();
        let error = arenite_host::compare::relative_f64(&ours, theirs);
        assert!(error <= 2e-5, "{}: {error:e}", gradient.name);
    }
    assert_eq!(at, expected.len());

    // In the state lie the moving statistics too, where the steps have them.
    let mut moving = Vec::new();
    stepped(
        &file.load().expect("loads"),
        &inputs,
        &initial(&file),
        &mut |_, step, _, done| {
            if let (Step::BatchStatisticsF32(op), true) = (step, done) {
                moving.extend([(op.moving_mean, op.channels), (op.moving_variance, op.channels)]);
            }
        },
    );
    let statistics: Vec<f64> = moving
        .into_iter()
        .flat_map(|(slot, channels)| floats(&after[slot.offset as usize..][..4 * channels as usize]))
        .map(f64::from)
        .collect();
    let error = arenite_host::compare::relative_f64(&statistics, &array::<f64>("training/residual.statistics.npy"));
    assert!(error <= 2e-5, "moving statistics: {error:e}");
    oracle::compared("PyTorch", found.len() + 10, 8);
}

/// Each step alone, from the run's own operands.
#[test]
fn steps_of_batch_norms_are_right_by_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, inputs) = residual(folder.path(), &[]);
    let checked = each_step(&file, &inputs);
    for kernel in ["BatchStatisticsF32", "BatchNormGradF32"] {
        assert_eq!(checked.get(kernel), Some(&5), "{checked:?}");
    }
}

/// A batch norm of which nothing is trained is folded into its layer; one whose shift alone is trained is not, and keeps its gain.
#[test]
fn a_pattern_chooses_which_batch_norms_take_their_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = |file: &ModelFile| {
        let view = file.view().expect("intact");
        let training = view.training().expect("intact").expect("steps of training");
        let steps = training.steps().expect("steps");
        let of = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
        [
            of(|step| matches!(step, Step::BatchStatisticsF32(_))),
            of(|step| matches!(step, Step::BatchNormGradF32(_))),
            of(|step| matches!(step, Step::BiasSgdF32(_))),
        ]
    };
    assert_eq!(count(&residual(folder.path(), &["fc*"]).0), [0, 0, 1]);
    assert_eq!(
        count(&residual(folder.path(), &["block2.bn2.bias", "fc*"]).0),
        [1, 1, 2]
    );
    assert_eq!(count(&residual(folder.path(), &["biases"]).0), [5, 5, 6]);
}

/// The momentum of moving statistics is an assumption that can be given; one that nobody wants, or that is none, is refused.
#[test]
fn the_momentum_can_be_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = |trainable: &[&str], momentum: Option<&str>| {
        let mut options = arenite_tests::digits_options("residual", &folder.path().join("residual.bin"));
        options.train = request(Loss::CrossEntropy, trainable);
        let given = momentum.map(|value| ("bn.momentum".to_string(), value.to_string()));
        options.import.assume.extend(given);
        arenite_host::pack::pack(&options, &mut |_, _, _| {}).map(|packed| {
            let assumed = packed.summary.assumptions;
            let momentum = assumed.into_iter().find(|assumption| assumption.key == "bn.momentum");
            momentum.map(|assumption| (assumption.value, assumption.reason))
        })
    };
    let own = asked(&[], None).expect("packs").expect("an assumption");
    assert_eq!(own.0, "0.9");
    let given = asked(&[], Some("0.5")).expect("packs").expect("an assumption");
    assert_eq!(given, ("0.5".to_string(), "given".to_string()));
    assert_eq!(asked(&["fc*"], None).expect("packs"), None);
    for (trainable, momentum, reason) in [
        (&["fc*"][..], "0.5", "no batch norm is trained"),
        (&[], "1.5", "a number from 0 to 1"),
        (&[], "NaN", "a number from 0 to 1"),
    ] {
        let error = asked(trainable, Some(momentum)).expect_err("refused").to_string();
        assert!(error.contains(reason), "{error}");
    }
}
