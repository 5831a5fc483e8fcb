//! Solves the shapes of a dump: batch, image, kernels, from byte sizes and attributes.
//!
//! The image's extents are tried one after another and carried through all forward records; a square image and square kernels are the
//! documented default where they fit, and every other fit is only taken when it is the only one.

use std::collections::HashMap;

use super::batch::{batch, image, losses};
use super::parse::{BufferName, Record, Trace, at};
use crate::assume::Assumptions;
use crate::build::{refuse_unknown, resolve};
use crate::error::{Error, ErrorKind, Result};
use crate::solve::{Axis, factor_pairs};

/// Sizes found from the bytes and attributes.
#[derive(Debug, Default, Clone)]
pub(super) struct Solution {
    /// The image's buffer.
    pub(super) image: u64,
    /// Extents of activations without the batch, of parameters whole.
    pub(super) shapes: HashMap<u64, Vec<usize>>,
    /// Rows and columns of each convolution and pooling, by rank.
    pub(super) windows: HashMap<usize, (Axis, Axis)>,
    /// Which forward records are loss, or depend on one.
    pub(super) is_loss: Vec<bool>,
    /// Square kernels that were preferred to others that fit: place, value, alternatives.
    preferred: Vec<(String, String, String)>,
}

/// Solves a dump.
///
/// # Errors
/// [`ErrorKind::Ambiguous`] where several solutions fit, [`ErrorKind::Input`] where none does.
pub(super) fn solve(
    trace: &Trace<'_>,
    input_shape: Option<&[usize]>,
    assumptions: &mut Assumptions<'_>,
) -> Result<Solution> {
    let is_loss = losses(trace);
    let forward = || {
        trace
            .forward
            .iter()
            .zip(&is_loss)
            .filter(|(_, is_loss)| !**is_loss)
            .map(|(record, _)| record)
    };
    let unknown = forward().filter(|record| !CLASSES.contains(&record.class));
    let unknown = unknown.map(|record| (record.class.to_string(), format!("line {}", record.line)));
    refuse_unknown(
        unknown,
        "build the network from other functions, or trace it in another dialect",
    )?;
    // The attributes must be possible by themselves, before sizes are held against them.
    forward().try_for_each(|record| attributes(record).map_err(|e| record.locate(e)))?;
    let image = image(trace, &is_loss)?;
    let (batch, reason) = batch(trace, &is_loss, image, assumptions)?;
    if let Some(reason) = reason {
        assumptions.record("batch.traced", batch, "the network", &reason);
    }
    let mut kernels = HashMap::new();
    for record in trace.forward.iter().filter(|r| r.class == CONVOLUTION) {
        let name = kernel_key(trace, record);
        if let Some(text) = assumptions.given::<String>(&name, &record.place())? {
            let pair = extents(&text).and_then(|e| <[usize; 2]>::try_from(e).ok());
            let [h, w] = pair.ok_or_else(|| {
                Error::new(ErrorKind::Usage, format!("--assume {name}={text}")).expected("ROWSxCOLUMNS, such as 3x3")
            })?;
            kernels.insert(record.rank, (h, w));
        }
    }
    let problem = Problem {
        trace,
        batch,
        image,
        is_loss,
        kernels,
    };
    let solution = problem.image_shape(input_shape, assumptions)?;
    for (place, value, others) in &solution.preferred {
        let reason = format!("square kernels are the default; {others} would fit as well");
        assumptions.record("kernel", value, place, &reason);
    }
    Ok(solution)
}

pub(super) const CONVOLUTION: &str = "Convolution2DFunction";

/// The functions of the forward half that can be built.
const CLASSES: [&str; 12] = [
    CONVOLUTION,
    "MaxPooling2D",
    "AveragePooling2D",
    "LinearFunction",
    "Reshape",
    "Dropout",
    "ReLU",
    "Sigmoid",
    "Tanh",
    "Add",
    "Softmax",
    "Concat",
];

