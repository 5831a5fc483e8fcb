"""Networks of TensorFlow Lite Micro's signal operators, and what its Python runtime makes of them.

    pip install tflite-micro flatbuffers numpy
    python tests/oracle/make_signals.py

writes tests/models/tflite_signal/NAME.tflite and one cases.npz with `NAME/in_i` and `NAME/out_i`; the first axis counts consecutive runs of one
interpreter. The seed of each case is its name. Where an output says whether the others are valid (`Framer`, `Stacker`), TensorFlow Lite Micro leaves
the others as they were while it is false.

tests/models/tflite_signal/odd has files with one mistake each, and in expected.json words of what is said of them.
"""

import contextlib
import json
import os
import pathlib
import zlib

import numpy as np

from tflite_builder import Builder, run

OUT = pathlib.Path(__file__).resolve().parent.parent / "models" / "tflite_signal"
CASES = {}
I16 = 7
I32 = 2
F32 = 0


def case(name):
    def register(make):
        assert name not in CASES, name
        CASES[name] = make
        return make

    return register


def samples(rng, runs, *shape, loud=32768):
    """int16 at full scale, both ends among them."""
    x = np.clip(np.round(rng.normal(0, loud / 3, (runs, *shape))), -32768, 32767).astype(np.int16)
    x[0].reshape(-1)[:2] = [32767, -32768]
    return x


def as_unsigned(b, x, shape):
    y = b.tensor(shape, "uint32")
    b.op("CAST", [x], [y], "CastOptions")
    return y


def as_signed(b, x, shape, dtype="int32"):
    y = b.tensor(shape, dtype)
    b.op("CAST", [x], [y], "CastOptions")
    return y


def any_words(rng, runs, n):
    """Numbers of every magnitude, as int32 of the same bits."""
    x = (rng.integers(0, 2**32, (runs, n), dtype=np.uint64) >> rng.integers(0, 32, (runs, n), dtype=np.uint64)).astype(np.uint32)
    x[0, :5] = [0, 1, 2, 3, 2**32 - 1]
    return x.view(np.int32)


def window(name, shape, shift):
    @case(name)
    def make(rng):
        b = Builder()
        x, y = b.tensor(shape, "int16"), b.tensor(shape, "int16")
        w = b.const(rng.integers(-32768, 32768, shape[-1:]), "int16")
        b.custom("SignalWindow", [x, w], [y], shift=shift)
        return b.finish([x], [y]), [samples(rng, 2, *shape)]


window("window", (1, 30), 12)
window("window_rows", (2, 3, 7), 15)
window("window_no_shift", (9,), 0)


@case("auto_scale")
def auto_scale(rng):
    b = Builder()
    x, y, bits = b.tensor((11,), "int16"), b.tensor((11,), "int16"), b.tensor((), "int32")
    b.custom("SignalFftAutoScale", [x], [y, bits])
    runs = [samples(rng, 1, 11, loud=loud)[0] for loud in (32768, 3)]
    quiet = [np.round(rng.normal(0, loud, 11)).astype(np.int16) for loud in (0, 1, 2, 20, 300, 5000)]
    # The lowest number before others, small and large, of either sign.
    odd = [np.int16([3, -32768, *rest, 0, 0]) for rest in ([5, 0, 0, 0, 0, 0, 0], [-3, -2, 0, -1, 0, 0, 0], [-32768] * 7, [7, -900, 20000, -8, 1, 1, 1])]
    return b.finish([x], [y, bits]), [np.stack(runs + quiet + odd)]


