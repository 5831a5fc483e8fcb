//! Executed sequences: every block behind each block that it followed.

use std::collections::BTreeMap;

use super::instruction::{Instruction, Kind};
use super::pipeline::Pipeline;
use super::{riscv, thumb};
use crate::board::table::Core;
use crate::board::trace::{Block, Interval};

/// Decoded instructions and the order in which blocks of them were executed.
pub(super) struct Sequences<'a> {
    code: BTreeMap<u64, Instruction>,
    interval: &'a Interval,
}

impl<'a> Sequences<'a> {
    /// Decodes all that was executed.
    pub(super) fn decode(interval: &'a Interval, core: Core) -> Self {
        let decoded = interval.executed.iter().map(|(&address, executed)| {
            let instruction = match core {
                Core::Rv32 | Core::Rv64 => riscv::decode(address, executed),
                _ => thumb::decode(address, executed, core == Core::M55),
            };
            (address, instruction)
        });
        Self {
            code: decoded.collect(),
            interval,
        }
    }

    /// Cycles of everything on `pipeline`, which is as it starts. A block takes what it adds to the time of the block that was executed before it; results
    /// and units that are still awaited there are awaited, what lies further back is done.
    pub(super) fn cycles(&self, pipeline: &Pipeline) -> u64 {
        let edges = self.interval.edges.iter();
        let executed: u64 = edges
            .map(|(&(from, to), count)| count * self.behind(pipeline, from, to))
            .sum();
        executed + pipeline.mispredicted() * self.rarely()
    }

    /// How often conditional branches went the way that they go less often.
    fn rarely(&self) -> u64 {
        let mut ways: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (&(from, to), count) in &self.interval.edges {
            let block = from.map_or_else(Vec::new, |from| self.block(from));
            if let Some(last) = block.last().filter(|last| last.kind == Kind::ConditionalBranch) {
                ways.entry(last.address).or_default()[usize::from(last.end() == to.address)] += count;
            }
        }
        ways.values().map(|[taken, other]| taken.min(other)).sum()
    }

    fn behind(&self, pipeline: &Pipeline, from: Option<Block>, to: Block) -> u64 {
        let (before, block) = (from.map_or_else(Vec::new, |from| self.block(from)), self.block(to));
        let mut pipeline = pipeline.clone();
        before.iter().for_each(|instruction| pipeline.execute(instruction));
        let start = pipeline.now();
        if let (Some(last), Some(first)) = (before.last(), block.first())
            && last.end() != to.address
        {
            pipeline.jump(last, first);
        }
        block.iter().for_each(|instruction| pipeline.execute(instruction));
        pipeline.now() - start
    }

    /// The instructions of a block; it ends where one was not executed, as happens where an exception is taken.
    fn block(&self, block: Block) -> Vec<&Instruction> {
        let mut address = block.address;
        let next = |_| {
            let instruction = self.code.get(&address)?;
            address = instruction.end();
            Some(instruction)
        };
        (0..block.instructions).map_while(next).collect()
    }
}
