//! Bytes that the cores of a file touch between two barriers: load demands that no core writes what another one reads or writes there.
//!
//! The steps between two barriers are a *group*. Load sees every operand of every step once, in order, and compares each with those of other cores in its
//! group; a group has at most [`MOST`] of them, so that this takes time in proportion to the file.

use core::cell::Cell;

/// The most cores that a file is for.
pub const MAX_CORES: usize = 4;

/// A step's byte in the section of cores: all cores pass a barrier before the step.
pub const BARRIER: u8 = 0x80;

/// The most operands in arenas and state that the steps of a group have.
pub(crate) const MOST: usize = 64;

/// The place of the accelerator among the cores of a file that is for one.
pub(crate) const ACCELERATOR: u8 = 1;

/// Bytes that a core touches.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    core: u8,
    region: u8,
    writes: bool,
    start: u32,
    end: u32,
}

/// Overlap of an operand with those of other cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meets {
    /// Nothing of another core.
    Nothing,
    /// Bytes that another core writes, or that another core reads and this one writes.
    Another,
    /// There are too many to tell.
    Unknown,
    /// Bytes that the accelerator does not reach.
    Beyond,
}

/// Memory that an accelerator reaches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// Offsets of its operands are multiples of this.
    pub(crate) alignment: u8,
    /// A bit for each region.
    pub(crate) regions: u8,
}

/// The group at hand.
#[derive(Debug)]
pub(crate) struct Groups {
    /// The file's number of cores; 0 for a file of one.
    cores: u8,
    /// The core of the step at hand.
    core: Cell<u8>,
    /// Reach of the accelerator, in a file that is for one.
    reach: Option<Reach>,
    /// Operands of the group before the step at hand.
    before: Cell<usize>,
    /// Operands of the group so far.
    len: Cell<usize>,
    extents: [Cell<Extent>; MOST],
}

impl Groups {
    pub(crate) fn new(cores: u8, reach: Option<Reach>) -> Self {
        Self {
            cores,
            core: Cell::new(0),
            reach,
            before: Cell::new(0),
            len: Cell::new(0),
            extents: [const {
                Cell::new(Extent {
                    core: 0,
                    region: 0,
                    writes: false,
                    start: 0,
                    end: 0,
                })
            }; MOST],
        }
    }

    /// Begins with a step; false where its core is none of the file's.
    pub(crate) fn begin(&self, step: u8) -> bool {
        if step & BARRIER != 0 {
            self.len.set(0);
        }
        self.before.set(self.len.get());
        let core = step & !BARRIER;
        self.core.set(core);
        core < self.cores
    }

    /// Whether the step's operands among the constants may begin at this offset.
    pub(crate) fn reaches_constant(&self, offset: u32) -> bool {
        self.handed()
            .is_none_or(|reach| offset.is_multiple_of(reach.alignment.into()))
    }

    /// Reach of the accelerator, where the step is one of its.
    fn handed(&self) -> Option<Reach> {
        self.reach.filter(|_| self.core.get() == ACCELERATOR)
    }

