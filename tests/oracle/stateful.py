"""More cases: operators with a state of their own; importing this registers them."""

import numpy as np

from cases import ACT, SAME, TRUTH, Builder, case, quant
from tflite_builder import RANGES


def hybrid(name):
    """A case of int8 weights under float32 activations. `make(weight)` builds the file: `weight(b, int8 values, scale)` adds them."""

    def register(make):
        @case(name)
        def both(rng):
            state = rng.bit_generator.state

            def file(weight):
                rng.bit_generator.state = state
                return make(rng, weight)

            TRUTH[name], runs = file(lambda b, values, scale: b.const(values.astype(np.float32) * np.float32(scale)))
            return file(lambda b, values, scale: b.const(values, "int8", scale=scale))[0], runs, None

    return register


def svdf(name, batch, inputs, units, rank, memory, state, act=ACT.NONE):
    @case(name)
    def make(rng):
        b = Builder()
        filters = units * rank
        if state == "float32":
            x, y = b.tensor((batch, inputs), "float32"), b.tensor((batch, units), "float32")
            wf = b.const(rng.normal(0, 0.4, (filters, inputs)).astype(np.float32))
            wt = b.const(rng.normal(0, 0.4, (filters, memory)).astype(np.float32))
            bias = b.const(rng.normal(0, 1, units).astype(np.float32))
            s = b.tensor((batch, memory * filters), "float32", variable=True)
        else:
            wide = state == "int16"
            s_state, s_time = (0.0004, 0.00005) if wide else (0.06, 0.02)
            x = b.tensor((batch, inputs), "int8", scale=0.05, zero_point=4)
            wf = b.const(rng.integers(-127, 128, (filters, inputs)), "int8", scale=0.01)
            top = 32767 if wide else 127
            wt = b.const(rng.integers(-top, top + 1, (filters, memory)), state, scale=s_time)
            bias = b.const(rng.integers(-3000, 3000, units), "int32", scale=s_state * s_time)
            s = b.tensor((batch, memory * filters), state, scale=s_state, variable=True)
            y = b.tensor((batch, units), "int8", scale=0.2, zero_point=-9)
        b.op("SVDF", [x, wf, wt, bias, s], [y], "SVDFOptions", version=3, rank=rank, fusedActivationFunction=act)
        return b.finish([x], [y]), 6, None


svdf("svdf_i16_state", 1, 7, 4, 2, 3, "int16", ACT.RELU)
svdf("svdf_i16_state_rank1", 2, 5, 3, 1, 4, "int16")
svdf("svdf_i16_state_vector", 1, 16, 37, 1, 8, "int16")
svdf("svdf_i16_state_vectors", 2, 6, 19, 2, 16, "int16")
svdf("svdf_i16_state_many", 1, 5, 3, 33, 6, "int16")
svdf("svdf_i8_state", 1, 7, 4, 2, 3, "int8")
svdf("svdf_f32", 2, 7, 4, 2, 3, "float32", ACT.RELU)


def lstm(name, batch, time, inputs, cells, dtype="int8", time_major=False, clip=0.0, coarse=1):
    @case(name)
    def make(rng):
        b = Builder()
        shape = (time, batch, inputs) if time_major else (batch, time, inputs)
        out = shape[:2] + (cells,)
        real = dtype == "float32"
        q = {} if real else dict(scale=0.03, zero_point=3) if dtype == "int8" else dict(scale=0.0001)
        x = b.tensor(shape, dtype, **q)
        hidden_q = {} if real else dict(scale=0.008, zero_point=-4) if dtype == "int8" else dict(scale=2.0**-15)

        def weight(n):
            if real:
                return b.const(rng.normal(0, 0.4, (cells, n)).astype(np.float32))
            return b.const(rng.integers(-127, 128, (cells, n)), "int8", scale=coarse * rng.uniform(0.004, 0.01))

        weights = [weight(inputs) for _ in range(4)] + [weight(cells) for _ in range(4)]
        bias_dtype = "float32" if real else "int32" if dtype == "int8" else "int64"
        bias_q = {} if real else dict(scale=0.0002)
        biases = [b.const(rng.normal(0, 0.5 if real else 1500, cells).astype(bias_dtype), **bias_q) for _ in range(4)]
        hidden = b.tensor((batch, cells), dtype, variable=True, **hidden_q)
        cell = b.tensor((batch, cells), "float32" if real else "int16", variable=True, **({} if real else dict(scale=2.0**-11)))
        y = b.tensor(out, dtype, **hidden_q)
        b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1], [y],
             "UnidirectionalSequenceLSTMOptions", version=3, fusedActivationFunction=ACT.TANH, timeMajor=time_major, cellClip=clip)
        return b.finish([x], [y]), 3, None


lstm("lstm", 1, 5, 4, 3)
lstm("lstm_batch", 2, 3, 5, 4)
lstm("lstm_time_major", 2, 3, 5, 4, time_major=True)
lstm("lstm_clip", 1, 4, 4, 3, clip=0.5)
lstm("lstm_i16", 1, 4, 5, 4, dtype="int16")
lstm("lstm_blocks", 1, 2, 6, 37)
lstm("lstm_coarse", 1, 4, 3, 5, coarse=40)
lstm("lstm_i16_blocks", 1, 2, 5, 37, dtype="int16")
lstm("lstm_i16_long", 1, 2, 520, 3, dtype="int16")
lstm("lstm_f32", 2, 4, 5, 4, dtype="float32", clip=1.0)


