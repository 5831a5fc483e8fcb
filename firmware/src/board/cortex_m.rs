//! Cortex-M: start-up is cortex-m-rt's, which also switches the FPU on for the hard-float targets.

use cortex_m_rt::{ExceptionFrame, entry, exception};

#[entry]
fn start() -> ! {
    crate::run::run_program()
}

/// Every fault escalates to this one, because no other is enabled.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    // Bytes of the frame that the core pushed; the stack pointer before the fault lies above it.
    const FRAME: usize = 32;
    let (cause, address) = cause();
    let sp = core::ptr::from_ref(frame).addr() + FRAME;
    crate::run::fault(frame.pc().into(), frame.lr().into(), sp as u64, cause, address)
}

/// The configurable fault status and the address that faulted. The v6-M cores have neither.
#[cfg(not(armv6m))]
fn cause() -> (u64, u64) {
    const CFSR: usize = 0xe000_ed28;
    const MMFAR: usize = 0xe000_ed34;
    const BFAR: usize = 0xe000_ed38;
    const MMFAR_VALID: u32 = 1 << 7;
    const BFAR_VALID: u32 = 1 << 15;
    // SAFETY: registers of the system control block, readable in handler mode.
    let read = |register| unsafe { core::ptr::read_volatile(core::ptr::with_exposed_provenance::<u32>(register)) };
    let status = read(CFSR);
    let address = match status {
        _ if status & BFAR_VALID != 0 => read(BFAR),
        _ if status & MMFAR_VALID != 0 => read(MMFAR),
        _ => 0,
    };
    (status.into(), address.into())
}

#[cfg(armv6m)]
fn cause() -> (u64, u64) {
    (0, 0)
}
