//! Flash that is slower than the core, with what hides it: wait states, the width of a read, caches, prefetch. A row a chip.
//!
//! The plugin counts the reads that reach the flash (`host-tools/qemu-plugin/src/memory.rs`), in the order of execution; here is what they cost.

use std::fmt::Write;

use super::table::{AddressRange, Core};
use super::trace::Interval;

/// The flash of a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flash {
    /// The chip, as users write it.
    pub name: &'static str,
    /// Its core.
    pub core: Core,
    /// The clock that the wait states are for, in MHz.
    pub mhz: u32,
    /// Cycles that a read takes beside one.
    pub wait_states: u64,
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Lines of the cache of instructions, and bytes of a line.
    pub code_cache: (usize, u64),
    /// The same of data.
    pub data_cache: (usize, u64),
    /// Whether the next instructions are read ahead.
    pub prefetch: bool,
    /// Where this is from.
    pub source: &'static str,
}

/// Chips whose flash is known.
pub static FLASHES: [Flash; 2] = [
    Flash {
        name: "stm32l4r5",
        core: Core::M4,
        mhz: 120,
        wait_states: 5,
        // Two banks, as it is delivered.
        read_bytes: 8,
        code_cache: (32, 32),
        data_cache: (8, 32),
        // As the vendor's HAL leaves it.
        prefetch: false,
        source: "ST RM0432, embedded flash memory: 5 wait states at 120 MHz, range 1 boost; caches of 32 and 8 lines of four times 64 bits",
    },
    Flash {
        name: "stm32f407vg",
        core: Core::M4,
        mhz: 168,
        wait_states: 5,
        read_bytes: 16,
        code_cache: (64, 16),
        data_cache: (8, 16),
        prefetch: true,
        source: "ST RM0090, embedded flash memory interface: 5 wait states at 168 MHz; 64 and 8 lines of 128 bits",
    },
];

impl Flash {
    /// The flash of the chip of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FLASHES.iter().find(|flash| flash.name == name)
    }

    /// Cycles that an interval waits for the flash, of which it takes `cycles` without; `None` where reads were not counted.
    ///
    /// A read ahead has the time that the instructions of the read before it take, at the interval's mean.
    pub fn stalls(&self, interval: &Interval, cycles: u64) -> Option<u64> {
        let reads = interval.flash?;
        let bytes: u64 = interval
            .executed
            .values()
            .map(|executed| executed.size * executed.count)
            .sum();
        let hidden = match (self.prefetch, bytes) {
            (false, _) | (_, 0) => 0,
            _ => (cycles * self.read_bytes / bytes).min(self.wait_states),
        };
        Some((reads.jumps + reads.data) * self.wait_states + reads.sequential * (self.wait_states - hidden))
    }

    /// Returns the argument that describes the flash to the plugin.
    pub(super) fn argument(&self, ranges: &[AddressRange]) -> String {
        let mut text = String::new();
        for range in ranges {
            let between = if text.is_empty() { "" } else { "+" };
            // Writing to memory does not fail.
            let _ = write!(text, "{between}{:x}-{:x}", range.start, range.end());
        }
        let ((lines, bytes), (data_lines, data_bytes)) = (self.code_cache, self.data_cache);
        format!("{text}/{}/{lines}x{bytes}/{data_lines}x{data_bytes}", self.read_bytes)
    }
}

#[cfg(test)]
#[path = "../../../qemu-plugin/src/memory.rs"]
mod memory;

#[cfg(test)]
mod tests {
    use super::super::trace::{Executed, FlashReads};
    use super::memory::{Cache, Flash as Counted, Reads, parse};
    use super::*;

    /// Units of 8 bytes, from 0 to 4096; two lines of 32 bytes for code, one for data.
    fn small() -> Counted {
        Counted::new(vec![(0, 4096)], 8, Cache::new(2, 32), Cache::new(1, 32))
    }

    #[test]
    fn every_unit_is_read_once_while_its_line_is_held() {
        let mut flash = small();
        flash.fetch(0, 20);
        let expected = Reads {
            jumps: 1,
            sequential: 2,
            data: 0,
        };
        assert_eq!(flash.reads, expected);
        // The same again, and the line's last unit.
        flash.fetch(0, 24);
        assert_eq!(flash.reads, expected);
        flash.fetch(24, 2);
        assert_eq!(flash.reads.sequential, 3);
    }

    #[test]
    fn the_line_used_longest_ago_goes() {
        let mut flash = small();
        for address in [0, 32, 0, 64, 0] {
            flash.fetch(address, 2);
        }
        // 0 was used behind 32, so 64 took the place of 32.
        assert_eq!((flash.reads.jumps, flash.reads.sequential), (3, 0));
        flash.fetch(32, 2);
        assert_eq!(flash.reads.jumps, 4);
    }

    #[test]
    fn data_has_a_cache_of_its_own_and_other_memory_is_not_flash() {
        let mut flash = small();
        flash.fetch(0, 4);
        flash.load(0, 4);
        flash.load(4, 4);
        // Across two units.
        flash.load(6, 4);
        flash.load(4096, 4);
        flash.fetch(0x2000_0000, 4);
        let expected = Reads {
            jumps: 1,
            sequential: 0,
            data: 2,
        };
        assert_eq!(flash.reads, expected);
    }

    #[test]
    fn without_a_cache_the_last_unit_is_at_hand() {
        let mut flash = Counted::new(vec![(0, 4096)], 8, Cache::new(0, 32), Cache::new(0, 32));
        for address in [0, 4, 8, 0] {
            flash.load(address, 4);
        }
        assert_eq!(flash.reads.data, 3);
    }

    #[test]
    fn what_the_plugin_is_told_is_what_it_reads() {
        for flash in &FLASHES {
            let range = |start| AddressRange { start, size: 16 };
            let text = flash.argument(&[range(0x10), range(0x2000)]);
            assert!(text.starts_with("10-20+2000-2010/"), "{text}");
            let mut counted = parse(&text).expect("is read");
            counted.load(0x2000, 4);
            counted.load(0x30, 4);
            assert_eq!(counted.reads.data, 1, "{text}");
        }
        for wrong in [
            "",
            "10-20",
            "10-20/0/1x8/1x8",
            "10-20/8/1x4/1x8",
            "10/8/1x8/1x8",
            "10-20/8/1x8",
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn stalls_are_reads_times_wait_states_less_what_is_read_ahead() {
        let mut interval = Interval::default();
        let [l4, f4] = &FLASHES;
        assert_eq!(l4.stalls(&interval, 100), None);
        interval.flash = Some(FlashReads {
            jumps: 3,
            sequential: 4,
            data: 5,
        });
        assert_eq!(l4.stalls(&interval, 100), Some(12 * 5));
        // 100 instructions of four bytes in 100 cycles: a read of 16 bytes lasts for four cycles, so that one of five is not hidden.
        let executed = Executed {
            size: 4,
            count: 100,
            split: 0,
            crossing: 0,
            encoding: 0,
            text: "nop".to_owned(),
        };
        interval.executed.insert(0, executed);
        assert_eq!(f4.stalls(&interval, 100), Some(8 * 5 + 4));
    }
}
