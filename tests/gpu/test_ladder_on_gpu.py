"""The ladder on silicon: every rung right at every kind of shape, with alpha and beta."""

from itertools import product

import numpy as np
import pytest

from analysis.errors import UnavailableError
from analysis.problem import Gemm, parse_shape
from analysis.rounding import compare, gemm_error_bound
from kernels import LADDER, parse_selection
from toolkit.gpu.launch import OnGpu, task_of
from toolkit.launch.launch import Launch, buffers_of
from toolkit.rungs.arguments import rung_arguments
from toolkit.store import tuned
from validation.corpus.inventory import near_defaults

pytestmark = pytest.mark.gpu

SHIPPED = tuned.read(tuned.FOLDER / "h200.json")
SHAPES = [
    parse_shape("1"),
    parse_shape("1x4x4"),
    parse_shape("32"),
    parse_shape("31x29x7"),
    parse_shape("127x129x31"),
    parse_shape("1000x333x65"),
    parse_shape("256x384x128"),
    parse_shape("3x1030x517"),
    parse_shape("2048x64x4096"),
]


ALL = {
    variant.label(parameters): (variant, parameters)
    for variant in LADDER
    for parameters in (
        *near_defaults(variant),
        *(one.parameters for one in SHIPPED if one.variant == variant.name),
    )
}


@pytest.fixture(scope="session")
def gpu():
    from toolkit.gpu.context import Gpu

    with Gpu() as opened:
        yield opened


@pytest.mark.parametrize(("variant", "parameters"), ALL.values(), ids=ALL)
def test_products_are_right(gpu, variant, parameters):
    try:
        variant.check_device(parameters, gpu.device)
    except UnavailableError as error:
        pytest.skip(str(error))
    for shape, (alpha, beta) in product(SHAPES, [(1.0, 0.0), (-1.25, 0.5)]):
        if not variant.max_extent or max(shape.m, shape.n) <= variant.max_extent:
            check_product(gpu, variant, parameters, shape, alpha, beta)


def check_product(gpu, variant, parameters, shape, alpha, beta):
    shape = variant.executed(shape)
    rng = np.random.default_rng()
    a, b, c = (
        rng.uniform(-1, 1, extent).astype(np.float32)
        for extent in ((shape.m, shape.k), (shape.k, shape.n), (shape.m, shape.n))
    )
    if beta == 0:
        c[:] = np.nan  # as in BLAS, C is not read
    result = launch(gpu, variant, parameters, shape, (a, b, c), alpha, beta)
    a64, b64, c64 = (x.astype(np.float64) for x in (a, b, c))
    old = beta * c64 if beta else 0.0
    bound = gemm_error_bound(
        shape.k, abs(a64) @ abs(b64), alpha=alpha, beta=beta, abs_c=abs(c64) if beta else None
    )
    verdict = compare(result, alpha * (a64 @ b64) + old, bound)
    assert verdict.passed, (shape, alpha, beta, verdict)


@pytest.mark.parametrize("name", ["naive-uncoalesced", "naive-coalesced", "tiled:tile=8"])
@pytest.mark.parametrize(("m", "n"), [(8 * 65_535 + 9, 3), (3, 8 * 65_535 + 9)])
def test_grids_beyond_65535_blocks_cover_c(gpu, name, m, n):
    chosen = {"naive-uncoalesced": ":width=8", "naive-coalesced": ":width=8"}.get(name, "")
    selection = parse_selection(name + chosen)
    shape = Gemm(m=m, n=n, k=2)
    rng = np.random.default_rng()
    a = rng.uniform(-1, 1, (m, 2)).astype(np.float32)
    b = rng.uniform(-1, 1, (2, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    assert selection.variant.geometry(selection.parameters, shape).grid[2] in (1, 2)
    result = launch(gpu, selection.variant, selection.parameters, shape, (a, b, c), 1.0, 0.0)
    exact = a.astype(np.float64) @ b
    assert compare(result, exact, gemm_error_bound(2, abs(a).astype(np.float64) @ abs(b))).passed


def launch(gpu, variant, parameters, shape, matrices, alpha, beta):
    arguments = rung_arguments(variant, parameters, shape, matrices, alpha=alpha, beta=beta)
    made = Launch(
        source=variant.source,
        name=variant.file,
        kernel=variant.entry,
        geometry=variant.geometry(parameters, shape),
        arguments=arguments,
        defines=variant.macros(parameters),
    )
    with OnGpu(task_of(made), gpu) as held:
        execution = held.execution()
    return execution.outputs[list(buffers_of(arguments)).index(2)]
