"""Every rung right at ragged shapes, with alpha and beta, whatever rows and matrices begin at.

On the simulator, all blocks of a launch; tests/gpu/test_ladder_on_gpu.py does the same on silicon.
"""

import numpy as np
import pytest

from analysis.comparison.agreement import machine_accesses
from analysis.problem import parse_shape
from analysis.rounding import compare, gemm_error_bound
from kernels import LADDER, find
from tests.cubins import cubin_of
from tests.rungs import every_rung
from tests.sampling import chosen_of, exhaustive
from toolkit.execution.simulate import Simulator
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import rung_arguments
from validation.corpus.inventory import chosen_parameters, near_defaults

RAGGED = ("1x1x1", "7x29x5", "130x131x67")
DIVISIBLE = parse_shape("128x256x64")
ALPHA, BETA = np.float32(-1.25), np.float32(0.5)


def launched(variant, parameters, shape, arch, source):
    """Execution of all blocks with random A, B and C, and the verdict on alpha·A·B + beta·C."""
    rng = np.random.default_rng(shape.m)
    a, b, c = (
        rng.uniform(-1, 1, extent).astype(np.float32)
        for extent in ((shape.m, shape.k), (shape.k, shape.n), (shape.m, shape.n))
    )
    cubin = cubin_of(source, variant.entry, arch, defines=variant.macros(parameters))
    geometry = variant.geometry(parameters, shape)
    arguments = rung_arguments(
        variant, parameters, shape, (a, b, c), alpha=float(ALPHA), beta=float(BETA)
    )
    execution = Simulator(arch=arch).run(cubin, geometry, arguments)
    a64, b64, c64 = (matrix.astype(np.float64) for matrix in (a, b, c))
    bound = gemm_error_bound(shape.k, abs(a64) @ abs(b64), alpha=ALPHA, beta=BETA, abs_c=abs(c64))
    of_c = execution.outputs[list(buffers_of(arguments)).index(2)]
    return execution, compare(of_c, ALPHA * (a64 @ b64) + BETA * c64, bound)


@every_rung
def test_alpha_and_beta_scale_right_at_ragged_shapes(variant):
    for text in RAGGED:
        shape = variant.executed(parse_shape(text))
        if max(shape.m, shape.n) <= (variant.max_extent or shape.m + shape.n):
            _, check = launched(variant, variant.defaults, shape, "sm_90", variant.source)
            assert check.passed, (text, check)


CHOSEN = {variant.name: chosen_parameters(variant) for variant in LADDER[7:12]}
NEW = chosen_of(
    [
        pytest.param(variant, chosen, id=variant.label(chosen))
        for variant in LADDER[7:12]
        for chosen in near_defaults(variant)
    ],
    lambda kernel: kernel[1] == CHOSEN[kernel[0].name],
)


@pytest.mark.parametrize(("variant", "parameters"), NEW)
def test_no_warp_meets_a_bank_conflict(variant, parameters):
    execution, check = launched(variant, parameters, DIVISIBLE, "sm_86", variant.source)
    assert check.passed
    for access in ("ld", "st"):
        name = f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{access}.sum"
        assert execution.counters[name] == 0
    copies = [a for a in machine_accesses(execution.instructions) if a.action == "copy"]
    assert all(copy.wavefronts == copy.conflict_free for copy in copies)
    assert bool(copies) == variant.tiling(parameters).asynchronous


@pytest.mark.parametrize(("variant", "parameters"), NEW)
@pytest.mark.parametrize("shape", ["130x131x67", "66x140x36"])
def test_other_parameters_are_right_too(variant, parameters, shape):
    executed = variant.executed(parse_shape(shape))
    assert launched(variant, parameters, executed, "sm_86", variant.source)[1].passed


@pytest.mark.parametrize("name", ["async-copy", exhaustive("wide-thread-tile")])
@pytest.mark.parametrize("operand", ["B", "C"])  # A is copied float by float anyway
def test_matrices_may_begin_anywhere(name, operand):
    """Rows of 4 floats, but the first of them 4 bytes off: no access may be wide."""
    variant = find(name)
    entry = "    const int t = threadIdx.x"
    assert variant.source.count(entry) == 1
    # the kernel gets a pointer to one float before the matrix, and goes on from there
    source = variant.source.replace(entry, f"    {operand} += 1;\n{entry}")
    shape = parse_shape("60x132x36")
    before = {"A": (shape.m, shape.k), "B": (shape.k, shape.n), "C": (shape.m, shape.n)}
    rng = np.random.default_rng(7)
    flat = {
        key: rng.uniform(-1, 1, rows * columns + (key == operand)).astype(np.float32)
        for key, (rows, columns) in before.items()
    }
    cubin = cubin_of(source, variant.entry, "sm_86")
    sizes = map(np.int32, (shape.m, shape.n, shape.k))
    execution = Simulator(arch="sm_86").run(
        cubin,
        variant.geometry(variant.defaults, shape),
        [flat["A"], flat["B"], flat["C"], *sizes, ALPHA, BETA],
    )
    a, b, c = (
        flat[key][key == operand :].reshape(extent).astype(np.float64)
        for key, extent in before.items()
    )
    result = execution.outputs[2][operand == "C" :].reshape(shape.m, shape.n)
    bound = gemm_error_bound(shape.k, abs(a) @ abs(b), alpha=ALPHA, beta=BETA, abs_c=abs(c))
    assert compare(result, ALPHA * (a @ b) + BETA * c, bound).passed
