//! The nodes of a graph one after another, and `If`: the branch that a known condition takes stands in its place.
//!
//! Nodes that only the other branch reads are translated too, as long as they can be: whether they are needed is known at the end. A node that cannot be
//! translated matters where an output needs it.

use std::collections::{HashMap, HashSet};

use super::classic;
use super::contrib;
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::proto::{Graph, Node, OWN};
use super::qonnx;
use super::report::Problem;
use super::rows::{self, Translate};
use crate::error::Error;
use crate::graph::facts::UNUSED;
use crate::graph::{Role, UnaryKind};
use arenite::ops::pointwise::Function;

/// Most inputs of the network that a refusal names.
const MOST_NAMED: usize = 3;

impl<'m, 'a> Importer<'m, 'a> {
    /// Translates the nodes that feed an output of the graph.
    pub(super) fn graph(&mut self, graph: &'m Graph<'a>, opset: i64) {
        let (live, read) = live_nodes(graph);
        self.findings.read.extend(read);
        for (index, node) in graph.nodes.iter().enumerate() {
            let stands = node.source.is_none_or(|source| source.is_last);
            if !live[index] {
                if !stands {
                    continue;
                }
                *self.out.pruned.entry(UNUSED.to_string()).or_insert(0) += 1;
                continue;
            }
            let view = View { index, node, opset };
            self.enter(view);
            match self.node(view) {
                Ok(()) if self.counted() => {}
                // One of several nodes that stand for one of another format.
                Ok(()) if !stands => {}
                Ok(()) if node.op == "Constant" => self.findings.constants += 1,
                // Its result is known: arithmetic on shapes or on constants.
                Ok(()) => {
                    let bookkeeping = Role::Bookkeeping.name().to_string();
                    *self.out.pruned.entry(bookkeeping).or_insert(0) += 1;
                }
                Err(error) => {
                    self.abandon();
                    for &output in &node.outputs {
                        self.values.insert(output, None);
                    }
                    let problem = error.map(|error| {
                        (
                            address(node),
                            Problem::new(node.called(), view.place() + &self.place, error),
                        )
                    });
                    self.findings.problems.extend(problem);
                }
            }
        }
    }

    /// The nodes that cannot be translated and that an output of the network needs.
    pub(super) fn problems(&mut self) -> Vec<Problem> {
        let mut needed = HashSet::new();
        let mut wanted: HashSet<&str> = outputs_of(&self.model.graph);
        needed_nodes(&self.model.graph, &self.findings.taken, &mut wanted, &mut needed);
        let problems = std::mem::take(&mut self.findings.problems).into_iter();
        problems
            .filter(|(node, _)| needed.contains(node))
            .map(|(_, problem)| problem)
            .collect()
    }

    /// Translates a node; `Err(None)` where an operand could not be translated, which has been reported.
    fn node(&mut self, view: View<'m, 'a>) -> Result<(), Option<Error>> {
        let node = view.node;
        if let Some(refusal) = node.source.and_then(|source| source.refusal) {
            return Err(Some(refusal.clone()));
        }
        if node.source.is_some() && node.domain == OWN {
            return self.own(view).map_err(Some);
        }
        node.each_attribute_once().map_err(Some)?;
        let (rows, remedy) = match node.domain {
            "" | "ai.onnx" => (rows::ROWS, rows::remedy(node.op)),
            contrib::DOMAIN => (contrib::ROWS, contrib::REMEDY),
            classic::DOMAIN => (classic::ROWS, classic::REMEDY),
            other if qonnx::DOMAINS.contains(&other) => (qonnx::ROWS, qonnx::REMEDY),
            other => {
                return Err(Some(
                    Error::unsupported(format!("not supported: the domain `{other}`"))
                        .help("export the model with operators of ONNX's own domain"),
                ));
            }
        };
        let row = rows.iter().find(|row| row.op == node.op);
        let row = row.ok_or_else(|| Some(Error::unsupported("not supported").help(remedy)))?;
        let untranslated = |name: &&str| matches!(self.values.get(name), Some(None));
        if node.inputs.iter().any(untranslated) {
            return Err(None);
        }
        match row.translate {
            Translate::Branch => self.branch(view),
            _ => self.translate(view, row).map_err(Some),
        }?;
        self.budget.allow_nodes(self.out.nodes.len()).map_err(Some)
    }

    /// A fully connected layer, or a function of `core/src/ops/pointwise.rs` by its name there.
    fn own(&mut self, view: View<'m, 'a>) -> crate::error::Result<()> {
        if view.node.op == "linear" {
            let (x, w, bias) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
            let y = self.linear(&x, &w, bias.as_ref())?;
            return self.bind(view, 0, y);
        }
        let found = Function::rows().find(|(_, names)| names.name == view.node.op);
        let (function, _) = found.ok_or_else(|| Error::internal("a function that has no row"))?;
        let x = self.operand(view, 0)?;
        let y = self.unary(UnaryKind::Function(function), &x)?;
        self.bind(view, 0, y)
    }

