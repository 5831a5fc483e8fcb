//! Layers that an accelerator and the core compute in parts: what each takes for a layer, and which of them pay.

use std::collections::BTreeSet;

use super::back::{self, Back};
use super::cuts::{self, Layer, Ranges};
use super::dump::Dump;
use super::options::{Options, Progress};
use crate::accelerator::Sharing;
use crate::error::{ErrorKind, Result};
use crate::graph::Graph;
use crate::memory::Shares;
use crate::memory::accelerate::LEAST_WON;
use crate::memory::cores::BLOCKS;
use crate::program::{LoweredStep, Program, Shared};
use crate::report::Summary;
use crate::stage::unwatched;
use crate::weights::Weights;

/// The graph and how it is shared: by output channels where an output is one pixel, in parts of the output otherwise. Parts that win nothing are none, and so
/// many
/// layers stay whole that the arena is at most five quarters of what it is without parts, and the file no larger than `--max-flash`: those that gain least for
/// a byte first. `None` where nothing is to be shared.
///
/// # Errors
/// Errors of packing without parts.
pub(super) fn choose(
    graph: &Graph,
    weights: &Weights,
    options: &Options,
    summary: &Summary,
    file_bytes: impl Fn(&Back, &Summary) -> Result<u64>,
    progress: &mut Progress<'_>,
) -> Result<Option<(Graph, Sharing)>> {
    if options
        .accelerator
        .as_ref()
        .is_none_or(|accelerator| !accelerator.share)
    {
        return Ok(None);
    }
    let mut packed = |graph: &Graph, sharing: &Sharing| {
        let options = Options {
            dump_after: None,
            sharing: sharing.clone(),
            ..options.clone()
        };
        let mut summary = summary.clone();
        let told = (&mut Dump::default(), &mut summary);
        let back = back::run(graph.clone(), weights, &options, None, told, progress)?;
        let bytes = file_bytes(&back, &summary)?;
        Ok::<_, crate::Error>((back, bytes))
    };
    let none = Sharing {
        whole: graph.nodes.iter().map(|node| node.name.clone()).collect(),
        ..Sharing::default()
    };
    let most = {
        let arena = packed(graph, &none)?.0.placed.arena_bytes();
        arena + arena / 4
    };
    let (cut, mut sharing) = by_channels(graph, weights, options)?;
    loop {
        let steps = lowered(&cut, weights, options, &sharing)?;
        let both = || steps.steps.iter().filter(|step| step.own.is_some());
        let too_large = match packed(&cut, &sharing) {
            Ok((back, bytes)) => {
                let shared = &back.program.assigned.shared;
                let is_shared = |step: &&LoweredStep| shared.iter().any(|shared| shared.name == step.name);
                let idle: BTreeSet<String> = both()
                    .filter(|step| !is_shared(step))
                    .map(|step| step.name.clone())
                    .collect();
                if !idle.is_empty() {
                    sharing.whole.extend(idle);
                    continue;
                }
                if back.placed.arena_bytes() > most {
                    most_scratch(both())
                } else if options.max_flash.is_some_and(|limit| bytes > limit) {
                    let gain = |shared: &&Shared| {
                        let won = shared.takes[0].saturating_sub(shared.longest);
                        u128::from(won) * u128::from(u32::MAX) / u128::from(shared.bytes.max(1))
                    };
                    let spends = shared.iter().filter(|shared| shared.bytes > 0);
                    spends.min_by_key(gain).map(|shared| shared.name.clone())
                } else {
                    return Ok(Some((cut, sharing)));
                }
            }
            Err(e) if e.kind() == ErrorKind::DoesNotFit => most_scratch(both()),
            Err(e) => return Err(e),
        };
        match too_large {
            Some(name) => sharing.whole.insert(name),
            // Layouts by channels may be larger as well.
            None => return Ok(Some((graph.clone(), none))),
        };
    }
}

fn lowered(graph: &Graph, weights: &Weights, options: &Options, sharing: &Sharing) -> Result<Program> {
    let options = Options {
        sharing: sharing.clone(),
        ..options.clone()
    };
    back::steps(graph.clone(), weights, &options, None, &mut unwatched)
}

/// The layer whose kernels have most memory for themselves.
fn most_scratch<'a>(steps: impl Iterator<Item = &'a LoweredStep>) -> Option<String> {
    let scratch = |step: &&LoweredStep| {
        let own = step.own.as_ref().map_or(0, |own| own.step.step.needs().scratch);
        u64::from(step.step.needs().scratch) + u64::from(own)
    };
    steps.max_by_key(scratch).map(|step| step.name.clone())
}

/// Cuts layers whose output is one pixel by its channels: the first ones are the accelerator's. The parts are layers of their own, each with the weights of its
/// channels in its own layout.
fn by_channels(graph: &Graph, weights: &Weights, options: &Options) -> Result<(Graph, Sharing)> {
    let (mut ranges, mut sharing) = (Ranges::new(), Sharing::default());
    // Parts that do not lie in the whole would be copied there.
    let steps = if options.in_place {
        lowered(graph, weights, options, &sharing)?.steps
    } else {
        Vec::new()
    };
    for step in &steps {
        let takes = step.own.as_ref().and_then(|own| own.takes);
        let layer = Layer::of(graph, &step.name).filter(|layer| layer.is_one_pixel(graph));
        let (Some(takes), Some(layer)) = (takes, layer) else {
            continue;
        };
        let pieces = Shares::of_two(takes).pieces_of_blocks(layer.channels, &BLOCKS);
        let [first, second] = &pieces[..] else {
            continue;
        };
        let of = |whole: u64, channels: usize| {
            (u128::from(whole) * channels as u128).div_ceil(layer.channels.max(1) as u128) as u64
        };
        let longest = of(takes[0], first.len()).max(of(takes[1], second.len()));
        if longest + LEAST_WON > takes[0] {
            continue;
        }
        let macs = of(step.macs, first.len());
        sharing.channels.push(Shared {
            name: step.name.clone(),
            macs: [macs, step.macs - macs],
            takes,
            longest,
            bytes: 0,
        });
        ranges.insert(step.name.clone(), pieces);
    }
    let (cut, parts) = cuts::split(graph, &ranges, weights)?;
    let side = |(name, part): (String, cuts::Part)| (name, part.first == 0);
    sharing.sides = parts.into_iter().map(side).collect();
    Ok((cut, sharing))
}
