"""Mistakes of IF and WHILE, conditions that only the device could know, and mistakes of CIRCULAR_BUFFER, for make_odd.py."""

import numpy as np

from control import below, branch, loop, next_of, of_two, scalar, unary
from tflite_builder import Builder

SHAPE = (2, 3)


def choice(condition=True, change=None, then=None):
    """An IF on the network's input `t0`; its branches are subgraphs 1 and 2. `change` is applied to the builder."""
    b = Builder()
    x, y = b.tensor(SHAPE, "float32"), b.tensor(SHAPE, "float32")
    given = b.tensor((), "bool") if condition is None else b.const(np.array(condition))
    branch(b, given, [x], [y], then or (lambda x: [unary(b, "SIN", x, SHAPE)]), lambda x: [unary(b, "COS", x, SHAPE)])
    if change:
        change(b)
    return b.finish([x] + ([given] if condition is None else []), [y])


def repeated(condition=None, change=None, body=None, values=lambda b: [], limit=2):
    """A WHILE over a counter, the network's input `t0` and others; its condition is subgraph 1, its body subgraph 2."""
    b = Builder()
    x = b.tensor(SHAPE, "float32")
    body = body or (lambda b, i, x, *rest: [next_of(b, i), unary(b, "SIN", x, SHAPE), *rest])
    condition = condition or (lambda b, *inputs: below(b, limit)(*inputs))
    _, y, *_ = loop(b, [scalar(b, 0), x, *values(b)], lambda *inputs: condition(b, *inputs), lambda *inputs: body(b, *inputs))
    if change:
        change(b)
    return b.finish([x], [y])


def options(field, value):
    return lambda b: setattr(b.subgraphs[0].operators[0].builtinOptions, field, value)


def tensor(graph, index, field, value):
    return lambda b: setattr(b.subgraphs[graph].tensors[index], field, value)


def forever(b, *_):
    """A condition without operators."""
    return scalar(b, True, "bool")


def read(b, i, x):
    """A condition that the network's input decides."""
    y, holds = b.tensor((), "float32"), scalar(b, dtype="bool")
    b.op("MEAN", [x, b.const(np.array([0, 1], np.int32))], [y], "ReducerOptions")
    b.op("LESS", [y, b.const(np.array(0, np.float32))], [holds], "LessOptions")
    return holds


