//! An import under way: the graph so far, and the operator that is translated.

use std::collections::{HashMap, HashSet};

use super::flatbuffer::{Scalar, Table};
use super::schema::{Model, Operator};
use super::scope::{Control, Scope};
use super::variables::Variables;
use crate::error::{Error, ErrorKind, Result};
use crate::fold_budget::FoldBudget;
use crate::graph::{Graph, Node, Op, Origin, Role, TensorId};

/// The state of one import.
pub(super) struct Importer<'m, 'a> {
    pub(super) model: &'m Model<'a>,
    /// The subgraph that is being translated.
    pub(super) scope: Scope<'m, 'a>,
    /// Those that operators run.
    pub(super) control: Control<'m, 'a>,
    pub(super) out: Graph,
    /// Work that folding may still do, sparse constants made dense among it.
    pub(super) budget: FoldBudget,
    pub(super) variables: Variables,
    pub(super) widened: Widened,
    pub(super) legacy: Legacy,
    /// Whether DEQUANTIZE of constants takes the scales of all channels, not the first.
    pub(super) dequantises_by_channel: bool,
    pub(super) names: HashSet<String>,
    pub(super) warnings: Vec<String>,
    pub(super) warned: HashSet<String>,
    pub(super) problems: Vec<Problem>,
}

/// Numbers of widened constants and operators, for one warning of each kind.
#[derive(Default)]
pub(super) struct Widened {
    /// Constants of float16.
    pub(super) halves: usize,
    /// Operators of which int8 weights are float32 now.
    pub(super) hybrid: usize,
}

/// Conversions of legacy uint8.
#[derive(Default)]
pub(super) struct Legacy {
    /// Tensors that are int8 now.
    pub(super) tensors: usize,
    /// Layers whose weights are stored in several parts.
    pub(super) layers: usize,
}

/// Why an operator cannot be translated.
pub(super) struct Problem {
    pub(super) index: usize,
    /// The number of its subgraph.
    pub(super) subgraph: usize,
    pub(super) kind: String,
    pub(super) output: String,
    pub(super) error: Error,
}

impl Problem {
    pub(super) fn located(self, others: &str) -> Error {
        let Self {
            index,
            subgraph,
            kind,
            output,
            error,
        } = self;
        let of = match subgraph {
            0 => String::new(),
            number => format!(" of subgraph {number}"),
        };
        error.at(format_args!(
            "operator {index} ({kind}){of} that writes `{output}`{others}"
        ))
    }
}

/// Function that translates an operator.
pub(super) type Translator = fn(&mut Importer<'_, '_>, View<'_, '_>) -> Result<()>;

/// An operator under translation.
#[derive(Clone, Copy)]
pub(super) struct View<'m, 'a> {
    /// The number of its subgraph.
    pub(super) subgraph: usize,
    pub(super) index: usize,
    /// Its name in the schema.
    pub(super) kind: &'m str,
    pub(super) inputs: &'m [Option<usize>],
    pub(super) outputs: &'m [usize],
    pub(super) intermediates: &'m [usize],
    pub(super) options: Option<Table<'a>>,
    /// The options of a custom operator.
    pub(super) custom: &'a [u8],
}

impl<'m, 'a> Importer<'m, 'a> {
    /// Nothing translated yet of subgraph `number`, or of any other.
    pub(super) fn new(model: &'m Model<'a>, number: usize) -> Self {
        Self {
            model,
            scope: Scope::new(model, number, String::new()),
            control: Control::new(model),
            out: Graph::default(),
            budget: FoldBudget::of(model.len),
            variables: Variables::default(),
            widened: Widened::default(),
            legacy: Legacy::default(),
            dequantises_by_channel: false,
            names: HashSet::new(),
            warnings: Vec::new(),
            warned: HashSet::new(),
            problems: Vec::new(),
        }
    }

