//! Small networks of the five trace dialects become int8 whole: no layer stays in f32. Layers that TensorFlow Lite has no int8 form of are
//! computed again from the bytes of the file, bit for bit, and by the formulas in f64.

use arenite::ops::locally_connected::LocallyConnectedS8;
use arenite::ops::lrn::LrnS8;
use arenite::quant::{LRN_POWERS, Multiplier};
use arenite::{DType, Step};
use arenite_host::import::{ImportOptions, import};
use arenite_host::metadata::Metadata;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::{Activations, Request};
use arenite_host::weights::Weights;
use arenite_tests::writers::{Chain, Layer, Random, chainer, keras_order, megengine, rects, tf_shapes};
use arenite_tests::{graphs, oracle};
use ndarray::{ArrayD, Axis, IxDyn};

use crate::quantise::network::{answers, stored};

/// Samples that calibrate, and others that judge.
const SAMPLES: usize = 24;
const JUDGES: usize = 6;

/// Signal over noise of the differences from the mean over the judging inputs, in dB.
const LEAST: f64 = 18.0;

/// Bytes of a softmax's result that may be lost, in parts of 256.
const OF_SOFTMAX: f64 = 4.0;

/// A network as its dialect writes it.
struct Case {
    dialect: &'static str,
    text: String,
    assume: &'static [(&'static str, &'static str)],
    input_shape: Option<Vec<usize>>,
}

fn case(dialect: &'static str, text: String, assume: &'static [(&'static str, &'static str)]) -> Case {
    Case {
        dialect,
        text,
        assume,
        input_shape: None,
    }
}

fn chain(image: [usize; 3], flatten: bool) -> Chain {
    let conv = |out, kernel, stride, pad, groups| Layer::conv(out, [kernel; 2], [stride; 2], [pad; 2], groups, [1; 2]);
    let pool = Layer::MaxPool {
        kernel: [2; 2],
        stride: [2; 2],
        ceiling: false,
    };
    let mut layers = vec![
        conv(8, 5, 2, 2, 1),
        Layer::Relu,
        pool,
        conv(12, 3, 1, 1, 4),
        Layer::Relu,
        pool,
    ];
    layers.extend(flatten.then_some(Layer::Flatten));
    layers.extend([Layer::Linear { out: 20 }, Layer::Relu, Layer::Linear { out: 7 }]);
    Chain {
        batch: 3,
        image,
        layers,
    }
}

fn normalising() -> Chain {
    let conv = |out, kernel, pad, groups| Layer::conv(out, [kernel; 2], [1; 2], [pad; 2], groups, [1; 2]);
    let pool = Layer::MaxPool {
        kernel: [3; 2],
        stride: [2; 2],
        ceiling: false,
    };
    Chain {
        batch: 2,
        image: [3, 18, 29],
        layers: vec![
            conv(10, 5, 2, 1),
            Layer::Relu,
            Layer::Lrn,
            pool,
            conv(8, 3, 1, 2),
            Layer::Relu,
            Layer::Lrn,
            pool,
        ],
    }
}

fn local(layers: &[(usize, usize)]) -> rects::Local {
    rects::Local {
        batch: 48,
        image: [2, 17, 23],
        layers: layers.to_vec(),
        classes: 35,
    }
}

fn cases() -> Vec<Case> {
    let window = &[("pool.window", "3x3/2/VALID")][..];
    let sharp = &[
        ("pool.window", "3x3/2/VALID"),
        ("lrn.alpha", "0.25"),
        ("lrn.bias", "1.5"),
        ("lrn.beta", "0.5"),
    ];
    let wide = &[
        ("pool.window", "3x3/2/VALID"),
        ("lrn.alpha", "0.125"),
        ("lrn.depth_radius", "7"),
    ];
    vec![
        case("chainer", chainer::write(&chain([3, 40, 40], true), 5), &[]),
        case("megengine", megengine::write(&chain([3, 40, 40], true)), &[]),
        case("tf-shapes", tf_shapes::write(&normalising(), Some(3)), window),
        case("tf-shapes", tf_shapes::write(&normalising(), None), sharp),
        case("tf-shapes", tf_shapes::write(&normalising(), None), wide),
        Case {
            input_shape: Some(vec![1, 24, 32, 3]),
            ..case("keras-order", keras_order::write("resnet8", &[1, 1]), &[])
        },
        case("rects", local(&[(8, 5), (6, 3)]).write(), &[]),
        case("rects", local(&[(5, 4)]).write(), &[("nonlinearity", "tanh")]),
    ]
}

