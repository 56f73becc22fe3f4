"""--set, --cooperative, --heap and what kernels print, from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.toolkit.cli.commands import invoke

SOURCE = r"""
__constant__ float filter[3];
__constant__ int n;
__device__ float last[4];
extern "C" __global__ void smooth(float *x) {
    float sum = 0;
    for (int k = 0; k < n; k++) sum += filter[k] * x[threadIdx.x];
    last[threadIdx.x % 4] = sum;
    if (threadIdx.x < 30) printf("%d %.1f\n", threadIdx.x, sum);
}"""
LAUNCH = ["-g", "1", "-b", "32", "-a", "f32[32]=ones"]


@pytest.fixture
def source(folder):
    Path("smooth.cu").write_text(SOURCE)
    return "smooth.cu"


def cli(*words, code=0):
    ran = invoke(*words)
    assert ran.exit_code == code, ran.output
    return ran


def test_settings_are_used_kept_and_repeated(source):
    np.save("filter.npy", np.array([1, 2, 4], np.float32))
    settings = ["--set", "filter=filter.npy", "--set", "n=3", "--heap", "65536"]
    ran = cli("simulate", source, *LAUNCH, *settings, "--save", "last=last.npy", "--json")
    document = json.loads(ran.stdout)
    assert document["settings"] == ["filter=filter.npy", "n=3"]
    assert (document["cooperative"], document["heap_bytes"]) == (False, 65536)
    assert document["printed"].splitlines()[0] == "0 7.0"
    assert document["variables"] == [
        {"name": "last", "type": "float32", "shape": [4], "values": [7.0] * 4}
    ]
    np.testing.assert_array_equal(np.load("last.npy"), np.full(4, 7, np.float32))


def test_any_value_of_a_variable_is_kept_in_json_and_read_again(folder):
    Path("values.cu").write_text("""
struct Pair { int a; float b; };
__device__ int below;
__device__ float values[3];
__device__ Pair pair;
__device__ double2 both;
__device__ unsigned short small[2];
extern "C" __global__ void k(float *x) {
    below = -3;
    values[0] = x[0] / 0.0f;
    values[1] = -values[0];
    values[2] = __int_as_float(0x7fffffff);
    pair.a = -1;
    pair.b = 0.5f;
    both.x = -1.5;
    both.y = values[1];
    small[0] = 0x3f80;
    small[1] = 0xff80;
}""")
    settings = [
        *("--set", "pair=struct:i32=1,f32=2", "--set", "both=c128[1]=zeros"),
        *("--set", "small=bf16[2]=zeros"),
    ]
    launch = ["-g", "1", "-b", "1", "-a", "f32[1]=ones", *settings, "--no-remedies", "--json"]
    ran = cli("simulate", "values.cu", *launch)
    Path("values.json").write_text(ran.stdout)

    def refused(constant):
        raise ValueError(f"JSON has no {constant}")

    document = json.loads(ran.stdout, parse_constant=refused)
    assert {one["name"]: one["values"] for one in document["variables"]} == {
        "below": -3,
        "values": ["inf", "-inf", "nan"],
        "pair": [-1, 0.5],
        "both": [[-1.5, "-inf"]],
        "small": [1.0, "-inf"],
    }
    assert "wrote values.html" in cli("report", "values.json").stderr


def test_the_first_lines_are_printed_and_the_others_counted(source):
    ran = cli("simulate", source, *LAUNCH, "--set", "n=1", "--no-remedies")
    lines = ran.stdout.splitlines()
    assert lines[:2] == ["printed by the kernel:", "  0 0.0"]
    assert lines[20:22] == ["  19 0.0", "  and 10 more lines (--json has all)"]
    assert "note: `filter` was not set, and the kernel reads it" in ran.stdout
    assert "printed by the kernel:\n  0 0.0\n" in cli("check", source, *LAUNCH).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "n"], "--set 'n' is not understood: give the name of a variable"),
        (["--set", "m=3"], "the source declares no variable m, only filter, n, last"),
        (["--set", "filter=3"], "the kernel takes `float filter[3]`: give a buffer"),
        (["--set", "n=3", "--set", "n=4"], "n was set before"),
        (["--set", "n=i64=3"], "`n` (int n) has 4 bytes, and int64 has 8: give i32"),
        (["--set", "filter=f32[3]=unwritten"], "give its content, such as zeros"),
        (["--save", "lost=x.npy"], "unknown __device__ variable 'lost'"),
    ],
)
def test_wrong_settings_are_one_line(source, words, message):
    ran = cli("simulate", source, *LAUNCH, *words, code=1)
    assert ran.stderr.count("\n") == 1
    assert message in ran.stderr


def test_a_cooperative_launch_is_asked_for_by_name(folder):
    Path("grid.cu").write_text("""extern "C" __global__ void k(unsigned *x) {
        asm("mov.u32 %0, %%envreg2;" : "=r"(x[threadIdx.x]));
    }""")
    launch = ["grid.cu", "-g", "2", "-b", "1", "-a", "u32[1]=zeros"]
    assert "add --cooperative" in cli("simulate", *launch, code=1).stderr
    document = json.loads(cli("simulate", *launch, "--cooperative", "--json").stdout)
    assert document["cooperative"] is True


def test_what_was_printed_before_a_fault_stands_above_the_error(folder):
    Path("late.cu").write_text("""extern "C" __global__ void k(int *x) {
        for (int i = 0; i < 25; i++) printf("at %d\\n", i);
        x[8] = 1;
    }""")
    ran = cli("simulate", "late.cu", "-g", "1", "-b", "1", "-a", "i32[8]", code=1)
    lines = ran.stderr.splitlines()
    assert lines[0] == "printed by the kernel before it failed, after 5 other lines:"
    assert lines[1:21] == [f"  at {i}" for i in range(5, 25)]
    assert lines[21].startswith("error: k: global write of 4 bytes out of bounds")
