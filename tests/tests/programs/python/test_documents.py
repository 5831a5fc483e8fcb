"""Examples of the documents and of the package run and print what they show."""

import doctest
import importlib.util
import os
import pkgutil
import shutil
import unittest

import arenite
from common import BOARD, DIGITS, ROOT, Case


class Documents(Case):
    def test_the_page_runs(self) -> None:
        for name in ["digits.trace.json", "digits.safetensors", "digits.samples.safetensors", "test_images.npy", "test_labels.npy"]:
            shutil.copy(DIGITS.parent / name, self.folder)
        text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        # A section says what it needs, as the tutorials' blocks do.
        has = {"torch": importlib.util.find_spec("torch") is not None, "qemu": BOARD is not None}
        parts = text.split("<!-- needs: ")
        kept = [parts[0]]
        for part in parts[1:]:
            needs, rest = part.split(" -->", 1)
            fence = rest.index("```\n", rest.index("```python") + 3) + 4
            kept.append(rest if has[needs] else rest[fence:])
        page = "".join(kept).replace("```", "\n")
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            test = doctest.DocTestParser().get_doctest(page, {"arenite": arenite}, "python.md", "docs/python.md", 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test)
        finally:
            os.chdir(here)
        self.assertEqual(runner.failures, 0)
        self.assertGreater(runner.tries, 15)

    def test_docstrings_run(self) -> None:
        tried = 0
        for module in pkgutil.iter_modules(arenite.__path__, "arenite."):
            result = doctest.testmod(importlib.import_module(module.name), extraglobs={"arenite": arenite})
            self.assertEqual(result.failed, 0, module.name)
            tried += result.attempted
        self.assertGreater(tried, 0)

    def test_the_wheel_has_what_types_and_the_tracer_want(self) -> None:
        folder = os.path.dirname(arenite.__file__)
        for name in ["py.typed", "_native.pyi"]:
            self.assertTrue(os.path.exists(os.path.join(folder, name)), name)
        import arenite_trace

        self.assertEqual(os.path.dirname(os.path.dirname(arenite_trace.__file__)), os.path.dirname(folder))
        self.assertEqual(arenite.__version__, arenite_trace.__version__)


if __name__ == "__main__":
    unittest.main()
