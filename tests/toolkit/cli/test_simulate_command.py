"""The command `simulate` as a stranger meets it: what is shown, and one line per mistake."""

import json
import os
import re
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.devices import DEVICES
from analysis.errors import InputError
from analysis.problem import parse_shape
from analysis.records.counters import COUNTERS, MODELLED
from tests.cubins import cubin_of
from tests.sampling import exhaustive, sampled
from tests.toolkit.cli.commands import interrupted, invoke, refused, write
from toolkit import profile
from toolkit.cli import terminal as console
from toolkit.cli.argument_syntax import make_arguments, parse_arguments
from toolkit.execution.simulate import simulate
from toolkit.machine_code.elf import HEADER, SECTION, cubin_file
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.rungs.matrices import Workload
from toolkit.store.profile_json import load_launch
from validation import ROOT

pytestmark = pytest.mark.usefixtures("without_remedies")

# Line 7 loads rows; line 11 reads a column of shared memory: 32 words of one bank.
TRANSPOSE = """#ifndef TILE
#define TILE 32
#endif
extern "C" __global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
"""
ARGUMENTS = "-a f32[64,64] -a f32[64,64]=zeros -a i32=64"
GRID = f"-g 2,2 -b 32,32 {ARGUMENTS}"
LAUNCH = f"transpose.cu {GRID}"

COLUMN = """__global__ void column(const float *in, float *out) {
    out[threadIdx.x] = in[threadIdx.x * 8];
}
"""
ADD = "__global__ void add(float *x) { x[threadIdx.x] += 1; }\n"


@pytest.fixture(autouse=True)
def sources(folder):
    write("transpose.cu", TRANSPOSE)
    write("add.cu", ADD)


def shown(command):
    result = invoke(f"simulate {command}")
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def detailed(command):
    """Lines that `--verbose` adds: the launch, its counters and bounds, and remarks."""
    return _details(shown(f"{command} --verbose"))


def _details(said):
    """From the line on that names the kernel, its source and the architecture."""
    lines = said.splitlines(keepends=True)
    first = next(k for k, line in enumerate(lines) if re.match(r"\S+ of \S+ for sm_\d+ \(", line))
    return "".join(lines[first:])


def document(command):
    return json.loads(shown(f"{command} --json"))


# --- what is shown ------------------------------------------------------------------------------


def test_the_launch_is_told_on_demand():
    said = detailed(f"{LAUNCH} --seed 5 -d h200").splitlines()
    first, grid, arguments, seed, basis, traffic, resources, empty, *_ = said
    assert first == "transpose of transpose.cu for sm_90 (NVRTC 13.0.88)"
    assert grid == "  grid 2×2×1 of 32×32×1 threads: 4 blocks, 4,096 threads"
    assert arguments == "  in: f32[64,64]=random; out: f32[64,64]=zeros; n: i32=64"
    assert seed == "  random buffers: --seed 5 repeats them"
    assert re.fullmatch(
        r"  all 4 blocks executed in \S+ [mµn]?s \(\S+( million)? thread instructions per second\)",
        basis,
    )
    assert traffic.startswith("  L2 and DRAM: modelled for NVIDIA H200 SXM 141 GB: ")
    assert re.fullmatch(
        r"  \d+ registers and no local memory per thread, 4 KiB static shared memory per block",
        resources,
    )
    assert empty == ""


def test_shared_memory_of_the_code_and_of_the_launch_are_told_apart():
    said = detailed(f"{LAUNCH} --shared 1024 -d h200")
    assert "thread, 4 KiB static + 1 KiB dynamic shared memory per block\n" in said


SCALE = """extern "C" __global__ void scale(float *y, const float *x, float a) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    y[i] = a * x[i];
}
"""
PRODUCT = """extern "C" __global__ void product(float *c, const float *a, const float *b, int n) {
    const int j = threadIdx.x, i = blockIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] = sum;
}
"""


def test_the_first_lines_are_the_time_its_cause_and_the_line():
    call = "transpose.cu -g 64,64 -b 32,32 -a f32[2048,2048] -a f32[2048,2048] -a i32=2048 -d h200"
    time, cause, line, *_ = shown(call).splitlines()
    said = r"transpose: \d\S+ µs \(\S+ to \S+\) predicted on NVIDIA H200 SXM 141 GB, L2 dirty\."
    assert re.fullmatch(said, time)
    whole = re.search(r"(\S+) µs", time)[1]
    told = rf"Shared-memory bank conflicts (limit it|take the most time): \S+ of {whole} µs\."
    assert re.fullmatch(told, cause)
    assert line == "Line 11 takes 32 wavefronts per shared load, ideal 1."


def test_the_answer_fits_a_screen_and_says_nothing_twice():
    call = "transpose.cu -g 64,64 -b 32,32 -a f32[2048,2048] -a f32[2048,2048] -a i32=2048 -d h200"
    lines = shown(call).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 120
    told = [line.strip() for line in lines if line.strip()]
    assert len(told) == len(set(told))


def test_parts_of_the_time_are_bars_the_cause_first():
    call = "transpose.cu -g 64,64 -b 32,32 -a f32[2048,2048] -a f32[2048,2048] -a i32=2048 -d h200"
    said, predicted = shown(call), document(call)["predicted"]
    after = said.split("\ntime, µs\n")[1].split("\n\n")[0]
    rows = re.findall(r"^  (\S.*?)  +(█*) +(\S+)$", after, re.MULTILINE)
    assert rows[0][0] == "bank conflicts"
    times = [float(time) for *_, time in rows]
    assert sum(times) == pytest.approx(1e6 * predicted["time_s"], rel=0.01)
    bars = [len(bar) for _, bar, _ in rows]
    assert bars[0] == max(bars) == 24


def test_the_first_lines_are_the_verdict_of_the_execution():
    arguments = make_arguments(parse_arguments(["f32[512]=ones", "f32[64]=ones"]), seed=1)
    write("column.cu", COLUMN)
    execution = simulate("column.cu", grid=1, block=64, arguments=arguments, device="h200")
    call = "column.cu -g 1 -b 64 -a f32[512]=ones -a f32[64]=ones --device h200"
    assert shown(call).startswith(f"{execution.verdict}\n")
    assert execution.verdict.count("\n") == 2


