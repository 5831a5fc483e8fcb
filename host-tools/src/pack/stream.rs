//! A model in pieces, for a flash that the core does not see as memory: `--region NAME=SIZE:stream`.
//!
//! The network is packed whole first, proven and replayed. Then its steps are made once more, with the constants of each layer on a page of their own, and
//! placed as before; the steps of a page become a model of their own over the same arena. The pieces must compute what the whole file does, bit for bit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arenite_stream::{Sizes, Stream};

use super::back::{self, Back, Source};
use super::cuts::{self, Cuts, Layer, Layers};
use super::dump::Dump;
use super::finish::{self, Sources};
use super::options::{Options, Progress, Streamed};
use super::whole;
use crate::describe;
use crate::emit::{self, Owners, Part, Written};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{Draft, Output, system};
use crate::graph::Graph;
use crate::joined;
use crate::memory::prove;
use crate::metadata::{Metadata, StepMeta};
use crate::model::{self, ModelFile};
use crate::pieces::{self, Flash};
use crate::program::{LoweredStep, Place, Program};
use crate::report::{Pieces, Summary};

/// Refuses options and networks that cannot be read in pieces.
///
/// # Errors
/// [`ErrorKind::Unsupported`], [`ErrorKind::Usage`].
pub(super) fn refuse(options: &Options) -> Result<()> {
    let with = |option| {
        Error::new(ErrorKind::Usage, format!("--region NAME=SIZE:stream with {option}"))
            .help("a model in pieces is checked piece by piece, and has no place for it")
    };
    if options.sign.is_some() {
        return Err(with("--sign"));
    }
    if options.self_test.is_some() {
        return Err(with("--self-test"));
    }
    if options.regions.len() > 1 {
        return Err(
            Error::unsupported("--region NAME=SIZE:stream with several memories for the arena")
                .expected("one, beside the one with :stream"),
        );
    }
    Ok(())
}