def fft(name, dtype, shape, length, inverse=False, loud=1.0):
    @case(name)
    def make(rng):
        b = Builder()
        code = {"int16": I16, "int32": I32, "float32": F32}[dtype]
        out = (*shape[:-1], length if inverse else length + 2)
        x, y = b.tensor(shape, dtype), b.tensor(out, dtype)
        b.custom("SignalIrfft" if inverse else "SignalRfft", [x], [y], T=code, fft_length=length)
        if dtype == "float32":
            values = rng.normal(0, 1, (3, *shape)).astype(np.float32)
        else:
            info = np.iinfo(dtype)
            t = np.arange(shape[-1])
            noise = rng.integers(info.min, info.max, (1, *shape), dtype=dtype, endpoint=True)
            tone = np.broadcast_to(np.round(info.max * loud * np.cos(t * 0.7)), (1, *shape)).astype(dtype)
            ends = np.broadcast_to(np.where(t % 3 == 0, info.min, info.max), (1, *shape)).astype(dtype)
            constant = np.full((1, *shape), info.min, dtype)
            values = np.concatenate([noise, tone, ends, constant])
        return b.finish([x], [y]), [values]


fft("rfft_512", "int16", (480,), 512)
fft("rfft_480", "int16", (480,), 480)
fft("rfft_rows", "int16", (2, 3, 17), 24)
fft("rfft_30", "int16", (30,), 30)
fft("rfft_4", "int16", (3,), 4)
fft("rfft_6", "int16", (6,), 6)
fft("rfft_2048", "int16", (1500,), 2048)
fft("rfft_i32", "int32", (2, 50), 64)
fft("rfft_i32_90", "int32", (90,), 90)
fft("rfft_f32", "float32", (2, 100), 120)
fft("irfft_64", "int16", (66,), 64, inverse=True)
fft("irfft_rows", "int16", (3, 32), 30, inverse=True)
fft("irfft_i32", "int32", (122,), 120, inverse=True)
fft("irfft_f32", "float32", (2, 62), 60, inverse=True)


@case("energy")
def energy(rng):
    b = Builder()
    x, y = b.tensor((26,), "int16"), b.tensor((13,), "uint32")
    b.custom("SignalEnergy", [x], [y], start_index=0, end_index=13)
    whole = as_signed(b, y, (13,))
    return b.finish([x], [whole]), [np.concatenate([samples(rng, 2, 26), np.full((1, 26), -32768, np.int16)])]


@case("energy_part")
def energy_part(rng):
    # The bins that are not wanted have no value there.
    b = Builder()
    x, y, z = b.tensor((26,), "int16"), b.tensor((13,), "uint32"), b.tensor((6,), "int32")
    b.custom("SignalEnergy", [x], [y], start_index=3, end_index=9)
    whole = as_signed(b, y, (13,))
    b.op("STRIDED_SLICE", [whole, b.const([3], "int32"), b.const([9], "int32"), b.const([1], "int32")], [z], "StridedSliceOptions")
    return b.finish([x], [z]), [samples(rng, 2, 26)]


