"""Recurrent networks in ONNX, samples that calibrate them, and ONNX Runtime's answers to others.

    pip install numpy onnx onnxruntime
    python tests/oracle/make_recurrent.py

writes ../models/recurrent: NAME.onnx (a recurrent layer over a sequence, its last state, a product), samples.npy, judged.npy, and NAME.npy with the answers to
the judged ones in f32.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).parent.parent / "models" / "recurrent"
STEPS, INPUTS, HIDDEN, CLASSES = 8, 6, 12, 4
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def network(name):
    """Weights large enough that gates open and close."""
    rng = np.random.default_rng(list(name.encode()))
    rows = GATES[name] * HIDDEN
    draw = lambda *shape, scale: (rng.normal(size=shape) * scale).astype(np.float32)
    constants = {
        "W": draw(1, rows, INPUTS, scale=1.2 / INPUTS**0.5),
        "R": draw(1, rows, HIDDEN, scale=1.2 / HIDDEN**0.5),
        "B": draw(1, 2 * rows, scale=0.1),
        "D": draw(HIDDEN, CLASSES, scale=1.0),
        "shape": np.array([1, HIDDEN], np.int64),
    }
    more = {"linear_before_reset": 1} if name == "gru" else {}
    nodes = [
        helper.make_node("Transpose", ["x"], ["sequence"], perm=[1, 0, 2]),
        helper.make_node(name.upper(), ["sequence", "W", "R", "B"], ["states", "last"], hidden_size=HIDDEN, **more),
        helper.make_node("Reshape", ["last", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "D"], ["y"]),
    ]
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    initial = [numpy_helper.from_array(array, key) for key, array in constants.items()]
    graph = helper.make_graph(nodes, name, [value("x", [1, STEPS, INPUTS])], [value("y", [1, CLASSES])], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def samples(count, seed):
    """Sine waves of several frequencies and sizes, a row of [batch, steps, inputs] each."""
    rng = np.random.default_rng(seed)
    of = lambda low, high: rng.uniform(low, high, (count, 1, 1, INPUTS))
    steps = np.arange(STEPS).reshape(1, 1, STEPS, 1)
    return (of(0.2, 1.5) * np.sin(of(0.1, 1.2) * steps + of(0, 6.3))).astype(np.float32)


FOLDER.mkdir(exist_ok=True)
np.save(FOLDER / "samples.npy", samples(48, 1))
judged = samples(32, 2)
np.save(FOLDER / "judged.npy", judged)
for name in GATES:
    model = network(name)
    onnx.save(model, FOLDER / f"{name}.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.save(FOLDER / f"{name}.npy", np.stack([session.run(["y"], {"x": x})[0] for x in judged]))
