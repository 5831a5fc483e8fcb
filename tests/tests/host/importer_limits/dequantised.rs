//! Layers of float32 whose weights are int8 by channel behind DEQUANTIZE, as Google's newest quantiser writes: they keep 8 bits, and compute what these mean.

use arenite_host::import::ImportOptions;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::golden::Archive;
use arenite_tests::tflite_file::{BOOL, FLOAT32, INT8, INT32, TfliteFile, byte, int};
use arenite_tests::writers::Random;
use arenite_tests::{shared, skip};

use super::onnx_file::stored;
use super::open_extents::{numbers, random, read};

/// Outputs, rows and columns of a window (none of a fully connected layer), inputs.
struct Layer {
    outputs: usize,
    window: Option<[usize; 2]>,
    inputs: usize,
    /// The largest zero point.
    offset: i64,
}

impl Layer {
    /// The file, and its weights as real numbers, `[outputs, …]`: by each channel's scale and zero point, or by the first.
    fn file(&self, by_channel: bool) -> (Vec<u8>, Vec<f64>) {
        let mut random = Random::new(5);
        let taps = self.window.map_or(1, |[rows, columns]| rows * columns);
        let count = self.outputs * taps * self.inputs;
        let stored: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
        let scales: Vec<f32> = (0..self.outputs)
            .map(|_| (1 + random.below(99)) as f32 / 7919.0)
            .collect();
        let offsets: Vec<i64> = (0..self.outputs as i64)
            .map(|i| if i % 2 == 0 { self.offset } else { -i.min(self.offset) })
            .collect();
        let weights = stored.iter().enumerate().map(|(index, &q)| {
            let output = if by_channel { index / (taps * self.inputs) } else { 0 };
            f64::from(scales[output]) * (f64::from(q as i8) - offsets[output] as f64)
        });
        let weights = weights.collect();
        let mut file = TfliteFile::new();
        let [n, k] = [self.outputs, self.inputs].map(|d| d as i32);
        let (x, shape, y) = match self.window {
            Some([rows, columns]) => (
                vec![1, 6, 7, k],
                vec![n, rows as i32, columns as i32, k],
                vec![1, 6, 7, n],
            ),
            None => (vec![1, k], vec![n, k], vec![1, n]),
        };
        let x = file.tensor("x", FLOAT32, &x);
        let bytes = file.constant("bytes", INT8, &shape, stored);
        file.quantised(bytes, &scales, &offsets, 0);
        let real = file.tensor("real", FLOAT32, &shape);
        let bias = file.reals("bias", &[n], &random_bias(self.outputs));
        let y = file.tensor("y", FLOAT32, &y);
        file.operator(6, &[bytes], &[real], vec![]);
        // With RELU.
        match self.window {
            Some(_) => file.operator(
                3,
                &[x, real, bias],
                &[y],
                vec![(0, byte(0)), (1, int(1)), (2, int(1)), (3, byte(1))],
            ),
            None => file.operator(9, &[x, real, bias], &[y], vec![(0, byte(1))]),
        }
        file.ends(&[x], &[y]);
        (file.bytes(), weights)
    }

    /// Returns the result of the layer for `x`.
    fn expected(&self, weights: &[f64], x: &[f32]) -> Vec<f64> {
        let bias = random_bias(self.outputs);
        let [rows, columns] = self.window.unwrap_or([1, 1]);
        let [height, width] = self.window.map_or([1, 1], |_| [6, 7]);
        let mut results = Vec::new();
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            for output in 0..self.outputs {
                let mut sum = f64::from(bias[output]);
                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let (Some(r), Some(c)) = ((row + i).checked_sub(rows / 2), (column + j).checked_sub(columns / 2))
                    else {
                        continue;
                    };
                    if r >= height || c >= width {
                        continue;
                    }
                    for input in 0..self.inputs {
                        let w = weights[((output * rows + i) * columns + j) * self.inputs + input];
                        sum += w * f64::from(x[(r * width + c) * self.inputs + input]);
                    }
                }
                results.push(sum.max(0.0));
            }
        }
        results
    }
}

fn random_bias(count: usize) -> Vec<f32> {
    random(count)
}

