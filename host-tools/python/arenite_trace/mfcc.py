"""Writes a front end for audio as a trace: mel-frequency cepstral coefficients, hop by hop.

    python -m arenite_trace.mfcc -o mfcc.trace.json

Needs no PyTorch. Of each frame: a periodic Hann window, the magnitude of its Fourier transform, bands of triangles that are evenly spaced in mel
(``1127 ln(1 + f / 700)``), ``ln(. + floor)``, and the first coefficients of its cosine transform (DCT-II over ``sqrt(2 * bands)``). A run takes the
samples of one hop as f32, scaled by the caller; the samples that frames share are the trace's state, zeros before the first run.

The trace carries samples that NumPy computed, and ``pack`` replays them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ._schema import Op, Samples, Tensor, Trace, TraceError
from ._version import __version__


@dataclass(frozen=True)
class Mfcc:
    """Parameters of the computation; the defaults are those of MLPerf Tiny's keyword model."""

    rate: int = 16000
    frame: int = 480
    hop: int = 320
    fft: int = 512
    bands: int = 40
    low: float = 20.0
    high: float = 4000.0
    coefficients: int = 10
    floor: float = 1e-6

    def check(self) -> None:
        """Refuses what no transform computes."""
        rest = self.fft // 2
        for prime in (2, 3, 5):
            while rest and rest % prime == 0:
                rest //= prime
        checks = [
            (self.fft % 2 == 0 and 4 <= self.fft <= 65536 and rest == 1, "--fft: even, half of it a product of 2, 3 and 5, 4 to 65536"),
            (1 <= self.frame <= self.fft, "--frame: 1 to the length of the transform"),
            (1 <= self.hop < self.frame, "--hop: 1 to less than a frame"),
            (0 <= self.low < self.high <= self.rate / 2, "--low, --high: in order, at most half the rate"),
            (1 <= self.coefficients <= self.bands, "--coefficients: 1 to the number of bands"),
            (self.floor > 0, "--floor: above 0"),
        ]
        for holds, message in checks:
            if not holds:
                raise TraceError(message)

    def window(self) -> np.ndarray:
        return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.frame) / self.frame)

    def mel(self) -> np.ndarray:
        """The weight of each bin in each band."""
        to_mel = lambda f: 1127 * np.log1p(np.asarray(f) / 700)
        bins = to_mel(np.arange(self.fft // 2 + 1) * self.rate / self.fft)
        edges = np.linspace(to_mel(self.low), to_mel(self.high), self.bands + 2)[:, None]
        lower, middle, upper = edges[:-2], edges[1:-1], edges[2:]
        weights = np.maximum(0, np.minimum((bins - lower) / (middle - lower), (upper - bins) / (upper - middle)))
        # The mean of the signal is in no band.
        weights[:, 0] = 0
        return weights

    def cosines(self) -> np.ndarray:
        k, n = np.arange(self.coefficients)[:, None], np.arange(self.bands)
        return 2 * np.cos(np.pi * k * (2 * n + 1) / (2 * self.bands)) / np.sqrt(2 * self.bands)

    def features(self, frame: np.ndarray) -> np.ndarray:
        """The coefficients of one frame, in double precision."""
        magnitudes = np.abs(np.fft.rfft(frame * self.window(), self.fft))
        return self.cosines() @ np.log(self.mel() @ magnitudes + self.floor)

    def stream(self, hops: np.ndarray) -> np.ndarray:
        """The coefficients after each hop."""
        samples = np.concatenate([np.zeros(self.frame - self.hop), hops.reshape(-1)])
        return np.stack([self.features(samples[i * self.hop :][: self.frame]) for i in range(len(hops))])


def trace(mfcc: Mfcc, name: str = "mfcc") -> Trace:
    """The front end as a trace."""
    mfcc.check()
    mel = mfcc.mel()
    used = np.flatnonzero(mel.any(axis=0))
    if used.size == 0:
        raise TraceError("no bin lies in any band: take a longer transform or fewer bands")
    first, bins = int(used[0]), int(used[-1] - used[0] + 1)
    result = Trace(name, f"arenite_trace.mfcc {__version__}", inputs=["hop"], outputs=["features"])
    kept = mfcc.frame - mfcc.hop
    result.tensors["hop"] = Tensor((1, mfcc.hop), "f32", "input")
    result.tensors["before"] = Tensor((1, kept), "f32", "state")
    result.state = [("before", "kept")]

    def fixed(key: str, values: np.ndarray) -> str:
        result.values[key] = np.ascontiguousarray(values, np.float32)
        result.tensors[key] = Tensor(result.values[key].shape, "f32", "parameter")
        return key

    def step(output: str, op: str, inputs: list[str | None], extents: Sequence[int], /, **attrs: object) -> str:
        result.tensors[output] = Tensor(tuple(extents), "f32", "activation")
        result.ops.append(Op(output, op, inputs, [output], attrs))
        return output

    x = step("frame", "concat", ["before", "hop"], (1, mfcc.frame), axis=1)
    step("kept", "slice", [x], (1, kept), axis=1, start=mfcc.hop)
    x = step("windowed", "mul", [x, fixed("window", mfcc.window())], (1, mfcc.frame))
    x = step("spectrum", "rfft", [x], (1, mfcc.fft + 2), length=mfcc.fft)
    x = step("pairs", "slice", [x], (1, 2 * bins), axis=1, start=2 * first, stop=2 * (first + bins))
    x = step("squares", "square", [x], (1, 2 * bins))
    x = step("parts", "reshape", [x], (1, bins, 2), shape=[-1, bins, 2])
    x = step("energies", "sum", [x], (1, bins), axes=[2])
    x = step("magnitudes", "sqrt", [x], (1, bins))
    x = step("mel", "linear", [x, fixed("mel.weight", mel[:, first : first + bins])], (1, mfcc.bands))
    x = step("raised", "add", [x, fixed("floor", np.array(mfcc.floor))], (1, mfcc.bands))
    x = step("logarithms", "log", [x], (1, mfcc.bands))
    step("features", "linear", [x, fixed("cosines", mfcc.cosines())], (1, mfcc.coefficients))
    result.samples = _samples(mfcc)
    return result


def _samples(mfcc: Mfcc, runs: int = 8) -> Samples:
    """Silence, then a tone in noise that grows loud."""
    rng = np.random.default_rng(0)
    t = np.arange(runs * mfcc.hop).reshape(runs, mfcc.hop)
    loudness = np.concatenate([[0], 2.0 ** np.arange(2 - runs, 1)])[:, None]
    hops = (loudness * (0.5 * np.sin(2 * np.pi * 0.04 * t) + 0.2 * rng.standard_normal(t.shape))).astype(np.float32)
    features = mfcc.stream(hops.astype(np.float64))
    return Samples({"hop": hops[:, None]}, {"features": features[:, None].astype(np.float32)}, runs, rtol=1e-4)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m arenite_trace.mfcc", description="Writes a front end for audio as a trace for pack.")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="trace.json; its sidecars go beside it")
    usual = Mfcc()
    for field, text in [
        ("rate", "samples a second"), ("frame", "samples of a frame"), ("hop", "samples from frame to frame"), ("fft", "length of the transform"),
        ("bands", "bands of triangles"), ("low", "Hz where the first begins"), ("high", "Hz where the last ends"),
        ("coefficients", "how many are kept"), ("floor", "added before the logarithm"),
    ]:
        value = getattr(usual, field)
        parser.add_argument(f"--{field}", type=type(value), default=value, help=f"{text}; default: {value}")
    options = vars(parser.parse_args(arguments))
    path = options.pop("output")
    try:
        trace(Mfcc(**options)).save(path)
    except (TraceError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{path}: one run for each {options['hop']} samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
