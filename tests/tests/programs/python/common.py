"""Common parts of the tests: files of the tree, the programs beside the package, and a folder for each test."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(os.environ["ARENITE_ROOT"])
PROGRAMS = Path(os.environ["ARENITE_PROGRAMS"])
MODELS = ROOT / "tests/models"
DIGITS = MODELS / "digits/digits.trace.json"
#: Where a board is installed: mps2-an386, else nothing.
BOARD = os.environ.get("ARENITE_BOARD")


def program(*words: object, folder: Path) -> subprocess.CompletedProcess:
    command = [str(PROGRAMS / str(words[0])), *map(str, words[1:])]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def images() -> np.ndarray:
    return np.load(MODELS / "digits/test_images.npy")


def labels() -> np.ndarray:
    return np.load(MODELS / "digits/test_labels.npy")


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def packed(self, source: Path, *words: str) -> bytes:
        """The file that the program makes."""
        path = self.folder / "program.bin"
        done = program("pack", source, "-o", path, *words, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path.read_bytes()

    def ran(self, model: Path, inputs: dict, *words: str) -> dict:
        """The outputs that the program computes, by name."""
        given = []
        for index, (name, array) in enumerate(inputs.items()):
            np.save(self.folder / f"in{index}.npy", array)
            given += ["--input", f"{name}=in{index}.npy"]
        done = program("arenite", "run", model, *given, "--json", *words, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [output["name"] for output in json.loads(done.stdout)["outputs"]]
        outputs = [word for index, name in enumerate(names) for word in ("--output", f"{name}=out{index}.npy")]
        done = program("arenite", "run", model, *given, *outputs, *words, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: np.load(self.folder / f"out{index}.npy") for index, name in enumerate(names)}

    def assertSame(self, got: np.ndarray, expected: np.ndarray) -> None:  # noqa: N802
        self.assertEqual((got.dtype, got.shape, got.tobytes()), (expected.dtype, expected.shape, expected.tobytes()))
