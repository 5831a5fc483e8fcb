//! Says which instruction sets kernels are built for, which the compiler's own `cfg` does not: `cfg(kernel_isa = "…")`, each value for itself, with
//!
//! - `armv6m`: ARMv6-M, ARMv8-M Baseline. No Thumb-2 and no long multiplication;
//! - `armv7m`: ARMv7-M and later; `armv8m`: of these ARMv8-M Mainline and later; `armv7m_gpr`: of these those without Helium, whose loops are on general
//!   registers;
//! - `cortex_m`: either;
//! - `dsp`: the DSP extension; `mve`: Helium, whose registers are those of the hard-float calling convention. The target's cores may have the extension, and
//!   the feature of that name says that this one does;
//! - `fpu`: single precision and the hard-float calling convention;
//! - `neon`: the vectors of AArch64, which all its targets but the soft-float ones have;
//! - `dotprod`: the dot product instructions, of Armv8.2 and later (`-C target-feature=+dotprod`, or a `target-cpu` that has them);
//! - `i8mm`: the products of matrices of bytes, of Armv8.6 and later;
//! - `sme`: the feature of that name says that this core has the scalable matrix extension;
//! - `rv32im`: RISC-V of 32 bits with multiplication, without an operating system;
//! - `gpr32`: `cortex_m` or `rv32im`, whose general registers have 32 bits and loops in assembly; `strict_align`: of these `armv6m` and `rv32im`, which read no
//!   word at an odd address;
//! - `rvv`: the feature of that name says that this core has the vector extension.
//!
//! Nothing is set for any other core, 32-bit Arm's A and R profiles among them.
//!
//! And `cfg(packing)` where kernels are chosen and their weights packed: with the features `pack` and `testkit`; `cfg(registers)` where naked functions are
//! seen to keep their caller's registers: with the feature `testkit-registers`, on boards whose kernels have assembly.

use std::env;

/// All values of `kernel_isa`.
const ALL: [&str; 16] = [
    "armv6m",
    "armv7m",
    "armv7m_gpr",
    "armv8m",
    "cortex_m",
    "dsp",
    "mve",
    "fpu",
    "neon",
    "dotprod",
    "i8mm",
    "sme",
    "rv32im",
    "gpr32",
    "strict_align",
    "rvv",
];

/// First part of a Cortex-M target's name, and what its cores have; hard-float ones may have more.
const CORES: [(&str, &[&str], &[&str]); 5] = [
    ("thumbv6m", &["armv6m"], &[]),
    ("thumbv7m", &["armv7m"], &[]),
    ("thumbv7em", &["armv7m", "dsp"], &["fpu"]),
    ("thumbv8m.base", &["armv6m"], &[]),
    ("thumbv8m.main", &["armv7m", "armv8m", "dsp"], &["fpu", "mve"]),
];

fn main() {
    // Stands in the folder of every package that this file builds; a change of this file runs it anyway.
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!(
        "cargo:rustc-check-cfg=cfg(kernel_isa, values({}))",
        ALL.map(|isa| format!("{isa:?}")).join(", ")
    );
    println!("cargo:rustc-check-cfg=cfg(packing)");
    println!("cargo:rustc-check-cfg=cfg(registers)");
    if feature("pack") || feature("testkit") {
        println!("cargo:rustc-cfg=packing");
    }
    let has_assembly = ["gpr32", "neon", "rvv"].into_iter().any(has);
    let is_board = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none");
    if feature("testkit-registers") && has_assembly && is_board {
        println!("cargo:rustc-cfg=registers");
    }
    for isa in ALL {
        if has(isa) {
            println!("cargo:rustc-cfg=kernel_isa={isa:?}");
        }
    }
}

/// Whether kernels are built for an instruction set.
fn has(isa: &str) -> bool {
    let target = env::var("TARGET").expect("set by cargo");
    let (architecture, _) = target.split_once('-').unwrap_or((&target, ""));
    let compiler = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let enabled = |name: &str| compiler("FEATURE").split(',').any(|enabled| enabled == name);
    // Hosts compute with the portable loops: a processor of theirs is asked for nothing.
    let bare = compiler("OS") == "none";
    let cortex_m = |isa: &str| {
        let hard_float = target.ends_with("hf");
        let core = CORES.iter().find(|core| core.0 == architecture);
        core.is_some_and(|(_, soft, hard)| soft.contains(&isa) || hard_float && hard.contains(&isa))
    };
    match isa {
        "dsp" | "mve" => cortex_m(isa) && feature(isa),
        "neon" | "dotprod" | "i8mm" => compiler("ARCH") == "aarch64" && enabled(isa),
        "sme" => compiler("ARCH") == "aarch64" && bare && feature(isa),
        "rv32im" => compiler("ARCH") == "riscv32" && enabled("m") && bare,
        "rvv" => architecture.starts_with("riscv") && feature(isa),
        "armv7m_gpr" => has("armv7m") && !has("mve"),
        "cortex_m" => has("armv6m") || has("armv7m"),
        "gpr32" => has("cortex_m") || has("rv32im"),
        "strict_align" => has("armv6m") || has("rv32im"),
        _ => cortex_m(isa),
    }
}

fn feature(name: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase().replace('-', "_"))).is_some()
}
