"""Reference for the distributed-array dump: filter, filterA, filterNL a layer, then linear1 and softmax.

Only what the network needs is read from the text (the filters' and the classifier's dimensions); the operators' meaning is
the catalogue's. `filterNL` is ReLU. Key of a layer: the repaired name of the data node that it writes, `L0.filter.output`,
`classifier.softmax.probability`, with that node's shape. Weights: `L0.W` [64 1 1 C kh kw oh ow], `L0.a` [1], `L0.b` [1 64
oh ow], `classifier.weights1` [3034 64 27 27].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import ops


class Reference:
    dialect = "rects"
    output = "classifier.softmax.probability"

    def __init__(self, text: str) -> None:
        text = re.sub(r"(?<=[\s\[(,])O(?=[\s\],)])", "0", text)
        self.filters: list[tuple[int, ...]] = []
        # The gradient nodes repeat the dimensions; forward ones are those named `Lk.filter`, with 0 and 1 read as O and l.
        for block in re.finditer(r"^L[0-9OlI]+\.filter\n(.*?)^\w*put->", text, re.M | re.S):
            found = re.search(r"dist_filters=Rect\(array\(\[[^\]]*\][^[]*\[([^\]]*)\]", block.group(1))
            assert found, f"no filter dimensions in {block.group(0)!r}"
            self.filters.append(_numbers(found.group(1)))
        found = re.search(r"^classifier\.weights[1lI] .*?read_rect=Rect\(array\(\[[^\]]*\][^[]*\[([^\]]*)\]", text, re.M | re.S)
        assert self.filters and found, "no filter layers or no classifier"
        self.classifier = _numbers(found.group(1))

    def input_shapes(self, batch: int) -> dict[str, tuple[int, ...]]:
        _, _, _, c, kh, kw, oh, ow = self.filters[0]
        return {"data.raw_output": (batch, c, oh + kh - 1, ow + kw - 1)}

    def parameters(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for i, dims in enumerate(self.filters):
            shapes[f"L{i}.W"] = dims
            shapes[f"L{i}.a"] = (1,)
            shapes[f"L{i}.b"] = (1, dims[0], *dims[6:])
        shapes["classifier.weights1"] = self.classifier
        return shapes

    def run(
        self, inputs: Mapping[str, np.ndarray], weights: Mapping[str, np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        x = inputs["data.raw_output"]
        for i in range(len(self.filters)):
            x = ops.locally_connected(x, weights[f"L{i}.W"])
            yield f"L{i}.filter.output", x
            x = x * ops.f64(weights[f"L{i}.a"]) + ops.f64(weights[f"L{i}.b"])
            yield f"L{i}.filterA.output", x
            x = ops.relu(x)
            yield f"L{i}.filterNL.output", x
        matrix = weights["classifier.weights1"]
        x = ops.linear(x.reshape(x.shape[0], -1), matrix.reshape(matrix.shape[0], -1))
        x = x.reshape(*x.shape, 1, 1)
        yield "classifier.linear1.output", x
        yield self.output, ops.softmax(x, axis=1)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(","))
