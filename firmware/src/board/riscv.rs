//! RISC-V `virt` and `sifive_u`, machine mode, no operating system and no firmware below it.

use core::arch::{asm, global_asm};

// A hart without the D extension (misa, bit 3) that this is compiled for sleeps for good: on `sifive_u` the monitor core, beside the one that runs this.
#[cfg(all(target_arch = "riscv64", not(smp)))]
global_asm!(
    r#"
    .macro arenite_hart
    csrr    t0, misa
    andi    t0, t0, 8
    bnez    t0, 2f
1:  wfi
    j       1b
2:
    .endm
"#
);

#[cfg(target_arch = "riscv32")]
global_asm!(".macro arenite_hart", ".endm");

// Of several harts the first one runs this. Another one makes a software interrupt pending for itself, which nothing takes and which ends each `wfi`, waits
// until the first has cleared the memory and says so, and goes on with a stack of its own.
#[cfg(smp)]
global_asm!(
    r#"
    .macro arenite_hart
    csrr    s0, mhartid
    beqz    s0, 2f
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    csrwi   mie, 8
    li      t0, {software_interrupts}
    slli    t1, s0, 2
    add     t0, t0, t1
    li      t1, 1
    sw      t1, 0(t0)
    la      t0, {ready}
    li      t1, {magic}
1:  wfi
    lw      t2, 0(t0)
    bne     t1, t2, 1b
    fence
    la      t0, arenite_trap
    csrw    mtvec, t0
    li      t0, 0x2200
    csrs    mstatus, t0
    la      t0, {begin}
    slli    t1, s0, 3
    add     t1, t0, t1
    ld      sp, 8(t1)
    ld      t0, 0(t0)
    mv      a0, s0
    jalr    t0
2:
    .endm
"#,
    software_interrupts = const cores::SOFTWARE_INTERRUPTS,
    ready = sym cores::READY,
    magic = const cores::MAGIC,
    begin = sym super::others::BEGIN,
);

// mstatus.FS = 0b01 (bits 13..14) switches the floating-point unit on, VS = 0b01 (bits 9..10) the vectors; cores without ignore it.
global_asm!(
    r#"
    .section .text.start, "ax"
    .global _start
_start:
    arenite_hart
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    la      sp, _stack_start
    la      t0, arenite_trap
    csrw    mtvec, t0
    li      t0, 0x2200
    csrs    mstatus, t0
    la      t0, __sbss
    la      t1, __ebss
1:  bgeu    t0, t1, 2f
    sw      zero, 0(t0)
    addi    t0, t0, 4
    j       1b
2:  call    {start}

    .section .text.trap, "ax"
    .balign 4
arenite_trap:
    mv      a0, ra
    mv      a1, sp
    call    {trap}
"#,
    start = sym start,
    trap = sym trap,
);

extern "C" fn start() -> ! {
    crate::run::run_program()
}

extern "C" fn trap(ra: usize, sp: usize) -> ! {
    let (pc, cause, address): (usize, usize, usize);
    // SAFETY: reads the trap's registers; machine mode may.
    unsafe {
        asm!("csrr {}, mepc", "csrr {}, mcause", "csrr {}, mtval", out(reg) pc, out(reg) cause, out(reg) address);
    }
    crate::run::fault(pc as u64, ra as u64, sp as u64, cause as u64, address as u64)
}

/// The other harts.
#[cfg(smp)]
pub(crate) mod cores {
    use core::arch::asm;
    use core::ptr;
    use core::sync::atomic::{AtomicU32, Ordering};

    use arenite::MAX_CORES;

    /// The first address of the words that make software interrupts pending, one for each hart.
    pub(super) const SOFTWARE_INTERRUPTS: usize = 0x0200_0000;
    /// Value that memory does not have by accident.
    pub(super) const MAGIC: u32 = 0x5ac3_3ca5;
    /// Says that memory is cleared.
    pub(super) static READY: AtomicU32 = AtomicU32::new(0);

    /// Lets the others go on, to `work` with their index on a stack of that top; says how many harts there are.
    pub(crate) fn wake(work: extern "C" fn(usize) -> !, tops: [usize; MAX_CORES]) -> usize {
        super::super::others::begin(work, tops);
        // SAFETY: enables no interrupt, for mstatus.MIE stays off: a pending one ends `wfi`.
        unsafe { asm!("csrwi mie, 8", options(nomem, nostack)) };
        // A hart that is not there keeps no interrupt.
        let there = |hart: &usize| {
            let word = ptr::with_exposed_provenance_mut::<u32>(SOFTWARE_INTERRUPTS + 4 * hart);
            // SAFETY: a word of the board's interrupt controller, which this function alone writes.
            unsafe {
                word.write_volatile(1);
                word.read_volatile() & 1 == 1
            }
        };
        let count = (0..MAX_CORES).take_while(there).count();
        READY.store(MAGIC, Ordering::Release);
        count
    }

    /// Lets others run: a hart that waits for an interrupt gives way in qemu, and goes on as one is pending.
    pub(crate) fn give_way() {
        // SAFETY: waits, and touches no memory and no register.
        unsafe { asm!("wfi", options(nomem, nostack)) };
    }
}

/// Retired instructions: exact under `-icount shift=0`.
pub(crate) mod timer {
    use core::arch::asm;

    #[cfg(target_arch = "riscv64")]
    pub(crate) type Reading = u64;
    /// High, low and high half again.
    #[cfg(target_arch = "riscv32")]
    pub(crate) type Reading = [u32; 3];

    pub(crate) fn start() {}

    #[cfg(target_arch = "riscv64")]
    #[inline(always)]
    pub(crate) fn now() -> Reading {
        let count;
        // SAFETY: copies a counter, which machine mode may read.
        unsafe { asm!("rdinstret {}", out(reg) count, options(nomem, nostack)) };
        count
    }

    /// The high half is read on both sides of the low one, always, so that reading costs the same every time.
    #[cfg(target_arch = "riscv32")]
    #[inline(always)]
    pub(crate) fn now() -> Reading {
        let (before, low, after): (u32, u32, u32);
        // SAFETY: copies a counter's halves, which machine mode may read.
        unsafe {
            asm!("rdinstreth {}", "rdinstret {}", "rdinstreth {}", out(reg) before, out(reg) low, out(reg) after,
                options(nomem, nostack));
        }
        [before, low, after]
    }

    #[cfg(target_arch = "riscv64")]
    pub(crate) fn instructions(start: Reading, end: Reading) -> u64 {
        end.wrapping_sub(start)
    }

    #[cfg(target_arch = "riscv32")]
    pub(crate) fn instructions(start: Reading, end: Reading) -> u64 {
        let count = |[before, low, after]: Reading| crate::board::ticks::joined(before, low, after);
        count(end).wrapping_sub(count(start))
    }
}

/// Whether this hart has the vectors that programs for such boards are compiled with: bit 21 of `misa` (Privileged Architecture, 3.1.1).
#[cfg(identified)]
pub(crate) fn cpu() -> arenite::Cpu {
    let misa: usize;
    // SAFETY: says what the hart has; machine mode may read it.
    unsafe { asm!("csrr {}, misa", out(reg) misa, options(nomem, nostack, preserves_flags)) };
    match misa >> 21 & 1 {
        0 => arenite::Cpu::COMPILED.without(arenite::Backend::Rvv),
        _ => arenite::Cpu::COMPILED,
    }
}
