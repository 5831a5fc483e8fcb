//! Arenite: a network as a flat list of steps laid out in one arena.
//!
//! A model file is checked once, in place, and then run from memory that the caller owns: no allocation, no panic, no global
//! state.
//!
//! ```
//! // Output of `pack`; the path is from the package's root. The file is checked when the program is compiled; what is left are its weights, and calls.
//! arenite::include_model!(mod mlp = "../tests/models/compat/mlp-v2.bin");
//!
//! # fn main() {
//! let mut session = mlp::session().unwrap(); // in memory of this program, once
//! let logits: &[f32; 10] = mlp::run(&mut session, &[0.5; 64]);
//! let [(digit, _)] = arenite::top(logits);
//! # assert!(digit < 10);
//! # }
//! ```
//!
//! Everything that is wrong about the file, its types and sizes that can be known when the program is compiled is an error of the compiler: [`include_model!`].
//! Models that come later (a partition, an update) are loaded from bytes, into slices of the caller's:
//!
//! ```
//! # fn run(file: &[u8], arena: &mut [u8], image: &[f32]) -> Result<(), arenite::Error> {
//! let model = arenite::Model::load(file)?;
//! let mut session = arenite::Session::new(model, arena, &mut [])?;
//! session.set_values(0, image)?;
//! session.run()?;
//! let logits: &[f32] = session.values(0)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Session::step`] advances a run step by step, so that a program can do other work in between. The rest is for those who change this crate; packers
//! and their tests turn the feature `pack` on, which shows the modules below and adds the writer of model files. From the bottom up:
//!
//! - [`cells`]: bytes as elements. With the kernels, [`Once`], the registers of [`cycles`] and runs on several cores the only place with `unsafe`.
//! - [`arena`]: places in the caller's memory, and operands at them.
//! - [`ops`]: what each operator means and what must hold for its parameters. It knows no kernel.
//! - [`kernels`]: the loops, one folder a backend, and the table of all of them.
//! - [`blob`]: the file. [`Model::load`] checks all of it: the one trust boundary.
//! - [`bundle`]: several files in one, sharing an arena.
//! - [`signed`]: the envelope of a signed file; the feature `verify` believes it only where the signature is right.
//! - `compiled`: sessions of models that [`include_model!`] has compiled. The crates `arenite-include`, its macro, and `arenite-checks`, the sources of this
//!   one for the machine that compiles, check the file.
//! - [`session`]: [`Session`] walks the steps; [`cycles`] counts what they take, by the core's own counter.
//!
//! No file imports another one that imports it, in whatever many steps.
//!
//! **Invariants.** After a successful load every operand of every step lies inside its memory, is aligned, and overlaps
//! another one only where the kernel's own rule allows it, and what kernels trust among the weights is fit to be trusted. A kernel that
//! runs out of its operands all the same, because the file changed under it, returns `None`, which a session reports as
//! [`RunError::Corrupt`].
//!
//! **Features**, all off by default but `include`, with which [`include_model!`] compiles models, and `error-text`, without which errors print their number
//! alone ([`codes`]): `dsp` for Cortex-M4, M7 and other cores with Arm's DSP
//! extension, `mve` for Cortex-M55 and M85 (take `dsp` too),
//! `rvv` for RISC-V cores with vectors, `sme` for AArch64 cores with outer products,
//! `text` for tokenizers and generated text, `training` for models that a device trains, `rolling` for inputs that are fed by rows,
//! `verify` for signed files, `guard` for canaries behind arenas and state, `defmt` for log formatting,
//! `slots` for updates in two slots of a flash, `events-defmt` and `events-log` for an event a step, `testkit`, `testkit-small` and
//! `testkit-registers` for generated cases of the
//! kernels,
//! `cores` for models of several cores, `accelerators` for models of which an accelerator runs steps, `ethos-u` for models with commands for such an NPU,
//! `critical-section` and `portable-atomic` for cores without compare-and-swap, `pack` for packers.
//! A target whose cores cannot have an extension does not build with its feature; a core of such a target without it (some Cortex-M33) faults at the first step
//! that wants it. Where a feature is off, load
//! refuses a model that names its kernels. Hosts have all kernels in portable Rust.
//!
//! **To add an operator**: its struct in `ops`, its kernel in `kernels::portable`, a row in `kernels::table`, and its half in the host
//! tools; exhaustive matches name what is missing. **To add a backend**: a folder in `kernels`, a row in the table of `kernels`, and its kernels' rows in
//! `kernels::table`.
#![no_std]
#![deny(unsafe_code)]

