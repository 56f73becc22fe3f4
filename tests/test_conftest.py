"""Cache of the test suite: it keeps output of compilers, and nothing that we compute; imports."""

import re
import sys
from types import SimpleNamespace

import pytest

from tests.conftest import compiler_outputs, import_in_turn
from validation import ROOT


def test_predictions_are_made_anew_in_each_run(tmp_path, monkeypatch):
    for name in ("1.cubin", "1.sass.json", "prediction-1.json"):
        (tmp_path / name).touch()
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path))
    assert compiler_outputs(ROOT) == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.cubin", "1.sass.json"]


def test_nothing_else_is_kept():
    """Anything else that is kept must come from a compiler or a linker, or be removed between runs.

    Predictions, decoded kernels, recipes of products and the time of the CPU reference are removed.
    """
    keeping = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.joinpath("toolkit").rglob("*.py")
        if re.search(
            r"from toolkit\.store\.cache import .*\bkeep\b", path.read_text(encoding="utf-8")
        )
    }
    assert keeping == {
        "toolkit/machine_code/compile.py",
        "toolkit/machine_code/compiled_before.py",
        "toolkit/machine_code/device_linker.py",
        "toolkit/execution/prediction_cache.py",
        "toolkit/machine_code/disassemble.py",
        "toolkit/machine_code/kept.py",
        "toolkit/profiling/on_cpu.py",
        "toolkit/product/kept_recipes.py",
    }


@pytest.mark.parametrize(("worker", "order"), [("gw0", "abcd"), ("gw1", "cdab")])
def test_each_worker_imports_all_files_from_another_one_on(worker, order, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "imported", [], raising=False)
    bad = {"b": "raise ValueError", "d": "import pytest; pytest.skip('', allow_module_level=True)"}
    for letter in "abcd":
        code = f"import sys; sys.imported.append('{letter}')\n{bad.get(letter, '')}"
        tmp_path.joinpath(f"test_in_turn_{letter}.py").write_text(code)
        monkeypatch.delitem(sys.modules, f"test_in_turn_{letter}", raising=False)
    config = SimpleNamespace(args=[str(tmp_path)], rootpath=tmp_path)
    import_in_turn(config, {"workerid": worker, "workercount": 2})
    assert "".join(sys.imported) == order
