//! Channels that cannot change the output, found and removed; exactly, for integer networks of int8.
//!
//! `ranges` finds in the device's own arithmetic what each channel can hold; `live` goes from the outputs back to what they depend on, where channels
//! that stand and fall together are one class; `rewrite` cuts what is left over: a constant goes into the biases behind it, a channel that nobody reads
//! goes without a trace. `check` then derives every removed constant and every new bias once more, in code of its own.

mod check;
mod flow;
mod live;
mod products;
mod ranges;
mod rewrite;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use crate::report::Removed;

use crate::error::{Error, Result};
use crate::graph::{Graph, check::check as check_graph};
use live::Classes;
use products::Products;
use ranges::Ranges;

/// Removes the dead channels of `graph`. Where some of a layer's go, as many stay as make a multiple of `block`: kernels take several at a time, and what is
/// left over would cost more than a filler.
///
/// # Errors
/// [`crate::error::ErrorKind::Internal`] where the check finds another network.
pub fn remove(graph: &mut Graph, block: usize) -> Result<Removed> {
    let ranges = Ranges::of(graph);
    let classes = Classes::of(graph, &ranges, block);
    if !classes.any_dead() {
        return Ok(Removed::default());
    }
    let mut pruned = graph.clone();
    rewrite::rewrite(&mut pruned, &classes, &ranges)?;
    let wrong = |e: Error| {
        Error::internal(format!("removing dead channels left another network: {e}"))
            .help("please report it; --keep-dead-channels packs without")
    };
    crate::passes::name_apart(&mut pruned);
    check_graph(&pruned).map_err(wrong)?;
    check::check(graph, &pruned, &ranges.claims()).map_err(wrong)?;
    let (before, behind) = (Size::of(graph), Size::of(&pruned));
    *graph = pruned;
    Ok(Removed {
        channels: before.channels - behind.channels,
        bytes: before.bytes - behind.bytes,
        macs: before.macs - behind.macs,
    })
}

/// Size of the layers.
#[derive(Default)]
struct Size {
    channels: u64,
    bytes: u64,
    macs: u64,
}

impl Size {
    fn of(graph: &Graph) -> Self {
        let mut size = Self::default();
        let batch = graph.inputs.first().and_then(|&id| graph.tensor(id).shape.first());
        let batch = batch.map_or(1, |&n| n.max(1));
        for layer in graph.nodes.iter().filter_map(|node| Products::of(graph, node)) {
            let y = graph.tensor(layer.y);
            size.channels += layer.outputs() as u64;
            size.bytes += (graph.tensor(layer.w).bytes() + 4 * layer.outputs()) as u64;
            size.macs += (y.elements() / batch * layer.taps.len() * layer.inputs) as u64;
        }
        size
    }
}
