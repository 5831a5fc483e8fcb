//! The network's inputs: their extents stated, asked for, or given by `--batch`, `--input-shape` and `--assume`.

use std::collections::HashMap;

use super::elem::Elem;
use super::importer::{Importer, Value};
use super::proto::{Extent, ValueInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::import::assume::Assumptions;
use crate::import::imported::ImportOptions;

/// Operands that say how an operator works, by its name: those from this position on.
fn is_how(op: &str, position: usize) -> bool {
    match op {
        "Reshape" | "Pad" | "Expand" | "Tile" | "Slice" | "Resize" | "Upsample" | "Split" | "Squeeze" | "Unsqueeze" => {
            position > 0
        }
        _ => op.starts_with("Reduce") && position > 0,
    }
}

impl<'a> Importer<'_, 'a> {
    /// Adds the network's inputs, and notes what the file holds besides.
    pub(super) fn inputs(&mut self, options: &ImportOptions, assumptions: &mut Assumptions<'_>) -> Result<()> {
        let graph = &self.model.graph;
        if graph.sparse > 0 {
            return Err(Error::unsupported(format!("{} sparse initializers", graph.sparse))
                .help("make the weights dense before exporting the model"));
        }
        for (index, tensor) in graph.initializers.iter().enumerate() {
            if self.initializers.insert(tensor.name, index).is_some() {
                return Err(Error::input(format!("two initializers are named `{}`", tensor.name)));
            }
        }
        // Old files list their initializers as inputs as well.
        let inputs: Vec<&ValueInfo<'a>> = graph
            .inputs
            .iter()
            .filter(|i| !self.initializers.contains_key(i.name))
            .collect();
        let mut named: HashMap<&str, usize> = HashMap::new();
        for (index, input) in inputs.iter().enumerate() {
            let at = |e: Error| e.at(format_args!("input `{}`", input.name));
            let mut dtype = Elem(input.elem).dtype().map_err(at)?;
            // What only says how an operator works is not read; what is computed with has at most 32 bits.
            let reads = graph
                .nodes
                .iter()
                .flat_map(|n| n.inputs.iter().enumerate().map(|(i, name)| (n.op, i, *name)));
            let how = |(op, position, name): (&str, usize, &str)| name != input.name || is_how(op, position);
            if dtype == DType::I64 && !reads.into_iter().all(how) {
                self.warn(format!("the int64 input `{}` is int32 on the device", input.name));
                dtype = DType::I32;
            }
            let asked = options.input_shape.as_deref().filter(|_| index == 0);
            let shape = extents(input, asked, options.batch, &mut named, assumptions).map_err(at)?;
            let id = self.add_input(input.name, &shape, dtype);
            if self.values.insert(input.name, Some(Value::Tensor(id))).is_some() {
                return Err(Error::input(format!("two inputs are named `{}`", input.name)));
            }
        }
        if inputs.is_empty() {
            return Err(Error::input("the network has no input"));
        }
        for info in graph.values.iter().chain(&graph.outputs) {
            let known = info.shape.iter().flatten().map(|extent| match *extent {
                Extent::Known(n) => usize::try_from(n).ok().filter(|&n| n > 0),
                Extent::Named(name) => named.get(name).copied(),
                Extent::Unknown => None,
            });
            if let (Some(_), Some(shape)) = (&info.shape, known.collect::<Option<Vec<usize>>>()) {
                self.stated.insert(info.name, shape);
            }
        }
        Ok(())
    }
}

/// The extents of an input.
fn extents<'a>(
    input: &ValueInfo<'a>,
    asked: Option<&[usize]>,
    batch: usize,
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
            (Extent::Known(n), None) if axis == 0 && batch > 1 && n > 0 => batch,
            (Extent::Known(n), None) if n > 0 => usize::try_from(n).unwrap_or(usize::MAX),
            (Extent::Known(n), Some(asked)) if n > 0 && asked as i64 != n && !(axis == 0 && asked == batch) => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("--input-shape {:?} contradicts the file", asked),
                )
                .expected(format!("{n} along axis {axis}, which the file states")));
            }
            (Extent::Named(name), None) if named.contains_key(name) => named[name],
            (_, Some(asked)) => asked,
            // `--batch` is 1 where nobody gives it.
            (_, None) if axis == 0 && stated.len() > 1 => {
                let value = batch.max(1);
                let reason = if batch > 1 {
                    "given by --batch"
                } else {
                    "the default of --batch"
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
                        let shown: Vec<String> = stated.iter().map(show).collect();
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

fn show(extent: &Extent<'_>) -> String {
    match extent {
        Extent::Known(n) if *n > 0 => n.to_string(),
        Extent::Named(name) if !name.is_empty() => (*name).to_string(),
        _ => "?".to_string(),
    }
}
