//! A program as a draft of ONNX: its inputs, constants, calls and outputs. A value that a call writes in place is followed through the names that it has.

use std::collections::{HashMap, HashSet};

use super::aliases::{Aliases, Overwritten};
use super::archive::{Archive, Values};
use super::call::Call;
use super::elements::{Extent, Meta};
use super::names;
use super::program::{Arg, Kind, Node, Program};
use super::rows::{self, Rule};
use crate::error::{Error, Result};
use crate::fold_budget::FoldBudget;
use crate::onnx::{Constant, Draft, Origin, Port, Size};

const REMEDY: &str = "docs/pt2.md lists the calls that are read; build the network of these, or export it through ONNX, which may write it in others: \
                      torch.onnx.export(torch.export.load(FILE), f=\"model.onnx\")";
const STATE: &str = "make it an input and an output of the module, and pass --state IN=OUT to pack";

/// Writes the program with ONNX's operators.
pub(super) fn drafted(program: &Program, archive: &mut Archive<'_>, budget: &FoldBudget) -> Result<Draft> {
    let mut draft = Draft::default();
    let mut names = inputs(program, archive, budget, &mut draft)?;
    let mut aliases = Aliases::of(program);
    let mut written = program.written.clone();
    for (index, node) in program.nodes.iter().enumerate() {
        if names::is_no_value(&node.target) {
            draft.sources.push(origin(node, None));
            continue;
        }
        let (name, in_place) = names::called(&node.target);
        let target = node.arguments.first().map(|(_, arg)| arg).filter(|_| in_place);
        if let Some(Arg::Tensor(target)) = target {
            match aliases.overwritten(target, index) {
                Overwritten::Kept(name) => written.extend(kept_name(program, name)),
                Overwritten::Read(name) => {
                    return Err(Error::unsupported(format!(
                        "it writes `{target}` in place, of which `{name}` is a view"
                    ))
                    .at(format!("node {index} ({})", node.target))
                    .help("write it without the operator in place: x = x + 1, torch.where, torch.cat"));
                }
                Overwritten::Free => {}
            }
        }
        let results = call(program, node, name, &mut draft, &names, &aliases);
        let outputs: Vec<&str> = outputs_of(node);
        if let (Some(Arg::Tensor(target)), Some(output)) = (target, outputs.first()) {
            aliases.same(target, output);
        }
        for (position, &output) in outputs.iter().enumerate() {
            let result = results.get(position).cloned().unwrap_or_else(|| output.to_string());
            names.insert(aliases.first(output), result);
        }
        match target {
            Some(Arg::Tensor(_)) => {}
            _ if names::is_view(name) => {
                let mut reads = Vec::new();
                node.arguments
                    .iter()
                    .for_each(|(_, arg)| arg.each_name(&mut |name| reads.push(name)));
                aliases.join(&reads, &outputs);
            }
            _ => {}
        }
    }
    if !written.is_empty() {
        let names: Vec<String> = written.iter().map(|name| format!("`{name}`")).collect();
        return Err(Error::unsupported(format!(
            "the program writes what it keeps from run to run: {}",
            names.join(", ")
        ))
        .help(STATE));
    }
    outputs(program, &names, &aliases, &mut draft)?;
    Ok(draft)
}

/// The name that the module gives an input of the graph, where the program keeps it.
fn kept_name(program: &Program, name: &str) -> Option<String> {
    let input = program.inputs.iter().find(|input| input.name == name)?;
    match &input.kind {
        Kind::Weight(own) | Kind::Constant(own) => Some(own.clone()),
        Kind::User => None,
    }
}

fn origin(node: &Node, refusal: Option<Error>) -> Origin {
    Origin {
        op: node.target.clone(),
        refusal,
    }
}

fn outputs_of(node: &Node) -> Vec<&str> {
    let mut names = Vec::new();
    node.outputs
        .iter()
        .for_each(|arg| arg.each_name(&mut |name| names.push(name)));
    names
}

/// The draft's inputs and constants, and their names.
fn inputs<'p>(
    program: &'p Program,
    archive: &mut Archive<'_>,
    budget: &FoldBudget,
    draft: &mut Draft,
) -> Result<HashMap<&'p str, String>> {
    let (mut weights, mut constants) = (Vec::new(), Vec::new());
    let read = read_names(program);
    for input in program.inputs.iter().filter(|input| read.contains(input.name.as_str())) {
        match &input.kind {
            Kind::User => {}
            Kind::Weight(name) => weights.push(name.as_str()),
            Kind::Constant(name) => constants.push(name.as_str()),
        }
    }
    let mut weights = archive.weights(&weights, budget)?;
    let mut constants = archive.constants(&constants, budget)?;
    let mut names = HashMap::new();
    let mut held = HashSet::new();
    for input in &program.inputs {
        let (name, values, others) = match &input.kind {
            Kind::User => {
                let meta = program.tensors.get(&input.name);
                let meta =
                    meta.ok_or_else(|| Error::input(format!("nothing is stated of the input `{}`", input.name)))?;
                draft.inputs.push(port(&input.name, meta));
                continue;
            }
            Kind::Weight(name) => (name, &mut weights, &mut constants),
            Kind::Constant(name) => (name, &mut constants, &mut weights),
        };
        names.insert(input.name.as_str(), name.clone());
        if !read.contains(input.name.as_str()) || !held.insert(name.as_str()) {
            continue;
        }
        let take = |values: &mut Values| values.remove(name);
        let value = take(values).or_else(|| take(others));
        let value = value.ok_or_else(|| {
            Error::input(format!("the archive has no value of `{name}`"))
                .help("the file is damaged, or was saved without its weights: save it again with torch.export.save")
        })?;
        draft.constants.push(Constant {
            name: name.clone(),
            elem: value.elem,
            shape: value.shape,
            data: value.data,
        });
    }
    Ok(names)
}