/// Cuts a network whose whole file is `draft` into pieces for a flash; gives the file of them.
pub(super) fn cut(
    (graph, streamed): (Graph, &Streamed),
    (whole, sources, spend): (&Back, &Sources, Option<&BTreeSet<String>>),
    (options, output): (&Options, &Output),
    draft: Draft,
    summary: &mut Summary,
    progress: &mut Progress<'_>,
) -> Result<Draft> {
    let flash = &streamed.flash;
    let at_input = |e: Error| e.in_file(&options.input);
    if !whole.program.state.initial.is_empty() {
        let message = "--region NAME=SIZE:stream: the network has a state, which models in pieces have not";
        return Err(at_input(
            Error::unsupported(message).help("pack it without :stream, for a memory that the core addresses"),
        ));
    }
    if graph.outputs.iter().any(|&id| graph.tensor(id).is_const()) {
        return Err(at_input(Error::internal("an output is a constant")));
    }
    progress("cutting the model into pieces", 0, 0);
    let paged = Options {
        stream: Some(streamed.clone()),
        dump_after: None,
        explain: false,
        ..options.clone()
    };
    let source = Source {
        weights: &sources.weights,
        options: &paged,
        spend,
    };
    let cutter = Cutter {
        graph,
        source,
        sources,
        streamed,
        whole: whole.placed.arena_bytes(),
    };
    let made = cutter.pieces(summary, progress).map_err(at_input)?;

    let count = made.files.len();
    if count > usize::from(u16::MAX) {
        return Err(at_input(
            Error::new(ErrorKind::DoesNotFit, format!("the model becomes {count} pieces"))
                .expected(format!("at most {} in a file", u16::MAX))
                .help("a larger buffer"),
        ));
    }
    let stays = |index: usize| if made.stay.contains(&index) { "+" } else { "" };
    let names: Vec<String> = (0..count)
        .map(|index| format!("{index}/{count}{}", stays(index)))
        .collect();
    // Those that stay lie together, in front.
    let (front, rest): (Vec<usize>, Vec<usize>) = (0..count).partition(|index| made.stay.contains(index));
    let bytes = joined::assemble_in(&[front, rest].concat(), &names, &made.files)?;
    if let Some(size) = flash.size.filter(|&size| size < bytes.len() as u64) {
        let message = format!("the model needs {} bytes in {count} pieces", bytes.len());
        return Err(at_input(
            Error::new(ErrorKind::DoesNotFit, message)
                .expected(format!("at most {size} (--region {}={size}:stream)", flash.name))
                .help("int8 weights, or a smaller network"),
        ));
    }
    progress("comparing the pieces with the whole", 0, 0);
    let io = |e: std::io::Error| Error::io(output.path(), "write the model", &e);
    let file = ModelFile::of(draft.file(), output.path()).map_err(io)?;
    let (sizes, read) = compare(&file, &bytes)?;
    drop(file);

    summary.ops_final.clear();
    describe::add_program(summary, &made.back.program, &made.back.placed);
    // Figures of the whole's steps are not those of these.
    summary.stack_bytes.clear();
    summary.load_stack_bytes.clear();
    summary.instructions_at_most.clear();
    summary.code_bytes_estimate = None;
    summary.stream = Some(Pieces {
        pieces: count,
        buffer_bytes: sizes.buffer.into(),
        double_buffer_bytes: sizes.double.into(),
        resident_bytes: made.stay.iter().map(|&index| made.files[index].len() as u64).sum(),
        read_bytes: read,
    });
    let draft = output.draft_of(&bytes).map_err(io)?;
    let models = ModelFile::all_of(draft.file(), output.path())?;
    let views: Vec<_> = models.iter().map(ModelFile::view).collect::<Result<_>>()?;
    summary.model_bytes = bytes.len() as u64;
    (summary.weights_bytes, summary.plan_bytes) = (made.weights, made.plan);
    finish::within(summary.model_bytes, summary.weights_bytes, options)?;
    prove::prove_pieces(&views)
        .map_err(|e| Error::internal(format!("the plan of the pieces is wrong: {e}")).help("please report it"))?;
    drop(views);
    drop(models);
    Ok(draft)
}

/// Sources from which pieces are made.
struct Cutter<'a> {
    graph: Graph,
    source: Source<'a>,
    sources: &'a Sources,
    streamed: &'a Streamed,
    /// The arena of the network in one file.
    whole: u64,
}

/// Pieces, and the steps that they are.
struct Made {
    back: Back,
    /// The steps of each piece.
    ranges: Vec<Range<usize>>,
    files: Vec<Vec<u8>>,
    /// Bytes of all their weights, and of all their ports and steps.
    weights: u64,
    plan: u64,
    /// Those that stay in memory.
    stay: BTreeSet<usize>,
}

/// Limits of the memory aside of a layer of which more than one pixel is cut, in bytes: little copying first, then little memory.
const ASIDE: [usize; 2] = [16 << 10, 1 << 10];

/// How often layers are cut finer before it is given up.
const ROUNDS: usize = 24;

