//! TensorFlow Lite files (`.tflite`, schema version 3), with the semantics of TensorFlow Lite Micro.
//!
//! ```text
//! flatbuffer: checked access   schema: structs   tensors: shapes, quantisation, constants   fold: shape arithmetic
//! ops: one row an operator, its types and its translation (movement, rearrange, compound, recurrent: parts of it)      widen: float16 and hybrid weights      state: variables and the initialising subgraph
//! ```
//!
//! Tensors keep their names; where two share one, the later is named `NAME#INDEX` after its index in the file. Reference data may also
//! call a tensor `tINDEX`. Every operator that
//! cannot be translated is reported at once, with a remedy. Metadata that TensorFlow Lite Micro does not look at (a quantised
//! dimension out of range where there is one scale, operator options that repeat shapes) is read as it reads it, with a warning.

mod compound;
mod flatbuffer;
mod fold;
mod movement;
mod ops;
mod rearrange;
mod recurrent;
mod schema;
mod state;
mod tensors;
mod widen;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use self::flatbuffer::{Scalar, Table};
use self::schema::{Model, Subgraph};
use super::{Assumptions, Dialect, ImportOptions, Imported};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Node, Op, Origin, Role, TensorId, check};

/// The dialect `tflite`.
pub const DIALECT: Dialect = Dialect {
    name: "tflite",
    recognises: |content| content.get(4..8) == Some(b"TFL3"),
    import,
};

/// Reads a .tflite file.
///
/// # Errors
/// [`ErrorKind::Input`] for a corrupt or contradictory file, [`ErrorKind::Unsupported`] with all operators that have no
/// counterpart.
pub fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let model = Model::read(content)?;
    let mut importer = Importer::new(&model);
    importer.out.name = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let main = importer.graph;
    for &input in &main.inputs {
        let id = importer.input(input)?;
        importer.out.inputs.push(id);
    }
    check_options(&importer.out, options)?;
    Assumptions::new(options).finish()?;
    importer.operators();
    importer.report()?;
    for &output in &main.outputs {
        let id = importer.result(output).map_err(|e| e.at("the network's outputs"))?;
        importer.out.outputs.push(id);
    }
    let in_graph = importer.map.iter().enumerate();
    let keys = in_graph.filter_map(|(index, id)| {
        let key = format!("t{index}");
        let free = !importer.names.contains(&key);
        free.then_some((importer.out.tensor((*id)?).name.clone(), key))
    });
    let keys = keys.collect();
    let (graph, warnings) = importer.finish()?;
    check::check(&graph)?;
    Ok(Imported {
        graph,
        warnings,
        keys,
        ..Imported::default()
    })
}

/// The names of the main subgraph's tensors, by index in the file: reference data often names them `tINDEX`.
///
/// # Errors
/// As [`import`], for a corrupt file.
pub fn tensor_names(content: &[u8]) -> Result<Vec<String>> {
    let model = Model::read(content)?;
    Ok(model.subgraphs[0].tensors.iter().map(|t| t.name.clone()).collect())
}

/// The state of one import.
struct Importer<'m, 'a> {
    model: &'m Model<'a>,
    /// The main subgraph.
    graph: &'m Subgraph<'a>,
    out: Graph,
    /// Tensors of the file that are in the graph.
    map: Vec<Option<TensorId>>,
    /// Tensors whose value the import has computed.
    folded: HashMap<usize, tensors::Constant<'a>>,
    variables: state::Variables,
    widened: widen::Widened,
    names: HashSet<String>,
    warnings: Vec<String>,
    warned: HashSet<String>,
    problems: Vec<Problem>,
}

/// Why an operator cannot be translated.
struct Problem {
    index: usize,
    kind: String,
    output: String,
    error: Error,
}

impl Problem {
    fn located(self, others: &str) -> Error {
        let Self {
            index,
            kind,
            output,
            error,
        } = self;
        error.at(format_args!("operator {index} ({kind}) that writes `{output}`{others}"))
    }
}

/// An operator under translation.
#[derive(Clone, Copy)]
struct View<'m, 'a> {
    index: usize,
    /// Its name in the schema.
    kind: &'m str,
    inputs: &'m [Option<usize>],
    outputs: &'m [usize],
    options: Option<Table<'a>>,
}

impl<'m, 'a> Importer<'m, 'a> {
    fn new(model: &'m Model<'a>) -> Self {
        let graph = &model.subgraphs[0];
        Self {
            model,
            graph,
            out: Graph::default(),
            map: vec![None; graph.tensors.len()],
            folded: HashMap::new(),
            variables: state::Variables::default(),
            widened: widen::Widened::default(),
            names: HashSet::new(),
            warnings: Vec::new(),
            warned: HashSet::new(),
            problems: Vec::new(),
        }
    }

    /// Translates the operators in order and collects what goes wrong.
    fn operators(&mut self) {
        for (index, operator) in self.graph.operators.iter().enumerate() {
            let code = &self.model.codes[operator.code];
            let kind = code.name();
            let view = View {
                index,
                kind: &kind,
                inputs: &operator.inputs,
                outputs: &operator.outputs,
                options: operator.options,
            };
            if let Err(error) = self.operator(view, code.version) {
                let output = view.outputs.first().map(|&t| self.graph.tensors[t].name.as_str());
                let output = output.unwrap_or_default().to_string();
                self.problems.push(Problem {
                    index,
                    kind: kind.clone(),
                    output,
                    error,
                });
                // Later operators are still looked at, so that one report names everything.
                for &output in view.outputs {
                    let _ = self.output(output);
                }
            }
        }
    }