/// Slow waves of several contrasts, as pictures are.
fn picture(random: &mut Random, shape: &[usize], number: usize) -> ArrayD<f32> {
    let contrast = [1.0, 0.7, 0.4][number % 3];
    let mut part = || f64::from(random.below(4096) as u32) / 4096.0;
    let waves: Vec<[f64; 4]> = (0..6)
        .map(|_| [part() * 0.6, part() * 0.6, part() * 0.6, part() * 6.3])
        .collect();
    ArrayD::from_shape_fn(IxDyn(shape), |at| {
        let sum = |[a, b, c, d]: &[f64; 4]| (a * at[1] as f64 + b * at[2] as f64 + c * at[3] as f64 + d).sin();
        (contrast * waves.iter().map(sum).sum::<f64>() / 3.0) as f32
    })
}

/// Returns the result of the step, by the definition.
fn locally_connected(op: &LocallyConnectedS8, constants: &[u8], x: &[u8]) -> Vec<u8> {
    let word = |offset: u32, at: usize| {
        let bytes = &constants[offset as usize + 4 * at..][..4];
        i32::from_le_bytes(bytes.try_into().expect("four bytes"))
    };
    let [c, h, w] = op.input_shape.map(usize::from);
    let [o, oh, ow] = op.output_shape().map(usize::from);
    let [kh, kw] = op.kernel.map(usize::from);
    let mut found = Vec::new();
    for at in 0..usize::from(op.batch) * o * oh * ow {
        let (column, row, channel, image) = (at % ow, at / ow % oh, at / ow / oh % o, at / ow / oh / o);
        let mut sum = word(op.bias, (channel * oh + row) * ow + column);
        for tap in 0..c * kh * kw {
            let (kx, ky, cin) = (tap % kw, tap / kw % kh, tap / kw / kh);
            let x = x[((image * c + cin) * h + row + ky) * w + column + kx] as i8;
            let weight = (((channel * c * kh * kw + tap) * oh + row) * ow) + column;
            let weight = constants[op.weights as usize + weight] as i8;
            sum += (i32::from(x) - i32::from(op.input_zero_point)) * i32::from(weight);
        }
        let multiplier = Multiplier {
            mantissa: word(op.multipliers, 2 * channel),
            shift: word(op.multipliers, 2 * channel + 1) as i8,
        };
        let stored = multiplier.apply(sum) + i32::from(op.output_zero_point);
        found.push(stored.clamp(op.clamp[0].into(), op.clamp[1].into()) as u8);
    }
    found
}

/// The same of a normalisation: every window's squares anew, the power's parts by divisions and in 128 bits.
fn normalised(op: &LrnS8, constants: &[u8], x: &[u8]) -> Vec<u8> {
    let table = &constants[op.table as usize..][..4 * op.lrn.words() as usize];
    let table: Vec<i32> = table
        .as_chunks()
        .0
        .iter()
        .map(|&word| i32::from_le_bytes(word))
        .collect();
    let (powers, octaves) = table.split_at(LRN_POWERS);
    let channels = op.channels as usize;
    let difference = |byte: u8| i32::from(byte as i8) - i32::from(op.input_zero_point);
    let pixels = x.chunks(channels);
    pixels
        .flat_map(|pixel| {
            (0..channels).map(|c| {
                let radius = usize::from(op.radius);
                let near = &pixel[c.saturating_sub(radius)..(c + radius + 1).min(channels)];
                let squares: i128 = near.iter().map(|&x| i128::from(difference(x)).pow(2)).sum();
                let grown = squares * i128::from(op.lrn.growth) / (1 << op.lrn.shift) + (1 << 20);
                let octave = grown.ilog2() - 20;
                // 18 bits behind the leading one.
                let fraction = (grown * (1 << 18) / (1 << (octave + 20))) as i32 - (1 << 18);
                let (segment, within) = ((fraction / 4096) as usize, fraction % 4096);
                let [low, high] = [powers[segment], powers[segment + 1]];
                let power = low + ((high - low) * within).div_euclid(4096);
                let multiplier = Multiplier {
                    mantissa: octaves[2 * octave as usize],
                    shift: octaves[2 * octave as usize + 1] as i8,
                };
                let stored = multiplier.apply(difference(pixel[c]) * power) + i32::from(op.output_zero_point);
                stored.clamp(-128, 127) as u8
            })
        })
        .collect()
}

