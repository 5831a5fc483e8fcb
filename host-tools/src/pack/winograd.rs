//! Winograd convolutions: which layers may spend flash on them.

use std::collections::BTreeSet;

use arenite::Target;
use arenite::ops::operator::Needs;

use super::back::{self, Back};
use super::dump::Dump;
use super::options::{Options, Progress};
use crate::error::Result;
use crate::graph::Graph;
use crate::memory;
use crate::program::Program;
use crate::report::{Summary, Winograd};
use crate::stage::unwatched;
use crate::weights::Weights;

/// The layers that must not spend flash, and what the others took: none does whose scratch would make the arena larger than it is without, nor where the file
/// would pass `--max-flash`. `None` where nothing is spent.
///
/// # Errors
/// Errors of packing without them.
pub(super) fn choose(
    graph: &Graph,
    weights: &Weights,
    options: &Options,
    summary: &Summary,
    file_bytes: impl Fn(&Back, &Summary) -> Result<u64>,
    progress: &mut Progress<'_>,
) -> Result<Option<(BTreeSet<String>, Winograd)>> {
    let wanted = options.winograd || options.max_flash.is_some();
    if !wanted || !back::spends_flash(options.target) {
        return Ok(None);
    }
    let options = Options {
        explain: false,
        dump_after: None,
        ..options.clone()
    };
    let mut packed = |without: Option<&BTreeSet<String>>| {
        let mut summary = summary.clone();
        let told = (&mut Dump::default(), &mut summary);
        let back = back::run(graph.clone(), weights, &options, without, told, progress)?;
        let bytes = file_bytes(&back, &summary)?;
        Ok::<_, crate::Error>((spenders(&back.program).count(), (back.placed.arena_bytes(), bytes)))
    };
    let mut without = BTreeSet::new();
    let mut plain = None;
    loop {
        let steps = back::steps(graph.clone(), weights, &options, Some(&without), &mut unwatched)?;
        let heaviest =
            |bytes: fn(Needs) -> u32| spenders(&steps).max_by_key(|&step| bytes(steps.steps[step].step.needs()));
        let Some(largest) = heaviest(|needs| needs.weights) else {
            return Ok(None);
        };
        let (plain_arena, plain_bytes) = match plain {
            Some(plain) => plain,
            None => *plain.insert(packed(None)?.1),
        };
        let step = match packed(Some(&without)) {
            Ok((layers, (arena, bytes))) if arena <= plain_arena => {
                if options.max_flash.is_none_or(|limit| bytes <= limit) {
                    let extra_bytes = bytes.saturating_sub(plain_bytes);
                    return Ok(Some((without, Winograd { layers, extra_bytes })));
                }
                Some(largest)
            }
            // Too much memory; where it has to fit a region, that is an error.
            _ => {
                let (peak, _) = memory::bodies(&steps, options.in_place).peak();
                spenders(&steps)
                    .find(|&step| step == peak)
                    .or_else(|| heaviest(|needs| needs.scratch))
            }
        };
        without.extend(step.map(|step| steps.steps[step].name.clone()));
    }
}

/// Tells the summary what Winograd's algorithm takes; a warning where it was asked for and computes nothing.
pub(super) fn told(
    spent: Option<(BTreeSet<String>, Winograd)>,
    options: &Options,
    summary: &mut Summary,
) -> (Option<BTreeSet<String>>, Option<String>) {
    let (without, winograd) = spent.unzip();
    summary.winograd = winograd;
    let idle = options.winograd && winograd.is_none();
    let reason = || {
        if back::spends_flash(options.target) {
            return ": no convolution of 3x3 windows and stride 1 gains by it and leaves the arena, or --max-flash, as it is".into();
        }
        let targets = Target::ALL.into_iter().filter(|&target| back::spends_flash(target));
        let targets: Vec<&str> = targets.map(Target::name).collect();
        format!(" for {}: it is for {}", options.target.name(), targets.join(", "))
    };
    (without, idle.then(|| format!("--winograd changes nothing{}", reason())))
}

/// The steps that spend flash.
fn spenders(program: &Program) -> impl Iterator<Item = usize> {
    let spends = |&step: &usize| program.steps[step].step.kernel().spends_flash();
    (0..program.steps.len()).filter(spends)
}
