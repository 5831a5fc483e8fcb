//! Metadata of steps and tensors in the file, for the host tools.

use crate::error::Result;
use crate::graph::{Graph, Tensor, TensorId};
use crate::memory::Placed;
use crate::metadata::{CutStep, NO_TENSOR, StepMeta, TensorMeta};
use crate::program::{LoweredStep, Place, Program};

/// The tensors that own memory, numbered as the metadata does.
pub struct Owners {
    numbers: std::collections::HashMap<TensorId, u32>,
    /// Their names.
    pub names: Vec<String>,
    /// The owner of each input and output.
    pub ports: Vec<u32>,
}

impl Owners {
    /// Numbers them in the order in which the network touches them.
    pub fn new(program: &Program) -> Self {
        let graph = &program.graph;
        let mut owners = Self {
            numbers: Default::default(),
            names: Vec::new(),
            ports: Vec::new(),
        };
        let touched = program
            .steps
            .iter()
            .flat_map(LoweredStep::places)
            .filter_map(|place| match place {
                Place::Tensor(id, _) => Some(id),
                _ => None,
            });
        let ports = || graph.inputs.iter().chain(&graph.outputs).copied();
        for id in ports().chain(touched) {
            let owner = program.owner(id);
            owners.numbers.entry(owner).or_insert_with(|| {
                owners.names.push(graph.tensor(owner).name.clone());
                owners.names.len() as u32 - 1
            });
        }
        owners.ports = ports().map(|id| owners.of(program, Place::Tensor(id, 0))).collect();
        owners
    }

    fn of(&self, program: &Program, place: Place) -> u32 {
        match place {
            Place::Tensor(id, _) => self.numbers.get(&program.owner(id)).copied().unwrap_or(NO_TENSOR),
            _ => NO_TENSOR,
        }
    }
}

/// The per-step metadata.
///
/// # Errors
/// As [`Placed::slot`].
pub fn step_metadata(program: &Program, memory: &Placed, owners: &Owners) -> Result<Vec<StepMeta>> {
    let graph = &program.graph;
    let completed = program.steps.iter().enumerate();
    let last_writer: std::collections::HashMap<TensorId, usize> = completed
        .filter_map(|(index, step)| Some((step.completes?, index)))
        .collect();
    let mut names: std::collections::HashMap<TensorId, Vec<String>> = Default::default();
    let mut views: Vec<_> = program.views.keys().copied().collect();
    views.sort();
    for view in views {
        let (root, (_, offset)) = (program.owner(view), program.root(view));
        // Results of a later step in the same place have other values.
        let same = offset == 0 && !last_writer.contains_key(&view) && same_array(graph, view, root);
        if same {
            names.entry(root).or_default().push(graph.tensor(view).name.clone());
        }
    }
    program
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let completes = match step.completes.filter(|&id| last_writer.get(&id) == Some(&index)) {
                None => None,
                Some(id) => {
                    let tensor = graph.tensor(id);
                    let mut all = vec![tensor.name.clone()];
                    all.extend(names.get(&id).into_iter().flatten().cloned());
                    let (scale, zero_point) = affine(tensor);
                    Some(TensorMeta {
                        names: all,
                        slot: memory.slot(program, id, 0)?,
                        dtype: tensor.dtype,
                        shape: tensor.shape.iter().map(|&n| n as u32).collect(),
                        traced_perm: tensor.traced_perm.iter().flatten().map(|&axis| axis as u8).collect(),
                        scale,
                        zero_point,
                    })
                }
            };
            Ok(StepMeta {
                name: step.name.clone(),
                kind: step.kind.to_string(),
                macs: traced_macs(program, step),
                completes,
                operands: step.places().iter().map(|&place| owners.of(program, place)).collect(),
            })
        })
        .collect()
}

/// Whether two tensors of the same bytes are one array, element by element in the traced order.
fn same_array(graph: &Graph, a: TensorId, b: TensorId) -> bool {
    // A tensor of other channels is not the same one, where those that are left are.
    let all = graph.traced_elements(a) == graph.traced_elements(b);
    let [a, b] = [graph.tensor(a), graph.tensor(b)];
    all && a.bytes() == b.bytes() && traced_walk(a) == traced_walk(b)
}