    /// Translates the operators in order and collects what goes wrong.
    pub(super) fn operators(&mut self) {
        for (index, operator) in self.scope.graph.operators.iter().enumerate() {
            let code = &self.model.codes[operator.code];
            let kind = code.name();
            let view = View::new((self.scope.number, index), &kind, operator);
            let translated = self.operator(view, code.version).map_err(|e| self.of_extents(view, e));
            if let Err(error) = translated.and_then(|()| self.budget.allow_nodes(self.out.nodes.len())) {
                let output = view.outputs.first().map(|&t| self.scope.graph.tensors[t].name.as_str());
                let output = output.unwrap_or_default().to_string();
                self.problems.push(Problem {
                    index,
                    subgraph: self.scope.number,
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
    ///
    /// Reports contradictions only where all operators are supported: behind an operator that is not translated much looks wrong that is not.
    pub(super) fn report(&mut self) -> Result<()> {
        if !self.problems.is_empty() {
            self.look_ahead();
        }
        let mut problems = std::mem::take(&mut self.problems);
        let unsupported = |problem: &Problem| problem.error.kind() == ErrorKind::Unsupported;
        if problems.iter().any(unsupported) {
            problems.retain(unsupported);
        } else if !problems.is_empty() {
            return Err(problems.swap_remove(0).located(""));
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

    pub(super) fn finish(mut self) -> Result<(Graph, Vec<String>)> {
        self.initialise_variables()?;
        self.report_widened();
        self.report_legacy();
        Ok((self.out, self.warnings))
    }

    /// Adds a node of the operator `view`; a part of a translation into several nodes has a `suffix`.
    pub(super) fn node(
        &mut self,
        view: View<'_, '_>,
        suffix: &str,
        op: Op,
        inputs: Vec<Option<TensorId>>,
        outputs: Vec<TensorId>,
    ) {
        let name = match outputs.first() {
            Some(&id) if suffix.is_empty() => self.out.tensor(id).name.clone(),
            _ => format!("{}{}#{}{suffix}", self.scope.place, view.kind, view.index),
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
                path: format!("subgraph {}, operator {}", view.subgraph, view.index),
            },
        });
    }

    /// States the multiply-accumulates of the node added last, where the graph's operator has others than the file's.
    pub(super) fn macs(&mut self, macs: usize) {
        if let Some(node) = self.out.nodes.last() {
            self.out.stated.macs.insert(node.name.clone(), macs as u64);
        }
    }

    pub(super) fn warn(&mut self, text: String) {
        if self.warned.insert(text.clone()) {
            self.warnings.push(text);
        }
    }
}

impl<'m, 'a> View<'m, 'a> {
    pub(super) fn new((subgraph, index): (usize, usize), kind: &'m str, operator: &'m Operator<'a>) -> Self {
        Self {
            subgraph,
            index,
            kind,
            inputs: &operator.inputs,
            outputs: &operator.outputs,
            intermediates: &operator.intermediates,
            options: operator.options,
            custom: operator.custom,
        }
    }

    /// Operand `position`.
    pub(super) fn input(&self, position: usize) -> Result<usize> {
        self.optional(position)
            .ok_or_else(|| Error::input(format!("operand {position} is missing")))
    }

    /// Operand `position`, which may be absent.
    pub(super) fn optional(&self, position: usize) -> Option<usize> {
        self.inputs.get(position).copied().flatten()
    }

    /// Result `position`.
    pub(super) fn output(&self, position: usize) -> Result<usize> {
        let missing = || Error::input(format!("result {position} is missing"));
        self.outputs.get(position).copied().ok_or_else(missing)
    }

    /// An option, or its default where the file has none.
    pub(super) fn option<T: Scalar>(&self, field: usize, default: T) -> Result<T> {
        self.options.map_or(Ok(default), |o| o.scalar(field, default))
    }

    /// A boolean option, false by default.
    pub(super) fn flag(&self, field: usize) -> Result<bool> {
        self.options.map_or(Ok(false), |o| o.flag(field))
    }

    /// A string option, empty by default.
    pub(super) fn text(&self, field: usize) -> Result<String> {
        self.options.map_or(Ok(String::new()), |o| o.string(field))
    }
}
