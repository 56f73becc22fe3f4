"""The compilation beside the start of a command."""

import time
from threading import Event

import pytest

from toolkit.cli import launch_source
from toolkit.cli.launch_source import compiled_beside
from toolkit.cli.options import LaunchOptions
from toolkit.machine_code.compiler_process import compile_apart

ENDLESS = "".join(f"#define M{n} M{n - 1} M{n - 1}\n" for n in range(1, 28))
SOURCE = f"#define M0 x[0] += 1;\n{ENDLESS}__global__ void k(float *x) {{ M27 }}"


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("delay_s", [0, 0.3])
def test_an_error_elsewhere_ends_a_compilation_that_has_begun_or_is_about_to(
    delay_s, tmp_path, monkeypatch
):
    def late(*source, **how):
        time.sleep(delay_s)
        return compile_apart(*source, **how)

    monkeypatch.setattr("toolkit.machine_code.compile.compile_apart", late)
    path = tmp_path / "endless.cu"
    path.write_text(SOURCE, encoding="utf-8")
    launch = LaunchOptions(source=str(path), grid="1", block="32")

    def interrupted():
        with compiled_beside(launch):
            time.sleep(0.1)
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("source", ["stream-k", "kernel.cubin"])
def test_rungs_and_machine_code_are_not_compiled(source, monkeypatch):
    monkeypatch.setattr(launch_source, "compile_kernel", None)
    with compiled_beside(LaunchOptions(source=source)) as compiled:
        assert compiled.result() == source


def test_a_compilation_that_never_ends_is_left_behind(monkeypatch):
    """An interrupt within an import may leave its lock behind, for which the thread waits."""
    lock = Event()
    monkeypatch.setattr(launch_source, "compile_kernel", lambda *source, **how: lock.wait())
    monkeypatch.setattr(launch_source, "STUCK_S", 0.1)
    try:
        with pytest.raises(KeyboardInterrupt), compiled_beside(LaunchOptions(source="k.cu")):
            raise KeyboardInterrupt
    finally:
        lock.set()
