//! RISC-V `virt` and `sifive_u`, machine mode, no operating system and no firmware below it.

use core::arch::{asm, global_asm};

// A hart without the D extension (misa, bit 3) that this is compiled for sleeps for good: on `sifive_u` the monitor core, beside the one that runs this.
#[cfg(target_arch = "riscv64")]
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
        // SAFETY: reads a counter.
        unsafe { asm!("rdinstret {}", out(reg) count, options(nomem, nostack)) };
        count
    }

    /// The high half is read on both sides of the low one, always, so that reading costs the same every time.
    #[cfg(target_arch = "riscv32")]
    #[inline(always)]
    pub(crate) fn now() -> Reading {
        let (before, low, after): (u32, u32, u32);
        // SAFETY: reads a counter's halves.
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