fn attributes(record: &Record<'_>) -> Result<()> {
    match record.class {
        CONVOLUTION => {
            window(record, 1, 1)?;
            record.size("groups", 1)?;
            record.flag("cover_all")?;
        }
        "MaxPooling2D" | "AveragePooling2D" => {
            window(record, record.size("kh", 1)?, record.size("kw", 1)?)?;
        }
        _ => {}
    }
    Ok(())
}

struct Problem<'p, 't> {
    trace: &'p Trace<'t>,
    batch: usize,
    image: u64,
    is_loss: Vec<bool>,
    /// Kernels that the user chose, by rank.
    kernels: HashMap<usize, (usize, usize)>,
}

impl Problem<'_, '_> {
    fn image_shape(&self, input_shape: Option<&[usize]>, assumptions: &mut Assumptions<'_>) -> Result<Solution> {
        let buffer = self.trace.buffer(self.image)?;
        let elements = self.per_sample(self.image)?;
        let place = format!("buffer {}", self.image);
        if let Some(text) = assumptions.given::<String>("image", &place)? {
            let shape = extents(&text).ok_or_else(|| {
                Error::new(ErrorKind::Usage, format!("--assume image={text}")).expected("CHANNELSxROWSxCOLUMNS")
            })?;
            return self.carry(&shape);
        }
        if let Some([_, shape @ ..]) = input_shape {
            return self.carry(shape);
        }
        let spatial = |r: &&Record<'_>| r.class == CONVOLUTION || r.class.ends_with("Pooling2D");
        if !self.trace.forward.iter().any(|r| spatial(&r)) {
            return self.carry(&[elements]);
        }
        let mut deepest: Option<(usize, Error)> = None;
        let mut attempt = |shape: [usize; 3]| match self.carry_to(&shape) {
            Ok(solution) => Some((shape, solution)),
            Err((depth, error)) => {
                if deepest.as_ref().is_none_or(|(other, _)| *other < depth) {
                    deepest = Some((depth, error));
                }
                None
            }
        };
        // (channels, rows x columns)
        let splits = factor_pairs(elements);
        let square = |area: usize| (area.isqrt() * area.isqrt() == area).then(|| area.isqrt());
        let squares = splits
            .iter()
            .filter_map(|&(c, area)| Some([c, square(area)?, square(area)?]));
        let mut fits: Vec<_> = squares.filter_map(&mut attempt).collect();
        let reason = if fits.is_empty() {
            let oblong = splits
                .iter()
                .flat_map(|&(c, area)| factor_pairs(area).into_iter().map(move |(h, w)| [c, h, w]));
            fits = oblong.filter_map(&mut attempt).take(100).collect();
            "the only image that explains all sizes"
        } else {
            "the only square image that explains all sizes; square is the default"
        };
        let spelled = |[c, h, w]: [usize; 3]| format!("{c}x{h}x{w}");
        match fits.as_slice() {
            [(shape, solution)] => {
                assumptions.record("image", spelled(*shape), &place, reason);
                Ok(solution.clone())
            }
            [] => Err(deepest.map_or_else(
                || Error::internal(format!("no image has {elements} elements")),
                |(_, error)| error.help("no image explains all sizes; this record fits the best of them least"),
            )),
            several => {
                let shapes: Vec<_> = several.iter().take(8).map(|(shape, _)| spelled(*shape)).collect();
                let first = shapes.first().cloned().unwrap_or_default();
                Err(Error::new(
                    ErrorKind::Ambiguous,
                    format!("more than one image explains all sizes: {}", shapes.join(", ")),
                )
                .at(format!("line {}", buffer.line))
                .help(format!("choose with --assume image={first} or another of these")))
            }
        }
    }

    fn carry(&self, image: &[usize]) -> Result<Solution> {
        let elements = self.per_sample(self.image)?;
        if image.iter().try_fold(1usize, |n, &e| n.checked_mul(e)) != Some(elements) {
            let message = format!(
                "an image of {image:?}, but buffer {} holds {elements} elements an image",
                self.image
            );
            return Err(Error::new(ErrorKind::Usage, message));
        }
        self.carry_to(image).map_err(|(_, error)| error)
    }

