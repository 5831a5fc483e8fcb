//! The passes, one a file, in the order in which they run. The graph is checked after each.

mod affine;
mod affine_chain;
mod batch_norm;
mod bias;
mod channel_scale;
mod constants;
mod division;
mod frame;
mod functions;
mod fuse_activation;
mod fuse_residual;
mod identity;
mod layer_constants;
mod layout;
mod linear_factor;
#[cfg(test)]
mod made;
mod matmul;
mod pad;
mod padded_average;
pub mod prune;
pub mod recognise_softmax;
mod reductions;
mod region;
mod region_rewrite;
mod rewrite;
mod rows;
mod simplify;
mod softmax_axis;
mod spellings;
mod views;

use std::collections::HashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{
    Graph,
    check::{check, check_structure},
};
use crate::stage::Stage;

/// A pass: its name for messages, the stage that it belongs to, and the rewrite.
pub struct Pass {
    /// Name in messages.
    pub name: &'static str,
    /// When it runs.
    pub stage: Stage,
    /// The rewrite; it leaves an equivalent graph.
    pub run: fn(&mut Graph) -> Result<()>,
}

const RESIDUALS: &str = "fuse residual additions";

/// All passes, in order. Those of [`Stage::Quantize`] run for networks that are quantised, before they are.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "recognise softmax",
        stage: Stage::Import,
        run: recognise_softmax::run,
    },
    Pass {
        name: "prune",
        stage: Stage::Import,
        run: prune::run,
    },
    Pass {
        name: "recognise functions",
        stage: Stage::Fold,
        run: functions::run,
    },
    Pass {
        name: "operators in the words of all importers",
        stage: Stage::Fold,
        run: spellings::run,
    },
    Pass {
        name: "drop identities",
        stage: Stage::Fold,
        run: identity::run,
    },
    Pass {
        name: "simplify what moves nothing",
        stage: Stage::Fold,
        run: simplify::run,
    },
    Pass {
        name: "reductions in one form",
        stage: Stage::Fold,
        run: reductions::run,
    },
    // Before views move: a sum that is a bias would part from its layer.
    Pass {
        name: "linear layers take operands of any axes",
        stage: Stage::Fold,
        run: rows::run,
    },
    Pass {
        name: "move reshapes and transposes",
        stage: Stage::Fold,
        run: views::run,
    },
    Pass {
        name: "reductions that views have come to",
        stage: Stage::Fold,
        run: reductions::run,
    },
    Pass {
        name: "normalisations that views have come to",
        stage: Stage::Fold,
        run: spellings::run,
    },
    Pass {
        name: "matrix products with constants are linear layers",
        stage: Stage::Fold,
        run: matmul::run,
    },
    Pass {
        name: "expand affine",
        stage: Stage::Fold,
        run: affine::run,
    },
    // Before the batch norms: one may follow a convolution whose bias is still an addition of its own.
    Pass {
        name: "fold bias",
        stage: Stage::Fold,
        run: bias::run,
    },
    Pass {
        name: "fold batch norm",
        stage: Stage::Fold,
        run: batch_norm::run,
    },
    Pass {
        name: "fold bias of expanded batch norms",
        stage: Stage::Fold,
        run: bias::run,
    },
    Pass {
        name: "fold products and sums with constants",
        stage: Stage::Fold,
        run: affine_chain::run,
    },
    Pass {
        name: "divisions by powers of two are products",
        stage: Stage::Fold,
        run: division::exact,
    },
    Pass {
        name: "fuse activations",
        stage: Stage::Fuse,
        run: fuse_activation::run,
    },
    Pass {
        name: "fold padding",
        stage: Stage::Fuse,
        run: pad::run,
    },
    Pass {
        name: RESIDUALS,
        stage: Stage::Fuse,
        run: fuse_residual::run,
    },
    Pass {
        name: "fold bias of sums",
        stage: Stage::Fuse,
        run: bias::run,
    },
    Pass {
        name: "fuse activations of sums",
        stage: Stage::Fuse,
        run: fuse_activation::run,
    },
    Pass {
        name: "channels last",
        stage: Stage::Fuse,
        run: layout::run,
    },
    Pass {
        name: "simplify what the layout moves",
        stage: Stage::Fuse,
        run: simplify::run,
    },
    Pass {
        name: "softmax and normalisation along the innermost axis",
        stage: Stage::Fuse,
        run: softmax_axis::run,
    },
    Pass {
        name: "averages do not count padding",
        stage: Stage::Quantize,
        run: padded_average::run,
    },
    Pass {
        name: "divisions by constants are products",
        stage: Stage::Quantize,
        run: division::any,
    },
    Pass {
        name: "scales of channels are depthwise convolutions",
        stage: Stage::Quantize,
        run: channel_scale::run,
    },
    Pass {
        name: "fold bias of scales",
        stage: Stage::Quantize,
        run: bias::run,
    },
    Pass {
        name: "fuse activations of scales",
        stage: Stage::Quantize,
        run: fuse_activation::run,
    },
];

