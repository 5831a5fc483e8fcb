//! Hands the linker the memory layout of the board that was chosen by feature.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=memory");
    println!("cargo:rerun-if-changed=link");

    println!("cargo:rustc-check-cfg=cfg(armv6m)");
    if env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv6m")) {
        println!("cargo:rustc-cfg=armv6m");
    }

    // Cargo passes a feature `mps2-an386` as CARGO_FEATURE_MPS2_AN386. The library refuses any number but one.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let layout = fs::read_dir(root.join("memory"))
        .expect("firmware/memory is part of the sources")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            let board = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .to_uppercase()
                .replace('-', "_");
            env::var_os(format!("CARGO_FEATURE_{board}")).is_some()
        });
    let Some(layout) = layout else { return };

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::copy(&layout, out.join("memory.x")).expect("OUT_DIR is writable");
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
