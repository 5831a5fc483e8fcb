//! The network's inputs: their extents stated, asked for, or given by `--batch`, `--input-shape` and `--assume`.

use std::collections::{HashMap, HashSet};

use super::array::Array;
use super::declared::shown;
use super::elem::Elem;
use super::importer::{Importer, Value};
use super::proto::{Extent, Graph, Model, ValueInfo};
use crate::assume::Assumptions;
use crate::borders::{self, unknown};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::imported::ImportOptions;

/// Operands that say how an operator works, by its name: those from this position on.
fn is_how(op: &str, position: usize) -> bool {
    match op {
        "Reshape" | "Pad" | "Expand" | "Tile" | "Slice" | "Resize" | "Upsample" | "Split" | "Squeeze" | "Unsqueeze" => {
            position > 0
        }
        _ => op.starts_with("Reduce") && position > 0,
    }
}

/// Whether a node of the graph, or of one within it, computes with this value.
fn computes_with(graph: &Graph<'_>, name: &str) -> bool {
    let mut computes = false;
    graph.each_node(&mut |node| {
        let mut reads = node.inputs.iter().enumerate().filter(|(_, input)| **input == name);
        computes |= reads.any(|(position, _)| !is_how(node.op, position));
    });
    computes
}

impl<'a> Importer<'_, 'a> {
    /// Adds the network's inputs, and notes what the file holds besides.
    pub(super) fn inputs(&mut self, options: &ImportOptions, assumptions: &mut Assumptions<'_>) -> Result<()> {
        let graph = &self.model.graph;
        self.hold(graph)?;
        self.widen();
        // Old files list their initializers as inputs as well.
        let inputs: Vec<&ValueInfo<'a>> = graph
            .inputs
            .iter()
            .filter(|i| !self.initializers.contains_key(i.name))
            .collect();
        let mut named: HashMap<&str, usize> = HashMap::new();
        let batch = Batch {
            asked: options.batch,
            stated: stated_batch(self.model),
        };
        let named_input = |name: &str| inputs.iter().any(|input| input.name == name);
        if let Some((name, _)) = options.set.iter().find(|(name, _)| !named_input(name)) {
            return Err(unknown("--set", name, "input", inputs.iter().map(|input| input.name)));
        }
        let (mut index, mut scalars) = (0, 0);
        for input in &inputs {
            let at = |e: Error| e.at(format_args!("input `{}`", input.name));
            if let Some((_, text)) = options.set.iter().find(|(name, _)| name == input.name) {
                self.set(input, text).map_err(at)?;
                assumptions.record(input.name, text, "an input", "given by --set");
                continue;
            }
            let mut dtype = self.dtype_of(Elem(input.elem)).map_err(at)?;
            // An input that only says how an operator works is not read; one that is computed with has at most 32 bits.
            if dtype == DType::I64 && computes_with(graph, input.name) {
                self.warn(format!("the int64 input `{}` is int32 on the device", input.name));
                dtype = DType::I32;
            }
            let asked = options.input_shape.as_deref().filter(|_| index == 0);
            let shape = extents(input, asked, batch, &mut named, assumptions).map_err(at)?;
            self.note_float(input.name, Elem(input.elem));
            scalars += usize::from(shape.is_empty());
            let id = self.add_input(input.name, &shape, dtype);
            if self.values.insert(input.name, Some(Value::Tensor(id))).is_some() {
                return Err(Error::input(format!("two inputs are named `{}`", input.name)));
            }
            index += 1;
        }
        if index == 0 {
            return Err(if options.set.is_empty() {
                Error::input("the network has no input")
            } else {
                Error::new(ErrorKind::Usage, "no input is left").expected("an input that is not set")
            });
        }
        if scalars == index && batch.asked.is_some_and(|batch| batch != 1) {
            return Err(Error::unsupported("--batch of a network whose input is a scalar"));
        }
        self.declare(
            &named,
            batch.asked.is_some() && batch.stated.is_some() && batch.asked != batch.stated,
        );
        Ok(())
    }

    /// Gives an input its value.
    fn set(&mut self, input: &ValueInfo<'a>, text: &str) -> Result<()> {
        let elem = Elem(input.elem);
        let dtype = if elem.is_float() { DType::F32 } else { elem.dtype()? };
        let known = |extent: &Extent<'_>| match *extent {
            Extent::Known(n) => usize::try_from(n).ok().filter(|&n| n > 0),
            _ => None,
        };
        let stated = input.shape.as_deref().unwrap_or_default();
        let extents: Vec<Option<usize>> = stated.iter().map(known).collect();
        let (shape, values) = borders::value(input.name, text, &extents, dtype)?;
        let array = if elem.is_float() {
            Array::floats(&shape, values.iter().map(|&value| value as f32).collect()).cast(&self.budget, elem)?
        } else {
            Array::integers(elem, &shape, values.iter().map(|&value| value as i64).collect())
        };
        self.values.insert(input.name, Some(Value::Array(array.into())));
        Ok(())
    }
}

