//! Attention over states.

use arenite::Step;
use arenite::ops::attention::AttentionF32;

use super::context::{Lower, fit, input, output};
use crate::error::{Error, Result};
use crate::graph::{DType, Node};
use crate::program::Place;

/// Lowers attention of f32.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, scale: f32) -> Result<()> {
    let [query, keys, values, position] = [0, 1, 2, 3].map(|index| input(node, index));
    let (query, keys, values, position, y) = (query?, keys?, values?, position?, output(node)?);
    let places = [query, keys, values, position].map(|id| lower.place(id));
    let [of_query, of_keys, of_values, of_position] = places;
    let graph = lower.graph();
    let (tq, tk) = (graph.tensor(query), graph.tensor(keys));
    if let Some(other) = [query, keys, values]
        .map(|id| graph.tensor(id))
        .into_iter()
        .find(|t| t.dtype != DType::F32)
    {
        return Err(Error::internal(format!(
            "attention of {} (`{}`)",
            other.dtype.name(),
            other.name
        )));
    }
    let (&[heads, width], &[kv_heads, capacity, _]) = (tq.shape.as_slice(), tk.shape.as_slice()) else {
        return Err(Error::internal("attention of other shapes than were checked"));
    };
    let step = AttentionF32 {
        output: Place::Tensor(y, 0),
        query: of_query?,
        keys: of_keys?,
        values: of_values?,
        position: of_position?,
        scratch: Place::Scratch,
        heads: fit(heads, "the number of heads")?,
        kv_heads: fit(kv_heads, "the number of heads of keys and values")?,
        width: fit(width, "the width of a head")?,
        capacity: fit(capacity, "the capacity")?,
        scale,
    };
    let macs = 2 * (heads * width * capacity) as u64;
    lower.push(node, "attention", Step::AttentionF32(step), macs);
    Ok(())
}
