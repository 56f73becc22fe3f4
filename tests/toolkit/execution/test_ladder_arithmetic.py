"""Every rung right at every kind of shape, with alpha and beta, whatever matrices begin at.

On the simulator, all blocks of a launch; on silicon, more parameters and larger shapes.
"""

from itertools import product

import numpy as np
import pytest

from analysis.comparison.agreement import machine_accesses
from analysis.errors import UnavailableError
from analysis.problem import Gemm, parse_shape
from analysis.rounding import compare, gemm_error_bound, widened
from kernels import LADDER, find, parse_selection
from tests.cubins import cubin_of
from tests.machines import GPU, OnSimulator
from tests.sampling import chosen_of, exhaustive
from toolkit.execution.simulator import Simulator
from toolkit.gpu.gpu_launch import GpuLaunch
from toolkit.launch.launch import buffers_of
from toolkit.rungs.arguments import rung_arguments
from toolkit.store import tuned
from validation.corpus.inventory import chosen_parameters, near_defaults

RAGGED = ("1x1x1", "7x29x5", "130x131x67")
OF_SILICON = (
    *("1x1x1", "1x4x4", "32x32x32", "31x29x7", "127x129x31", "1000x333x65", "256x384x128"),
    *("3x1030x517", "2048x64x4096"),
)
DIVISIBLE = parse_shape("128x256x64")
ALPHA, BETA = np.float32(-1.25), np.float32(0.5)


def launched(machine, variant, parameters, shape, alpha=1.0, beta=0.0):
    """Execution with random A, B and C, and the verdict on alpha·A·B + beta·C."""
    rng = np.random.default_rng()
    a, b, c = (
        rng.uniform(-1, 1, extent).astype(np.float32)
        for extent in ((shape.m, shape.k), (shape.k, shape.n), (shape.m, shape.n))
    )
    if beta == 0:
        c[:] = np.nan  # as in BLAS, C is not read
    arguments = rung_arguments(
        variant, parameters, shape, (a, b, c), alpha=float(alpha), beta=float(beta)
    )
    launch = GpuLaunch(
        source=variant.source,
        name=variant.file,
        kernel=variant.entry,
        geometry=variant.geometry(parameters, shape),
        arguments=arguments,
        defines=variant.macros(parameters),
    )
    execution = machine.execution(launch)
    a64, b64, c64 = (matrix.astype(np.float64) for matrix in (a, b, c))
    bound = gemm_error_bound(
        shape.k, abs(a64) @ abs(b64), alpha=alpha, beta=beta, abs_c=abs(c64) if beta else None
    )
    bound = widened(bound, shape.k, variant.tiling(parameters).product_error)
    of_c = execution.outputs[list(buffers_of(arguments)).index(2)]
    return execution, compare(of_c, alpha * (a64 @ b64) + (beta * c64 if beta else 0.0), bound)


SIMULATED = [
    pytest.param(variant, variant.defaults, RAGGED, "sm_90", id=variant.name) for variant in LADDER
]
SHIPPED = tuned.read(tuned.FOLDER / "h200.json")
ON_SILICON = {
    variant.label(parameters): pytest.param(
        variant,
        parameters,
        OF_SILICON,
        *GPU.values,
        id=f"{variant.label(parameters)}-gpu",
        marks=GPU.marks,
    )
    for variant in LADDER
    for parameters in (
        *near_defaults(variant),
        *(one.parameters for one in SHIPPED if one.variant == variant.name),
    )
}


@pytest.mark.parametrize(
    ("variant", "parameters", "shapes", "machine"),
    [*SIMULATED, *ON_SILICON.values()],
    indirect=["machine"],
)
def test_alpha_and_beta_scale_right_at_every_kind_of_shape(machine, variant, parameters, shapes):
    try:
        variant.check_device(parameters, machine.device)
    except UnavailableError as error:
        pytest.skip(str(error))
    for text, (alpha, beta) in product(shapes, [(1.0, 0.0), (ALPHA, BETA)]):
        if not machine.is_silicon and (text, beta) == (RAGGED[-1], 0.0):
            continue  # test_rung_simulation.py executes such a shape, with C of NaN
        shape = variant.executed(parse_shape(text))
        if not variant.max_extent or max(shape.m, shape.n) <= variant.max_extent:
            _, check = launched(machine, variant, parameters, shape, alpha, beta)
            assert check.passed, (text, alpha, beta, check)


OF_SMALL_BLOCKS = ("naive-uncoalesced:width=8", "naive-coalesced:width=8", "tiled:tile=8")


@pytest.mark.parametrize(
    ("label", "machine"),
    [
        *chosen_of(product(OF_SMALL_BLOCKS, ["sm_90"]), lambda case: case[0] == OF_SMALL_BLOCKS[1]),
        *(pytest.param(label, *GPU.values, marks=GPU.marks) for label in OF_SMALL_BLOCKS),
    ],
    indirect=["machine"],
)
@pytest.mark.parametrize(("m", "n"), [(8 * 65_535 + 9, 3), (3, 8 * 65_535 + 9)])
def test_grids_beyond_65535_blocks_cover_c(machine, label, m, n):
    selection = parse_selection(label)
    variant, parameters, shape = selection.variant, selection.parameters, Gemm(m=m, n=n, k=2)
    assert variant.geometry(parameters, shape).grid[2] in (1, 2)
    assert launched(machine, variant, parameters, shape)[1].passed


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
    execution, check = launched(OnSimulator("sm_86"), variant, parameters, DIVISIBLE, ALPHA, BETA)
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
    assert launched(OnSimulator("sm_86"), variant, parameters, executed, ALPHA, BETA)[1].passed


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