    /// Adds an operand of the step. The accelerator's output lies apart from the same step's inputs, so that it can be seen whether it was written.
    pub(crate) fn add(&self, region: u8, offset: u32, bytes: u32, writes: bool) -> Meets {
        if self.cores == 0 || bytes == 0 {
            return Meets::Nothing;
        }
        let new = Extent {
            core: self.core.get(),
            region,
            writes,
            start: offset,
            end: offset.saturating_add(bytes),
        };
        let handed = self.handed();
        if let Some(reach) = handed {
            let reached = region < 8 && reach.regions & (1 << region) != 0;
            if !reached || !offset.is_multiple_of(reach.alignment.into()) {
                return Meets::Beyond;
            }
        }
        let (len, before) = (self.len.get(), self.before.get());
        for (index, known) in self.extents.iter().take(len).enumerate() {
            let known = known.get();
            let own = known.core == new.core && (handed.is_none() || index < before);
            let apart = own || known.region != new.region || !(known.writes || new.writes);
            if !apart && known.start < new.end && new.start < known.end {
                return Meets::Another;
            }
        }
        let Some(place) = self.extents.get(len) else {
            return Meets::Unknown;
        };
        place.set(new);
        self.len.set(len + 1);
        Meets::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_core_writes_is_met_until_the_next_barrier() {
        let groups = Groups::new(2, None);
        assert!(groups.begin(0));
        assert_eq!(groups.add(0, 0, 64, false), Meets::Nothing);
        assert_eq!(groups.add(0, 64, 32, true), Meets::Nothing);
        // The same core may do as its kernel allows.
        assert_eq!(groups.add(0, 64, 32, true), Meets::Nothing);
        assert!(groups.begin(1));
        assert_eq!(groups.add(0, 0, 64, false), Meets::Nothing);
        assert_eq!(groups.add(0, 96, 32, true), Meets::Nothing);
        assert_eq!(groups.add(1, 64, 32, true), Meets::Nothing);
        assert_eq!(groups.add(0, 80, 0, true), Meets::Nothing);
        for (start, bytes, writes) in [(95, 1, false), (60, 5, true), (0, 1, true), (0, u32::MAX, false)] {
            assert_eq!(groups.add(0, start, bytes, writes), Meets::Another, "{start}+{bytes}");
        }
        assert!(groups.begin(1 | BARRIER));
        assert_eq!(groups.add(0, 0, 96, true), Meets::Nothing);
    }

    #[test]
    fn cores_that_the_file_has_not_are_seen() {
        let groups = Groups::new(3, None);
        let found = [0, 2, 3, 127, BARRIER | 2, BARRIER | 3].map(|step| groups.begin(step));
        assert_eq!(found, [true, true, false, false, true, false]);
        // A file of one core is not looked at.
        let one = Groups::new(0, None);
        one.begin(0);
        for _ in 0..2 * MOST {
            assert_eq!(one.add(0, 0, 8, true), Meets::Nothing);
        }
    }

    #[test]
    fn the_accelerator_reaches_what_it_declares_and_writes_apart_from_what_it_reads() {
        let reach = Reach {
            alignment: 8,
            regions: 0b10,
        };
        let groups = Groups::new(2, Some(reach));
        // The core's own steps are bound by nothing.
        assert!(groups.begin(0));
        assert_eq!(groups.add(0, 3, 5, true), Meets::Nothing);
        assert_eq!(groups.add(0, 3, 5, false), Meets::Nothing);
        assert!(groups.reaches_constant(3));
        assert!(groups.begin(ACCELERATOR));
        assert!(groups.reaches_constant(24) && !groups.reaches_constant(4));
        for (region, offset) in [(0, 64), (2, 64), (0x80, 64), (1, 4), (1, 65)] {
            assert_eq!(
                groups.add(region, offset, 8, false),
                Meets::Beyond,
                "{region}: {offset}"
            );
        }
        assert_eq!(groups.add(1, 64, 64, true), Meets::Nothing);
        assert_eq!(groups.add(1, 128, 64, false), Meets::Nothing);
        assert_eq!(groups.add(1, 120, 16, false), Meets::Another);
        // Another step of its may read what this one wrote.
        assert!(groups.begin(ACCELERATOR));
        assert_eq!(groups.add(1, 64, 64, false), Meets::Nothing);
    }

    #[test]
    fn a_group_has_an_end() {
        let groups = Groups::new(2, None);
        groups.begin(0);
        for at in 0..MOST as u32 {
            assert_eq!(groups.add(0, at, 1, true), Meets::Nothing);
        }
        assert_eq!(groups.add(0, 0, 1, true), Meets::Unknown);
        groups.begin(BARRIER);
        assert_eq!(groups.add(0, 0, 1, true), Meets::Nothing);
    }
}
