//! Cortex-M: the data watchpoint unit's counter, and the system timer of cores without.

use core::sync::atomic::{AtomicU32, Ordering};

use super::counter::{CycleCounter, Prolonged};

/// Registers of 32 bits in the core's private part of the memory.
pub trait Registers {
    /// Reads a register.
    fn read(&mut self, address: usize) -> u32;

    /// Writes a register.
    fn write(&mut self, address: usize, value: u32);
}

/// Debug exception and monitor control: `TRCENA` switches the unit on.
const DEMCR: usize = 0xE000_EDFC;
const TRCENA: u32 = 1 << 24;
const DWT_CTRL: usize = 0xE000_1000;
const DWT_CYCCNT: usize = 0xE000_1004;
/// Writing the key permits writing the unit, where a core has the lock (M7).
const DWT_LAR: usize = 0xE000_1FB0;
const UNLOCK: u32 = 0xC5AC_CE55;
const CYCCNTENA: u32 = 1;
const NOCYCCNT: u32 = 1 << 25;

/// The cycle counter of the data watchpoint and trace unit: Cortex-M3, M4, M7, M33, M55 and others, not M0, M0+, M23.
#[derive(Debug)]
pub struct Dwt<R> {
    registers: R,
    count: Prolonged,
}

impl<R: Registers> Dwt<R> {
    /// Starts the counter. `None` where the core has none, or where it does not count: as in qemu, or where a chip keeps it from programs.
    pub fn start(mut registers: R) -> Option<Self> {
        let monitor = registers.read(DEMCR);
        registers.write(DEMCR, monitor | TRCENA);
        registers.write(DWT_LAR, UNLOCK);
        let control = registers.read(DWT_CTRL);
        if control & NOCYCCNT != 0 {
            return None;
        }
        registers.write(DWT_CTRL, control | CYCCNTENA);
        let first = registers.read(DWT_CYCCNT);
        let second = registers.read(DWT_CYCCNT);
        let count = Prolonged::from(second);
        (first != second).then_some(Self { registers, count })
    }
}

impl<R: Registers> CycleCounter for Dwt<R> {
    fn cycles(&mut self) -> u64 {
        let now = self.registers.read(DWT_CYCCNT);
        self.count.to(now)
    }
}

const SYST_CSR: usize = 0xE000_E010;
const SYST_RVR: usize = 0xE000_E014;
const SYST_CVR: usize = 0xE000_E018;
/// Interrupt control and state: `PENDSTSET` says that the timer's exception waits.
const ICSR: usize = 0xE000_ED04;
const PENDSTSET: u32 = 1 << 26;
/// Counts, raises its exception at zero, and by the core's clock.
const ENABLE: u32 = 1 | 1 << 1 | 1 << 2;
const LARGEST: u32 = (1 << 24) - 1;

/// Number of times that the system timer was at zero: a static of the program, whose `SysTick` exception calls [`Wraps::count`].
#[derive(Debug, Default)]
pub struct Wraps(AtomicU32);

impl Wraps {
    /// Never so far.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// To be called by the exception, and by nothing else.
    pub fn count(&self) {
        // A load and a store, for cores without compare-and-swap: nothing else writes it.
        let wraps = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(wraps, Ordering::Relaxed);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The system timer, which a program has for this alone: 24 bits, and the count of its exceptions. While interrupts are off, or one of the same or a higher
/// priority runs, the exception waits; one wrap may, two in that time are told as one.
#[derive(Debug)]
pub struct SysTick<'w, R> {
    registers: R,
    wraps: &'w Wraps,
}

impl<'w, R: Registers> SysTick<'w, R> {
    /// Starts the timer with its longest period and its exception on.
    pub fn start(mut registers: R, wraps: &'w Wraps) -> Self {
        registers.write(SYST_CSR, 0);
        registers.write(SYST_RVR, LARGEST);
        // Whatever is written clears it.
        registers.write(SYST_CVR, 0);
        registers.write(SYST_CSR, ENABLE);
        Self { registers, wraps }
    }
}

impl<R: Registers> CycleCounter for SysTick<'_, R> {
    fn cycles(&mut self) -> u64 {
        loop {
            let wraps = self.wraps.get();
            let before = self.registers.read(SYST_CVR);
            let waits = self.registers.read(ICSR) & PENDSTSET != 0;
            let after = self.registers.read(SYST_CVR);
            // With an exception in between, nobody knows on which side of it the value was read.
            if self.wraps.get() != wraps {
                continue;
            }
            let (wraps, value) = if waits {
                (wraps.wrapping_add(1), after)
            } else {
                (wraps, before)
            };
            // The timer counts down, and a period begins with the zero that raises the exception.
            let within = value.wrapping_neg() & LARGEST;
            return u64::from(wraps) << 24 | u64::from(within);
        }
    }
}

#[cfg(kernel_isa = "cortex_m")]
#[allow(unsafe_code)]
impl Registers for super::counter::Core {
    fn read(&mut self, address: usize) -> u32 {
        // SAFETY: the private peripherals of every Cortex-M; reading one that is not there reads zero or faults.
        unsafe { core::ptr::read_volatile(core::ptr::with_exposed_provenance(address)) }
    }

