//! Small networks of the trace schema, what they compute by loops in f64, and how far the int8 network is from that.

use std::path::{Path, PathBuf};

use arenite::DType;
use arenite_host::Error;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, Packed, pack};
use arenite_host::quantize::{self, Activations};
use arenite_tests::naive::{Tensors, evaluate};
use ndarray::{ArrayD, Axis, IxDyn};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Map, Value, json};

/// Samples that calibrate a network, and others that judge it.
const SAMPLES: [usize; 2] = [96, 24];

/// A network in the making; its last operator gives the output.
pub(crate) struct Network {
    random: u64,
    declared: Map<String, Value>,
    parameters: Tensors,
    operators: Vec<Value>,
    shape: Vec<usize>,
    /// Number format of its activations.
    pub(crate) activations: Activations,
}

impl Network {
    /// One input `x`.
    pub(crate) fn new(seed: u64, shape: &[usize]) -> Self {
        let mut declared = Map::new();
        declared.insert("x".into(), json!({"shape": shape, "dtype": "f32", "role": "input"}));
        Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            declared,
            parameters: Tensors::new(),
            operators: Vec::new(),
            shape: shape.to_vec(),
            activations: Activations::Int8,
        }
    }

    /// Evenly spread from -1 to 1.
    pub(crate) fn random(&mut self) -> f64 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    /// A parameter of random values.
    pub(crate) fn parameter(&mut self, shape: &[usize], value: impl Fn(f64) -> f64) -> String {
        let name = format!("p{}", self.parameters.len());
        let values: Vec<f64> = (0..shape.iter().product())
            .map(|_| {
                let random = self.random();
                f64::from(value(random) as f32)
            })
            .collect();
        let array = ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many values");
        self.parameters.insert(name.clone(), array);
        let role = json!({"shape": shape, "dtype": "f32", "role": "parameter"});
        self.declared.insert(name.clone(), role);
        name
    }

    /// Adds an operator; its result has its own name.
    pub(crate) fn push(&mut self, op: &str, inputs: &[&str], attrs: Value) -> String {
        let name = format!("{op}{}", self.operators.len());
        self.operators
            .push(json!({"name": name, "op": op, "inputs": inputs, "outputs": [name], "attrs": attrs}));
        name
    }

    /// A convolution whose weights differ much from channel to channel.
    pub(crate) fn conv2d(&mut self, x: &str, [out, within, kh, kw]: [usize; 4], attrs: Value) -> String {
        let weights = self.parameter(&[out, within, kh, kw], |v| v);
        let fan_in = (within * kh * kw) as f64;
        let array = self.parameters.get_mut(&weights).expect("just added");
        for (channel, mut values) in array.axis_iter_mut(Axis(0)).enumerate() {
            let scale = [2.0, 0.7, 1.3][channel % 3] / fan_in.sqrt();
            values.mapv_inplace(|v| f64::from((v * scale) as f32));
        }
        let bias = self.parameter(&[out], |v| 0.2 * v);
        self.push("conv2d", &[x, &weights, &bias], attrs)
    }

    /// Changes the weights of convolutions and linear layers.
    pub(crate) fn each_weight(&mut self, change: impl Fn(&mut ArrayD<f64>)) {
        let weights = self.parameters.values_mut().filter(|values| values.ndim() > 1);
        weights.for_each(change);
    }

    /// Adds to an element of a parameter.
    pub(crate) fn change(&mut self, parameter: &str, at: usize, by: f64) {
        let values = self.parameters.get_mut(parameter).expect("a parameter of this name");
        *values.iter_mut().nth(at).expect("an element") += by;
    }

    fn trace(&self) -> Value {
        let last = self.operators.last().expect("an operator");
        let mut tensors = self.parameters.clone();
        tensors.insert("x".into(), ArrayD::zeros(IxDyn(&self.shape)));
        evaluate(&json!({"ops": self.operators}), &mut tensors);
        let mut declared = self.declared.clone();
        for (name, values) in tensors {
            let made = json!({"shape": values.shape(), "dtype": "f32", "role": "activation"});
            declared.entry(name).or_insert(made);
        }
        // Products of two activations came with the second version, sine and cosine with the third.
        let has = |names: &[&str]| {
            self.operators
                .iter()
                .any(|operator| names.iter().any(|name| operator["op"] == *name))
        };
        let version = match () {
            () if has(&["sin", "cos"]) => 3,
            () if has(&["matmul"]) => 2,
            () => 1,
        };
        let trace = json!({"arenite_trace": version, "name": "net", "inputs": ["x"], "outputs": last["outputs"],
            "tensors": declared, "ops": self.operators, "parameters": "net.safetensors"});
        assert_eq!(arenite_tests::json_schema::check_trace(&trace), Ok(()));
        trace
    }

    /// Writes the trace and its parameters; returns the trace's path.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let parameters: Vec<(String, Vec<u8>, Vec<usize>)> = (self.parameters.iter())
            .map(|(name, values)| {
                let bytes = values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
                (name.clone(), bytes, values.shape().to_vec())
            })
            .collect();
        let views = parameters.iter().map(|(name, bytes, shape)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("as many bytes");
            (name, view)
        });
        safetensors::serialize_to_file(views, None, &folder.join("net.safetensors")).expect("written");
        let path = folder.join("net.trace.json");
        std::fs::write(&path, self.trace().to_string()).expect("written");
        path
    }

    /// Inputs of several contrasts.
    pub(crate) fn samples(&mut self, count: usize) -> Vec<ArrayD<f32>> {
        let shape = self.shape.clone();
        (0..count)
            .map(|index| {
                let contrast = [1.0, 0.8, 0.6][index % 3];
                let len: usize = shape.iter().product();
                let channels = shape.get(1).copied().unwrap_or(1);
                // A level of each channel, and noise on it.
                let levels: Vec<f64> = (0..channels).map(|_| self.random()).collect();
                let level = |at: usize| levels[at / (len / channels)];
                let values = (0..len).map(|at| (contrast * (0.7 * level(at) + 0.3 * self.random())) as f32);
                let values = values.collect();
                ArrayD::from_shape_vec(IxDyn(&shape), values).expect("as many values")
            })
            .collect()
    }

    /// Returns the outputs for `x` by the formulas.
    pub(crate) fn expected(&self, x: &ArrayD<f32>) -> Vec<f64> {
        let mut tensors = self.parameters.clone();
        tensors.insert("x".into(), x.mapv(f64::from));
        let trace = self.trace();
        evaluate(&trace, &mut tensors);
        let output = trace["outputs"][0].as_str().expect("a name");
        tensors[output].iter().copied().collect()
    }

    /// The quantised network's signal-to-noise ratio in dB on inputs that it was not calibrated with: of what differs from the mean over the inputs, for a
    /// constant tells nothing.
    pub(crate) fn snr(&mut self, keep_f32: &[&str]) -> Result<f64, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let samples = self.samples(SAMPLES[0]);
        let (_, file) = self.packed(folder.path(), &samples, keep_f32)?;
        let judged = self.samples(SAMPLES[1]);
        let expected: Vec<Vec<f64>> = judged.iter().map(|x| self.expected(x)).collect();
        let found = answers(&file, &judged);
        let mean: Vec<f64> = (0..expected[0].len())
            .map(|at| expected.iter().map(|answer| answer[at]).sum::<f64>() / expected.len() as f64)
            .collect();
        let (mut signal, mut noise) = (0.0, 0.0);
        for (expected, found) in expected.iter().zip(&found) {
            for ((expected, found), mean) in expected.iter().zip(found).zip(&mean) {
                signal += (expected - mean) * (expected - mean);
                noise += (expected - found) * (expected - found);
            }
        }
        Ok(10.0 * (signal / noise.max(f64::MIN_POSITIVE)).log10())
    }

    /// Packs the quantised network.
    pub(crate) fn packed(
        &self,
        folder: &Path,
        samples: &[ArrayD<f32>],
        keep_f32: &[&str],
    ) -> Result<(Packed, ModelFile), Error> {
        let trace = self.write(folder);
        let options = calibrated_to(self.activations, &trace, folder, samples, keep_f32);
        let packed = pack(&options, &mut |_, _, _| {})?;
        Ok((packed, ModelFile::open(&options.output)?))
    }
}