def bank(rng, b, bins, channels):
    """The tables of a filter bank of triangles, with more weights than are used."""
    widths = rng.integers(0, 4, channels + 1)
    widths[-1] = 5
    starts = np.minimum(np.concatenate([[2], 2 + np.cumsum(widths)[:-1]]), bins - 5)
    first = np.concatenate([[0], np.cumsum((widths + 3) // 4 * 4)[:-1]])
    total = int(first[-1] + 8)
    weights = rng.integers(0, 4097, total)
    return [b.const(values, "int16") for values in (weights, 4096 - weights, starts, first, widths)]


@case("filter_bank")
def filter_bank(rng):
    b = Builder()
    bins, channels = 30, 7
    x, bits = b.tensor((bins,), "int32"), b.tensor((), "int32")
    sums, roots = b.tensor((channels,), "uint64"), b.tensor((channels,), "uint32")
    b.custom("SignalFilterBank", [as_unsigned(b, x, (bins,)), *bank(rng, b, bins, channels)], [sums], num_channels=channels)
    b.custom("SignalFilterBankSquareRoot", [sums, bits], [roots])
    return b.finish([x, bits], [as_signed(b, roots, (channels,))]), [any_words(rng, 6, bins), np.int32([0, 1, 5, 15, 0, 3])]


@case("filter_bank_negative")
def filter_bank_negative(rng):
    # Weights below zero count modulo 2^64.
    b = Builder()
    x, bits = b.tensor((6,), "int32"), b.tensor((), "int32")
    sums, roots = b.tensor((2,), "uint64"), b.tensor((2,), "uint32")
    tables = [b.const(values, "int16") for values in ([-3, 2, 1, 900, -7], [4, -4, 0, -32768, 32767], [0, 1, 3], [0, 2, 4], [2, 2, 1])]
    b.custom("SignalFilterBank", [as_unsigned(b, x, (6,)), *tables], [sums], num_channels=2)
    b.custom("SignalFilterBankSquareRoot", [sums, bits], [roots])
    return b.finish([x, bits], [as_signed(b, roots, (2,))]), [any_words(rng, 4, 6), np.int32([0, 1, 2, 3])]


def subtraction(name, clamping, alternate):
    @case(name)
    def make(rng):
        b = Builder()
        n = 9
        x = b.tensor((n,), "int32")
        y, noise = b.tensor((n,), "uint32"), b.tensor((n,), "uint32")
        odd = (983, 15401) if alternate else (409, 15975)
        b.custom("SignalFilterBankSpectralSubtraction", [as_unsigned(b, x, (n,))], [y, noise], alternate_one_minus_smoothing=odd[1],
                 alternate_smoothing=odd[0], clamping=clamping, min_signal_remaining=819, num_channels=n, one_minus_smoothing=15975, smoothing=409,
                 smoothing_bits=10, spectral_subtraction_bits=14)
        return b.finish([x], [as_signed(b, y, (n,)), as_signed(b, noise, (n,))]), [any_words(rng, 12, n)]


subtraction("subtraction", False, True)
subtraction("subtraction_clamping", True, False)


def gains(strength=0.95, offset=80.0, gain_bits=21, smoothing_bits=10, correction=-3):
    """The table of gains of the published front end: a parabola for each power of two (values, then first and second differences)."""

    def gain(x):
        return min(int((1 << gain_bits) * (offset + x / 2.0 ** (smoothing_bits + correction)) ** -strength + 0.5), 32767)

    table = np.zeros(125, np.int16)
    table[0], table[1] = gain(0), gain(1)
    for bits in range(2, 33):
        x0 = 1 << (bits - 1)
        x1 = x0 + (x0 >> 1)
        x2 = 2**32 - 1 if bits == 32 else 2 * x0
        y0, y1, y2 = gain(x0), gain(x1), gain(x2)
        d1, d2 = y1 - y0, y2 - y0
        table[4 * bits - 6 : 4 * bits - 3] = [y0, 4 * d1 - d2, d2 - (4 * d1 - d2)]
    return table


def pcan(name, table, shift):
    @case(name)
    def make(rng):
        b = Builder()
        n = 40
        x, noise, y = b.tensor((n,), "int32"), b.tensor((n,), "int32"), b.tensor((n,), "uint32")
        lut = b.const(gains() if table is None else table(rng), "int16")
        b.custom("SignalPCAN", [as_unsigned(b, x, (n,)), as_unsigned(b, noise, (n,)), lut], [y], snr_shift=shift)
        return b.finish([x, noise], [as_signed(b, y, (n,))]), [any_words(rng, 5, n), any_words(rng, 5, n)]


pcan("pcan", None, 6)
pcan("pcan_any_table", lambda rng: rng.integers(-32768, 32768, 125) >> 2, 20)


def log(name, scale, correction):
    @case(name)
    def make(rng):
        b = Builder()
        n = 50
        x, y = b.tensor((n,), "int32"), b.tensor((n,), "int16")
        b.custom("SignalFilterBankLog", [as_unsigned(b, x, (n,))], [y], input_correction_bits=correction, output_scale=scale)
        return b.finish([x], [y]), [any_words(rng, 6, n)]


log("log", 64, 3)
log("log_large", 1600, 0)


def delay(name, shape, length):
    @case(name)
    def make(rng):
        b = Builder()
        x, y = b.tensor(shape, "int16"), b.tensor(shape, "int16")
        b.custom("SignalDelay", [x], [y], delay_length=length)
        return b.finish([x], [y]), [samples(rng, 7, *shape)]


delay("delay_short", (5,), 3)
delay("delay_long", (2, 3), 7)
delay("delay_even", (4,), 4)


def framer(name, shape, size, step, prefill):
    @case(name)
    def make(rng):
        b = Builder()
        frames = shape[-1] // step
        x, y, valid = b.tensor(shape, "int16"), b.tensor((*shape[:-1], frames, size), "int16"), b.tensor((), "bool")
        b.custom("SignalFramer", [x], [y, valid], frame_size=size, frame_step=step, prefill=prefill)
        return b.finish([x], [y, valid]), [samples(rng, 8, *shape)]


framer("framer", (4,), 10, 4, False)
framer("framer_rows", (2, 6), 7, 3, False)
framer("framer_prefill", (2, 4), 7, 2, True)
framer("framer_even", (3,), 6, 3, False)
framer("framer_apart", (8,), 3, 4, False)


def stacker(name, channels, left, right, step):
    @case(name)
    def make(rng):
        b = Builder()
        x, y, valid = b.tensor((channels,), "int16"), b.tensor((channels * (left + right + 1),), "int16"), b.tensor((), "bool")
        b.custom("SignalStacker", [x], [y, valid], num_channels=channels, stacker_left_context=left, stacker_right_context=right, stacker_step=step)
        return b.finish([x], [y, valid]), [samples(rng, 11, channels)]


stacker("stacker", 3, 2, 1, 2)
stacker("stacker_right", 2, 0, 3, 3)
stacker("stacker_alone", 5, 0, 0, 1)
stacker("stacker_left", 2, 3, 0, 4)


def overlap_add(name, dtype, shape, step):
    @case(name)
    def make(rng):
        b = Builder()
        out = (*shape[:-2], shape[-2] * step)
        x, y = b.tensor(shape, dtype), b.tensor(out, dtype)
        b.custom("SignalOverlapAdd", [x], [y], T=I16 if dtype == "int16" else F32, frame_step=step)
        values = samples(rng, 5, *shape) if dtype == "int16" else rng.normal(0, 1, (5, *shape)).astype(np.float32)
        return b.finish([x], [y]), [values]


overlap_add("overlap_add", "int16", (1, 7), 3)
overlap_add("overlap_add_rows", "int16", (2, 3, 5), 2)
overlap_add("overlap_add_whole", "int16", (2, 4), 4)
overlap_add("overlap_add_f32", "float32", (2, 2, 6), 4)


@case("div_i32")
def div(rng):
    b = Builder()
    x, d, y = b.tensor((2, 5), "int32"), b.tensor((5,), "int32"), b.tensor((2, 5), "int32")
    b.op("DIV", [x, d], [y], "DivOptions")
    divisors = rng.integers(1, 2000, (3, 5)) * rng.choice([-1, 1], (3, 5))
    return b.finish([x, d], [y]), [any_words(rng, 3, 10).reshape(3, 2, 5), divisors.astype(np.int32)]


@case("casts")
def casts(rng):
    b = Builder()
    x = b.tensor((9,), "int32")
    word = as_unsigned(b, x, (9,))
    small = as_signed(b, word, (9,), "int16")
    again = as_unsigned(b, small, (9,))
    outputs = [small, as_signed(b, again, (9,)), as_signed(b, word, (9,), "int8")]
    return b.finish([x], outputs), [any_words(rng, 3, 9)]


@case("front_end_streamed")
def front_end_streamed(rng):
    # All of them, hop by hop: 100 samples of frames of 150, 12 channels, three frames side by side.
    b = Builder()
    hop, frame, bins, n = 100, 150, 81, 12
    x, valid, stacked_valid = b.tensor((hop,), "int16"), b.tensor((), "bool"), b.tensor((), "bool")
    late, frames, flat, windowed = b.tensor((hop,), "int16"), b.tensor((1, frame), "int16"), b.tensor((frame,), "int16"), b.tensor((frame,), "int16")
    scaled, bits, spectrum, energies = b.tensor((frame,), "int16"), b.tensor((), "int32"), b.tensor((2 * bins,), "int16"), b.tensor((bins,), "uint32")
    sums, roots, clean, noise = b.tensor((n,), "uint64"), b.tensor((n,), "uint32"), b.tensor((n,), "uint32"), b.tensor((n,), "uint32")
    gained, logs, stacked = b.tensor((n,), "uint32"), b.tensor((n,), "int16"), b.tensor((3 * n,), "int16")
    b.custom("SignalDelay", [x], [late], delay_length=30)
    b.custom("SignalFramer", [late], [frames, valid], frame_size=frame, frame_step=hop, prefill=True)
    b.op("RESHAPE", [frames, b.const([frame], "int32")], [flat])
    window = np.round(4096 * (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(frame) + 0.5) / frame)))
    b.custom("SignalWindow", [flat, b.const(window, "int16")], [windowed], shift=12)
    b.custom("SignalFftAutoScale", [windowed], [scaled, bits])
    b.custom("SignalRfft", [scaled], [spectrum], T=I16, fft_length=160)
    b.custom("SignalEnergy", [spectrum], [energies], start_index=0, end_index=bins)
    b.custom("SignalFilterBank", [energies, *bank(rng, b, bins, n)], [sums], num_channels=n)
    b.custom("SignalFilterBankSquareRoot", [sums, bits], [roots])
    b.custom("SignalFilterBankSpectralSubtraction", [roots], [clean, noise], alternate_one_minus_smoothing=15401, alternate_smoothing=983, clamping=False,
             min_signal_remaining=819, num_channels=n, one_minus_smoothing=15975, smoothing=409, smoothing_bits=10, spectral_subtraction_bits=14)
    b.custom("SignalPCAN", [clean, noise, b.const(gains(), "int16")], [gained], snr_shift=6)
    b.custom("SignalFilterBankLog", [gained], [logs], input_correction_bits=3, output_scale=64)
    b.custom("SignalStacker", [logs], [stacked, stacked_valid], num_channels=n, stacker_left_context=1, stacker_right_context=1, stacker_step=2)
    loudness = 2.0 ** -rng.integers(0, 12, (24, 1))
    hops = np.clip(samples(rng, 24, hop) * loudness, -32768, 32767).astype(np.int16)
    hops[5:7] = 0
    return b.finish([x], [stacked, stacked_valid]), [hops]


ODD = {}


def odd(name, words, operator, inputs, outputs, consts=(), **options):
    """One custom operator of tensors [(shape, dtype)]."""
    b = Builder()
    ins, outs = [b.tensor(*t) for t in inputs], [b.tensor(*t) for t in outputs]
    b.custom(operator, ins + [b.const(values, "int16") for values in consts], outs, **options)
    ODD[name] = (b.finish(ins, outs), words)


def mistakes():
    i16 = lambda *shape: (shape, "int16")
    u32 = lambda *shape: (shape, "uint32")
    flag, word = ((), "bool"), ((), "int32")
    odd("fft_of_sevens", ["length 14", "2, 3 and 5"], "SignalRfft", [i16(14)], [i16(16)], T=I16, fft_length=14)
    odd("fft_odd", ["length 15", "even"], "SignalRfft", [i16(15)], [i16(17)], T=I16, fft_length=15)
    odd("fft_long", ["fft_length", "131072", "65536"], "SignalRfft", [i16(9)], [i16(131074)], T=I16, fft_length=131072)
    odd("fft_short", ["rows of 30", "at most 24"], "SignalRfft", [i16(30)], [i16(26)], T=I16, fft_length=24)
    odd("fft_output", ["[24]", "[26]"], "SignalRfft", [i16(20)], [i16(24)], T=I16, fft_length=24)
    odd("inverse_short", ["rows of 24", "26 along"], "SignalIrfft", [i16(24)], [i16(24)], T=I16, fft_length=24)
    odd("energy_end", ["end_index", "14", "0 to 13"], "SignalEnergy", [i16(26)], [u32(13)], start_index=0, end_index=14)
    odd("energy_start", ["start_index", "6", "0 to 5"], "SignalEnergy", [i16(26)], [u32(13)], start_index=6, end_index=5)
    odd("energy_unpaired", ["27 elements", "pairs"], "SignalEnergy", [i16(27)], [u32(13)], start_index=0, end_index=13)
    odd("energy_axes", ["[1, 26]", "one axis"], "SignalEnergy", [i16(1, 26)], [u32(13)], start_index=0, end_index=13)
    odd("window_length", ["[5]", "[2, 6]"], "SignalWindow", [i16(2, 6)], [i16(2, 6)], [range(5)], shift=3)
    odd("window_shift", ["shift", "32", "0 to 31"], "SignalWindow", [i16(2, 6)], [i16(2, 6)], [range(6)], shift=32)
    odd("no_option", ["no option `shift`"], "SignalWindow", [i16(2, 6)], [i16(2, 6)], [range(6)], shaft=3)
    odd("option_of_no_number", ["option `shift`", "float"], "SignalWindow", [i16(2, 6)], [i16(2, 6)], [range(6)], shift=3.5)
    bins = ((9,), "uint32"), ((2,), "uint64")
    bank = lambda name, words, starts, first, widths, channels=2, weights=6: odd(
        name, words, "SignalFilterBank", [bins[0]], [bins[1]], [range(weights), range(weights), starts, first, widths], num_channels=channels)
    bank("bank_bins", ["band 2", "4 bins from 6", "at most 9 bins"], [0, 1, 6], [0, 1, 2], [1, 1, 4])
    bank("bank_start", ["band 1", "from -1"], [0, -1, 6], [0, 1, 2], [1, 1, 3])
    bank("bank_weights", ["band 2", "from 4", "6 weights"], [0, 1, 5], [0, 1, 4], [1, 1, 3])
    bank("bank_tables", ["operand 3", "2 elements", "3, one more"], [0, 1], [0, 1, 2], [1, 1, 3])
    bank("bank_channels", ["num_channels", "0"], [0], [0], [1], channels=0)
    subtract = dict(alternate_one_minus_smoothing=1, alternate_smoothing=1, clamping=False, min_signal_remaining=1, num_channels=4, one_minus_smoothing=1,
                    smoothing=1, smoothing_bits=10, spectral_subtraction_bits=14)
    for name, words, changed in [("channels", ["num_channels", "4", "expected 5"], {}), ("bits", ["smoothing_bits", "32"], dict(smoothing_bits=32)),
                                 ("factor", ["smoothing", "-1"], dict(smoothing=-1)),
                                 ("shift", ["spectral_subtraction_bits", "64"], dict(spectral_subtraction_bits=64))]:
        odd(f"subtraction_{name}", words, "SignalFilterBankSpectralSubtraction", [u32(5)], [u32(5), u32(5)], **(subtract | changed))
    odd("pcan_table", ["124 gains", "at least 125"], "SignalPCAN", [u32(3), u32(3)], [u32(3)], [range(124)], snr_shift=6)
    odd("pcan_shift", ["snr_shift", "64", "0 to 63"], "SignalPCAN", [u32(3), u32(3)], [u32(3)], [range(125)], snr_shift=64)
    odd("log_shift", ["input_correction_bits", "32"], "SignalFilterBankLog", [u32(3)], [i16(3)], input_correction_bits=32, output_scale=1)
    odd("log_scale", ["output_scale", "-1"], "SignalFilterBankLog", [u32(3)], [i16(3)], input_correction_bits=3, output_scale=-1)
    odd("delay_none", ["delay_length", "0"], "SignalDelay", [i16(3)], [i16(3)], delay_length=0)
    odd("delay_long", ["delay_length", "4194305", "1 to 4194304"], "SignalDelay", [i16(3)], [i16(3)], delay_length=4194305)
    odd("delay_state", ["a state of 4500000", "at most 4194304"], "SignalDelay", [i16(9, 3)], [i16(9, 3)], delay_length=500000)
    odd("framer_rest", ["5 samples", "steps of 2"], "SignalFramer", [i16(5)], [i16(2, 4), flag], frame_size=4, frame_step=2, prefill=False)
    odd("framer_gap", ["frame_step", "5", "1 to 4"], "SignalFramer", [i16(5)], [i16(1, 4), flag], frame_size=4, frame_step=5, prefill=True)
    odd("framer_frames", ["[3, 4]", "[2, 4]"], "SignalFramer", [i16(4)], [i16(3, 4), flag], frame_size=4, frame_step=2, prefill=False)
    stack = dict(num_channels=2, stacker_left_context=1, stacker_right_context=1)
    odd("stacker_none", ["stacker_step", "0", "1 to 3"], "SignalStacker", [i16(2)], [i16(6), flag], stacker_step=0, **stack)
    odd("stacker_far", ["stacker_step", "4", "1 to 3"], "SignalStacker", [i16(2)], [i16(6), flag], stacker_step=4, **stack)
    odd("stacker_channels", ["num_channels", "2", "expected 3"], "SignalStacker", [i16(3)], [i16(9), flag], stacker_step=1, **stack)
    odd("overlap_apart", ["frame_step", "5", "1 to 4"], "SignalOverlapAdd", [i16(2, 4)], [i16(10)], T=I16, frame_step=5)
    odd("overlap_axes", ["one axis", "two"], "SignalOverlapAdd", [i16(4)], [i16(2)], T=I16, frame_step=2)
    odd("scale_type", ["int16", "int32"], "SignalFftAutoScale", [i16(4)], [i16(4), ((), "int16")])
    odd("root_bits", ["[2]", "[]"], "SignalFilterBankSquareRoot", [((2,), "uint64"), ((2,), "int32")], [u32(2)])
    odd("root_type", ["int32", "int64"], "SignalFilterBankSquareRoot", [u32(2), word], [u32(2)])

    b = Builder()
    x, w, y = b.tensor((6,), "int16"), b.tensor((6,), "int16"), b.tensor((6,), "int16")
    b.operator((32, 1, "SignalWindow"), [x, w], [y])
    ODD["no_options"] = (b.finish([x, w], [y]), ["no flexbuffer"])
    for name, op, out, options in [("add", "ADD", "uint32", "AddOptions"), ("minimum", "MINIMUM", "uint32", None), ("cast", "CAST", "float32", None)]:
        b = Builder()
        x, y = b.tensor((3,), "uint32"), b.tensor((3,), out)
        b.op(op, [x] if op == "CAST" else [x, x], [y], options)
        ODD[f"unsigned_{name}"] = (b.finish([x], [y]), ["UINT32", "CAST to INT32"])


def main():
    (OUT / "odd").mkdir(parents=True, exist_ok=True)
    mistakes()
    for name, (file, _) in ODD.items():
        (OUT / "odd" / f"{name}.tflite").write_bytes(file)
    expected = {name: words for name, (_, words) in sorted(ODD.items())}
    (OUT / "odd" / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    arrays = {}
    for name, make in CASES.items():
        file, inputs = make(np.random.default_rng(zlib.crc32(name.encode())))
        with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
            outputs = run(file, inputs)
        (OUT / f"{name}.tflite").write_bytes(file)
        arrays |= {f"{name}/in_{i}": value for i, value in enumerate(inputs)}
        arrays |= {f"{name}/out_{i}": value for i, value in enumerate(outputs)}
    np.savez_compressed(OUT / "cases.npz", **dict(sorted(arrays.items())))
    print(f"{len(CASES)} cases, {len(ODD)} mistakes")


if __name__ == "__main__":
    main()
