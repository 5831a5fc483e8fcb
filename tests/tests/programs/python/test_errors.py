"""Errors are the program's, in fields; work ends where somebody ends it, and what is not installed is said."""

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from unittest import mock

import arenite
import numpy as np
from common import DIGITS, MODELS, Case, images, labels, program


class Texts(Case):
    def test_errors_are_the_programs(self) -> None:
        (self.folder / "empty.onnx").write_bytes(b"")
        (self.folder / "net.json").write_text('{"arenite_trace": 9}')
        for source, words, keywords in [
            ("none.onnx", [], {}),
            ("empty.onnx", [], {}),
            ("net.json", [], {}),
            (DIGITS, ["--target", "cortex-m44"], {"target": "cortex-m44"}),
            (DIGITS, ["--region", "sram=1K"], {"region": "sram=1K"}),
            (DIGITS, ["--dtype", "int8"], {"dtype": "int8"}),
            (DIGITS, ["--stream-output"], {"stream_output": True}),
            (DIGITS, ["--calibrate", "none.npz", "--dtype", "int8"], {"calibrate": "none.npz", "dtype": "int8"}),
        ]:
            with self.subTest(words=words, source=str(source)):
                done = program("pack", source, "-o", "m.bin", *words, folder=self.folder)
                here = os.getcwd()
                os.chdir(self.folder)
                try:
                    with self.assertRaises(arenite.Error) as caught:
                        arenite.pack(source, **keywords)
                finally:
                    os.chdir(here)
                self.assertEqual(done.stderr.strip(), f"error: {caught.exception}".replace("model.bin", "m.bin"))

    def test_the_fields_are_the_texts(self) -> None:
        trace = b'{\n "arenite_trace": 9}'
        with self.assertRaises(arenite.Error) as caught:
            arenite.pack(trace)
        error = caught.exception
        self.assertEqual((error.kind, error.file), ("unsupported", "network.trace.json"))
        self.assertEqual(error.where, "line 2, column 19 (arenite_trace)")
        self.assertEqual(error.what, "version 9 of the trace format")
        self.assertEqual(error.expected, "a version from 1 to 3")
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))
        self.assertNotIn("/", str(error).replace("trace.json", ""))

    def test_unknown_options_are_refused(self) -> None:
        for keywords, text in [
            ({"nonsense": 1}, "--nonsense"),
            ({"json": True}, "`json` is of the command line alone"),
            ({"target": b"x"}, "target is a bytes"),
            ({"plan_nodes": "many"}, "many"),
            ({"labels": ["a\nb"]}, "a label holds an end of line"),
            ({"progress": 3}, "progress is a int"),
            ({"calibrate": 3, "dtype": "int8"}, "calibrate is a int"),
            ({"calibrate": [], "dtype": "int8"}, "calibrate gives nothing"),
            ({"calibrate": [np.zeros((1, 1, 8, 8)), np.zeros((1, 1, 9, 8))], "dtype": "int8"}, "do not fit together"),
            ({"calibrate": [{"a": np.zeros(1)}, {"b": np.zeros(1)}], "dtype": "int8"}, "different inputs"),
        ]:
            with self.subTest(text=text), self.assertRaisesRegex(arenite.Error, text) as caught:
                arenite.pack(DIGITS, **keywords)
            self.assertEqual(caught.exception.kind, "usage")

    def test_what_is_no_network_is_refused(self) -> None:
        for network, text in [(3, "a builtins.int is no network"), (None, "is no network"), (lambda: 1, "is no network"), (b"", "network.onnx: ")]:
            with self.assertRaisesRegex(arenite.Error, text):
                arenite.pack(network)
        with self.assertRaisesRegex(arenite.Error, "example_inputs beside a str"):
            arenite.pack(str(DIGITS), np.zeros(3))

    def test_what_is_no_model_is_refused(self) -> None:
        good = arenite.pack(DIGITS).to_bytes()
        for content in [b"", b"nonsense", good[:-1], good[:200] + b"\0" + good[201:]]:
            path = self.folder / "m.bin"
            path.write_bytes(content)
            done = program("arenite", "run", "m.bin", "--input", MODELS / "digits/test_images.npy", folder=self.folder)
            with self.assertRaises(arenite.Error) as caught:
                arenite.load(path).run(images())
            self.assertEqual(done.stderr.strip(), f"error: {caught.exception}")
        with self.assertRaisesRegex(arenite.Error, "none.bin: cannot read the model"):
            arenite.load("none.bin")


