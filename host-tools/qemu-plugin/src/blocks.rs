//! Which block was executed behind which, and how often.
//!
//! A block is what qemu translates at once: instructions that follow each other in memory, of which at most the last one jumps. Where `-icount`
//! cuts one, two blocks follow each other instead, which tells the same.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// A block that was translated at least once. Leaked, because translated code names it until qemu ends.
pub(crate) struct Block {
    address: u64,
    instructions: usize,
    bytes: u64,
    /// Blocks executed right behind it in this interval; the last one found comes first, for a loop asks for the same again.
    behind: Vec<(*const Block, u64)>,
}

impl Block {
    /// How many instructions it has.
    pub(crate) fn instructions(&self) -> usize {
        self.instructions
    }

    /// Address and bytes.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.address, self.bytes)
    }
}

/// All blocks, and the one that was entered last in this interval.
pub(crate) struct Blocks {
    known: BTreeMap<(u64, usize), *mut Block>,
    /// Block that stands before the first one of an interval.
    start: *mut Block,
    last: *mut Block,
}

// SAFETY: blocks are read and written by the one processor's thread, which is also the one that translates.
unsafe impl Send for Blocks {}

impl Blocks {
    pub(crate) fn new() -> Self {
        let start = leaked(0, 0, 0);
        Self {
            known: BTreeMap::new(),
            start,
            last: start,
        }
    }

    /// The block of so many instructions and bytes at `address`, for [`Self::enter`].
    pub(crate) fn translated(&mut self, address: u64, instructions: usize, bytes: u64) -> *mut Block {
        *self
            .known
            .entry((address, instructions))
            .or_insert_with(|| leaked(address, instructions, bytes))
    }

    /// Forgets what was executed.
    pub(crate) fn begin(&mut self) {
        for &block in self.known.values().chain([&self.start]) {
            // SAFETY: leaked when the block was first translated; only this thread uses it.
            unsafe { (*block).behind.clear() };
        }
        self.last = self.start;
    }

    /// Counts that `block` is executed now.
    ///
    /// # Safety
    /// `block` is of [`Self::translated`].
    pub(crate) unsafe fn enter(&mut self, block: *mut Block) {
        // SAFETY: the last block is one of this list's, all of them are leaked.
        let behind = unsafe { &mut (*self.last).behind };
        match behind.iter().position(|&(known, _)| std::ptr::eq(known, block)) {
            Some(at) => {
                behind[at].1 += 1;
                behind.swap(0, at);
            }
            None => behind.push((block, 1)),
        }
        self.last = block;
    }

    /// A line for each two blocks of which the second was executed behind the first:
    /// `edge ADDRESS INSTRUCTIONS ADDRESS INSTRUCTIONS COUNT`, of which the first two are `0 0` at the start of the interval.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for &block in self.known.values().chain([&self.start]) {
            // SAFETY: a block of this list, all of which are leaked and used by this thread alone.
            let block = unsafe { &*block };
            for &(to, count) in &block.behind {
                // SAFETY: what follows a block is one of this list as well.
                let to = unsafe { &*to };
                let (from, number) = (block.address, block.instructions);
                writeln!(
                    out,
                    "edge {from:x} {number} {:x} {} {count}",
                    to.address, to.instructions
                )?;
            }
        }
        Ok(())
    }
}

fn leaked(address: u64, instructions: usize, bytes: u64) -> *mut Block {
    Box::into_raw(Box::new(Block {
        address,
        instructions,
        bytes,
        behind: Vec::new(),
    }))
}
