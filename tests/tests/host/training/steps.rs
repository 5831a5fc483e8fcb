//! Each backward step by itself, and the gradient of all parameters, in f64.

use std::collections::BTreeMap;

use arenite::ops::activation_grad::Activated;
use arenite::ops::window::Window2d;
use arenite::{Model, Session, Slot, Step};
use arenite_host::gradient::Loss;
use arenite_host::model::{self, Aligned};

use super::*;

/// A training step on the memory of a test, one step at a time.
pub(super) fn stepped(
    model: &Model<'_>,
    inputs: &[Vec<u8>],
    state: &[u8],
    look: &mut dyn FnMut(usize, &Step, &Session<'_, '_>, bool),
) {
    let mut arena = Aligned::new(model.arena_bytes(0));
    let mut memory = Aligned::new(model.state_bytes());
    let mut session = Session::new(*model, arena.bytes(), memory.bytes()).expect("memory");
    let all = Slot {
        region: Slot::STATE,
        offset: 0,
    };
    session.write(all, state).expect("the state");
    session.turn_to_training().expect("steps of training");
    for (port, bytes) in inputs.iter().enumerate() {
        session.set_input(port, bytes).expect("an input");
    }
    let training = model.training().expect("steps of training");
    for (index, record) in training.steps().enumerate() {
        let (id, params) = record.expect("a step");
        let step = Step::decode(arenite::KernelId::from_u8(id).expect("a kernel"), params).expect("a step");
        look(index, &step, &session, false);
        session.step().expect("it runs");
        look(index, &step, &session, true);
    }
}

/// Operands of a step in f64, as they are now.
pub(super) struct Seen<'s>(&'s Session<'s, 's>);

/// Values that a step must write to its operands.
pub(super) type Written = Vec<(Slot, Vec<f64>)>;

impl Seen<'_> {
    pub(super) fn floats(&self, slot: Slot, count: usize) -> Vec<f64> {
        let bytes = self.0.read(slot, 4 * count as u32).expect("in bounds");
        floats(bytes).into_iter().map(f64::from).collect()
    }
}

/// Calls `product(output, input, weight)` with the indices of all products of a convolution.
fn products(w: &Window2d, groups: usize, product: &mut dyn FnMut(usize, usize, usize)) {
    let [[h, wide, c], [oh, ow, oc]] = [w.input, w.output].map(|extents| extents.map(usize::from));
    let [kh, kw] = w.kernel.map(usize::from);
    let (per_group, filters) = (c / groups, oc / groups);
    for n in 0..usize::from(w.batch) {
        for (oy, ox, o) in (0..oh).flat_map(|y| (0..ow).flat_map(move |x| (0..oc).map(move |o| (y, x, o)))) {
            for (ky, kx) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
                let at = |axis: usize, out: usize, tap: usize| {
                    let stride = out * usize::from(w.stride[axis]) + tap * usize::from(w.dilation[axis]);
                    stride.checked_sub(w.padding[axis].into())
                };
                let (Some(iy), Some(ix)) = (at(0, oy, ky), at(1, ox, kx)) else {
                    continue;
                };
                if iy >= h || ix >= wide {
                    continue;
                }
                for i in 0..per_group {
                    let input = ((n * h + iy) * wide + ix) * c + o / filters * per_group + i;
                    let output = ((n * oh + oy) * ow + ox) * oc + o;
                    product(output, input, ((o * kh + ky) * kw + kx) * per_group + i);
                }
            }
        }
    }
}

/// A locally connected layer's extents, and how many elements it has of each kind.
struct Local {
    batch: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 2],
    inputs: usize,
    outputs: usize,
    weights: usize,
}

impl Local {
    fn new(batch: u16, input: [u16; 3], output: [u16; 3], kernel: [u16; 2]) -> Self {
        let (batch, kernel) = (usize::from(batch), kernel.map(usize::from));
        let [input, output] = [input, output].map(|extents| extents.map(usize::from));
        let outputs: usize = output.iter().product();
        Self {
            batch,
            input,
            output,
            kernel,
            inputs: batch * input.iter().product::<usize>(),
            outputs: batch * outputs,
            weights: outputs * input[0] * kernel[0] * kernel[1],
        }
    }

    /// Calls `product(output, input, weight)` with the indices of all products.
    fn products(&self, product: &mut dyn FnMut(usize, usize, usize)) {
        let ([c, h, w], [o, oh, ow], [kh, kw]) = (self.input, self.output, self.kernel);
        for y in 0..self.batch * o * oh * ow {
            let (ox, oy, filter, n) = (y % ow, y / ow % oh, y / ow / oh % o, y / ow / oh / o);
            for tap in 0..c * kh * kw {
                let (kx, ky, channel) = (tap % kw, tap / kw % kh, tap / kw / kh);
                let x = ((n * c + channel) * h + oy + ky) * w + ox + kx;
                product(y, x, ((filter * c * kh * kw + tap) * oh + oy) * ow + ox);
            }
        }
    }
}

