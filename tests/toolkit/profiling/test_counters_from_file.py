"""Hardware counters from a file: a CSV as ncu prints it, or a report that a made-up ncu reads."""

import pytest

from analysis.errors import CountersError
from tests.heard import Heard
from tests.toolkit import fake_ncu
from tests.toolkit.counted import launch_of, record_of
from toolkit import profile
from toolkit.gpu.nsight_compute import ncu
from toolkit.profiling.counters_from_file import read_counters

METRICS = [*ncu.COUNTERS, *ncu.OF_LAUNCH]
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


def rows_of(*launches, metrics=METRICS):
    entries = (
        {
            "marker": launch.marker,
            "kernels": [(launch.entry, launch.record.geometry.block, launch.record.geometry.grid)]
            if launch.entry and launch.record.geometry
            else [(name, (256, 1, 1), (64, 32, 1)) for name in fake_ncu.CUBLAS],
        }
        for launch in launches
    )
    return [row for entry in entries for row in fake_ncu.rows_of(entry, metrics, fake_ncu.Faults())]


def table_of(*labels, shape="64x64x64"):
    rows = rows_of(*(launch_of(label, shape) for label in labels))
    return fake_ncu.as_table(rows, METRICS)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "counters.csv"


def overlaid(file, *variants, **settings):
    settings = {"executor": "theory", "device": "h100-sxm"} | settings
    return profile(["64"], variants or ["tiled"], counters_from=file, **settings)


def refused(file, *variants, **settings):
    with pytest.raises(CountersError) as raised:
        overlaid(file, *variants, **settings)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_csv_gives_its_counters_to_the_records(file):
    file.write_text(table_of("tiled", "tiled:tile=16", "cublas"))
    result = overlaid(file, "tiled:tile=16", "tiled", "cublas", "cpu")
    for label in ("tiled", "tiled:tile=16"):
        counted = record_of(result, label).counted
        assert counted.counters[FFMA] == 2000 + sum(map(ord, FFMA))
        assert counted.source == "Nsight Compute, from counters.csv"
    assert record_of(result, "tiled").counted.kernels[0].grid == (2, 2, 1)
    cublas = record_of(result, "cublas")
    assert cublas.notes[0].startswith("cuBLAS launched cutlass_80_simt_sgemm_128x64")
    assert " --counters-from counters.csv " in result.command


def test_simulated_and_counted_stand_together(file):
    file.write_text(table_of("tiled"))
    (record,) = overlaid(file, executor="simulate").records
    assert record.simulated is not None
    assert record.counted is not None


def test_what_the_file_has_beyond_the_plan_is_told(file):
    heard = Heard()
    file.write_text(table_of("tiled", "naive-coalesced"))
    overlaid(file, progress=heard)
    assert heard.notices == [
        "counters.csv: 1 launches are not of this plan: naive_coalesced__64x64x64"
    ]


def test_the_file_may_lack_what_a_library_launches(file):
    file.write_text(table_of("tiled"))
    result = overlaid(file, "tiled", "cublas")
    assert record_of(result, "tiled").counted is not None
    assert record_of(result, "cublas").counted is None


def test_a_report_is_read_through_ncu(tmp_path, made_up_ncu):
    report = tmp_path / "counters.ncu-rep"
    report.write_bytes(b"NVR\0" + table_of("tiled").encode())
    counted = overlaid(report).records[0].counted
    assert counted.source == "Nsight Compute, from counters.ncu-rep"


def test_a_report_says_which_version_wrote_it(tmp_path, made_up_ncu):
    report = tmp_path / "counters.ncu-rep"
    wrote = b"2025.4.0.1 (build 12345678) (public-release)\n"
    report.write_bytes(b"NVR\0" + wrote + table_of("tiled").encode())
    assert read_counters(report).source == "Nsight Compute 2025.4.0, from counters.ncu-rep"


@pytest.mark.parametrize(
    ("content", "by"),
    [
        (b"NVR\0refused", "cut short, or written by another version"),
        (b"NVR\0refused 2026.1.0.9 (build 1)", "written by Nsight Compute 2026.1.0"),
    ],
)
def test_a_report_that_ncu_refuses_names_the_way_out(content, by, tmp_path, made_up_ncu):
    report = tmp_path / "counters.ncu-rep"
    report.write_bytes(content)
    assert refused(report) == (
        f"{report}: the ncu that is here cannot read it (Failed to open the report file.); it is "
        f"{by}: copy it again, or, where the ncu is that wrote it, run: ncu --import "
        "counters.ncu-rep --csv --page raw --print-units base > counters.csv"
    )