    /// An `If`: the nodes of the branch that its condition takes, in its place.
    fn branch(&mut self, view: View<'m, 'a>) -> Result<(), Option<Error>> {
        let holds = match self.operand(view, 0).map_err(Some)? {
            Value::Array(array) => array.single(),
            _ => return Err(Some(self.undecided(view)?)),
        };
        let holds = holds.ok_or_else(|| Some(Error::input("the condition is not one element")))?;
        let name = if holds != 0.0 { "then_branch" } else { "else_branch" };
        let graphs = &view.node.graphs;
        let taken = graphs.iter().position(|(own, _)| *own == name);
        let taken = taken.ok_or_else(|| Some(Error::input(format!("it has no {name}"))))?;
        let (_, graph) = &graphs[taken];
        if !graph.inputs.is_empty() || graph.outputs.len() < view.node.outputs.len() {
            let text = format!(
                "its {name} has {} inputs and {} outputs",
                graph.inputs.len(),
                graph.outputs.len()
            );
            return Err(Some(
                Error::input(text).expected(format!("no input, and {} outputs", view.node.outputs.len())),
            ));
        }
        self.findings.taken.insert(address(view.node), taken);
        let inside = format!(", in the {name} of node {}{}", view.index, self.place);
        let outside = std::mem::replace(&mut self.place, inside);
        let results = self.inlined(graph, view.opset);
        self.place = outside;
        self.enter(view);
        for (position, (value, elem)) in results?.into_iter().enumerate() {
            if let (Some(name), Some(elem)) = (view.output(position), elem) {
                self.note_float(name, elem);
            }
            self.bind(view, position, value).map_err(Some)?;
        }
        Ok(())
    }

    /// The values of a branch's outputs, each with the float type that the file gives it. Its names are forgotten.
    fn inlined(&mut self, graph: &'m Graph<'a>, opset: i64) -> Result<Vec<(Value, Option<Elem>)>, Option<Error>> {
        self.hold(graph).map_err(Some)?;
        self.graph(graph, opset);
        let mut results = Vec::new();
        for output in &graph.outputs {
            let value = self.value(output.name).map_err(Some)?.ok_or(None)?;
            results.push((value, self.floats.get(output.name).copied()));
        }
        let written = graph.nodes.iter().flat_map(|node| node.outputs.iter().copied());
        for name in written.chain(graph.initializers.iter().map(|tensor| tensor.name)) {
            self.values.remove(name);
            self.initializers.remove(name);
        }
        Ok(results)
    }

    /// The refusal of a condition that is computed at run time: which inputs of the network decide it.
    fn undecided(&self, view: View<'_, 'a>) -> Result<Error, Option<Error>> {
        let condition = view.input(0).map_err(Some)?;
        let mut reads: HashMap<&'a str, Vec<&'a str>> = HashMap::new();
        self.model.graph.each_node(&mut |node| {
            // Extents are known.
            if !matches!(node.op, "Shape" | "Size") {
                for &output in &node.outputs {
                    reads.insert(output, node.inputs.clone());
                }
            }
        });
        let (mut seen, mut next) = (HashSet::from([condition]), vec![condition]);
        while let Some(name) = next.pop() {
            let from = reads.get(name).into_iter().flatten();
            next.extend(from.filter(|name| seen.insert(name)));
        }
        let inputs = self.model.graph.inputs.iter().map(|input| input.name);
        let inputs = inputs.filter(|name| seen.contains(name) && !self.initializers.contains_key(name));
        let inputs: Vec<String> = inputs.take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
        Ok(Error::unsupported(format!(
            "control flow: the condition `{condition}` is computed at run time, from the values of {}",
            inputs.join(", ")
        ))
        .expected("a condition that constants of the model, or the shapes of its inputs, decide")
        .help("make what decides it a constant of the model, or export the network without the branch"))
    }
}

/// Which nodes feed an output of the graph, by index, whichever branches are taken, and what they and the outputs read.
pub(super) fn live_nodes<'a>(graph: &Graph<'a>) -> (Vec<bool>, HashSet<&'a str>) {
    let mut wanted = outputs_of(graph);
    let mut live = vec![false; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        if writes(node, &wanted) {
            live[index] = true;
            wanted.extend(&node.inputs);
            for (_, inner) in &node.graphs {
                wanted.extend(outputs_of(inner));
                inner.each_node(&mut |node| wanted.extend(&node.inputs));
            }
        }
    }
    (live, wanted)
}

/// Adds the addresses of the nodes that write what is wanted, with the branches that are taken, and all that they read.
fn needed_nodes<'a>(
    graph: &Graph<'a>,
    taken: &HashMap<usize, usize>,
    wanted: &mut HashSet<&'a str>,
    needed: &mut HashSet<usize>,
) {
    for node in graph.nodes.iter().rev() {
        if writes(node, wanted) {
            needed.insert(address(node));
            wanted.extend(&node.inputs);
            if let Some((_, branch)) = taken.get(&address(node)).and_then(|&at| node.graphs.get(at)) {
                wanted.extend(outputs_of(branch));
                needed_nodes(branch, taken, wanted, needed);
            }
        }
    }
}

fn outputs_of<'a>(graph: &Graph<'a>) -> HashSet<&'a str> {
    graph.outputs.iter().map(|output| output.name).collect()
}

fn writes(node: &Node<'_>, wanted: &HashSet<&str>) -> bool {
    node.outputs.iter().any(|o| !o.is_empty() && wanted.contains(o))
}

fn address(node: &Node<'_>) -> usize {
    std::ptr::from_ref(node).addr()
}