def assigned(b, i, x):
    """A condition that assigns a variable."""
    handle = b.tensor((1,), "resource")
    b.op("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName="memory")
    b.op("ASSIGN_VARIABLE", [handle, x], [], "AssignVariableOptions")
    return below(b, 2)(i)


def remembered(b, i, x):
    """A body with a variable tensor."""
    y, state = b.tensor(SHAPE, "float32"), b.tensor((2, 6), "float32", variable=True)
    weights, time = b.const(np.ones((3, 3), np.float32)), b.const(np.ones((3, 2), np.float32))
    b.op("SVDF", [x, weights, time, -1, state], [y], "SVDFOptions", version=3, rank=1)
    return [next_of(b, i), y]


def unsupported(b, i, x):
    y = b.tensor(SHAPE, "float32")
    b.op("UNIQUE", [x], [y])
    return [next_of(b, i), y]


def handed_variable():
    b = Builder()
    x, y = b.tensor(SHAPE, "float32"), b.tensor(SHAPE, "float32")
    state = b.tensor(SHAPE, "float32", variable=True)
    branch(b, b.const(np.array(True)), [x, state], [y], lambda x, s: [of_two(b, "ADD", x, s, SHAPE)], lambda x, s: [x])
    return b.finish([x], [y])


def delayed():
    """A body whose operator has a state of its own."""
    b = Builder()
    x = b.tensor((4,), "int16")

    def body(i, x):
        y = b.tensor((4,), "int16")
        b.custom("SignalDelay", [x], [y], delay_length=2)
        return [next_of(b, i), y]

    _, y = loop(b, [scalar(b, 0), x], below(b, 2), body)
    return b.finish([x], [y])


def crowded():
    """Constants of 16 KiB, read more often than a file of that size has room for."""
    b = Builder()
    x, big = b.tensor((4096,), "float32"), np.arange(4096).astype(np.float32)
    (y,) = loop(b, [x], lambda x: forever(b), lambda x: of_two(b, "ADD", x, b.const(big), (4096,)))
    return b.finish([x], [y])


def circular(options=None, slots=3, frame=(1, 1, 2, 3), rows=2, dtype="int8", scale=0.05, nested=False):
    """A CIRCULAR_BUFFER; `options` None: without any."""
    b = Builder()
    x = b.tensor(frame, dtype, scale=0.05, zero_point=3)

    def kept(x):
        y = b.tensor((1, slots, rows, 3), dtype, scale=scale, zero_point=3)
        b.custom("CIRCULAR_BUFFER", [x], [y], **(options or {}))
        if options is None:
            b.graph.operators[-1].customOptions = None
        return [y]

    y = b.tensor((1, slots, rows, 3), dtype, scale=scale, zero_point=3) if nested else kept(x)[0]
    if nested:
        branch(b, b.const(np.array(True)), [x], [y], kept, kept)
    return b.finish([x], [y])


def buffers(odd):
    once = dict(cycles_max=1)
    for name, file, error in [
        ("cycles", circular(dict(cycles_max=2)), ["what follows is to run every 2 runs (cycles_max 2)", "cycles_max 1", "a model of its own"]),
        ("no_cycles", circular(), ["every 2 runs (cycles_max 0)"]),
        ("option", circular(dict(cycle=1)), ["no option `cycles_max`"]),
        ("frames", circular(once, frame=(1, 2, 2, 3)), ["a frame [1, 2, 2, 3] into [1, 3, 2, 3]", "expected [1, 1, rows, channels]"]),
        ("rows", circular(once, rows=4), ["a frame [1, 1, 2, 3] into [1, 3, 4, 3]", "frames of 2 rows and 3 channels"]),
        ("type", circular(once, dtype="int16"), ["CIRCULAR_BUFFER", "operands of type int16", "expected int8"]),
        ("scale", circular(once, scale=0.06), ["frames of scale 0.05 and zero point 3 into a buffer of scale 0.06", "QUANTIZE"]),
        ("nested", circular(once, nested=True), ["operator 0 (CUSTOM `CIRCULAR_BUFFER`) of subgraph 1", "a state of its own"]),
    ]:
        odd(f"circular_{name}", file, error=error)


def controls(odd):
    recursive = lambda b: b.op("IF", [b.const(np.array(True)), b.graph.inputs[0]], [b.tensor(SHAPE, "float32")], "IfOptions", thenSubgraphIndex=1,
                               elseSubgraphIndex=1)

    def endless(b):
        b.graph = b.subgraphs[1]
        recursive(b)

    two = lambda b, i, x: [below(b, 2)(i), scalar(b, True, "bool")]
    for name, file, error in [
        ("if_input", choice(None), ["IF", "its condition `t2` is computed at run time", "SELECT_V2"]),
        ("if_elements", choice([True, False]), ["its condition `t2` has 2 elements", "expected one"]),
        ("if_type", choice(np.int32(1)), ["IF", "operands of type int32", "expected bool"]),
        ("if_subgraph", choice(change=options("thenSubgraphIndex", 3)), ["it calls subgraph 3", "expected 1 to 2"]),
        ("if_main", choice(False, options("elseSubgraphIndex", 0)), ["it calls subgraph 0", "expected 1 to 2"]),
        ("if_inputs", choice(change=lambda b: b.subgraphs[1].inputs.clear()), ["hands 1 values to subgraph 1", "has 0 inputs"]),
        ("if_results", choice(change=lambda b: b.subgraphs[1].outputs.append(0)), ["1 results", "expected 2, of its subgraph"]),
        ("if_input_shape", choice(change=tensor(1, 0, "shape", [7])), ["subgraph 1", "`IF#0/t0`, f32 [7], takes the value of `t0`, f32 [2, 3]"]),
        ("if_result_shape", choice(change=tensor(0, 1, "shape", [7])), ["`t1` takes the value of f32 [2, 3]", "expected FLOAT32 [7], its own"]),
        ("if_recursive", choice(change=endless), ["subgraphs that run each other, such as subgraph 1", "at most 16"]),
        ("if_variable", handed_variable(), ["the variable tensor `t2` is handed over", "READ_VARIABLE"]),
        ("while_input", repeated(read), ["its condition, subgraph 1, before run 0", "operator 0 (MEAN) is computed at run time", "integer arithmetic"]),
        ("while_effects", repeated(assigned), ["its condition, subgraph 1", "operator 1 (ASSIGN_VARIABLE)", "leaves nothing behind"]),
        ("while_outputs", repeated(two), ["its condition, subgraph 1", "2 outputs", "one BOOL"]),
        ("while_type", repeated(lambda b, i, x: i), ["its output is int32 []", "one BOOL"]),
        ("while_counts", repeated(change=lambda b: b.subgraphs[2].outputs.pop()), ["its body, subgraph 2, has 2 inputs and 1 outputs"]),
        ("while_forever", repeated(forever), ["IF and WHILE become too many operators", "at most 16384 in all"]),
        ("while_crowded", crowded(), ["far more memory than the file", "at most 1024 times"]),
        ("while_constant", repeated(change=tensor(2, 0, "type", 0)), ["subgraph 2", "`t0` takes the value of int32 []", "FLOAT32"]),
        ("while_variable", repeated(body=remembered), ["operator 0 (SVDF) of subgraph 2", "the variable tensor `t3` of a subgraph", "VAR_HANDLE"]),
        ("while_delay", delayed(), ["operator 0 (CUSTOM `SignalDelay`) of subgraph 2", "a state of its own"]),
        ("while_unsupported", repeated(body=unsupported), ["operator 0 (UNIQUE) of subgraph 2 that writes `t2`", "not supported"]),
    ]:
        odd(name, file, error=error)


def write(odd):
    buffers(odd)
    controls(odd)