def test_without_a_device_the_time_is_that_of_the_default_device():
    at_seed = f"{LAUNCH} --seed 5"
    unnamed = document(at_seed) | {"simulation_s": 0}
    assert unnamed == document(f"{at_seed} --device {DEFAULT_DEVICE.key}") | {"simulation_s": 0}
    assert shown(LAUNCH).startswith("transpose: ")
    time = shown(LAUNCH).splitlines()[0]
    assert time.endswith(f" predicted on {DEFAULT_DEVICE.name}, L2 dirty.")


@pytest.mark.parametrize(("arch", "device"), [("sm_80", "a100-40gb"), ("sm_86", "rtx-3090")])
@pytest.mark.parametrize("is_cubin", [False, True])
def test_without_a_device_it_is_one_of_the_architecture(arch, device, is_cubin):
    launch = f"{LAUNCH} --arch {arch}"
    if is_cubin:
        cubin = cubin_of(TRANSPOSE, "transpose", arch)
        Path("transpose.cubin").write_bytes(cubin.image)
        launch = f"transpose.cubin {GRID}"
    found = document(launch)
    assert (found["device"], found["predicted"]["constants"][:5]) == (device, arch)


def test_of_an_architecture_without_a_known_device_there_is_no_time():
    cubin = cubin_of(TRANSPOSE, "transpose", "sm_87")
    Path("transpose.cubin").write_bytes(cubin.image)
    for launch in (f"transpose.cubin {GRID}", f"{LAUNCH} --arch sm_87"):
        time, limiter, *_ = shown(launch).splitlines()
        assert time == "transpose: not predicted: no device of sm_87 is known."
        assert limiter == "What limits it is unknown without a predicted time."
        found = document(launch)
        assert found["device"] is found["predicted"] is found["traffic_basis"] is None


@pytest.mark.parametrize("arch", [None, "sm_80", "sm_87"])
def test_from_python_the_device_and_the_time_are_those_of_the_command(arch):
    arguments = make_arguments(parse_arguments(["f32[32]=ones"]), seed=1)
    execution = simulate("add.cu", grid=1, block=32, arguments=arguments, arch=arch)
    option = f"--arch {arch}" if arch else ""
    call = f"add.cu -g 1 -b 32 -a f32[32]=ones {option}"
    assert shown(call).startswith(f"{execution.verdict}\n")
    found = document(call)
    assert found["device"] == (execution.device.key if execution.device else None)
    assert found["prediction_basis"] == execution.prediction_basis
    assert (execution.predicted is None) == (arch == "sm_87")


def test_from_python_nothing_is_predicted_if_that_is_asked_for():
    arguments = make_arguments(parse_arguments(["f32[32]=ones"]), seed=1)
    launch = {"grid": 1, "block": 32, "arguments": arguments, "predict": False}
    execution = simulate("add.cu", device="t4", **launch)
    assert (execution.resources.architecture, execution.device) == ("sm_75", None)
    assert "dram__bytes_read.sum" not in execution.counters
    with pytest.raises(InputError, match="leave out predict=False"):
        simulate("add.cu", constants="constants.json", **launch)
    time, limiter, line = execution.verdict.splitlines()
    assert time == "add: not predicted."
    assert limiter == "What limits it is unknown without a predicted time."
    assert line.startswith("Line 1 has the most warp instructions: ")


def test_a_kernel_that_dram_limits_has_no_flop_rate():
    write("scale.cu", SCALE)
    call = "scale.cu -g 32768 -b 256 -a f32[8388608] -a f32[8388608] -a f32=2 --device rtx-3090"
    said = shown(f"{call} --verbose")
    time, cause, *_ = said.splitlines()
    assert " predicted on NVIDIA GeForce RTX 3090, L2 dirty. " in time
    assert cause.startswith("DRAM bandwidth limits it: ")
    assert re.search(r"^busy +DRAM \S+ %, ", said, re.MULTILINE)
    for word in ("FLOP", "product", "multiply-adds", "FP32 peak"):
        assert word not in said


def test_a_matrix_product_has_its_flop_rate():
    write("product.cu", PRODUCT)
    arguments = 3 * "-a f32[64,64] "
    said = shown(f"product.cu -g 64 -b 64 -d h200 {arguments} -a i32=64")
    assert re.search(r"^rate +\S+ GFLOP/s$", said, re.MULTILINE)


def test_counters_are_shown_in_groups_with_what_follows_from_them():
    said = detailed(LAUNCH)
    rows = re.findall(r"^ {2,}(\S.*?) {2,}(\S+)( of 32)?\s*$", said, re.MULTILINE)
    values = {meaning.removesuffix(" (noisy)"): value for meaning, value, _ in rows}
    assert values["requests of global loads"] == "128"  # 4 blocks · 32 warps
    assert values["32-byte sectors of global loads"] == "512"  # 4 per request
    assert values["sectors per request (ideal)"] == "4"
    assert values["wavefronts of shared loads"] == "4,096"  # 32 per request
    assert values["bank conflicts per access"] in ("31", "0")  # of loads, of stores
    assert values["active threads per warp instruction"] == "32"
    order = [
        said.index(f"\n {group} ") for group in ("instructions", "global memory", "shared memory")
    ]
    assert order == sorted(order)
    assert "local memory\n" not in said
    assert "reductions" not in said  # zeros are left out


def test_names_of_nsight_compute_are_shown_where_there_is_room(monkeypatch):
    name = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert name not in detailed(LAUNCH)
    monkeypatch.setattr(console.out, "width", 140)
    assert name in detailed(LAUNCH)


def test_source_lines_are_shown_and_the_conflicting_one_is_called_out():
    said = shown(LAUNCH)
    assert re.search(r"^ +7 +tile\[threadIdx.y\]\[.*… +\S+ +4 +1( +\S+)? *$", said, re.MULTILINE)
    assert re.search(r"^ +11 +out\[y \* n \+ x\].*… +\S+ +4 +32, ideal 1( +\S+)? *$", said, re.M)
    assert detailed(LAUNCH).endswith(
        "\nline 11: shared loads take 32 wavefronts each instead of 1 (bank conflicts)\n"
    )