/// Returns the values that a step must write to its first operand, in f64, from its operands' contents before it; none for steps that inference has as well.
fn expected(step: &Step, seen: &Seen<'_>) -> Option<(Slot, Vec<f64>)> {
    let size =
        |extents: [u16; 3], batch: u16| extents.iter().map(|&n| usize::from(n)).product::<usize>() * usize::from(batch);
    let weights = |w: &Window2d, groups: u16| {
        let per_group = usize::from(w.input[2]) / usize::from(groups);
        usize::from(w.output[2]) * usize::from(w.kernel[0]) * usize::from(w.kernel[1]) * per_group
    };
    Some(match step {
        Step::Conv2dInputGradF32(op) => {
            let w = &op.window;
            let dy = seen.floats(op.gradient, size(w.output, w.batch));
            let weights = seen.floats(op.weights, weights(w, op.groups));
            let mut dx = vec![0.0; size(w.input, w.batch)];
            products(w, op.groups.into(), &mut |o, i, k| dx[i] += dy[o] * weights[k]);
            (op.output, dx)
        }
        Step::Conv2dWeightSgdF32(op) => {
            let w = &op.window;
            let dy = seen.floats(op.gradient, size(w.output, w.batch));
            let x = seen.floats(op.input, size(w.input, w.batch));
            let rate = seen.floats(op.rate, 1)[0];
            let mut weights = seen.floats(op.weights, weights(w, op.groups));
            products(w, op.groups.into(), &mut |o, i, k| weights[k] -= rate * dy[o] * x[i]);
            (op.weights, weights)
        }
        Step::LinearInputGradF32(op) => {
            let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|n| n as usize);
            let dy = seen.floats(op.gradient, rows * outputs);
            let w = seen.floats(op.weights, outputs * inputs);
            let dx = |at: usize| {
                let (r, i) = (at / inputs, at % inputs);
                (0..outputs).map(|o| dy[r * outputs + o] * w[o * inputs + i]).sum()
            };
            (op.output, (0..rows * inputs).map(dx).collect())
        }
        Step::LinearWeightSgdF32(op) => {
            let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|n| n as usize);
            let dy = seen.floats(op.gradient, rows * outputs);
            let x = seen.floats(op.input, rows * inputs);
            let (w, rate) = (seen.floats(op.weights, outputs * inputs), seen.floats(op.rate, 1)[0]);
            let after = |at: usize| {
                let (o, i) = (at / inputs, at % inputs);
                w[at] - rate * (0..rows).map(|r| dy[r * outputs + o] * x[r * inputs + i]).sum::<f64>()
            };
            (op.weights, (0..outputs * inputs).map(after).collect())
        }
        Step::LocallyConnectedInputGradF32(op) => {
            let local = Local::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
            let (dy, w) = (
                seen.floats(op.gradient, local.outputs),
                seen.floats(op.weights, local.weights),
            );
            let gain = op.gain.map_or(1.0, |gain| seen.floats(gain, 1)[0]);
            let mut dx = vec![0.0; local.inputs];
            local.products(&mut |y, x, k| dx[x] += gain * dy[y] * w[k]);
            (op.output, dx)
        }
        Step::LocallyConnectedWeightSgdF32(op) => {
            let local = Local::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
            let (dy, x) = (
                seen.floats(op.gradient, local.outputs),
                seen.floats(op.input, local.inputs),
            );
            let gain = op.gain.map_or(1.0, |gain| seen.floats(gain, 1)[0]);
            let (rate, mut w) = (seen.floats(op.rate, 1)[0], seen.floats(op.weights, local.weights));
            local.products(&mut |y, i, k| w[k] -= rate * gain * dy[y] * x[i]);
            (op.weights, w)
        }
        Step::LocallyConnectedGainGradF32(op) => {
            let local = Local::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
            let (dy, x) = (
                seen.floats(op.gradient, local.outputs),
                seen.floats(op.input, local.inputs),
            );
            let (w, mut sum) = (seen.floats(op.weights, local.weights), 0.0);
            local.products(&mut |y, i, k| sum += dy[y] * x[i] * w[k]);
            (op.output, vec![sum])
        }
        Step::BiasSgdF32(op) => {
            let [rows, channels] = [op.rows, op.channels].map(|n| n as usize);
            let (dy, rate) = (seen.floats(op.gradient, rows * channels), seen.floats(op.rate, 1)[0]);
            let bias = seen.floats(op.bias, channels);
            let after = |c: usize| bias[c] - rate * (0..rows).map(|r| dy[r * channels + c]).sum::<f64>();
            (op.bias, (0..channels).map(after).collect())
        }
        Step::ActivationGradF32(op) => {
            let count = op.count as usize;
            let (dy, y) = (seen.floats(op.gradient, count), seen.floats(op.result, count));
            let slope = |y: f64| match op.activation {
                Activated::Clamp { min, max } => f64::from(u8::from(y > f64::from(min) && y < f64::from(max))),
                Activated::Tanh => 1.0 - y * y,
                Activated::Logistic => y * (1.0 - y),
            };
            (op.output, dy.iter().zip(&y).map(|(dy, &y)| dy * slope(y)).collect())
        }
        Step::MaxPoolGradF32(op) => {
            let w = &op.window;
            let dy = seen.floats(op.gradient, size(w.output, w.batch));
            let positions = seen.0.read(op.positions, dy.len() as u32).expect("in bounds").to_vec();
            let [[rows, columns, channels], [oh, ow, _]] = [w.input, w.output].map(|n| n.map(usize::from));
            let mut dx = vec![0.0; size(w.input, w.batch)];
            for (at, (dy, &position)) in dy.iter().zip(&positions).enumerate() {
                let (c, ox, oy, n) = (
                    at % channels,
                    at / channels % ow,
                    at / channels / ow % oh,
                    at / channels / ow / oh,
                );
                let (position, kw) = (usize::from(position), usize::from(w.kernel[1]));
                let y = oy * usize::from(w.stride[0]) + position / kw - usize::from(w.padding[0]);
                let x = ox * usize::from(w.stride[1]) + position % kw - usize::from(w.padding[1]);
                dx[((n * rows + y) * columns + x) * channels + c] += dy;
            }
            (op.output, dx)
        }
        Step::LrnGradF32(op) => {
            let (channels, radius) = (op.channels as usize, usize::from(op.radius));
            let count = op.pixels as usize * channels;
            let (dy, x) = (seen.floats(op.gradient, count), seen.floats(op.input, count));
            let [bias, alpha, beta] = [op.bias, op.alpha, op.beta].map(f64::from);
            let near = |at: usize| {
                (at / channels * channels..count)
                    .take(channels)
                    .filter(move |b| b.abs_diff(at) <= radius)
            };
            let scale = |at: usize| bias + alpha * near(at).map(|b| x[b] * x[b]).sum::<f64>();
            // The derivative of every neighbour's result by this element.
            let dx = |at: usize| -> f64 {
                let of = |b: usize| {
                    let own = if b == at { scale(b).powf(-beta) } else { 0.0 };
                    dy[b] * (own - 2.0 * alpha * beta * x[b] * x[at] * scale(b).powf(-beta - 1.0))
                };
                near(at).map(of).sum()
            };
            (op.output, (0..count).map(dx).collect())
        }
        Step::SoftmaxCrossEntropyF32(op) => {
            let [rows, classes] = [op.rows, op.classes].map(|n| n as usize);
            let x = seen.floats(op.logits, rows * classes);
            let labels = seen.0.read(op.labels, op.rows * 4).expect("in bounds").to_vec();
            let label = |r: usize| i32::from_le_bytes(labels[4 * r..][..4].try_into().expect("a word"));
            let gradient = |at: usize| {
                let row = &x[at / classes * classes..][..classes];
                let share = x[at].exp() / row.iter().map(|x| x.exp()).sum::<f64>();
                let right = label(at / classes) as usize == at % classes;
                (share - f64::from(u8::from(right))) / rows as f64
            };
            (op.output, (0..rows * classes).map(gradient).collect())
        }
        _ => return None,
    })
}