impl Cutter<'_> {
    fn pieces(&self, summary: &Summary, progress: &mut Progress<'_>) -> Result<Made> {
        let Source {
            weights,
            options,
            spend,
        } = self.source;
        let told = (&mut Dump::default(), &mut Summary::default());
        let uncut = back::run(self.graph.clone(), weights, options, spend, told, progress)?;
        if uncut.placed.arena_bytes() != self.whole {
            return Err(Error::internal("the pieces have another arena than the whole").help("please report it"));
        }
        let order = uncut.program.clone();
        let first = self.written(uncut, summary)?;
        let stay = self.staying(&first);
        let mut whole: Vec<String> = stay.iter().map(|&index| first.layer(index, &Layers::new())).collect();
        let mut cuts = Cuts::new();
        if !self.finer(&first, &Layers::new(), (&mut cuts, &whole))? {
            return Ok(Made { stay, ..first });
        }
        let arena = |made: &Made| made.back.placed.arena_bytes();
        let (mut best, mut refused): (Option<Made>, Option<Error>) = (None, None);
        for aside in ASIDE {
            let before = (cuts.clone(), whole.clone());
            match self.cut_with(&order, aside, (&mut cuts, &mut whole), summary, progress) {
                Ok(made) if best.as_ref().is_none_or(|best| arena(&made) < arena(best)) => best = Some(made),
                Ok(_) => {}
                // A network without a place with the one may have one with the other.
                Err(e) if e.kind() == ErrorKind::DoesNotFit => {
                    refused = refused.or(Some(e));
                    (cuts, whole) = before;
                }
                Err(e) => return Err(e),
            }
            // Less aside costs steps, and is worth that only where it is what the arena wants.
            if best.as_ref().is_some_and(|best| arena(best) <= self.whole) {
                break;
            }
        }
        best.ok_or_else(|| refused.unwrap_or_else(|| Error::internal("a model in no pieces")))
    }

    /// Pieces that the buffer has room for, where layers compute `aside` bytes aside; `whole` are the layers that stay in memory.
    fn cut_with(
        &self,
        order: &Program,
        aside: usize,
        (cuts, whole): (&mut Cuts, &mut Vec<String>),
        summary: &Summary,
        progress: &mut Progress<'_>,
    ) -> Result<Made> {
        let mut round = 0;
        loop {
            let (program, layers) = cuts::cut((&self.graph, order), cuts, aside, self.source, progress)?;
            let told = (&mut Dump::default(), &mut Summary::default());
            let made = self.written(back::place(program, self.source.options, told, progress)?, summary)?;
            if !self.finer(&made, &layers, (cuts, whole))? {
                let stay: BTreeSet<usize> = (0..made.files.len())
                    .filter(|&index| whole.contains(&made.layer(index, &layers)))
                    .collect();
                let bytes = |index: &usize| made.files[*index].len().next_multiple_of(joined::MODEL_ALIGN) as u64;
                if stay.iter().map(bytes).sum::<u64>() <= self.streamed.resident {
                    return Ok(Made { stay, ..made });
                }
                // Files differ by some bytes from those that were chosen by.
                let smallest = stay.iter().min_by_key(|index| bytes(index)).copied();
                let left = smallest.map(|index| made.layer(index, &layers));
                whole.retain(|name| Some(name) != left.as_ref());
            }
            round += 1;
            if round > ROUNDS {
                let flash = &self.streamed.flash.name;
                let message = format!("no cut into pieces was found in {ROUNDS} rounds");
                return Err(Error::new(ErrorKind::DoesNotFit, message)
                    .expected(format!("a larger buffer (--region {flash}=…:stream,buffer=SIZE)")));
            }
        }
    }

    /// The files of the steps.
    fn written(&self, back: Back, summary: &Summary) -> Result<Made> {
        let ranges = ranges(&back.program);
        let mut files = Vec::with_capacity(ranges.len());
        let (mut weights, mut plan) = (0, 0);
        let owners = Owners::new(&back.program);
        let steps = emit::step_metadata(&back.program, &back.placed, &owners)?;
        for (index, part) in parts(&back.program, &ranges).into_iter().enumerate() {
            let about = (&owners, &steps[part.steps.clone()]);
            let (file, sizes) = piece(&back, &part, index, about, self.sources, self.source.options, summary)?;
            files.push(file);
            (weights, plan) = (weights + sizes.weights, plan + sizes.plan);
        }
        Ok(Made {
            back,
            ranges,
            files,
            weights,
            plan,
            stay: BTreeSet::new(),
        })
    }

    /// The pieces that stay: the largest first, for what is cut costs most, each that there is still room for.
    fn staying(&self, made: &Made) -> BTreeSet<usize> {
        let mut room = self.streamed.resident;
        let mut by_size: Vec<usize> = (0..made.files.len()).collect();
        by_size.sort_by_key(|&index| (std::cmp::Reverse(made.files[index].len()), index));
        let takes = |index: &usize| {
            let bytes = made.files[*index].len().next_multiple_of(joined::MODEL_ALIGN) as u64;
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        };
        by_size.into_iter().filter(takes).collect()
    }

    /// Has the layers cut finer whose pieces the buffer has no room for, but for those that stay; whether there are any.
    fn finer(&self, made: &Made, layers: &Layers, (cuts, stay): (&mut Cuts, &[String])) -> Result<bool> {
        let Some(buffer) = self.streamed.buffer else {
            return Ok(false);
        };
        let program = &made.back.program;
        // Of each layer the largest piece: one look decides how it is cut next.
        let mut largest: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        for (index, file) in made.files.iter().enumerate() {
            let name = made.layer(index, layers);
            let bytes = file.len() as u64;
            if bytes > buffer && !stay.contains(&name) {
                let found = largest.entry(name).or_insert((bytes, index));
                *found = (bytes, index).max(*found);
            }
        }
        let finer = !largest.is_empty();
        for (name, (bytes, index)) in largest {
            let range = &made.ranges[index];
            let refused = |why: &str| {
                let message = format!("`{name}` needs a buffer of {bytes} bytes: {why}");
                Error::new(ErrorKind::DoesNotFit, message)
                    .expected(format!(
                        "at most {buffer} (--region {}=…:stream,buffer={buffer})",
                        self.streamed.flash.name
                    ))
                    .help("a larger buffer, or ,resident=SIZE for the layers that stay in memory")
            };
            let Some(layer) = Layer::of(&self.graph, &name) else {
                return Err(refused(
                    "only convolutions of one group and fully connected layers, with constant weights and no fused addition, are cut",
                ));
            };
            let page = program.steps[range.start].page;
            let pieces = program.weights.pieces().iter().filter(|piece| piece.page == page);
            let constants = pieces
                .map(|piece| u64::from(piece.offset + piece.len))
                .max()
                .unwrap_or(0);
            let computing = program.steps[range.clone()]
                .iter()
                .filter(|step| reads_constants(step))
                .find_map(|step| step.step.clone().window_mut().copied());
            let most = cuts.get(&name).copied().unwrap_or(layer.channels);
            let now = computing.map_or(most, |window| usize::from(window.output[2]).min(most)) as u64;
            let each = (constants / now).max(1);
            let room = buffer.saturating_sub(bytes - constants) / each;
            let next = room.min(now - 1);
            if next == 0 {
                return Err(refused(
                    "the fewest output channels that its kernel takes have no place in less",
                ));
            }
            cuts.insert(name, next as usize);
        }
        Ok(finer)
    }
}

