//! Losses: what they judge of a network, and the inputs that they add.

use crate::error::{Error, Result};
use crate::graph::train::classes;
use crate::graph::{Graph, Op, TensorId};

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The mean of a softmax's cross-entropy over the labelled rows of the logits.
    CrossEntropy,
    /// Half the sum of the output's squares.
    L2,
    /// The mean of squared differences from a target.
    Mse,
}

impl Loss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::CrossEntropy, Self::L2, Self::Mse];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross-entropy",
            Self::L2 => "l2",
            Self::Mse => "mse",
        }
    }

    /// The loss of this name.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] with all names.
    pub fn named(name: &str) -> Result<Self> {
        let names = Self::ALL.map(Self::name);
        let unknown = || {
            let message = format!("--loss {name}: there is no such loss");
            Error::new(crate::error::ErrorKind::Usage, message).expected(names.join(", "))
        };
        Self::ALL
            .into_iter()
            .find(|loss| loss.name() == name)
            .ok_or_else(unknown)
    }
}

/// The tensor whose gradient the loss begins with: the network's output, or the logits that it is a softmax of where the loss has a softmax of its own.
pub(super) fn judged(graph: &Graph, loss: Loss) -> TensorId {
    let output = graph.outputs[0];
    if loss != Loss::CrossEntropy {
        return output;
    }
    let shape = |id: TensorId| &graph.tensor(id).shape;
    // Axes of one element may stand behind that of the classes.
    let last = |id: TensorId, axis: usize| {
        shape(id)[axis] == classes(shape(id)) && shape(id)[axis + 1..].iter().all(|&extent| extent == 1)
    };
    let mut judged = output;
    while let Some(node) = graph.nodes.iter().find(|node| node.outputs.contains(&judged)) {
        let Some(from) = node.inputs.first().copied().flatten() else {
            break;
        };
        match node.op {
            Op::Softmax { axis, beta: 1.0 } | Op::LogSoftmax { axis } if last(from, axis) => return from,
            // Views keep rows where they keep the classes.
            Op::Reshape | Op::Identity if classes(shape(from)) == classes(shape(output)) => {
                judged = from;
            }
            _ => break,
        }
    }
    output
}
