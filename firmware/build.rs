//! Takes the board that was chosen by feature from the host tools' table, and hands its memory layout to the linker and its facts to the sources.

use std::{env, fs, path::PathBuf};

#[path = "../host-tools/board/src/board/parts.rs"]
mod parts;
#[path = "../host-tools/board/src/board/table.rs"]
#[allow(dead_code, reason = "the build wants a part of each row")]
mod table;

use table::{BOARDS, Board, Timer, Uart};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../host-tools/board/src/board/table.rs");
    println!("cargo:rerun-if-changed=../host-tools/board/src/board/parts.rs");
    println!("cargo:rerun-if-changed=link");

    println!("cargo:rustc-check-cfg=cfg(armv6m)");
    println!("cargo:rustc-check-cfg=cfg(armv8m)");
    println!("cargo:rustc-check-cfg=cfg(board)");
    println!("cargo:rustc-check-cfg=cfg(smp)");
    println!("cargo:rustc-check-cfg=cfg(accelerator)");
    println!("cargo:rustc-check-cfg=cfg(identified)");
    println!("cargo:rustc-check-cfg=cfg(few_kernels)");
    println!("cargo:rustc-check-cfg=cfg(timer, values(any()))");
    for architecture in ["armv6m", "armv8m"] {
        let prefix = architecture.replace("arm", "thumb");
        if env::var("TARGET").is_ok_and(|target| target.starts_with(&prefix)) {
            println!("cargo:rustc-cfg={architecture}");
        }
    }

    // Cargo passes a feature `mps2-an386` as CARGO_FEATURE_MPS2_AN386.
    let chosen = |feature: &str| {
        let name = feature.to_uppercase().replace('-', "_");
        env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
    };
    if chosen("small-flash") && !chosen("every-kernel") {
        println!("cargo:rustc-cfg=few_kernels");
    }
    let mut rows: Vec<_> = BOARDS.iter().filter(|board| chosen(board.feature)).collect();
    // Builds of a board that differ in their compiler's options share layout and timer.
    rows.dedup_by_key(|board| board.feature);
    let mut board = match rows[..] {
        [board] => board.clone(),
        // The library says what is to be done.
        [] => return,
        [one, another, ..] => {
            println!(
                "cargo::error=choose one board: the features {} and {} are two",
                one.feature, another.feature
            );
            return;
        }
    };
    if chosen("every-kernel") {
        board.flash.size = board.flash.size.max(1 << 20);
    }
    println!("cargo:rustc-cfg=board");
    if board.runtime.contains(&"cores") {
        println!("cargo:rustc-cfg=smp");
    }
    // The table of stacks is of the runs of a core alone.
    if board.runtime.contains(&"accelerators") && !chosen("every-kernel") {
        println!("cargo:rustc-cfg=accelerator");
    }
    // Instructions that not every core of the family has: the program asks the one that it runs on.
    if ["rvv", "sme"].iter().any(|of| board.runtime.contains(of)) {
        println!("cargo:rustc-cfg=identified");
    }
    println!("cargo:rustc-cfg=timer=\"{}\"", board.timer.name());
    println!("cargo:rustc-check-cfg=cfg(uart, values(any()))");

    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("memory.x"), board.memory_x() + &beside(&board)).expect("OUT_DIR is writable");
    let mut row = format!(
        "/// The board that this build is for.\npub const NAME: &str = {:?};\n",
        board.feature
    );
    if let Timer::Cmsdk { start, quarter_ns } = board.timer {
        row +=
            &format!("pub const CMSDK_START: usize = {start:#x};\npub const CMSDK_QUARTER_NS: u64 = {quarter_ns};\n");
    }
    if let Some((name, start)) = board
        .uart
        .map(Uart::row)
        .filter(|_| ["serial", "camera", "learner"].into_iter().any(&chosen))
    {
        println!("cargo:rustc-cfg=uart");
        println!("cargo:rustc-cfg=uart=\"{name}\"");
        row += &format!("/// The first address of its serial port.\npub const UART: usize = {start:#x};\n");
    }
    println!("cargo:rustc-check-cfg=cfg(spi)");
    if let Some(flash) = board.spi_flash().filter(|_| chosen("stream")) {
        println!("cargo:rustc-cfg=spi");
        row += &format!(
            "/// The first address of the controller of its flash.\npub const SPI: usize = {:#x};\n\
             /// Identification that the flash gives of itself.\npub const SPI_FLASH_ID: [u8; 3] = {:?};\n\
             /// Its bytes.\npub const SPI_FLASH_BYTES: u32 = {:#x};\n",
            flash.controller, flash.id, flash.size
        );
    }
    fs::write(out.join("row.rs"), row).expect("OUT_DIR is writable");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-search={}", root.join("link").display());

    // cortex-m-rt brings its own link.x, which includes memory.x.
    let script = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("arm") => "link.x",
        _ => "virt.x",
    };
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
    println!("cargo:rustc-link-arg-bins=--nmagic");
}

/// Sections of what tests alone call, of what checks steps at load, and of what trains.
const BESIDE: &str = "*(.text.*7arenite7testkit*) *(.text.*7kernels9reference*) *(.text.*7kernels5table5check*) \
     *(.text.*_train*) *(.text.*_grad*) *(.text.*batch_norm*) *(.text.*8portable4loss*)";

/// Where the flash is small and models have a memory of their own, these lie there: with them all kernels together are larger than the flash.
fn beside(board: &Board) -> String {
    match board.extra {
        Some(extra) if board.flash.size < 1 << 20 => format!(
            "MEMORY {{ EXTRA : ORIGIN = {:#x}, LENGTH = {} }}\nSECTIONS {{ .testkit : {{ {} }} > EXTRA }}\n",
            extra.start, extra.size, BESIDE
        ),
        _ => String::new(),
    }
}
