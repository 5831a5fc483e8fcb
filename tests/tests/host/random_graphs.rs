//! Random networks through the whole of it, import, passes, lowering, plan, load, kernels, against loops in f64.

use std::path::Path;

use arenite::Target;
use arenite_host::metadata::TensorMeta;
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::pack;
use arenite_tests::golden::options;
use arenite_tests::naive::{Tensors, evaluate};
use arenite_tests::{oracle, properties};
use ndarray::{ArrayD, IxDyn};
use proptest::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Map, Value, json};

proptest! {
    #![proptest_config(properties::config("random_graphs", 1.2))]

    #[test]
    fn random_networks_equal_their_formulas(
        seed in any::<u64>(),
        operators in 1usize..12,
        batch in 1usize..3,
        target in prop_oneof![Just(Target::Portable), Just(Target::CortexM4), Just(Target::CortexM55), Just(Target::Aarch64)],
        size: bool,
        in_place: bool,
    ) {
        let network = Network::random(seed, operators, batch);
        let folder = tempfile::tempdir().expect("a folder");
        let trace = network.write(folder.path());
        let mut options = options(&folder.path().join("random.trace.json"), folder.path(), target);
        (options.size, options.in_place, options.import.batch) = (size, in_place, Some(batch));
        let packed = pack(&options, &mut |_, _, _| {});
        prop_assert!(packed.is_ok(), "{}\n{trace:#}", packed.err().map(|e| e.to_string()).unwrap_or_default());
        let file = ModelFile::open(&options.output).expect("the model");
        let model = file.load().expect("it loads");
        let input: Vec<u8> = network.tensors["x"].iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
        let metadata = file.view().and_then(|view| view.metadata()).expect("metadata");
        let mut activations: Vec<(String, Vec<f64>)> = Vec::new();
        let found = run(&model, &[vec![input]], false, &mut |_, step, session| {
            if let Some(tensor) = &metadata.steps[step as usize].completes {
                let bytes = tensor.shape.iter().product::<u32>() * 4;
                let values = completed(tensor, session.read(tensor.slot, bytes).expect("in the arena"));
                // Whatever the trace calls this array.
                activations.extend(tensor.names.iter().map(|name| (name.clone(), values.clone())));
            }
        }).expect("it runs");

        let mut expected = network.tensors.clone();
        evaluate(&trace, &mut expected);
        let outputs = network.outputs.iter().zip(&found[0]).map(|(name, found)| (name.clone(), floats(found)));
        activations.retain(|(name, _)| expected.contains_key(name));
        let found: Vec<_> = outputs.chain(activations).collect();
        for (name, found) in &found {
            let expected: Vec<f64> = expected[name].iter().copied().collect();
            prop_assert_eq!(found.len(), expected.len(), "{}", name);
            let largest = expected.iter().fold(1e-3f64, |m, v| m.max(v.abs()));
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = (found - expected).abs() / largest;
                prop_assert!(error <= 1e-5 * (1.0 + network.depth() as f64), "{name}[{at}]: {found} for {expected}\n{trace:#}");
            }
        }
        oracle::compared("loops in f64", found.len(), 1);
    }
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f64::from(f32::from_le_bytes(*word))).collect()
}

/// A tensor that a step completes, in the traced order of its axes.
fn completed(tensor: &TensorMeta, bytes: &[u8]) -> Vec<f64> {
    let shape: Vec<usize> = tensor.shape.iter().map(|&extent| extent as usize).collect();
    let array = ArrayD::from_shape_vec(IxDyn(&shape), floats(bytes)).expect("its extents");
    let axes: Vec<usize> = if tensor.traced_perm.is_empty() {
        (0..shape.len()).collect()
    } else {
        tensor.traced_perm.iter().map(|&axis| usize::from(axis)).collect()
    };
    array.permuted_axes(IxDyn(&axes)).iter().copied().collect()
}

/// A network of the trace schema, and its values.
struct Network {
    random: Random,
    batch: usize,
    operators: Vec<Value>,
    declared: Map<String, Value>,
    /// The input `x` and the parameters.
    tensors: Tensors,
    /// Activations so far: name and shape.
    made: Vec<(String, Vec<usize>)>,
    outputs: Vec<String>,
}

impl Network {
    fn random(seed: u64, operators: usize, batch: usize) -> Self {
        let mut random = Random(seed);
        let shape = vec![batch, random.within(1, 6), random.within(3, 11), random.within(3, 11)];
        let mut network = Self {
            random,
            batch,
            operators: Vec::new(),
            declared: Map::new(),
            tensors: Tensors::new(),
            made: vec![("x".into(), shape.clone())],
            outputs: Vec::new(),
        };
        let input = network.values(&shape, 1.0);
        network.tensors.insert("x".into(), input);
        network.declare("x", &shape, "input");
        while network.operators.len() < operators {
            network.add();
        }
        let read: Vec<&Value> = network
            .operators
            .iter()
            .flat_map(|op| op["inputs"].as_array().expect("a list"))
            .collect();
        let unread = |name: &String| name != "x" && !read.iter().any(|read| read.as_str() == Some(name));
        network.outputs = network
            .made
            .iter()
            .map(|(name, _)| name.clone())
            .filter(unread)
            .collect();
        network
    }

