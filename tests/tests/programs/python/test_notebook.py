"""The notebook runs from its first cell to its last one."""

import ast
import importlib.util
import json
import os
import unittest

from common import BOARD, ROOT, Case

NOTEBOOK = ROOT / "docs/tutorials/digits.ipynb"


def run(cells: list[str]) -> list[object]:
    """The value of each cell's last line, where that is an expression."""
    names: dict[str, object] = {}
    values = []
    for cell in cells:
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        values.append(last and eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names))
    return values


class Notebook(Case):
    @unittest.skipUnless(importlib.util.find_spec("torch") and importlib.util.find_spec("sklearn"), "PyTorch and scikit-learn")
    def test_it_runs(self) -> None:
        notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertEqual(len(cells), 10)
        # Figures are of whoever runs it.
        self.assertTrue(all(not cell.get("outputs") for cell in notebook["cells"]))
        if BOARD is None:
            cells = [cell for cell in cells if "bench" not in cell]
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            values = run(cells)
        finally:
            os.chdir(here)
        scores = next(value for value in values if isinstance(value, dict) and "int8" in value and value["int8"][1] == 397)
        for correct, samples in scores.values():
            self.assertGreater(correct, samples * 0.95, scores)
        page = values[-1]._repr_html_()
        self.assertTrue(page.startswith("<iframe"), page[:40])


if __name__ == "__main__":
    unittest.main()
