//! Every kernel against the scalar one, over random shapes, forms and overlaps. On a host these are the portable loops; the boards run the
//! assembly on the models' layers.

extern crate std;

use core::cell::Cell;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

use super::{channel_record, conv2d_s8, conv2d_s8_paired, conv2d_s8_w4, dwconv_s8, dwconv_s8_3x3_s1, linear_s8};
use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::isa::dsp::halves;
use crate::kernels::portable;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Operator;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};
use crate::ops::window::Window2d;
use crate::quant::Multiplier;

/// A convolution with its constants.
#[derive(Debug, Clone)]
struct Case {
    op: Conv2dS8,
    weights: Vec<i8>,
    channels: Vec<[i32; 3]>,
    input: Vec<i8>,
}

/// 16-byte aligned memory.
fn aligned(bytes: usize) -> Vec<u128> {
    vec![0x5555_5555_5555_5555_5555_5555_5555_5555; bytes.div_ceil(16)]
}

fn bytes_mut(memory: &mut [u128]) -> &mut [u8] {
    // SAFETY: every word is 16 bytes, initialised and borrowed mutably as long as the slice.
    unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), memory.len() * 16) }
}

fn run<K: Kernel>(op: &K::Op, arena: &mut [u128], weights: &mut [u128]) {
    let mem = Mem {
        regions: [Cell::from_mut(bytes_mut(arena)).as_slice_of_cells(), &[], &[], &[]],
        state: &[],
        weights: bytes_mut(weights),
        rounding: Rounding::default(),
        turning: Default::default(),
    };
    K::run(op, &mem).unwrap();
}

impl Case {
    /// The same without weights of -128, which halves of two channels have no room for.
    fn pairs(&self) -> Self {
        let weights = self.weights.iter().map(|&w| w.max(-127)).collect();
        Self {
            weights,
            ..self.clone()
        }
    }

    /// The same with one factor for all channels.
    fn alike(&self) -> Self {
        let [_, mantissa, shift] = self.channels[0];
        let alike = |&[bias, ..]: &[i32; 3]| [bias, mantissa, shift];
        Self {
            channels: self.channels.iter().map(alike).collect(),
            ..self.pairs()
        }
    }

    /// The same with weights of four bits, and factors for their sums.
    fn nibbles(&self) -> Self {
        let wider = |&[bias, mantissa, shift]: &[i32; 3]| [bias / 16, mantissa, (shift + 4).min(31)];
        Self {
            weights: self.weights.iter().map(|&w| w % 8).collect(),
            channels: self.channels.iter().map(wider).collect(),
            ..self.clone()
        }
    }

    fn scalar(&self) -> Vec<i8> {
        let mut op = self.op;
        let (inputs, outputs) = (self.input.len(), op.window.output_len().unwrap() as usize);
        op.input.offset = 0;
        op.output.offset = inputs.next_multiple_of(16) as u32;
        op.weights = 0;
        op.channels = self.weights.len().next_multiple_of(4) as u32;
        let mut weights = aligned(op.channels as usize + self.channels.len() * 12);
        let (bytes, records) = bytes_mut(&mut weights).split_at_mut(op.channels as usize);
        bytes.iter_mut().zip(&self.weights).for_each(|(to, &w)| *to = w as u8);
        let values = self.channels.iter().flatten().flat_map(|v| v.to_le_bytes());
        records.iter_mut().zip(values).for_each(|(to, byte)| *to = byte);
        let mut arena = aligned(op.output.offset as usize + outputs);
        bytes_mut(&mut arena)
            .iter_mut()
            .zip(&self.input)
            .for_each(|(to, &x)| *to = x as u8);
        run::<portable::conv2d::S8>(&op, &mut arena, &mut weights);
        let at = op.output.offset as usize;
        bytes_mut(&mut arena)[at..at + outputs]
            .iter()
            .map(|&b| b as i8)
            .collect()
    }

