"""The plugin of pytest behind `run.py`: which tests run, in which order, and what they reached.

The environment says what to do:
MUTANTS_ORDER: a file with the tests to run and how long each may take, in their order.
MUTANTS_FAILED: a file that gets the name of each failed test.
MUTANTS_MAP: a file that gets a line for each test: what it reached, how long it took.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HANGS_AFTER_S = 60  # and ten times as long as it takes


def file_of(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


class Selected:
    """Runs the tests of MUTANTS_ORDER, or all tests of the files that it names."""

    def __init__(self, order: Path, failed: Path) -> None:
        self.seconds: dict[str, float] = json.loads(order.read_text(encoding="utf-8"))
        self.failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[Any]) -> None:
        position = {name: k for k, name in enumerate(self.seconds)}

        def place(item: Any) -> int | None:
            return position.get(item.nodeid, position.get(file_of(item)))

        items[:] = sorted((item for item in items if place(item) is not None), key=place)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        seconds = self.seconds.get(item.nodeid, self.seconds.get(file_of(item), 0.0))
        limit_s = HANGS_AFTER_S + 10 * seconds
        faulthandler.dump_traceback_later(limit_s, exit=True, file=sys.__stderr__)
        self._note(f"{item.nodeid}: hang or crash")
        result = yield
        faulthandler.cancel_dump_traceback_later()
        self._note("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.failed.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            with self.failed.open("a", encoding="utf-8") as file:
                file.write(f"collection of {report.nodeid}\n")

    def _note(self, running: str) -> None:
        self.failed.with_suffix(".running").write_text(running, encoding="utf-8")


class Mapped:
    """Notes what each test reaches. What one file's tests keep in memory is lost to the next."""

    def __init__(self, output: Path) -> None:
        from reached_functions import reached  # type: ignore[import-not-found]

        self.reached = reached
        self.output = output
        self.file = ""
        self.outcome = ""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._write(test="import", reached=self._take(), seconds=0.0, outcome="")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self.file != (file := file_of(item)):
            self.file = file
            _forget()
        self._take()
        self.outcome = "passed"
        begin = time.perf_counter()
        result = yield
        seconds = round(time.perf_counter() - begin, 3)
        self._write(test=item.nodeid, reached=self._take(), seconds=seconds, outcome=self.outcome)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.outcome = report.outcome

    def _take(self) -> list[int]:
        content = self.reached[:]
        self.reached[:] = bytes(len(content))
        return [k for k, byte in enumerate(content) if byte]

    def _write(self, **entry: Any) -> None:
        with self.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _forget() -> None:
    from toolkit.store.cache import cache_directory

    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            package = str(getattr(each, "__module__", "")).split(".")[0]
            if package not in sys.stdlib_module_names:
                each.cache_clear()
    for entry in cache_directory().glob("prediction-*"):
        entry.unlink()


def pytest_configure(config: pytest.Config) -> None:
    if order := os.environ.get("MUTANTS_ORDER"):
        plugin = Selected(Path(order), Path(os.environ["MUTANTS_FAILED"]))
        config.pluginmanager.register(plugin)
    if output := os.environ.get("MUTANTS_MAP"):
        config.pluginmanager.register(Mapped(Path(output)))