    /// Carries the image through all records; an error says how many went well.
    fn carry_to(&self, image: &[usize]) -> std::result::Result<Solution, (usize, Error)> {
        let mut solution = Solution {
            image: self.image,
            is_loss: self.is_loss.clone(),
            ..Solution::default()
        };
        solution.shapes.insert(self.image, image.to_vec());
        for (depth, (record, is_loss)) in self.trace.forward.iter().zip(&self.is_loss).enumerate() {
            if !is_loss {
                self.record(record, &mut solution)
                    .map_err(|e| (depth, record.locate(e)))?;
            }
        }
        Ok(solution)
    }

    fn record(&self, record: &Record<'_>, solution: &mut Solution) -> Result<()> {
        let [output] = *record.outputs.as_slice() else {
            return Err(Error::unsupported(format!("{} outputs", record.outputs.len())));
        };
        let shapes: Result<Vec<Vec<usize>>> = (record.inputs.iter())
            .filter(|(id, _)| {
                !matches!(
                    self.trace.buffers.get(id).map(|b| &b.name),
                    Some(BufferName::Parameter(_))
                )
            })
            .map(|(id, _)| {
                let shape = solution.shapes.get(id).cloned();
                shape.ok_or_else(|| Error::internal(format!("the shape of buffer {id} is not known")))
            })
            .collect();
        let shapes = shapes?;
        let x = shapes.first().ok_or_else(|| Error::input("it reads no activation"))?;
        let shape = match record.class {
            CONVOLUTION => self.convolution(record, x, output, solution)?,
            "MaxPooling2D" | "AveragePooling2D" => {
                let [c, h, w] = image_of(x)?;
                let (mut rows, mut columns) = window(record, record.size("kh", 1)?, record.size("kw", 1)?)?;
                let cover_all = record
                    .attrs
                    .get("cover_all")
                    .map_or(Ok(false), |_| record.flag("cover_all"))?;
                let out = (rows.windows(h, cover_all), columns.windows(w, cover_all));
                let (Some(oh), Some(ow)) = out else {
                    return Err(Error::input(format!("its window does not fit into {h} x {w}")));
                };
                solution.windows.insert(record.rank, (rows, columns));
                vec![c, oh, ow]
            }
            "LinearFunction" => self.linear(record, x, output, solution)?,
            "Reshape" => {
                let target = record.attrs.need("shape")?.integers()?;
                let (first, rest) = target
                    .split_first()
                    .ok_or_else(|| Error::input("a reshape to a scalar"))?;
                let free = target.iter().filter(|&&n| n == -1).count();
                if (*first != -1 && usize::try_from(*first) != Ok(self.batch)) || free > 1 {
                    return Err(Error::input(format!("shape {target:?}"))
                        .expected(format!("the batch {} first, one -1", self.batch)));
                }
                let elements = x.iter().product();
                resolve(rest, elements)
                    .ok_or_else(|| Error::input(format!("{x:?} cannot be reshaped into {rest:?}")))?
            }
            "Add" => {
                if shapes.iter().any(|shape| shape != x) || shapes.len() != record.inputs.len() {
                    return Err(Error::input(format!("operands of shapes {shapes:?}")));
                }
                x.clone()
            }
            "Concat" => {
                let axis = record.attrs.need("axis")?.size(1..=x.len())? - 1;
                let mut joined = x.clone();
                for shape in shapes.iter().skip(1) {
                    let others_match =
                        shape.len() == x.len() && (0..x.len()).all(|i| i == axis || shape.get(i) == x.get(i));
                    match (joined.get_mut(axis), shape.get(axis)) {
                        (Some(sum), Some(more)) if others_match => *sum += more,
                        _ => return Err(Error::input(format!("operands of shapes {shapes:?}"))),
                    }
                }
                joined
            }
            _ => x.clone(),
        };
        let elements = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e));
        if elements != Some(self.per_sample(output)?) {
            return Err(Error::input(format!(
                "its output would be {shape:?} for each of {} images, but buffer {output} has {} bytes",
                self.batch,
                self.trace.buffer(output)?.bytes
            )));
        }
        solution.shapes.insert(output, shape);
        Ok(())
    }

    fn convolution(
        &self,
        record: &Record<'_>,
        x: &[usize],
        output: u64,
        solution: &mut Solution,
    ) -> Result<Vec<usize>> {
        let [c, h, w] = image_of(x)?;
        let weights = parameter(record, 1)?;
        let bias = record.inputs.get(2).map(|(id, _)| *id);
        let groups = record.size("groups", 1)?;
        let cover_all = record.flag("cover_all")?;
        let count = self.trace.elements(weights)?;
        let sizes = self.per_sample(output)?;
        if !c.is_multiple_of(groups) {
            return Err(Error::input(format!("{c} channels in {groups} groups")));
        }
        let per_group = c / groups;
        let fits = |out: usize, (kh, kw): (usize, usize)| -> Result<Option<(Axis, Axis, [usize; 3])>> {
            let (mut rows, mut columns) = window(record, kh, kw)?;
            let (Some(oh), Some(ow)) = (rows.windows(h, cover_all), columns.windows(w, cover_all)) else {
                return Ok(None);
            };
            let product = out.checked_mul(oh).and_then(|n| n.checked_mul(ow));
            Ok((product == Some(sizes)).then_some((rows, columns, [out, oh, ow])))
        };
        let mut found = Vec::new();
        match bias {
            Some(bias) => {
                let out = self.trace.elements(bias)?;
                let terms = out
                    .checked_mul(per_group)
                    .filter(|&n| out.is_multiple_of(groups) && count.is_multiple_of(n));
                let area = terms.map(|n| count / n).ok_or_else(|| {
                    Error::input(format!(
                        "{count} weights do not divide into {out} outputs x {per_group} inputs x a kernel"
                    ))
                })?;
                for kernel in factor_pairs(area) {
                    found.extend(fits(out, kernel)?);
                }
            }
            // Without a bias the weights alone tell the output channels, for each kernel that could be.
            None => {
                for k in (1..=h.max(w) + 64).take_while(|k| k * k <= count) {
                    let terms = per_group.saturating_mul(k * k);
                    if count.is_multiple_of(terms) && (count / terms).is_multiple_of(groups) {
                        found.extend(fits(count / terms, (k, k))?);
                    }
                }
            }
        }
        if let Some(chosen) = self.kernels.get(&record.rank) {
            found.retain(|(rows, columns, _)| (rows.kernel, columns.kernel) == *chosen);
        }
        let spelled = |(rows, columns, _): &(Axis, Axis, [usize; 3])| format!("{}x{}", rows.kernel, columns.kernel);
        let is_square = |(rows, columns, _): &(Axis, Axis, [usize; 3])| rows.kernel == columns.kernel;
        let squares = found.iter().filter(|f| is_square(f)).count();
        let chosen = match found.as_slice() {
            [] => {
                return Err(Error::input(format!(
                    "no kernel turns {x:?} into the {sizes} elements of buffer {output}"
                )));
            }
            [only] => *only,
            [first, others @ ..] if squares == 1 && is_square(first) => {
                let others: Vec<_> = others.iter().map(spelled).collect();
                solution
                    .preferred
                    .push((record.place(), spelled(first), others.join(", ")));
                *first
            }
            several => {
                let (key, all): (_, Vec<_>) = (kernel_key(self.trace, record), several.iter().map(spelled).collect());
                return Err(Error::new(
                    ErrorKind::Ambiguous,
                    format!("more than one kernel fits: {}", all.join(", ")),
                )
                .help(format!("choose with --assume '{key}=ROWSxCOLUMNS'")));
            }
        };
        let (rows, columns, shape) = chosen;
        solution.windows.insert(record.rank, (rows, columns));
        let traced = vec![shape[0], per_group, rows.kernel, columns.kernel];
        insert_parameter(solution, record, weights, traced)?;
        if let Some(bias) = bias {
            insert_parameter(solution, record, bias, vec![shape[0]])?;
        }
        Ok(shape.to_vec())
    }

    fn linear(&self, record: &Record<'_>, x: &[usize], output: u64, solution: &mut Solution) -> Result<Vec<usize>> {
        let terms: usize = x.iter().product();
        let out = self.per_sample(output)?;
        let weights = parameter(record, 1)?;
        let count = self.trace.elements(weights)?;
        if terms.checked_mul(out) != Some(count) {
            return Err(Error::input(format!(
                "{count} weights for {terms} inputs and {out} outputs"
            )));
        }
        insert_parameter(solution, record, weights, vec![out, terms])?;
        if let Some((bias, _)) = record.inputs.get(2) {
            if self.trace.elements(*bias)? != out {
                return Err(Error::input(format!(
                    "a bias of {} elements for {out} outputs",
                    self.trace.elements(*bias)?
                )));
            }
            insert_parameter(solution, record, *bias, vec![out])?;
        }
        Ok(vec![out])
    }

    fn per_sample(&self, id: u64) -> Result<usize> {
        let elements = self.trace.elements(id)?;
        match elements.checked_rem(self.batch) {
            Some(0) => Ok(elements / self.batch),
            _ => {
                let line = self.trace.buffer(id)?.line;
                Err(at(
                    line,
                    format!(
                        "buffer {id} has {elements} elements, no multiple of the batch {}",
                        self.batch
                    ),
                ))
            }
        }
    }
}

