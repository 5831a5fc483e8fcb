//! Operators that rearrange elements in blocks: each becomes reshapes, transposes, slices, paddings and concatenations.

use super::importer::{Importer, View};
use super::movement::axis_of;
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Op, TensorId};

/// An operation, and its result's shape.
pub(super) type Link = (Op, Vec<usize>);

impl Importer<'_, '_> {
    /// `[n, h, w, b b c]` as `[n, h b, w b, c]`.
    pub(super) fn depth_to_space(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, block) = (self.nhwc(view.input(0)?)?, block_size(view)?);
        let [n, h, w, c] = x;
        if c % (block * block) != 0 {
            return Err(Error::input(format!("{c} channels in blocks of {block} x {block}")));
        }
        let c = c / (block * block);
        let perm = vec![0, 1, 3, 2, 4, 5];
        self.chain(
            view,
            vec![
                (Op::Reshape, vec![n, h, w, block, block, c]),
                (Op::Transpose { perm }, vec![n, h, block, w, block, c]),
                (Op::Reshape, vec![n, h * block, w * block, c]),
            ],
        )
    }

    /// `[n, h b, w b, c]` as `[n, h, w, b b c]`.
    pub(super) fn space_to_depth(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, block) = (self.nhwc(view.input(0)?)?, block_size(view)?);
        let [n, h, w, c] = x;
        if h % block != 0 || w % block != 0 {
            return Err(Error::input(format!("{h} x {w} pixels in blocks of {block} x {block}")));
        }
        let (h, w) = (h / block, w / block);
        let perm = vec![0, 1, 3, 2, 4, 5];
        self.chain(
            view,
            vec![
                (Op::Reshape, vec![n, h, block, w, block, c]),
                (Op::Transpose { perm }, vec![n, h, w, block, block, c]),
                (Op::Reshape, vec![n, h, w, block * block * c]),
            ],
        )
    }

    /// Pads, then moves the positions within each block to the batch: how converters write dilated convolutions.
    pub(super) fn space_to_batch(&mut self, view: View<'_, '_>) -> Result<()> {
        let shape = self.shape(view.input(0)?)?;
        let (block, pads) = self.blocks(view, &shape)?;
        let mut padded = shape.clone();
        let mut all = vec![(0, 0); shape.len()];
        for (axis, &(before, after)) in pads.iter().enumerate() {
            padded[1 + axis] += before + after;
            all[1 + axis] = (before, after);
            if padded[1 + axis] % block[axis] != 0 {
                return Err(Error::input(format!(
                    "an extent of {} in blocks of {}",
                    padded[1 + axis],
                    block[axis]
                )));
            }
        }
        let value = self.stored_zero(view.output(0)?)?;
        let (m, rest) = (block.len(), &shape[1 + block.len()..]);
        let mut split = vec![shape[0]];
        for axis in 0..m {
            split.extend([padded[1 + axis] / block[axis], block[axis]]);
        }
        split.extend(rest);
        // Block positions first, then the batch, the blocks, and what is left.
        let perm: Vec<usize> = (0..m)
            .map(|i| 2 + 2 * i)
            .chain([0])
            .chain((0..m).map(|i| 1 + 2 * i))
            .chain(1 + 2 * m..split.len())
            .collect();
        let moved: Vec<usize> = perm.iter().map(|&axis| split[axis]).collect();
        let mut result = vec![shape[0] * block.iter().product::<usize>()];
        result.extend((0..m).map(|i| padded[1 + i] / block[i]));
        result.extend(rest);
        let mut links = Vec::new();
        if padded != shape {
            links.push((Op::Pad { pads: all, value }, padded));
        }
        links.extend([
            (Op::Reshape, split),
            (Op::Transpose { perm }, moved),
            (Op::Reshape, result),
        ]);
        self.chain(view, links)
    }

    /// The inverse of [`Self::space_to_batch`], cropping instead of padding.
    pub(super) fn batch_to_space(&mut self, view: View<'_, '_>) -> Result<()> {
        let shape = self.shape(view.input(0)?)?;
        let (block, crops) = self.blocks(view, &shape)?;
        let (m, positions) = (block.len(), block.iter().product::<usize>());
        if shape[0] % positions != 0 {
            return Err(Error::input(format!("a batch of {} in blocks of {block:?}", shape[0])));
        }
        let (batch, rest) = (shape[0] / positions, &shape[1 + m..]);
        let split: Vec<usize> = block
            .iter()
            .copied()
            .chain([batch])
            .chain(shape[1..].iter().copied())
            .collect();
        let mut perm = vec![m];
        for axis in 0..m {
            perm.extend([m + 1 + axis, axis]);
        }
        perm.extend(1 + 2 * m..split.len());
        let moved: Vec<usize> = perm.iter().map(|&axis| split[axis]).collect();
        let mut joined = vec![batch];
        joined.extend((0..m).map(|i| shape[1 + i] * block[i]));
        joined.extend(rest);
        let (mut begin, mut cropped) = (vec![0; joined.len()], joined.clone());
        for (axis, &(before, after)) in crops.iter().enumerate() {
            begin[1 + axis] = before;
            cropped[1 + axis] = joined[1 + axis]
                .checked_sub(before + after)
                .filter(|&n| n > 0)
                .ok_or_else(|| {
                    Error::input(format!(
                        "crops of {before} and {after} from an extent of {}",
                        joined[1 + axis]
                    ))
                })?;
        }
        let mut links = vec![
            (Op::Reshape, split),
            (Op::Transpose { perm }, moved),
            (Op::Reshape, joined.clone()),
        ];
        if cropped != joined {
            let stride = vec![1; begin.len()];
            links.push((Op::Slice { begin, stride }, cropped));
        }
        self.chain(view, links)
    }

    /// A padding with what lies inside the edge; where the mode is SYMMETRIC, the edge itself is the first.
    pub(super) fn mirror_pad(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let mut shape = self.shape(x)?;
        let pads = self.pairs(view.input(1)?, "paddings", shape.len())?;
        let edge = match view.option::<i8>(0, 0)? {
            mode @ (0 | 1) => usize::from(mode == 1),
            other => {
                return Err(Error::input(format!("option Mode is {other}")).expected("0 (REFLECT) or 1 (SYMMETRIC)"));
            }
        };
        let mut from = self.operand(x)?;
        for (axis, &(before, after)) in pads.iter().enumerate().filter(|(_, pads)| **pads != (0, 0)) {
            let extent = shape[axis];
            if before.max(after) + 1 > extent + edge {
                return Err(Error::input(format!(
                    "it mirrors {} of an extent of {extent}",
                    before.max(after)
                )));
            }
            let mut mirrored = |side: &str, first: usize, count: usize| -> Result<Option<TensorId>> {
                let mut part = shape.clone();
                part[axis] = count;
                let (mut begin, mut stride) = (vec![0; shape.len()], vec![1; shape.len()]);
                (begin[axis], stride[axis]) = (first, -1);
                let suffix = format!("/{axis}{side}");
                self.then(view, &suffix, y, (Op::Slice { begin, stride }, part), vec![Some(from)])
                    .map(Some)
            };
            let mut parts = Vec::new();
            if before > 0 {
                parts.push(mirrored("/before", before - edge, before)?);
            }
            parts.push(Some(from));
            if after > 0 {
                parts.push(mirrored("/after", extent + edge - 2, after)?);
            }
            shape[axis] += before + after;
            let activation = Activation::None;
            let link = (Op::Concat { axis, activation }, shape.clone());
            from = self.then(view, &format!("/{axis}"), y, link, parts)?;
        }
        let y = self.output(y)?;
        self.node(view, "", Op::Identity, vec![Some(from)], vec![y]);
        Ok(())
    }

    /// Axes back to front.
    pub(super) fn reverse(&mut self, view: View<'_, '_>) -> Result<()> {
        let shape = self.shape(view.input(0)?)?;
        let (mut begin, mut stride) = (vec![0; shape.len()], vec![1; shape.len()]);
        for axis in self.integers(view.input(1)?, "axes")? {
            let axis = axis_of(axis, shape.len())?;
            (begin[axis], stride[axis]) = (shape[axis] - 1, -1);
        }
        self.chain(view, vec![(Op::Slice { begin, stride }, shape)])
    }

    /// Applies `links` one after the other to operand 0; the last one makes result 0.
    pub(super) fn chain(&mut self, view: View<'_, '_>, mut links: Vec<Link>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let Some((op, shape)) = links.pop() else {
            return Err(Error::internal("a chain without links"));
        };
        if shape != self.shape(y)? {
            return Err(
                Error::input(format!("result `{}` has shape {:?}", self.info(y).name, self.shape(y)?))
                    .expected(format!("{shape:?}")),
            );
        }
        let from = self.links(view, x, y, links)?;
        let y = self.output(y)?;
        self.node(view, "", op, vec![Some(from)], vec![y]);
        Ok(())
    }

    /// Applies `links` one after the other to `x`; results are quantised like `like`.
    pub(super) fn links(&mut self, view: View<'_, '_>, x: usize, like: usize, links: Vec<Link>) -> Result<TensorId> {
        let mut from = self.operand(x)?;
        for (position, link) in links.into_iter().enumerate() {
            from = self.then(view, &format!("/{position}"), like, link, vec![Some(from)])?;
        }
        Ok(from)
    }

    /// A node between two others of one operator: its result, quantised like `like`.
    pub(super) fn then(
        &mut self,
        view: View<'_, '_>,
        suffix: &str,
        like: usize,
        (op, shape): Link,
        inputs: Vec<Option<TensorId>>,
    ) -> Result<TensorId> {
        let to = self.temporary(&format!("{}#{}{suffix}", view.kind, view.index), like, &shape)?;
        self.node(view, suffix, op, inputs, vec![to]);
        Ok(to)
    }

    /// A four-dimensional tensor's extents.
    pub(super) fn nhwc(&self, index: usize) -> Result<[usize; 4]> {
        let shape = self.shape(index)?;
        <[usize; 4]>::try_from(shape.as_slice())
            .map_err(|_| Error::input(format!("`{}` has shape {shape:?}", self.info(index).name)).expected("four axes"))
    }

    /// Returns the stored value of zero.
    pub(super) fn stored_zero(&mut self, index: usize) -> Result<f32> {
        let quant = self.quant(index)?;
        Ok(match quant {
            Some(quant) if self.dtype(index)? != DType::F32 => quant.zero_point[0] as f32,
            _ => 0.0,
        })
    }

    /// Pairs of a constant operand, such as paddings before and after each axis.
    pub(super) fn pairs(&self, index: usize, what: &str, count: usize) -> Result<Vec<(usize, usize)>> {
        let values = self.integers(index, what)?;
        if values.len() != 2 * count || values.iter().any(|p| !(0..1 << 24).contains(p)) {
            return Err(Error::input(format!("{what} {values:?}")).expected(format!("{count} pairs, none negative")));
        }
        Ok(values.chunks_exact(2).map(|p| (p[0] as usize, p[1] as usize)).collect())
    }

    /// Block extents of the axes behind the first, and what is padded or cropped there.
    pub(super) fn blocks(&self, view: View<'_, '_>, shape: &[usize]) -> Result<Blocks> {
        let blocks = self.integers(view.input(1)?, "block shape")?;
        let block: Vec<usize> = blocks.iter().filter_map(|&b| usize::try_from(b).ok()).collect();
        let known = block.len() == blocks.len() && block.iter().all(|b| (1..1 << 16).contains(b));
        if !known || block.is_empty() || block.len() >= shape.len() {
            return Err(Error::input(format!("blocks {blocks:?} of {shape:?}"))
                .expected("one positive extent for each of some axes behind the first"));
        }
        let pairs = self.pairs(view.input(2)?, "paddings or crops", block.len())?;
        Ok((block, pairs))
    }
}

/// Extents of blocks, and what is padded or cropped before and behind each of their axes.
pub(super) type Blocks = (Vec<usize>, Vec<(usize, usize)>);

pub(super) fn block_size(view: View<'_, '_>) -> Result<usize> {
    match view.option::<i32>(0, 0)? {
        size @ 1..=0xFFFF => Ok(size as usize),
        other => Err(Error::input(format!("block size {other}")).expected("1 to 65535")),
    }
}
