//! Training of networks that were read from traces: every backward step of small ones alone, central differences, and figures of the reference traces.

use arenite_host::gradient::Loss;
use arenite_host::model::{self, ModelFile, derived};
use arenite_host::pack::{Options, Packed};
use arenite_host::report::{Summary, TrainingReport};
use arenite_tests::writers::{Chain, Layer, rects, tf_shapes};

use super::steps::each_step;
use super::*;

/// A trace of this text, packed with `--train` at batch `batch`.
fn trained(text: &str, batch: usize, loss: Loss, folder: &std::path::Path) -> (ModelFile, Packed) {
    let trace = folder.join("small.trace");
    std::fs::write(&trace, text).expect("written");
    let mut options = Options::new(trace, folder.join("small.bin"));
    options.weights = Some("seeded:1".into());
    options.import.batch = Some(batch);
    options.train = request(loss, &[]);
    packed(options)
}

/// Numbers from -1 to 1.
fn numbers(count: usize) -> Vec<f32> {
    let mut seed = 5_u32;
    let mut next = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The outputs of inference with a state.
fn inferred(file: &ModelFile, state: &[f32], image: &[u8]) -> Vec<f64> {
    let made = derived::with_state(&file.view().expect("intact"), &bytes(state)).expect("a file");
    let file = ModelFile::made(&made, file.path());
    let outputs = model::run(
        &file.load().expect("loads"),
        &[vec![image.to_vec()]],
        false,
        &mut |_, _, _| {},
    );
    floats(&outputs.expect("runs")[0][0])
        .into_iter()
        .map(f64::from)
        .collect()
}

/// Compares the steepest slope of each parameter with a central difference of the loss of inference's outputs. The last of the inputs is a rate of 1.
fn slopes(file: &ModelFile, inputs: &[Vec<u8>], loss: &dyn Fn(&[f64]) -> f64) -> usize {
    let (mut given, mut found) = (Some(inputs.to_vec()), 0.0);
    let after = model::train(
        &file.load().expect("loads"),
        None,
        &mut |_| given.take(),
        &mut |_, outputs| {
            found = f64::from(floats(&outputs[0])[0]);
            Ok(())
        },
    );
    let (before, after) = (floats(&initial(file)), floats(&after.expect("it trains")));
    let expected = loss(&inferred(file, &before, &inputs[0]));
    assert!((found - expected).abs() <= 1e-5 * expected, "{found} and {expected}");
    let metadata = file.view().expect("intact").metadata().expect("metadata");
    let parameters = metadata.training.expect("steps of training").parameters;
    for parameter in &parameters {
        let from = parameter.offset as usize / 4;
        let count = parameter.shape.iter().map(|&n| n as usize).product::<usize>();
        let slope = |at: usize| f64::from(before[at] - after[at]);
        let steepest = (from..from + count).max_by(|&a, &b| slope(a).abs().total_cmp(&slope(b).abs()));
        let at = steepest.expect("a parameter has elements");
        let moved = [2e-3_f32, -2e-3].map(|by| {
            let mut state = before.clone();
            state[at] += by;
            (f64::from(state[at]), loss(&inferred(file, &state, &inputs[0])))
        });
        let numeric = (moved[0].1 - moved[1].1) / (moved[0].0 - moved[1].0);
        assert!(
            (slope(at) - numeric).abs() <= 1e-2 * numeric.abs(),
            "{} at {at}: {} and {numeric}",
            parameter.name,
            slope(at)
        );
    }
    parameters.len()
}

/// Local response normalisation between a convolution and a pooling, behind a layer that is trained.
#[test]
fn a_normalised_network_has_its_gradients() {
    let folder = tempfile::tempdir().expect("a folder");
    let conv = |filters| Layer::conv(filters, [3; 2], [1; 2], [1; 2], 1, [1; 2]);
    let chain = Chain {
        batch: 2,
        image: [3, 9, 14],
        layers: vec![
            conv(10),
            Layer::Relu,
            Layer::Lrn,
            Layer::MaxPool {
                kernel: [3; 2],
                stride: [2; 2],
                ceiling: false,
            },
            conv(6),
        ],
    };
    let (file, packed) = trained(&tf_shapes::write(&chain, None), 2, Loss::L2, folder.path());
    let inputs = vec![bytes(&numbers(2 * 3 * 9 * 14)), bytes(&[1.0])];
    let checked = each_step(&file, &inputs);
    assert_eq!(checked["LrnGradF32"], 1, "{checked:?}");
    let half_squares = |y: &[f64]| y.iter().map(|y| y * y / 2.0).sum();
    assert_eq!(
        slopes(&file, &inputs, &half_squares),
        packed.summary.training.expect("steps").gradients
    );
}

/// Locally connected layers with gains and biases, and a softmax whose classes are not the last axis.
#[test]
fn a_locally_connected_network_has_its_gradients() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = rects::Local {
        batch: 3,
        image: [2, 9, 11],
        layers: vec![(4, 3), (3, 2)],
        classes: 5,
    };
    let (file, packed) = trained(&local.write(), 3, Loss::CrossEntropy, folder.path());
    let classes = [4_i32, 0, 2];
    let labels = classes.iter().flat_map(|label| label.to_le_bytes()).collect();
    let inputs = vec![bytes(&numbers(3 * 2 * 9 * 11)), labels, bytes(&[1.0])];
    let checked = each_step(&file, &inputs);
    for (kernel, count) in [
        ("LocallyConnectedInputGradF32", 1),
        ("LocallyConnectedWeightSgdF32", 2),
        ("LocallyConnectedGainGradF32", 2),
        ("BiasSgdF32", 4),
        ("SoftmaxCrossEntropyF32", 1),
    ] {
        assert_eq!(checked.get(kernel), Some(&count), "{checked:?}");
    }
    let entropy = |shares: &[f64]| {
        let rows = shares.chunks(5).zip(classes);
        rows.map(|(row, label)| -row[label as usize].ln()).sum::<f64>() / 3.0
    };
    let training = packed.summary.training.expect("steps");
    assert_eq!(slopes(&file, &inputs, &entropy), training.gradients);
    assert_eq!((training.gradients, training.trained_params), (7, local.params()));
}

