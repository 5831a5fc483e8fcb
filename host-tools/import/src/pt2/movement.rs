//! Calls that move elements.

use super::call::{Call, Made};
use super::program::{Arg, Whole};
use crate::error::Result;
use crate::onnx::{Attribute, ElementType};

/// The operand in another shape, of which one extent may follow from the others.
pub(super) fn reshape(call: &mut Call<'_>) -> Made {
    let (x, name) = (call.x("self")?, if call.has("shape") { "shape" } else { "size" });
    let shape = call.sizes(name)?;
    Ok(call.add("Reshape", &[&x, &shape], &[("allowzero", Attribute::Int(1))]))
}

/// The operand in the shape of another one.
pub(super) fn reshape_as(call: &mut Call<'_>) -> Made {
    let (x, other) = (call.x("self")?, call.x("other")?);
    let shape = call.add("Shape", &[&other], &[]);
    Ok(call.add("Reshape", &[&x, &shape], &[]))
}

pub(super) fn flatten(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (from, to) = (call.axis("start_dim", 0, rank)?, call.axis("end_dim", -1, rank)?);
    let x = call.x("self")?;
    // 0 keeps the extent that the operand has.
    let mut shape = vec![0; from];
    shape.push(-1);
    for axis in to + 1..rank {
        shape.push(call.extent("self", axis)?);
    }
    Ok(call.reshaped(&x, &shape))
}

/// An axis as several.
pub(super) fn unflatten(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let axis = call.axis("dim", 0, rank)?;
    let mut shape = vec![0; axis];
    shape.extend(call.ints("sizes")?.unwrap_or_default());
    for axis in axis + 1..rank {
        shape.push(call.extent("self", axis)?);
    }
    let x = call.x("self")?;
    Ok(call.reshaped(&x, &shape))
}

/// Without axes of one element: of those that are named, the others stay as they are.
pub(super) fn squeeze(call: &mut Call<'_>) -> Made {
    let (rank, x) = (call.rank("self")?, call.x("self")?);
    let named = call.axes("dim", rank)?;
    let all = named.is_none();
    let mut axes = Vec::new();
    for axis in named.unwrap_or_else(|| (0..rank).collect()) {
        // An extent that is not stated is not one that goes.
        let extent = call.extent("self", axis);
        if (all || rank > 0) && extent.is_ok_and(|extent| extent == 1) {
            axes.push(axis as i64);
        }
    }
    Ok(if axes.is_empty() { x } else { call.squeezed(&x, &axes) })
}

pub(super) fn unsqueeze(call: &mut Call<'_>) -> Made {
    let (x, axis) = (call.x("self")?, call.int("dim", 0)?);
    Ok(call.unsqueezed(&x, &[axis]))
}

pub(super) fn permute(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (x, axes) = (call.x("self")?, call.axes("dims", rank)?.unwrap_or_default());
    Ok(call.transposed(&x, &axes))
}

/// Two axes in each other's place.
pub(super) fn transpose(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let mut perm: Vec<usize> = (0..rank).collect();
    let [a, b] = if call.has("dim0") {
        ["dim0", "dim1"]
    } else {
        ["axis0", "axis1"]
    };
    let (a, b) = (call.axis(a, 0, rank)?, call.axis(b, 1, rank)?);
    let x = call.x("self")?;
    if rank > 0 {
        perm.swap(a, b);
    }
    Ok(call.transposed(&x, &perm))
}

/// A matrix, or the matrices of the last two axes, turned; all axes turned of `numpy_T`.
pub(super) fn turned(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let mut perm: Vec<usize> = (0..rank).collect();
    if call.node.target.contains("numpy_T") {
        perm.reverse();
    } else if let [.., a, b] = perm.as_mut_slice() {
        std::mem::swap(a, b);
    }
    let x = call.x("self")?;
    Ok(call.transposed(&x, &perm))
}

pub(super) fn movedim(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (from, to) = (
        call.axes("source", rank)?.unwrap_or_default(),
        call.axes("destination", rank)?.unwrap_or_default(),
    );
    let mut perm: Vec<Option<usize>> = vec![None; rank];
    for (&from, &to) in from.iter().zip(&to) {
        perm[to] = Some(from);
    }
    let mut others = (0..rank).filter(|axis| !from.contains(axis));
    let perm: Vec<usize> = perm
        .into_iter()
        .filter_map(|axis| axis.or_else(|| others.next()))
        .collect();
    let x = call.x("self")?;
    Ok(call.transposed(&x, &perm))
}