impl Made {
    /// The layer whose constants a piece has, by its name.
    fn layer(&self, index: usize, layers: &Layers) -> String {
        let program = &self.back.program;
        let steps = self
            .ranges
            .get(index)
            .map_or(&[][..], |range| &program.steps[range.clone()]);
        let name = steps
            .iter()
            .find(|step| reads_constants(step))
            .or(steps.last())
            .map(|step| step.name.as_str())
            .unwrap_or_default();
        layers.get(name).map_or_else(|| name.to_owned(), Clone::clone)
    }
}

/// Steps that follow each other and have their constants on one page.
fn ranges(program: &Program) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (index, step) in program.steps.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if program.steps[range.start].page == step.page => range.end = index + 1,
            _ => ranges.push(index..index + 1),
        }
    }
    ranges
}

fn reads_constants(step: &LoweredStep) -> bool {
    let operands = step.operands();
    operands
        .iter()
        .any(|operand| matches!(operand.place, Place::Constant(_)))
}

fn parts(program: &Program, ranges: &[Range<usize>]) -> Vec<Part> {
    let constant = |range: &Range<usize>| program.steps[range.clone()].iter().any(reads_constants);
    let part = |(index, range): (usize, &Range<usize>)| Part {
        steps: range.clone(),
        page: constant(range).then(|| program.steps[range.start].page),
        inputs: index == 0,
        outputs: index + 1 == ranges.len(),
    };
    ranges.iter().enumerate().map(part).collect()
}