def test_a_line_with_two_accesses_shows_both_and_no_mean():
    write(
        "two.cu",
        "__global__ void two(float *y, const float *x) {\n"
        "    y[threadIdx.x] = x[threadIdx.x] + x[32 * threadIdx.x];\n}\n",
    )
    said = shown("two.cu -g 1 -b 32 -a f32[32] -a f32[1024]")
    assert re.search(r"^ +2 .* 32 and 4, ideal 4( +\S+)? *$", said, re.MULTILINE)


def test_an_uncoalesced_line_is_called_out():
    write("column.cu", COLUMN)
    said = detailed("column.cu -g 1 -b 64 -a f32[512] -a f32[64]")
    # a sector holds 8 floats: each lane has its own
    remark = "global loads take 32 sectors each instead of 4 (uncoalesced)"
    assert said.endswith(f"\nline 2: {remark}\n")


def test_divergence_and_local_memory_are_called_out():
    write(
        "d.cu",
        "__global__ void d(float *x, int n) {\n"
        "    float v[64];\n"
        "    for (int i = 0; i < 64; i++) v[i] = x[i];\n"
        "    float sum = 0;\n"
        "    for (int i = 0; i < threadIdx.x; i++) sum += v[i * n % 64];\n"
        "    x[threadIdx.x] = sum;\n}\n",
    )
    said = detailed("d.cu -g 1 -b 32 -a f32[64] -a i32=7")
    assert "line 5: local loads: " in said
    assert re.search(r"line 5: splits \S+ % of the warps that branch here", said)
    assert re.search(r"registers and \S+ B local memory per thread", said)


def test_only_the_dearest_lines_are_shown_unless_all_are_asked_for():
    said = shown(f"{LAUNCH} --top 2")
    more = re.search(r"^ +(\d+) more lines: --top (\d+)$", said, re.MULTILINE)
    assert int(more[1]) + 2 == int(more[2])
    rows = re.findall(r"^ +(\d+)  \S.* \d", said.partition(" line  source")[2], re.M)
    assert sorted(rows) == ["11", "7"]
    assert "more line" not in shown(f"{LAUNCH} --top {more[2]}")
    assert " line  source" not in shown(f"{LAUNCH} --no-lines")


def test_machine_code_without_lines_says_so():
    cubin = cubin_of(TRANSPOSE, "transpose", "sm_80", options=())
    Path("transpose.cubin").write_bytes(cubin.image)
    said = shown(f"transpose.cubin {GRID} --verbose")
    assert "\n\ntranspose of transpose.cubin for sm_80 (ptxas 13.0.88)\n" in said
    assert "  0: f32[64,64]=random; 1: f32[64,64]=zeros; 2: i32=64\n" in said
    assert "\nno source lines: the machine code was compiled without -lineinfo\n" in said
    assert said.splitlines()[2].startswith("No source lines: the machine code was compiled")


@pytest.mark.parametrize("section", [b".nv.info.add", b".text.add", b".symtab", b".strtab"])
@pytest.mark.parametrize("command", ["simulate", "check"])
def test_a_cubin_without_one_of_its_sections_is_damaged(command, section):
    image = cubin_of(ADD, "add", "sm_80").image
    symbol = b"_Z3addPf" if section.endswith(b"add") else b""
    name = section.removesuffix(b"add") + symbol
    assert name + b"\0" in image
    refused_as_damaged(command, image.replace(name + b"\0", name[:-1] + b"?\0"))


@pytest.mark.parametrize("command", ["simulate", "check"])
def test_a_cubin_without_an_instruction_is_damaged(command):
    image = bytearray(cubin_of(ADD, "add", "sm_80").image)
    index = cubin_file(bytes(image)).names.index(".text._Z3addPf")
    size_at = HEADER.unpack_from(image)[6] + index * SECTION.size + 0x20  # of a section's header
    image[size_at : size_at + 8] = bytes(8)
    refused_as_damaged(command, bytes(image))


def refused_as_damaged(command, image):
    Path("bad.cubin").write_bytes(image)
    said = refused(f"{command} bad.cubin -g 1 -b 32 -a f32[32]")
    assert said.startswith("bad.cubin: the machine code ")


def test_lines_of_other_files_are_named_by_them():
    write(
        "mine.cuh", "__device__ __noinline__ void store(float *x)\n{\n    x[threadIdx.x] = 2;\n}\n"
    )
    write("a.cu", '#include "mine.cuh"\n__global__ void a(float *x) {\n    store(x);\n}\n')
    said = shown("a.cu -g 1 -b 32 -a f32[32]")
    assert re.search(r"^ +3 +mine.cuh ", said, re.MULTILINE)


IN_A_HEADER = """template <int N>
__global__ void scale(float *x) {
    x[blockIdx.x * N + threadIdx.x] *= 2;
}
"""
LAUNCH_OF_A_HEADER = """#include <vector>
#include "sub/scale.cuh"
int main() {
    float *x;
    cudaMalloc(&x, 1024 * sizeof(float));
    scale<64><<<16, 64>>>(x);
}
"""


def test_the_lines_of_a_kernel_in_a_header_have_their_text():
    Path("sub").mkdir()
    write("sub/scale.cuh", IN_A_HEADER)
    write("scale.cu", LAUNCH_OF_A_HEADER)
    said = shown("scale.cu --html page.html")
    assert "Line 3 of scale.cuh costs most" in said
    assert re.search(r"^ +3 +x\[blockIdx.x \* N", said, re.MULTILINE)
    assert "x[blockIdx.x * N + threadIdx.x] *= 2;" in Path("page.html").read_text()
    text = {one["line"]: one["text"] for one in document("scale.cu")["lines"]}
    assert text[3] == "x[blockIdx.x * N + threadIdx.x] *= 2;"


HELPERS = """#include "third.cuh"
__device__ __forceinline__ float sum(const float *p) {
    return third(p) + third(p + 32);
}
__global__ void k(float *y, const float *x) {
    float v = sum(x + 33 * threadIdx.x);
    v += third(x + 8 * threadIdx.x);
    y[threadIdx.x] = v;
}
"""
LOADS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


def loads_by_line(command):
    found = document(command)["lines"]
    return {(x["file"], x["line"]): x["counters"].get(LOADS, 0) for x in found}


