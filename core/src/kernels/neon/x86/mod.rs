//! The loops for x86-64 hosts, by what the processor has: AVX2, and the dot products of AVX-512 (VNNI) for int8. The same layouts, the same order of writes
//! and the same bits as `portable`, which is what a processor without AVX2 runs: sums of f32 are rounded after every product there and here, so that nothing
//! that is computed from them depends on the processor.
//!
//! What the processor has is asked once and kept: asking takes longer than a small step, on virtual machines most of all.

mod depthwise;
mod floats;
mod outputs;
mod product;

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::sync::atomic::{AtomicU8, Ordering};

use super::args::{Depthwise, DepthwiseF32, Product, ProductF32};
use super::portable;
pub(in crate::kernels) use super::portable::{copy, fill, one_row, two_rows, windows};

/// What a processor has, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Level {
    /// Nothing that is used here.
    Portable = 1,
    Avx2 = 2,
    /// AVX2, and 512-bit dot products of bytes.
    Vnni = 3,
}

impl Level {
    /// The processor's.
    #[inline]
    fn get() -> Self {
        // Which thread asks first does not matter: all find the same.
        static FOUND: AtomicU8 = AtomicU8::new(0);
        match FOUND.load(Ordering::Relaxed) {
            1 => Level::Portable,
            2 => Level::Avx2,
            3 => Level::Vnni,
            _ => {
                let found = Self::ask();
                FOUND.store(found as u8, Ordering::Relaxed);
                found
            }
        }
    }

    /// Intel's manual, volume 1, 14.3 and 15.2: bits of CPUID, and of XCR0, by which the operating system says what it keeps of a thread.
    fn ask() -> Self {
        if cfg!(miri) || __cpuid(0).eax < 7 {
            return Level::Portable;
        }
        let has = |word: u32, bits: &[u32]| bits.iter().all(|bit| word >> bit & 1 == 1);
        let (first, seventh) = (__cpuid(1), __cpuid_count(7, 0));
        // XSAVE by the operating system, AVX.
        if !has(first.ecx, &[27, 28]) {
            return Level::Portable;
        }
        // SAFETY: the processor has XGETBV, for the operating system uses it.
        let kept = unsafe { state() };
        let ymm = kept & 0b110 == 0b110;
        let zmm = kept & 0b1110_0110 == 0b1110_0110;
        // AVX2; AVX-512 F, BW and VL; VNNI.
        let avx2 = ymm && has(seventh.ebx, &[5]);
        let vnni = zmm && has(seventh.ebx, &[16, 30, 31]) && has(seventh.ecx, &[11]);
        match (avx2, vnni) {
            (true, true) => Level::Vnni,
            (true, false) => Level::Avx2,
            (false, _) => Level::Portable,
        }
    }
}

/// The vectors that the operating system keeps of a thread.
#[target_feature(enable = "xsave")]
fn state() -> u64 {
    // SAFETY: the register is there where XSAVE is.
    unsafe { _xgetbv(0) }
}

pub(in crate::kernels) unsafe fn depthwise(args: *const Depthwise) {
    // SAFETY: the caller's promise; the processor has AVX2 where it is used.
    unsafe {
        match Level::get() {
            Level::Portable => portable::depthwise(args),
            Level::Avx2 | Level::Vnni => depthwise::s8(args),
        }
    }
}

pub(in crate::kernels) unsafe fn depthwise_f32(args: *const DepthwiseF32) {
    // SAFETY: as above.
    unsafe {
        match Level::get() {
            Level::Portable => portable::depthwise_f32(args),
            Level::Avx2 | Level::Vnni => depthwise::f32(args),
        }
    }
}

pub(in crate::kernels) unsafe fn four_rows_f32(args: *const ProductF32) {
    // SAFETY: as above.
    unsafe {
        match Level::get() {
            Level::Portable => portable::four_rows_f32(args),
            Level::Avx2 | Level::Vnni => floats::rows::<4>(args),
        }
    }
}

pub(in crate::kernels) unsafe fn one_row_f32(args: *const ProductF32) {
    // SAFETY: as above.
    unsafe {
        match Level::get() {
            Level::Portable => portable::one_row_f32(args),
            Level::Avx2 | Level::Vnni => floats::rows::<1>(args),
        }
    }
}

/// The outputs of tiles of `ROWS` rows, of weights of four elements side by side: what dot products of bytes compute.
///
/// # Safety
/// As for [`super::gemm::Matrix::multiply`].
pub(in crate::kernels) unsafe fn dots<const ROWS: usize>(args: *const Product) {
    // SAFETY: the caller's promise; the processor has what is used.
    unsafe {
        match Level::get() {
            Level::Portable => super::products::rows::<false, 4>(args, ROWS),
            Level::Avx2 => product::avx2::<ROWS>(args),
            Level::Vnni => product::vnni::<ROWS>(args),
        }
    }
}

#[cfg(test)]
mod tests;
