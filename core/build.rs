//! Says what a Cortex-M core has, which the compiler's own `cfg` does not: `cfg(cortex_m = "…")` with
//!
//! - `baseline`: ARMv6-M, ARMv8-M Baseline. No Thumb-2 and no long multiplication;
//! - `mainline`: ARMv7-M and later;
//! - `dsp`, `mve`: the target's cores may have the extension; the feature of that name says that this one does. Helium's registers are those of
//!   the hard-float calling convention;
//! - `fpu`: single precision and the hard-float calling convention.
//!
//! On AArch64 `cfg(aarch64 = "…")` with what the compiler builds for:
//!
//! - `neon`: its vectors, which all its targets but the soft-float ones have;
//! - `dotprod`: the dot product instructions, of Armv8.2 and later (`-C target-feature=+dotprod`, or a `target-cpu` that has them);
//! - `i8mm`: the products of matrices of bytes, of Armv8.6 and later;
//! - `sme`: the feature of that name says that this core has the scalable matrix extension.
//!
//! On RISC-V `cfg(riscv = "v")` with the feature `rvv`: this core has the vector extension.
//!
//! Nothing is set for any other core, 32-bit Arm's A and R profiles among them.
//!
//! And `cfg(packing)` where kernels are chosen and their weights packed: with the features `pack` and `testkit`.

use std::env;

/// First part of a target's name, and what its cores have; hard-float ones may have more.
const CORES: [(&str, &[&str], &[&str]); 5] = [
    ("thumbv6m", &["baseline"], &[]),
    ("thumbv7m", &["mainline"], &[]),
    ("thumbv7em", &["mainline", "dsp"], &["fpu"]),
    ("thumbv8m.base", &["baseline"], &[]),
    ("thumbv8m.main", &["mainline", "dsp"], &["fpu", "mve"]),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(cortex_m, values(\"baseline\", \"mainline\", \"dsp\", \"mve\", \"fpu\"))");
    println!("cargo:rustc-check-cfg=cfg(aarch64, values(\"neon\", \"dotprod\", \"i8mm\", \"sme\"))");
    println!("cargo:rustc-check-cfg=cfg(riscv, values(\"v\"))");
    println!("cargo:rustc-check-cfg=cfg(packing)");
    let features = ["CARGO_FEATURE_PACK", "CARGO_FEATURE_TESTKIT"];
    if features.iter().any(|feature| env::var_os(feature).is_some()) {
        println!("cargo:rustc-cfg=packing");
    }
    let target = env::var("TARGET").expect("set by cargo");
    let (architecture, _) = target.split_once('-').unwrap_or((&target, ""));
    let hard_float = target.ends_with("hf");
    for (_, soft, hard) in CORES.into_iter().filter(|core| core.0 == architecture) {
        let has = soft.iter().chain(hard.iter().filter(|_| hard_float));
        has.for_each(|has| println!("cargo:rustc-cfg=cortex_m=\"{has}\""));
    }
    if architecture.starts_with("riscv") && env::var_os("CARGO_FEATURE_RVV").is_some() {
        println!("cargo:rustc-cfg=riscv=\"v\"");
    }
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|architecture| architecture == "aarch64") {
        let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
        let has = |name: &&str| features.split(',').any(|feature| feature == *name);
        let extensions = ["neon", "dotprod", "i8mm"].into_iter().filter(has);
        extensions.for_each(|has| println!("cargo:rustc-cfg=aarch64=\"{has}\""));
        // Hosts compute with the portable loops: a processor of theirs is asked for nothing.
        let bare = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "none");
        if bare && env::var_os("CARGO_FEATURE_SME").is_some() {
            println!("cargo:rustc-cfg=aarch64=\"sme\"");
        }
    }
}