    /// The kernel's outputs; `overlap` places the output over the input at the least allowed distance.
    fn packed<K: Kernel<Op = PackedConv2dS8>>(
        &self,
        pack: impl Fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<PackedConv2dS8>,
        overlap: bool,
    ) -> (Form, Vec<i8>) {
        let longest = PackedConv2dS8 {
            output: Slot::default(),
            input: Slot::default(),
            scratch: Slot::default(),
            weights: 0,
            window: self.op.window,
            input_zero_point: 0,
            form: Form::General,
        };
        let bytes = K::needs(&longest).weights as usize;
        let mut stream = aligned(bytes);
        let mut step = pack(
            &self.op,
            &self.weights,
            &self.channels,
            &mut bytes_mut(&mut stream)[..bytes],
        )
        .unwrap();
        step.check().unwrap();
        let needs = K::needs(&step);
        let (inputs, outputs) = (self.input.len(), step.window.output_len().unwrap() as usize);
        let scratch = needs.scratch.next_multiple_of(16);
        step.scratch.offset = 0;
        let distance = match K::distance(&step, 1) {
            Some(distance) if overlap => distance,
            // The output in the input's place, where it may be there.
            None if overlap && K::in_place(&step, 1) => 0,
            _ => outputs as i64,
        };
        // Whichever starts lower starts after the scratch, with a guard before it.
        let base = i64::from(scratch) + 16;
        let (output, input) = if distance >= 0 {
            (base, base + distance)
        } else {
            (base - distance, base)
        };
        (step.output.offset, step.input.offset) = (output as u32, input as u32);
        let end = (output as usize + outputs).max(input as usize + inputs);
        let mut arena = aligned(end + 16);
        let at = input as usize;
        bytes_mut(&mut arena)[at..at + inputs]
            .iter_mut()
            .zip(&self.input)
            .for_each(|(to, &x)| *to = x as u8);
        run::<K>(&step, &mut arena, &mut stream);
        let arena = bytes_mut(&mut arena);
        assert!(
            arena[scratch as usize..scratch as usize + 16]
                .iter()
                .all(|&b| b == 0x55),
            "guard before"
        );
        assert!(arena[end..end + 16].iter().all(|&b| b == 0x55), "guard after");
        assert!(
            arena[needs.scratch as usize..scratch as usize]
                .iter()
                .all(|&b| b == 0x55),
            "guard after scratch"
        );
        let at = output as usize;
        (step.form, arena[at..at + outputs].iter().map(|&b| b as i8).collect())
    }
}

/// A convolution whose sums cover the output's range.
fn case(window: Window2d, groups: u16, relu: bool, clamp: [i8; 2], seed: u32) -> Case {
    let mut state = seed | 1;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let zero_point = if relu { -128 } else { byte() as i8 };
    let op = Conv2dS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        weights: 0,
        channels: 0,
        window,
        groups,
        input_zero_point: byte() as i8,
        output_zero_point: zero_point,
        clamp,
        flags: 0,
    };
    let count = op.weights_len().unwrap() as usize;
    let taps = count / usize::from(window.output[2]);
    let channels = (0..window.output[2])
        .map(|_| {
            // Sums of this many random products spread over about 6,000 sqrt(taps).
            let spread = 6000.0 * (taps as f64).sqrt();
            let multiplier = Multiplier::from_real(100.0 / spread * f64::from(1 + u16::from(byte())) / 64.0).unwrap();
            let bias = i32::from(byte() as i8) * (spread / 128.0) as i32;
            [bias, multiplier.mantissa, i32::from(multiplier.shift)]
        })
        .collect();
    Case {
        op,
        weights: (0..count).map(|_| byte() as i8).collect(),
        channels,
        input: (0..window.input_len().unwrap()).map(|_| byte() as i8).collect(),
    }
}

prop_compose! {
    fn windows()(
        batch in 1u16..3, height in 1u16..9, width in 1u16..13, kernel in [1u16..5, 1u16..5], stride in [1u8..4, 1u8..4],
        dilation in [1u8..3, 1u8..3], same: bool, pointwise in 0..4, columns in 1u16..8, rows in 1u16..6, padding in [0u8..4, 0u8..4],
    ) -> Window2d {
        if pointwise == 0 {
            let input = [height, width, 0];
            return Window2d { batch, input, output: input, kernel: [1, 1], stride: [1, 1], dilation: [1, 1], padding: [0, 0] };
        }
        let extent = |i: usize| [height, width][i];
        // No window lies in the padding alone.
        let padding = [0, 1].map(|i| padding[i].min((kernel[i] - 1) as u8 * dilation[i]));
        let output = [0, 1].map(|i| {
            if same {
                extent(i).div_ceil(u16::from(stride[i]))
            } else {
                // As many as start inside the padded input.
                [rows, columns][i].min((extent(i) + u16::from(padding[i]) - 1) / u16::from(stride[i]) + 1)
            }
        });
        let padding = [0, 1].map(|i| if same {
            let reach = (kernel[i] - 1) * u16::from(dilation[i]) + 1;
            (((output[i] - 1) * u16::from(stride[i]) + reach).saturating_sub(extent(i)) / 2) as u8
        } else { padding[i] });
        Window2d { batch, input: [height, width, 0], output: [output[0], output[1], 0], kernel, stride, dilation, padding }
    }
}

