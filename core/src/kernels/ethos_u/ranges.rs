//! Weights and scales of an operation: a range for each of two cores.

use super::maps::{NOWHERE, UNSET};
use super::why::Why;

/// Bytes that a core reads.
#[derive(Debug, Clone, Copy)]
struct Range {
    base: u64,
    length: u64,
}

impl Range {
    const NOTHING: Self = Self {
        base: NOWHERE,
        length: NOWHERE,
    };

    fn is_set(self) -> bool {
        self.base != NOWHERE && self.length != NOWHERE
    }

    /// A core that has nothing to do. Its base may be one that an earlier operation left, or none.
    fn is_empty(self) -> bool {
        self.length == 0
    }

    fn end(self) -> u64 {
        self.base.saturating_add(self.length)
    }
}

/// Weights or scales, of both cores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants {
    pub(super) region: u32,
    cores: [Range; 2],
}

impl Constants {
    pub(super) const NOTHING: Self = Self {
        region: UNSET,
        cores: [Range::NOTHING; 2],
    };

    /// Sets base (0) or length (1) of a core.
    pub(super) fn set(&mut self, core: usize, register: u16, value: u64) {
        if let Some(range) = self.cores.get_mut(core) {
            match register {
                0 => range.base = value,
                _ => range.length = value,
            }
        }
    }

    /// Ranges that are set must lie in their region, of which `inside` has the end, whether the operation reads them or not; those of the first `wanted` cores
    /// must be set. A range of length 0 needs no other register.
    pub(super) fn check(&self, wanted: usize, inside: impl Fn(u32, u64) -> Result<(), Why>) -> Result<(), Why> {
        for (core, range) in self.cores.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
            if range.is_set() {
                inside(self.region, range.end())?;
            } else if core < wanted {
                return Err(Why::Parameter);
            }
        }
        Ok(())
    }
}