/// How far a normalisation's results are from the formula, in steps, where they are not cut off.
fn from_formula(op: &LrnS8, [bias, alpha, beta]: [f64; 3], scales: [f64; 2], x: &[u8], y: &[u8]) -> f64 {
    let channels = op.channels as usize;
    let real = |byte: u8| (f64::from(byte as i8) - f64::from(op.input_zero_point)) * scales[0];
    let mut worst = 0.0_f64;
    for (x, y) in x.chunks(channels).zip(y.chunks(channels)) {
        for c in 0..channels {
            let radius = usize::from(op.radius);
            let near = &x[c.saturating_sub(radius)..(c + radius + 1).min(channels)];
            let squares: f64 = near.iter().map(|&x| real(x) * real(x)).sum();
            let exact = real(x[c]) / (bias + alpha * squares).powf(beta) / scales[1] + f64::from(op.output_zero_point);
            worst = worst.max((f64::from(y[c] as i8) - exact.clamp(-128.0, 127.0)).abs());
        }
    }
    worst
}

/// The scales of what a step reads and writes.
fn scales(metadata: &Metadata, index: u32, op: &LrnS8) -> [f64; 2] {
    let steps = metadata.steps[..=index as usize].iter().rev();
    let of = |slot| {
        let mut tensors = steps.clone().filter_map(|step| step.completes.as_ref());
        f64::from(tensors.find(|tensor| tensor.slot == slot).expect("a tensor").scale)
    };
    [op.input, op.output].map(of)
}

#[test]
fn networks_of_every_dialect_become_int8_whole() {
    let (mut steps_compared, mut networks) = ([0; 2], 0);
    for (number, case) in cases().into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("small.trace");
        std::fs::write(&path, &case.text).expect("written");
        let assume = case.assume.iter();
        let options = ImportOptions {
            assume: assume
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
            input_shape: case.input_shape.clone(),
            ..ImportOptions::default()
        };
        let (found, imported) = import(&path, None, &options).expect("imports");
        assert_eq!(found, case.dialect);
        let graph = imported.graph;
        let shape = graph.tensor(graph.inputs[0]).shape.clone();
        let mut random = Random::new(3 + number as u64);
        let pictures: Vec<ArrayD<f32>> = (0..SAMPLES + JUDGES).map(|n| picture(&mut random, &shape, n)).collect();
        let (samples, judges) = pictures.split_at(SAMPLES);
        let views: Vec<_> = samples.iter().map(|sample| sample.view()).collect();
        let calibrate = folder.path().join("samples.npy");
        ndarray_npy::write_npy(&calibrate, &ndarray::stack(Axis(0), &views).expect("equal shapes")).expect("written");
        let options = Options {
            import: options,
            weights: Some("seeded:7".into()),
            dtype: Some(DType::I8),
            in_place: false,
            quantize: Some(Request {
                samples: calibrate,
                ..Request::default()
            }),
            ..Options::new(&path, folder.path().join("small.arenite"))
        };
        let place = format!("{} {number}", case.dialect);
        let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{place}: {e}"));
        let report = packed.summary.quantization.expect("what was done");
        assert!(report.kept_f32.is_empty(), "{place}");
        let file = ModelFile::open(&options.output).expect("just written");
        let view = file.view().expect("a model");
        let steps = view.steps().expect("steps");
        let float: Vec<_> = steps
            .iter()
            .map(|step| step.kernel().name())
            .filter(|name| name.contains("F32"))
            .collect();
        assert_eq!(float, [""; 0], "{place}");

        // The step's own constants are those of the importer.
        let values = graph.nodes.iter().find_map(|node| match node.op {
            arenite_host::graph::Op::Lrn { bias, alpha, beta, .. } => Some([bias, alpha, beta].map(f64::from)),
            _ => None,
        });
        let metadata = view.metadata().expect("names");
        let runs: Vec<Vec<Vec<u8>>> = judges
            .iter()
            .map(|x| vec![x.iter().flat_map(|&v| stored(v, &view.inputs[0])).collect()])
            .collect();
        run(&file.load().expect("loads"), &runs, true, &mut |_, index, session| {
            let read = |slot, len: u32| session.read(slot, len).expect("in the arena");
            match &steps[index as usize] {
                Step::LocallyConnectedS8(op) => {
                    let [inputs, outputs] = [op.input_shape, op.output_shape()]
                        .map(|shape| shape.iter().map(|&n| u32::from(n)).product::<u32>() * u32::from(op.batch));
                    let (x, y) = (read(op.input, inputs), read(op.output, outputs));
                    assert_eq!(y, locally_connected(op, view.weights(), x), "{place}, step {index}");
                    steps_compared[0] += 1;
                }
                Step::LrnS8(op) => {
                    let len = op.pixels * op.channels;
                    let (x, y) = (read(op.input, len), read(op.output, len));
                    assert_eq!(y, normalised(op, view.weights(), x), "{place}, step {index}");
                    let scales = scales(&metadata, index, op);
                    let worst = from_formula(op, values.expect("a normalisation"), scales, x, y);
                    assert!(worst <= 0.522, "{place}, step {index}: {worst} steps from the formula");
                    steps_compared[1] += 1;
                }
                _ => {}
            }
        })
        .expect("runs");

        let weights = Weights::open("seeded:7", &graph).expect("weights");
        let expected: Vec<Vec<f64>> = judges
            .iter()
            .map(|x| {
                let x = x.iter().copied().collect();
                graphs::evaluate(&graph, &weights, &[x])
                    .expect("a graph of known operators")
                    .swap_remove(0)
            })
            .collect();
        let found = answers(&file, judges);
        let softmax = view.outputs[0].scale == 1.0 / 256.0;
        let (mut signal, mut noise, mut worst) = (0.0, 0.0, 0.0_f64);
        for (expected_of, found) in expected.iter().zip(&found) {
            for (at, (one, found)) in expected_of.iter().zip(found).enumerate() {
                let mean = expected.iter().map(|answer| answer[at]).sum::<f64>() / expected.len() as f64;
                signal += (one - mean) * (one - mean);
                noise += (one - found) * (one - found);
                worst = worst.max((one - found).abs());
            }
        }
        let snr = 10.0 * (signal / noise).log10();
        println!(
            "{place}: {snr:.1} dB, softmax {softmax}, {worst:.4}, calibrated {:?}",
            report.snr_db
        );
        if softmax {
            assert!(
                worst <= OF_SOFTMAX / 256.0 && report.snr_db.expect("noise") >= LEAST,
                "{place}: {worst}"
            );
        } else {
            assert!(snr >= LEAST, "{place}: {snr} dB");
        }
        networks += 1;
    }
    oracle::compared("loops over the file's bytes", steps_compared.iter().sum(), 9 * JUDGES);
    oracle::compared("loops in f64 over the imported graph", networks, 8);
}

