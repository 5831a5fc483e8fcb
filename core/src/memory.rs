//! A session's use of a device's memory: for a log, and for whoever sizes the next one.

use core::fmt;

use crate::arena::MAX_REGIONS;
#[cfg(feature = "guard")]
use crate::guard::Marks;
use crate::kernels::table::Kernels;
use crate::session::Session;

/// A memory of a session, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MemoryUse {
    /// Bytes that the model needs.
    pub needed: u32,
    /// Bytes that the session was given.
    pub given: u32,
    /// High-water mark: up to the last byte that was written, of the state to the last that differs from its initial value. `None` where nobody looked.
    pub written: Option<u32>,
}

/// Memory that a session takes: [`Session::memory_report`]. The stack is not the session's to see: `pack` states its bound for each board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Bytes of the model file.
    pub file: u32,
    /// Bytes of the weights.
    pub weights: u32,
    /// The arenas by region.
    pub arena: [MemoryUse; MAX_REGIONS],
    /// The state.
    pub state: MemoryUse,
}

impl<K: Kernels> Session<'_, '_, K> {
    /// The session's memory: what its model needs, and what it was given. `MemoryReport::with_marks` adds how much of it was used.
    pub fn memory_report(&self) -> MemoryReport {
        let (model, (regions, state)) = (self.model(), self.memories());
        let of = |needed: usize, given: usize| MemoryUse {
            needed: bytes(needed),
            given: bytes(given),
            written: None,
        };
        let mut report = MemoryReport {
            file: model.header().total,
            weights: bytes(model.weights().len()),
            arena: [MemoryUse::default(); MAX_REGIONS],
            state: of(model.state_bytes(), state.len()),
        };
        for (index, (arena, region)) in report.arena.iter_mut().zip(regions).enumerate() {
            *arena = of(model.arena_bytes(index), region.len());
        }
        report
    }
}

impl MemoryReport {
    /// The same with the marks of a guarded session.
    #[cfg(feature = "guard")]
    #[must_use]
    pub fn with_marks(mut self, marks: Marks) -> Self {
        let memories = self.arena.iter_mut().zip(marks.arena);
        for (memory, mark) in memories.chain([(&mut self.state, marks.state)]) {
            memory.written = Some(mark);
        }
        self
    }

    /// The memories that there are, each with its name and, of an arena, its region.
    fn memories(&self) -> impl Iterator<Item = (&'static str, Option<u8>, &MemoryUse)> {
        let arenas = (0..)
            .zip(&self.arena)
            .map(|(region, arena)| ("arena", Some(region), arena));
        let state = [("state", None, &self.state)];
        arenas.chain(state).filter(|(_, _, memory)| memory.needed > 0)
    }
}

fn bytes(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} bytes, weights {}", self.file, self.weights)?;
        for (name, region, memory) in self.memories() {
            write!(f, "; {name}")?;
            if let Some(region) = region {
                write!(f, " {region}")?;
            }
            write!(f, " needs {} of {}", memory.needed, memory.given)?;
            if let Some(written) = memory.written {
                write!(f, ", {written} written")?;
            }
        }
        Ok(())
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for MemoryReport {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "file {=u32} bytes, weights {=u32}", self.file, self.weights);
        for (name, region, memory) in self.memories() {
            defmt::write!(f, "; {=str}", name);
            if let Some(region) = region {
                defmt::write!(f, " {=u8}", region);
            }
            defmt::write!(f, " needs {=u32} of {=u32}", memory.needed, memory.given);
            if let Some(written) = memory.written {
                defmt::write!(f, ", {=u32} written", written);
            }
        }
    }
}
