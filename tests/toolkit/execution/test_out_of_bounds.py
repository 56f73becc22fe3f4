"""Times of launches that go on where accesses are beyond all arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.errors import LaunchError
from tests.toolkit.cli.commands import invoke
from toolkit import simulate
from toolkit.launch.launch import Execution

f32, i32 = np.float32, np.int32
STORED = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
BEYOND = 1 << 20  # elements

KERNEL = """
extern "C" __global__ void k(int *out, int *in, int n) {
    int i = threadIdx.x;
    BODY
}"""
READS = "if (in[i + n]) out[8 * i] = 1;"
LOST = "in[i + n] = 7; __syncthreads(); if (((volatile int *)in)[i + n]) out[8 * i] = 1;"
ADDED = "if (atomicAdd(in + i + n, 1)) out[8 * i] = 1;"
COPIED = """__shared__ int s[32];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::
        "r"((unsigned)__cvta_generic_to_shared(s + i)), "l"(in + i + n));
    asm volatile("cp.async.wait_all;"); __syncthreads(); if (s[i]) out[8 * i] = 1;"""


def found(body: str, n: int = BEYOND, *, allowed: bool = True, outputs: bool = False) -> Execution:
    """A warp whose lanes each store to a sector of their own if they read no zero."""
    arguments: Sequence[Any] = [np.zeros(8 * 32, i32), np.ones(32, i32), i32(n)]
    return simulate(
        KERNEL.replace("BODY", body),
        grid=1,
        block=32,
        arguments=arguments,
        device="h200",
        outputs=outputs,
        allow_out_of_bounds=allowed,
    )


@pytest.mark.parametrize("body", [READS, ADDED, COPIED])
@pytest.mark.parametrize(
    ("n", "inside"),
    [
        (BEYOND, 0),
        (16, 16),  # the lower half of the warp reads the upper half of the array
        (-7, 25),
    ],
)
def test_reads_beyond_all_arrays_give_zeros(body: str, n: int, inside: int) -> None:
    execution = found(body, n)
    assert execution.counters[STORED] == inside
    assert execution.predicted is not None
    first = execution.uncertainty.partition(". Beyond all arrays, reads gave zeros")[0]
    assert first.startswith("Do not trust the time: k: global ")
    assert "of 4 bytes out of bounds at" in first
    assert "`in`" in first or "argument 1" in first


def test_stores_beyond_all_arrays_are_lost() -> None:
    assert found(LOST).counters[STORED] == 4  # of 32 stores to `in`, 128 bytes; none to `out`
    assert found(LOST, 0, outputs=True).counters[STORED] == 4 + 32


def test_traffic_has_what_is_beyond() -> None:
    reads = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert found(READS).counters[reads] == 4  # 32 lanes of 4 bytes
    assert found(READS, 0).counters[reads] == 4
    assert "Do not trust" not in found(READS, 0).uncertainty


@pytest.mark.parametrize(
    ("body", "changes", "said"),
    [
        (READS, {"allowed": False}, "global read of 4 bytes out of bounds"),
        (READS, {"outputs": True}, "global read of 4 bytes out of bounds"),
        ("out[i] = *(int *)(8 * (size_t)n);", {"n": 2}, "a null pointer"),
        ("__shared__ int s[8]; s[i] = n; out[i] = s[n & 7];", {}, "shared write of 4 bytes out of"),
        ("out[i] = *(int *)((char *)in + 1);", {}, "misaligned global read"),
    ],
)
def test_other_faults_and_launches_with_outputs_are_errors(
    body: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(LaunchError, match=said):
        found(body, **changes)


def test_the_command_names_the_option(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(KERNEL.replace("BODY", READS))
    launch = f"simulate {source} -g 1 -b 32 -a i32[256] -a i32[32] -a {BEYOND} -d h200"
    refused = invoke(launch)  # type: ignore[no-untyped-call]
    assert refused.exit_code == 1
    assert "add --allow-out-of-bounds" in " ".join(refused.stderr.split())
    said = invoke(f"{launch} --allow-out-of-bounds")  # type: ignore[no-untyped-call]
    assert said.exit_code == 0
    first = said.stdout.splitlines()[0]
    assert first.startswith("k: ")
    assert "predicted on" in first
    assert "Do not trust the time: k: global read of 4 bytes out of bounds" in first
    for other in ("--save 0=x.npy", "--apply 1"):
        both = invoke(f"{launch} --allow-out-of-bounds {other}")  # type: ignore[no-untyped-call]
        assert both.exit_code == 2
        assert f"not with {other.split()[0]}" in both.stderr
    saved = invoke(f"{launch} --save 0=x.npy")  # type: ignore[no-untyped-call]
    assert saved.exit_code == 1
    assert "out of bounds" in saved.stderr
    assert "--allow-out-of-bounds" not in saved.stderr


TURN = """
__global__ void turn(float *out, const float *in)
{
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[32 * threadIdx.y + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < 32; k++)
        out[32 * threadIdx.y + threadIdx.x] += tile[threadIdx.x][(threadIdx.y + k) % 32];
}
"""


def test_edits_are_found_in_python_too() -> None:
    arrays = [np.zeros(1000, np.float32), np.zeros(1024, np.float32)]
    execution = simulate(
        TURN,
        grid=1,
        block=(32, 32),
        arguments=arrays,
        device="h200",
        outputs=False,
        allow_out_of_bounds=True,
    )
    titles = [one.title for one in execution.remedies]
    assert "tile[32][32 + 1], pads each row" in titles


def test_edits_are_tried_where_accesses_are_beyond_all_arrays(tmp_path: Path) -> None:
    source = tmp_path / "turn.cu"
    source.write_text(TURN)
    launch = f"simulate {source} -g 1 -b 32,32 -a f32[1000] -a f32[1024] -d h200"
    said = invoke(f"{launch} --allow-out-of-bounds")  # type: ignore[no-untyped-call]
    assert said.exit_code == 0
    assert "tile[32][32 + 1], pads each row" in said.stdout
    assert "1 of 1 blocks compared: equal bit for bit" in said.stdout
    assert "--apply" not in said.stdout
