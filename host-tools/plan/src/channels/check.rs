//! The second opinion: every claim of the analysis, and every layer of the pruned network, from the original weights. It shares nothing with the analysis
//! but the network and the numbers of quantised operators (`lower`).
//!
//! Claims are a certificate: a node's follow from those of its operands alone, so that each node is checked by itself. Windows are laid at every
//! position, elements of every kind of place are followed, and requantisation is written as its definition says, in exact integers.

mod definition;
mod elements;
mod window;

use self::elements::{derived, sources};
use self::window::Window;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, TensorId, TensorKind};
use crate::metadata::Channel;

/// The least and the largest stored value of each channel of each tensor; of those that nobody followed, none.
pub(super) type Claims = [Vec<(i32, i32)>];

/// Checks that `pruned` computes what `whole` does.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] naming the operator and the channel.
pub(super) fn check(whole: &Graph, pruned: &Graph, claims: &Claims) -> Result<()> {
    for (tensor, claims) in whole.tensors.iter().zip(claims) {
        let given = matches!(tensor.kind, TensorKind::Input | TensorKind::State(_));
        if given && claims.iter().any(|&claim| claim != ALL) {
            let message = format!("`{}` is claimed to hold less than its type", tensor.name);
            return Err(Error::input(message));
        }
    }
    for node in &whole.nodes {
        certificate(whole, node, claims).map_err(|e| e.at(format!("`{}`", node.name)))?;
    }
    let comparison = Comparison { whole, pruned, claims };
    for &id in whole.inputs.iter().chain(&whole.outputs) {
        comparison.untouched(id)?;
    }
    if whole.nodes.len() != pruned.nodes.len() {
        return Err(Error::input("operators are missing"));
    }
    for (node, after) in whole.nodes.iter().zip(&pruned.nodes) {
        comparison
            .node(node, after)
            .map_err(|e| e.at(format!("`{}`", node.name)))?;
    }
    Ok(())
}

const ALL: (i32, i32) = (-128, 127);

/// Checks that the claims about a node's result follow from those about its operands.
fn certificate(graph: &Graph, node: &Node, claims: &Claims) -> Result<()> {
    for &y in &node.outputs {
        let found = match Window::of(graph, node) {
            Some(window) => Some(window.derived(claims)),
            None => derived(graph, node, claims),
        };
        for (channel, &(low, high)) in claims[y.0].iter().enumerate() {
            let (least, most) = found.as_ref().and_then(|f| f.get(channel).copied()).unwrap_or(ALL);
            if least < low || most > high {
                let name = &graph.tensor(y).name;
                let message = format!("channel {channel} of `{name}` may hold {least} to {most}");
                return Err(Error::input(message).expected(format!("{low} to {high}, as claimed")));
            }
        }
    }
    Ok(())
}

struct Comparison<'g> {
    whole: &'g Graph,
    pruned: &'g Graph,
    claims: &'g Claims,
}