fn port(name: &str, meta: &Meta) -> Port {
    let size = |extent: &Extent| match extent {
        Extent::Known(extent) => Size::Known(*extent),
        Extent::Expression(text) if text.chars().all(|c| c.is_alphanumeric() || c == '_') => Size::Named(text.clone()),
        Extent::Expression(_) => Size::Unknown,
    };
    Port {
        name: name.to_string(),
        elem: meta.elem,
        shape: meta.sizes.iter().map(size).collect(),
    }
}

/// Names that calls and outputs read.
fn read_names(program: &Program) -> HashSet<&str> {
    let mut read = HashSet::new();
    for node in &program.nodes {
        node.arguments.iter().for_each(|(_, arg)| {
            arg.each_name(&mut |name| {
                read.insert(name);
            });
        });
    }
    program.outputs.iter().for_each(|arg| {
        arg.each_name(&mut |name| {
            read.insert(name);
        });
    });
    read
}

/// Translates a call; the draft's names of its results.
fn call(
    program: &Program,
    node: &Node,
    name: &str,
    draft: &mut Draft,
    names: &HashMap<&str, String>,
    aliases: &Aliases<'_>,
) -> Vec<String> {
    let outputs: Vec<String> = outputs_of(node).into_iter().map(String::from).collect();
    let (first, constants) = (draft.nodes.len(), draft.constants.len());
    draft.sources.push(origin(node, None));
    let prefix = outputs.first().cloned().unwrap_or_default();
    let mut made = Call {
        program,
        node,
        draft: &mut *draft,
        names,
        aliases,
        prefix,
        parts: 0,
    };
    let results = match rows::rule(name, node) {
        Some(Rule::One(rule)) => rule(&mut made).map(|result| vec![result]),
        Some(Rule::Several(rule)) => rule(&mut made),
        None => Err(Error::unsupported("not supported").help(REMEDY)),
    };
    match results {
        Ok(results) => results
            .into_iter()
            .zip(&outputs)
            .map(|(result, output)| named(draft, first, result, output))
            .collect(),
        Err(error) => {
            draft.nodes.truncate(first);
            draft.constants.truncate(constants);
            if let Some(source) = draft.sources.last_mut() {
                source.refusal = Some(error.or_help(REMEDY));
            }
            let mut reads = Vec::new();
            node.arguments
                .iter()
                .for_each(|(_, arg)| arg.each_name(&mut |name| reads.push(name)));
            let reads = reads
                .iter()
                .map(|&name| names.get(name).map_or_else(|| name.to_string(), Clone::clone));
            draft.add("Refused", reads.collect(), outputs.clone(), &[]);
            outputs
        }
    }
}

/// Gives a result the program's name, where a node since `first` computes it.
fn named(draft: &mut Draft, first: usize, result: String, output: &str) -> String {
    let nodes = draft.nodes.get_mut(first..).unwrap_or_default();
    if !nodes.iter().any(|node| node.outputs.contains(&result)) {
        draft.add("Identity", vec![result], vec![output.to_string()], &[]);
        return output.to_string();
    }
    for node in nodes {
        let names = node.inputs.iter_mut().chain(&mut node.outputs);
        names
            .filter(|name| **name == result)
            .for_each(|name| *name = output.to_string());
    }
    output.to_string()
}

/// The draft's name of a value of the program.
fn current<'n>(names: &'n HashMap<&str, String>, aliases: &Aliases<'_>, name: &'n str) -> &'n str {
    names.get(aliases.first(name)).map_or(name, String::as_str)
}

/// The network's outputs.
fn outputs(program: &Program, names: &HashMap<&str, String>, aliases: &Aliases<'_>, draft: &mut Draft) -> Result<()> {
    for arg in &program.outputs {
        let name = match arg {
            Arg::Tensor(name) => name,
            Arg::None => continue,
            _ => {
                return Err(Error::unsupported("an output of the program is no tensor")
                    .help("return tensors alone: what is a number in Python is not computed on the device"));
            }
        };
        let meta = program.tensors.get(name);
        let meta = meta.ok_or_else(|| Error::input(format!("nothing is stated of the output `{name}`")))?;
        draft.outputs.push(port(current(names, aliases, name), meta));
    }
    for (name, meta) in &program.tensors {
        let is_computed = names.contains_key(aliases.first(name)) && current(names, aliases, name) == name;
        if is_computed {
            draft.values.push(port(name, meta));
        }
    }
    draft.values.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}
