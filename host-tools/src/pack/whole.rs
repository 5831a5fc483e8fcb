//! The network without its dead channels against the whole one, bit for bit.

use arenite::{DType, Model, Port, Target};

use super::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Op, TensorId};
use crate::model::{self, ModelFile};
use crate::portable::Portable;
use crate::program::Program;
use crate::weights::Weights;

/// Multiply-accumulates that the comparison may take, but for its first run.
const MACS: u64 = 1 << 26;
/// The most runs.
const RUNS: u64 = 16;

/// Runs `file`, whose steps are `program`'s, and `whole` on random inputs and on those at the ends of their types.
///
/// Both must be computed alike for their bits to be equal. Integers are, by all kernels. Sums of f32 are rounded differently by the kernels of different
/// targets, and a rounding behind them shows that as a whole step: where a network computes in f32, both networks are run with portable kernels. So are files
/// of kernels that this host does not have.
///
/// # Errors
/// [`ErrorKind::Internal`] where an output differs.
pub(super) fn compare(
    whole: Graph,
    program: &Program,
    weights: &Weights,
    file: &ModelFile,
    options: &Options,
) -> Result<()> {
    let macs = crate::graph::facts::macs_per_element(&whole).max(1);
    let io = |e: Error| e.in_file(&options.output);
    let reference = portable(whole, weights).map_err(io)?;
    let reference = reference.load()?;
    let ours;
    let loaded = if computes_in_f32(&program.graph) {
        None
    } else {
        match file.load() {
            Err(e) if e.kind() == ErrorKind::Unsupported => None,
            loaded => Some(loaded?),
        }
    };
    let ours = match loaded {
        Some(loaded) => loaded,
        None => {
            ours = portable(program.graph.clone(), weights).map_err(io)?;
            ours.load()?
        }
    };
    let runs = inputs(&reference, (MACS / macs).clamp(1, RUNS));
    let run = |model: &Model<'_>| model::run(model, &runs, false, &mut |_, _, _| {});
    let (expected, found) = (run(&reference)?, run(&ours)?);
    match expected.iter().zip(&found).position(|(a, b)| a != b) {
        None if expected.len() == found.len() => Ok(()),
        at => {
            let message = format!(
                "without its dead channels the network computes something else (input {at:?} of {})",
                runs.len()
            );
            Err(Error::internal(message).help("please report it; --keep-dead-channels packs without"))
        }
    }
}

/// Whether any operator but a conversion has a real operand or result.
fn computes_in_f32(graph: &Graph) -> bool {
    let real = |id: &TensorId| graph.tensor(*id).dtype == DType::F32;
    let conversion = |op: &Op| matches!(op, Op::Quantize | Op::Dequantize);
    let mut others = graph.nodes.iter().filter(|node| !conversion(&node.op));
    others.any(|node| node.inputs.iter().flatten().chain(&node.outputs).any(real))
}

/// A network behind all passes as a file of portable kernels, which is gone with what is returned.
///
/// # Errors
/// Operators that no kernel computes.
pub fn portable(graph: Graph, weights: &Weights) -> Result<ModelFile> {
    Ok(Portable::of(graph, weights, Target::Portable)?.file)
}

/// The inputs of each run.
pub(super) fn inputs(model: &Model<'_>, runs: u64) -> Vec<Vec<Vec<u8>>> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        // Marsaglia's xorshift.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed >> 32
    };
    let ports: Vec<Port<'_>> = (0..).map_while(|port| model.input(port)).collect();
    let mut input = |run: u64, port: &Port<'_>| -> Vec<u8> {
        let bytes = port.bytes().unwrap_or(0) as usize;
        let elements = 0..bytes / port.dtype.bytes();
        elements
            .flat_map(|_| {
                // The first run has all of it, for large networks have no other.
                let kind = if run == 0 { random() % 4 } else { run.min(4) - 1 };
                element(port.dtype, kind, random() as u32)
            })
            .collect()
    };
    (0..runs)
        .map(|run| ports.iter().map(|port| input(run, port)).collect())
        .collect()
}

/// An element at the low end of its type, at the high end, at either, or anywhere.
fn element(dtype: DType, kind: u64, random: u32) -> Vec<u8> {
    let high = match kind {
        0 => false,
        1 => true,
        _ => random & 1 == 1,
    };
    let between = kind > 2;
    match dtype {
        DType::F32 => {
            let end = if high { 1e6_f32 } else { -1e6 };
            let value = if between {
                random as f32 / (1_u32 << 28) as f32 - 8.0
            } else {
                end
            };
            value.to_le_bytes().to_vec()
        }
        DType::Bool => vec![u8::from(high)],
        DType::U8 => vec![if between {
            random as u8
        } else {
            u8::MAX * u8::from(high)
        }],
        dtype => {
            let mut bytes = vec![if high { 0xff } else { 0 }; dtype.bytes()];
            if let Some(top) = bytes.last_mut() {
                *top ^= 0x80;
            }
            if between {
                bytes
                    .iter_mut()
                    .zip(random.to_le_bytes().iter().cycle())
                    .for_each(|(byte, random)| *byte = *random);
            }
            bytes
        }
    }
}

#[cfg(test)]
#[path = "../../plan/src/channels/sample.rs"]
mod sample;

