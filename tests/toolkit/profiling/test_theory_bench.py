"""Records without a GPU: closed forms, what NVRTC says, and the CPU."""

from functools import partial

import pytest

from analysis.devices import DEVICES, find_device
from analysis.errors import CompileError, UnavailableError
from kernels import LADDER, parse_selection
from tests.heard import Heard, ctrl_c
from tests.sampling import chosen_of
from tests.toolkit.profiling.one_shape import profiled
from toolkit.profiling import on_cpu as host
from toolkit.profiling.in_theory import TheoryBench
from toolkit.rungs import launch as rung_launch
from toolkit.rungs.launch import compile_for

bench = partial(profiled, TheoryBench)


def test_the_whole_ladder_has_theory_resources_and_occupancy():
    records = bench("32", device="h200")  # whose machine code other tests need too
    names = [variant.name for variant in LADDER]
    assert sorted(records) == sorted([*names, "best", "best-fp32x", "cpu", "cublas"])
    for variant in LADDER:
        record = records[variant.name]
        assert (record.status, record.reason) == ("ok", None)
        assert record.theory is not None
        assert record.resources.architecture == "sm_90"
        assert record.resources.compiler.startswith("NVRTC 13.0")
        assert record.occupancy is not None
        assert record.measured is record.check is None
    assert records["cpu"].measured is None
    assert records["cpu"].reason == "theory measures nothing: ask for it by --variant cpu"
    assert records["cublas"].status == "skipped"
    assert records["cublas"].reason == "runs on a GPU; this profile used none"


def test_what_a_device_cannot_run_is_skipped():
    records = bench("32", ["bulk-copy", "best-fp32x"])
    assert {record.status for record in records.values()} == {"skipped"}
    assert records["best-fp32x"].reason == (
        'precision = "fp32x" needs wgmma of sm_90, and NVIDIA GeForce RTX 3090 is sm_86: take '
        'precision = "fp32"'
    )


@pytest.mark.parametrize(
    "device", chosen_of(DEVICES, lambda device: device in ("h200", "rtx-3090", "gtx-1080-ti"))
)
def test_every_device_of_the_database_gets_a_ladder(device):
    for label, record in bench("32", ["naive-coalesced", "tiled"], device).items():
        assert (label, record.status, record.reason) == (label, "ok", None)
        assert record.occupancy is not None


def test_the_cpu_is_measured_where_it_is_asked_for():
    assert bench("32", ["cpu"])["cpu"].measured is not None


def test_an_architecture_that_nvrtc_does_not_know_is_said():
    record = bench("32", ["tiled"], "gtx-1080-ti")["tiled"]
    assert record.resources.architecture == "sm_75"
    assert record.resources.note is not None
    assert record.notes == (record.resources.note,)


def test_parameters_reach_the_compiler():
    device = find_device("rtx-3090")
    wide = compile_for(device, parse_selection("tiled")).resources
    narrow = compile_for(device, parse_selection("tiled:tile=16")).resources
    assert wide.static_shared_bytes == 2 * 32 * 32 * 4
    assert narrow.static_shared_bytes == 2 * 16 * 16 * 4


def test_without_a_compiler_theory_remains(monkeypatch):
    def missing(*arguments, **settings):
        raise UnavailableError("NVRTC is missing: install it")

    monkeypatch.setattr(rung_launch, "compile_kernel", missing)
    record = bench("32", ["tiled"])["tiled"]
    assert record.status == "ok"
    assert record.theory is not None
    assert record.occupancy is record.resources is None
    assert record.notes == ("no registers, no occupancy: NVRTC is missing: install it",)


def test_a_kernel_that_does_not_compile_fails_alone(monkeypatch):
    real = rung_launch.compile_kernel

    def broken(source, kernel, **settings):
        if kernel == "sgemm_tiled":
            raise CompileError("04_tiled.cu, line 1: does not compile: no")
        return real(source, kernel, **settings)

    monkeypatch.setattr(rung_launch, "compile_kernel", broken)
    records = bench("32", ["tiled", "naive-coalesced"])
    assert records["tiled"].status == "failed"
    assert records["tiled"].reason == "04_tiled.cu, line 1: does not compile: no"
    assert records["naive-coalesced"].status == "ok"


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    monkeypatch.setattr(host, "_seconds", lambda _: ctrl_c())
    records = bench("32", ["tiled", "cpu", "cublas"], interrupted=True)
    assert list(records) == ["cublas", "tiled", "cpu"]  # the CPU is last
    assert records["cpu"].reason == "interrupted before it was timed"


def test_every_selection_is_a_step():
    heard = Heard()
    bench("32", ["tiled", "cublas"], progress=heard)
    assert heard.steps == ["cublas", "tiled"]
