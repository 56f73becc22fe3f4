"""Which arrays decide addresses and loops, so that random contents decide the time."""

import numpy as np
import pytest

from tests.toolkit.cli.commands import invoke
from toolkit import simulate
from toolkit.execution.random_contents import with_random_contents

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
GATHERS = "out[i] = in[index[i]];"
COUNTS = "atomicAdd(&bins[index[i]], 1);"
ROWS = "float s = 0; for (int k = index[i]; k < index[i + 1]; k++) s += in[i]; out[i] = s;"
BY_SHARED = """__shared__ int kept[64]; kept[threadIdx.x] = index[i]; __syncthreads();
out[i] = in[kept[threadIdx.x ^ 1]];"""
LOCAL_ARRAY = """int kept[16]; for (int k = 0; k < 16; k++) kept[k] = index[(i + k) & 63];
out[i] = in[kept[bins[0] & 15]];"""
FLOATS = "int k = (int)((in[i] + 1.0f) * 10.0f); atomicAdd(&bins[k], 1);"
CONVERGES = "float x = in[i]; while (x > 0.01f) x *= 0.5f; out[i] = x;"

COPIES = "out[i] = in[i] + index[i];"
FILLS = "index[i] = i * 7 & 63; __syncthreads(); out[i] = in[index[i ^ 1]];"
BRANCHES = "if (in[i] > 0.0f) out[i] = in[i]; else out[i] = 0.01f * in[i];"
SINES = "out[i] = sinf(in[i]);"  # its slow path indexes local memory
SWAPS = """int old = index[i], assumed; do { assumed = old;
old = atomicCAS(&index[i], assumed, assumed + 1); } while (assumed != old);"""
SUMS = """float s = in[i]; for (int k = 16; k; k /= 2) s += __shfl_xor_sync(~0u, s, k);
out[i] = s;"""

# of a register that only lanes with a true guard write, others hold the value of the pass before
TREE = """__shared__ float s[64]; s[threadIdx.x] = in[i]; __syncthreads();
for (int k = blockDim.x / 2; k; k /= 2) { if (threadIdx.x < k) s[threadIdx.x] +=
s[threadIdx.x + k]; __syncthreads(); } if (threadIdx.x == 0) out[blockIdx.x] = s[0];"""
# two calls of the function that divides: what it returns to the first is not in the second
DIVISIONS = """__shared__ float4 s[64]; float4 v = ((float4 *)in)[threadIdx.x];
float m = v.x / v.y; s[threadIdx.x] = make_float4(v.x - m, v.y - m, v.z - m, v.w - m);
__syncthreads(); for (int k = threadIdx.x; k < bins[0]; k += 32) { float4 u = s[k];
out[k] = (u.x + u.y) / (u.z + u.w); }"""


def executed(body):
    source = f"""__global__ void k(float *out, const float *in, int *index, int *bins) {{
    {INDEX} {body} }}"""
    floats, integers = np.full(256, 0.5, np.float32), np.arange(256, dtype=np.int32)
    return simulate(
        source,
        grid=2,
        block=64,
        arguments=[np.zeros(256, np.float32), floats, integers, np.full(256, 40, np.int32)],
        device="h200",
    )


@pytest.mark.parametrize(
    ("body", "deciding"),
    [
        (GATHERS, "index"),
        (COUNTS, "index"),
        (ROWS, "index"),
        (BY_SHARED, "index"),
        (LOCAL_ARRAY, "index"),
        (FLOATS, "in"),
        (CONVERGES, "in"),
    ],
)
def test_an_array_that_decides_addresses_or_loops_is_named(body, deciding):
    found = with_random_contents(executed(body), [0, 1, 2, 3])
    expected = f"The time depends on the contents of {deciding}, which are random"
    assert found.uncertainty == expected
    assert found.notes[-1].startswith(f"{deciding} holds random numbers")
    assert expected in found.verdict.splitlines()[0]


@pytest.mark.parametrize("body", [COPIES, FILLS, BRANCHES, SINES, SWAPS, SUMS, TREE])
def test_other_values_do_not_decide_them(body):
    execution = executed(body)
    assert with_random_contents(execution, [0, 1, 2, 3]) == execution


def test_values_before_a_call_are_not_those_of_another_call():
    found = with_random_contents(executed(DIVISIONS), [1])
    assert found.uncertainty == ""
    found = with_random_contents(executed(DIVISIONS), [1, 3])  # bins[0] is the end of the loop
    assert found.uncertainty == "The time depends on the contents of bins, which are random"


def test_contents_that_were_given_are_not_random():
    execution = executed(GATHERS)
    assert with_random_contents(execution, [0, 1]) == execution


def test_sizes_of_host_code_give_random_contents():
    source = f"""__global__ void k(float *out, const float *in, const int *index) {{
    {INDEX} {GATHERS} }}
    int main() {{ float *out, *in; int *index; cudaMalloc(&out, 1024); cudaMalloc(&in, 1024);
    cudaMalloc(&index, 1024); k<<<4, 64>>>(out, in, index); }}"""
    found = simulate(source, device="h200", seed=1)
    assert found.uncertainty == "The time depends on the contents of index, which are random"
    given = simulate(source, device="h200", seed=1, arguments={"index": np.zeros(256, np.int32)})
    assert given.uncertainty == ""


@pytest.mark.parametrize(("fill", "is_said"), [("", True), ("=zeros", False)])
def test_the_command_says_it_of_random_fills(tmp_path, fill, is_said):
    path = tmp_path / "gather.cu"
    path.write_text(
        f"""__global__ void k(float *out, const float *in, const int *index) {{
    {INDEX} {GATHERS} }}"""
    )
    arguments = ["f32[256]=zeros", "f32[256]", f"i32[256]{fill}"]
    given = [text for one in arguments for text in ("-a", one)]
    done = invoke("simulate", str(path), "-g", "4", "-b", "64", *given)
    assert ("The time depends on the contents of index" in done.output) == is_said
    assert ("such as -a 'index=FILE.npy'" in " ".join(done.output.split())) == is_said
