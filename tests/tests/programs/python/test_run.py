"""Runs are the program's, bit for bit: f32, int8, with state, with several inputs; in any layout of memory and from any thread."""

import threading
import unittest

import arenite
import numpy as np
from common import DIGITS, MODELS, Case, images, labels

#: A network of two inputs and two outputs, none of them square.
TWO = b"""{"arenite_trace": 1, "name": "two", "inputs": ["a", "b"], "outputs": ["sum", "first"], "tensors": {
  "a": {"shape": [2, 3], "dtype": "f32", "role": "input"}, "b": {"shape": [2, 3], "dtype": "f32", "role": "input"},
  "sum": {"shape": [2, 3], "dtype": "f32", "role": "activation"}, "first": {"shape": [2, 3], "dtype": "f32", "role": "activation"}},
  "ops": [{"op": "add", "name": "sum", "inputs": ["a", "b"], "outputs": ["sum"]},
          {"op": "relu", "name": "first", "inputs": ["a"], "outputs": ["first"]}]}"""

#: The sum of all inputs so far: a state that each run adds its input to.
TOTAL = b"""{"arenite_trace": 2, "name": "total", "inputs": ["x"], "outputs": ["y"], "state": [{"input": "s", "output": "y"}], "tensors": {
  "x": {"shape": [1, 3], "dtype": "f32", "role": "input"}, "s": {"shape": [1, 3], "dtype": "f32", "role": "state"},
  "y": {"shape": [1, 3], "dtype": "f32", "role": "activation"}},
  "ops": [{"op": "add", "name": "y", "inputs": ["x", "s"], "outputs": ["y"]}]}"""


