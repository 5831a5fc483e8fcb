//! The loops in portable Rust, for hosts: the same layouts, the same order of writes, the same bits. Only the vector width is gone.
//!
//! # Safety of all loops
//! `args` points to arguments whose pointers are valid for what their fields describe (`args.rs`), with constants in the layout of the kernel's `pack`.

use super::args::{
    Add, AddS8LinearArgs, Alike, Clipped, Copy, Depthwise, DepthwiseF32, Interleave, LinearF32, Mean, Pool, Product,
    ProductF32, Taps, Widen, Windows,
};
use crate::ops::pointwise::clamp;
use crate::quant::{high_mul, rounding_shift_right};

/// A rounding shift right by `-shift` with ties up: `vrshl`.
fn shift_ties_up(x: i32, shift: i32) -> i32 {
    let shift = shift.unsigned_abs();
    match shift {
        0 => x,
        _ => ((i64::from(x) + (1 << (shift - 1))) >> shift) as i32,
    }
}

/// An accumulator to an output: the multiplier is `mantissa * 2^(left + right - 31)` with `left >= 0 >= right`.
struct Requantize {
    fast: bool,
    zero_point: i32,
    low: i32,
    high: i32,
}

impl Requantize {
    fn apply(&self, sum: i32, left: i32, mantissa: i32, right: i32) -> i8 {
        let (value, low, high) = if self.fast {
            (shift_ties_up(high_mul(sum, mantissa), right), -128, 127)
        } else {
            let product = high_mul(sum.wrapping_shl(left as u32), mantissa);
            let shifted = rounding_shift_right(product, right.unsigned_abs().min(31));
            (shifted, self.low, self.high)
        };
        // The vectors narrow to 16 bits before they add.
        let narrow = value.clamp(-0x8000, 0x7FFF) + self.zero_point;
        narrow.clamp(low, high) as i8
    }
}

/// Word `index` of a table of words.
///
/// # Safety
/// `table` is valid for reads of `index + 1` words.
unsafe fn word(table: *const u8, index: usize) -> i32 {
    // SAFETY: `index + 1` words are readable at `table` (fn docs); the read is unaligned.
    unsafe { table.cast::<i32>().add(index).read_unaligned() }
}