fn insert_parameter(solution: &mut Solution, record: &Record<'_>, id: u64, shape: Vec<usize>) -> Result<()> {
    match solution.shapes.insert(id, shape.clone()) {
        Some(other) if other != shape => {
            Err(record.error(format!("parameter buffer {id} is {other:?} and also {shape:?}")))
        }
        _ => Ok(()),
    }
}

/// Attributes of a window; the kernel is known from elsewhere for convolutions.
fn window(record: &Record<'_>, kh: usize, kw: usize) -> Result<(Axis, Axis)> {
    let dilation = |name: &str| record.attrs.get(name).map_or(Ok(1), |_| record.size(name, 1));
    let (ph, pw) = (record.size("ph", 0)?, record.size("pw", 0)?);
    let axis = |kernel, stride, dilation, pad| Axis {
        kernel,
        stride,
        dilation,
        before: pad,
        after: pad,
    };
    Ok((
        axis(kh, record.size("sy", 1)?, dilation("dy")?, ph),
        axis(kw, record.size("sx", 1)?, dilation("dx")?, pw),
    ))
}

fn parameter(record: &Record<'_>, index: usize) -> Result<u64> {
    let id = record.inputs.get(index).map(|(id, _)| *id);
    id.ok_or_else(|| record.error(format!("operand {index} is missing")))
}

fn image_of(shape: &[usize]) -> Result<[usize; 3]> {
    shape
        .try_into()
        .map_err(|_| Error::input(format!("it reads {shape:?}")).expected("channels, rows, columns"))
}

/// The key of `--assume` for the kernel of a convolution.
fn kernel_key(trace: &Trace<'_>, record: &Record<'_>) -> String {
    let buffer = record.inputs.get(1).and_then(|(id, _)| trace.buffers.get(id));
    match buffer.map(|b| &b.name) {
        Some(BufferName::Parameter(name)) => format!("{name}.kernel"),
        _ => format!("rank{}.kernel", record.rank),
    }
}

fn extents(text: &str) -> Option<Vec<usize>> {
    text.split('x').map(|n| n.parse().ok().filter(|&n| n > 0)).collect()
}
