//! [`four`] for RV32IM: 19 instructions an output, where compilers take 30.

#![cfg(kernel_isa = "rv32im")]

use crate::kernels::packed::channel_record::{Record, Words};

/// Output `$i` at `$y` of a sum, its multiplier and its code, which are lost, by way of `$q`; `twice` and the limits stay.
macro_rules! output {
    ($i:literal $sum:literal $multiplier:literal $code:literal $q:literal $twice:literal $low:literal $high:literal $y:literal) => {
        concat!(
            "slli ",
            $sum,
            ", ",
            $sum,
            ", 1\n",
            "mulh ",
            $q,
            ", ",
            $sum,
            ", ",
            $multiplier,
            "\n",
            "mul ",
            $sum,
            ", ",
            $sum,
            ", ",
            $multiplier,
            "\n",
            "srli ",
            $sum,
            ", ",
            $sum,
            ", 31\n",
            "add ",
            $q,
            ", ",
            $q,
            ", ",
            $sum,
            "\n",
            "addi ",
            $sum,
            ", ",
            $code,
            ", -1\n",
            "sll ",
            $sum,
            ", ",
            $twice,
            ", ",
            $sum,
            "\n",
            "srai ",
            $multiplier,
            ", ",
            $q,
            ", 31\n",
            "add ",
            $q,
            ", ",
            $q,
            ", ",
            $sum,
            "\n",
            "add ",
            $q,
            ", ",
            $q,
            ", ",
            $multiplier,
            "\n",
            "sra ",
            $q,
            ", ",
            $q,
            ", ",
            $code,
            "\n",
            "bge ",
            $q,
            ", ",
            $low,
            ", 8f\n",
            "mv ",
            $q,
            ", ",
            $low,
            "\n",
            "8: bge ",
            $high,
            ", ",
            $q,
            ", 8f\n",
            "mv ",
            $q,
            ", ",
            $high,
            "\n",
            "8: sb ",
            $q,
            ", ",
            $i,
            "(",
            $y,
            ")\n"
        )
    };
}

pub(in super::super) use output;

macro_rules! rv {
    (one $i:literal) => {
        concat!(
            "lw t0, {record}*",
            $i,
            "+{bias}(a1)\n",
            "lw t1, {record}*",
            $i,
            "+{multiplier}(a1)\n",
            "lw t2, {record}*",
            $i,
            "+{code}(a1)\n",
            "lw t3, 4*",
            $i,
            "(a0)\n",
            "add t0, t0, t3\n",
            output!($i "t0" "t1" "t2" "t3" "a3" "a4" "a5" "a2")
        )
    };
}

/// Biases are added, sums requantised and stored; `twice` is `2 * zero_point + 1` of the output.
///
/// # Safety
/// Four sums, records and outputs.
#[unsafe(naked)]
pub(in super::super) unsafe extern "C" fn four(sums: *const i32, records: *const Record, y: *mut i8, twice: i32) {
    naked!(Words { bias, multiplier, code } =>
        ".option push",
        ".option arch, +m",
        "li a4, -128",
        "li a5, 127",
        rv!(one 0),
        rv!(one 1),
        rv!(one 2),
        rv!(one 3),
        "ret",
        ".option pop";
        record = const size_of::<Record>(),
    )
}