def test_a_report_without_ncu_names_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.machine_code.cuda_tools.command_path", lambda *_: None)
    report = tmp_path / "counters.ncu-rep"
    report.write_bytes(b"NVR\0...")
    assert refused(report) == (
        f"{report}: there is no ncu here to read it: where there is one, run: ncu --import "
        "counters.ncu-rep --csv --page raw --print-units base > counters.csv"
    )


@pytest.mark.parametrize("content", [b"", b"==WARNING== No kernels were profiled.\n", b"{}"])
def test_a_file_without_launches_says_so(content, file):
    file.write_bytes(content)
    assert refused(file).startswith(f"{file}: no launch was counted in it: make it with")


def test_a_file_that_is_not_there_or_no_text_says_so(file, tmp_path):
    assert refused(file) == f"{file}: there is no such file"
    assert refused(tmp_path).startswith(f"{tmp_path}: it cannot be read: ")
    file.write_bytes(b"\x89PNG\xff")
    assert refused(file) == f"{file}: byte 0 is no text: give a .ncu-rep or a CSV of ncu's"


def test_a_csv_of_a_windows_shell_is_read(file):
    file.write_text(table_of("tiled"), encoding="utf-16")
    assert overlaid(file).records[0].counted is not None


def test_a_csv_that_is_cut_short_says_where(file):
    text = table_of("tiled")
    file.write_text(text[:-100])
    assert refused(file).startswith(f"{file}: line 4 of its table is cut short (")


def test_kernels_that_nobody_announced_are_of_no_variant(file):
    rows = [row for row in rows_of(launch_of("tiled")) if row[3] == "sgemm_tiled"]
    file.write_text(fake_ncu.as_table(rows, METRICS))
    assert refused(file).startswith(
        f"{file}: it does not say which variants its 1 kernels are of (sgemm_tiled ...): make it "
    )


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (3, "sgemm_vectorized", "sgemm_vectorized was counted, and sgemm_tiled is launched"),
        (7, "(4, 4, 1)", "a grid of 4x4x1 was counted, and one of 2x2x1 is launched"),
        (6, "(8, 8, 1)", "a block of 8x8x1 was counted, and one of 32x32x1 is launched"),
    ],
)
def test_a_launch_that_is_another_is_named(column, value, message, file):
    marker, kernel = rows_of(launch_of("tiled"))
    kernel[column] = value
    file.write_text(fake_ncu.as_table([marker, kernel], METRICS))
    assert refused(file).startswith(f"counters.csv: tiled at 64x64x64: {message}: make it with")


def test_more_or_fewer_kernels_than_are_launched_are_named(file):
    marker, kernel = rows_of(launch_of("tiled"))
    file.write_text(fake_ncu.as_table([marker, kernel, kernel], METRICS))
    assert "sgemm_tiled, sgemm_tiled were counted, and sgemm_tiled alone" in refused(file)
    file.write_text(fake_ncu.as_table([marker], METRICS))
    assert "tiled at 64x64x64: no kernel was counted" in refused(file)


def test_launches_that_the_file_lacks_are_named(file):
    file.write_text(table_of("tiled"))
    assert refused(file, "naive-coalesced", "tiled", "vectorized") == (
        "counters.csv: it has no launch of naive-coalesced at 64x64x64 and 1 more: name the "
        "shapes and variants that were counted, or count these too"
    )


def test_another_gpu_is_named(file):
    file.write_text(table_of("tiled"))
    assert refused(file, device="rtx-3090").startswith(
        "counters.csv: it was counted on compute capability 9.0, and this profile is for NVIDIA "
    )


def test_the_resources_of_a_launch_must_be_there(file):
    metrics = [name for name in METRICS if name != ncu.REGISTERS]
    file.write_text(fake_ncu.as_table(rows_of(launch_of("tiled"), metrics=metrics), metrics))
    assert "launch__registers_per_thread of sgemm_tiled was not counted" in refused(file)


def test_counters_that_the_file_lacks_are_missing(file):
    metrics = [name for name in METRICS if name != FFMA]
    file.write_text(fake_ncu.as_table(rows_of(launch_of("tiled"), metrics=metrics), metrics))
    counted = overlaid(file).records[0].counted
    assert counted.missing == (FFMA,)


def test_a_bad_file_is_found_before_anything_runs(file, monkeypatch):
    monkeypatch.setattr("toolkit.profiling.in_theory.TheoryBench.profile_shape", None)
    file.write_text(table_of("vectorized"))
    assert "it has no launch of tiled" in refused(file)
