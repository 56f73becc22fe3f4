"""`check` on the command line: what it prints, and the exit code."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from analysis.errors import InputError
from tests.toolkit.cli.commands import invoke, write
from toolkit import check as check_kernel

REVERSE = """extern "C" __global__ void reverse(const float *x, float *y) {
    __shared__ float copy[64];
    copy[threadIdx.x] = x[threadIdx.x];
    BARRIER
    y[threadIdx.x] = copy[63 - threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def source(folder):
    write("reverse.cu", REVERSE)


def check(barrier, more=""):
    options = f"-g 1 -b 64 -a f32[64] -a f32[64]=unwritten -D 'BARRIER={barrier}'"
    return invoke(f"check reverse.cu {options} {more}")


def test_a_clean_kernel_is_one_line():
    result = check("__syncthreads();")
    assert result.exit_code == 0
    assert result.output == (
        "reverse: no errors: memcheck, racecheck, synccheck, initcheck on the one block\n"
    )


def test_a_finding_names_both_lines_and_fails():
    result = check("")
    assert result.exit_code == 1
    first = next(x for x in result.output.splitlines() if "read-after-write" in x)
    assert "write by thread (31, 0, 0), reverse.cu, line 3" in first
    assert "read by thread (32, 0, 0) of block (0, 0, 0), reverse.cu, line 5" in first
    assert first.endswith("no __syncthreads() between them (32 times)")  # warp 1, all lanes


def test_json_holds_the_findings():
    result = check("", "--json")
    assert result.exit_code == 1
    document = json.loads(result.output)
    hazards = [x for x in document["findings"] if x["kind"] == "RAW"]
    assert [access["line"] for access in hazards[0]["accesses"]] == [3, 5]
    assert hazards[0]["address"] == 4 * 31  # the last word that warp 0 wrote
    assert document["executed_blocks"] == document["blocks"] == 1


def test_a_page_shows_the_lines_of_a_finding():
    result = check("", "--html page.html")
    assert result.exit_code == 1
    page = Path("page.html").read_text(encoding="utf-8")
    assert "wrote page.html" in result.stderr
    assert "hazard in shared memory at lines 3 and 5." in page
    assert "by thread (31, 0, 0) of block (0, 0, 0)" in page
    assert "check reverse.cu -g 1,1,1 -b 64,1,1 -a &#39;f32[64]&#39;" in page
    assert check("__syncthreads();", "--html page.html").exit_code == 0
    assert "Nothing was found." in Path("page.html").read_text(encoding="utf-8")


def test_the_command_of_a_page_repeats_the_check():
    more = "--option -use_fast_math --arch sm_80 --blocks 1 --seed 3"
    assert check("__syncthreads();", f"{more} --html page.html").exit_code == 0
    page = unescape(Path("page.html").read_text(encoding="utf-8"))
    (command,) = re.findall(r"python -m toolkit (check reverse.cu .*?)<", page)
    assert "-D 'BARRIER=__syncthreads();' --option -use_fast_math --seed 3 --device a100" in command
    assert command.endswith("--blocks 1")
    assert invoke(f"{command} --html again.html").exit_code == 0
    again = unescape(Path("again.html").read_text(encoding="utf-8"))
    assert command in again


def test_a_page_overwrites_no_source():
    result = check("", "--html reverse.cu")
    assert result.exit_code == 1
    assert "the command reads reverse.cu" in result.stderr


def test_an_access_out_of_bounds_is_a_finding_not_an_error():
    result = invoke("check reverse.cu -g 1 -b 64 -a f32[63] -a f32[64] -D BARRIER=")
    assert result.exit_code == 1
    assert "memcheck: " in result.output
    assert "right after the end of argument 0 `x`" in result.output


def test_an_endless_loop_is_one_line():
    write("hangs.cu", 'extern "C" __global__ void hangs(volatile int *x) { while (!*x) ++x[1]; }')
    result = invoke("check hangs.cu -g 1 -b 32 -a i32[2]=zeros --max-instructions 100000")
    assert result.exit_code == 1
    assert "endless loop" in result.stderr
    assert result.stdout == ""


def test_a_check_that_does_not_fit_into_memory_is_one_line(monkeypatch):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 1000)
    result = check("__syncthreads();")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: reverse: a check takes up to 0.0 GB on the host, 0.0 GB are free: "
        "take a smaller launch\n"
    )


def test_a_kernel_without_parameters_has_the_limits_of_the_architecture_that_was_asked_for():
    # compiled for sm_75, which no longer has the 96 KiB of sm_70
    source = 'extern "C" __global__ void f() { extern __shared__ float s[]; s[threadIdx.x] = 1; }'
    launch = {"grid": 1, "block": 32, "arguments": [], "arch": "sm_70"}
    assert not check_kernel(source, "f", dynamic_shared_bytes=80 * 1024, **launch).findings
    with pytest.raises(InputError, match="sm_70 has 98,304"):
        check_kernel(source, "f", dynamic_shared_bytes=100 * 1024, **launch)


def test_a_rung_is_checked_by_its_name():
    result = invoke("check tiled -s 40x36x33 --blocks 2 -d t4")
    assert result.exit_code == 0
    assert result.output == (
        "sgemm_tiled: no errors: memcheck, racecheck, synccheck, initcheck on 4 of 4 blocks\n"
    )
    missing = invoke("check tiled")
    assert missing.exit_code == 1
    assert missing.stderr.startswith("error: tiled is a rung: give the shape")