/// Constants without a form, and int16, are refused by the layer's name, with the option that leaves it in f32; with that the network packs.
#[test]
fn normalisations_without_a_form_are_named() {
    let window = ("pool.window", "3x3/2/VALID");
    for (assume, activations, reason) in [
        ([window, ("lrn.beta", "5")], Activations::Int8, "beta 5"),
        ([window, ("lrn.bias", "0")], Activations::Int8, "bias is 0"),
        ([window, ("lrn.alpha", "-1")], Activations::Int8, "alpha -1"),
        (
            [window, ("lrn.beta", "0.75")],
            Activations::Int16,
            "int16 has no such operator",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("small.trace");
        std::fs::write(&path, tf_shapes::write(&normalising(), None)).expect("written");
        let mut random = Random::new(5);
        let pictures: Vec<ArrayD<f32>> = (0..4).map(|n| picture(&mut random, &[1, 18, 29, 3], n)).collect();
        let views: Vec<_> = pictures.iter().map(|sample| sample.view()).collect();
        let calibrate = folder.path().join("samples.npy");
        ndarray_npy::write_npy(&calibrate, &ndarray::stack(Axis(0), &views).expect("equal shapes")).expect("written");
        let mut options = Options {
            weights: Some("seeded:7".into()),
            dtype: Some(activations.dtype()),
            quantize: Some(Request {
                samples: calibrate,
                activations,
                ..Request::default()
            }),
            ..Options::new(&path, folder.path().join("small.arenite"))
        };
        let pairs = assume.iter();
        options.import.assume = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let error = pack(&options, &mut |_, _, _| {}).expect_err("no form").to_string();
        let wanted = ["no int", " form", reason, "--keep-f32", "lrn"];
        assert!(wanted.iter().all(|part| error.contains(part)), "{error}");
    }
}