def test_inlined_functions_count_for_the_lines_of_the_kernel_that_call_them():
    write(
        "third.cuh", "__device__ __forceinline__ float third(const float *p) { return 3 * *p; }\n"
    )
    write("k.cu", HELPERS)
    command = "k.cu -k k -g 1 -b 32 -a f32[32] -a f32[2048]"
    loads = {place: count for place, count in loads_by_line(command).items() if count}
    assert loads == {("k.cu", 6): 2, ("k.cu", 7): 1}
    inner = loads_by_line(f"{command} --inner-lines")
    assert {place: count for place, count in inner.items() if count} == {("third.cuh", 1): 3}
    hint = "lines of inlined functions: --inner-lines\n"
    said = shown(f"{command} --seed 1")
    assert hint in said
    assert re.search(r"^ +6 +float v = sum.* 32, ideal 4( +\S+)? *$", said, re.MULTILINE)
    assert hint not in shown(f"{command} --inner-lines")


def test_the_command_of_a_record_repeats_the_launch():
    write("third.cuh", "__device__ float third(const float *p) { return TIMES * *p; }\n")
    write("k.cu", HELPERS)
    asked = (
        "k.cu -g 1 -b 32 -a f32[32] -a f32[2048] --option -DTIMES=3 --arch sm_86 --inner-lines "
        "--limit 2.5 --max-instructions 1000000 --clock 1234.56789 --blocks 1"
    )
    first = document(f"{asked} --no-remedies")
    write("k.json", json.dumps(first))
    command = load_launch("k.json").command.removeprefix("python -m toolkit simulate ")
    assert "--clock 1234.56789 --limit 2.5 --max-instructions 1000000" in command
    assert command.endswith("--blocks 1")
    again = document(f"{command} --no-remedies")
    assert again | {"simulation_s": None} == first | {"simulation_s": None}


def test_an_expensive_line_is_that_of_the_call():
    write(
        "k.cu",
        "__device__ __forceinline__ void put(float *p, float v) {\n"
        "    p[32 * (blockIdx.x * blockDim.x + threadIdx.x)] = v;\n}\n"
        "__global__ void k(float *y) {\n    put(y, threadIdx.x);\n}\n",
    )
    command = "k.cu -k k -g 1024 -b 256 -a f32[8388608]"
    call, inner = (document(f"{command} {x}")["predicted"]["lines"] for x in ("", "--inner-lines"))
    (of_call,) = (x["time_s"] for x in call if x["line"] == 5)
    (of_store,) = (x["time_s"] for x in inner if x["line"] == 2)
    assert of_call >= of_store > 0
    assert [x["line"] for x in call if x["line"] == 2] == []


@pytest.mark.parametrize("width", [1, 20, 60, 200])
def test_any_width_will_do(width, monkeypatch):
    monkeypatch.setattr(console.out, "width", width)
    shown(LAUNCH)


def test_an_unwritten_read_is_a_note():
    write("u.cu", "__global__ void u(float *x) { __shared__ float t[32]; x[0] = t[threadIdx.x]; }")
    said = shown("u.cu -g 1 -b 1 -a f32[1]")
    assert "\nnote: shared memory was read once where no thread had written, first 4 bytes" in said


# --- options ------------------------------------------------------------------------------------


def test_the_document_holds_everything():
    found = document(f"{LAUNCH} --seed 5 -D UNUSED=2 --option --fmad=false")
    assert found["schema_version"] == 5
    assert found["device"] == DEFAULT_DEVICE.key
    assert (found["kernel"], found["source"]) == ("transpose", "transpose.cu")
    assert (found["grid"], found["block"]) == ([2, 2, 1], [32, 32, 1])
    assert found["arguments"] == ["f32[64,64]", "f32[64,64]=zeros", "i32=64"]
    assert found["seed"] == 5
    assert found["defines"] == {"UNUSED": "2"}
    assert found["options"] == ["-lineinfo", "--fmad=false"]
    assert found["resources"]["static_shared_bytes"] == 4096
    assert found["basis"] == "all 4 blocks executed"
    assert found["executed_blocks"] == 4
    assert set(found["counters"]) == {*COUNTERS, *MODELLED}
    warps = "smsp__inst_executed.sum"
    assert sum(line["counters"][warps] for line in found["lines"]) == found["counters"][warps]
    assert sum(i["executed"] for i in found["instructions"]) == found["counters"][warps]
    inputs = make_arguments(parse_arguments(found["arguments"]), seed=5)
    assert found["outputs"] == [
        {
            "argument": position,
            "type": "float32",
            "shape": [64, 64],
            "sha256": sha256(np.ascontiguousarray(content).tobytes()).hexdigest(),
        }
        for position, content in ((0, inputs[0]), (1, inputs[0].T))
    ]
    again = document(f"{LAUNCH} --seed 5 -D UNUSED=2 --option --fmad=false")
    assert again | {"simulation_s": 0} == found | {"simulation_s": 0}


def test_buffers_are_kept_where_it_is_asked():
    result = invoke(f"simulate {LAUNCH} --save 0=in.npy --save 1=out.npy")
    assert result.exit_code == 0
    assert result.stderr == "wrote in.npy\nwrote out.npy\n"
    assert np.array_equal(np.load("out.npy"), np.load("in.npy").T)


def test_a_saved_buffer_can_be_an_argument():
    np.save("x.npy", np.arange(32, dtype=np.float32))
    launch = "add.cu -g 1 -b 32"
    shown(f"{launch} -a x.npy --save 0=y.npy")
    shown(f"{launch} -a y.npy --save 0=z.npy")
    assert np.load("z.npy").tolist() == [i + 2.0 for i in range(32)]


@pytest.mark.parametrize("argument", ["x.npy", "f32[32]=x.npy"])
@pytest.mark.parametrize("output", ["x.npy", "./x.npy", "sub/../x.npy", "soft.npy", "hard.npy"])
def test_an_input_is_never_overwritten(argument, output):
    np.save("x.npy", np.arange(32, dtype=np.float32))
    Path("sub").mkdir()
    Path("soft.npy").symlink_to("x.npy")
    os.link("x.npy", "hard.npy")
    before = Path("x.npy").read_bytes()
    said = refused(f"simulate add.cu -g 1 -b 32 -a {argument} --save 0={output}")
    assert said.startswith(f"--save '0={output}': {Path(output)} is already used: give another")
    assert Path("x.npy").read_bytes() == before


