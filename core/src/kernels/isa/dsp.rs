//! The DSP extension's instructions that the Rust loops use: one instruction on Arm, its meaning elsewhere.

#[cfg(kernel_isa = "dsp")]
use core::arch::asm;

/// `SXTB16`: bytes 0 and 2, sign-extended into the halves.
#[inline(always)]
pub(crate) fn sxtb16(x: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let wide: u32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n sxtb16 {}, {}", lateout(reg) wide, in(reg) x, options(pure, nomem, nostack, preserves_flags))
        };
        wide
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        halves(i32::from(x as i8), i32::from((x >> 16) as i8))
    }
}

/// `SXTB16` with `ROR #8`: bytes 1 and 3.
#[inline(always)]
pub(crate) fn sxtb16_ror8(x: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let wide: u32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n sxtb16 {}, {}, ror #8", lateout(reg) wide, in(reg) x, options(pure, nomem, nostack, preserves_flags))
        };
        wide
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        sxtb16(x.rotate_right(8))
    }
}

/// `SXTAB16`: adds bytes 0 and 2 of `x` to the halves of `sums`.
#[inline(always)]
pub(crate) fn sxtab16(sums: u32, x: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let sum: u32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n sxtab16 {}, {}, {}", lateout(reg) sum, in(reg) sums, in(reg) x, options(pure, nomem, nostack, preserves_flags))
        };
        sum
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        let [low, high] = split(sums);
        let [x_low, x_high] = split(sxtb16(x));
        halves(low + x_low, high + x_high)
    }
}

/// `SXTAB16` with `ROR #8`: bytes 1 and 3.
#[inline(always)]
pub(crate) fn sxtab16_ror8(sums: u32, x: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let sum: u32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n sxtab16 {}, {}, {}, ror #8", lateout(reg) sum, in(reg) sums, in(reg) x, options(pure, nomem, nostack, preserves_flags))
        };
        sum
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        sxtab16(sums, x.rotate_right(8))
    }
}

/// `SSUB8` and `SEL`: the larger of each pair of signed bytes.
#[inline(always)]
pub(crate) fn max_s8x4(a: u32, b: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let max: u32;
        // SAFETY: arithmetic on registers; the compiler does not keep anything in the GE flags.
        unsafe {
            asm!(".cpu cortex-m33\n ssub8 {t}, {a}, {b}\n sel {max}, {a}, {b}", t = out(reg) _, max = lateout(reg) max, a = in(reg) a, b = in(reg) b,
                options(pure, nomem, nostack))
        };
        max
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        let mut max = [0; 4];
        for (max, (a, b)) in max.iter_mut().zip(a.into_iter().zip(b)) {
            *max = (a as i8).max(b as i8) as u8;
        }
        u32::from_le_bytes(max)
    }
}

/// `SMLAD`: both products of the halves, added to `acc`.
#[inline(always)]
pub(crate) fn smlad(x: u32, w: u32, acc: i32) -> i32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let sum: i32;
        // SAFETY: arithmetic on registers; the compiler does not keep anything in the Q flag.
        unsafe {
            asm!(".cpu cortex-m33\n smlad {}, {}, {}, {}", lateout(reg) sum, in(reg) x, in(reg) w, in(reg) acc,
                options(pure, nomem, nostack, preserves_flags))
        };
        sum
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        let [x_low, x_high] = split(x);
        let [w_low, w_high] = split(w);
        acc.wrapping_add(x_low * w_low).wrapping_add(x_high * w_high)
    }
}

/// `USADA8`: the differences of the unsigned bytes, as magnitudes, added to `sum`.
#[inline(always)]
pub(crate) fn usada8(x: u32, y: u32, sum: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let total: u32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n usada8 {}, {}, {}, {}", lateout(reg) total, in(reg) x, in(reg) y, in(reg) sum,
                options(pure, nomem, nostack, preserves_flags))
        };
        total
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        let bytes = x.to_le_bytes().into_iter().zip(y.to_le_bytes());
        bytes.fold(sum, |sum, (x, y)| sum.wrapping_add(x.abs_diff(y).into()))
    }
}

/// `SMMLAR`: the high word of the product, rounded to nearest, ties up, added to `acc`. Elsewhere from both words of it.
#[inline(always)]
pub(crate) fn smmlar(a: i32, b: i32, acc: i32) -> i32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let sum: i32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n smmlar {}, {}, {}, {}", lateout(reg) sum, in(reg) a, in(reg) b, in(reg) acc,
                options(pure, nomem, nostack, preserves_flags))
        };
        sum
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        let product = i64::from(a) * i64::from(b);
        acc.wrapping_add((product >> 32) as i32)
            .wrapping_add((product as u32 >> 31) as i32)
    }
}

/// `SMULBB`: the product of the low halves.
#[inline(always)]
pub(crate) fn smulbb(a: u32, b: u32) -> i32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let product: i32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n smulbb {}, {}, {}", lateout(reg) product, in(reg) a, in(reg) b, options(pure, nomem, nostack, preserves_flags))
        };
        product
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        i32::from(a as i16) * i32::from(b as i16)
    }
}

/// `SMULTT`: the product of the high halves.
#[inline(always)]
pub(crate) fn smultt(a: u32, b: u32) -> i32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let product: i32;
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!(".cpu cortex-m33\n smultt {}, {}, {}", lateout(reg) product, in(reg) a, in(reg) b, options(pure, nomem, nostack, preserves_flags))
        };
        product
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        smulbb(a >> 16, b >> 16)
    }
}

/// `SADD16`: the sums of the halves.
#[inline(always)]
pub(crate) fn sadd16(a: u32, b: u32) -> u32 {
    #[cfg(kernel_isa = "dsp")]
    {
        let sum: u32;
        // SAFETY: arithmetic on registers; the compiler does not keep anything in the GE flags.
        unsafe {
            asm!(".cpu cortex-m33\n sadd16 {}, {}, {}", lateout(reg) sum, in(reg) a, in(reg) b, options(pure, nomem, nostack))
        };
        sum
    }
    #[cfg(not(kernel_isa = "dsp"))]
    {
        let ([a_low, a_high], [b_low, b_high]) = (split(a), split(b));
        halves(a_low + b_low, a_high + b_high)
    }
}

/// `VCVTA`: the nearest integer, ties away from zero, saturated; 0 of NaN. A function of words: targets that do not name their FPU have no operands in its
/// registers.
#[cfg(kernel_isa = "mve")]
#[inline(always)]
pub(crate) fn vcvta(x: f32) -> i32 {
    #[unsafe(naked)]
    extern "C" fn of_bits(bits: u32) -> i32 {
        naked!(
            ".cpu cortex-m55",
            "vmov s0, r0",
            "vcvta.s32.f32 s0, s0",
            "vmov r0, s0",
            "bx lr"
        )
    }
    of_bits(x.to_bits())
}

/// The signed halves of a register.
#[inline(always)]
pub(crate) fn split(x: u32) -> [i32; 2] {
    [i32::from(x as i16), i32::from((x >> 16) as i16)]
}

/// A register of two halves.
#[inline(always)]
pub(crate) fn halves(low: i32, high: i32) -> u32 {
    (low as u32 & 0xFFFF) | (high as u32) << 16
}