    /// The problems so far, as one error: what is not supported all at once, each once with the number of its operators.
    fn report(&mut self) -> Result<()> {
        let mut problems = std::mem::take(&mut self.problems);
        if let Some(at) = problems.iter().position(|p| p.error.kind() != ErrorKind::Unsupported) {
            let problem = problems.swap_remove(at);
            return Err(problem.located(""));
        }
        let count = problems.len();
        let mut kinds: Vec<(Problem, usize)> = Vec::new();
        let mut index: HashMap<(String, String), usize> = HashMap::new();
        for problem in problems {
            let key = (problem.kind.clone(), problem.error.to_string());
            match index.get(&key) {
                Some(&known) => kinds[known].1 += 1,
                None => {
                    index.insert(key, kinds.len());
                    kinds.push((problem, 1));
                }
            }
        }
        let located = |(problem, count): (Problem, usize)| match count {
            1 => problem.located(""),
            count => problem.located(&format!(" and {} more", count - 1)),
        };
        match kinds.len() {
            0 => Ok(()),
            1 => Err(located(kinds.remove(0))),
            _ => {
                let list = kinds
                    .into_iter()
                    .map(|kind| format!("  - {}", located(kind)).replace('\n', "\n  "));
                let list: Vec<String> = list.collect();
                Err(Error::unsupported(format!(
                    "{count} operators are not supported:\n{}",
                    list.join("\n")
                )))
            }
        }
    }

    fn finish(mut self) -> Result<(Graph, Vec<String>)> {
        self.initialise_variables()?;
        self.report_widened();
        Ok((self.out, self.warnings))
    }

    /// Adds a node of the operator `view`; a part of a translation into several nodes has a `suffix`.
    fn node(
        &mut self,
        view: View<'_, '_>,
        suffix: &str,
        op: Op,
        inputs: Vec<Option<TensorId>>,
        outputs: Vec<TensorId>,
    ) {
        let name = match outputs.first() {
            Some(&id) if suffix.is_empty() => self.out.tensor(id).name.clone(),
            _ => format!("{}#{}{suffix}", view.kind, view.index),
        };
        self.out.add_node(Node {
            name,
            kind: view.kind.to_string(),
            op,
            inputs,
            outputs,
            role: Role::Forward,
            origin: Origin {
                line: None,
                path: format!("subgraph 0, operator {}", view.index),
            },
        });
    }

    /// States the multiply-accumulates of the node added last, where the graph's operator has others than the file's.
    fn macs(&mut self, macs: usize) {
        if let Some(node) = self.out.nodes.last() {
            self.out.stated.macs.insert(node.name.clone(), macs as u64);
        }
    }

    fn warn(&mut self, text: String) {
        if self.warned.insert(text.clone()) {
            self.warnings.push(text);
        }
    }
}

impl<'a> View<'_, 'a> {
    /// Operand `position`.
    fn input(&self, position: usize) -> Result<usize> {
        self.optional(position)
            .ok_or_else(|| Error::input(format!("operand {position} is missing")))
    }

    /// Operand `position`, which may be absent.
    fn optional(&self, position: usize) -> Option<usize> {
        self.inputs.get(position).copied().flatten()
    }

    /// Result `position`.
    fn output(&self, position: usize) -> Result<usize> {
        let missing = || Error::input(format!("result {position} is missing"));
        self.outputs.get(position).copied().ok_or_else(missing)
    }

    /// An option, or its default where the file has none.
    fn option<T: Scalar>(&self, field: usize, default: T) -> Result<T> {
        self.options.map_or(Ok(default), |o| o.scalar(field, default))
    }

    /// A boolean option, false by default.
    fn flag(&self, field: usize) -> Result<bool> {
        self.options.map_or(Ok(false), |o| o.flag(field))
    }

    /// A string option, empty by default.
    fn text(&self, field: usize) -> Result<String> {
        self.options.map_or(Ok(String::new()), |o| o.string(field))
    }
}

/// A .tflite file states all shapes: `--batch` and `--input-shape` can only agree with it.
fn check_options(graph: &Graph, options: &ImportOptions) -> Result<()> {
    let Some(input) = graph.inputs.first().map(|&id| graph.tensor(id)) else {
        return Ok(());
    };
    if options.batch > 1 && input.shape.first() != Some(&options.batch) {
        return Err(Error::unsupported(format!("--batch {}", options.batch))
            .expected(format!(
                "the file's own batch: `{}` has shape {:?}",
                input.name, input.shape
            ))
            .help("shapes are fixed in a .tflite file: convert the model with the batch that you want"));
    }
    match &options.input_shape {
        Some(shape) if *shape != input.shape => Err(Error::unsupported(format!("--input-shape {shape:?}"))
            .expected(format!("{:?}, the file's own", input.shape))
            .help("shapes are fixed in a .tflite file: convert the model with the shape that you want")),
        _ => Ok(()),
    }
}