/// Runs the passes of `stage`, and checks the graph after each.
///
/// # Errors
/// The error of a pass, or [`ErrorKind::Internal`] where it left an inconsistent graph.
pub fn run(graph: &mut Graph, stage: Stage) -> Result<()> {
    run_those(graph, |pass| pass.stage == stage)
}

/// Runs the passes of `stage` for a network that will be quantised: sums stay operators of their own, for integers rescale both operands.
///
/// # Errors
/// As [`run`].
pub fn run_before_quantising(graph: &mut Graph, stage: Stage) -> Result<()> {
    run_those(graph, |pass| pass.stage == stage && pass.name != RESIDUALS)
}

/// Runs the passes of `stage` for a network that will be trained: sums stay operators of their own, for each operand has a gradient.
///
/// # Errors
/// As [`run`].
pub fn run_before_training(graph: &mut Graph, stage: Stage) -> Result<()> {
    run_before_quantising(graph, stage)
}

fn run_those(graph: &mut Graph, chosen: impl Fn(&Pass) -> bool) -> Result<()> {
    for pass in PASSES.iter().filter(|pass| chosen(pass)) {
        let before = graph.tensors.len();
        (pass.run)(graph)?;
        // New names come with new tensors.
        let checked = if graph.tensors.len() == before {
            check_structure(graph)
        } else {
            name_apart(graph);
            check(graph)
        };
        checked.map_err(|e| {
            Error::new(
                ErrorKind::Internal,
                format!("the pass `{}` left an inconsistent graph: {e}", pass.name),
            )
            .help("this is a defect of pack, not of the input: please report it")
        })?;
    }
    Ok(())
}

/// Numbers names that a pass made twice, or that the trace happens to have as well. Tensors that passes add come last and give way.
pub fn name_apart(graph: &mut Graph) {
    let tensors = graph.tensors.iter_mut().map(|tensor| &mut tensor.name);
    let nodes = graph.nodes.iter_mut().map(|node| &mut node.name);
    number(tensors);
    number(nodes);
}

fn number<'g>(names: impl Iterator<Item = &'g mut String>) {
    // Names that are taken, and the number from which on a free one may be.
    let mut taken: HashMap<String, usize> = HashMap::with_capacity(names.size_hint().0);
    for name in names {
        let Some(&next) = taken.get(name) else {
            taken.insert(name.clone(), 2);
            continue;
        };
        let mut free = (next..).map(|n| (n, format!("{name} ({n})")));
        let (number, free) = free
            .find(|(_, name)| !taken.contains_key(name))
            .expect("there are more numbers than names");
        taken.insert(std::mem::replace(name, free.clone()), number + 1);
        taken.insert(free, 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Names end up different, the first of each as it was, the others with a number behind; names that look numbered already are no trap.
        #[test]
        fn names_are_made_different(names in prop::collection::vec("[ab]( \\((2|3)\\)){0,2}", 0..12)) {
            let mut numbered = names.clone();
            number(numbered.iter_mut());
            let different: std::collections::BTreeSet<&String> = numbered.iter().collect();
            prop_assert_eq!(different.len(), names.len(), "{:?} of {:?}", numbered, names);
            for (index, (name, found)) in names.iter().zip(&numbered).enumerate() {
                prop_assert!(found.starts_with(name.as_str()), "{} of {}", found, name);
                let taken = numbered[..index].contains(name);
                prop_assert_eq!(found == name, !taken, "{:?} of {:?}", numbered, names);
            }
        }
    }
}
