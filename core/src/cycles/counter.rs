//! The trait of a cycle counter, and a counter of 32 bits that goes on.

/// The registers of the core that the program runs on. Reaching them wants the privilege that start-up code runs with.
#[cfg(any(
    kernel_isa = "cortex_m",
    all(target_os = "none", any(target_arch = "riscv32", target_arch = "riscv64"))
))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Core;

/// A counter that was started.
pub trait CycleCounter {
    /// Cycles since some moment before.
    fn cycles(&mut self) -> u64;
}

impl<C: CycleCounter + ?Sized> CycleCounter for &mut C {
    fn cycles(&mut self) -> u64 {
        (*self).cycles()
    }
}

/// A count of 32 bits, prolonged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prolonged {
    last: u32,
    total: u64,
}

impl Prolonged {
    pub(super) fn from(now: u32) -> Self {
        Self { last: now, total: 0 }
    }

    /// Cycles up to `now`, which is less than 2^32 of them after the last call.
    pub(super) fn to(&mut self, now: u32) -> u64 {
        self.total = self.total.wrapping_add(now.wrapping_sub(self.last).into());
        self.last = now;
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_on_where_its_register_wraps() {
        let mut count = Prolonged::from(0xFFFF_FFF0);
        assert_eq!(count.to(0xFFFF_FFFF), 0xF);
        assert_eq!(count.to(0x10), 0x20);
        assert_eq!(count.to(0xF), 0x1_0000_001F);
        assert_eq!(count.to(0xF), 0x1_0000_001F);
    }
}