/// Runs a training step of a file's first state, each of whose backward steps is to be within 1e-5 of f64; how many there were, by their kernels.
pub(super) fn each_step(file: &ModelFile, inputs: &[Vec<u8>]) -> BTreeMap<&'static str, usize> {
    let (mut wanted, mut checked) = (None, BTreeMap::new());
    let model = file.load().expect("loads");
    stepped(&model, inputs, &initial(file), &mut |index, step, session, done| {
        let seen = Seen(session);
        if !done {
            wanted = norms::expected(step, &seen).or_else(|| Some(vec![expected(step, &seen)?]));
            return;
        }
        let Some(wanted) = wanted.take() else { return };
        for (slot, wanted) in wanted {
            let found = seen.floats(slot, wanted.len());
            let error = arenite_host::compare::relative_f64(&found, &wanted);
            assert!(error <= 1e-5, "step {index}, {}: {error:e}", step.kernel().name());
        }
        *checked.entry(step.kernel().name()).or_insert(0) += 1;
    });
    checked
}

/// Each backward step alone, from the run's own operands, within 1e-5 of f64.
#[test]
fn each_backward_step_is_right_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    let (images, labels) = (training_images(sideways), training_labels());
    let mut steps = 0;
    for sample in [0, 700, 1436] {
        let inputs = step_inputs(&images[sample], labels[sample], 0.5);
        steps += each_step(&file, &inputs).values().sum::<usize>();
    }
    assert!(steps >= 3 * 20, "{steps} steps");
}