#[cfg(test)]
mod tests {
    use arenite::Target;

    use super::*;
    use crate::graph::{
        Activation, Conv2dAttrs, Data, Layout, Node, Origin, Padding2d, Quant, Role, Tensor, TensorKind,
    };
    use crate::lower::{self, Preferences};

    #[test]
    fn another_network_is_seen() {
        let whole = sample::sample();
        let weights = Weights::nothing(&whole).expect("no parameters");
        let mut graph = whole.clone();
        crate::channels::remove(&mut graph, 1).expect("removes");
        let file = portable(graph.clone(), &weights).expect("a file");
        let preferences = Preferences {
            target: Target::Portable,
            size: false,
            share: false,
            spend: None,
            cost: |_, _, _| None,
            without: &[],
            paged: false,
            accelerator: None,
        };
        let program = lower::lower(graph, preferences, &weights).expect("steps");
        let options = Options::new("sample", "sample.arenite");
        compare(whole.clone(), &program, &weights, &file, &options).expect("equal");

        let mut other = whole;
        let bias = other.nodes.last().and_then(|node| node.inputs[2]).expect("a bias");
        other.tensor_mut(bias).kind = TensorKind::Const(Data::from_i32(&[100, 1 << 24]));
        let error = compare(other, &program, &weights, &file, &options).expect_err("they differ");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("computes something else"), "{error}");
    }

    /// Sums of f32 in front of a rounding: whole multiples of 0.01 where steps are of 0.14, so that one in fourteen lies where rounding turns, and the errors
    /// of f32
    /// decide. Kernels of other targets have others.
    fn sums_before_a_rounding() -> Graph {
        let mut graph = Graph::default();
        let mut tensor = |name: &str, shape: &[usize], dtype, kind, quant| {
            graph.add_tensor(Tensor {
                kind,
                quant,
                ..Tensor::activation(name, shape, dtype)
            })
        };
        let numbers: Vec<f32> = (0..8 * 9 * 8).map(|at| 0.1 * (at * 37 % 7 - 3) as f32).collect();
        let step = |scale| Some(Quant::per_tensor(scale, -3));
        let x = tensor("x", &[1, 12, 11, 8], DType::I8, TensorKind::Input, step(0.1));
        let real = tensor("real", &[1, 12, 11, 8], DType::F32, TensorKind::Activation, None);
        let weights = TensorKind::Const(Data::from_f32(&numbers));
        let weights = tensor("weights", &[8, 3, 3, 8], DType::F32, weights, None);
        let sums = tensor("sums", &[1, 10, 9, 8], DType::F32, TensorKind::Activation, None);
        let y = tensor("y", &[1, 10, 9, 8], DType::I8, TensorKind::Activation, step(0.14));
        let attrs = Conv2dAttrs {
            layout: Layout::Nhwc,
            stride: [1, 1],
            dilation: [1, 1],
            padding: Padding2d::default(),
            groups: 1,
            activation: Activation::None,
        };
        for (name, op, inputs, output) in [
            ("dequantize", Op::Dequantize, vec![Some(x)], real),
            ("conv", Op::Conv2d(attrs), vec![Some(real), Some(weights)], sums),
            ("quantize", Op::Quantize, vec![Some(sums)], y),
        ] {
            graph.add_node(Node {
                name: name.into(),
                kind: name.into(),
                op,
                inputs,
                outputs: vec![output],
                role: Role::Forward,
                origin: Origin::default(),
            });
        }
        (graph.inputs, graph.outputs) = (vec![x], vec![y]);
        graph
    }

    #[test]
    fn sums_that_targets_round_differently_are_no_difference() {
        let graph = sums_before_a_rounding();
        let weights = Weights::nothing(&graph).expect("no parameters");
        let options = Options::new("sums", "sums.arenite");
        let bits = |file: &ModelFile| {
            let model = file.load().expect("it loads");
            let runs = inputs(&model, 16);
            model::run(&model, &runs, false, &mut |_, _, _| {}).expect("it runs")
        };
        let expected = bits(&portable(graph.clone(), &weights).expect("a file"));
        let mut others = 0;
        for target in Target::ALL {
            let of_target = Portable::of(graph.clone(), &weights, target).expect("steps");
            others += u32::from(of_target.file.load().is_ok() && bits(&of_target.file) != expected);
            compare(graph.clone(), &of_target.program, &weights, &of_target.file, &options)
                .unwrap_or_else(|e| panic!("{}: {e}", target.name()));
        }
        assert!(others > 0, "a target rounds differently");
    }

    #[test]
    fn elements_at_the_ends_of_their_types() {
        assert_eq!(element(DType::I8, 0, 7), [0x80]);
        assert_eq!(element(DType::I8, 1, 7), [0x7f]);
        assert_eq!(element(DType::I16, 0, 7), i16::MIN.to_le_bytes());
        assert_eq!(element(DType::I16, 1, 7), i16::MAX.to_le_bytes());
        assert_eq!(
            (element(DType::U8, 0, 7), element(DType::U8, 1, 7)),
            (vec![0], vec![255])
        );
        assert_eq!(element(DType::I8, 3, 0x1234_5678), [0x78]);
        assert_eq!(element(DType::F32, 1, 7), 1e6_f32.to_le_bytes());
    }
}