@pytest.mark.parametrize("name", ["one.cuh", "sub/two.cuh", "three.cuh", "four.h"])
def test_what_a_source_includes_is_never_overwritten(name):
    Path("sub").mkdir()
    write("one.cuh", '#include "sub/two.cuh"\n')
    write("sub/two.cuh", '#include "../absent.cuh"\n')
    write("sub/three.cuh", "")
    write("four.h", "")
    write("add.cu", f'#include "one.cuh"\n#include <three.cuh>\n{ADD}')
    path = "sub/three.cuh" if name == "three.cuh" else name
    options = "--option -Isub --option --pre-include=four.h"
    said = refused(f"simulate add.cu -g 1 -b 32 -a f32[32] {options} --save 0={path}")
    assert path in said
    assert "give another" in said


def test_a_file_of_the_project_is_never_overwritten():
    rung = ROOT / "kernels" / "sgemm" / "04_tiled.cu"
    before = rung.read_bytes()
    for command in (
        f"simulate add.cu -g 1 -b 32 -a f32[32] --save 0={rung}",
        f"simulate tiled --shape 64 --blocks all --save 2={rung}",
        f"profile --shape 64 --executor theory --record {rung}",
        f"profile --shape 64 --executor theory --html {rung}",
        f"tune tiled --shape 64 --record {rung}",
    ):
        assert refused(command).startswith(f"cannot write {rung}: it is a file of gemm-ladder: ")
    assert rung.read_bytes() == before


def test_every_option_reaches_the_simulation(monkeypatch):
    asked, compiled = {}, {}
    write("transpose.cu", TRANSPOSE + "__constant__ int scale;\n")

    def remembered(source, kernel, **settings):
        asked.update(settings, source=source.name, kernel=kernel)
        return simulate(source, kernel, **settings)

    def compiled_so(source, kernel, **settings):
        compiled.update(settings, source=source, kernel=kernel)
        return compile_kernel(source, kernel, **settings)

    monkeypatch.setattr("toolkit.cli.call.simulate", remembered)
    monkeypatch.setattr("toolkit.cli.launch_source.compile_kernel", compiled_so)
    options = (
        "-k transpose --shared 1024 --arch sm_80 --define TILE=32 -D X --option -fmad=false "
        "--blocks representative --max-instructions 1000000 --seed 7 --limit 2.5 --inner-lines "
        "--cooperative --heap 1024 --set scale=3 --l2 warm --allow-out-of-bounds"
    )
    shown(f"{LAUNCH} {options}")
    for name in ("arguments", "advance", "announce", "when_counted"):
        asked.pop(name)
    assert compiled == {
        "source": Path("transpose.cu"),
        "kernel": "transpose",
        "target": "sm_80",
        "defines": {"TILE": "32", "X": "1"},
        "options": ("-lineinfo", "-fmad=false"),
    }
    assert asked == {
        "source": "transpose",
        "kernel": "transpose",
        "grid": (2, 2, 1),
        "block": (32, 32, 1),
        "dynamic_shared_bytes": 1024,
        "arch": "sm_80",
        "options": ("-lineinfo", "-fmad=false"),
        "blocks": "representative",
        "max_instructions": 10**6,
        "device": DEVICES["a100-40gb"],  # of the architecture
        "outputs": False,
        "limit_s": 2.5,
        "seed": 7,
        "inner_lines": True,
        "cooperative": True,
        "heap_bytes": 1024,
        "symbols": {"scale": np.int32(3)},
        "l2": "warm",
        "allow_out_of_bounds": True,
    }


@pytest.mark.parametrize(
    ("device", "arch", "note"),
    [
        ("rtx-3090", "sm_86", None),
        ("NVIDIA H200", "sm_90", None),
        ("gtx-1080-ti", "sm_75", "sm_61"),
        ("v100", "sm_75", "sm_70"),
    ],
)
def test_a_device_stands_for_its_architecture(device, arch, note):
    said = shown(f"{LAUNCH} --device '{device}' --no-lines --verbose")
    assert f"\n\ntranspose of transpose.cu for {arch} (" in said
    assert ("\nnote: compiled for sm_75, because this compiler does not" in said) == bool(note)
    assert note is None or f"the device's own {note}: " in said


def test_a_device_adds_the_predicted_time_and_what_limits_it(monkeypatch):
    monkeypatch.setattr(console.out, "width", 100)
    said = shown(f"{LAUNCH} --device h200 --no-lines --verbose")
    assert re.search(r"^\d\.\d+ µs predicted on NVIDIA H200 SXM 141 GB$", said, re.MULTILINE)
    limited = (
        r"^  limited by [\w ]+ \((busy )?\S+ % of the time\), then [\w ]+ \("  # latency is not busy
    )
    assert re.search(limited, said, re.MULTILINE)
    assert "constants of sm_90, measured, fitted on such a device" in said
    bounds = re.search(r" resource alone .*?\n\n? *\n", said, re.DOTALL)
    assert bounds
    assert re.search(r"^ latency +\S+ [nµ]s  a block takes at least", bounds[0], re.MULTILINE)
    assert "from FP32 peak" not in said  # a transpose does no FLOP
    assert max(map(len, said.split("resource alone")[1].splitlines())) <= 100


def test_the_document_has_the_prediction():
    found = document(f"{LAUNCH} --device h200")
    assert found["predicted"]["limiter"] in {b["name"] for b in found["predicted"]["bounds"]}
    assert found["predicted"]["time_s"] > found["predicted"]["launch_s"]
    assert found["prediction_basis"].startswith(found["predicted"]["basis"])


def test_why_there_is_no_prediction_is_told():
    write("big.cu", ADD.replace("x[", "x[blockIdx.x * 32 + "))
    call = "big.cu -g 1000 -b 32 -a f32[32000] --blocks 3 -d h200"
    why = "not predicted: its traffic below L1 is not modelled (it needs the accesses of all blocks"
    said = shown(f"{call} --verbose")
    assert said.startswith(f"add: {why}")
    assert f"\n  time: {why}" in said
    assert document(call)["prediction_basis"].startswith(why)