impl Comparison<'_> {
    /// Returns the fate of each channel of a tensor of the whole network.
    fn fates(&self, id: TensorId) -> Vec<Channel> {
        let tensor = self.whole.tensor(id);
        match self.pruned.channels.get(&tensor.name) {
            Some(channels) => channels.each().collect(),
            None => vec![Channel::Kept; tensor.shape.last().copied().unwrap_or(1)],
        }
    }

    fn untouched(&self, id: TensorId) -> Result<()> {
        let name = &self.whole.tensor(id).name;
        if self.pruned.channels.contains_key(name) {
            return Err(Error::input(format!(
                "channels of `{name}` went, and all of them are needed"
            )));
        }
        Ok(())
    }

    /// The value that a channel always has.
    fn constant(&self, id: TensorId, channel: usize) -> Option<i32> {
        let &(low, high) = self.claims[id.0].get(channel)?;
        (low == high).then_some(low)
    }

    /// A channel that holds what it did, and not always the same, is computed from such.
    fn node(&self, node: &Node, after: &Node) -> Result<()> {
        if node.name != after.name {
            return Err(Error::input(format!("`{}` stands in its place", after.name)));
        }
        for &y in &node.outputs {
            for (channel, fate) in self.fates(y).into_iter().enumerate() {
                if let Channel::Constant(value) = fate
                    && self.constant(y, channel) != Some(value)
                {
                    let name = &self.whole.tensor(y).name;
                    return Err(Error::input(format!(
                        "channel {channel} of `{name}` is not always {value}"
                    )));
                }
            }
        }
        if let Some(window) = Window::of(self.whole, node) {
            let cut = Window::of(self.pruned, after);
            let cut = cut.ok_or_else(|| Error::input("it is no layer of constant weights any more"))?;
            return self.layer(&node.name, &window, &cut);
        }
        let operands = || node.inputs.iter().flatten().chain(&node.outputs).copied();
        let (Some(sources), &[y]) = (sources(self.whole, node), &node.outputs[..]) else {
            return operands().try_for_each(|id| self.untouched(id));
        };
        for (channel, fate) in self.fates(y).into_iter().enumerate() {
            if fate != Channel::Kept || self.constant(y, channel).is_some() {
                continue;
            }
            for &(x, c) in sources.of(channel) {
                if self.fates(x).get(c) != Some(&Channel::Kept) {
                    return Err(self.needed(x, c));
                }
            }
        }
        Ok(())
    }

    fn needed(&self, x: TensorId, channel: usize) -> Error {
        let name = &self.whole.tensor(x).name;
        Error::input(format!("channel {channel} of `{name}` is needed, and went"))
    }

    /// The cut weights and the new biases of a layer.
    fn layer(&self, name: &str, window: &Window, cut: &Window) -> Result<()> {
        let (from, to) = (self.fates(window.x), self.fates(window.y));
        let (kept_in, kept_out) = (in_memory(&from), in_memory(&to));
        let inputs = if window.is_depthwise() { 1 } else { kept_in.len() };
        if (cut.inputs(), cut.outputs()) != (inputs, kept_out.len()) {
            return Err(Error::input(format!("{} to {} channels", cut.inputs(), cut.outputs()))
                .expected(format!("{inputs} to {}", kept_out.len())));
        }
        for (row, &output) in kept_out.iter().enumerate() {
            let settled = to[output] == Channel::Filler || self.constant(window.y, output).is_some();
            let same = if settled && !window.is_depthwise() && cut.is_zero(row) {
                self.settled(window, cut, row, output)
            } else if window.is_depthwise() {
                self.depthwise(window, cut, [row, output], &kept_in)
            } else {
                self.dense(window, cut, [row, output], (&from, settled))
            };
            same.map_err(|e| e.at(format!("`{name}`, channel {output}")))?;
        }
        Ok(())
    }

    /// A channel of a bias alone holds what is claimed of it.
    fn settled(&self, window: &Window, cut: &Window, row: usize, output: usize) -> Result<()> {
        let (low, high) = self.claims[window.y.0].get(output).copied().unwrap_or(ALL);
        match cut.requantised(row, cut.bias(row)) {
            Some(held) if low <= held && held <= high => Ok(()),
            held => Err(Error::input(format!("it holds {held:?}")).expected(format!("{low} to {high}"))),
        }
    }

    fn depthwise(&self, window: &Window, cut: &Window, [row, output]: [usize; 2], kept_in: &[usize]) -> Result<()> {
        let input = window.input(output, 0);
        if kept_in.get(cut.input(row, 0)) != Some(&input) {
            return Err(self.needed(window.x, input));
        }
        let fates = (self.fates(window.x)[input], self.fates(window.y)[output]);
        if fates == (Channel::Filler, Channel::Kept) && self.constant(window.y, output).is_none() {
            return Err(self.needed(window.x, input));
        }
        if cut.column(row, 0) != window.column(output, 0) || cut.bias(row) != window.bias(output) {
            return Err(Error::input("its weights or its bias are others"));
        }
        Ok(())
    }

    /// Channels that stay keep their weights; what those that went contributed, at every position of the window, is in the bias.
    fn dense(
        &self,
        window: &Window,
        cut: &Window,
        [row, output]: [usize; 2],
        (from, settled): (&[Channel], bool),
    ) -> Result<()> {
        let mut left = vec![0; window.positions()];
        let mut at = 0;
        for (c, &fate) in from.iter().enumerate() {
            let column = window.column(output, c);
            if matches!(fate, Channel::Kept | Channel::Filler) {
                if cut.column(row, at) != column {
                    return Err(Error::input(format!("its weights of channel {c} are others")));
                }
                at += 1;
            }
            match fate {
                Channel::Kept => {}
                Channel::Constant(value) => {
                    for (position, left) in left.iter_mut().enumerate() {
                        *left += window.contribution(position, &column, value);
                    }
                }
                // One value whatever is read needs no right one.
                Channel::Filler if settled => {}
                Channel::Filler | Channel::Unread => {
                    let reads = |position| window.met(position, &column).any(|weight| weight != 0);
                    if (0..window.positions()).any(reads) {
                        return Err(self.needed(window.x, c));
                    }
                }
            }
        }
        let grown = cut.bias(row) - window.bias(output);
        if left.iter().any(|&left| left != grown) {
            return Err(Error::input(format!("its bias grew by {grown}"))
                .expected(format!("{left:?}, wherever the window lies")));
        }
        Ok(())
    }
}

fn in_memory(fates: &[Channel]) -> Vec<usize> {
    let stays = |&c: &usize| matches!(fates[c], Channel::Kept | Channel::Filler);
    (0..fates.len()).filter(stays).collect()
}
