"""Boards by name: the program's figures, as arrays."""

import json
import unittest

import arenite
import numpy as np
from common import BOARD, DIGITS, Case, images, program


@unittest.skipUnless(BOARD, "no board is installed")
class Boards(Case):
    def test_bench_and_run(self) -> None:
        model = arenite.pack(DIGITS, target="cortex-m4")
        model.save(self.folder / "m.bin")
        bench = model.bench("qemu:mps2-an386", quick=True)
        done = program("arenite", "bench", "m.bin", "--on", "qemu:mps2-an386", "--quick", "--json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = json.loads(done.stdout)
        self.assertEqual(bench.instructions, expected["instructions"])
        self.assertEqual(bench.board, "mps2-an386")
        steps = expected.pop("steps")
        self.assertEqual(bench.figures, expected)
        self.assertSame(bench.steps["instructions"], np.array([step["instructions"] for step in steps]))
        self.assertEqual(list(bench.steps["name"]), [step["name"] for step in steps])
        # Step by step it is counted in a run of its own.
        self.assertLess(abs(bench.steps["instructions"].sum() - bench.instructions), 0.01 * bench.instructions)
        ran = self.ran(self.folder / "m.bin", {"image": images()[:2]}, "--on", "qemu:mps2-an386")
        self.assertSame(model.run(images()[:2], on="qemu:mps2-an386"), ran[model.outputs[0].name])
        self.assertIn("instructions", model.report(on="qemu:mps2-an386"))


if __name__ == "__main__":
    unittest.main()