/// The forward of digits in f64: cross-entropy of an image.
fn loss_of_digits(p: &BTreeMap<String, Vec<f64>>, image: &[f32], label: usize) -> f64 {
    let mut x: Vec<f64> = image.iter().map(|&x| f64::from(x)).collect();
    let (mut side, mut channels) = (8, 1);
    for (layer, filters, pooled) in [("conv1", 8, false), ("conv2", 16, true), ("conv3", 24, true)] {
        let (w, b) = (&p[&format!("{layer}.weight")], &p[&format!("{layer}.bias")]);
        let at = |x: &[f64], c: usize, y: usize, i: usize| x[(c * side + y) * side + i];
        let mut y = vec![0.0; filters * side * side];
        for (o, row, column) in (0..filters * side * side).map(|at| (at / (side * side), at / side % side, at % side)) {
            let mut sum = b[o];
            for (c, ky, kx) in (0..channels * 9).map(|at| (at / 9, at / 3 % 3, at % 3)) {
                let (iy, ix) = ((row + ky).wrapping_sub(1), (column + kx).wrapping_sub(1));
                if iy < side && ix < side {
                    sum += at(&x, c, iy, ix) * w[(o * channels + c) * 9 + ky * 3 + kx];
                }
            }
            y[(o * side + row) * side + column] = sum.max(0.0);
        }
        (x, channels) = (y, filters);
        if pooled {
            let half = side / 2;
            let pixel = |o: usize, r: usize, c: usize| x[(o * side + r) * side + c];
            let most = |at: usize| {
                let (o, r, c) = (at / (half * half), at / half % half * 2, at % half * 2);
                pixel(o, r, c)
                    .max(pixel(o, r, c + 1))
                    .max(pixel(o, r + 1, c))
                    .max(pixel(o, r + 1, c + 1))
            };
            x = (0..channels * half * half).map(most).collect();
            side = half;
        }
    }
    for (layer, outputs, last) in [("fc1", 32, false), ("fc2", 10, true)] {
        let (w, b) = (&p[&format!("{layer}.weight")], &p[&format!("{layer}.bias")]);
        let sum = |o: usize| {
            b[o] + x
                .iter()
                .enumerate()
                .map(|(i, x)| x * w[o * x_len(w, outputs) + i])
                .sum::<f64>()
        };
        x = (0..outputs)
            .map(|o| if last { sum(o) } else { sum(o).max(0.0) })
            .collect();
    }
    x.iter().map(|x| x.exp()).sum::<f64>().ln() - x[label]
}

/// Columns of a matrix of so many rows.
fn x_len(w: &[f64], rows: usize) -> usize {
    w.len() / rows
}

/// Central differences of the loss in f64 along random directions, within 1e-3.
#[test]
fn gradients_are_central_differences_of_the_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = digits("digits", folder.path(), Loss::CrossEntropy, &[]);
    let (image, label) = (&training_images(sideways)[11], training_labels()[11]);
    let before = initial(&file);
    let mut given = Some(step_inputs(image, label, 1.0));
    let after = model::train(
        &file.load().expect("loads"),
        None,
        &mut |_| given.take(),
        &mut |_, _| Ok(()),
    );
    let after = after.expect("it trains");
    let of = |state: &[u8]| parameters(&file, state, &flattened());
    let (before, after) = (of(&before), of(&after));
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    for direction in 0..8 {
        let mut moved = [1e-6, -1e-6].map(|by| (by, BTreeMap::new()));
        let mut slope = 0.0;
        for ((name, w), (_, next)) in before.iter().zip(&after) {
            let along: Vec<f64> = w.iter().map(|_| random()).collect();
            slope += w
                .iter()
                .zip(next)
                .zip(&along)
                .map(|((w, next), d)| f64::from(w - next) * d)
                .sum::<f64>();
            for (by, p) in &mut moved {
                let values = w.iter().zip(&along).map(|(&w, d)| f64::from(w) + *by * d).collect();
                p.insert(name.clone(), values);
            }
        }
        let [up, down] = moved.map(|(_, p)| loss_of_digits(&p, image, label as usize));
        let numeric = (up - down) / 2e-6;
        let error = (slope - numeric).abs() / numeric.abs().max(1e-3);
        assert!(error <= 1e-3, "direction {direction}: {slope} and {numeric}");
    }
}
