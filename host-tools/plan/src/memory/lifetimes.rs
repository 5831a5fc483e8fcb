//! When a tensor lives: the one statement, by which liveness, the schedule, merging in place and the memory plan go.
//!
//! - Activations and the network's inputs lie in the arena. Constants and states have memory of their own.
//! - A view has no memory of its own: who touches it touches its root, the tensor that it is a view of.
//! - An input is alive from the start of a run, for the caller fills it before the first step; an output to its end, for the caller reads it
//!   after the last. Otherwise bytes are alive from the first step that touches them to the last, and both count.
//! - A kernel's scratch is alive in its own step alone.
//!
//! The proofs ([`super::plan::check()`], [`super::prove`]) do not use any of this: they judge it.

use std::collections::HashMap;
use std::ops::Range;

use arenite::Access;

use crate::graph::{Graph, Op, Role, TensorId, TensorKind};
use crate::program::{Place, Program};

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the first step, when the caller fills the inputs.
    Start,
    /// During a step.
    Step(usize),
    /// After the last step, when the caller reads the outputs.
    End,
}

/// A use of bytes of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// The tensor that owns the bytes.
    pub root: TensorId,
    /// Which of its bytes.
    pub bytes: Range<u64>,
    /// When.
    pub at: Moment,
    /// Access of a step; `None` for the caller.
    pub access: Option<Access>,
}

/// The first and the last moment at which a tensor is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// The first touch.
    pub first: Moment,
    /// The last touch.
    pub last: Moment,
}

/// Whether the tensor, where it is a root, lies in the arena.
pub fn in_arena(graph: &Graph, root: TensorId) -> bool {
    matches!(graph.tensor(root).kind, TensorKind::Activation | TensorKind::Input)
}

/// All touches of tensors by a program's steps and its caller, in order of time. Constants are not among them, states are.
pub fn of_program(program: &Program) -> Vec<Touch> {
    let graph = &program.graph;
    let by_caller = |at: Moment| {
        move |&id: &TensorId| {
            let (root, offset) = program.root(id);
            let from = u64::from(offset);
            Touch {
                root,
                bytes: from..from + graph.tensor(id).bytes() as u64,
                at,
                access: None,
            }
        }
    };
    let mut touches: Vec<Touch> = graph.inputs.iter().map(by_caller(Moment::Start)).collect();
    for (step, moment) in program.steps.iter().zip(program.moments()) {
        for operand in step.operands() {
            let Place::Tensor(id, bytes) = operand.place else {
                continue;
            };
            let (root, offset) = program.root(id);
            let from = u64::from(offset + bytes);
            touches.push(Touch {
                root,
                bytes: from..from + u64::from(operand.bytes),
                at: Moment::Step(moment),
                access: Some(operand.access),
            });
        }
    }
    touches.extend(graph.outputs.iter().map(by_caller(Moment::End)));
    touches
}

/// The life of a step's scratch.
pub fn of_scratch(step: usize) -> Life {
    let at = Moment::Step(step);
    Life { first: at, last: at }
}

/// The life of each root that is touched.
pub fn lives<'t>(touches: impl IntoIterator<Item = &'t Touch>) -> HashMap<TensorId, Life> {
    let mut lives = HashMap::new();
    for touch in touches {
        let one = Life {
            first: touch.at,
            last: touch.at,
        };
        lives
            .entry(touch.root)
            .and_modify(|life: &mut Life| *life = life.joined(one))
            .or_insert(one);
    }
    lives
}

/// Bytes alive during each of `steps` steps, from what is alive when.
pub fn live_bytes(steps: usize, alive: impl IntoIterator<Item = (Range<u64>, u64)>) -> Vec<u64> {
    let mut change = vec![0i64; steps + 1];
    for (during, bytes) in alive {
        change[during.start as usize] += bytes as i64;
        change[during.end as usize] -= bytes as i64;
    }
    let mut live = 0;
    let sums = change.iter().take(steps).map(|delta| {
        live += delta;
        live as u64
    });
    sums.collect()
}

/// Max-live in bytes of the forward graph in its order: the largest sum of activation bytes alive while one operator runs. No plan of
/// separate buffers is smaller. A reshape or identity is a view of what it reads.
pub fn max_live(graph: &Graph) -> u64 {
    let forward: Vec<_> = graph.nodes.iter().filter(|n| n.role == Role::Forward).collect();
    // A network without operators has inputs and outputs alive at once.
    let steps = forward.len().max(1);
    let spans = lives(&of_graph(graph))
        .into_iter()
        .map(|(id, life)| (life.steps(steps), graph.tensor(id).bytes() as u64))
        .collect::<Vec<_>>();
    live_bytes(steps, spans).into_iter().max().unwrap_or(0)
}

