//! Text of a graph or program, for people: `pack --dump-after`.

use std::fmt::Write as _;

use crate::graph::{Graph, TensorId, TensorKind};
use crate::memory::Placed;
use crate::program::{Place, Program};

/// One line a node.
pub fn graph(graph: &Graph) -> String {
    let mut text = format!("network {}\n", graph.name);
    let tensor = |id: TensorId| {
        let t = graph.tensor(id);
        format!("{} {}{:?}", t.name, t.dtype.name(), t.shape)
    };
    for &id in &graph.inputs {
        let _ = writeln!(text, "input  {}", tensor(id));
    }
    for node in &graph.nodes {
        let inputs: Vec<_> = node.inputs.iter().map(|id| id.map_or("-".into(), tensor)).collect();
        let outputs: Vec<_> = node.outputs.iter().map(|&id| tensor(id)).collect();
        let _ = writeln!(text, "{} = {:?}({})", outputs.join(", "), node.op, inputs.join(", "));
    }
    for &id in &graph.outputs {
        let _ = writeln!(text, "output {}", tensor(id));
    }
    text
}

/// One line a step; with offsets once there is a plan.
pub fn program(program: &Program, placed: Option<&Placed>) -> String {
    let mut text = format!("network {}\n", program.graph.name);
    for (index, step) in program.steps.iter().enumerate() {
        let places: Vec<_> = step
            .places()
            .into_iter()
            .map(|place| match place {
                Place::Tensor(id, bytes) => {
                    let tensor = program.graph.tensor(id);
                    let at = placed.and_then(|m| m.slot(program, id, bytes).ok());
                    let at = at.map_or(String::new(), |slot| format!("@{}", slot.offset));
                    let state = if matches!(tensor.kind, TensorKind::State(_)) {
                        "state "
                    } else {
                        ""
                    };
                    format!("{state}{}{at}", tensor.name)
                }
                Place::Constant(offset) => format!("weights@{offset}"),
                Place::Scratch => format!("scratch[{}]", step.step.needs().scratch),
            })
            .collect();
        let kernel = step.step.kernel().name();
        let _ = writeln!(
            text,
            "{index:4} {:<18} {kernel:<18} {} <- {}",
            step.kind,
            places[0],
            places[1..].join(", ")
        );
    }
    if let Some(placed) = placed {
        let _ = writeln!(
            text,
            "arena {} bytes, lower bound {}, {}",
            placed.arena_bytes(),
            placed.lower_bound(),
            if placed.proven_optimal() {
                "proven optimal"
            } else {
                "not proven optimal"
            }
        );
        for (body, buffer) in placed.bodies.problem.buffers.iter().enumerate() {
            let (size, life) = (buffer.bytes(), buffer.life());
            let (region, offset) = (placed.region[body], placed.offsets[body]);
            let _ = writeln!(
                text,
                "{region}:{offset:<10} +{size:<10} steps {}..{} {}",
                life.start, life.end, buffer.name
            );
        }
    }
    text
}