    fn depth(&self) -> usize {
        self.operators.len()
    }

    fn write(&self, folder: &Path) -> Value {
        let views: Vec<(String, Vec<u8>, Vec<usize>)> = self
            .tensors
            .iter()
            .filter(|(name, _)| *name != "x" && self.declared.contains_key(*name))
            .map(|(name, values)| {
                let bytes = values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
                (name.clone(), bytes, values.shape().to_vec())
            })
            .collect();
        let views = views.iter().map(|(name, bytes, shape)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("as many bytes");
            (name, view)
        });
        safetensors::serialize_to_file(views, None, &folder.join("random.safetensors")).expect("written");
        let trace = json!({"arenite_trace": 1, "name": "random", "inputs": ["x"], "outputs": self.outputs,
            "tensors": self.declared, "ops": self.operators, "parameters": "random.safetensors"});
        assert_eq!(arenite_tests::json_schema::check_trace(&trace), Ok(()));
        std::fs::write(folder.join("random.trace.json"), trace.to_string()).expect("written");
        trace
    }

    /// Adds an operator to one of the last tensors, where its shape allows; else nothing.
    fn add(&mut self) {
        let last = self.made.len() - 1;
        let (x, shape) = self.made[last - self.random.within(0, 3).min(last)].clone();
        match shape.len() {
            4 => self.add_to_image(&x, &shape),
            rank if rank >= 1 => self.add_to_any(&x, &shape),
            _ => {}
        }
    }

    fn add_to_image(&mut self, x: &str, shape: &[usize]) {
        let [n, c, h, w] = shape.try_into().expect("four axes");
        match self.random.within(0, 9) {
            0 | 1 => self.conv2d(x, [n, c, h, w], 1),
            7 | 8 => self.block(x, [n, c, h, w]),
            2 => self.pool(x, [n, c, h, w]),
            3 => self.batch_norm(x, shape),
            4 => {
                let axes = [json!([2, 3]), json!([1]), json!([-1])][self.random.within(0, 3)].clone();
                let kept = self.random.flip();
                let op = ["mean", "sum", "max"][self.random.within(0, 3)];
                let mut result = shape.to_vec();
                let mut reduced: Vec<usize> = match axes.as_array().expect("a list").len() {
                    2 => vec![2, 3],
                    _ if axes[0] == 1 => vec![1],
                    _ => vec![3],
                };
                reduced.reverse();
                for axis in reduced {
                    if kept {
                        result[axis] = 1;
                    } else {
                        result.remove(axis);
                    }
                }
                self.push(op, vec![json!(x)], json!({"axes": axes, "keepdims": kept}), &result);
            }
            5 => {
                let rest = c * h * w;
                if self.random.flip() {
                    self.push("flatten", vec![json!(x)], json!({}), &[n, rest])
                } else {
                    self.push(
                        "reshape",
                        vec![json!(x)],
                        json!({"shape": [-1, h, w * c]}),
                        &[n, h, w * c],
                    )
                }
            }
            _ => self.add_to_any(x, shape),
        }
    }

    fn batch_norm(&mut self, x: &str, shape: &[usize]) {
        let statistics: Vec<Value> = (0..4)
            .map(|i| match i {
                3 => self.parameter(&[shape[1]], |v| 1.0 + 0.5 * v.abs()),
                _ => self.parameter(&[shape[1]], |v| v),
            })
            .collect();
        let inputs: Vec<Value> = std::iter::once(json!(x)).chain(statistics).collect();
        self.push("batch_norm", inputs, json!({}), shape);
    }

    /// Adds operators that passes fold into convolutions, one behind the other in any order: normalisations, constants, sums of several, activations.
    fn block(&mut self, x: &str, shape: [usize; 4]) {
        let first = self.made.len();
        let copies = self.random.within(1, 4);
        self.conv2d(x, shape, copies);
        let made: Vec<_> = self.made[first..].to_vec();
        let mut made = made.into_iter();
        let Some((mut y, out)) = made.next() else { return };
        for _ in 0..self.random.within(1, 6) {
            let before = self.made.len();
            match (self.random.within(0, 5), made.len()) {
                (0, _) => self.batch_norm(&y, &out),
                (1, _) => {
                    let bias = self.parameter(&[out[1], 1, 1], |v| v);
                    let operands = if self.random.flip() {
                        vec![bias, json!(y)]
                    } else {
                        vec![json!(y), bias]
                    };
                    self.push("add", operands, json!({}), &out);
                }
                (2 | 3, 1..) => {
                    let other = json!(made.next().map(|(name, _)| name));
                    let operands = if self.random.flip() {
                        vec![other, json!(y)]
                    } else {
                        vec![json!(y), other]
                    };
                    self.push("add", operands, json!({}), &out);
                }
                _ => self.push("relu", vec![json!(y)], json!({}), &out),
            }
            if let Some((name, _)) = self.made[before..].last() {
                y = name.clone();
            }
        }
    }

    /// So many convolutions of one input with one shape.
    fn conv2d(&mut self, x: &str, [n, c, h, w]: [usize; 4], copies: usize) {
        let (kernel, stride, dilation) = (self.pair(1, 4), self.pair(1, 3), self.pair(1, 3));
        let padding = [0; 4].map(|_| self.random.within(0, 3));
        let groups = match self.random.within(0, 3) {
            0 => c,
            1 if c % 2 == 0 => 2,
            _ => 1,
        };
        let out = groups * self.random.within(1, 5);
        let (Some(oh), Some(ow)) = (
            extent(
                h + padding[0] + padding[1],
                dilation[0] * (kernel[0] - 1) + 1,
                stride[0],
            ),
            extent(
                w + padding[2] + padding[3],
                dilation[1] * (kernel[1] - 1) + 1,
                stride[1],
            ),
        ) else {
            return;
        };
        let fan_in = (c / groups * kernel[0] * kernel[1]) as f64;
        for _ in 0..copies {
            let weight = self.parameter(&[out, c / groups, kernel[0], kernel[1]], |v| v * (3.0 / fan_in).sqrt());
            let bias = if self.random.flip() {
                self.parameter(&[out], |v| 0.2 * v)
            } else {
                Value::Null
            };
            let attrs = json!({"strides": stride, "padding": padding, "dilation": dilation, "groups": groups});
            self.push("conv2d", vec![json!(x), weight, bias], attrs, &[n, out, oh, ow]);
        }
    }

    fn pool(&mut self, x: &str, [n, c, h, w]: [usize; 4]) {
        let (kernel, stride) = (self.pair(1, 4), self.pair(1, 3));
        let padding = [0, 0, 1, 1].map(|axis| self.random.within(0, kernel[axis] / 2 + 1));
        let ceil = self.random.flip();
        let out = |length: usize, axis: usize| {
            let (before, after) = (padding[2 * axis], padding[2 * axis + 1]);
            let span = (length + before + after).checked_sub(kernel[axis])?;
            Some(if ceil {
                let out = span.div_ceil(stride[axis]) + 1;
                out - usize::from((out - 1) * stride[axis] >= length + before)
            } else {
                span / stride[axis] + 1
            })
        };
        let (Some(oh), Some(ow)) = (out(h, 0), out(w, 1)) else {
            return;
        };
        let mut attrs = json!({"kernel": kernel, "strides": stride, "padding": padding, "ceil_mode": ceil});
        let op = if self.random.flip() {
            "max_pool2d"
        } else {
            attrs["count_include_pad"] = json!(self.random.flip());
            "avg_pool2d"
        };
        self.push(op, vec![json!(x)], attrs, &[n, c, oh, ow]);
    }

    fn add_to_any(&mut self, x: &str, shape: &[usize]) {
        let rank = shape.len();
        match self.random.within(0, 9) {
            0 | 1 => {
                let unary = "relu sigmoid tanh hardswish silu abs neg leaky_relu clamp dropout";
                let unary: Vec<&str> = unary.split(' ').collect();
                let op = unary[self.random.within(0, unary.len())];
                let attrs = if op == "clamp" {
                    json!({"min": -0.5, "max": 0.75})
                } else {
                    json!({})
                };
                self.push(op, vec![json!(x)], attrs, shape);
            }
            2 | 3 => {
                // Another tensor of the same shape, or a parameter that is broadcast.
                let binary = ["add", "sub", "mul", "maximum", "minimum"];
                let op = binary[self.random.within(0, binary.len())];
                let same: Vec<String> = self
                    .made
                    .iter()
                    .filter(|(_, other)| other == shape)
                    .map(|(name, _)| name.clone())
                    .collect();
                let other = if self.random.flip() {
                    json!(same[self.random.within(0, same.len())])
                } else {
                    let dims: Vec<usize> = shape[1..]
                        .iter()
                        .map(|&n| if self.random.flip() { n } else { 1 })
                        .collect();
                    self.parameter(&dims, |v| v)
                };
                self.push(op, vec![json!(x), other], json!({}), shape);
            }
            4 => {
                let axis = self.random.within(1, rank.max(2));
                if axis < rank {
                    self.push("softmax", vec![json!(x)], json!({"axis": axis}), shape);
                }
            }
            5 if rank >= 2 => {
                let mut order: Vec<usize> = (1..rank).collect();
                let by = self.random.within(0, order.len());
                order.rotate_left(by);
                order.insert(0, 0);
                let result: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
                self.push("transpose", vec![json!(x)], json!({"perm": order}), &result);
            }
            6 if rank >= 2 => {
                let axis = self.random.within(1, rank);
                let (start, step) = (self.random.within(0, shape[axis]), self.random.within(1, 3));
                let stop = self.random.within(start + 1, shape[axis] + 1);
                let mut result = shape.to_vec();
                result[axis] = (stop - start).div_ceil(step);
                let attrs = json!({"axis": axis, "start": start, "stop": stop, "step": step});
                self.push("slice", vec![json!(x)], attrs, &result);
            }
            7 if rank >= 2 => {
                let axis = self.random.within(1, rank);
                let like = |(_, other): &&(String, Vec<usize>)| {
                    other.len() == rank && (0..rank).all(|i| i == axis || other[i] == shape[i])
                };
                let mates: Vec<(String, Vec<usize>)> = self.made.iter().filter(like).cloned().collect();
                let (mate, other) = mates[self.random.within(0, mates.len())].clone();
                let mut result = shape.to_vec();
                result[axis] += other[axis];
                self.push("concat", vec![json!(x), json!(mate)], json!({"axis": axis}), &result);
            }
            8 if rank >= 2 && shape[rank - 1] <= 64 => {
                let (length, out) = (shape[rank - 1], self.random.within(1, 9));
                let weight = self.parameter(&[out, length], |v| v * (3.0 / length as f64).sqrt());
                let bias = if self.random.flip() {
                    self.parameter(&[out], |v| 0.2 * v)
                } else {
                    Value::Null
                };
                let mut result = shape.to_vec();
                result[rank - 1] = out;
                self.push("linear", vec![json!(x), weight, bias], json!({}), &result);
            }
            _ if rank == 4 => {
                let padding: Vec<[usize; 2]> = (0..4)
                    .map(|axis| [0, 1].map(|_| if axis < 2 { 0 } else { self.random.within(0, 3) }))
                    .collect();
                let result: Vec<usize> = shape.iter().zip(&padding).map(|(n, [a, b])| n + a + b).collect();
                let value = if self.random.flip() { 0.0 } else { 0.5 };
                self.push(
                    "pad",
                    vec![json!(x)],
                    json!({"padding": padding, "value": value}),
                    &result,
                );
            }
            _ => {}
        }
    }

    fn push(&mut self, op: &str, inputs: Vec<Value>, attrs: Value, shape: &[usize]) {
        // Small networks: the oracle is slow, and a test shall say little when it fails.
        if shape.iter().product::<usize>() > 4096 * self.batch {
            return;
        }
        let name = format!("t{}", self.operators.len());
        self.operators
            .push(json!({"name": format!("{op}{}", self.operators.len()), "op": op, "inputs": inputs, "outputs": [name], "attrs": attrs}));
        self.declare(&name, shape, "activation");
        for input in inputs
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| name.starts_with('p'))
        {
            let shape = self.tensors[input].shape().to_vec();
            self.declare(input, &shape, "parameter");
        }
        self.made.push((name, shape.to_vec()));
    }

    fn declare(&mut self, name: &str, shape: &[usize], role: &str) {
        let tensor = json!({"shape": shape, "dtype": "f32", "role": role});
        self.declared.insert(name.to_string(), tensor);
    }

    fn parameter(&mut self, shape: &[usize], change: impl Fn(f64) -> f64) -> Value {
        let name = format!("p{}", self.tensors.len());
        let values = self.values(shape, 1.0).mapv(|v| f64::from(change(v) as f32));
        self.tensors.insert(name.clone(), values);
        json!(name)
    }

    fn values(&mut self, shape: &[usize], scale: f64) -> ArrayD<f64> {
        ArrayD::from_shape_fn(IxDyn(shape), |_| f64::from((scale * self.random.unit()) as f32))
    }

    fn pair(&mut self, from: usize, to: usize) -> [usize; 2] {
        [0; 2].map(|_| self.random.within(from, to))
    }
}

/// Places of a window on an axis.
fn extent(length: usize, window: usize, stride: usize) -> Option<usize> {
    Some(length.checked_sub(window)? / stride + 1)
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `from..to`; `from` where that is empty.
    fn within(&mut self, from: usize, to: usize) -> usize {
        from + (self.next() % to.saturating_sub(from).max(1) as u64) as usize
    }

    fn flip(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// In -1..1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
