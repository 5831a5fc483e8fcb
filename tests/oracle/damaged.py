"""Damages one layer of an int8 network on purpose and asks ``arenite diff --float`` which one it is.

    cargo build --release -p arenite-host --bins
    venv/bin/python tests/oracle/damaged.py target/release --folder unseen

The Python and FOLDER are those of ``quantise_unseen.py``. ONNX Runtime quantises four networks (QDQ), so that their scales stand in a file
that can be changed; of each layer's result in turn the range is halved, cut to an eighth or made a hundred times
too wide, or its weights are disturbed by a fifth of their size.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from quantise_unseen import made, run

NETWORKS = ("digits_conv", "mobilenet_v1", "pose", "digits_mlp")
DAMAGES = ("half the range", "an eighth of the range", "a hundred times the range", "weights")


def quantised(own: dict, output: Path) -> onnx.ModelProto:
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.samples = iter(own["pool"][:64])

        def get_next(self):
            sample = next(self.samples, None)
            return None if sample is None else {"x": sample[None]}

    ready = output.with_name("ready.onnx")
    quant_pre_process(own["onnx"], ready)
    kinds = {"activation_type": quantization.QuantType.QInt8, "weight_type": quantization.QuantType.QInt8}
    with contextlib.redirect_stdout(io.StringIO()):
        quantization.quantize_static(ready, output, Reader(), per_channel=True, **kinds)
    return onnx.load(output)


def damaged(model: onnx.ModelProto, layer: onnx.NodeProto, damage: str, generator) -> onnx.ModelProto:
    """A copy in which the layer's own scale or weights are others."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    constants = {tensor.name: tensor for tensor in copy.graph.initializer}
    if damage == "weights":
        dequantised = next(node for node in copy.graph.node if layer.input[1] in node.output)
        tensor = constants[dequantised.input[0]]
        values = numpy_helper.to_array(tensor)
        changed = values + generator.normal(0, 0.2 * values.std(), values.shape)
        tensor.CopyFrom(numpy_helper.from_array(changed.round().clip(-127, 127).astype(np.int8), tensor.name))
    else:
        factor = {"half the range": 0.5, "an eighth of the range": 0.125, "a hundred times the range": 100.0}[damage]
        stored = next(node for node in copy.graph.node if node.op_type == "QuantizeLinear" and node.input[0] == layer.output[0])
        tensor = constants[stored.input[1]]
        tensor.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(tensor) * factor).astype(np.float32), tensor.name))
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, help="folder of pack and arenite")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    generator = np.random.default_rng(5)
    right = among = total = 0
    for name in NETWORKS:
        folder = options.folder / name / "11"
        own = made(name, 11, folder)
        model = quantised(own, folder / "qdq.onnx")
        np.save(folder / "test.npy", own["test"][:64, None])
        run(options.programs / "pack", own["onnx"], "-o", folder / "float.bin")
        layers = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm")]
        for layer in layers:
            for damage in DAMAGES:
                onnx.save(damaged(model, layer, damage, generator), folder / "damaged.onnx")
                run(options.programs / "pack", folder / "damaged.onnx", "-o", folder / "damaged.bin")
                words = ("--float", folder / "float.bin", "--inputs", folder / "test.npy", "--json")
                report = json.loads(run(options.programs / "arenite", "diff", folder / "damaged.bin", *words))
                named = [worst["layer"] for worst in report["worst"]]
                total += 1
                right += named[:1] == [layer.name]
                among += layer.name in named
                if named[:1] != [layer.name]:
                    print(f"{name}, {damage} of {layer.name}: {named}, {report['snr_db']} dB")
    print(f"named first {right} of {total}, among the three {among}")


if __name__ == "__main__":
    main()
