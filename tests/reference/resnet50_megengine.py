"""Reference for MegEngine profiles: the operators of `graph_exec.comp_seq`, in that order.

Key of a layer: the operator's name, `conv(FUSE_ADD_RELU[575],const{256,64,1,1}[108])[577]`. Its first output var has the
same name; where it has another (the profile's last division), the array stands under both. Arrays are in the trace's
layout, NCHW. The written-out softmax keeps its five keys; the last one, `TRUE_DIV(…)`, is the probabilities. Weights: the
name of the ImmutableTensor, `const{64,3,7,7}[50]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np
import ops


class Reference:
    dialect = "megengine"

    def __init__(self, text: str) -> None:
        document = json.loads(text)
        graph = document["graph_exec"]
        self.footprint = document["profiler"]["opr_footprint"]
        self.operators = [graph["operator"][i] for i in graph["comp_seq"]]
        self.names = {i: v["name"] for i, v in graph["var"].items()}
        (data,) = [op for op in self.operators if op["type"] == "InputCallback"]
        (last,) = [op for op in self.operators if op["type"] == "OutputCallback"]
        self.data = data
        self.output = next(op["name"] for op in self.operators if last["input"][0] in op["output"])
        first = next(op for op in self.operators if data["output"][0] in op["input"])
        self.image = tuple(self.footprint[first["id"]]["in_shapes"][first["input"].index(data["output"][0])])

    def input_shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        return {self.data["name"]: (batch, *self.image[1:])}

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Constants of the profile; the two that it leaves out are the shape arithmetic's."""
        return {
            op["name"]: tuple(self.footprint[op["id"]]["out_shapes"][0])
            for op in self.operators
            if op["type"] == "ImmutableTensor"
        }

    def run(
        self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        values: dict[str, np.ndarray] = {}
        last = {var: step for step, op in enumerate(self.operators) for var in op["input"]}
        for step, op in enumerate(self.operators):
            if op["type"] == "OutputCallback":
                continue
            if op["type"] == "InputCallback":
                values[op["output"][0]] = ops.f64(inputs[op["name"]])
            elif op["type"] == "ImmutableTensor":
                values[op["output"][0]] = weights[op["name"]]
            else:
                values[op["output"][0]] = y = self.apply(op, values)
                for key in dict.fromkeys([op["name"], self.names[op["output"][0]]]):
                    yield key, y
            for var in op["input"]:
                if last[var] == step:
                    values.pop(var, None)

    def apply(self, op: dict, values: Mapping[str, np.ndarray]) -> np.ndarray:
        param, kind = self.footprint[op["id"]]["param"], op["type"]
        # The second input of a Reshape is a shape that no device computes: take it from the profile, at this batch.
        if kind == "Reshape":
            x = values[op["input"][0]]
            return x.reshape(x.shape[0], *self.footprint[op["id"]]["out_shapes"][0][1:])
        x = [values[i] for i in op["input"]]
        if kind == "ConvolutionForward":
            assert (param["mode"], param["format"]) == ("CROSS_CORRELATION", "NCHW")
            assert param["sparse"] == "DENSE", "grouped convolution"
            strides, dilation = (param["stride_h"], param["stride_w"]), (param["dilate_h"], param["dilate_w"])
            return ops.conv2d(x[0], x[1], None, strides, _padding(param), dilation)
        if kind == "PoolingForward":
            kernel, strides = (param["window_h"], param["window_w"]), (param["stride_h"], param["stride_w"])
            pads = _padding(param)
            out = [
                ops.floor_size(n, k, s, p, p) for n, k, s, p in zip(x[0].shape[2:], kernel, strides, pads[::2], strict=True)
            ]
            if param["mode"] == "MAX":
                return ops.max_pool2d(x[0], kernel, strides, out, pads)
            assert param["mode"] in ("AVERAGE", "AVERAGE_COUNT_EXCLUDE_PADDING"), param["mode"]
            return ops.avg_pool2d(x[0], kernel, strides, out, pads, count_include_pad=param["mode"] == "AVERAGE")
        if kind == "Elemwise":
            return ELEMWISE[param["mode"]](*map(ops.f64, x))
        if kind == "Reduce":
            return {"MAX": np.max, "SUM": np.sum}[param["mode"]](x[0], axis=param["axis"], keepdims=True)
        if kind == "MatrixMul":
            assert param["transposeB"] and not param["transposeA"]
            return ops.linear(x[0], x[1])
        raise ValueError(f"operator {op['id']}: no reference for {kind}")


ELEMWISE = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "TRUE_DIV": np.divide,
    "EXP": np.exp,
    "RELU": ops.relu,
    "FUSE_ADD_RELU": lambda a, b: ops.relu(a + b),
}


def _padding(param: dict) -> tuple[int, int, int, int]:
    return (param["pad_h"], param["pad_h"], param["pad_w"], param["pad_w"])
