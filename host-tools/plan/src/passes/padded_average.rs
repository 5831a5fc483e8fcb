//! An average that counts its padding is one over a padded operand: integers average what is there.

use super::rewrite::Rewriter;
use crate::error::Result;
use crate::graph::{Graph, Layout, Node, NodeId, Op, Padding2d, Tensor, TensorKind};

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let mut net = Rewriter::new(graph);
    net.until_stable(pad);
    net.finish();
    Ok(())
}

fn pad(net: &mut Rewriter<'_>, id: NodeId) -> bool {
    let graph = &mut *net.graph;
    let mut node = graph.nodes[id.0].clone();
    let (Op::AvgPool2d(attrs), Some(&Some(x))) = (&mut node.op, node.inputs.first()) else {
        return false;
    };
    let Padding2d {
        top,
        bottom,
        left,
        right,
    } = std::mem::take(&mut attrs.padding);
    if !attrs.count_include_pad || [top, bottom, left, right] == [0; 4] {
        return false;
    }
    let pads = match attrs.layout {
        Layout::Nchw => vec![(0, 0), (0, 0), (top, bottom), (left, right)],
        Layout::Nhwc => vec![(0, 0), (top, bottom), (left, right), (0, 0)],
    };
    let tensor = graph.tensor(x).clone();
    let extents = tensor.shape.iter().zip(&pads);
    let padded = graph.add_tensor(Tensor {
        name: format!("{} (padded for {})", tensor.name, node.name),
        shape: extents
            .map(|(extent, (before, after))| extent + before + after)
            .collect(),
        kind: TensorKind::Activation,
        ..tensor
    });
    let first = Node {
        name: format!("{} (padding)", node.name),
        op: Op::Pad { pads, value: 0.0 },
        inputs: vec![Some(x)],
        outputs: vec![padded],
        ..node.clone()
    };
    node.inputs[0] = Some(padded);
    net.set(id, node);
    net.insert_before(id, first);
    true
}
