"""Output of Nsight Compute, as it prints it, also if something is wrong with it."""

import os
import sys
import time

import pytest

from analysis.errors import CountersError
from analysis.records.counters import (
    ALL_COUNTERS,
    OF_BULK_COPIES,
    OF_HALF_PRECISION,
    OF_TENSOR_CORES,
)
from toolkit.gpu.nsight_compute import ncu

FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
BYTES = "dram__bytes_read.sum"

# of Nsight Compute 2025.3.1 on an H100, less columns and launches
RAW = """==PROF== Connected to process 833 (/usr/bin/python3.12)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","dram__bytes_read.sum","gpu__time_duration.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","launch__registers_per_thread"
"","","","","","","","","","","","byte","ns","sector","register/thread"
"0","833","python3.12","127.0.0.1","sgemm_tiled","1","7","(32, 32, 1)","(16, 16, 1)","0","9.0",\
"2,102,016.00","12.5","1,048,576","38"
"1","833","python3.12","127.0.0.1","void f<float, 2>(T1)","1","7","(256, 1, 1)","(2, 1, 1)","0",\
"9.0","n/a","4","","16"
==PROF== Disconnected from process 833
"""


def test_only_what_a_rung_can_count_is_asked_for():
    assert set(ncu.COUNTER_NAMES) < set(ALL_COUNTERS)
    left_out = [name for name in ALL_COUNTERS if name not in ncu.COUNTER_NAMES]
    double = [name for name in left_out if "_op_d" in name and name not in OF_TENSOR_CORES]
    assert [x for x in left_out if x not in double] == [
        *OF_HALF_PRECISION,
        *OF_TENSOR_CORES,
        *OF_BULK_COPIES,
    ]
    options = ncu.counting_options(["a.sum"])
    assert options[:2] == ["--clock-control", "none"]
    assert options[-1] == f"a.sum,{','.join(ncu.OF_LAUNCH)}"


def test_kernels_are_read_from_the_raw_page():
    first, second = ncu.kernels_in(RAW)
    assert (first.name, first.grid, first.block) == ("sgemm_tiled", (16, 16, 1), (32, 32, 1))
    assert first.values[BYTES] == 2_102_016
    assert first.values[SECTORS] == 1_048_576
    assert second.name == "void f<float, 2>(T1)"
    assert BYTES not in second.values
    assert not any("time" in name or "cycles" in name for name in first.values)


def test_zero_is_a_result_and_an_empty_cell_is_none():
    assert ncu.kernels_in(RAW)[1].values == {ncu.REGISTERS: 16}
    zero = RAW.replace('"n/a","4",""', '"n/a","4","0"')
    assert ncu.kernels_in(zero)[1].values == {SECTORS: 0, ncu.REGISTERS: 16}


@pytest.mark.parametrize("text", ["", "==WARNING== No kernels were profiled.\n"])
def test_no_table_is_no_kernel(text):
    assert ncu.kernels_in(text) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (RAW[:-60], "unexpected end of data"),
        (RAW[: RAW.index(',"n/a"')], "11 of 15 columns"),
        (RAW.replace('"Grid Size"', '"Grid"'), "'Grid Size'"),
        (RAW.replace("(16, 16, 1)", "16"), "not enough values"),
    ],
)
def test_a_table_that_cannot_be_trusted_says_why(text, why):
    with pytest.raises(CountersError, match=f"the table of ncu cannot be read: .*{why}"):
        ncu.kernels_in(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("18,446,744,073,709,551,615", 2**64 - 1),  # beyond what a float holds
        ("32.00", 32),
        ("1e3", 1000),
        ("n/a", None),
        ("-5", None),
        ("1e400", None),
        ("(!) nan", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_a_cell_is_a_count_or_nothing(text, number):
    assert ncu.integer_in(text) == number


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (f"Failed to find metric {BYTES}", [BYTES]),
        (r"Failed to find metric regex:^dram__bytes_read\.(sum|min|max|avg)$", [BYTES]),
        (f"Failed to find metrics {BYTES}, {FFMA}", [BYTES, FFMA]),
        ("UnknownError", []),
        (f"metrics were: {BYTES},{FFMA},{SECTORS}", []),  # its command line, repeated
        (f"Failed to find metric {SECTORS}_lookup_hit.sum", []),
    ],
)
def test_metrics_that_ncu_does_not_know_are_found_in_its_errors(error, unknown):
    asked = [BYTES, FFMA, SECTORS]
    assert ncu.unknown_metrics(f"==PROF== x\n==ERROR== {error}\n", asked) == unknown
    assert ncu.unknown_metrics(f"==WARNING== {error}\n", asked) == []


def test_a_complaint_is_the_cause_and_not_what_follows():
    text = """==PROF== Connected to process 1
==ERROR== An error was reported by the driver:
==ERROR== Profiling failed because a driver resource was unavailable.
==ERROR== Failed to profile "f" in process 1
==ERROR== The application returned an error code (9).
"""
    cause = "Profiling failed because a driver resource was unavailable."
    assert ncu.complaint_in(text) == cause
    assert ncu.complaint_in(text.replace(cause, "")) == ""


def program(text):
    return [sys.executable, "-u", "-c", text]


def outcome(text, folder, **settings):
    settings = {"on_line": lambda line: 30.0, "patience_s": 30.0} | settings
    return ncu.run(program(text), log=folder / "log", environment=os.environ, **settings)


def test_a_run_hears_every_line_and_reads_the_log(tmp_path):
    heard = []

    def on_line(line):
        heard.append(line)
        return 30.0

    text = f"open({str(tmp_path / 'log')!r}, 'w').write('said'); print('a'); print('b'); exit(3)"
    ended = outcome(text, tmp_path, on_line=on_line)
    assert heard == ["a", "b"]
    assert (ended.log, ended.output) == ("said", "a\nb")
    assert (ended.returncode, ended.timed_out) == (3, False)


def test_a_run_that_says_nothing_more_is_stopped(tmp_path):
    started = time.monotonic()
    text = "import time; print('a'); time.sleep(60)"
    ended = outcome(text, tmp_path, on_line=lambda line: 0.1)
    assert ended.timed_out
    assert ended.output == "a"
    assert time.monotonic() - started < 20


def test_ctrl_c_stops_what_ncu_started_too(tmp_path):
    """A child of the child writes a file after a while, unless it is stopped."""
    late = tmp_path / "late"
    child = f"import time; time.sleep(1); open({str(late)!r}, 'w')"
    text = (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child!r}]); "
        "print('a'); p.wait()"
    )

    def interrupted(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome(text, tmp_path, on_line=interrupted)
    time.sleep(2)
    assert not late.exists()