@pytest.mark.parametrize(
    ("device", "arch", "nearest"), [("gtx-1080-ti", "sm_61", "sm_70"), ("v100", "sm_70", "sm_90")]
)
def test_constants_of_another_architecture_are_labelled(device, arch, nearest):
    label = f"constants of {arch}, mostly taken over from {nearest}, not fitted on such a device"
    said = shown(f"{LAUNCH} -d {device} --verbose")
    assert label in " ".join(said.split())
    time, *_ = said.splitlines()
    assert time.endswith(f". Most constants are those of {nearest}, not of {arch}.")


@pytest.mark.parametrize("device", sampled(DEVICES, lambda device: DEVICES[device].sm_arch))
def test_every_device_can_be_named(device):
    assert invoke(f"simulate add.cu -g 1 -b 32 -a f32[32] -d {device}").exit_code == 0


def test_sizes_may_be_written_with_times_signs():
    for grid, block in (("2,2", "32,32"), ("2x2x1", "32x32"), ("2×2", "' 32, 32 '")):
        found = document(f"transpose.cu -g {grid} -b {block} {ARGUMENTS}")
        assert (found["grid"], found["block"]) == ([2, 2, 1], [32, 32, 1])


def test_the_basis_of_some_blocks_is_told():
    write("big.cu", ADD.replace("x[", "x[blockIdx.x * 32 + "))
    launch = "big.cu -g 1000 -b 32 -a f32[32000]"
    said = shown(f"{launch} --blocks 5")
    agree = "all 3 random ones among them agree: at most 63 % of 1,000 differ"
    assert f"\ncounted   5 of 1,000 blocks executed; {agree}" in said
    assert "Counters are estimates from 5 of 1,000 blocks" in said
    assert "per second" not in said  # of 5 blocks, the counters are of 1,000
    assert (
        " of 1,000 blocks executed; proved: each block has the same counts as all others"
        in shown(launch)
    )
    for everything in ("--blocks all", "--save 0=x.npy"):
        said = shown(f"{launch} {everything} --verbose")
        assert "\ncounted   all 1,000 blocks executed\n" in said
        assert "  all 1,000 blocks executed in" in said


# --- rungs by name ------------------------------------------------------------------------------

RUNG = "tiled --shape 512x512x64 --seed 5 --device h200"


def test_a_rung_by_its_name_says_what_profile_says():
    profiled = profile(["512x512x64"], ["tiled"], device="h200", executor="simulate", seed=5)
    (record,) = profiled.records
    found = document(RUNG)
    assert found["counters"] == record.simulated.counters
    assert found["predicted"]["time_s"] == record.predicted.time_s
    assert found["predicted"]["limiter"] == record.predicted.limiter
    assert found["basis"] == record.simulated.basis
    assert found["executed_blocks"] == record.simulated.blocks_executed
    assert (found["rung"], found["arguments"]) == ("tiled", ["512x512x64"])
    assert (found["grid"], found["block"]) == ([16, 16, 1], [32, 32, 1])
    assert found["outputs"] == []


def test_the_first_lines_of_a_rung_say_which_blocks_stand_for_all():
    said = shown(f"{RUNG} --verbose")
    time, *_ = said.splitlines()
    said_of_time = r"\S+ µs \(\S+ to \S+\) predicted on NVIDIA H200 SXM 141 GB, L2 dirty\."
    assert re.fullmatch(f"sgemm_tiled: {said_of_time}", time)
    assert re.search(r"^counted +\d+ of 256 blocks executed; the other", said, re.MULTILINE)
    assert re.search(r"^rate +\S+ .?FLOP/s$", said, re.MULTILINE)
    first, _, second, *_ = _details(said).splitlines()
    assert first.startswith("sgemm_tiled of 04_tiled.cu for sm_90 ")
    assert second == "  tiled at 512x512x64: random A and B, --seed 5 repeats them"


def test_all_blocks_of_a_rung_leave_its_product():
    shown("stream-k -s 40x36x33 --seed 5 --blocks all --save 2=c.npy")
    work = Workload(parse_shape("40x36x33"), 5)
    assert np.allclose(np.load("c.npy")[:, :36], work.a @ work.b, atol=1e-4)


def test_a_rung_by_its_name_takes_an_architecture():
    found = document("tiled:tile=16 -s 64 --arch sm_80")
    assert found["resources"]["architecture"] == "sm_80"
    assert (found["rung"], found["defines"]) == ("tiled:tile=16", {"TILE": "16"})
    assert found["device"] == "a100-40gb"


def test_the_best_rung_is_named():
    assert document("best -s 64 -d t4")["rung"] != "best"


def test_a_note_says_that_a_product_is_padded():
    (note,) = document("vectorized -s 33 -d h200")["notes"]
    assert note.startswith("padded with zeros to 33x36x36, because")


