//! Low-rank adaptation, and a head in f32 behind layers of int8.

use arenite_host::gradient::Loss;
use arenite_host::model::gradients::Gradients;
use arenite_host::quantize;
use arenite_tests::digits_options;

use super::*;

const RATE: f32 = 0.05;

/// A file's parameters by name, each in its place in the state.
fn by_name(file: &ModelFile, state: &[u8]) -> BTreeMap<String, Vec<f32>> {
    parameters(file, state, &BTreeMap::new()).into_iter().collect()
}

/// `a` [m, k] times `b` [k, n].
fn product(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let sum = |at: usize| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum();
    (0..m * n).map(sum).collect()
}

fn transposed(a: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
    (0..m * n).map(|at| a[at % m * n + at / m]).collect()
}

/// Of `W' = W + B A` the gradient of a plain network follows: `dB = dW' A^T`, `dA = B^T dW'`. The layers beside fc1 and fc2 have exactly these.
#[test]
fn narrow_layers_have_the_gradients_of_their_product() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, told) = digits("digits", folder.path(), Loss::CrossEntropy, &["lora:3"]);
    let (plain, _) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    let training = told.summary.training.expect("steps of training");
    let layers = [("fc1", [32, 96]), ("fc2", [10, 32])];
    let scalars = layers
        .iter()
        .map(|(_, [out, inputs])| 3 * (out + inputs))
        .sum::<usize>();
    assert_eq!((training.gradients, training.trained_params), (4, scalars as u64));

    // Before it is trained the network computes what it did.
    assert_eq!(
        right(&file, &initial(&file), sideways),
        right(&plain, &initial(&plain), sideways)
    );
    let (images, labels) = (training_images(sideways), training_labels());
    let step = |file: &ModelFile, state: &[u8], at: usize, rate: f32| {
        let view = file.view().expect("intact");
        let training = view.training().expect("intact").expect("steps of training");
        let mut gradients = Gradients::of(&training).expect("updates");
        let mut given = Some(step_inputs(&images[at], labels[at], rate));
        let model = file.load().expect("loads");
        let after = model::train_keeping(
            &model,
            Some(state),
            &mut |_| given.take(),
            &mut |_, _| Ok(()),
            &mut gradients,
        );
        let found = gradients.into_found().expect("a step was made").into_iter();
        let found: BTreeMap<String, Vec<f64>> = found
            .map(|gradient| (gradient.name, gradient.values.into_iter().map(f64::from).collect()))
            .collect();
        (after.expect("it trains"), found)
    };
    let metadata = plain.view().expect("intact").metadata().expect("metadata");
    let places = metadata.training.expect("steps of training").parameters;
    let mut state = initial(&file);
    for at in 0..4 {
        let own = by_name(&file, &state);
        let mut whole = initial(&plain);
        let mut adapted = BTreeMap::new();
        for (name, [out, inputs]) in layers {
            let of = |end: &str| -> Vec<f64> {
                own[&format!("{name}.lora_{end}.weight")]
                    .iter()
                    .map(|&w| f64::from(w))
                    .collect()
            };
            let (a, b) = (of("a"), of("b"));
            let place = places
                .iter()
                .find(|place| place.name == format!("{name}.weight"))
                .expect("the layer");
            let bytes = place.offset as usize..place.offset as usize + 4 * out * inputs;
            let sums: Vec<f32> = floats(&whole[bytes.clone()])
                .iter()
                .zip(product(&b, &a, [out, 3, inputs]))
                .map(|(&w, added)| (f64::from(w) + added) as f32)
                .collect();
            whole[bytes].copy_from_slice(&super::bytes(&sums));
            adapted.insert(name, (a, b));
        }
        let (after, gradients) = step(&file, &state, at, RATE);
        let (_, theirs) = step(&plain, &whole, at, 0.0);
        for (name, [out, inputs]) in layers {
            let (a, b) = &adapted[name];
            let dw = &theirs[&format!("{name}.weight")];
            let db = product(dw, &transposed(a, [3, inputs]), [out, inputs, 3]);
            let da = product(&transposed(b, [out, 3]), dw, [3, out, inputs]);
            for (end, expected) in [("a", da), ("b", db)] {
                let ours = &gradients[&format!("{name}.lora_{end}.weight")];
                let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                let far = ours
                    .iter()
                    .zip(&expected)
                    .fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
                assert!(
                    far <= 1e-5 * largest,
                    "step {at}, {name}, {end}: {far:e} of {largest:e}"
                );
                assert!(largest > 0.0 || (at, end) == (0, "a"), "step {at}, {name}, {end}");
            }
        }
        state = after;
    }
}

#[test]
fn ranks_that_are_none_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (trainable, text) in [
        (
            &["lora:0"][..],
            "--trainable lora:0; expected lora:RANK, a whole number above 0",
        ),
        (&["lora:x"], "lora:x"),
        (&["lora:2", "lora:3"], "after another rank"),
    ] {
        let options = arenite_host::pack::Options {
            train: request(Loss::CrossEntropy, trainable),
            ..digits_options("digits", &folder.path().join("m.bin"))
        };
        let error = arenite_host::pack::pack(&options, &mut |_, _, _| {})
            .map(|_| ())
            .expect_err("refused");
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Convolutions of int8 under fully connected layers in f32, mirrored images: one pass takes the 129 that are right to 336 (as many where all is trained
/// in f32), and the state has the head alone.
#[test]
fn a_head_is_trained_on_layers_of_int8() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = folder.path().join("samples.npy");
    let images = training_images(|image| image.to_vec());
    let some: Vec<f32> = images.iter().take(64).flatten().copied().collect();
    let some = ndarray::Array::from_shape_vec((64, 1, 8, 8), some).expect("images");
    ndarray_npy::write_npy(&samples, &some).expect("written");
    let mut options = digits_options("digits", &folder.path().join("head.bin"));
    options.dtype = Some(arenite::DType::I8);
    options.input_dtype = Some(arenite::DType::F32);
    options.output_dtype = Some(arenite::DType::F32);
    options.quantize = Some(quantize::Request {
        samples,
        keep_f32: ["fc1", "fc2"].map(String::from).to_vec(),
        ..quantize::Request::default()
    });
    options.train = request(Loss::CrossEntropy, &["fc*"]);
    let (file, told) = packed(options);
    let summary = told.summary;
    assert_eq!(summary.state_bytes, 13_736);
    let order: Vec<i16> = array("training/order.npy");
    let (images, labels) = (training_images(mirrored), training_labels());
    let mut inputs = |step: usize| {
        let sample = *order.get(step)? as usize;
        Some(step_inputs(&images[sample], labels[sample], 0.03))
    };
    let state = model::train(&file.load().expect("loads"), None, &mut inputs, &mut |_, _| Ok(()));
    let state = state.expect("it trains");
    let counts = [right(&file, &initial(&file), mirrored), right(&file, &state, mirrored)];
    assert_eq!(counts, [129, 336]);
}