@hybrid("svdf_hybrid")
def svdf_hybrid(rng, weight):
    b, units, rank, memory = Builder(), 4, 2, 3
    x, y = b.tensor((2, 7), "float32"), b.tensor((2, units), "float32")
    wf, wt = (weight(b, rng.integers(-127, 128, (units * rank, n)), scale) for n, scale in [(7, 0.006), (memory, 0.004)])
    bias, state = b.const(rng.normal(0, 1, units).astype(np.float32)), b.tensor((2, memory * units * rank), "float32", variable=True)
    b.op("SVDF", [x, wf, wt, bias, state], [y], "SVDFOptions", version=3, rank=rank, fusedActivationFunction=ACT.RELU)
    return b.finish([x], [y]), 6


@hybrid("lstm_hybrid")
def lstm_hybrid(rng, weight):
    b, batch, time, inputs, cells = Builder(), 2, 4, 5, 3
    x, y = b.tensor((batch, time, inputs), "float32"), b.tensor((batch, time, cells), "float32")
    weights = [weight(b, rng.integers(-127, 128, (cells, n)), rng.uniform(0.003, 0.006)) for n in [inputs] * 4 + [cells] * 4]
    biases = [b.const(rng.normal(0, 0.5, cells).astype(np.float32)) for _ in range(4)]
    hidden, cell = (b.tensor((batch, cells), "float32", variable=True) for _ in range(2))
    b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, -1, -1, -1, *biases, -1, -1, hidden, cell, -1, -1, -1, -1], [y],
         "UnidirectionalSequenceLSTMOptions", version=3, fusedActivationFunction=ACT.TANH)
    return b.finish([x], [y]), 3


def variable(name, dtype, initialised):
    @case(name)
    def make(rng):
        b = Builder()
        q = quant(dtype)
        x = b.tensor((1, 6), dtype, **q)
        handle = b.tensor((1,), "resource")
        old, new = b.tensor((1, 6), dtype, **q), b.tensor((1, 6), dtype, **q)
        if initialised:
            b.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=1)
        b.op("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName="memory")
        b.op("READ_VARIABLE", [handle], [old], "ReadVariableOptions")
        b.op("ADD", [x, old], [new], "AddOptions", version=2)
        b.op("ASSIGN_VARIABLE", [handle, new], [], "AssignVariableOptions")
        if initialised:
            b.subgraph()
            handle = b.tensor((1,), "resource")
            low, high = RANGES.get(dtype, (-3, 3))
            value = b.const(rng.integers(low, high, (1, 6)), dtype, **q)
            b.op("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName="memory")
            b.op("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions")
        return b.finish([x], [new]), 4, None


variable("variable_i8", "int8", True)
variable("variable_f32", "float32", True)
variable("variable_uninitialised", "int8", False)


def buffer(b, x, frame, slots, options=None, **q):
    """A CIRCULAR_BUFFER of `slots` frames like `x`. As a variable tensor its result begins with zero points."""
    y = b.tensor((1, slots, *frame), "int8", variable=True, **q)
    b.custom("CIRCULAR_BUFFER", [x], [y], **(options or {}))
    if options is None:
        b.graph.operators[-1].customOptions = None
    return y


def circular(name, frame, slots, options):
    @case(f"circular_{name}")
    def make(rng):
        b, q = Builder(), quant("int8")
        x = b.tensor((1, 1, *frame), "int8", **q)
        y = buffer(b, x, frame, slots, options, **q)
        return b.finish([x], [y]), slots + 3, None


circular("three", (4, 3), 3, dict(cycles_max=1))
circular("two", (1, 7), 2, dict(cycles_max=1))
circular("one", (2, 3), 1, dict(cycles_max=1))
circular("five", (2, 3), 5, None)
circular("thirteen", (1, 5), 13, None)
circular("five_of_none", (2, 3), 5, dict(cycles_max=0))


@case("circular_layers")
def circular_layers(rng):
    """Convolutions over the last frames, one behind the other, as streaming networks have them."""
    b, q = Builder(), quant("int8")
    x = b.tensor((1, 1, 6, 2), "int8", **q)
    frames = x
    for slots, channels, out in [(3, 2, 4), (4, 4, 3)]:
        frames = buffer(b, frames, (6, channels), slots, dict(cycles_max=1), **q)
        w = b.const(rng.integers(-127, 128, (out, slots, 3, channels)), "int8", scale=0.006)
        y = b.tensor((1, 1, 6, out), "int8", **q)
        b.op("CONV_2D", [frames, w, b.const(rng.integers(-400, 400, out), "int32")], [y], "Conv2DOptions", version=3, padding=SAME, strideH=slots, strideW=1,
             dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=ACT.RELU)
        frames = y
    return b.finish([x], [frames]), 9, None