unsafe fn rows<const W4: bool>(args: *const Product, count: usize, fast: bool) {
    // SAFETY: the caller passes valid arguments; the layout is that of `gemm::pack`.
    unsafe {
        let args = &*args;
        let blocks = args.blocks_less_one as usize + 1;
        let shared = if W4 { 2 } else { 1 };
        let half_bytes = blocks * 64 / shared;
        let requantize = Requantize {
            fast,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        for pair in 0..count.div_ceil(2) {
            for group in 0..args.groups as usize {
                let weights = args.weights.add(group * (2 * half_bytes + 128));
                let table = weights.add(2 * half_bytes);
                for row in pair * 2..(pair * 2 + 2).min(count) {
                    let x = args.x.add(row * args.x_stride as usize);
                    let mut values = [0i8; 8];
                    for (channel, value) in values.iter_mut().enumerate() {
                        let (half, lane) = (channel % 2, channel / 2);
                        let mut sum = 0i32;
                        for i in 0..blocks * 16 {
                            let vector = i / 16 * (4 / shared) + lane / shared;
                            let w = *weights.add(half * half_bytes + vector * 16 + i % 16) as i8;
                            let first = if W4 { w << 4 >> 4 } else { w };
                            // Of two channels in a byte, the second is what is left, in sixteenths.
                            let w = if W4 && lane % 2 == 1 {
                                (i32::from(w) - i32::from(first)) >> 4
                            } else {
                                i32::from(first)
                            };
                            sum = sum.wrapping_add(i32::from(*x.add(i)) * w);
                        }
                        let of = |part: usize| word(table, part * 8 + half * 4 + lane);
                        let sum = sum.wrapping_add(of(0));
                        *value = requantize.apply(sum, of(1), of(2), of(3));
                    }
                    let out = args.out.add(row * args.out_stride as usize + group * 8);
                    for (lane, value) in values.iter().enumerate().take(args.lanes as usize) {
                        *out.add(lane) = *value;
                    }
                }
            }
        }
    }
}

/// A row by all channels of groups of eight, or of half a group, in order.
unsafe fn alike(args: &Alike, group: usize, fast: bool) {
    // SAFETY: the caller passes valid arguments; the layout is that of `dense::pack`.
    unsafe {
        let blocks = args.blocks as usize;
        let requantize = Requantize {
            fast,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        let halves = group / 4;
        // Of half a group, the channels to write.
        let channels = args.groups as usize * if halves == 1 { 1 } else { group };
        for channel in 0..channels {
            let (index, within) = (channel / group, channel % group);
            let (half, lane) = (within % halves, within / halves);
            let weights = args.weights.add(index * halves * (blocks * 64 + 16));
            let mut sum = word(weights.add(halves * blocks * 64), half * 4 + lane);
            for i in 0..blocks * 16 {
                let w = *weights.add(half * blocks * 64 + (i / 16 * 4 + lane) * 16 + i % 16) as i8;
                sum = sum.wrapping_add(i32::from(*args.x.add(i)) * i32::from(w));
            }
            let [mantissa, right] = args.factor;
            *args.out.add(channel) = requantize.apply(sum, 0, mantissa, right);
        }
    }
}

pub(super) unsafe fn rows1_alike_fast(args: *const Alike) {
    // SAFETY: `alike` has the contract of this function, and gets the same arguments.
    unsafe { alike(&*args, 8, true) }
}

pub(super) unsafe fn rows1_alike_unlimited(args: *const Alike) {
    // SAFETY: `alike` has the contract of this function, and gets the same arguments.
    unsafe { alike(&*args, 8, false) }
}

pub(super) unsafe fn rows1_alike_general(args: *const Alike) {
    // SAFETY: `alike` has the contract of this function, and gets the same arguments.
    unsafe { alike(&*args, 8, false) }
}

pub(super) unsafe fn rows1_four(args: *const Alike) {
    // SAFETY: `alike` has the contract of this function, and gets the same arguments.
    unsafe { alike(&*args, 4, false) }
}

/// The loops over pairs of rows, and over one, for weights of 8 and of 4 bits.
macro_rules! products {
    ($($name:ident $w4:literal $rows:expr, $fast:literal;)*) => {$(
        pub(super) unsafe fn $name(args: *const Product) {
            let count: fn(&Product) -> usize = $rows;
            // SAFETY: `rows` has the contract of this function, and gets the same arguments.
            unsafe { rows::<$w4>(args, count(&*args), $fast) }
        }
    )*};
}
products! {
    rows2_fast false |args| args.pairs as usize * 2, true;
    rows2_general false |args| args.pairs as usize * 2, false;
    rows2_k16_fast false |args| args.pairs as usize * 2, true;
    rows2_k16_general false |args| args.pairs as usize * 2, false;
    rows2_k32_fast false |args| args.pairs as usize * 2, true;
    rows2_k32_general false |args| args.pairs as usize * 2, false;
    rows2_k48_fast false |args| args.pairs as usize * 2, true;
    rows2_k48_general false |args| args.pairs as usize * 2, false;
    rows2_k64_fast false |args| args.pairs as usize * 2, true;
    rows2_k64_general false |args| args.pairs as usize * 2, false;
    rows4_k16_fast false |args| args.pairs as usize * 4, true;
    rows4_k16_right false |args| args.pairs as usize * 4, false;
    rows1_fast false |_| 1, true;
    rows1_general false |_| 1, false;
    rows2_w4_fast true |args| args.pairs as usize * 2, true;
    rows2_w4_general true |args| args.pairs as usize * 2, false;
    rows2_w4_k16_fast true |args| args.pairs as usize * 2, true;
    rows2_w4_k16_general true |args| args.pairs as usize * 2, false;
    rows2_w4_k32_fast true |args| args.pairs as usize * 2, true;
    rows2_w4_k32_general true |args| args.pairs as usize * 2, false;
    rows1_w4_fast true |_| 1, true;
    rows1_w4_general true |_| 1, false;
}

/// One row, `of_group` blocks of weights of four bits with factors of their own.
unsafe fn row_of_groups(args: *const Product, of_group: usize, fast: bool) {
    // SAFETY: the caller passes valid arguments; the layout is that of `groups::pack`.
    unsafe {
        let args = &*args;
        let blocks = args.blocks_less_one as usize + 1;
        let requantize = Requantize {
            fast,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        for group in 0..args.groups as usize {
            let even = args.weights.add(group * (blocks * 64 + args.factors as usize + 128));
            let table = even.add(blocks * 64 + args.factors as usize);
            let mut values = [0i8; 8];
            for (channel, value) in values.iter_mut().enumerate() {
                let (half, lane) = (channel % 2, channel / 2);
                let mut total = 0i32;
                for first in (0..blocks).step_by(of_group) {
                    let end = (first + of_group).min(blocks);
                    let odd = even.add(blocks * 32 + first / of_group * 8);
                    let [mut low, mut both] = [0i32; 2];
                    for i in first * 16..end * 16 {
                        let from = if half == 1 { odd } else { even };
                        let w = *from.add(i / 16 * 32 + lane / 2 * 16 + i % 16) as i8;
                        let x = i32::from(*args.x.add(i));
                        low = low.wrapping_add(x * i32::from(w << 4));
                        both = both.wrapping_add(x * i32::from(w));
                    }
                    let sum = if lane % 2 == 1 {
                        both.wrapping_sub(low >> 4)
                    } else {
                        low
                    };
                    let factor = i32::from(*odd.add(end * 32 + half * 4 + lane));
                    total = total.wrapping_add(sum.wrapping_mul(factor));
                }
                let of = |part: usize| word(table, part * 8 + half * 4 + lane);
                *value = requantize.apply((total >> 4).wrapping_add(of(0)), of(1), of(2), of(3));
            }
            let out = args.out.add(group * 8);
            for (lane, value) in values.iter().enumerate().take(args.lanes as usize) {
                *out.add(lane) = *value;
            }
        }
    }
}

pub(super) unsafe fn rows1_g16_fast(args: *const Product) {
    // SAFETY: `row_of_groups` has the contract of this function, and gets the same arguments.
    unsafe { row_of_groups(args, 1, true) }
}

pub(super) unsafe fn rows1_g16_general(args: *const Product) {
    // SAFETY: `row_of_groups` has the contract of this function, and gets the same arguments.
    unsafe { row_of_groups(args, 1, false) }
}

pub(super) unsafe fn rows1_g32_fast(args: *const Product) {
    // SAFETY: `row_of_groups` has the contract of this function, and gets the same arguments.
    unsafe { row_of_groups(args, 2, true) }
}

pub(super) unsafe fn rows1_g32_general(args: *const Product) {
    // SAFETY: `row_of_groups` has the contract of this function, and gets the same arguments.
    unsafe { row_of_groups(args, 2, false) }
}

pub(super) unsafe fn widen_groups(args: *const Widen) {
    // SAFETY: `args.src` has `blocks` blocks of both halves, with factors and table, and `args.dst` room for them widened (head of the file).
    unsafe {
        let args = &*args;
        let (blocks, of_group) = (args.blocks as usize, args.of_group as usize);
        let odd = args.src.add(blocks * 32);
        for block in 0..blocks {
            let group = block / of_group;
            let end = (group * of_group + of_group).min(blocks);
            let odd = odd.add(group * 8);
            for (half, from) in [args.src, odd].into_iter().enumerate() {
                for i in 0..64 {
                    let (lane, within) = (i / 16, i % 16);
                    let w = *from.add(block * 32 + lane / 2 * 16 + within) as i8;
                    let low = w << 4 >> 4;
                    let number = if lane % 2 == 1 { w.wrapping_sub(low) >> 4 } else { low };
                    let factor = *odd.add(end * 32 + half * 4 + lane) as i8;
                    *args.dst.add(half * blocks * 64 + block * 64 + i) = number.wrapping_mul(factor);
                }
            }
        }
        let table = odd.add(blocks * 32 + blocks.div_ceil(of_group) * 8);
        table
            .cast::<i8>()
            .copy_to_nonoverlapping(args.dst.add(blocks * 128), 128);
    }
}

pub(super) unsafe fn fill(dst: *mut i8, value: i32, bytes: usize) {
    // SAFETY: `bytes` bytes are writable at `dst`, by the loop's contract.
    unsafe { dst.write_bytes(value as u8, bytes) }
}

pub(super) unsafe fn copy(args: *const Copy) {
    // SAFETY: `args` describes rows of segments of `bytes` bytes, readable at `src` and writable at `dst` (head of the file).
    unsafe {
        let args = &*args;
        for row in 0..args.rows as usize {
            for segment in 0..args.count as usize {
                let src = (args.src).add(row * args.src_row as usize + segment * args.src_step as usize);
                let dst = (args.dst).add(row * args.dst_row as usize + segment * args.dst_step as usize);
                src.copy_to_nonoverlapping(dst, args.bytes as usize);
            }
        }
    }
}

unsafe fn windows(args: *const Windows) {
    // SAFETY: `args` describes windows that are readable, and copies that are writable, to a multiple of 16 bytes for each row (head of the file).
    unsafe {
        let args = &*args;
        let bytes = (args.run as usize).next_multiple_of(16);
        for window in 0..args.count as usize {
            for row in 0..args.rows as usize {
                let src = args.src.add(window * args.step as usize + row * args.row as usize);
                let dst = args.dst.add(window * args.stride as usize + row * args.run as usize);
                src.copy_to_nonoverlapping(dst, bytes);
            }
        }
    }
}

pub(super) unsafe fn clipped_windows(args: *const Clipped) {
    // SAFETY: `args` describes windows and copies (head of the file); bytes of `src` are read where the mask has them.
    unsafe {
        let args = &*args;
        let (above, rows) = (args.above as usize, args.rows as usize);
        for window in 0..args.count as usize {
            for row in 0..above + rows + args.below as usize {
                let dst = args.dst.add(window * args.stride as usize + row * args.run as usize);
                // Rows of padding have no place in the image.
                let line = (row.checked_sub(above).filter(|line| *line < rows)).map(|line| {
                    args.src
                        .wrapping_add(window * args.step as usize + line * args.row as usize)
                });
                for lane in 0..16 {
                    *dst.add(lane) = match line {
                        Some(line) if args.mask >> lane & 1 != 0 => *line.wrapping_add(lane),
                        _ => args.padding as i8,
                    };
                }
            }
        }
    }
}

pub(super) unsafe fn windows_of_three_short_rows(args: *const Windows) {
    // SAFETY: `windows` has the contract of this function, and gets the same arguments.
    unsafe { windows(args) }
}

pub(super) unsafe fn windows_of_short_rows(args: *const Windows) {
    // SAFETY: `windows` has the contract of this function, and gets the same arguments.
    unsafe { windows(args) }
}

pub(super) unsafe fn windows_of_rows(args: *const Windows) {
    // SAFETY: `windows` has the contract of this function, and gets the same arguments.
    unsafe { windows(args) }
}

pub(super) unsafe fn interleave(args: *const Interleave) {
    // SAFETY: `args` describes sets that are readable for `vectors` vectors, and room for them interleaved (head of the file).
    unsafe {
        let args = &*args;
        let mut dst = args.dst;
        for set in 0..args.count as usize {
            let set = &*args.sets.add(set);
            for vector in 0..args.vectors as usize {
                for lane in 0..16 {
                    for (row, step) in set.rows.iter().zip(set.steps) {
                        *dst = if lane < args.lanes as usize {
                            *row.add(args.offset as usize + vector * step as usize + lane)
                        } else {
                            0
                        };
                        dst = dst.add(1);
                    }
                }
            }
            dst = dst.add(args.dst_skip as usize);
        }
    }
}

/// The 16 lanes of a window at `x`, times weights.
unsafe fn window(x: *const i8, columns: &[u32; 4], weights: *const u8) -> i32 {
    let mut sum = 0;
    for (column, &offset) in columns.iter().enumerate() {
        for row in 0..4 {
            // SAFETY: `row < 4` and `column < 4`: one of the window's 16 lanes, and its weight, which this function's contract guarantees.
            let (x, w) = unsafe { (*x.add(offset as usize + row), *weights.add(column * 4 + row) as i8) };
            sum += i32::from(x) * i32::from(w);
        }
    }
    sum
}

/// The lanes that a mask of 16-bit lanes has.
fn masked(mask: u32) -> impl Fn(&usize) -> bool {
    move |lane| mask >> (2 * lane) & 3 != 0
}

/// The loops of eight outputs at a time: `outputs` are offsets of 16 bits, of each of four outputs and of its neighbour four windows (or two columns) on.
unsafe fn depthwise_by_eight(args: *const Depthwise, two_by_two: bool, column: bool) {
    // SAFETY: `args` describes sets, columns and outputs, with weights in the layout of `dwconv_s8::pack` (head of the file).
    unsafe {
        let args = &*args;
        let columns = &*args.columns;
        let offsets = (*args.outputs).map(|pair| [pair & 0xffff, pair >> 16]);
        let requantize = Requantize {
            fast: true,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        for channel in 0..args.channels as usize {
            let [bias, mantissa, shift] = [0, 1, 2].map(|part| word(args.table, channel * 3 + part));
            let upper = args.weights.add(channel * 16);
            let lower = args.lower_weights.add(channel * 16);
            let mut x = args.x.add(channel * 4);
            let mut out = args.out.add(channel);
            let by = args.x_step as usize;
            let far = if two_by_two { by } else { 4 * by };
            let output = |x: *const i8, lane: usize| {
                let sum = match (two_by_two, lane) {
                    (true, 0) => window(x, columns, upper),
                    (true, 1) => window(x, columns, lower),
                    (true, 2) => window(x, columns, upper.sub(4)),
                    (true, _) => window(x, columns, lower.sub(4)),
                    (false, _) => window(x.add(lane * by), columns, upper),
                };
                requantize.apply(sum.wrapping_add(bias), 0, mantissa, shift)
            };
            let eight = |x: *const i8, out: *mut i8, mask: u32| {
                for lane in (0..8).filter(masked(mask)) {
                    let [of, beside] = offsets[lane / 2];
                    match lane % 2 {
                        0 => *out.add(of as usize) = output(x, lane / 2),
                        _ => *out.add(beside as usize) = output(x.add(far), lane / 2),
                    }
                }
            };
            for set in 0..args.sets {
                for _ in 0..args.units {
                    eight(x, out, 0xffff);
                    x = x.add(2 * far);
                    out = out.add(args.out_step as usize);
                }
                eight(x, out, args.rest & 0xffff);
                if set + 1 < args.sets {
                    x = x.offset(args.x_skip as i32 as isize);
                    out = out.offset(args.out_skip as i32 as isize);
                }
            }
            if !column {
                continue;
            }
            let column = &*args.column;
            let on = |by: u32| by as i32 as isize;
            let mut x = args.x.add(4 * (channel + 1)).offset(on(column.x));
            let mut out = args.out.add(channel + 1).offset(on(column.out));
            for _ in 0..=column.again {
                for (set, place) in [0, 2, 1, 3].into_iter().enumerate() {
                    let to = column.outputs[place];
                    *out.add((to & 0xffff) as usize) = output(x, 0);
                    *out.add((to >> 16) as usize) = output(x, 1);
                    let step = [column.set, column.set, column.last, 0][set];
                    x = x.add(step as usize);
                }
                x = x.wrapping_offset(on(column.again_x));
                out = out.wrapping_offset(on(column.again_out));
            }
        }
    }
}

pub(super) unsafe fn depthwise_2x2_by_eight(args: *const Depthwise) {
    // SAFETY: `depthwise_by_eight` has the contract of this function, and gets the same arguments.
    unsafe { depthwise_by_eight(args, true, false) }
}

pub(super) unsafe fn depthwise_2x2_by_eight_and_one(args: *const Depthwise) {
    // SAFETY: `depthwise_by_eight` has the contract of this function, and gets the same arguments.
    unsafe { depthwise_by_eight(args, true, true) }
}

pub(super) unsafe fn depthwise_1x1_by_eight(args: *const Depthwise) {
    // SAFETY: `depthwise_by_eight` has the contract of this function, and gets the same arguments.
    unsafe { depthwise_by_eight(args, false, false) }
}

unsafe fn depthwise(args: *const Depthwise, two_by_two: bool, fast: bool) {
    // SAFETY: `args` describes sets, columns and outputs, with weights in the layout of `dwconv_s8::pack` (head of the file).
    unsafe {
        let args = &*args;
        let requantize = Requantize {
            fast,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        let (columns, outputs) = (&*args.columns, &*args.outputs);
        for channel in 0..args.channels as usize {
            let [bias, mantissa, shift] = [0, 1, 2].map(|part| word(args.table, channel * 3 + part));
            let upper = args.weights.add(channel * 16);
            let lower = args.lower_weights.add(channel * 16);
            let mut x = args.x.add(channel * 4);
            let mut out = args.out.add(channel);
            let unit = |x: *const i8, out: *mut i8, lanes: usize| {
                for (lane, &to) in outputs.iter().enumerate().take(lanes) {
                    // A column on is four bytes of weights back.
                    let sum = match (two_by_two, lane) {
                        (true, 0) => window(x, columns, upper),
                        (true, 1) => window(x, columns, lower),
                        (true, 2) => window(x, columns, upper.sub(4)),
                        (true, _) => window(x, columns, lower.sub(4)),
                        (false, _) => window(x.add(lane * args.x_step as usize), columns, upper),
                    };
                    let value = requantize.apply(sum.wrapping_add(bias), shift.max(0), mantissa, shift.min(0));
                    *out.add(to as usize) = value;
                }
            };
            let step = args.x_step as usize * if two_by_two { 1 } else { 4 };
            for set in 0..args.sets {
                for _ in 0..args.units {
                    unit(x, out, 4);
                    x = x.add(step);
                    out = out.add(args.out_step as usize);
                }
                unit(x, out, args.rest as usize);
                if set + 1 < args.sets {
                    x = x.offset(args.x_skip as i32 as isize);
                    out = out.offset(args.out_skip as i32 as isize);
                }
            }
        }
    }
}

pub(super) unsafe fn depthwise_2x2_fast(args: *const Depthwise) {
    // SAFETY: `depthwise` has the contract of this function, and gets the same arguments.
    unsafe { depthwise(args, true, true) }
}

pub(super) unsafe fn depthwise_2x2_general(args: *const Depthwise) {
    // SAFETY: `depthwise` has the contract of this function, and gets the same arguments.
    unsafe { depthwise(args, true, false) }
}

pub(super) unsafe fn depthwise_1x1_fast(args: *const Depthwise) {
    // SAFETY: `depthwise` has the contract of this function, and gets the same arguments.
    unsafe { depthwise(args, false, true) }
}

pub(super) unsafe fn depthwise_1x1_general(args: *const Depthwise) {
    // SAFETY: `depthwise` has the contract of this function, and gets the same arguments.
    unsafe { depthwise(args, false, false) }
}

unsafe fn add(a: *const i8, b: *const i8, out: *mut i8, count: usize, args: *const Add, fast: bool) {
    // SAFETY: `i < count`, elements that both operands and the output have, by the loop's contract; `args` is valid (head of the file).
    unsafe {
        let args = &*args;
        let requantize = Requantize {
            fast,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        for i in 0..count {
            let b = i32::from(*b.add(i))
                .wrapping_mul(args.scale)
                .wrapping_add(args.b_offset);
            let b = rounding_shift_right(high_mul(b, args.b_mantissa), args.b_shift.unsigned_abs());
            let a = i32::from(*a.add(i)).wrapping_mul(1 << 19).wrapping_add(args.a_offset);
            *out.add(i) = requantize.apply(a.wrapping_add(b), 0, args.mantissa, args.shift);
        }
    }
}

pub(super) unsafe fn add_fast(a: *const i8, b: *const i8, out: *mut i8, count: usize, args: *const Add) {
    // SAFETY: `add` has the contract of this function, and gets the same arguments.
    unsafe { add(a, b, out, count, args, true) }
}

pub(super) unsafe fn add_general(a: *const i8, b: *const i8, out: *mut i8, count: usize, args: *const Add) {
    // SAFETY: `add` has the contract of this function, and gets the same arguments.
    unsafe { add(a, b, out, count, args, false) }
}

pub(super) unsafe fn linear_sum(args: *const AddS8LinearArgs) {
    // SAFETY: `i < args.count`, elements that both operands and the output have (head of the file).
    unsafe {
        let args = &*args;
        let [fa, fb] = args.factors;
        // The upper word of a doubled product.
        let product = |x: i8, factor: i32| (((i64::from(x) << 23) * i64::from(factor)) >> 31) as i32;
        for i in 0..args.count as usize {
            let sum = product(*args.a.add(i), fa).saturating_add(args.offset);
            let sum = sum.saturating_add(product(*args.b.add(i), fb));
            *args.out.add(i) = (sum >> 20).clamp(-128, 127) as i8;
        }
    }
}

/// Calls `with(lane, element)` for every element of the window.
unsafe fn each_pooled(args: &Pool, mut with: impl FnMut(usize, i8)) {
    let pitch = args.columns as usize * args.step as usize + args.skip as usize;
    for row in 0..args.rows as usize {
        for column in 0..args.columns as usize {
            for lane in 0..args.lanes as usize {
                // SAFETY: an element of the window of `args`, whose `lanes` channels are readable (head of the file).
                with(lane, unsafe {
                    *args.src.add(row * pitch + column * args.step as usize + lane)
                });
            }
        }
    }
}

pub(super) unsafe fn sum(args: *const Pool) {
    // SAFETY: `args` describes a window of at most eight lanes, and `dst` takes eight sums (head of the file).
    unsafe {
        let mut sums = [0i16; 8];
        each_pooled(&*args, |lane, x| {
            if let Some(sum) = sums.get_mut(lane) {
                *sum = sum.wrapping_add(i16::from(x));
            }
        });
        (*args).dst.cast::<[i16; 8]>().write_unaligned(sums);
    }
}

pub(super) unsafe fn mean(args: *const Mean) {
    // SAFETY: `args` describes a window of `channels` channels, and `dst` takes as many outputs (head of the file).
    unsafe {
        let args = &*args;
        let pitch = args.columns as usize * args.step as usize + args.skip as usize;
        for channel in 0..args.channels as usize {
            let mut sum = 0i16;
            for row in 0..args.rows as usize {
                for column in 0..args.columns as usize {
                    let x = *args.src.add(row * pitch + column * args.step as usize + channel);
                    sum = sum.wrapping_add(i16::from(x));
                }
            }
            let magnitude = u64::from(sum.unsigned_abs()) + u64::from(args.half);
            let quotient = ((magnitude * u64::from(args.reciprocal)) >> 32) as i32;
            let mean = if sum < 0 { -quotient } else { quotient };
            *args.dst.add(channel) = mean.clamp(args.low, args.high) as i8;
        }
    }
}

pub(super) unsafe fn maximum(args: *const Pool, low: i32, high: i32) {
    // SAFETY: `args` describes a window of at most 16 lanes, and `dst` takes as many outputs (head of the file).
    unsafe {
        let mut maxima = [low as i8; 16];
        each_pooled(&*args, |lane, x| {
            if let Some(max) = maxima.get_mut(lane) {
                *max = x.max(*max);
            }
        });
        for (lane, max) in maxima.iter().enumerate().take((*args).lanes as usize) {
            *(*args).dst.add(lane) = (*max).min(high as i8);
        }
    }
}

unsafe fn rows_f32(args: *const ProductF32, rows: usize) {
    // SAFETY: `args` describes rows, groups and outputs, with weights in the layout of `gemm_f32::pack` (head of the file).
    unsafe {
        let args = &*args;
        let k = 2 * args.pairs as usize + args.odd as usize;
        for group in 0..args.groups as usize {
            let mut values = [[0f32; 8]; 3];
            let lanes = |channel: usize| channel % 4 < args.lanes.get(channel / 4).map_or(0, |&n| n as usize);
            for (row, values) in values.iter_mut().enumerate().take(rows) {
                let x = args.x.byte_add(row * args.x_stride as usize);
                let to = group * 8 + row * args.out_stride as usize / 4;
                for (channel, value) in values.iter_mut().enumerate().filter(|&(channel, _)| lanes(channel)) {
                    let mut sum = *args.bias.add(group * 8 + channel);
                    for i in 0..k {
                        sum += *x.add(i) * *args.weights.add((group * k + i) * 8 + channel);
                    }
                    if !args.residual.is_null() {
                        sum += *args.residual.add(to + channel);
                    }
                    *value = clamp(sum, args.limits);
                }
            }
            for (row, values) in values.iter().enumerate().take(rows) {
                let to = group * 8 + row * args.out_stride as usize / 4;
                for (channel, value) in values.iter().enumerate().filter(|&(channel, _)| lanes(channel)) {
                    *args.out.add(to + channel) = *value;
                }
            }
        }
    }
}

pub(super) unsafe fn rows3_f32(args: *const ProductF32) {
    // SAFETY: `rows_f32` has the contract of this function, and gets the same arguments.
    unsafe { rows_f32(args, 3) }
}

pub(super) unsafe fn rows1_f32(args: *const ProductF32) {
    // SAFETY: `rows_f32` has the contract of this function, and gets the same arguments.
    unsafe { rows_f32(args, 1) }
}

pub(super) unsafe fn depthwise_f32(args: *const DepthwiseF32) {
    // SAFETY: `args` describes taps, channels and outputs (head of the file).
    unsafe {
        let args = &*args;
        let across = args.columns as usize * args.step as usize;
        for channel in 0..args.channels as usize {
            let mut sum = *args.bias.add(channel);
            for row in 0..args.rows as usize {
                for column in 0..args.columns as usize {
                    let by = column * args.step as usize;
                    let x = args.x.byte_add(row * (across + args.x_skip as usize) + by).add(channel);
                    let w = (args.weights).byte_add(row * (across + args.weights_skip as usize) + by);
                    sum += *x * *w.add(channel);
                }
            }
            if !args.residual.is_null() {
                sum += *args.residual.add(channel);
            }
            *args.out.add(channel) = clamp(sum, args.limits);
        }
    }
}

pub(super) unsafe fn row_f32(args: *const LinearF32) {
    // SAFETY: `args` describes a row, rows of weights, biases and outputs (head of the file).
    unsafe {
        let args = &*args;
        for o in 0..4 * args.groups as usize {
            let weights = args.weights.byte_add(o * args.stride as usize);
            let mut sums = [0.0f32; 4];
            for i in 0..args.inputs as usize {
                sums[i % 4] += *args.x.add(i) * *weights.add(i);
            }
            let [a, b, c, d] = sums;
            let sum = (a + b) + (c + d) + *args.bias.add(o);
            *args.out.add(o) = clamp(sum, args.limits);
        }
    }
}

unsafe fn taps(args: *const Taps, fast: bool) {
    // SAFETY: the caller passes valid arguments; the layout is that of `taps::pack`.
    unsafe {
        let args = &*args;
        let (taps, channels) = ((2 * args.pairs + args.odd) as usize, args.channels as usize);
        let requantize = Requantize {
            fast,
            zero_point: args.zero_point,
            low: args.low,
            high: args.high,
        };
        for (pixel, first) in
            (0..args.pixels as usize).flat_map(|pixel| (0..channels).step_by(16).map(move |c| (pixel, c)))
        {
            let weights = args.weights.add(first / 16 * (256 + 16 * taps));
            let table = weights.add(64 + 16 * taps);
            let mut values = [0i8; 16];
            let count = (channels - first).min(16);
            for (channel, value) in values.iter_mut().enumerate().take(count) {
                // Even channels before odd ones, and so again.
                let (sum_of, lane) = (channel % 2 * 2 + channel / 2 % 2, channel / 4);
                let mut sum = word(weights, 4 * sum_of + lane);
                for pair in 0..taps.div_ceil(2) {
                    // As in 16 bits: a file may have weights that no packer writes.
                    let mut products = 0i16;
                    for tap in 2 * pair..(2 * pair + 2).min(taps) {
                        let x = *(*args.entries.add(tap)).add(pixel * args.step as usize + first + channel);
                        let w = *weights.add(64 + tap * 16 + channel) as i8;
                        products = products.wrapping_add(i16::from(x) * i16::from(w));
                    }
                    sum = sum.wrapping_add(products.into());
                }
                let of = |part: usize| word(table, sum_of * 12 + part * 4 + lane);
                *value = requantize.apply(sum, of(0), of(1), of(2));
            }
            let out = args.out.add(pixel * channels + first);
            values.as_ptr().copy_to_nonoverlapping(out, count);
        }
    }
}

pub(super) unsafe fn taps_fast(args: *const Taps) {
    // SAFETY: `taps` has the contract of this function, and gets the same arguments.
    unsafe { taps(args, true) }
}

pub(super) unsafe fn taps_general(args: *const Taps) {
    // SAFETY: `taps` has the contract of this function, and gets the same arguments.
    unsafe { taps(args, false) }
}
