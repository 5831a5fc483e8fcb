//! RISC-V: the standard's counter, and that of a chip that has its own instead.

use super::counter::{CycleCounter, Prolonged};

/// Control and status registers. Their numbers are part of the instruction, hence constants.
pub trait Csrs {
    /// Whether a register has 64 bits.
    const WIDE: bool;

    /// Reads a register.
    fn read<const CSR: u16>(&mut self) -> u64;

    /// Writes a register.
    fn write<const CSR: u16>(&mut self, value: u32);
}

const MCYCLE: u16 = 0xB00;
const MCYCLEH: u16 = 0xB80;

/// `mcycle` of machine mode.
#[derive(Debug)]
pub struct Mcycle<C>(C);

impl<C: Csrs> Mcycle<C> {
    /// The counter, which runs from reset on. `None` where it stands still: a program or a chip may inhibit it.
    pub fn start(csrs: C) -> Option<Self> {
        let mut counter = Self(csrs);
        (counter.cycles() != counter.cycles()).then_some(counter)
    }
}

impl<C: Csrs> CycleCounter for Mcycle<C> {
    fn cycles(&mut self) -> u64 {
        if C::WIDE {
            return self.0.read::<MCYCLE>();
        }
        loop {
            let high = self.0.read::<MCYCLEH>();
            let low = self.0.read::<MCYCLE>();
            // Else the lower half wrapped in between.
            if self.0.read::<MCYCLEH>() == high {
                return high << 32 | low;
            }
        }
    }
}

/// CSRs of the performance counter: the counted event, whether it counts, and the count.
const MPCER: u16 = 0x7E0;
const MPCMR: u16 = 0x7E1;
const MPCCR: u16 = 0x7E2;
const CYCLES: u32 = 1;
/// Counts, and goes on from zero behind the largest count.
const ENABLE: u32 = 1;

/// The performance counter of the ESP32-C3's core, which has no `mcycle`. 32 bits.
#[derive(Debug)]
pub struct Esp32C3<C> {
    csrs: C,
    count: Prolonged,
}

impl<C: Csrs> Esp32C3<C> {
    /// Sets the counter to cycles and starts it. `None` where it does not count.
    pub fn start(mut csrs: C) -> Option<Self> {
        csrs.write::<MPCER>(CYCLES);
        csrs.write::<MPCMR>(ENABLE);
        let first = csrs.read::<MPCCR>();
        let second = csrs.read::<MPCCR>();
        let count = Prolonged::from(second as u32);
        (first != second).then_some(Self { csrs, count })
    }
}

impl<C: Csrs> CycleCounter for Esp32C3<C> {
    fn cycles(&mut self) -> u64 {
        let now = self.csrs.read::<MPCCR>() as u32;
        self.count.to(now)
    }
}

#[cfg(all(target_os = "none", any(target_arch = "riscv32", target_arch = "riscv64")))]
#[allow(unsafe_code)]
impl Csrs for super::counter::Core {
    const WIDE: bool = cfg!(target_pointer_width = "64");

    #[inline(always)]
    fn read<const CSR: u16>(&mut self) -> u64 {
        let value: usize;
        // SAFETY: reads a register of machine mode; one that is not there traps.
        unsafe {
            core::arch::asm!(
                ".option push", ".option arch, +zicsr", "csrr {value}, {csr}", ".option pop",
                value = out(reg) value, csr = const CSR, options(nomem, nostack)
            );
        }
        value as u64
    }

    #[inline(always)]
    fn write<const CSR: u16>(&mut self, value: u32) {
        // SAFETY: writes a register of machine mode that has to do with counting alone.
        unsafe {
            core::arch::asm!(
                ".option push", ".option arch, +zicsr", "csrw {csr}, {value}", ".option pop",
                value = in(reg) value as usize, csr = const CSR, options(nomem, nostack)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// A core of a word's width that takes 3 cycles for each access.
    struct Narrow {
        count: u64,
        step: u64,
        mode: [u32; 2],
    }

    fn core(count: u64, step: u64) -> Narrow {
        let mode = [0; 2];
        Narrow { count, step, mode }
    }

    impl Csrs for &mut Narrow {
        const WIDE: bool = false;

        fn read<const CSR: u16>(&mut self) -> u64 {
            let runs = CSR != MPCCR || self.mode == [CYCLES, ENABLE];
            self.count += self.step * u64::from(runs);
            match CSR {
                MCYCLE | MPCCR => self.count & u64::from(u32::MAX),
                MCYCLEH => self.count >> 32,
                _ => panic!("read {CSR:#x}"),
            }
        }

        fn write<const CSR: u16>(&mut self, value: u32) {
            match CSR {
                MPCER => self.mode[0] = value,
                MPCMR => self.mode[1] = value,
                _ => panic!("wrote {CSR:#x}"),
            }
        }
    }

    struct Wide(u64);

    impl Csrs for Wide {
        const WIDE: bool = true;

        fn read<const CSR: u16>(&mut self) -> u64 {
            assert_eq!(CSR, MCYCLE);
            self.0 += 5;
            self.0
        }

        fn write<const CSR: u16>(&mut self, _: u32) {
            panic!("wrote {CSR:#x}");
        }
    }

    #[test]
    fn halves_are_read_until_they_belong_together() {
        // The lower half is full at the second of the three readings, at the third, or at none.
        for first in [
            0x1_FFFF_FFF0u64,
            0x1_FFFF_FFF6,
            0x1_FFFF_FFF9,
            0x1_FFFF_FFFC,
            0x1_FFFF_FFFE,
        ] {
            let mut core = core(first, 3);
            let mut counter = Mcycle(&mut core);
            let read = counter.cycles();
            let now = core.count;
            assert!(read <= now && now - read < 10, "{first:#x}: {read:#x} at {now:#x}");
        }
        let mut counter = Mcycle::start(Wide(0xFFFF_FFFF_0000)).expect("it counts");
        assert_eq!(counter.cycles(), 0xFFFF_FFFF_000F);
    }

    #[test]
    fn a_counter_that_stands_still_is_none() {
        assert!(Mcycle::start(&mut core(40, 0)).is_none());
        assert!(Esp32C3::start(&mut core(40, 0)).is_none());
    }

    #[test]
    fn the_chips_own_counter_is_set_to_cycles_and_wraps() {
        let mut core = core(0xFFFF_FFF0, 4);
        let mut counter = Esp32C3::start(&mut core).expect("it counts");
        let counts: Vec<u64> = (0..4).map(|_| counter.cycles()).collect();
        assert_eq!(counts, [4, 8, 12, 16]);
        assert!(core.count > 0xFFFF_FFFF, "it wrapped");
    }
}
