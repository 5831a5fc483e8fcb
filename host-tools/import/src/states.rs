//! States that `--state` makes: an input that a tensor of the run before becomes.

use crate::borders::{bytes, unknown, usage};
use crate::error::Result;
use crate::graph::{Assumption, Data, Graph, Node, Op, Origin, Role, Tensor, TensorId, TensorKind};
use crate::imported::{ImportOptions, Imported};

/// Keeps what `--state` names from run to run; before the first one a state is zero. Outputs stay outputs.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::error::ErrorKind::Usage) for names that are not there, or twice, and for tensors of two shapes or types.
pub(super) fn keep(imported: &mut Imported, options: &ImportOptions) -> Result<()> {
    let graph = &mut imported.graph;
    for text in &options.state {
        let (input, output) = pair(graph, text)?;
        let (from, to) = (graph.tensor(output), graph.tensor(input));
        if (&from.shape, from.dtype, &from.quant) != (&to.shape, to.dtype, &to.quant) {
            return Err(
                usage(format!("--state {text}: `{}` is {}", from.name, described(from))).expected(format!(
                    "{}, as `{}` is",
                    described(to),
                    to.name
                )),
            );
        }
        imported.assumptions.push(Assumption {
            key: to.name.clone(),
            value: "0".into(),
            applies_to: "a state".into(),
            reason: format!("before the first run; then `{}` of the run before (--state)", from.name),
        });
        become_state(graph, input, output);
    }
    if options.state.is_empty() {
        return Ok(());
    }
    if graph.inputs.is_empty() {
        return Err(usage("every input is a state".into()).expected("an input that is none"));
    }
    if imported.samples.take().is_some() {
        let text = "the samples are of the network without --state: they are not replayed";
        imported.warnings.push(text.into());
    }
    Ok(())
}

/// The input and the computed tensor of `IN=OUT`. Names may hold the sign, and either may come first.
fn pair(graph: &Graph, text: &str) -> Result<(TensorId, TensorId)> {
    let named = |id: &TensorId, name: &str| graph.tensor(*id).name == name;
    let input = |name: &str| graph.inputs.iter().copied().find(|id| named(id, name));
    let computed = || {
        let forward = graph.nodes.iter().filter(|node| node.role == Role::Forward);
        forward.flat_map(|node| node.outputs.iter().copied())
    };
    let output = |name: &str| computed().find(|id| named(id, name));
    let split = |(at, _)| (&text[..at], &text[at + 1..]);
    let mut names = text.match_indices('=').map(split);
    if let Some(found) = names.clone().find_map(|(a, b)| {
        let (straight, turned) = (input(a).zip(output(b)), input(b).zip(output(a)));
        straight.or(turned)
    }) {
        return Ok(found);
    }
    let Some((a, b)) = names.next() else {
        return Err(usage(format!("--state {text}")).expected("IN=OUT, an input and the output that it becomes"));
    };
    let told = format!("--state {text}:");
    let absent = match (input(a).is_some(), input(b).is_some()) {
        (true, true) => {
            return Err(usage(format!("{told} both are inputs")).expected("an input and a tensor that is computed"));
        }
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let inputs = graph.inputs.iter().map(|&id| graph.tensor(id).name.as_str());
            return Err(unknown(&told, a, "input", inputs));
        }
    };
    Err(unknown(
        &told,
        absent,
        "tensor that is computed",
        computed().map(|id| graph.tensor(id).name.as_str()),
    ))
}

fn described(tensor: &Tensor) -> String {
    let scale = match &tensor.quant {
        Some(quant) => format!(" of scale {:?} and zero point {:?}", quant.scale, quant.zero_point),
        None => String::new(),
    };
    format!("{}{:?}{scale}", tensor.dtype.name(), tensor.shape)
}

/// The input is read from a state at the beginning, which gets the output at the end.
fn become_state(graph: &mut Graph, input: TensorId, output: TensorId) {
    let read = graph.tensor(input).clone();
    let zero = read.quant.as_ref().and_then(|quant| quant.zero_point.first()).copied();
    let zeros = vec![f64::from(zero.unwrap_or(0)); read.shape.iter().product()];
    let bytes = bytes(read.dtype, &zeros);
    let name = read.name.clone();
    let state = graph.add_tensor(Tensor {
        name: format!("{name} (state)"),
        kind: TensorKind::State(Data::Bytes(bytes.into())),
        ..read
    });
    graph.tensor_mut(input).kind = TensorKind::Activation;
    graph.inputs.retain(|id| *id != input);
    let node = |what: &str, op, inputs: &[TensorId], outputs| Node {
        name: format!("{name} ({what})"),
        kind: format!("{what}_state"),
        op,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs,
        role: Role::Forward,
        origin: Origin {
            line: None,
            path: "--state".into(),
        },
    };
    let reading = node("read", Op::ReadState, &[state], vec![input]);
    let assigning = node("assign", Op::AssignState, &[state, output], Vec::new());
    graph.nodes.insert(0, reading);
    graph.nodes.push(assigning);
}
