//! The steps in front of a network.

use arenite::DType;

use super::spec::{Geometry, Preprocess};
use crate::error::{Error, Result};
use crate::graph::{
    Activation, BinaryOp, Data, Graph, Layout, Node, Op, Origin, Quant, Role, Tensor, TensorId, TensorKind,
};
use crate::quantize::Grid;

/// Result of inserting the preprocessing.
#[derive(Debug, Default)]
pub struct Inserted {
    /// The values of the bytes, where the picture is bytes and the network f32.
    pub grid: Option<Grid>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Rewrites the network's input as `spec` says. With `later`, the picture of an f32 network stays f32 for now: it is quantised with the network, by
/// [`Inserted::grid`].
///
/// # Errors
/// A network that has no picture as its only input; extents, channels or an element type that `spec` does not fit.
pub fn insert(graph: &mut Graph, spec: &Preprocess, later: bool) -> Result<Inserted> {
    let &[id] = &graph.inputs[..] else {
        return Err(refused(format!("the network has {} inputs", graph.inputs.len())).expected("one"));
    };
    let own = graph.tensor(id).clone();
    let &[batch, a, b, c] = &own.shape[..] else {
        return Err(refused(format!("`{}` has {} axes", own.name, own.shape.len())).expected("the four of a picture"));
    };
    let layout = match spec.layout {
        Some(layout) => layout,
        None => layout_of(&own)?,
    };
    let (wanted, channels) = match layout {
        Layout::Nhwc => ([a, b], c),
        Layout::Nchw => ([b, c], a),
    };
    let size = spec.size.unwrap_or(wanted);
    let mut inserted = Inserted::default();
    let (outside, inside) = element_types(spec, &own, later, channels, &mut inserted)?;
    // In front of everything: the network's own nodes come behind.
    let behind = std::mem::take(&mut graph.nodes);
    let picture = Tensor {
        name: own.name.clone(),
        shape: vec![batch, size[0], size[1], channels],
        dtype: outside.0,
        quant: outside.1,
        kind: TensorKind::Input,
        traced_perm: None,
    };
    let mut chain = Chain {
        at: graph.add_tensor(picture),
        size,
        graph,
    };
    chain.graph.inputs[0] = chain.at;
    let mut steps = spec.geometry.iter().peekable();
    // Of bytes while they are bytes.
    while let Some(&&Geometry::Crop(size, from)) = steps.peek() {
        chain.crop(size, from)?;
        steps.next();
    }
    chain.convert(inside);
    for step in steps {
        match *step {
            Geometry::Crop(size, from) => chain.crop(size, from)?,
            Geometry::Resize(size) => chain.resize(size)?,
        }
    }
    if chain.size != wanted {
        let [[rows, columns], [high, wide]] = [chain.size, wanted];
        let help = "size=, crop= and resize= lead from the picture to the network's extents";
        return Err(refused(format!("a picture of {rows} x {columns} comes to the network"))
            .expected(format!("{high} x {wide}, as `{}` has", own.name))
            .help(help));
    }
    if layout == Layout::Nchw {
        chain.append("channels first", Op::Transpose { perm: vec![0, 3, 1, 2] }, |shape| {
            *shape = own.shape.clone()
        });
    }
    let channel_shape = match layout {
        Layout::Nhwc => vec![1, 1, 1, channels],
        Layout::Nchw => vec![1, channels, 1, 1],
    };
    if chain.graph.tensor(chain.at).dtype == DType::F32 {
        let [offsets, factors] = affine(spec, inserted.grid, channels);
        chain.constant("offset", BinaryOp::Add, &offsets, 0.0, &channel_shape);
        chain.constant("scale", BinaryOp::Mul, &factors, 1.0, &channel_shape);
    }
    // The last tensor is the network's own: the last step writes it, or it stays the input.
    graph.tensors.pop();
    match graph.nodes.last_mut() {
        Some(last) => {
            last.outputs = vec![id];
            let tensor = graph.tensor_mut(id);
            tensor.name = format!("{} (preprocessed)", own.name);
            tensor.kind = TensorKind::Activation;
        }
        None => graph.inputs[0] = id,
    }
    graph.nodes.extend(behind);
    Ok(inserted)
}

fn refused(message: String) -> Error {
    Error::unsupported(format!("--preprocess: {message}"))
}

/// A picture has one to four channels, and more rows and columns.
fn layout_of(input: &Tensor) -> Result<Layout> {
    let few = |extent: usize| (1..=4).contains(&extent);
    match (few(input.shape[1]), few(input.shape[3])) {
        (false, true) => Ok(Layout::Nhwc),
        (true, false) => Ok(Layout::Nchw),
        _ => Err(refused(format!(
            "which axis of `{}` {:?} counts the channels?",
            input.name, input.shape
        ))
        .help("say layout=nhwc or layout=nchw")),
    }
}

type Element = (DType, Option<Quant>);

/// The element types of the picture and of the network's own input.
fn element_types(
    spec: &Preprocess,
    own: &Tensor,
    later: bool,
    channels: usize,
    inserted: &mut Inserted,
) -> Result<(Element, Element)> {
    for (what, values) in [("mean", &spec.mean), ("scale", &spec.scale)] {
        if values.len() > 1 && values.len() != channels {
            return Err(refused(format!("{} values of {what}", values.len()))
                .expected(format!("1 or {channels}, as there are channels")));
        }
    }
    let inside = (own.dtype, own.quant.clone());
    let normalises = !spec.mean.is_empty() || !spec.scale.is_empty();
    match (own.dtype, spec.bytes) {
        (DType::F32, false) => Ok((inside.clone(), inside)),
        (DType::F32, true) => {
            let grid = grid(spec)?;
            inserted.grid = Some(grid);
            let bytes = (DType::U8, Some(Quant::per_tensor(grid.scale, i32::from(grid.zero))));
            Ok((if later { inside.clone() } else { bytes }, inside))
        }
        (DType::I8, false) if normalises => Err(refused(format!("mean and scale of `{}`, which is int8", own.name))
            .expected("u8 as well: bytes are converted")),
        (DType::I8, false) => Ok((inside.clone(), inside)),
        (DType::I8, true) => {
            if [&spec.mean, &spec.scale]
                .iter()
                .any(|values| values.windows(2).any(|two| two[0] != two[1]))
            {
                return Err(refused(format!(
                    "a mean or scale for each channel of `{}`, which is int8 with one scale",
                    own.name
                ))
                .expected("one value for all channels"));
            }
            let grid = grid(spec)?;
            let mean = spec.mean.first().copied().unwrap_or(0.0);
            if mean != f32::from(grid.zero) {
                if (mean - f32::from(grid.zero)).abs() > 0.5 {
                    return Err(refused(format!("mean={mean}")).expected("0 to 255, which are the bytes"));
                }
                inserted.warnings.push(format!(
                    "--preprocess: an int8 input stores no half steps: mean={mean} is taken as {}",
                    grid.zero
                ));
            }
            Ok((
                (DType::U8, Some(Quant::per_tensor(grid.scale, i32::from(grid.zero)))),
                inside,
            ))
        }
        (other, _) => Err(refused(format!("`{}` is {}", own.name, other.name())).expected("f32 or int8")),
    }
}

/// The scale of all bytes, and a whole zero point as near the mean as there is.
fn grid(spec: &Preprocess) -> Result<Grid> {
    let scale = spec.scale.first().copied().unwrap_or(1.0);
    if scale < f32::MIN_POSITIVE {
        return Err(refused(format!("scale={scale:e} of bytes")).expected(format!("at least {:e}", f32::MIN_POSITIVE)));
    }
    let mean = spec.mean.iter().sum::<f32>() / spec.mean.len().max(1) as f32;
    Ok(Grid {
        scale,
        zero: mean.round().clamp(0.0, 255.0) as u8,
    })
}

/// Returns the affine map left behind the grid, by channel: the addend, then the factor of the sum.
fn affine(spec: &Preprocess, grid: Option<Grid>, channels: usize) -> [Vec<f32>; 2] {
    let (step, zero) = grid.map_or((1.0, 0.0), |grid| (f64::from(grid.scale), f64::from(grid.zero)));
    let of = |values: &[f32], channel: usize, default: f64| match values {
        [] => default,
        [all] => f64::from(*all),
        _ => f64::from(values[channel]),
    };
    let each = |value: &dyn Fn(usize) -> f64| (0..channels).map(|channel| value(channel) as f32).collect();
    [
        each(&|channel| step * (zero - of(&spec.mean, channel, 0.0))),
        each(&|channel| of(&spec.scale, channel, 1.0) / step),
    ]
}

/// The steps by now.
struct Chain<'g> {
    graph: &'g mut Graph,
    at: TensorId,
    size: [usize; 2],
}

