//! One file per core family: start-up, faults, and the timer that counts instructions. Which timer, and where, says the board's row in
//! `host-tools/board/src/board/table.rs`.

#[cfg(smp)]
mod others;
#[cfg(board)]
pub(crate) mod row;
#[cfg(any(target_arch = "arm", target_arch = "riscv32"))]
mod ticks;

#[cfg(target_arch = "arm")]
mod cortex_m;

#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
mod riscv;
#[cfg(all(smp, target_arch = "riscv64"))]
pub(crate) use riscv::cores;
#[cfg(all(identified, any(target_arch = "riscv32", target_arch = "riscv64")))]
pub(crate) use riscv::cpu;
#[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
pub(crate) use riscv::timer;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(all(smp, target_arch = "aarch64"))]
pub(crate) use aarch64::cores;
#[cfg(all(identified, target_arch = "aarch64"))]
pub(crate) use aarch64::cpu;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::timer;

/// The core's memory protection.
#[cfg_attr(target_arch = "arm", path = "mpu.rs")]
#[cfg_attr(any(target_arch = "riscv32", target_arch = "riscv64"), path = "pmp.rs")]
#[cfg_attr(target_arch = "aarch64", path = "mmu.rs")]
pub(crate) mod protection;

#[cfg(timer = "cmsdk")]
#[path = "cmsdk_timer.rs"]
pub(crate) mod timer;

#[cfg(timer = "system_counter")]
#[path = "system_counter.rs"]
pub(crate) mod timer;

#[cfg(timer = "nrf")]
#[path = "nrf_timer.rs"]
pub(crate) mod timer;
