//! Our own schema, `trace.json`, as `docs/trace-schema.md` specifies it: whatever that document does not define is refused.

mod fields;
mod form;
mod operator;
mod operators;
mod products;
mod quant;
mod quantised;
mod rows;
mod schema;
mod sidecar;
mod trace;
mod windows;
mod work;

use std::collections::HashMap;
use std::path::Path;

pub(super) use self::schema::schema;
use self::trace::{Trace, origin};
use self::work::Work;
use super::assume::Assumptions;
use super::build::{self, Builder};
use super::imported::{ImportOptions, Imported};
use super::rebatch;
use crate::error::Result;
use crate::graph::{Graph, Op};
use crate::spelling::meant;

/// The content is a JSON object with the version's name.
pub(super) fn recognises(content: &[u8]) -> bool {
    build::is_json_object(content) && build::contains(content, b"\"arenite_trace\"")
}

/// Reads a trace, its constants and its samples; parameters stay in their file.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let trace = Trace::parse(build::text(content)?)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let constants = sidecar::constants(&trace, folder)?;
    let mut assumptions = Assumptions::new(options);
    // Built at the traced batch first, so that every stated shape is checked, and then at the batch asked for.
    let mut built = graph(&trace, &constants, None, &mut assumptions)?;
    let mut samples = sidecar::samples(&trace, folder)?;
    let mut warnings = Vec::new();
    if let Some(batch) = options.batch
        && let Some(traced) = trace.batch_other_than(batch)?
    {
        assumptions = Assumptions::new(options);
        let as_traced = std::mem::replace(
            &mut built,
            graph(&trace, &constants, Some((traced, batch)), &mut assumptions)?,
        );
        rebatch::check(&as_traced, &built, [traced, batch])?;
        if samples.take().is_some() {
            warnings.push(format!(
                "the samples are of batch {traced}: they are not replayed at batch {batch}"
            ));
        }
    }
    if let Some(&input) = built.inputs.first() {
        build::check_input_shape(options.input_shape.as_deref(), &built.tensor(input).shape)?;
    }
    let files = [trace.parameters.clone(), sidecar::samples_file(&trace)?];
    Ok(Imported {
        in_pairs: trace.tensors.values().any(|declared| declared.quant.is_some()),
        graph: built,
        files: files.into_iter().flatten().map(|name| folder.join(name)).collect(),
        assumptions: assumptions.finish()?,
        warnings,
        weights: trace.parameters.as_ref().map(|name| folder.join(name)),
        samples,
        ..Imported::default()
    })
}

/// The graph at the traced batch, or rebuilt `(from, to)` another.
fn graph(
    trace: &Trace<'_>,
    constants: &HashMap<String, Vec<u8>>,
    rebatch: Option<(usize, usize)>,
    assumptions: &mut Assumptions<'_>,
) -> Result<Graph> {
    let mut work = Work {
        trace,
        constants,
        rebatch,
        assumptions,
        builder: Builder::new(&trace.name),
        tensors: HashMap::new(),
    };
    for (name, _) in &trace.inputs {
        let declared = &trace.tensors[name.as_str()];
        let mut shape = declared.shape.clone();
        if let (Some((_, to)), Some(first)) = (rebatch, shape.first_mut()) {
            *first = to;
        }
        let id = work.builder.input(name, &shape)?;
        work.builder.set_dtype(id, declared.dtype);
        if let Some(quant) = &declared.quant {
            work.builder.set_quant(id, quant.clone());
        }
        work.tensors.insert(name.clone(), id);
    }
    let mut states = Vec::new();
    for state in &trace.state {
        states.push(work.read_state(state)?);
    }
    let mut unknown = Vec::new();
    for operator in &trace.operators {
        // Operators behind one of no known kind are looked at all the same, so that one message names them all.
        let done = match work.operator(operator) {
            Ok(true) => Ok(()),
            Ok(false) => {
                unknown.push((operator.kind.clone(), format!("line {}", operator.op.line())));
                work.stand_in(operator)
            }
            Err(e) => Err(e),
        };
        if let Err(error) = done {
            refuse(std::mem::take(&mut unknown))?;
            return Err(operator.locate(error));
        }
    }
    refuse(unknown)?;
    for (state, id) in trace.state.iter().zip(states) {
        let value = work.tensor(&state.output, &state.json)?;
        let kind = "assign_state";
        let name = format!("{}.assign", state.input);
        work.builder
            .effect(&name, kind, Op::AssignState, &[id, value], origin(&state.json));
    }
    let outputs: Result<Vec<_>> = trace.outputs.iter().map(|(name, at)| work.tensor(name, at)).collect();
    work.builder.finish(&outputs?)
}

/// Refuses operators of no known kind, all at once.
fn refuse(unknown: Vec<(String, String)>) -> Result<()> {
    let near = unknown.first().and_then(|(kind, _)| meant(kind, rows::names()));
    let help = near.unwrap_or_else(|| "docs/trace-schema.md lists the operators of each version".to_string());
    build::refuse_unknown(unknown, &help)
}
