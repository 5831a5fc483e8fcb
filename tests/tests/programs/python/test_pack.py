"""Packing gives the program's files, byte for byte, whatever a network comes as."""

import gc
import importlib.util
import os
import shutil
import unittest
import weakref

import arenite
import numpy as np
import safetensors.numpy
from common import DIGITS, MODELS, Case, images, labels, program


class Bytes(Case):
    def test_paths_and_options(self) -> None:
        for source, words, keywords in [
            (DIGITS, [], {}),
            (DIGITS, ["--target", "cortex-m4", "--size"], {"target": "cortex-m4", "size": True, "winograd": False, "max_step": None}),
            (DIGITS, ["--name=-x", "--plan-nodes", "9"], {"name": "-x", "plan_nodes": 9}),
            (DIGITS, ["--region", "a=4K", "--region", "b=1M"], {"region": {"a": "4K", "b": "1M"}}),
            (MODELS / "tflite_ops/linear.tflite", [], {}),
            (MODELS / "recurrent/gru.onnx", ["--target", "x86-64"], {"target": "x86-64"}),
        ]:
            with self.subTest(words=words, source=source.name):
                output = self.folder / "python.bin"
                model = arenite.pack(str(source), output=output, **keywords)
                self.assertEqual(model.to_bytes(), self.packed(source, *words))
                self.assertEqual(output.read_bytes(), model.to_bytes())

    def test_bytes_of_a_file(self) -> None:
        for source in [MODELS / "tflite_ops/linear.tflite", MODELS / "recurrent/gru.onnx"]:
            name = source.stem
            self.assertEqual(arenite.pack(source.read_bytes(), name=name).to_bytes(), self.packed(source, "--name", name))

    def test_an_onnx_model_is_its_file(self) -> None:
        """`onnx.ModelProto`, and a stand-in with what is asked of one."""
        path = MODELS / "recurrent/gru.onnx"
        expected = self.packed(path, "--name", "network")

        class ModelProto:
            graph = None

            def SerializeToString(self) -> bytes:
                return path.read_bytes()

        self.assertEqual(arenite.pack(ModelProto()).to_bytes(), expected)
        if importlib.util.find_spec("onnx") is not None:
            import onnx

            self.assertEqual(arenite.pack(onnx.load(path)).to_bytes(), self.packed(path, "--name", "network"))

        class Large(ModelProto):
            def SerializeToString(self) -> bytes:
                raise ValueError("over 2 GiB")

        with self.assertRaisesRegex(arenite.Error, "over 2 GiB") as caught:
            arenite.pack(Large())
        self.assertIn("save_as_external_data=True", caught.exception.help)

    def test_a_keras_model_is_its_export(self) -> None:
        """A stand-in with the one method that is called: as ONNX, as LiteRT where that fails, and an error where both do."""
        exports = {"onnx": MODELS / "recurrent/gru.onnx", "litert": MODELS / "tflite_ops/linear.tflite"}
        asked = []

        class Functional:
            name = "small"

            def __init__(self, forms: set[str]) -> None:
                self.forms = forms

            def named_parameters(self) -> list[object]:
                """On PyTorch it is a module, too."""
                return []

            forward = named_parameters

            def export(self, path: str, format: str, verbose: bool) -> None:
                asked.append(format)
                if format not in self.forms:
                    raise ImportError(f"no {format} here")
                shutil.copy(exports[format], path)

        Functional.__module__ = "keras.src.models.functional"
        for forms, taken in [({"onnx", "litert"}, "onnx"), ({"litert"}, "litert")]:
            with self.subTest(forms=forms):
                expected = self.packed(exports[taken], "--name", "small")
                self.assertEqual(arenite.pack(Functional(forms)).to_bytes(), expected)
        if importlib.util.find_spec("keras") is not None and importlib.util.find_spec("onnxscript") is not None:
            os.environ.setdefault("KERAS_BACKEND", "torch")
            import keras

            layers = [keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(5)]
            network = keras.Sequential(layers, name="real")
            array = np.random.default_rng(3).random((1, 8, 8, 1), np.float32)
            wanted = keras.ops.convert_to_numpy(network(array))
            model = arenite.pack(network)
            self.assertEqual(model.name, "real")
            np.testing.assert_allclose(model.run(array), wanted, rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(arenite.Error, r"onnx: no onnx here; litert: no litert here") as caught:
            arenite.pack(Functional(set()))
        self.assertEqual(caught.exception.kind, "unsupported")
        self.assertEqual(asked, ["onnx", "onnx", "litert", "onnx", "litert"])

    def test_calibration_of_every_form(self) -> None:
        sample = images()[::9]
        np.save(self.folder / "sample.npy", sample)
        expected = self.packed(DIGITS, "--dtype", "int8", "--calibrate", "sample.npy")
        loader = [(sample[at : at + 7, 0], labels()[at : at + 7]) for at in range(0, len(sample), 7)]
        for form in [
            self.folder / "sample.npy",
            sample,
            np.asfortranarray(sample),
            {"image": sample},
            loader,
            (batch for batch, _ in loader),
            [{"image": batch} for batch, _ in loader],
        ]:
            with self.subTest(form=type(form)):
                self.assertEqual(arenite.pack(DIGITS, dtype="int8", calibrate=form).to_bytes(), expected)
        fewer = arenite.pack(DIGITS, dtype="int8", calibrate=sample[:3]).to_bytes()
        self.assertNotEqual(fewer, expected)

    def test_labels_weights_and_self_test(self) -> None:
        words = [f"digit {number}" for number in range(10)]
        (self.folder / "labels.txt").write_text("\n".join(words))
        np.save(self.folder / "one.npy", images()[:2])
        expected = self.packed(DIGITS, "--labels", "labels.txt", "--self-test", "one.npy")
        self.assertEqual(arenite.pack(DIGITS, labels=words, self_test=images()[:2]).to_bytes(), expected)
        arrays = safetensors.numpy.load_file(DIGITS.with_name("digits.safetensors"))
        np.savez(self.folder / "w.npz", **arrays)
        expected = self.packed(DIGITS, "--weights", "w.npz")
        self.assertEqual(arenite.pack(DIGITS, weights=arrays).to_bytes(), expected)

    def test_the_summary_is_the_programs(self) -> None:
        import json

        model = arenite.pack(DIGITS)
        self.packed(DIGITS)
        done = program("arenite", "inspect", "program.bin", "--json", folder=self.folder)
        self.assertEqual(model.summary, json.loads(done.stdout))
        self.assertEqual([(p.name, p.shape, p.dtype) for p in model.inputs], [("image", (1, 1, 8, 8), np.dtype("float32"))])

    def test_a_module_is_its_trace(self) -> None:
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no PyTorch")
        import torch

        torch.manual_seed(5)
        module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(3 * 5 * 4, 7))
        inputs = torch.randn(1, 2, 7, 6)
        model = arenite.pack(module, inputs)
        with torch.no_grad():
            expected = module(inputs).numpy()
        np.testing.assert_allclose(model.run(inputs), expected, rtol=1e-5, atol=1e-6)
        self.assertEqual(model.name, "Sequential")
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 2, 7, 6), torch.zeros(12)), batch_size=5)
        int8 = arenite.pack(module, inputs, dtype="int8", calibrate=loader)
        self.assertEqual(int8.inputs[0].dtype, np.int8)
        self.assertTrue(module.training)