def test_a_file_is_told_from_a_rung():
    for name in ("tiled", "mine"):
        write(name, ADD)
    launch = "-g 1 -b 32 -a f32[32]"
    assert document(f"./tiled {launch}")["rung"] is None
    assert document(f"mine {launch}")["kernel"] == "add"
    assert document("tiled -s 32")["rung"] == "tiled"


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("absent.cu -g 1 -b 1", "kernel source 'absent.cu' cannot be read: No such file or dir"),
        ("absent.cubin -g 1 -b 1", "absent.cubin cannot be read: No such file or directory"),
        ("/dev/zero -g 1 -b 1", "kernel source '/dev/zero' cannot be read: it is a device or a"),
        (". -g 1 -b 1", "kernel source '.' cannot be read: Is a directory"),
        ("add.cu -g 0 -b 1", "--grid '0' is not a size: give one to three numbers of at least 1, "),
        ("add.cu -g 1,2,3,4 -b 1", "--grid '1,2,3,4' is not a size: give one to three numbers"),
        (
            "add.cu -g 1 -b x",
            "--block 'x' is not a size: give one to three numbers of at least 1, ",
        ),
        ("add.cu -g 1 -b 2000 -a f32[1]", "add: a block of 2000×1×1 = 2,000 threads: a block has"),
        (
            "add.cu -g 1 -b 32 -a f32[32] -a i32=1",
            "add takes 1 argument (float *x), 2 were given",
        ),
        ("add.cu -g 1 -b 32 -a f32", "--arg 0 ('f32'): a size or a value is missing: give "),
        ("add.cu -g 1 -b 32 -a f32[1] -a i32=x", "--arg 1 ('i32=x'): 'x' is not an integer"),
        ("add.cu -g 1 -b 32 -a f64[32]", "argument 0 of add (float *x) is an array of float64: "),
        ("add.cu -g 1 -b 32 -a f32=1", "argument 0 of add (float *x) is float32 1.0: give an arr"),
        ("add.cu -g 1 -b 32 -a f32[1] -k ad", "unknown kernel 'ad': did you mean 'add'? (known: "),
        ("add.cu -g 1 -b 1 -a f32[1] --arch sm_1", "unknown architecture 'sm_1': "),
        ("add.cu -g 1 -b 1 -a f32[1] -d rtx-309", "unknown device 'rtx-309': did you mean 'rtx-3"),
        (
            "add.cu -g 1 -b 1 -a f32[1] -d t4 --arch sm_80",
            "code for sm_80 does not run on the NVIDIA T4 (sm_75): compile it for the device, or",
        ),
        ("add.cu -g 1 -b 1 -a f32[1] --blocks some", "--blocks 'some': give all, representative "),
        ("add.cu -g 1 -b 1 -a f32[1] --blocks 0", "--blocks '0': give all, representative or a"),
        ("add.cu -g 1 -b 1 -a f32[1] --seed -1", "seed -1 is out of range: give 0 to "),
        ("add.cu -g 1 -b 1 -a f32[1] -D 1=2", "define '1' = '2': give a C identifier and one li"),
        ("add.cu -g 1 -b 1 -a f32[1] --save x.npy", "--save 'x.npy' is not understood: give the "),
        ("add.cu -g 1 -b 1 -a f32[1] --save 0=", "--save '0=' is not understood: give the pos"),
        (
            "add.cu -g 1 -b 1 -a f32[1] -a i32=1 --save 1=x.npy",
            "--save '1=x.npy': argument 1 is not a buffer: give 0",
        ),
        (
            "add.cu -g 1 -b 1 -a i32=1 --save 0=x.npy",
            "--save '0=x.npy': argument 0 is not a buffer: no argument is one",
        ),
        ("add.cu -g 1 -b 1 -a f32[1] --save 0=absent/x", "cannot write absent/x: there is no fol"),
        ("add.cu -g 1 -b 1 -a f32[1] --save 0=add.cu", "--save '0=add.cu': add.cu is already u"),
        (
            "add.cu -g 1 -b 1 -a f32[1] -a f32[1] --save 0=x --save 1=./x",
            "--save '1=./x': x is already used: give another",
        ),
        ("add.cu -g 1 -b 1 -a f32[999999,9999999]", "the buffers take 40,000 GB on the host, "),
        ("add.cu -g 1 -b 32 -a f32[8]", "add: global read of 4 bytes out of bounds at 0x"),
        ("broken.cu -g 1 -b 1", 'broken.cu, line 2: expected a ";"'),
        (
            "several.cu -g 1 -b 1",
            "several.cu holds 2 kernels: say which one, by name or by number (-k 1): 1 a, 2 b",
        ),
        (
            "template.cu -g 1 -b 1",
            "template.cu holds no kernel, only t<...>: give -k 't<",
        ),
        (
            "tield -s 64",
            "unknown variant 'tield': did you mean 'tiled'? (the name of a file needs its",
        ),
        ("add -g 1", "unknown rung 'add': did you mean the file add.cu?"),
        ("add.cu -g 1 -b 32 -a x=f31[1]", "--arg x ('f31[1]'): unknown type 'f31': did you mean"),
        ("tiled:tile=5 -s 64", "tiled: tile = 5 is not legal: choose one of 8, 16, 32"),
        ("tiled", "tiled is a rung: give the shape of its product, such as 1024 (--shape)"),
        ("tiled -s 64 -g 4 -a i32=1", "tiled is a rung, which has its own grid and arguments"),
        ("tiled -s 64 --cooperative --heap 5", "tiled is a rung, which has its own --coop"),
        ("tiled -s 4x", "shape '4x'"),
        ("add.cu -s 64 -g 1 -b 1", "--shape is for rungs, and 'add.cu' is not one"),
        ("tiled -s 64 --save 2=c.npy", "--save: only some blocks of tiled are executed, so"),
        (
            "tiled -s 64 --blocks all --save 3=c.npy",
            "--save '3=c.npy': argument 3 is not a buffer: give 0, 1 or 2",
        ),
        ("best -s 64 --arch sm_87", "which rung is the best depends on the device: name one"),
        ("cublas -s 64 -d t4", "cublas is not a rung: `profile` measures it"),
        ("stream-k -s 64 -d t4", "stream-k needs sm_90 or later, and NVIDIA T4 is sm_75"),
        ("one-block -s 64", "one-block cannot take 64x64x64: C has at most 32x32 elements"),
        (
            "tiled -s 40000 --blocks all --max-instructions 100000000",
            "all 1,562,500 blocks of tiled at 40000x40000x40000 take about",
        ),
        (
            "stream-k -s 1024x1024x262144",
            "its blocks share tiles in 70 ways, and one block for each",
        ),
        ("tiled -s 64 --max-instructions 1000", "sgemm_tiled did not end within its instr"),
        ("endless.cu -g 1 -b 1 -a f32[1] --max-instructions 1000", "endless did not end within"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(arguments, message):
    for name, text in (
        ("broken", "__global__ void b() {\n    int x = 1 }\n"),
        ("several", "__global__ void a() {}\n__global__ void b() {}\n"),
        ("template", "template <int N> __global__ void t(float *x) { x[N] = 1; }\n"),
        ("endless", "__global__ void endless(volatile float *x) { for (;;) x[0] = 1 - x[0]; }\n"),
    ):
        write(f"{name}.cu", text)
    assert refused(f"simulate {arguments}").startswith(message)


@pytest.mark.parametrize(
    "arguments",
    [
        "", "add.cu -g 1 -b 1 --shared x",
        "add.cu -g 1 -b 1 --shared -1", "add.cu -g 1 -b 1 --max-instructions 0",
        "add.cu -g 1 -b 1 --top 0", "add.cu -g 1 -b 1 --nothing", "add.cu more.cu -g 1 -b 1",
        "add.cu -g 1 -b 1 --seed x",
    ],
)  # fmt: skip
def test_wrong_usage_is_said_with_code_2(arguments):
    wrong = ("KERNEL.cu is missing", "--", "no such option", "got unexpected")
    assert refused(f"simulate {arguments}", code=2).startswith(wrong)


def test_markup_in_what_is_given_is_shown_as_it_is():
    write("[red].cu", ADD)
    assert "\n\nadd of [red].cu" in shown("[red].cu -g 1 -b 1 -a f32[1] --verbose")
    assert refused("simulate [/].cu -g 1 -b 1").startswith("kernel source '[/].cu' cannot")


def test_a_listing_of_templates_and_kernels_is_short_of_nothing():
    write("t.cu", "template <int N> __global__ void fill(float *x) { x[threadIdx.x] = N; }")
    launch = "t.cu -g 1 -b 32 -a f32[32] -k 'fill<7>' --save 0=x.npy"
    assert "\n\nfill<7> of t.cu for sm_90" in shown(f"{launch} --verbose")
    assert set(np.load("x.npy").tolist()) == {7.0}


# --- time ---------------------------------------------------------------------------------------


ENDLESS = "__global__ void endless(volatile float *x) { for (;;) x[0] = 1 - x[0]; }\n"


@pytest.mark.parametrize("grid", [exhaustive("1"), "1000"])
def test_ctrl_c_ends_it(grid):
    write("endless.cu", ENDLESS)
    told = (
        "from pathlib import Path\n"
        "from toolkit.cli import app as cli\n"
        "from toolkit.execution import simulator\n"
        "run_blocks = simulator.run_blocks\n"
        "def running(*a, **k):\n"
        "    Path('running').touch()\n"
        "    return run_blocks(*a, **k)\n"
        "simulator.run_blocks = running\n"
        "cli.main()\n"
    )
    command = f"simulate endless.cu -g {grid} -b 32 -a f32[1]=zeros"
    started = time.monotonic()
    said = interrupted("-c", told, *command.split(), when=Path("running").exists)
    assert time.monotonic() - started < 30  # usually some seconds, of which the start takes most
    assert said == (1, "", "error: interrupted: nothing was written\n")


def test_content_that_host_code_does_not_tell_is_asked_for():
    write(
        "gather.cu",
        "__global__ void k(float *x, const int *at) { x[at[threadIdx.x]] = 1; }\n"
        "int main() { float *x; int *at; cudaMalloc(&x, 128); cudaMalloc(&at, 128);"
        " k<<<1, 32>>>(x, at); }",
    )
    remedy = (
        "if its place depends on data, give them (-a NAME=FILE.npy): arrays hold random numbers"
    )
    assert remedy in " ".join(invoke("simulate gather.cu").stderr.split())
    given = invoke("simulate gather.cu -g 1 -b 32 -a f32[32] -a i32[32]")
    assert "out of bounds" in given.stderr
    assert remedy not in " ".join(given.stderr.split())


def test_dynamic_shared_memory_that_no_launch_gives_is_asked_for():
    write(
        "reverse.cu",
        "__global__ void k(int *x) { extern __shared__ int s[]; s[threadIdx.x] = x[threadIdx.x];\n"
        "__syncthreads(); x[threadIdx.x] = s[31 - threadIdx.x]; }\n"
        "int main() { int *x; cudaMalloc(&x, 128); k<<<1, 32>>>(x); }",
    )
    said = invoke("simulate reverse.cu").stderr
    assert said.rstrip().endswith(
        "if it is in the extern __shared__ array, give that its bytes (--shared BYTES, the third "
        "launch parameter: here 0)"
    )
    assert "random" not in said  # no data decides the address
    assert invoke("simulate reverse.cu --shared 128 --no-remedies").exit_code == 0


def test_too_little_memory_is_one_line(monkeypatch):
    def run(*_, **__):
        raise MemoryError("Unable to allocate 16.0 GiB for an array")

    monkeypatch.setattr("toolkit.cli.call.simulate", run)
    write("k.cu", 'extern "C" __global__ void k() {}')
    assert refused("simulate k.cu -g 1 -b 1") == (
        "not enough memory (Unable to allocate 16.0 GiB for an array): make the launch "
        "smaller, or free memory"
    )


def test_a_page_of_the_launch_is_written():
    result = invoke(f"simulate {LAUNCH} --html page.html --no-lines")
    assert result.exit_code == 0, result.output
    assert "wrote page.html" in result.stderr
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<h1 class="mono">transpose</h1>' in page
    assert "2 × 2 blocks of 32 × 32 threads" in page
    assert "tile[threadIdx.x][threadIdx.y]" in page  # the source
    command = page.split("Repeat: <code>")[1].split("</code>")[0]
    assert command.startswith("python -m toolkit simulate transpose.cu -k transpose -g 2,2,1")
    assert "--blocks" not in command


def test_a_page_of_a_rung_is_written():
    result = invoke("simulate tiled --shape 64 --seed 3 --html page.html --no-lines")
    assert result.exit_code == 0, result.output
    page = Path("page.html").read_text(encoding="utf-8")
    device = DEFAULT_DEVICE.key
    assert f"simulate tiled --shape 64x64x64 --seed 3 --device {device}</code>" in page


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--html transpose.cu", "the command reads transpose.cu"),
        ("--html no/such/page.html", "no/such"),
        ("--html page.npy --save 1=page.npy", "--save writes that file"),
        ("--html page.txt", "page.txt: a page is HTML: give a path that ends in .html"),
    ],
)
def test_a_page_takes_no_place_of_another_file(more, said):
    assert said in refused(f"simulate {LAUNCH} {more}")


def test_an_unknown_kernel_is_named_before_the_type_of_a_number():
    said = refused("simulate add.cu -g 1 -b 32 -k softmax -a 2048")
    assert said == "unknown kernel 'softmax': the only one is 'add'"
    write("own.cu", '#include "other.cuh"\n' + ADD)
    write("other.cuh", "__global__ void softmax(float n) { if (n != 2048.0f) __trap(); }\n")
    said = refused("simulate own.cu -g 1 -b 32 -k soft -a 2048")
    assert said == "unknown kernel 'soft': did you mean 'softmax'? (known: add, softmax)"
    # a header that is included declares the kernel, and so gives the number its type
    assert invoke("simulate own.cu -g 1 -b 32 -k softmax -a 2048").exit_code == 0
    assert "trapped" in refused("simulate own.cu -g 1 -b 32 -k softmax -a 2047")