/// Repeated along axes of one element; -1 keeps an extent.
pub(super) fn expand(call: &mut Call<'_>) -> Made {
    let x = call.x("self")?;
    let sizes = match call.node.argument("size") {
        Some(Arg::Ints(sizes)) => sizes.clone(),
        _ => return Err(call.refused("size", "a list of integers")),
    };
    let kept = |size: Whole| {
        if size == Whole::Known(-1) {
            Whole::Known(1)
        } else {
            size
        }
    };
    let sizes: Vec<Whole> = sizes.into_iter().map(kept).collect();
    let shape = call.whole_values(&sizes)?;
    Ok(call.add("Expand", &[&x, &shape], &[]))
}

pub(super) fn expand_as(call: &mut Call<'_>) -> Made {
    let (x, other) = (call.x("self")?, call.x("other")?);
    let shape = call.add("Shape", &[&other], &[]);
    Ok(call.add("Expand", &[&x, &shape], &[]))
}

/// The operand several times along each axis, new ones in front among them.
pub(super) fn repeat(call: &mut Call<'_>) -> Made {
    let name = if call.has("repeats") { "repeats" } else { "dims" };
    let (rank, mut x) = (call.rank("self")?, call.x("self")?);
    let mut counts = call.ints(name)?.unwrap_or_default();
    if counts.len() < rank {
        counts.splice(0..0, vec![1; rank - counts.len()]);
    }
    let new: Vec<i64> = (0..(counts.len() - rank) as i64).collect();
    if !new.is_empty() {
        x = call.unsqueezed(&x, &new);
    }
    let counts = call.whole_list(&counts);
    Ok(call.add("Tile", &[&x, &counts], &[]))
}

/// Each element of an axis several times.
pub(super) fn repeat_interleave(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, count, x) = (call.axis("dim", 0, rank)?, call.int("repeats", 1)?, call.x("self")?);
    let lifted = call.unsqueezed(&x, &[axis as i64 + 1]);
    let mut counts = vec![1; rank + 1];
    counts[axis + 1] = count;
    let counts = call.whole_list(&counts);
    let repeated = call.add("Tile", &[&lifted, &counts], &[]);
    let mut shape = vec![0; axis];
    shape.push(-1);
    for axis in axis + 1..rank {
        shape.push(call.extent("self", axis)?);
    }
    Ok(call.reshaped(&repeated, &shape))
}

pub(super) fn cat(call: &mut Call<'_>) -> Made {
    let (operands, axis) = (call.list("tensors")?, call.int("dim", 0)?);
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    Ok(call.add("Concat", &operands, &[("axis", Attribute::Int(axis))]))
}

pub(super) fn stack(call: &mut Call<'_>) -> Made {
    let axis = call.int("dim", 0)?;
    let mut operands = Vec::new();
    for x in call.list("tensors")? {
        operands.push(call.unsqueezed(&x, &[axis]));
    }
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    Ok(call.add("Concat", &operands, &[("axis", Attribute::Int(axis))]))
}

/// The results of a call that gives a list.
fn results(call: &Call<'_>) -> usize {
    match call.node.outputs.first() {
        Some(Arg::Tensors(names)) => names.len(),
        _ => call.node.outputs.len(),
    }
}

/// Parts along an axis: of a length, of several lengths, or so many.
pub(super) fn split(call: &mut Call<'_>) -> Result<Vec<String>> {
    let rank = call.rank("self")?;
    let (axis, x, count) = (call.axis("dim", 0, rank)?, call.x("self")?, results(call));
    let sizes = if call.has("split_size") {
        "split_size"
    } else {
        "split_sizes"
    };
    let attributes = [("axis", Attribute::Int(axis as i64))];
    let lengths = match call.node.argument(sizes) {
        Some(Arg::Ints(_)) => call.ints(sizes)?.unwrap_or_default(),
        given => {
            let extent = call.extent("self", axis)?;
            let given = given.is_some();
            let chunks = call
                .int(if call.has("chunks") { "chunks" } else { "sections" }, 1)?
                .max(1);
            let tensors = call.node.target.contains("tensor_split");
            let each = if given {
                call.int(sizes, 1)?
            } else {
                extent.saturating_add(chunks - 1) / chunks
            };
            let length = |at: i64| {
                if tensors {
                    // The first ones have one more where they cannot all have the same.
                    extent / chunks + i64::from(at < extent % chunks)
                } else {
                    each.min(extent.saturating_sub(at.saturating_mul(each)).max(0))
                }
            };
            (0..count as i64).map(length).collect()
        }
    };
    let lengths = call.whole_list(&lengths);
    Ok(call.adds("Split", &[&x, &lengths], &attributes, count))
}

