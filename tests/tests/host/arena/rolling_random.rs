//! Random stacks of what rolls: the outputs of the unfitted file, bit for bit, for every target whose kernels make rows.

use arenite::KernelId;
use arenite_host::quantize::Activations;
use serde_json::{Value, json};

use super::*;
use crate::quantise::network::{Network, calibrated_to};

/// A number from `from` on, below `to`.
fn within(network: &mut Network, from: usize, to: usize) -> usize {
    let share = (network.random() + 1.0) / 2.0;
    (from + (share * (to - from) as f64) as usize).min(to - 1)
}

/// Extents of the output along an axis; `None` where the window does not fit.
fn extent(input: usize, [before, after]: [usize; 2], reach: usize, stride: usize) -> Option<usize> {
    Some((input + before + after).checked_sub(reach)? / stride + 1)
}

/// Convolutions of all kinds, poolings and sums, one behind the other.
fn stack(seed: u64) -> Network {
    let mut shape = [1 + seed as usize % 7, 6 + seed as usize % 11, 4 + seed as usize % 13];
    // Rows of a picture whose channels lie side by side.
    let mut network = Network::new(seed, &[1, shape[1], shape[2], shape[0]]);
    let mut x = network.push("transpose", &["x"], json!({"perm": [0, 3, 1, 2]}));
    for layer in 0..within(&mut network, 2, 7) {
        let kind = if layer == 0 { 0 } else { within(&mut network, 0, 6) };
        let [c, h, w] = shape;
        let kernel = [0, 1].map(|_| within(&mut network, 1, 5));
        let stride = [0, 1].map(|_| within(&mut network, 1, 4));
        let dilation = [0, 1].map(|_| within(&mut network, 1, 3));
        let padding = [0; 4].map(|_| within(&mut network, 0, 3));
        let reach = [0, 1].map(|axis: usize| dilation[axis] * (kernel[axis] - 1) + 1);
        let made = (
            extent(h, [padding[0], padding[1]], reach[0], stride[0]),
            extent(w, [padding[2], padding[3]], reach[1], stride[1]),
        );
        let windowed = json!({"strides": stride, "padding": padding, "dilation": dilation});
        let next: Option<(String, [usize; 3])> = match (kind, made) {
            (0 | 1, (Some(oh), Some(ow))) => {
                let out = [4, 8, 12, 5, 3][within(&mut network, 0, 5)];
                Some((
                    network.conv2d(&x, [out, c, kernel[0], kernel[1]], windowed),
                    [out, oh, ow],
                ))
            }
            (2, (Some(oh), Some(ow))) => {
                let mut attrs = windowed;
                attrs["groups"] = json!(c);
                Some((network.conv2d(&x, [c, 1, kernel[0], kernel[1]], attrs), [c, oh, ow]))
            }
            (3, _) => {
                let out = within(&mut network, 1, 17);
                Some((network.conv2d(&x, [out, c, 1, 1], json!({})), [out, h, w]))
            }
            (4, _) => {
                // A sum over what was made before it, and what was made of that.
                let attrs = json!({"padding": [1, 1, 1, 1]});
                let y = network.conv2d(&x, [c, c, 3, 3], attrs);
                Some((network.push("add", &[&x, &y], json!({})), shape))
            }
            (_, _) if h > 1 && w > 1 => {
                let op = ["max_pool2d", "avg_pool2d"][within(&mut network, 0, 2)];
                let mut attrs = json!({"kernel": [2, 2], "strides": [2, 1], "padding": [0, 0, 0, 0]});
                if op == "avg_pool2d" {
                    attrs["count_include_pad"] = Value::Bool(false);
                }
                Some((network.push(op, &[&x], attrs), [c, (h - 2) / 2 + 1, w - 1]))
            }
            _ => None,
        };
        if let Some((name, made)) = next {
            x = if within(&mut network, 0, 2) == 0 {
                network.push("relu", &[&name], json!({}))
            } else {
                name
            };
            shape = made;
        }
    }
    let [_, h, w] = shape;
    if !seed.is_multiple_of(3) {
        // Over all rows, which sums stand for.
        let attrs = json!({"kernel": [h, w], "strides": [1, 1], "padding": [0, 0, 0, 0], "count_include_pad": false});
        network.push("avg_pool2d", &[&x], attrs);
    }
    network
}

#[test]
fn random_stacks_roll_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut rolled, mut summed) = ([0; 4], 0);
    let targets = [Target::Portable, Target::CortexM4, Target::CortexM7, Target::CortexM33];
    let stacks = 24;
    for seed in 1..=stacks {
        let mut network = stack(seed);
        let samples = network.samples(3);
        let trace = network.write(folder.path());
        let mut whole = calibrated_to(Activations::Int8, &trace, folder.path(), &samples, &[]);
        for (target, rolled) in targets.into_iter().zip(&mut rolled) {
            whole.target = target;
            let (plain, expected) = packed_outputs(&whole, seed);
            let by_rows = Options {
                stream_input: true,
                output: folder.path().join("rolled.bin"),
                ..whole.clone()
            };
            let packed = match pack(&by_rows, &mut |_, _, _| {}) {
                Ok(packed) => packed.summary,
                Err(error) if error.kind() == ErrorKind::Unsupported => continue,
                Err(error) => panic!("{seed}, {}: {error}", target.name()),
            };
            let file = ModelFile::open(&by_rows.output).expect("the model");
            assert!(
                outputs(&file, seed) == expected,
                "{seed}, {}: other outputs",
                target.name()
            );
            assert_eq!((packed.extra_macs, packed.macs), (0, plain.macs), "{seed}");
            *rolled += 1;
            let sums = file.view().expect("a view").steps().expect("steps");
            summed += usize::from(sums.iter().any(|step| step.kernel() == KernelId::GlobalAvgPoolS8));
        }
    }
    eprintln!("{rolled:?} of {stacks} roll");
    assert!(summed > 3, "{summed} files have sums of rows");
    assert!(rolled.iter().all(|&count| count * 3 > stacks), "{rolled:?} of {stacks}");
}