/// A reference trace, packed with `--train` at batch 1.
fn reference(trace: &str, loss: Loss) -> Option<TrainingReport> {
    let report = packed_reference(trace, loss, None)?.training?;
    let matched: Vec<(&str, usize)> = report
        .matched
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect();
    // Max-live of the step as traced, by scripts that are independent of this project.
    let (live, expected): (u64, &[(&str, usize)]) = match trace.split('-').next() {
        Some("vgg19") => (628_821_920, &[("gradients", 46)]),
        Some("localnet") => (586_561_348, &[("gradients", 8), ("updates", 7), ("zeroings", 15)]),
        Some("alexnet") => (13_598_976, &[("gradients", 24)]),
        _ => (94_394_800, &[("allreduces", 214), ("gradients", 284), ("updates", 214)]),
    };
    assert_eq!(report.train_liveness_as_traced_bytes, Some(live));
    assert_eq!(matched, expected);
    Some(report)
}

fn packed_reference(trace: &str, loss: Loss, fit: Option<u64>) -> Option<Summary> {
    let Some(shared) = arenite_tests::shared() else {
        arenite_tests::skip(trace, "no shared data");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let trace = shared.join("traces").join(trace);
    let mut options = Options::new(trace, folder.path().join("reference.bin"));
    options.weights = Some("seeded:1".into());
    options.import.batch = Some(1);
    options.train = request(loss, &[]);
    options.fit = fit;
    let summary = packed(options).1.summary;
    assert!(summary.plan_proven_optimal);
    Some(summary)
}

/// Figures of `pack --train --loss l2 --batch 1` of AlexNet, from its trace.
#[test]
fn alexnet_trains_within_its_arena() {
    let Some(training) = reference("alexnet-tf-shapes.trace.txt", Loss::L2) else {
        return;
    };
    assert_eq!((training.gradients, training.trained_params), (10, 2_469_696));
    assert_eq!(training.backward_macs, 1_243_435_008);
    assert!(
        training.train_arena_bytes <= 3_400_000,
        "{}",
        training.train_arena_bytes
    );
    assert_eq!(training.train_ops_final["lrn_grad"], 2);
}

/// Figures of `pack --train --loss cross-entropy --batch 1` of the local net, from its trace.
#[test]
fn the_local_net_trains_within_its_arena() {
    let Some(training) = reference("localnet-rects.trace.txt", Loss::CrossEntropy) else {
        return;
    };
    assert_eq!((training.gradients, training.trained_params), (7, 293_629_250));
    assert_eq!(training.backward_macs, 581_380_416);
    assert!(training.train_arena_bytes <= 760_000, "{}", training.train_arena_bytes);
}

/// Figures of `pack --train --loss cross-entropy --batch 1` of ResNet-50, from its trace: batch norms take the statistics of the batch.
#[test]
fn resnet50_trains_within_its_arena() {
    let Some(training) = reference("resnet50-keras-order.trace.txt", Loss::CrossEntropy) else {
        return;
    };
    assert_eq!((training.gradients, training.trained_params), (214, 25_583_592));
    assert_eq!(training.backward_macs, 7_597_932_544);
    assert!(
        training.train_arena_bytes <= 78_000_000,
        "{}",
        training.train_arena_bytes
    );
    assert_eq!(training.train_ops_final["batch_norm_grad"], 53);
}

/// The same with activations that are computed again: at most the forward half, once more.
#[test]
fn resnet50_trains_in_a_third_of_its_arena() {
    let (trace, fit) = ("resnet50-keras-order.trace.txt", 28_500_000);
    let Some(summary) = packed_reference(trace, Loss::CrossEntropy, Some(fit)) else {
        return;
    };
    assert!(summary.arena_bytes <= fit, "{}", summary.arena_bytes);
    assert!(summary.extra_macs <= summary.macs, "{}", summary.extra_macs);
    let training = summary.training.expect("steps of training");
    assert_eq!(training.backward_macs, 7_597_932_544);
    assert_eq!(training.matched["gradients"], 284);
}

/// Figures of `pack --train --loss cross-entropy --batch 1` of VGG-19, from its trace.
#[test]
fn vgg19_trains_within_its_arena() {
    let Some(training) = reference("vgg19-chainer.trace.txt", Loss::CrossEntropy) else {
        return;
    };
    assert_eq!((training.gradients, training.trained_params), (38, 143_667_240));
    assert_eq!(training.backward_macs, 39_177_420_800);
    assert!(
        training.train_arena_bytes <= 44_600_000,
        "{}",
        training.train_arena_bytes
    );
}

/// Other optimisers and losses have other names, a trace of gradients alone has no updates: the gradients are matched all the same.
#[test]
fn gradients_are_matched_whatever_applies_them() {
    let name = "gradients_are_matched_whatever_applies_them";
    let Some(shared) = arenite_tests::shared() else {
        return arenite_tests::skip(name, "no shared data");
    };
    let text = std::fs::read_to_string(shared.join("traces/resnet50-keras-order.trace.txt")).expect("a trace");
    let folder = tempfile::tempdir().expect("a folder");
    let matched = |text: String| {
        let trace = folder.path().join("changed.trace");
        std::fs::write(&trace, text).expect("written");
        let mut options = Options::new(trace, folder.path().join("changed.bin"));
        options.weights = Some("seeded:1".into());
        options.train = request(Loss::CrossEntropy, &[]);
        let training = packed(options).1.summary.training.expect("steps");
        let of = |kind: &str| training.matched.get(kind).copied().unwrap_or(0);
        (of("gradients"), of("updates"), of("allreduces"))
    };
    let other = text
        .replace("SGD/SGD/", "Adam/Adam/")
        .replace("ResourceApplyGradientDescent", "ResourceApplyAdam");
    assert_eq!(matched(other), (284, 214, 214));
    let other = text.replace(
        "SparseSoftmaxCrossEntropyWithLogits",
        "softmax_cross_entropy_with_logits",
    );
    assert_eq!(matched(other), (284, 214, 214));
    let applied = |line: &&str| !line.starts_with("SGD/") && !line.starts_with("DistributedGradientTape");
    assert_eq!(
        matched(text.lines().filter(applied).collect::<Vec<_>>().join("\n")),
        (284, 0, 0)
    );
}

/// A training half that lacks an operator, or has one more, is refused by its name.
#[test]
fn a_training_half_that_contradicts_is_refused() {
    let name = "a_training_half_that_contradicts_is_refused";
    let Some(shared) = arenite_tests::shared() else {
        return arenite_tests::skip(name, "no shared data");
    };
    let text = std::fs::read_to_string(shared.join("traces/resnet50-keras-order.trace.txt")).expect("a trace");
    let folder = tempfile::tempdir().expect("a folder");
    let refusal = |text: String| {
        let trace = folder.path().join("changed.trace");
        std::fs::write(&trace, text).expect("written");
        let mut options = Options::new(trace, folder.path().join("changed.bin"));
        options.weights = Some("seeded:1".into());
        options.train = request(Loss::CrossEntropy, &[]);
        let error = arenite_host::pack::pack(&options, &mut |_, _, _| {})
            .map(|_| ())
            .expect_err("refused");
        error.to_string()
    };
    let gradient = "gradient_tape/resnet50/conv5_block2_2_conv/BiasAdd/BiasAddGrad";
    let without = text
        .lines()
        .filter(|line| *line != gradient)
        .collect::<Vec<_>>()
        .join("\n");
    let found = refusal(without);
    assert!(found.contains(&format!("lacks `{gradient}`")), "{found}");
    let more = "gradient_tape/resnet50/conv5_block2_2_conv/BiasAdd_1/BiasAddGrad";
    let found = refusal(format!("{text}\n{more}\n"));
    assert!(found.contains(&format!("has `{more}`")), "{found}");
    let update = "SGD/SGD/update_7/ResourceApplyGradientDescent";
    let without = text
        .lines()
        .filter(|line| *line != update)
        .collect::<Vec<_>>()
        .join("\n");
    let found = refusal(without);
    assert!(found.contains("lacks `number 7 of the updates`"), "{found}");
}