impl Chain<'_> {
    fn append(&mut self, name: &str, op: Op, change: impl Fn(&mut Vec<usize>)) {
        self.append_with(name, op, None, change);
    }

    fn append_with(&mut self, name: &str, op: Op, other: Option<TensorId>, change: impl Fn(&mut Vec<usize>)) {
        let mut result = self.graph.tensor(self.at).clone();
        result.name = format!("preprocess: {name}");
        result.kind = TensorKind::Activation;
        change(&mut result.shape);
        let result = self.graph.add_tensor(result);
        self.graph.nodes.push(Node {
            name: format!("preprocess: {name}"),
            kind: "preprocess".into(),
            op,
            inputs: std::iter::once(Some(self.at)).chain(other.map(Some)).collect(),
            outputs: vec![result],
            role: Role::Forward,
            origin: Origin {
                line: None,
                path: "--preprocess".into(),
            },
        });
        self.at = result;
    }

    fn crop(&mut self, size: [usize; 2], from: Option<[usize; 2]>) -> Result<()> {
        let have = self.size;
        let first = |axis: usize| match from {
            Some(from) => Some(from[axis]).filter(|first| first + size[axis] <= have[axis]),
            None => have[axis].checked_sub(size[axis]).map(|rest| rest / 2),
        };
        let (Some(row), Some(column)) = (first(0), first(1)) else {
            let at = from.map_or(String::new(), |[row, column]| {
                format!(" from row {row} and column {column}")
            });
            return Err(refused(format!("crop of {} x {}{at}", size[0], size[1]))
                .expected(format!("inside the picture of {} x {}", have[0], have[1])));
        };
        let begin = vec![0, row, column, 0];
        let op = Op::Slice {
            begin,
            stride: vec![1; 4],
        };
        self.append("crop", op, |shape| shape[1..3].copy_from_slice(&size));
        self.size = size;
        Ok(())
    }

    fn resize(&mut self, size: [usize; 2]) -> Result<()> {
        let op = Op::ResizeBilinear {
            align_corners: false,
            half_pixel_centers: true,
        };
        self.append("resize", op, |shape| shape[1..3].copy_from_slice(&size));
        self.size = size;
        Ok(())
    }

    /// In the element type of the network's input.
    fn convert(&mut self, (dtype, quant): Element) {
        let from = self.graph.tensor(self.at);
        if (from.dtype, &from.quant) == (dtype, &quant) {
            return;
        }
        let op = if dtype == DType::F32 {
            Op::Dequantize
        } else {
            Op::Quantize
        };
        self.append("convert", op, |_| ());
        let tensor = self.graph.tensor_mut(self.at);
        (tensor.dtype, tensor.quant) = (dtype, quant);
    }

    /// An operation with a constant of each channel, unless all of them change nothing.
    fn constant(&mut self, name: &str, kind: BinaryOp, values: &[f32], neutral: f32, shape: &[usize]) {
        if values.iter().all(|value| *value == neutral) {
            return;
        }
        let constant = Tensor {
            kind: TensorKind::Const(Data::from_f32(values)),
            ..Tensor::activation(format!("preprocess: {name} of channels"), shape, DType::F32)
        };
        let constant = self.graph.add_tensor(constant);
        let op = Op::Binary {
            kind,
            activation: Activation::None,
        };
        self.append_with(name, op, Some(constant), |_| ());
    }
}