class Files(Case):
    def test_a_model_keeps_a_copy_that_goes_with_it(self) -> None:
        path = self.folder / "m.bin"
        arenite.pack(DIGITS).save(path)
        model = arenite.load(path)
        path.write_bytes(b"")
        self.assertEqual(model.run(images()[0]).shape, (1, 10))
        folder, dead = model._folder.name, weakref.ref(model)
        del model
        gc.collect()
        self.assertIsNone(dead())
        self.assertFalse(os.path.exists(folder))

    def test_saving_replaces_or_leaves(self) -> None:
        model = arenite.pack(DIGITS)
        path = self.folder / "m.bin"
        path.write_bytes(b"old")
        model.save(path)
        self.assertEqual(path.read_bytes(), model.to_bytes())
        with self.assertRaises(arenite.Error) as caught:
            model.save(self.folder / "none/m.bin")
        self.assertEqual(caught.exception.kind, "io")
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["m.bin"])

    def test_bundles_by_name(self) -> None:
        done = program("pack", DIGITS, MODELS / "digits/mlp.trace.json", "-o", "both.bin", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        with self.assertRaisesRegex(arenite.Error, "^both.bin: this is a bundle of several models"):
            arenite.load(self.folder / "both.bin")
        mlp = arenite.load(f"{self.folder / 'both.bin'}#mlp")
        self.assertEqual(mlp.name, "mlp")
        self.assertEqual(mlp.to_bytes(), (self.folder / "both.bin").read_bytes())


if __name__ == "__main__":
    unittest.main()