/// How the traced order walks through a tensor's elements: extent and stride of each axis, outermost first, those of one element
/// left out and neighbours joined where they are one walk.
fn traced_walk(tensor: &Tensor) -> Vec<(usize, usize)> {
    let mut stride = 1;
    let mut axes: Vec<(usize, usize)> = Vec::with_capacity(tensor.shape.len());
    for &extent in tensor.shape.iter().rev() {
        axes.push((extent, stride));
        stride *= extent;
    }
    axes.reverse();
    let traced: Vec<(usize, usize)> = match &tensor.traced_perm {
        Some(perm) => perm.iter().filter_map(|&axis| axes.get(axis).copied()).collect(),
        None => axes,
    };
    let mut walk: Vec<(usize, usize)> = Vec::with_capacity(traced.len());
    for (extent, stride) in traced.into_iter().filter(|&(extent, _)| extent != 1) {
        match walk.last_mut() {
            Some((outer, above)) if *above == extent * stride => (*outer, *above) = (*outer * extent, stride),
            _ => walk.push((extent, stride)),
        }
    }
    walk
}

/// Those that the step would have with all channels of its node.
fn traced_macs(program: &Program, step: &LoweredStep) -> u64 {
    match program.graph.cut_macs.get(&step.name) {
        // A step may be a part of its node.
        Some(&[before, after]) if after > 0 => (u128::from(step.macs) * u128::from(before) / u128::from(after)) as u64,
        _ => step.macs,
    }
}

/// The steps of nodes of which channels were removed.
pub fn cut_steps(program: &Program, steps: &[StepMeta]) -> Vec<CutStep> {
    let cut = |((index, step), meta): ((u32, &LoweredStep), &StepMeta)| {
        let completes = meta.completes.as_ref().and_then(|tensor| tensor.names.first());
        let channels = completes.and_then(|name| program.graph.channels.get(name)).cloned();
        let fewer = step.macs != meta.macs;
        (fewer || channels.is_some()).then_some(CutStep {
            step: index,
            macs: step.macs,
            channels,
        })
    };
    (0..).zip(&program.steps).zip(steps).filter_map(cut).collect()
}

/// Scale and zero point of a per-tensor quantised tensor; (0, 0) for others.
pub fn affine(tensor: &crate::graph::Tensor) -> (f32, i32) {
    match &tensor.quant {
        Some(quant) if quant.axis.is_none() => (quant.scale[0], quant.zero_point[0]),
        _ => (0.0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenite::DType;

    fn tensor(shape: &[usize], perm: Option<&[usize]>) -> Tensor {
        Tensor {
            name: "t".into(),
            shape: shape.to_vec(),
            dtype: DType::F32,
            quant: None,
            kind: crate::graph::TensorKind::Activation,
            traced_perm: perm.map(<[usize]>::to_vec),
        }
    }

    #[test]
    fn a_walk_is_the_order_of_elements_whatever_the_axes() {
        let same = |a: &Tensor, b: &Tensor| traced_walk(a) == traced_walk(b);
        let stored = tensor(&[1, 4, 5, 3], None);
        assert!(same(&stored, &tensor(&[60], None)));
        assert!(same(&stored, &tensor(&[20, 1, 3], None)));
        assert!(!same(&stored, &tensor(&[59], None)));
        // NCHW of the same bytes: another order, but where one of channels and places is single.
        let nchw = tensor(&[1, 4, 5, 3], Some(&[0, 3, 1, 2]));
        assert!(!same(&stored, &nchw));
        assert!(!same(&nchw, &tensor(&[1, 60], None)));
        assert!(same(&nchw, &tensor(&[20, 3], Some(&[1, 0]))));
        let one_place = tensor(&[1, 1, 1, 7], Some(&[0, 3, 1, 2]));
        assert!(same(&one_place, &tensor(&[7], None)));
        assert!(traced_walk(&tensor(&[], None)).is_empty());
    }
}