def noise(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Same(Case):
    def check(self, model: arenite.Model, inputs: dict, **keywords: object) -> dict:
        model.save(self.folder / "m.bin")
        expected = self.ran(self.folder / "m.bin", inputs, *(["--reset-each"] if keywords.get("reset_each") else []))
        got = model.run(inputs, **keywords)
        got = got if isinstance(got, dict) else {model.outputs[0].name: got}
        self.assertEqual(list(got), list(expected))
        for name, array in expected.items():
            self.assertSame(got[name], array)
        return got

    def test_f32_and_int8(self) -> None:
        model = arenite.pack(DIGITS)
        for inputs in [images()[3], images()[:5], images()[:4].astype(np.float64)]:
            self.check(model, {"image": inputs})
        int8 = arenite.pack(DIGITS, dtype="int8", calibrate=images()[::9])
        got = self.check(int8, {"image": images()[:5]})
        port = int8.outputs[0]
        real = port.scale * (next(iter(got.values())).astype(np.float64) - port.zero_point)
        close = np.abs(real - model.run(images()[:5])).max()
        self.assertLess(close, 0.2 * np.abs(real).max())

    def test_several_inputs(self) -> None:
        model = arenite.pack(TWO)
        a, b = noise(2, 3), noise(2, 3, seed=2)
        got = self.check(model, {"a": a, "b": b})
        self.assertSame(got["sum"], a + b)
        self.assertSame(got["first"], np.maximum(a, 0))
        self.assertSame(model.run((a, b))["sum"], a + b)
        self.assertSame(model.run({"b": b, "a": a})["first"], np.maximum(a, 0))

    def test_state_is_carried_and_reset(self) -> None:
        model, x = arenite.pack(TOTAL), noise(4, 1, 3)
        self.assertSame(self.check(model, {"x": x})["y"], np.cumsum(x, axis=0, dtype=np.float32))
        self.assertSame(self.check(model, {"x": x}, reset_each=True)["y"], x)
        self.assertSame(model.run(x[0]), x[0])

    def test_the_shape_is_the_outputs(self) -> None:
        model = arenite.pack(DIGITS)
        self.assertEqual(model.run(images()[0]).shape, (1, 10))
        self.assertEqual(model.run(images()[:1]).shape, (1, 1, 10))
        output = model.run(images()[0])
        output[:] = 0


class Sessions(Case):
    def test_a_stream_is_a_sequence(self) -> None:
        for source in [TOTAL, DIGITS, MODELS / "recurrent/gru.onnx"]:
            model = arenite.pack(source)
            inputs = noise(5, *model.inputs[0].shape)
            whole = model.run(inputs)
            session = model.session()
            first = [session.run(inputs[at]) for at in range(2)]
            state = session.state
            rest = session.run(inputs[2:])
            self.assertSame(np.concatenate([np.stack(first), rest]), whole)
            session.reset()
            self.assertSame(session.run(inputs[0]), whole[0])
            other = model.session()
            other.state = state
            self.assertSame(other.run(inputs[2]), whole[2])

    def test_a_session_keeps_its_model(self) -> None:
        session = arenite.pack(TOTAL).session()
        self.assertSame(session.run(noise(1, 3)), noise(1, 3))

    def test_threads_take_turns(self) -> None:
        session = arenite.pack(TOTAL).session()
        one = np.ones((25, 1, 3), np.float32)
        seen: list[np.ndarray] = []
        threads = [threading.Thread(target=lambda: seen.extend(session.run(one)[:, 0, 0] for _ in range(20))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Each call has 25 runs that follow each other; no run is lost, none happens twice.
        self.assertTrue(all((np.diff(run) == 1).all() for run in seen))
        self.assertEqual(sorted(np.concatenate(seen)), list(range(1, 1001)))

    def test_a_wrong_state_is_refused(self) -> None:
        with self.assertRaisesRegex(arenite.Error, "a state of 5 bytes; expected 12"):
            arenite.pack(TOTAL).session().state = b"12345"


class Layouts(Case):
    def test_any_layout_of_memory(self) -> None:
        model, x = arenite.pack(TWO), noise(2, 3)
        expected = model.run((x, x))["sum"]
        wide = np.zeros((4, 9), np.float32)
        wide[::2, ::3] = x
        frozen = x.copy()
        frozen.setflags(write=False)
        for form in [wide[::2, ::3], np.asfortranarray(x), x[::-1][::-1], frozen, x.astype(">f4"), x.astype(np.float64), x.tolist()]:
            self.assertSame(model.run((form, x))["sum"], expected)
            self.assertSame(model.session().run({"a": form, "b": x})["sum"], expected)

    def test_what_is_wrong_is_refused_by_name(self) -> None:
        model, x = arenite.pack(TWO), noise(2, 3)
        masked = np.ma.masked_array(x, mask=x > 0)
        for a, text in [
            (x.T, r"input `a` was given shape \[3, 2\]; expected \[2, 3\], or one more leading axis"),
            (x[0], r"input `a` was given shape \[3\]"),
            (x.astype(np.int32), "input `a` was given int32 elements; expected f"),
            (x.astype(np.int8), "input `a` was given int8 elements"),
            (x.astype(np.float16), "f2"),
            (x.astype(np.complex64), "input `a`: it holds complex numbers"),
            (np.array([["a"] * 3] * 2), "input `a`: it holds text"),
            (np.array([[object()] * 3] * 2), "input `a`: it holds Python objects"),
            ([[1.0], [1.0, 2.0]], "input `a`: a list is no array"),
            (masked, "input `a`: it is a masked array"),
            (None, "input `a`: it holds Python objects"),
            (np.stack([x, x]), "input `b` holds 1 runs; expected 2"),
        ]:
            with self.subTest(text=text):
                for run in [model.run, model.session().run]:
                    with self.assertRaisesRegex(arenite.Error, text):
                        run({"a": a, "b": x})
        for given, text in [
            ({"a": x}, "input `b` is not given"),
            ({"a": x, "b": x, "c": x}, "the model has no input `c`; expected `a`, `b`"),
            ((x,), "1 inputs are given; expected 2: `a`, `b`"),
            (x, "one input is given; expected 2, in a dict"),
        ]:
            with self.assertRaisesRegex(arenite.Error, text):
                model.run(given)


class Commands(Case):
    def test_eval_diff_and_compare(self) -> None:
        model = arenite.pack(DIGITS)
        found = model.eval(images(), labels())
        self.assertEqual(found["correct"], int((model.run(images())[:, 0].argmax(axis=1) == labels()).sum()))
        self.assertEqual(found["confusion"].sum(), 360)
        int8 = arenite.pack(DIGITS, dtype="int8", calibrate=images()[::9])
        noisy = int8.diff(float=model, inputs=images()[:20])
        self.assertGreater(noisy["snr_db"], 30)
        both = model.compare(int8, inputs=images()[:3])
        self.assertEqual([side["dtype"] for side in both["models"]], ["f32", "int8"])
        self.assertFalse(both["outputs"][0]["equal"])
        output = model.outputs[0].name
        same = model.diff({output: model.run(images()[0])}, inputs=images()[0])
        self.assertIsNone(same["first_difference"])
        self.assertEqual((list(same["layers"]["name"]), same["layers"]["within"].tolist()), ([output], [True]))
        other = model.diff({output: model.run(images()[0]) + 1}, inputs=images()[0])
        self.assertEqual(other["first_difference"]["name"], output)

    def test_the_page_is_the_programs_and_stays_in_its_frame(self) -> None:
        model = arenite.pack(DIGITS, name='"></iframe><script>alert(1)</script>')
        self.assertIn("<html", model.report())
        frame = model._repr_html_()
        self.assertEqual(frame.count("<iframe"), 1)
        self.assertEqual(frame.count("</iframe>"), 1)
        self.assertNotIn("<script", frame)
        self.assertIn("float32[1, 1, 8, 8]", repr(model))


if __name__ == "__main__":
    unittest.main()
