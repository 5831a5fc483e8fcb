"""Training and text: what the programs write, as arrays and strings."""

import json
import os
import unittest
from pathlib import Path

import arenite
import numpy as np
from common import DIGITS, MODELS, Case, images, labels, program


def samples() -> tuple[np.ndarray, np.ndarray]:
    folder = MODELS / "digits"
    pictures = (np.load(folder / "train_images.npy")[:12] / 16).astype(np.float32).reshape(12, 1, 1, 8, 8)
    return pictures, np.load(folder / "train_labels.npy")[:12].astype(np.int64)


class Trainings(Case):
    def test_as_the_program(self) -> None:
        model = arenite.pack(DIGITS, train=True, loss="cross-entropy", trainable=["fc*"])
        model.save(self.folder / "m.bin")
        pictures, classes = samples()
        trained = model.train(pictures, classes, rate=0.02, epochs=2, seed=5, keep_gradients=True)
        np.save(self.folder / "x.npy", pictures)
        np.save(self.folder / "y.npy", classes)
        words = ["arenite", "train", "m.bin", "--inputs", "x.npy", "--labels", "y.npy", "--rate", "0.02", "--epochs", "2", "--seed", "5"]
        done = program(*words, "--state-out", "s", "--keep-gradients", "g.npz", "--json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = json.loads(done.stdout)
        self.assertSame(trained.losses, np.asarray(expected.pop("losses"), np.float32))
        self.assertEqual(trained.figures, expected)
        self.assertEqual(trained.saved, (self.folder / "s").read_bytes())
        with np.load(self.folder / "g.npz") as gradients:
            self.assertEqual(sorted(trained.gradients), sorted(gradients.files))
            for name, gradient in trained.gradients.items():
                self.assertSame(gradient, gradients[name])
        self.assertIsNone(model.train(pictures, classes, rate=0.02).gradients)

    def test_a_state_is_gone_on_from_and_judged(self) -> None:
        model = arenite.pack(DIGITS, train=True, loss="cross-entropy")
        pictures, classes = samples()
        whole = model.train(pictures, classes, rate=0.02)
        half = model.train(pictures[:6], classes[:6], rate=0.02)
        rest = model.train(pictures[6:], classes[6:], rate=0.02, state=half.saved)
        self.assertEqual(rest.saved, whole.saved)
        self.assertEqual(rest.figures["steps_in_all"], 12)
        session = model.session()
        before = session.run(images()[0])
        session.state = whole.state
        after = session.run(images()[0])
        self.assertTrue((before != after).any())
        (self.folder / "s").write_bytes(whole.saved)
        found = model.eval(images(), labels(), state=whole.saved)
        self.assertEqual(found["correct"], model.eval(images(), labels(), state=self.folder / "s")["correct"])
        # The model itself has learnt nothing.
        self.assertSame(model.run(images()[0]), before)

    def test_bad_input(self) -> None:
        model = arenite.pack(DIGITS, train=True, loss="cross-entropy")
        pictures, classes = samples()
        with self.assertRaisesRegex(arenite.Error, "the loss is NaN"):
            model.train(pictures, classes, rate=float("nan"))
        with self.assertRaisesRegex(arenite.Error, "--labels is not given"):
            model.train(pictures, rate=0.1)
        with self.assertRaisesRegex(arenite.Error, "no saved state"):
            model.train(pictures, classes, rate=0.1, state=b"nothing")
        with self.assertRaisesRegex(arenite.Error, "saved state is of another model"):
            other = arenite.pack(DIGITS, train=True, loss="cross-entropy", trainable=["fc1*"])
            model.train(pictures, classes, rate=0.1, state=other.train(pictures, classes, rate=0.1).saved)
        with self.assertRaisesRegex(arenite.Error, "train"):
            arenite.pack(DIGITS).train(pictures, classes, rate=0.1)


class Texts(Case):
    def test_as_the_program(self) -> None:
        shared = os.environ.get("ARENITE_SHARED")
        if shared is None:
            self.skipTest("no shared data: a language model")
        language = Path(shared) / "data/language"
        model = arenite.pack(language / "stories260K.bin", dialect="llama2c", tokenizer=language / "tok512.bin", context=64)
        model.save(self.folder / "m.bin")
        words = ["arenite", "generate", "m.bin", "--prompt", "Once upon a time", "--tokens", "20"]
        chosen = ["--temperature", "0.8", "--top-k", "40", "--seed", "3"]
        plain, seeded = (program(*words, *more, folder=self.folder).stdout for more in ([], chosen))
        self.assertEqual(model.generate("Once upon a time", tokens=20) + "\n", plain)
        self.assertEqual(model.generate("Once upon a time", tokens=20, temperature=0.8, top_k=40, seed=3) + "\n", seeded)
        self.assertNotEqual(plain, seeded)
        self.assertIn("Lily", plain)
        with self.assertRaisesRegex(arenite.Error, "tokens"):
            model.generate("Once upon a time " * 40, tokens=20)


if __name__ == "__main__":
    unittest.main()
