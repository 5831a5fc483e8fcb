"""The types that the package states: the stub of its module is the module's, and mypy checks programs by them."""

import importlib.util
import subprocess
import sys
import unittest

from common import Case

RIGHT = """
import arenite
import numpy as np

model: arenite.Model = arenite.pack("net.onnx", target="cortex-m4")
scores = model.run(np.zeros((1, 1, 8, 8), np.float32))
name: str = model.name
arena = model.summary["arena_bytes"]
session = model.session()
session.run(np.zeros(3))
"""

WRONG = """
import arenite

arenite.load(3)
arenite.load("m.bin").nothing
"""


@unittest.skipIf(importlib.util.find_spec("mypy") is None, "no mypy")
class Types(Case):
    def mypy(self, *words: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-m", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def checked(self, text: str) -> tuple[int, str]:
        (self.folder / "user.py").write_text(text)
        return self.mypy("mypy", "--strict", "--follow-imports=silent", "user.py")

    def test_the_stub_is_the_modules(self) -> None:
        status, said = self.mypy("mypy.stubtest", "arenite._native")
        self.assertEqual(status, 0, said)

    def test_programs_are_checked_by_the_types(self) -> None:
        self.assertEqual(self.checked(RIGHT)[0], 0, self.checked(RIGHT)[1])
        status, said = self.checked(WRONG)
        self.assertEqual(status, 1, said)
        self.assertIn('user.py:4: error: Argument 1 to "load"', said)
        self.assertIn('user.py:5: error: "Model" has no attribute "nothing"', said)


if __name__ == "__main__":
    unittest.main()
