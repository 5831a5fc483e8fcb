//! Networks whose kernels no committed model has: layers of trace dialects in f32 and int8, and weights of few bits.

use std::path::{Path, PathBuf};

use arenite::DType;
use arenite_host::graph::LowBits;
use arenite_host::import::{ImportOptions, import};
use arenite_host::pack::Options;
use arenite_host::quantize::{Request, WeightOnly};
use arenite_tests::writers::{Chain, Layer, Random, rects, tf_shapes};
use ndarray::{ArrayD, IxDyn};

/// Samples that a network is quantised with.
const SAMPLES: usize = 8;

/// The options that pack each of them, under a name.
pub(super) fn made(folder: &Path) -> Vec<(String, Options)> {
    let mut found = Vec::new();
    let window = ("pool.window".to_owned(), "3x3/2/VALID".to_owned());
    for (name, text, assume) in [("local", local(), vec![]), ("normalising", normalising(), vec![window])] {
        let trace = folder.join(format!("{name}.trace"));
        std::fs::write(&trace, text).expect("written");
        let plain = Options {
            import: ImportOptions {
                assume,
                ..ImportOptions::default()
            },
            weights: Some("seeded:7".into()),
            in_place: false,
            ..Options::new(&trace, folder.join("m.bin"))
        };
        let samples = samples(&trace, &plain.import, folder);
        found.push((format!("{name}, f32"), plain.clone()));
        found.push((format!("{name}, int8"), quantised(plain, samples, None)));
    }
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits");
    let digits = |name: &str| digits.join(name);
    let plain = Options {
        weights: Some(digits("digits.safetensors").to_string_lossy().into_owned()),
        ..Options::new(digits("digits.trace.json"), folder.join("m.bin"))
    };
    for (bits, group) in [(16, None), (8, None), (4, Some(32))] {
        let weight_only = Some(WeightOnly {
            bits: LowBits { bits, group },
            keep_f32: Vec::new(),
        });
        let options = Options {
            dtype: Some(DType::F32),
            weight_only,
            ..plain.clone()
        };
        found.push((format!("digits, f32 with weights of {bits} bits"), options));
    }
    let four = Some(LowBits { bits: 4, group: None });
    found.push((
        "digits, int8 with weights of 4 bits".into(),
        quantised(plain, digits("test_images.npy"), four),
    ));
    found
}

fn quantised(plain: Options, samples: PathBuf, low_bits: Option<LowBits>) -> Options {
    Options {
        dtype: Some(DType::I8),
        quantize: Some(Request {
            samples,
            low_bits,
            ..Request::default()
        }),
        ..plain
    }
}

/// Two locally connected layers.
fn local() -> String {
    rects::Local {
        batch: 3,
        image: [2, 9, 11],
        layers: vec![(4, 3), (3, 2)],
        classes: 5,
    }
    .write()
}

/// A convolution, local response normalisation, a pool.
fn normalising() -> String {
    let layers = vec![
        Layer::conv(10, [5; 2], [1; 2], [2; 2], 1, [1; 2]),
        Layer::Relu,
        Layer::Lrn,
        Layer::MaxPool {
            kernel: [3; 2],
            stride: [2; 2],
            ceiling: false,
        },
    ];
    let chain = Chain {
        batch: 2,
        image: [3, 9, 14],
        layers,
    };
    tf_shapes::write(&chain, Some(3))
}

/// A file of samples of the shape that a trace's input has: values of -1 to 1.
fn samples(trace: &Path, options: &ImportOptions, folder: &Path) -> PathBuf {
    let (_, imported) = import(trace, None, options).expect("imports");
    let graph = imported.graph;
    let mut shape = vec![SAMPLES];
    shape.extend(&graph.tensor(graph.inputs[0]).shape);
    let mut random = Random::new(5);
    let values = ArrayD::from_shape_fn(IxDyn(&shape), |_| random.below(4096) as f32 / 2048.0 - 1.0);
    let path = folder.join(format!("{}.npy", trace.file_stem().expect("a name").to_string_lossy()));
    ndarray_npy::write_npy(&path, &values).expect("written");
    path
}