fn clamps() -> impl Strategy<Value = [i8; 2]> {
    prop_oneof![4 => Just([-128, 127]), 1 => Just([-100, 90])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 6 / 5))]

    #[test]
    fn convolutions_equal_the_scalar_kernel(
        window in windows(), input in 1u16..14, output in 1u16..8, relu: bool, clamp in clamps(),
        seed: u32,
    ) {
        let mut window = window;
        (window.input[2], window.output[2]) = (input, output);
        let case = case(window, 1, relu, clamp, seed);
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<conv2d_s8::S8>(conv2d_s8::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<conv2d_s8::S8>(conv2d_s8::pack, true).1, &expected);
    }

    #[test]
    fn convolutions_of_pairs_equal_the_scalar_kernel(
        window in windows(), input in 1u16..14, output in 1u16..8, relu: bool, clamp in clamps(),
        seed: u32,
    ) {
        let mut window = window;
        (window.input[2], window.output[2]) = (input, output);
        let case = case(window, 1, relu, clamp, seed).pairs();
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<conv2d_s8_paired::S8>(conv2d_s8_paired::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<conv2d_s8_paired::S8>(conv2d_s8_paired::pack, true).1, &expected);
    }

    #[test]
    fn layers_of_channels_alike_equal_the_scalar_kernel(
        batch in 1u16..4, input in prop_oneof![1u16..40, 1015u16..1025], output in 1u16..12, relu: bool, seed: u32,
    ) {
        let case = case(row(batch, input, output), 1, relu, [-128, 127], seed).alike();
        let mut stream = vec![0; dense_bytes(&case)];
        prop_assume!(linear_s8::pack(&case.op, &case.weights, &case.channels, &mut stream).is_some());
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<linear_s8::S8>(linear_s8::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<linear_s8::S8>(linear_s8::pack, true).1, &expected);
    }

    #[test]
    fn layers_by_tiles_equal_the_scalar_kernel(
        batch in 1u16..4, input in prop_oneof![1025u16..1040, 1270u16..1290, 4000u16..4003], output in 1u16..6, relu: bool, clamp in clamps(), seed: u32,
    ) {
        let case = case(row(batch, input, output), 1, relu, clamp, seed).pairs();
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<linear_s8::S8>(linear_s8::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<linear_s8::S8>(linear_s8::pack, true).1, &expected);
    }

    #[test]
    fn convolutions_of_four_bits_equal_the_scalar_kernel(
        window in windows(), input in 1u16..14, output in 1u16..8, relu: bool, clamp in clamps(),
        seed: u32,
    ) {
        let mut window = window;
        (window.input[2], window.output[2]) = (input, output);
        let case = case(window, 1, relu, clamp, seed).nibbles();
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<conv2d_s8_w4::S8>(conv2d_s8_w4::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<conv2d_s8_w4::S8>(conv2d_s8_w4::pack, true).1, &expected);
    }

    #[test]
    fn depthwise_convolutions_equal_the_scalar_kernel(
        window in windows(), quads in 1u16..4, nine: bool, relu: bool, clamp in clamps(),
        seed: u32,
    ) {
        let mut window = window;
        if nine && (0..2).all(|i| window.padding[i] <= 2 * window.dilation[i]) {
            window.kernel = [3, 3];
        }
        (window.input[2], window.output[2]) = (4 * quads, 4 * quads);
        let case = case(window, 4 * quads, relu, clamp, seed);
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<dwconv_s8::S8>(dwconv_s8::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<dwconv_s8::S8>(dwconv_s8::pack, true).1, &expected);
    }

    #[test]
    fn sliding_windows_equal_the_scalar_kernel(
        batch in 1u16..3, height in 1u16..12, width in 1u16..12, quads in 1u16..4, padding in [0u8..3, 0u8..3], relu: bool, clamp in clamps(),
        seed: u32,
    ) {
        // No window lies in the padding alone.
        let padding = [0, 1].map(|i: usize| padding[i].max(if [height, width][i] == 1 { 1 } else { 0 }));
        let extents = [height, width, 4 * quads];
        let window = Window2d { batch, input: extents, output: extents, kernel: [3, 3], stride: [1, 1], dilation: [1, 1], padding };
        let case = case(window, 4 * quads, relu, clamp, seed);
        let expected = case.scalar();
        prop_assert_eq!(&case.packed::<dwconv_s8_3x3_s1::S8>(dwconv_s8::pack, false).1, &expected);
        prop_assert_eq!(&case.packed::<dwconv_s8_3x3_s1::S8>(dwconv_s8::pack, true).1, &expected);
    }
}