/// The file of a part.
fn piece(
    Back { program, placed, .. }: &Back,
    part: &Part,
    index: usize,
    (owners, steps): (&Owners, &[StepMeta]),
    sources: &Sources,
    options: &Options,
    summary: &Summary,
) -> Result<(Vec<u8>, Written)> {
    let place = std::path::Path::new("a temporary file");
    let io = |e: std::io::Error| Error::io(place, "write a piece of the model", &e);
    let [inputs, outputs] = part.ports(program);
    let first = program.graph.inputs.len();
    let ports = owners.ports.iter().enumerate();
    let own = |&(at, _): &(usize, &u32)| if at < first { part.inputs } else { part.outputs };
    let summary = Summary {
        name: format!("{}, piece {index}", summary.name),
        steps: steps.len(),
        ..if index == 0 {
            finish::in_file(summary)
        } else {
            Summary::default()
        }
    };
    let metadata = Metadata {
        tool: concat!("pack ", env!("CARGO_PKG_VERSION")).to_string(),
        input_sha256: sources.input_sha256.clone(),
        summary: serde_json::to_string(&summary).map_err(|e| Error::internal(format!("the summary: {e}")))?,
        input_keys: vec![String::new(); inputs.len()],
        cut: Vec::new(),
        training: None,
        labels: Vec::new(),
        steps: steps.to_vec(),
        ports: ports.filter(own).map(|(_, &owner)| owner).collect(),
        tensors: Vec::new(),
    };
    let metadata = named(metadata, &owners.names);
    let labels: &[String] = if outputs.is_empty() { &[] } else { &options.labels };
    let file = system::unnamed().map_err(io)?;
    let told = (&metadata, labels);
    let sizes = emit::emit_part(program, part, placed, told, &sources.weights, &file, &mut |_, _| {})?;
    let file = ModelFile::of(&file, place).map_err(io)?;
    Ok((file.bytes().to_vec(), sizes))
}

/// The names of the tensors that a piece touches, and its numbers for them.
fn named(mut metadata: Metadata, names: &[String]) -> Metadata {
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    let operands = metadata.steps.iter_mut().flat_map(|step| &mut step.operands);
    for owner in operands.chain(&mut metadata.ports) {
        if let Some(name) = names.get(*owner as usize) {
            *owner = *numbers.entry(*owner).or_insert_with(|| {
                metadata.tensors.push(name.clone());
                metadata.tensors.len() as u32 - 1
            });
        }
    }
    metadata
}

/// Runs the pieces as a device does beside the whole file; gives what they want of memory, and the bytes that a run reads.
///
/// # Errors
/// [`ErrorKind::Internal`] where an output differs.
fn compare(file: &ModelFile, bytes: &[u8]) -> Result<(Sizes, u64)> {
    let reference = file.load()?;
    let runs = whole::inputs(&reference, 2);
    let expected = model::run(&reference, &runs, false, &mut |_, _, _| {})?;
    let wrong =
        |e: &dyn std::fmt::Display| Error::internal(format!("the model in pieces: {e}")).help("please report it");
    let sizes = Stream::<_>::sizes(&mut Flash::of(bytes), 0).map_err(|e| wrong(&e))?;
    let (found, read) = pieces::run(bytes, sizes, &runs, &mut || {}, &mut |_, _| {}).map_err(|e| wrong(&e))?;
    match expected.iter().zip(&found).position(|(a, b)| a != b) {
        None if expected.len() == found.len() => Ok((sizes, read)),
        run => {
            let message = format!("in pieces, run {run:?} has other outputs than the whole");
            Err(Error::internal(message).help("please report it"))
        }
    }
}