/// Known facts about the batch.
#[derive(Clone, Copy)]
struct Batch {
    /// `--batch`.
    asked: Option<usize>,
    /// The first extent of the first input, where the file states it.
    stated: Option<usize>,
}

/// The first extent of the first input, where the file states it.
pub(super) fn stated_batch(model: &Model<'_>) -> Option<usize> {
    let graph = &model.graph;
    let held: HashSet<&str> = graph.initializers.iter().map(|tensor| tensor.name).collect();
    let first = graph.inputs.iter().find(|input| !held.contains(input.name))?;
    match first.shape.as_ref()?.first()? {
        Extent::Known(n) => usize::try_from(*n).ok().filter(|&n| n > 0),
        _ => None,
    }
}

/// The extents of an input.
fn extents<'a>(
    input: &ValueInfo<'a>,
    asked: Option<&[usize]>,
    batch: Batch,
    named: &mut HashMap<&'a str, usize>,
    assumptions: &mut Assumptions<'_>,
) -> Result<Vec<usize>> {
    let Some(stated) = &input.shape else {
        return match asked {
            Some(shape) => Ok(shape.to_vec()),
            None => Err(Error::unsupported("dynamic shape: the file states no shape")
                .help("pass --input-shape with all extents, or export the model with a static shape")),
        };
    };
    if let Some(asked) = asked.filter(|asked| asked.len() != stated.len()) {
        return Err(Error::new(ErrorKind::Usage, format!("--input-shape {asked:?}"))
            .expected(format!("{} extents", stated.len())));
    }
    let mut shape = Vec::new();
    for (axis, extent) in stated.iter().enumerate() {
        let given = asked.map(|asked| asked[axis]);
        let value = match (*extent, given) {
            (_, Some(asked)) if axis == 0 && batch.asked.is_some_and(|batch| batch != asked) => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("--batch {} contradicts --input-shape", batch.asked.unwrap_or_default()),
                )
                .expected(format!("{asked}, its first extent, or one of the two options alone")));
            }
            (Extent::Known(n), None) if axis == 0 && n > 0 && usize::try_from(n).ok() == batch.stated => {
                batch.asked.or(batch.stated).unwrap_or(1)
            }
            (Extent::Known(n), None) if n > 0 => usize::try_from(n).unwrap_or(usize::MAX),
            (Extent::Known(n), Some(asked))
                if n > 0 && asked as i64 != n && !(axis == 0 && batch.asked == Some(asked)) =>
            {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("--input-shape {:?} contradicts the file", asked),
                )
                .expected(format!("{n} along axis {axis}, which the file states")));
            }
            (Extent::Named(name), None) if named.contains_key(name) => named[name],
            (_, Some(asked)) => asked,
            // `--batch` is 1 where nobody gives it.
            (_, None) if axis == 0 && (stated.len() > 1 || batch.asked.is_some()) => {
                let value = batch.asked.unwrap_or(1);
                let reason = match (batch.asked, extent) {
                    (Some(_), _) => "given by --batch",
                    (None, Extent::Known(0)) => "the file states 0, which stands for an open batch",
                    (None, _) => "the default of --batch",
                };
                assumptions.record("batch", value, input.name, reason);
                value
            }
            (extent, None) => {
                let key = match extent {
                    Extent::Named(name) => name.to_string(),
                    _ => format!("{}.{axis}", input.name),
                };
                match assumptions.given::<usize>(&key, input.name)? {
                    Some(value) if value > 0 => value,
                    _ => {
                        let shown: Vec<String> = stated.iter().map(shown).collect();
                        return Err(Error::unsupported(format!(
                            "dynamic shape: axis {axis} of [{}] is not stated",
                            shown.join(", ")
                        ))
                        .help(format!("pass --input-shape with all extents, or --assume {key}=N")));
                    }
                }
            }
        };
        if let Extent::Named(name) = extent {
            named.insert(name, value);
        }
        shape.push(value);
    }
    Ok(shape)
}