/// A fully connected layer.
fn row(batch: u16, input: u16, output: u16) -> Window2d {
    Window2d {
        batch,
        input: [1, 1, input],
        output: [1, 1, output],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    }
}

/// Bytes of its stream.
fn dense_bytes(case: &Case) -> usize {
    linear_s8::S8::needs(&PackedConv2dS8::of(&case.op, Form::Signed)).weights as usize
}

/// Layers of channels alike, of those that are not, of few; by tiles of any.
#[test]
fn dense_layers_are_taken_where_they_serve() {
    let form = |case: &Case| {
        let mut stream = vec![0; dense_bytes(case)];
        linear_s8::pack(&case.op, &case.weights, &case.channels, &mut stream).map(|op| {
            assert!(linear_s8::S8::supports(&op), "{:?}", op.form);
            op.form
        })
    };
    for (relu, expected) in [(true, Form::Positive), (false, Form::Signed)] {
        let of = |input, output| case(row(1, input, output), 1, relu, [-128, 127], 7).alike();
        assert_eq!(form(&of(100, 64)), Some(expected));
        assert_eq!(form(&of(250, 64)), Some(expected));
        assert_eq!(form(&of(100, 62)), Some(expected));
        for (input, output, pays) in [(100, 63, false), (100, 64, true), (1024, 63, false), (1025, 1, true)] {
            let op = PackedConv2dS8::of(&of(input, output).op, expected);
            assert_eq!(linear_s8::pays(&op), pays, "{input} {output}");
        }
        assert_eq!(form(&of(1025, 3)), Some(Form::General));
        let mut other = of(100, 64);
        other.channels[5][1] += 1;
        assert_eq!(form(&other), None, "a factor of its own");
        let mut large = of(100, 64);
        large.weights[100] = -128;
        large.weights[0] = -1;
        assert_eq!(form(&large), None, "a weight without room");
        let mut bias = of(100, 64);
        bias.channels[1][0] = 1 << 23;
        assert_eq!(form(&bias), None, "sums beyond 24 bits");
        let mut two = of(100, 64);
        (two.op.window.input[0], two.op.window.output[0]) = (2, 2);
        assert_eq!(form(&two), None, "two pixels");
    }
}

/// Loads refuse a stream with bits in its records or biases that no packer writes.
#[test]
fn dense_streams_are_checked() {
    for (input, output) in [(90, 64), (1030, 5)] {
        let case = case(row(1, input, output), 1, true, [-128, 127], 7).alike();
        let mut stream = aligned(dense_bytes(&case));
        let bytes = dense_bytes(&case);
        let mut op = linear_s8::pack(
            &case.op,
            &case.weights,
            &case.channels,
            &mut bytes_mut(&mut stream)[..bytes],
        )
        .unwrap();
        op.weights = 0;
        let mut trusts = |word: usize, value: u32| {
            let at = 4 * word..4 * word + 4;
            let was = bytes_mut(&mut stream)[at.clone()].to_vec();
            bytes_mut(&mut stream)[at.clone()].copy_from_slice(&value.to_le_bytes());
            let trusted = linear_s8::S8::trusts(&op, &bytes_mut(&mut stream)[..bytes]);
            bytes_mut(&mut stream)[at].copy_from_slice(&was);
            trusted
        };
        if input == 90 {
            assert!(trusts(2, 8) && trusts(2, 31), "shifts that there are");
            assert!(
                !trusts(2, 7) && !trusts(2, 32) && !trusts(3, 1),
                "shifts that there are not, a sign's correction"
            );
            // Biases, the first ones and the last ones.
            for (first, second) in [(4, 5), (4 + 62, 4 + 63)] {
                let word = |stream: &mut [u128], at: usize| {
                    u32::from_le_bytes(bytes_mut(stream)[4 * at..][..4].try_into().unwrap())
                };
                let (b0, both) = (word(&mut stream, first), word(&mut stream, second));
                let mut set = |value: u32| {
                    bytes_mut(&mut stream)[4 * second..][..4].copy_from_slice(&value.to_le_bytes());
                    linear_s8::S8::trusts(&op, &bytes_mut(&mut stream)[..bytes])
                };
                assert!(set(b0) && !set(b0.wrapping_add(1)), "a bias that is no whole number");
                assert!(!set(b0.wrapping_add(0x7fff_ff00)), "a bias beyond 24 bits");
                assert!(set(both));
            }
        } else {
            assert!(trusts(1, 31) && !trusts(1, 32), "a shift");
            assert!(
                trusts(4 * 5 + 1, 31) && !trusts(4 * 5 + 1, 32),
                "that of the channel beside the last one"
            );
        }
    }
}