/// The elements of an axis one by one.
pub(super) fn unbind(call: &mut Call<'_>) -> Result<Vec<String>> {
    let rank = call.rank("self")?;
    let (axis, x, count) = (call.axis("dim", 0, rank)? as i64, call.x("self")?, results(call));
    let lengths = call.whole_list(&vec![1; count]);
    let parts = call.adds("Split", &[&x, &lengths], &[("axis", Attribute::Int(axis))], count);
    Ok(parts.iter().map(|part| call.squeezed(part, &[axis])).collect())
}

pub(super) fn slice(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, x, step) = (call.axis("dim", 0, rank)?, call.x("self")?, call.int("step", 1)?);
    let begin = if call.has("start") {
        call.sizes("start")?
    } else {
        call.whole_list(&[0])
    };
    let end = if call.has("end") {
        call.sizes("end")?
    } else {
        call.whole_list(&[i64::MAX])
    };
    let (axes, steps) = (call.whole_list(&[axis as i64]), call.whole_list(&[step]));
    Ok(call.add("Slice", &[&x, &begin, &end, &axes, &steps], &[]))
}

/// One element of an axis, which goes.
pub(super) fn select(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, x, index) = (call.axis("dim", 0, rank)?, call.x("self")?, call.int("index", 0)?);
    let end = if index == -1 { i64::MAX } else { index.saturating_add(1) };
    let part = call.sliced(&x, axis, [index, end, 1]);
    Ok(call.squeezed(&part, &[axis as i64]))
}

pub(super) fn narrow(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, x) = (call.axis("dim", 0, rank)?, call.x("self")?);
    let (start, length) = (call.int("start", 0)?, call.int("length", 0)?);
    let end = if start < 0 && start.saturating_add(length) == 0 {
        i64::MAX
    } else {
        start.saturating_add(length)
    };
    Ok(call.sliced(&x, axis, [start, end, 1]))
}

pub(super) fn index_select(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, x, index) = (call.axis("dim", 0, rank)?, call.x("self")?, call.x("index")?);
    Ok(call.add("Gather", &[&x, &index], &[("axis", Attribute::Int(axis as i64))]))
}

/// `x[:, index]`: one axis by a tensor of indices.
pub(super) fn index(call: &mut Call<'_>) -> Made {
    let (x, indices) = (call.x("self")?, call.optionals("indices")?);
    let mut given = indices
        .iter()
        .enumerate()
        .filter_map(|(axis, index)| Some((axis, index.as_ref()?)));
    match (given.next(), given.next()) {
        (Some((axis, index)), None) if call.elem("indices")? != ElementType::BOOL => {
            Ok(call.add("Gather", &[&x, index], &[("axis", Attribute::Int(axis as i64))]))
        }
        _ => Err(call.refused("indices", "integers for one axis")),
    }
}

/// Rows of a table.
pub(super) fn embedding(call: &mut Call<'_>) -> Made {
    let (table, indices) = (call.x("weight")?, call.x("indices")?);
    Ok(call.add("Gather", &[&table, &indices], &[]))
}

pub(super) fn gather(call: &mut Call<'_>) -> Made {
    let name = if call.has("index") { "index" } else { "indices" };
    let (x, index, axis) = (call.x("self")?, call.x(name)?, call.int("dim", 0)?);
    Ok(call.add("GatherElements", &[&x, &index], &[("axis", Attribute::Int(axis))]))
}

/// Axes in the other direction.
pub(super) fn flip(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let mut x = call.x("self")?;
    for axis in call.axes("dims", rank)?.unwrap_or_default() {
        x = call.sliced(&x, axis, [-1, i64::MIN + 1, -1]);
    }
    Ok(x)
}

/// Axes turned round: what leaves at the end comes in at the front.
pub(super) fn roll(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (mut x, shifts) = (call.x("self")?, call.ints("shifts")?.unwrap_or_default());
    let Some(axes) = call.axes("dims", rank)?.filter(|axes| axes.len() == shifts.len()) else {
        return Err(call.refused("dims", "an axis for each shift"));
    };
    for (axis, shift) in axes.into_iter().zip(shifts) {
        let extent = call.extent("self", axis)?.max(1);
        let cut = shift.saturating_neg().rem_euclid(extent);
        if cut > 0 {
            let (front, back) = (
                call.sliced(&x, axis, [0, cut, 1]),
                call.sliced(&x, axis, [cut, i64::MAX, 1]),
            );
            x = call.add("Concat", &[&back, &front], &[("axis", Attribute::Int(axis as i64))]);
        }
    }
    Ok(x)
}

