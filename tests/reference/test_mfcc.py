"""The committed front end for audio is what `python -m arenite_trace.mfcc` writes, and means what that module says."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "host-tools" / "python")]

from arenite_trace import TraceError, mfcc  # noqa: E402
from native import Reference  # noqa: E402

COMMITTED = HERE.parent / "models" / "mfcc"


class Mfcc(unittest.TestCase):
    def test_the_committed_trace_is_what_is_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(mfcc.main(["-o", f"{folder}/mfcc.trace.json"]), 0)
            written = Path(folder)
            self.assertEqual((written / "mfcc.trace.json").read_text(), (COMMITTED / "mfcc.trace.json").read_text())
            for name in ("mfcc.safetensors", "mfcc.samples.safetensors"):
                ours, theirs = load_file(written / name), load_file(COMMITTED / name)
                self.assertEqual(ours.keys(), theirs.keys())
                for key in ours:
                    np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-6, atol=1e-6)

    def test_the_trace_means_the_formula(self) -> None:
        reference = Reference((COMMITTED / "mfcc.trace.json").read_text())
        weights = {key: value.astype(np.float64) for key, value in load_file(COMMITTED / "mfcc.safetensors").items()}
        hops = np.random.default_rng(3).normal(0, 0.1, (5, 320))
        expected = mfcc.Mfcc().stream(hops)
        for hop, features in zip(hops, expected, strict=True):
            found = dict(reference.run({"hop": hop[None]}, weights))["features"]
            np.testing.assert_allclose(found[0], features, rtol=1e-4, atol=1e-4)

    def test_what_no_transform_computes_is_refused(self) -> None:
        for wrong in (dict(fft=14), dict(fft=511), dict(frame=600), dict(hop=480), dict(low=4000.0), dict(high=9000.0), dict(coefficients=41), dict(floor=0.0)):
            with self.assertRaises(TraceError, msg=str(wrong)):
                mfcc.trace(mfcc.Mfcc(**wrong))
        with self.assertRaisesRegex(TraceError, "no bin"):
            mfcc.trace(mfcc.Mfcc(fft=480, bands=40, low=1000.0, high=1001.0))


if __name__ == "__main__":
    unittest.main()
