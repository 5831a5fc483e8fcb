"""The operators that TensorFlow Lite Micro's Python runtime has: tests/models/micro_operators.txt.

    pip install tflite-micro flatbuffers numpy
    python tests/oracle/make_micro.py

Each operator of the schema stands in a model of its own, without options: the runtime says of one that it has not that it did not find it, whatever else it
says of the others. Custom operators have no list; those are asked for that its sources register.
"""

import pathlib
import subprocess
import sys

from tflite_builder import Builder, schema

OUT = pathlib.Path(__file__).resolve().parent.parent / "models" / "micro_operators.txt"
SIGNALS = ["Delay", "Energy", "FftAutoScale", "FilterBank", "FilterBankLog", "FilterBankSpectralSubtraction", "FilterBankSquareRoot", "Framer", "Irfft",
           "OverlapAdd", "PCAN", "Rfft", "Stacker", "Window"]
CUSTOM = ["CIRCULAR_BUFFER", "TFLite_Detection_PostProcess", *(f"Signal{name}" for name in SIGNALS)]
MISSING = "Failed to get registration"


def ask(key):
    from tflite_micro.python.tflite_micro import runtime

    b = Builder()
    x, y = b.tensor((1, 4), "float32"), b.tensor((1, 4), "float32")
    b.operator(key, [x], [y])
    runtime.Interpreter.from_bytes(b.finish([x], [y]))


def has(key):
    """Whether the runtime finds it. In a process of its own: without operands that make sense, some end it."""
    done = subprocess.run([sys.executable, __file__, *map(str, key)], capture_output=True, text=True)
    return MISSING not in done.stdout + done.stderr


def main():
    if len(sys.argv) > 1:
        code, version, *name = sys.argv[1:]
        ask((int(code), int(version), name[0] if name else None))
        return
    codes = {name: code for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int) and name not in ("CUSTOM", "DELEGATE")}
    found = sorted(name for name, code in codes.items() if has((code, 1)))
    found += sorted(f"CUSTOM `{name}`" for name in CUSTOM if has((schema.BuiltinOperator.CUSTOM, 1, name)))
    # One that no runtime has.
    assert not has((schema.BuiltinOperator.CUSTOM, 1, "Unheard"))
    OUT.write_text("".join(f"{name}\n" for name in found))
    print(len(found), "of", len(codes), "and", len(CUSTOM))


if __name__ == "__main__":
    main()