/// The packed file's bytes of weights, and its outputs.
pub(super) fn packed(content: &[u8], import: ImportOptions, inputs: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("m.tflite");
    std::fs::write(&input, content).expect("written");
    let options = Options {
        import,
        plan_nodes: 100,
        ..Options::new(&input, folder.path().join("m.bin"))
    };
    pack(&options, &mut |_, _, _| {}).expect("packs");
    let file = ModelFile::open(&options.output).expect("a model");
    let bytes = file.view().expect("sections").weights().len();
    let model = file.load().expect("it loads");
    let runs: Vec<Vec<Vec<u8>>> = inputs.iter().map(|input| vec![input.clone()]).collect();
    let results = run(&model, &runs, true, &mut |_, _, _| {}).expect("it runs");
    (
        bytes,
        results.into_iter().map(|mut outputs| outputs.swap_remove(0)).collect(),
    )
}

fn assuming(word: &str) -> ImportOptions {
    ImportOptions {
        assume: vec![("dequantize".to_owned(), word.to_owned())],
        ..ImportOptions::default()
    }
}

#[test]
fn layers_keep_their_bytes_and_compute_what_they_mean() {
    for (layer, kept) in [
        // Numbers that fit 8 bits less their zero points, and such that do not.
        (
            Layer {
                outputs: 12,
                window: None,
                inputs: 130,
                offset: 0,
            },
            true,
        ),
        (
            Layer {
                outputs: 12,
                window: None,
                inputs: 130,
                offset: 77,
            },
            true,
        ),
        (
            Layer {
                outputs: 9,
                window: Some([3, 3]),
                inputs: 15,
                offset: 0,
            },
            true,
        ),
        (
            Layer {
                outputs: 9,
                window: Some([3, 3]),
                inputs: 15,
                offset: 128 - 1,
            },
            true,
        ),
        // Few weights are no gain.
        (
            Layer {
                outputs: 3,
                window: None,
                inputs: 5,
                offset: 20,
            },
            false,
        ),
    ] {
        let what = format!("{} {:?} {} {}", layer.outputs, layer.window, layer.inputs, layer.offset);
        for by_channel in [true, false] {
            let (file, weights) = layer.file(by_channel);
            let import = if by_channel {
                assuming("channel")
            } else {
                ImportOptions::default()
            };
            let graph = read(&file, &ImportOptions::default()).expect("reads").graph;
            assert_eq!(
                arenite_host::graph::facts::params(&graph) as usize,
                weights.len() + layer.outputs,
                "{what}"
            );
            let pixels = layer.window.map_or(1, |_| 42);
            let macs = arenite_host::graph::facts::macs_per_element(&graph) as usize;
            assert_eq!(macs, weights.len() * pixels, "{what}");
            let x = random(pixels * layer.inputs);
            let (bytes, found) = packed(&file, import, &[stored(&x)]);
            let expected = layer.expected(&weights, &x);
            let largest = expected.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            let found = numbers(&found[0]);
            assert_eq!(found.len(), expected.len(), "{what}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (f64::from(*found) - expected).abs() <= 1e-5 * largest,
                    "{what}: {found}, {expected}"
                );
            }
            let most = if kept {
                weights.len() * 5 / 4 + 24 * layer.outputs
            } else {
                8 * weights.len()
            };
            assert!(bytes <= most, "{what}: {bytes} bytes for {} weights", weights.len());
        }
    }
}