#[cfg(feature = "accelerators")]
#[allow(unsafe_code)]
pub mod accelerators;
mod align;
#[cfg_attr(not(feature = "pack"), doc(hidden))]
pub mod arena;
pub mod blob;
mod blocks;
pub mod bundle;
#[allow(unsafe_code)]
#[cfg_attr(not(feature = "pack"), doc(hidden))]
pub mod cells;
pub mod codes;
#[cfg(feature = "include")]
#[doc(hidden)]
pub mod compiled;
#[cfg(feature = "cores")]
#[allow(unsafe_code)]
pub mod cores;
mod crc;
pub mod cycles;
#[cfg(feature = "accelerators")]
mod declared;
#[doc(hidden)]
pub mod embed;
mod error;
mod errors;
#[cfg(feature = "ethos-u")]
#[allow(unsafe_code)]
pub mod ethos_u;
mod events;
mod fields;
#[cfg(feature = "cores")]
mod groups;
#[cfg(feature = "guard")]
pub mod guard;
mod include;
#[cfg_attr(not(feature = "pack"), doc(hidden))]
pub mod kernels;
mod memory;
mod once;
#[cfg_attr(not(feature = "pack"), doc(hidden))]
pub mod ops;
#[cfg(any(not(feature = "error-text"), test))]
mod printed;
#[cfg_attr(not(feature = "pack"), doc(hidden))]
pub mod quant;
#[cfg_attr(
    not(feature = "rolling"),
    allow(dead_code, unreachable_pub, reason = "without rolled files there are no turns")
)]
mod rolled;
pub mod self_test;
pub mod session;
pub mod signed;
#[cfg(feature = "slots")]
pub mod slots;
mod target;
mod tensor;
#[cfg(feature = "testkit")]
pub mod testkit;
#[cfg(feature = "text")]
pub mod text;
mod trusted;
pub mod typed;
#[cfg(feature = "verify")]
pub mod verify;

#[cfg(feature = "accelerators")]
pub use accelerators::{Accelerator, Job, JobOperand, JobParts, Poll};
/// The procedural macro behind [`include_model!`].
#[cfg(feature = "include")]
#[doc(hidden)]
pub use arenite_include::compile as __compile;

pub use align::{ARENA_ALIGN, MODEL_ALIGN};
#[cfg(any(feature = "pack", feature = "accelerators"))]
pub use arena::Access;
pub use arena::{MAX_REGIONS, Slot};
#[cfg(feature = "pack")]
pub use arena::{Mem, Operand, Place};
pub use blob::{
    Cpu, CrcUnit, FORMAT_VERSION, HEADER_BYTES, Header, MAX_ROWS, Model, OLDEST_VERSION, Port, ROW_BYTES, Receipt,
    Section, Sections, StateInit, Stated, arena_bytes, checksum, checksummed, kernel_set, state_bytes,
};
pub use bundle::Bundle;
#[cfg(feature = "include")]
pub use compiled::IndexError;
#[cfg(feature = "cores")]
pub use cores::Cores;
#[cfg(feature = "accelerators")]
pub use declared::{Declaration, Name};
pub use error::{AcceleratorFault, Lack, LoadError, RunError, SessionError};
pub use errors::Error;
#[cfg(feature = "ethos-u")]
pub use ethos_u::{EthosU, EthosUJob, EthosURegion};
#[cfg(feature = "cores")]
pub use groups::{BARRIER, MAX_CORES};
pub use kernels::Backend;
#[cfg(feature = "ethos-u")]
pub use kernels::ethos_u::commands::Config as EthosUConfig;
#[cfg(feature = "pack")]
pub use kernels::table::Step;
pub use kernels::table::{All, KernelId, KernelSet, Kernels};
pub use memory::{MemoryReport, MemoryUse};
pub use once::{Once, TakesOnce, ThisCore};
pub use ops::cost::Cost;
pub use ops::fault::Fault;
#[cfg(feature = "rolling")]
pub use rolled::{MAX_ROLLED, MAX_TURN_ROWS, NO_STEP, RESIDENT, Rolled, Rolling, TurnAt};
pub use self_test::SelfTestError;
pub use session::{Arenas, Progress, Session};
pub use signed::content;
pub use target::Target;
pub use tensor::DType;
pub use typed::{Described, top};
#[cfg(feature = "verify")]
pub use verify::{Trust, TrustedKey, Verified, VerifyError, verify};

#[cfg(target_endian = "big")]
compile_error!("model files are little-endian and used in place");

#[cfg(all(feature = "dsp", target_os = "none", not(kernel_isa = "dsp")))]
compile_error!(
    "the feature `dsp` wants a core with Arm's DSP extension (Cortex-M4, M7, M33 with it, M55 and later): build for thumbv7em-none-eabi, \
     thumbv7em-none-eabihf, thumbv8m.main-none-eabi or thumbv8m.main-none-eabihf, or leave the feature out: see docs/features.md"
);

// One error is enough where both features are wrong.
#[cfg(all(
    feature = "mve",
    target_os = "none",
    not(kernel_isa = "mve"),
    any(kernel_isa = "dsp", not(feature = "dsp"))
))]
compile_error!(
    "the feature `mve` wants a core with Helium (Cortex-M55, M85) and the calling convention that has its registers: build for \
     thumbv8m.main-none-eabihf, or leave the feature out: see docs/features.md"
);

#[cfg(all(feature = "sme", target_os = "none", not(target_arch = "aarch64")))]
compile_error!(
    "the feature `sme` wants a core with AArch64's scalable matrix extension: build for aarch64-unknown-none, or leave the feature out: see \
     docs/features.md"
);

#[cfg(all(feature = "rvv", target_os = "none", not(kernel_isa = "rvv")))]
compile_error!(
    "the feature `rvv` wants a RISC-V core with the vector extension: build for riscv64gc-unknown-none-elf or riscv32imac-unknown-none-elf, or leave \
     the feature out: see docs/features.md"
);