/// Options of `pack --dtype int8 --calibrate`.
pub(crate) fn calibrated(trace: &Path, folder: &Path, samples: &[ArrayD<f32>], keep_f32: &[&str]) -> Options {
    calibrated_to(Activations::Int8, trace, folder, samples, keep_f32)
}

/// Options of `pack --dtype int8|int16x8 --calibrate`.
pub(crate) fn calibrated_to(
    activations: Activations,
    trace: &Path,
    folder: &Path,
    samples: &[ArrayD<f32>],
    keep_f32: &[&str],
) -> Options {
    let views: Vec<_> = samples.iter().map(|sample| sample.view()).collect();
    let path = folder.join("samples.npy");
    let stacked = ndarray::stack(Axis(0), &views).expect("equal shapes");
    ndarray_npy::write_npy(&path, &stacked).expect("written");
    Options {
        dtype: Some(activations.dtype()),
        quantize: Some(quantize::Request {
            samples: path,
            activations,
            keep_f32: keep_f32.iter().map(ToString::to_string).collect(),
            ..quantize::Request::default()
        }),
        ..Options::new(trace, folder.join("net.arenite"))
    }
}

/// The first output of each run in real numbers; floats are quantised with the model's own scale.
pub(crate) fn answers(file: &ModelFile, inputs: &[ArrayD<f32>]) -> Vec<Vec<f64>> {
    let view = file.view().expect("a model");
    let runs: Vec<Vec<Vec<u8>>> = inputs
        .iter()
        .map(|input| vec![input.iter().flat_map(|&value| stored(value, &view.inputs[0])).collect()])
        .collect();
    let output = &view.outputs[0];
    let real = |value: f64| match output.dtype {
        DType::F32 | DType::I32 => value,
        _ => f64::from(output.scale) * (value - f64::from(output.zero_point)),
    };
    let outputs = run(&file.load().expect("loads"), &runs, true, &mut |_, _, _| {}).expect("runs");
    let values = |answer: &Vec<Vec<u8>>| arenite_host::compare::to_f64(output.dtype, &answer[0]);
    outputs
        .iter()
        .map(|answer| values(answer).into_iter().map(real).collect())
        .collect()
}

/// A value as the model takes it.
pub(crate) fn stored(value: f32, port: &arenite::Port<'_>) -> Vec<u8> {
    let of = |low: i32, high: i32| {
        let stored = (value / port.scale).round() as i32 + port.zero_point;
        stored.clamp(low, high)
    };
    match port.dtype {
        DType::I8 => vec![of(-128, 127) as u8],
        DType::U8 => vec![of(0, 255) as u8],
        DType::I16 => (of(-32768, 32767) as i16).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}