/// Three runs of a loop over one layer of 40 units: its weights stand once in the file.
#[test]
fn what_a_loop_dequantises_is_stored_once() {
    const UNITS: usize = 40;
    let stored_numbers: Vec<u8> = (0..UNITS * UNITS).map(|i| (i * 37 % 251) as u8).collect();
    for zero_point in [0, -100] {
        let mut file = TfliteFile::new();
        let scalar = |value: i32| value.to_le_bytes().to_vec();
        let row = [1, UNITS as i32];
        let x = file.tensor("x", FLOAT32, &row);
        let begin = file.constant("begin", INT32, &[], scalar(0));
        let last = file.tensor("last", INT32, &[]);
        let y = file.tensor("y", FLOAT32, &row);
        file.operator(119, &[begin, x], &[last, y], vec![(0, int(1)), (1, int(2))]);
        file.ends(&[x], &[y]);
        file.subgraph();
        let inputs = [file.tensor("index", INT32, &[]), file.tensor("state", FLOAT32, &row)];
        let count = file.constant("count", INT32, &[], scalar(3));
        let less = file.tensor("less", BOOL, &[]);
        file.operator(58, &[inputs[0], count], &[less], vec![]);
        file.ends(&inputs, &[less]);
        file.subgraph();
        let [index, state] = [file.tensor("index", INT32, &[]), file.tensor("state", FLOAT32, &row)];
        let one = file.constant("one", INT32, &[], scalar(1));
        let next = file.tensor("next", INT32, &[]);
        let bytes = file.constant("bytes", INT8, &[row[1], row[1]], stored_numbers.clone());
        file.quantised(bytes, &[1.0 / 1024.0], &[zero_point], 0);
        let real = file.tensor("real", FLOAT32, &[row[1], row[1]]);
        let new = file.tensor("new", FLOAT32, &row);
        file.operator(0, &[index, one], &[next], vec![]);
        file.operator(6, &[bytes], &[real], vec![]);
        file.operator(9, &[state, real, -1], &[new], vec![]);
        file.ends(&[index, state], &[next, new]);

        let x = random(UNITS);
        let (bytes, found) = packed(&file.bytes(), ImportOptions::default(), &[stored(&x)]);
        let weight = |index: usize| (f64::from(stored_numbers[index] as i8) - zero_point as f64) / 1024.0;
        let mut state: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        for _ in 0..3 {
            let unit = |unit: usize| (0..UNITS).map(|k| weight(unit * UNITS + k) * state[k]).sum();
            state = (0..UNITS).map(unit).collect();
        }
        let largest = state.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        for (found, expected) in numbers(&found[0]).iter().zip(&state) {
            assert!(
                (f64::from(*found) - expected).abs() <= 1e-5 * largest,
                "{found}, {expected}"
            );
        }
        assert!(
            bytes <= UNITS * UNITS * 3 / 2,
            "{bytes} bytes for {} weights",
            UNITS * UNITS
        );
    }
}

#[test]
fn which_scales_count_is_assumed() {
    let layer = Layer {
        outputs: 3,
        window: None,
        inputs: 5,
        offset: 20,
    };
    let (file, _) = layer.file(true);
    let said = |options: &ImportOptions| {
        let assumptions = read(&file, options).expect("reads").assumptions;
        let said = assumptions
            .iter()
            .map(|a| format!("{}={} for {}", a.key, a.value, a.applies_to));
        said.collect::<Vec<_>>()
    };
    assert_eq!(said(&ImportOptions::default()), ["dequantize=first for bytes"]);
    assert_eq!(said(&assuming("channel")), ["dequantize=channel for bytes"]);
    let text = read(&file, &assuming("all")).map(drop).expect_err("no such word");
    assert!(
        text.contains("--assume dequantize=all") && text.contains("first or channel"),
        "{text}"
    );
}

/// A public model. The oracle is TensorFlow Lite Micro.
#[test]
fn aeq_mnist_keeps_its_bytes() {
    let Some(shared) = shared() else {
        return skip("aeq_mnist_keeps_its_bytes", "no shared data");
    };
    let folder = shared.join("data/defects");
    let content = std::fs::read(folder.join("aeq_mnist_quantized.tflite")).expect("a file");
    let mut archive = Archive::open(&folder.join("aeq_mnist_quantized.golden.npz"));
    let (inputs, expected) = (archive.runs("in_rand_0").0, archive.runs("out_rand_tflm_0").0);
    let (bytes, found) = packed(&content, ImportOptions::default(), &inputs);
    for (found, expected) in found.iter().zip(&expected) {
        for (found, expected) in numbers(found).iter().zip(&numbers(expected)) {
            assert!((found - expected).abs() <= 1e-5, "{found}, {expected}");
        }
    }
    assert!(
        bytes < content.len(),
        "{bytes} bytes of weights, {} as .tflite",
        content.len()
    );
}