/// A padding of the last axes, by a value or by the operand's own elements.
pub(super) fn pad(call: &mut Call<'_>) -> Made {
    let (rank, x) = (call.rank("self")?, call.x("self")?);
    let name = if call.has("pad") { "pad" } else { "padding" };
    let given = call.ints(name)?.unwrap_or_default();
    if given.len() % 2 != 0 || given.len() > 2 * rank {
        return Err(call.refused(name, "two numbers for each of the last axes"));
    }
    let (called, _) = super::names::called(&call.node.target);
    let mode = match called {
        "reflection_pad1d" | "reflection_pad2d" | "reflection_pad3d" => "reflect".to_string(),
        "replication_pad1d" | "replication_pad2d" | "replication_pad3d" => "replicate".to_string(),
        _ => call.text("mode", "constant")?,
    };
    let mode = match mode.as_str() {
        "replicate" => "edge",
        "circular" => "wrap",
        "reflect" => "reflect",
        "constant" => "constant",
        _ => return Err(call.refused("mode", "constant, reflect, replicate or circular")),
    };
    let mut pads = vec![0; 2 * rank];
    for (at, pair) in given.chunks_exact(2).enumerate() {
        let axis = rank - 1 - at;
        (pads[axis], pads[axis + rank]) = (pair[0], pair[1]);
    }
    let elem = call.result_elem();
    let value = call.float("value", 0.0)?;
    let (pads, value) = (call.whole_list(&pads), call.number(value, elem));
    Ok(call.add("Pad", &[&x, &pads, &value], &[("mode", Attribute::Text(mode))]))
}

pub(super) fn pixel_shuffle(call: &mut Call<'_>) -> Made {
    let (x, block) = (call.x("self")?, call.int("upscale_factor", 1)?);
    Ok(call.add(
        "DepthToSpace",
        &[&x],
        &[("blocksize", Attribute::Int(block)), ("mode", Attribute::Text("CRD"))],
    ))
}

pub(super) fn pixel_unshuffle(call: &mut Call<'_>) -> Made {
    let (x, block) = (call.x("self")?, call.int("downscale_factor", 1)?);
    Ok(call.add(
        "SpaceToDepth",
        &[&x],
        &[("blocksize", Attribute::Int(block)), ("mode", Attribute::Text("CRD"))],
    ))
}

/// Channels of groups, dealt out in turn.
pub(super) fn channel_shuffle(call: &mut Call<'_>) -> Made {
    let (shape, groups, x) = (call.shape("self")?, call.int("groups", 1)?, call.x("self")?);
    let [batch, channels, spatial @ ..] = shape.as_slice() else {
        return Err(call.refused("self", "batch and channels"));
    };
    if groups < 1 {
        return Err(call.refused("groups", "at least 1"));
    }
    let split: Vec<i64> = [&[*batch, groups, channels / groups], spatial].concat();
    let x = call.reshaped(&x, &split);
    let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..split.len()).collect();
    let x = call.transposed(&x, &perm);
    Ok(call.reshaped(&x, &shape))
}

/// Other elements in a part of an axis.
pub(super) fn slice_scatter(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, x, source) = (call.axis("dim", 0, rank)?, call.x("self")?, call.x("src")?);
    if call.int("step", 1)? != 1 {
        return Err(call.refused("step", "1"));
    }
    let extent = call.extent("self", axis)?;
    let place = |index: i64| if index < 0 { index.saturating_add(extent) } else { index }.clamp(0, extent);
    let (begin, end) = (place(call.int("start", 0)?), place(call.int("end", i64::MAX)?));
    scattered(call, axis, [&x, &source], [begin, end, extent])
}

/// Other elements in the place of one of an axis.
pub(super) fn select_scatter(call: &mut Call<'_>) -> Made {
    let rank = call.rank("self")?;
    let (axis, x, source) = (call.axis("dim", 0, rank)?, call.x("self")?, call.x("src")?);
    let (extent, index) = (call.extent("self", axis)?, call.int("index", 0)?);
    let index = if index < 0 { index.saturating_add(extent) } else { index };
    let source = call.unsqueezed(&source, &[axis as i64]);
    scattered(call, axis, [&x, &source], [index, index.saturating_add(1), extent])
}

fn scattered(call: &mut Call<'_>, axis: usize, [x, source]: [&str; 2], [begin, end, extent]: [i64; 3]) -> Made {
    let mut parts = Vec::new();
    if begin > 0 {
        parts.push(call.sliced(x, axis, [0, begin, 1]));
    }
    parts.push(source.to_string());
    if end < extent {
        parts.push(call.sliced(x, axis, [end, i64::MAX, 1]));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(call.add("Concat", &parts, &[("axis", Attribute::Int(axis as i64))]))
}
