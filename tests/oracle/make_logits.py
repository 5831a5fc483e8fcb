"""CRC-32 of the logits (the operand of the last softmax) of the int8 reference models, by TensorFlow Lite Micro.

    ARENITE_SHARED=… python tests/oracle/make_logits.py

writes tests/models/tflm_logits.json: model -> set -> one CRC-32 of the raw bytes for each input. The logits that come with the
models are LiteRT's, whose fully connected kernels round once and so differ in the last bit here and there.
"""

import contextlib
import json
import os
import pathlib
import zlib

import numpy as np
from tflite_micro.python.tflite_micro import runtime

schema = runtime.schema_fb
HERE = pathlib.Path(__file__).resolve().parent
MODELS = pathlib.Path(os.environ.get("ARENITE_SHARED", HERE.parent.parent.parent / "shared")) / "data" / "models"


def main():
    result = {}
    for path in sorted(MODELS.glob("*.tflite")):
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(path.read_bytes(), 0))
        graph = model.subgraphs[0]
        code = model.operatorCodes[graph.operators[-1].opcodeIndex]
        softmax = max(code.builtinCode, code.deprecatedBuiltinCode) == schema.BuiltinOperator.SOFTMAX
        if not softmax or graph.tensors[graph.inputs[0]].type != schema.TensorType.INT8:
            continue
        logits = int(graph.operators[-1].inputs[0])
        golden = np.load(MODELS / "golden" / f"{path.stem}.npz")
        for kind in ["rand", "real"]:
            if f"in_{kind}_0" not in golden:
                continue
            for values in golden[f"in_{kind}_0"]:
                with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
                    # A fresh interpreter: stateful models start anew for each input.
                    interpreter = runtime.Interpreter.from_bytes(
                        path.read_bytes(),
                        arena_size=8 << 20,
                        intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors,
                    )
                interpreter.set_input(values, 0)
                interpreter.invoke()
                tensor = interpreter.GetTensor(logits, 0)
                data = np.array(tensor["tensor_data"] if isinstance(tensor, dict) else tensor)
                result.setdefault(path.stem, {}).setdefault(kind, []).append(f"{zlib.crc32(data.tobytes()):08x}")
    (HERE.parent / "models" / "tflm_logits.json").write_text(json.dumps(result, indent=1) + "\n")


main()