class Endings(Case):
    def long(self, progress: object = None) -> None:
        """Minutes of packing, were it not ended."""
        many = np.concatenate([images()] * 200)
        arenite.pack(DIGITS, dtype="int8", calibrate=many, optimise_rounding=True, target_snr=60, progress=progress)

    def test_an_interrupt_ends_packing(self) -> None:
        # A process in the background of a shell begins with interrupts ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.long()
        # The next call works.
        self.assertEqual(arenite.pack(DIGITS).run(images()[0]).shape, (1, 10))

    def test_progress_is_told_and_its_exception_ends_the_work(self) -> None:
        told: list = []
        arenite.pack(DIGITS, progress=lambda *now: told.append(now))
        self.assertTrue(told and all(isinstance(stage, str) and done <= of or of == 0 for stage, done, of in told), told)
        told.clear()

        def refuse(stage: str, done: int, of: int) -> None:
            told.append(stage)
            # Nobody is told of what a callback does.
            arenite.pack(DIGITS)
            raise ZeroDivisionError(stage)

        with self.assertRaises(ZeroDivisionError):
            self.long(refuse)
        self.assertEqual(len(told), 1)

    def test_the_interpreter_runs_meanwhile(self) -> None:
        turns, done = 0, threading.Event()

        def enough(*_: object) -> None:
            if turns > 200:
                raise ZeroDivisionError

        def work() -> None:
            try:
                self.long(enough)
            except ZeroDivisionError:
                pass
            finally:
                done.set()

        thread = threading.Thread(target=work)
        thread.start()
        while not done.is_set():
            turns += 1
            time.sleep(0.001)
        thread.join()
        self.assertGreater(turns, 200)

    def test_tqdm_is_a_bar_or_is_missed_by_name(self) -> None:
        with mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}):
            with self.assertRaisesRegex(arenite.Error, "wants tqdm, which is not installed"):
                arenite.pack(DIGITS, progress=True)
        bar = mock.Mock(desc=None)
        with mock.patch.dict(sys.modules, {"tqdm": mock.Mock(), "tqdm.auto": mock.Mock(tqdm=lambda total: bar)}):
            arenite.pack(DIGITS, progress=True)
        self.assertTrue(bar.set_description_str.called and bar.close.called)

    def test_conversions_are_quiet_and_warnings_are_pythons(self) -> None:
        with warnings.catch_warnings(record=True) as caught, mock.patch("sys.stderr", io.StringIO()) as stderr:
            warnings.simplefilter("always")
            arenite.pack(DIGITS).run(images()[0].astype(np.float64))
        self.assertEqual(([str(one.message) for one in caught], stderr.getvalue()), ([], ""))


class Absent(Case):
    def test_without_qemu_and_cargo_the_rest_works(self) -> None:
        """In a process of its own, whose path leads nowhere."""
        script = f"""
import arenite, numpy as np
model = arenite.pack({str(DIGITS)!r})
x, y = np.load({str(MODELS / "digits/test_images.npy")!r}), np.load({str(MODELS / "digits/test_labels.npy")!r})
assert model.run(x).shape == (360, 1, 10)
assert model.eval(x, y)["samples"] == 360
assert "<html" in model.report()
try:
    model.bench("qemu:mps2-an386")
except arenite.Error as error:
    print(error)
"""
        # Cargo says in CARGO where it is, to what it starts.
        own = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST"))}
        nowhere = {**own, "PATH": str(self.folder), "HOME": str(self.folder), "CARGO_HOME": str(self.folder)}
        done = subprocess.run([sys.executable, "-c", script], env=nowhere, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "help: .*install")

    def test_boards_that_do_not_exist(self) -> None:
        model = arenite.pack(DIGITS)
        for on in ["qemu:nothing", "host"]:
            with self.assertRaises(arenite.Error) as caught:
                model.bench(on)
            self.assertEqual(caught.exception.kind, "usage")
        with self.assertRaisesRegex(arenite.Error, "expected host, serial:PORT, qemu:"):
            model.run(images()[0], on="qemu:nothing")
        with self.assertRaisesRegex(arenite.Error, "labels"):
            model.eval(images(), labels()[:7])


if __name__ == "__main__":
    unittest.main()
