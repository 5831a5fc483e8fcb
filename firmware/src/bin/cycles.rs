//! Cycles by the core's own counters beside the instructions that the board's timer counts: SysTick and `mcycle`. qemu has no data watchpoint unit, which
//! the program says. Logs, for each loop, its rounds, instructions and cycles.
#![no_std]
#![no_main]

#[cfg(not(target_arch = "aarch64"))]
use arenite::cycles::Core;
use arenite::cycles::CycleCounter;
use arenite_firmware::protocol::exit;
use arenite_firmware::{
    Exchange,
    counter::{Counter, spin},
};

arenite_firmware::entry!(main);

/// A moment, several wraps of 24 bits, and moments with wraps among them.
const ROUNDS: [u32; 6] = [1000, 10_000_000, 2_000_000, 2_000_000, 2_000_000, 1000];

fn main(_: &mut Exchange) -> i32 {
    #[cfg(target_arch = "arm")]
    let mut cycles = {
        if cfg!(not(armv6m)) && arenite::cycles::Dwt::start(Core).is_none() {
            defmt::warn!("no cycle counter in the watchpoint unit");
        }
        Some(arenite::cycles::SysTick::start(Core, &WRAPS))
    };
    #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
    let mut cycles = arenite::cycles::Mcycle::start(Core);
    // Its application cores count for their operating system.
    #[cfg(target_arch = "aarch64")]
    let mut cycles = None::<&mut dyn CycleCounter>;
    let Some(cycles) = &mut cycles else {
        return exit::REFUSED;
    };
    let counter = Counter::start();
    for (index, rounds) in ROUNDS.into_iter().enumerate() {
        // In every other of the middle ones the timer's exception has to wait.
        let masked = index % 2 == 0;
        let mut of = 0;
        let instructions = counter.count(&mut || {
            if masked {
                mask();
            }
            let begun = cycles.cycles();
            spin(rounds);
            of = cycles.cycles() - begun;
            if masked {
                unmask();
            }
        });
        defmt::info!("{=u32} {=u64} {=u64}", rounds, instructions, of);
    }
    exit::DONE
}

#[cfg(target_arch = "arm")]
static WRAPS: arenite::cycles::Wraps = arenite::cycles::Wraps::new();

#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
fn SysTick() {
    WRAPS.count();
}

/// The one program with an interrupt may not be interrupted for a while.
fn mask() {
    // SAFETY: sets the core's mask of interrupts.
    #[cfg(target_arch = "arm")]
    unsafe {
        core::arch::asm!("cpsid i");
    }
}

fn unmask() {
    // SAFETY: clears it; the program holds no critical section.
    #[cfg(target_arch = "arm")]
    unsafe {
        core::arch::asm!("cpsie i");
    }
}
