//! AArch64 `virt`, exception level 1, caches and MMU off. The target is built strict-align, because without an MMU all
//! memory counts as device memory, where a real core traps unaligned access.

use core::arch::{asm, global_asm};

// CPACR_EL1.FPEN = 0b11 lets floating point and NEON through, SMEN = 0b11 the scalable matrix extension, where ID_AA64PFR1_EL1 has it; SMCR_EL1.LEN (of the
// register s3_0_c1_c2_6) then asks for the longest vectors, and FA64 stays 0: in streaming mode there is no NEON. Each of the 16 vectors has 128 bytes; all
// lead to one place.
global_asm!(
    r#"
    .section .text.start, "ax"
    .global _start
_start:
    adrp    x0, _stack_start
    add     x0, x0, :lo12:_stack_start
    mov     sp, x0
    mov     x0, #(3 << 20)
    msr     cpacr_el1, x0
    mrs     x1, id_aa64pfr1_el1
    ubfx    x1, x1, #24, #4
    cbz     x1, 3f
    orr     x0, x0, #(3 << 24)
    msr     cpacr_el1, x0
    isb
    mov     x0, #15
    msr     s3_0_c1_c2_6, x0
3:  adrp    x0, arenite_vectors
    add     x0, x0, :lo12:arenite_vectors
    msr     vbar_el1, x0
    isb
    adrp    x0, __sbss
    add     x0, x0, :lo12:__sbss
    adrp    x1, __ebss
    add     x1, x1, :lo12:__ebss
1:  cmp     x0, x1
    b.hs    2f
    str     xzr, [x0], #8
    b       1b
2:  bl      {start}

    .balign 2048
arenite_vectors:
    .rept 16
    .balign 128
    mov     x0, x30
    mov     x1, sp
    b       {trap}
    .endr
"#,
    start = sym start,
    trap = sym trap,
);

// Another core comes here with its index, the first one's settings still to be made.
#[cfg(smp)]
global_asm!(
    r#"
    .section .text.start, "ax"
    .global arenite_core_start
arenite_core_start:
    adrp    x2, {begin}
    add     x2, x2, :lo12:{begin}
    add     x1, x2, x0, lsl #3
    ldr     x1, [x1, #8]
    mov     sp, x1
    mov     x1, #(3 << 20)
    msr     cpacr_el1, x1
    adrp    x1, arenite_vectors
    add     x1, x1, :lo12:arenite_vectors
    msr     vbar_el1, x1
    isb
    ldr     x2, [x2]
    blr     x2
"#,
    begin = sym super::others::BEGIN,
);

extern "C" fn start() -> ! {
    crate::run::run_program()
}

extern "C" fn trap(lr: u64, sp: u64) -> ! {
    let (pc, cause, address): (u64, u64, u64);
    // SAFETY: reads the exception's registers; level 1 may.
    unsafe {
        asm!("mrs {}, elr_el1", "mrs {}, esr_el1", "mrs {}, far_el1", out(reg) pc, out(reg) cause, out(reg) address);
    }
    crate::run::fault(pc, lr, sp, cause, address)
}

/// The other cores, by the calls of PSCI that qemu answers.
#[cfg(smp)]
pub(crate) mod cores {
    use core::arch::asm;

    use arenite::MAX_CORES;

    unsafe extern "C" {
        static arenite_core_start: u8;
    }

    /// Switches the others on, to `work` with their index on a stack of that top; says how many cores there are.
    pub(crate) fn wake(work: extern "C" fn(usize) -> !, tops: [usize; MAX_CORES]) -> usize {
        super::super::others::begin(work, tops);
        (1..MAX_CORES).take_while(|&core| cpu_on(core) == 0).count() + 1
    }

    /// PSCI's CPU_ON: 0 where there is such a core.
    fn cpu_on(core: usize) -> i64 {
        let answer;
        // SAFETY: the core begins at a function that takes its index; a call changes the registers of arguments alone.
        unsafe {
            asm!(
                "hvc #0",
                inout("x0") 0xc400_0003_u64 => answer,
                inout("x1") core => _,
                inout("x2") &raw const arenite_core_start => _,
                inout("x3") core => _,
                clobber_abi("C"),
            );
        }
        answer
    }

    /// Lets others run.
    pub(crate) fn give_way() {
        // SAFETY: a hint, which touches no memory and no register.
        unsafe { asm!("yield", options(nomem, nostack)) };
    }
}

/// The 64-bit cycle counter: qemu's runs at 1 GHz, which under `-icount shift=0` is one cycle an instruction.
pub(crate) mod timer {
    use core::arch::asm;

    pub(crate) type Reading = u64;

    pub(crate) fn start() {
        // SAFETY: switches the performance monitor and its cycle counter on; PMCR.LC makes it 64 bits wide.
        unsafe {
            asm!(
                "msr pmccfiltr_el0, xzr",
                "msr pmcntenset_el0, {cycle}",
                "msr pmcr_el0, {enable}",
                "isb",
                cycle = in(reg) 1u64 << 31,
                enable = in(reg) 1u64 | 1 << 6,
            );
        }
    }

    #[inline(always)]
    pub(crate) fn now() -> Reading {
        let count;
        // SAFETY: copies a counter, which any exception level here may read.
        unsafe { asm!("mrs {}, pmccntr_el0", out(reg) count, options(nomem, nostack)) };
        count
    }

    pub(crate) fn instructions(start: Reading, end: Reading) -> u64 {
        end.wrapping_sub(start)
    }
}

/// Returns the features of this core that programs for such boards are compiled with, by its identification registers (Arm ARM, D23.2): `ID_AA64ISAR0_EL1.DP`,
/// `ID_AA64ISAR1_EL1.I8MM`, `ID_AA64PFR1_EL1.SME`.
#[cfg(identified)]
pub(crate) fn cpu() -> arenite::Cpu {
    use arenite::Backend;
    let (first, second, third): (u64, u64, u64);
    // SAFETY: registers that say what the core has; exception level 1 may read them.
    unsafe {
        asm!(
            "mrs {}, id_aa64isar0_el1",
            "mrs {}, id_aa64isar1_el1",
            "mrs {}, id_aa64pfr1_el1",
            out(reg) first, out(reg) second, out(reg) third,
            options(nomem, nostack, preserves_flags)
        );
    }
    let mut cpu = arenite::Cpu::COMPILED;
    for (backend, register, lowest) in [
        (Backend::Dotprod, first, 44),
        (Backend::I8mm, second, 52),
        (Backend::Sme, third, 24),
    ] {
        if register >> lowest & 15 == 0 {
            cpu = cpu.without(backend);
        }
    }
    cpu
}