    fn write(&mut self, address: usize, value: u32) {
        // SAFETY: the private peripherals of every Cortex-M; the counters' registers are no memory of the program.
        unsafe { core::ptr::write_volatile(core::ptr::with_exposed_provenance_mut(address), value) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::vec::Vec;

    use super::*;

    /// A unit with a counter that goes on by 7 at each reading.
    struct Unit {
        lacks_counter: bool,
        stands_still: bool,
        locked: bool,
        monitor: u32,
        control: u32,
        count: u32,
    }

    const UNIT: Unit = Unit {
        lacks_counter: false,
        stands_still: false,
        locked: true,
        monitor: 1 << 3,
        control: 0x4000_0000,
        count: 0xFFFF_FFF0,
    };

    impl Registers for &mut Unit {
        fn read(&mut self, address: usize) -> u32 {
            match address {
                DEMCR => self.monitor,
                DWT_CTRL => self.control | u32::from(self.lacks_counter) << 25,
                DWT_CYCCNT => {
                    let runs = self.monitor & TRCENA != 0 && self.control & CYCCNTENA != 0 && !self.stands_still;
                    self.count = self.count.wrapping_add(7 * u32::from(runs));
                    self.count
                }
                _ => panic!("read {address:#x}"),
            }
        }

        fn write(&mut self, address: usize, value: u32) {
            match address {
                DEMCR => self.monitor = value,
                DWT_LAR => self.locked = value != UNLOCK,
                DWT_CTRL if !self.locked => self.control = value,
                DWT_CTRL => {}
                _ => panic!("wrote {address:#x}"),
            }
        }
    }

    #[test]
    fn the_unit_is_switched_on_unlocked_and_read_across_its_wrap() {
        let mut unit = UNIT;
        let mut counter = Dwt::start(&mut unit).expect("a counter");
        let counts: Vec<u64> = (0..4).map(|_| counter.cycles()).collect();
        assert_eq!(counts, [7, 14, 21, 28]);
        assert!(unit.count < 0x100, "it wrapped");
        // Bits set by others stay.
        assert_eq!((unit.monitor, unit.control), (1 << 3 | TRCENA, 0x4000_0001));
    }

    #[test]
    fn a_core_without_the_counter_has_none() {
        assert!(
            Dwt::start(&mut Unit {
                lacks_counter: true,
                ..UNIT
            })
            .is_none()
        );
        assert!(
            Dwt::start(&mut Unit {
                stands_still: true,
                ..UNIT
            })
            .is_none()
        );
    }

    /// A timer whose readings a test states; what happens before a reading may count a wrap.
    struct Timer<'a> {
        readings: RefCell<VecDeque<(usize, u32, bool)>>,
        wraps: &'a Wraps,
        written: Vec<(usize, u32)>,
    }

    impl Registers for &mut Timer<'_> {
        fn read(&mut self, address: usize) -> u32 {
            let next = self.readings.borrow_mut().pop_front();
            let (expected, value, exception) = next.expect("a reading");
            assert_eq!(address, expected);
            if exception {
                self.wraps.count();
            }
            value
        }

        fn write(&mut self, address: usize, value: u32) {
            self.written.push((address, value));
        }
    }

    /// The count of a timer that was at zero `wraps` times, from readings of its value, of what waits and of its value again.
    fn count(wraps: u32, readings: &[(u32, u32, u32)], exception_before: Option<usize>) -> u64 {
        let of = Wraps::new();
        (0..wraps).for_each(|_| of.count());
        let places = readings
            .iter()
            .flat_map(|&(before, waits, after)| [(SYST_CVR, before), (ICSR, waits), (SYST_CVR, after)]);
        let readings = places
            .enumerate()
            .map(|(at, (address, value))| (address, value, exception_before == Some(at)));
        let mut timer = Timer {
            readings: RefCell::new(readings.collect()),
            wraps: &of,
            written: Vec::new(),
        };
        let cycles = SysTick::start(&mut timer, &of).cycles();
        assert!(timer.readings.borrow().is_empty(), "all was read");
        let set = [(SYST_CSR, 0), (SYST_RVR, LARGEST), (SYST_CVR, 0), (SYST_CSR, 7)];
        assert_eq!(timer.written, set);
        cycles
    }

    #[test]
    fn the_timer_counts_down_from_the_zero_of_its_wrap() {
        const PERIOD: u64 = 1 << 24;
        assert_eq!(count(0, &[(0, 0, LARGEST)], None), 0);
        assert_eq!(count(0, &[(LARGEST, 0, LARGEST - 3)], None), 1);
        assert_eq!(count(0, &[(1, 0, 0)], None), PERIOD - 1);
        assert_eq!(count(1, &[(0, 0, LARGEST)], None), PERIOD);
        assert_eq!(count(300, &[(LARGEST - 9, 0, LARGEST - 20)], None), 300 * PERIOD + 10);
    }

    #[test]
    fn a_wrap_whose_exception_waits_is_counted() {
        const PERIOD: u64 = 1 << 24;
        // The timer was at zero before the first reading, or between both.
        assert_eq!(
            count(2, &[(LARGEST - 4, PENDSTSET, LARGEST - 9)], None),
            3 * PERIOD + 10
        );
        assert_eq!(count(2, &[(2, PENDSTSET, LARGEST - 9)], None), 3 * PERIOD + 10);
    }

    #[test]
    fn a_reading_that_the_exception_interrupts_is_taken_again() {
        const PERIOD: u64 = 1 << 24;
        for at in 1..3 {
            let readings = [(2, 0, LARGEST - 5), (LARGEST - 30, 0, LARGEST - 40)];
            assert_eq!(count(2, &readings, Some(at)), 3 * PERIOD + 31);
        }
    }
}
