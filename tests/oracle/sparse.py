"""More cases: weights that are stored sparsely; importing this registers them. TensorFlow Lite Micro has no DENSIFY: LiteRT's reference kernels compute all."""

import numpy as np

from cases import CASES, Builder, case, quant, schema

BEFORE = set(CASES)
KINDS = {"int32": (1, "Int32VectorT", np.int32), "uint16": (2, "Uint16VectorT", np.uint16), "uint8": (3, "Uint8VectorT", np.uint8)}


def encode(dense, order, block_map, blocks, formats, kind):
    """The schema's parameters and the stored values of `dense`: level by level, as its documentation states the format.

    `order` lists axes and, behind them, blocks, as they are traversed; `formats` says of each level "dense" or "csr".
    """
    split = []
    for axis, extent in enumerate(dense.shape):
        size = blocks[block_map.index(axis)] if axis in block_map else 1
        split += [extent // size, size]
    apart = dense.reshape(split)
    axes = [2 * axis for axis in range(dense.ndim)] + [2 * axis + 1 for axis in block_map]
    apart = apart.transpose(axes + [axis for axis in range(apart.ndim) if axis not in axes])
    levels = apart.reshape([apart.shape[i] for i in range(len(axes))]).transpose(order)
    metadata, parts = [], [levels]
    for form, extent in zip(formats, levels.shape):
        level = schema.DimensionMetadataT()
        level.format = schema.DimensionType.DENSE if form == "dense" else schema.DimensionType.SPARSE_CSR
        level.denseSize = extent if form == "dense" else 0
        if form == "dense":
            parts = [part[i] for part in parts for i in range(extent)]
        else:
            ends, indices, following = [0], [], []
            for part in parts:
                there = [i for i in range(extent) if np.any(part[i] != 0)]
                indices += there
                following += [part[i] for i in there]
                ends.append(len(indices))
            parts = following
            number, name, dtype = KINDS[kind]
            for field, values in [("arraySegments", ends), ("arrayIndices", indices)]:
                vector = getattr(schema, name)()
                vector.values = np.array(values, dtype)
                setattr(level, field, vector)
                setattr(level, field + "Type", number)
        metadata.append(level)
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.blockMap, sparsity.dimMetadata = list(order), list(block_map), metadata
    return sparsity, np.array(parts, dense.dtype)


def sparse(builder, dense, dtype, how, **quantisation):
    """A constant of the values of `dense`, stored as `how` says."""
    sparsity, stored = encode(dense, *how)
    index = builder.tensor(dense.shape, dtype, **quantisation)
    buffer = schema.BufferT()
    buffer.data = list(stored.tobytes())
    builder.buffers.append(buffer)
    tensor = builder.graph.tensors[index]
    tensor.buffer, tensor.sparsity = len(builder.buffers) - 1, sparsity
    return index


def thin(rng, shape, block):
    """Numbers of which a third of the blocks is not zero; the first row is all zero."""
    there = rng.random([extent // size for extent, size in zip(shape, block)]) < 0.35
    there[0] = False
    return np.kron(there, np.ones(block)) * rng.integers(1, 100, shape)


def weights(name, dtype, shape, block, how, halves=False):
    """A product of an input with sparse weights behind DENSIFY, of float16 behind DEQUANTIZE too."""

    @case(name)
    def make(rng):
        b = Builder()
        q = dict(scale=[0.01 + 0.003 * i for i in range(shape[0])]) if dtype == "int8" else {}
        values = thin(rng, shape, block)
        values = values.astype(np.int8) if dtype == "int8" else values.astype(np.float16 if halves else np.float32) / 8
        x = b.tensor((2, shape[1]), dtype, **(quant("int8") if dtype == "int8" else {}))
        y = b.tensor((2, shape[0]), dtype, **(dict(scale=2.0, zero_point=11) if dtype == "int8" else {}))
        if halves:
            b.op("DENSIFY", [sparse(b, values, "float16", how)], [half := b.tensor(shape, "float16")], "DensifyOptions")
            b.op("DEQUANTIZE", [half], [w := b.tensor(shape, "float32")], "DequantizeOptions")
        else:
            b.op("DENSIFY", [sparse(b, values, dtype, how, **q)], [w := b.tensor(shape, dtype, **q)], "DensifyOptions")
        b.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnectedOptions", version=4 if dtype == "int8" else 1)
        return b.finish([x], [y]), 2, None


# Rows of columns, columns of rows, blocks of one axis and of both, and a dense tensor said to be sparse.
weights("densify_csr", "float32", (7, 9), (1, 1), ([0, 1], [], [], ["dense", "csr"], "int32"))
weights("densify_columns", "float32", (6, 5), (1, 1), ([1, 0], [], [], ["dense", "csr"], "uint8"))
weights("densify_both", "float32", (6, 5), (1, 1), ([0, 1], [], [], ["csr", "csr"], "uint16"))
weights("densify_blocks", "float32", (6, 12), (1, 4), ([0, 1, 2], [1], [4], ["dense", "csr", "dense"], "uint8"))
weights("densify_two_blocks", "float32", (6, 8), (2, 4), ([0, 1, 2, 3], [0, 1], [2, 4], ["dense", "csr", "dense", "dense"], "int32"))
weights("densify_blocks_turned", "float32", (6, 8), (2, 4), ([1, 0, 3, 2], [0, 1], [2, 4], ["dense", "csr", "dense", "dense"], "uint16"))
weights("densify_dense", "float32", (5, 4), (1, 1), ([0, 1], [], [], ["dense", "dense"], "int32"))
weights("densify_halves", "float32", (7, 9), (1, 1), ([0, 1], [], [], ["dense", "csr"], "uint8"), halves=True)
weights("densify_int8", "int8", (6, 12), (1, 4), ([0, 1, 2], [1], [4], ["dense", "csr", "dense"], "uint8"))


@case("densify_filters")
def _(rng):
    """A convolution's filters, compressed by channel."""
    b = Builder()
    values = (rng.random((5, 3, 2, 4)) < 0.3) * rng.normal(0, 1, (5, 3, 2, 4)).astype(np.float32)
    values = values.astype(np.float32)
    x, y = b.tensor((1, 6, 5, 4), "float32"), b.tensor((1, 4, 4, 5), "float32")
    how = ([0, 1, 2, 3], [], [], ["dense", "dense", "csr", "csr"], "uint8")
    b.op("DENSIFY", [sparse(b, values, "float32", how)], [w := b.tensor(values.shape, "float32")], "DensifyOptions")
    bias = b.const(rng.normal(0, 1, 5).astype(np.float32))
    b.op("CONV_2D", [x, w, bias], [y], "Conv2DOptions", padding=schema.Padding.VALID, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
    return b.finish([x], [y]), 2, None


NAMES = set(CASES) - BEFORE