/// All forms occur, so that the comparisons above mean something.
#[test]
fn forms_are_chosen_as_documented() {
    let window = |kernel, channels| Window2d {
        batch: 1,
        input: [6, 7, channels],
        output: [6, 7, channels],
        kernel: [kernel, kernel],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [kernel as u8 / 2, kernel as u8 / 2],
    };
    for (relu, clamp, form, depthwise_form) in [
        (true, [-128, 127], Form::Positive, Form::Folded),
        (false, [-128, 127], Form::Signed, Form::Signed),
        (false, [-90, 80], Form::General, Form::General),
    ] {
        let case_1 = case(window(3, 8), 1, relu, clamp, 7);
        let (found, outputs) = case_1.packed::<conv2d_s8::S8>(conv2d_s8::pack, false);
        assert_eq!((found, outputs), (form, case_1.scalar()));
        let of_pairs = case_1.pairs();
        let (found, outputs) = of_pairs.packed::<conv2d_s8_paired::S8>(conv2d_s8_paired::pack, false);
        assert_eq!((found, outputs), (form, of_pairs.scalar()));
        let of_nibbles = case_1.nibbles();
        let (found, outputs) = of_nibbles.packed::<conv2d_s8_w4::S8>(conv2d_s8_w4::pack, false);
        assert_eq!((found, outputs), (form, of_nibbles.scalar()));
        let case_2 = case(window(3, 8), 8, relu, clamp, 7);
        let (found, outputs) = case_2.packed::<dwconv_s8::S8>(dwconv_s8::pack, false);
        assert_eq!((found, outputs), (depthwise_form, case_2.scalar()));
    }
}

/// One byte nearer than the distance, the outputs differ: the distance is the least.
#[test]
fn a_pointwise_distance_is_the_least() {
    let window = Window2d {
        batch: 1,
        input: [5, 4, 4],
        output: [5, 4, 12],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    };
    let case = case(window, 1, true, [-128, 127], 3);
    struct Nearer;
    impl Kernel for Nearer {
        type Op = PackedConv2dS8;
        fn needs(op: &PackedConv2dS8) -> crate::ops::operator::Needs {
            conv2d_s8::S8::needs(op)
        }
        fn distance(op: &PackedConv2dS8, index: usize) -> Option<i64> {
            conv2d_s8::S8::distance(op, index).map(|d| d - 1)
        }
        fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
            conv2d_s8::S8::run(op, mem)
        }
    }
    assert_eq!(case.packed::<conv2d_s8::S8>(conv2d_s8::pack, true).1, case.scalar());
    assert_ne!(case.packed::<Nearer>(conv2d_s8::pack, true).1, case.scalar());
}

/// Records of the reference's form, at the ends of what the arithmetic has.
#[test]
fn general_records_have_ends() {
    let is = |shift: i32, zero_point: i32, low: i32, high: i32| {
        channel_record::is_general(&[7, shift as u32, zero_point as u32, halves(low, high)])
    };
    for [shift, zero_point, low, high] in [[-31, -128, -128, -128], [31, 127, 127, 127], [0, 3, -128, 127]] {
        assert!(is(shift, zero_point, low, high), "{shift} {zero_point} {low} {high}");
    }
    for [shift, zero_point, low, high] in [
        [-32, 0, -128, 127],
        [32, 0, -128, 127],
        [0, -129, -128, 127],
        [0, 128, -128, 127],
        [0, 0, -129, 127],
        [0, 0, -128, 128],
        [0, 0, 128, 128],
        [0, 0, 5, 4],
    ] {
        assert!(!is(shift, zero_point, low, high), "{shift} {zero_point} {low} {high}");
    }
}
