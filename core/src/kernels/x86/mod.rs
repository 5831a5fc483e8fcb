//! Vector extensions of an x86-64 host, and its loops without weights: sums. Those of packed weights are beside their layouts (`neon/x86`).
//!
//! The processor is asked once and the answer kept: asking takes longer than a small step, on virtual machines most of all.

pub(in crate::kernels) mod add_s8_linear;

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use core::sync::atomic::{AtomicU8, Ordering};

/// Vector extensions of a processor, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[cfg_attr(
    not(feature = "testkit"),
    expect(unreachable_pub, reason = "the test kit exports it")
)]
pub enum Level {
    /// Nothing that is used here.
    Portable = 1,
    /// AVX2 and fused products (FMA), which came with it.
    Avx2 = 2,
    /// Those, and 512-bit dot products of bytes.
    Vnni = 3,
}

/// Level in use; 0 before the first call has asked. Which thread asks first does not matter: all find the same.
static FOUND: AtomicU8 = AtomicU8::new(0);

impl Level {
    /// The processor's.
    #[inline]
    pub(in crate::kernels) fn get() -> Self {
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

    /// The loops of all threads use no more than this from now on; `false`, and nothing changes, where the processor has less.
    #[cfg(feature = "testkit")]
    pub fn limit(self) -> bool {
        let has = Self::ask() >= self;
        if has {
            FOUND.store(self as u8, Ordering::Relaxed);
        }
        has
    }

    /// Intel's manual, volume 1, 14.3 and 15.2: bits of CPUID, and of XCR0, by which the operating system says what it keeps of a thread.
    fn ask() -> Self {
        if cfg!(miri) || __cpuid(0).eax < 7 {
            return Level::Portable;
        }
        let has = |word: u32, bits: &[u32]| bits.iter().all(|bit| word >> bit & 1 == 1);
        let (first, seventh) = (__cpuid(1), __cpuid_count(7, 0));
        // XSAVE by the operating system, AVX, FMA.
        if !has(first.ecx, &[12, 27, 28]) {
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