/// The same for a graph's forward operators, of which each is a step.
fn of_graph(graph: &Graph) -> Vec<Touch> {
    let mut root: Vec<TensorId> = (0..graph.tensors.len()).map(TensorId).collect();
    for node in &graph.nodes {
        if let (Op::Reshape | Op::Identity, [Some(input), ..], [output]) =
            (&node.op, &node.inputs[..], &node.outputs[..])
            && in_arena(graph, *input)
        {
            root[output.0] = root[input.0];
        }
    }
    let touch = |at: Moment| {
        let root = &root;
        move |&id: &TensorId| Touch {
            root: root[id.0],
            bytes: 0..graph.tensor(id).bytes() as u64,
            at,
            access: None,
        }
    };
    let mut touches: Vec<Touch> = graph.inputs.iter().map(touch(Moment::Start)).collect();
    for (step, node) in graph.nodes.iter().filter(|n| n.role == Role::Forward).enumerate() {
        let operands = node.inputs.iter().flatten().chain(&node.outputs);
        touches.extend(operands.map(touch(Moment::Step(step))));
    }
    touches.extend(graph.outputs.iter().map(touch(Moment::End)));
    touches.retain(|touch| in_arena(graph, touch.root));
    touches
}

impl Moment {
    /// The step that stands for it where there are `steps` of them: the first for the start, the last for the end.
    pub fn step(self, steps: usize) -> u64 {
        match self {
            Moment::Start => 0,
            Moment::Step(step) => step as u64,
            Moment::End => steps.saturating_sub(1) as u64,
        }
    }
}

impl Life {
    /// The life of both together.
    pub fn joined(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }

    /// Its steps, of `steps` in all.
    pub fn steps(self, steps: usize) -> Range<u64> {
        self.first.step(steps)..self.last.step(steps) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Node, Origin, Tensor, UnaryKind};

    /// `x` of 12 bytes and `h` of 20, then a view of `h`, then `y` of 8: `h` and its view are one tensor.
    fn chain() -> Graph {
        let mut graph = Graph::default();
        let sizes = [("x", 3), ("h", 5), ("view", 5), ("y", 2)];
        let ids = sizes.map(|(name, n)| graph.add_tensor(Tensor::activation(name, &[1, n], DType::F32)));
        graph.tensors[0].kind = TensorKind::Input;
        let ops = [Op::Unary(UnaryKind::Relu), Op::Reshape, Op::Unary(UnaryKind::Relu)];
        for (index, op) in ops.into_iter().enumerate() {
            graph.add_node(Node {
                name: format!("step {index}"),
                kind: "step".into(),
                op,
                inputs: vec![Some(ids[index])],
                outputs: vec![ids[index + 1]],
                role: Role::Forward,
                origin: Origin::default(),
            });
        }
        (graph.inputs, graph.outputs) = (vec![ids[0]], vec![ids[3]]);
        graph
    }

    #[test]
    fn inputs_live_from_the_start_outputs_to_the_end_and_views_as_their_root() {
        let graph = chain();
        let lives = lives(&of_graph(&graph));
        let life = |first, last| Some(&Life { first, last }).copied();
        assert_eq!(lives.get(&TensorId(0)).copied(), life(Moment::Start, Moment::Step(0)));
        assert_eq!(lives.get(&TensorId(1)).copied(), life(Moment::Step(0), Moment::Step(2)));
        assert_eq!(lives.get(&TensorId(2)), None);
        assert_eq!(lives.get(&TensorId(3)).copied(), life(Moment::Step(2), Moment::End));
        assert_eq!(max_live(&graph), 32);
    }

    #[test]
    fn an_input_that_is_an_output_lives_throughout() {
        let mut graph = chain();
        graph.outputs.push(TensorId(0));
        assert_eq!(max_live(&graph), 12 + 20 + 8);
    }

    #[test]
    fn a_network_without_operators_has_its_inputs_alive() {
        let mut graph = chain();
        graph.nodes.clear();
        graph.outputs = vec![TensorId(0)];
        assert_eq!(max_live(&graph), 12);
    }

    #[test]
    fn bytes_are_summed_step_by_step() {
        assert_eq!(live_bytes(3, [(0..2, 5), (1..3, 7), (2..3, 1)]), [5, 12, 8]);
    }
}
