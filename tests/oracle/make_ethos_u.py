"""Small int8 networks, and what Vela makes of them for several Ethos-U.

    pip install ethos-u-vela tflite-micro flatbuffers numpy
    python tests/oracle/make_ethos_u.py

writes tests/models/ethos_u/NAME.tflite, and NAME.CONFIGURATION.tflite as Vela has compiled it. The seed of a network is its name.
"""

import pathlib
import shutil
import subprocess
import tempfile
import zlib

import flatbuffers
import numpy as np

from tflite_builder import Builder, schema

OUT = pathlib.Path(__file__).resolve().parent.parent / "models" / "ethos_u"
SAME, VALID = schema.Padding.SAME, schema.Padding.VALID
RELU = schema.ActivationFunctionType.RELU
NETWORKS = {}


def network(*configurations):
    def register(make):
        NETWORKS[make.__name__] = make, configurations
        return make

    return register


class Net(Builder):
    def __init__(self, name):
        super().__init__()
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def act(self, *shape, scale=0.05, zero=-3):
        return self.tensor(shape, "int8", scale=scale, zero_point=zero)

    def conv(self, x, shape, channels, kernel, stride=1, padding=SAME, depthwise=False):
        """A convolution of x, of this shape; the result and its shape."""
        _, rows, columns, inputs = shape
        kernel_shape = (1, *kernel, channels) if depthwise else (channels, *kernel, inputs)
        axis = 3 if depthwise else 0
        w = self.const(self.rng.integers(-127, 128, kernel_shape), "int8", scale=self.rng.uniform(0.002, 0.006, channels), axis=axis)
        b = self.const(self.rng.integers(-900, 900, channels), "int32")
        extent = lambda n, k: -(-n // stride) if padding == SAME else -(-(n - k + 1) // stride)
        to = (1, extent(rows, kernel[0]), extent(columns, kernel[1]), channels)
        y = self.act(*to)
        fields = {"padding": padding, "strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1, "fusedActivationFunction": RELU}
        if depthwise:
            self.op("DEPTHWISE_CONV_2D", [x, w, b], [y], "DepthwiseConv2DOptions", version=3, depthMultiplier=1, **fields)
        else:
            self.op("CONV_2D", [x, w, b], [y], "Conv2DOptions", version=3, **fields)
        return y, to

    def pool(self, x, shape, kernel, kind):
        _, rows, columns, channels = shape
        y = self.act(1, rows // kernel, columns // kernel, channels)
        self.op(kind, [x], [y], "Pool2DOptions", version=2, padding=VALID, strideH=kernel, strideW=kernel, filterHeight=kernel, filterWidth=kernel)
        return y, (1, rows // kernel, columns // kernel, channels)

    def linear(self, x, inputs, outputs):
        w = self.const(self.rng.integers(-127, 128, (outputs, inputs)), "int8", scale=0.004)
        b = self.const(self.rng.integers(-900, 900, outputs), "int32")
        y = self.act(1, outputs)
        self.op("FULLY_CONNECTED", [x, w, b], [y], "FullyConnectedOptions", version=4)
        return y


@network("ethos-u55-128", "ethos-u65-256")
def layers(n):
    """Convolutions of all kinds, a pooling, a layer and a softmax."""
    x, shape = n.act(1, 19, 12, 3), (1, 19, 12, 3)
    h, shape = n.conv(x, shape, 8, (3, 3), stride=2)
    h, shape = n.conv(h, shape, 8, (3, 5), depthwise=True)
    h, shape = n.conv(h, shape, 20, (1, 1))
    h, shape = n.pool(h, shape, 2, "AVERAGE_POOL_2D")
    y = n.linear(h, int(np.prod(shape)), 7)
    p = n.tensor((1, 7), "int8", scale=1 / 256, zero_point=-128)
    n.op("SOFTMAX", [y], [p], "SoftmaxOptions", beta=1.0)
    return [x], [p]


@network("ethos-u55-256", "ethos-u65-512", "ethos-u85-128")
def branches(n):
    """A sum of two branches, one of which is pooled, and a table of a logistic function."""
    x, shape = n.act(1, 14, 10, 4), (1, 14, 10, 4)
    a, wide = n.conv(x, shape, 18, (3, 3))
    b, _ = n.conv(a, wide, 18, (3, 1))
    s = n.act(*wide)
    n.op("ADD", [a, b], [s], "AddOptions")
    m, small = n.pool(s, wide, 2, "MAX_POOL_2D")
    y = n.tensor(small, "int8", scale=1 / 256, zero_point=-128)
    n.op("LOGISTIC", [m], [y])
    return [x], [y]


@network("ethos-u55-64", "ethos-u65-256")
def mixed(n):
    """Two inputs and two outputs; operators that stay on the core stand before, between and behind those of the NPU."""
    a, b, shape = n.act(1, 9, 6, 5), n.act(1, 9, 6, 5), (1, 9, 6, 5)
    turned = n.act(*shape)
    n.op("REVERSE_V2", [a, n.const([1], "int32")], [turned])
    s = n.act(*shape)
    n.op("ADD", [turned, b], [s], "AddOptions")
    h, wide = n.conv(s, shape, 6, (3, 3))
    back = n.act(*wide)
    n.op("REVERSE_V2", [h, n.const([2], "int32")], [back])
    g, wide = n.conv(back, wide, 6, (1, 3))
    t = n.act(*wide)
    n.op("ADD", [g, h], [t], "AddOptions")
    real = n.tensor(wide, "float32")
    n.op("DEQUANTIZE", [t], [real], version=2)
    return [a, b], [real, h]


def odd():
    """The mixed network with one mistake each: odd/NAME.tflite."""
    good = (OUT / "mixed.ethos-u55-64.tflite").read_bytes()
    (OUT / "odd").mkdir(exist_ok=True)

    def change(name, of):
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(good, 0))
        graph = model.subgraphs[0]
        operators = [o for o in graph.operators if model.operatorCodes[o.opcodeIndex].customCode == b"ethos-u"]
        plan = next(entry for entry in model.metadata if entry.name == b"OfflineMemoryAllocation")
        offsets = np.frombuffer(bytes(model.buffers[plan.buffer].data), np.int32).copy()
        of(model, graph, operators[0], plan, offsets)
        model.buffers[plan.buffer].data = list(offsets.tobytes())
        file = flatbuffers.Builder()
        file.Finish(model.Pack(file), b"TFL3")
        (OUT / "odd" / f"{name}.tflite").write_bytes(bytes(file.Output()))

    def place(operand, offset):
        def of(model, graph, operator, plan, offsets):
            offsets[3 + operator.inputs[operand]] = offset(offsets, operator)

        return of

    def options(model, graph, operator, plan, offsets):
        operator.customOptions = [2, 4, 1]

    def no_stream(model, graph, operator, plan, offsets):
        graph.tensors[operator.inputs[0]].buffer = 0

    def no_plan(model, graph, operator, plan, offsets):
        plan.name = b"OfflineMemoryAllocatioN"

    def many(model, graph, operator, plan, offsets):
        operator.inputs = [*operator.inputs, *[operator.inputs[4]] * 7]

    def constant(model, graph, operator, plan, offsets):
        tensor = graph.tensors[operator.inputs[5]]
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = [0] * int(np.prod(tensor.shape))
        tensor.buffer = len(model.buffers) - 1
        graph.inputs = [i for i in graph.inputs if i != operator.inputs[5]]

    def word(model, graph, operator, plan, offsets):
        # The first command sets a scale: now it is none that is known.
        buffer = model.buffers[graph.tensors[operator.inputs[0]].buffer]
        buffer.data = [0x7F if at == 32 else byte for at, byte in enumerate(buffer.data)]

    def small(model, graph, operator, plan, offsets):
        graph.tensors[operator.inputs[1]].shape = [16]
        buffer = model.buffers[graph.tensors[operator.inputs[1]].buffer]
        buffer.data = buffer.data[:16]

    change("options", options)
    change("no_stream", no_stream)
    change("no_plan", no_plan)
    change("many_inputs", many)
    change("constant_input", constant)
    change("unknown_command", word)
    change("few_constants", small)
    change("not_planned", place(4, lambda offsets, operator: -1))
    change("outside", place(4, lambda offsets, operator: 1 << 20))
    change("odd_place", place(4, lambda offsets, operator: offsets[3 + operator.inputs[4]] + 8))
    change("over_another", place(4, lambda offsets, operator: offsets[3 + operator.inputs[5]]))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, (make, configurations) in NETWORKS.items():
        n = Net(name)
        source = OUT / f"{name}.tflite"
        source.write_bytes(n.finish(*make(n)))
        for configuration in configurations:
            with tempfile.TemporaryDirectory() as folder:
                arguments = ["vela", source, "--accelerator-config", configuration, "--output-dir", folder]
                subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
                shutil.copy(pathlib.Path(folder) / f"{name}_vela.tflite", OUT / f"{name}.{configuration}.tflite")

    odd()


main()
