"""`matmul(..., precision="fp32x")` on a GPU with wgmma: errors, special values, streams, graphs."""

import numpy as np
import pytest

from kernels.split_paths import TILES, split
from toolkit import matmul
from toolkit.product import choice
from toolkit.product.matmul import PrecisionWarning

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

# As in tests/kernels/test_split_products.py: the worst case of the sums of 64 of K and of parts.
OF_SUMS = 12 * (17 * 2.0**-25 + 2.0**-23) + 3 * 2.0**-22
OF_LARGEST = 2.0**-38
ROUNDING = 2.0**-24


@pytest.fixture(autouse=True)
def on_hopper():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("wgmma needs a GPU of sm_90")
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False


def normal(*shape):
    return torch.randn(*shape, device="cuda")


def product(a, b, *others, **named):
    return matmul(a, b, *others, **named, precision="fp32x")


def errors(c, a, b, alpha=1.0, beta=0.0, old=None):
    """Errors relative to |A||B|, after each is held against the worst case."""
    x, y = a.double(), b.double()
    exact, size = alpha * (x @ y), abs(alpha) * (x.abs() @ y.abs())
    largest = x.abs().amax(-1, keepdim=True) * y.abs().sum(-2, keepdim=True)
    largest = largest + x.abs().sum(-1, keepdim=True) * y.abs().amax(-2, keepdim=True)
    if beta:
        exact, size = exact + beta * old.double(), size + abs(beta) * old.double().abs()
    bound = (OF_SUMS + (a.shape[-1] / 64 + 6) * ROUNDING) * size
    bound = bound + abs(alpha) * OF_LARGEST * largest
    error = (c.double() - exact).abs()
    assert bool((error <= bound).all())
    return error / size


def rms(relative):
    return float(relative.pow(2).mean().sqrt())


@pytest.mark.parametrize("transposes", ["NN", "TN", "NT", "TT"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1000, 1016, 520), (1001, 1004, 1004), (1537, 2049, 777), (640, 514, 5000)]
)
def test_layouts_between_guard_bands(m, n, k, transposes):
    a = normal(m, k) if transposes[0] == "N" else normal(k, m).T
    b = normal(k, n) if transposes[1] == "N" else normal(n, k).T
    whole = torch.full((m + 2, n + 3), torch.nan, device="cuda")
    out = whole[1:-1, 1:-2]
    assert rms(errors(product(a, b, out), a, b)) < ROUNDING
    old = out.clone()
    assert rms(errors(product(a, b, out, 0.5, -2.0), a, b, 0.5, -2.0, old)) < ROUNDING
    out[...] = torch.nan
    assert bool(whole.isnan().all())


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_views_with_gaps_and_any_alignment(offset):
    a = normal(700, 1003)[:, offset : offset + 600]
    b = normal(600 * 900 + 4)[offset : offset + 600 * 900].view(600, 900)
    assert rms(errors(product(a, b), a, b)) < ROUNDING
    steps = normal(1400, 1800)[::2, ::3]  # is copied first
    assert rms(errors(product(steps, b), steps, b)) < ROUNDING


@pytest.mark.parametrize("tile", TILES, ids=lambda one: one.name)
def test_every_tile(tile, monkeypatch):
    monkeypatch.setattr(
        choice.split_paths, "plan_for", lambda device, one: split(one, tile, device.sm_count)
    )
    monkeypatch.setattr("toolkit.product.matmul._of_thread.calls", {})
    monkeypatch.setattr(
        "toolkit.product.matmul.recipe_of",
        lambda layout, facts, precision: choice.recipe_for(layout, choice_device(facts), precision),
    )
    for m, n, k in ((128, 256, 64), (1, 1, 1), (3000, 777, 1030), (300, 5000, 333)):
        a, b = normal(m, k), normal(k, n)
        errors(product(a, b), a, b)


def choice_device(facts):
    from analysis.devices import device_from_driver

    return device_from_driver(facts)


def powers(bits, shape):
    half = bits // 2
    return torch.randint(-half, half + 1, shape, device="cuda").double().exp2().float()


def along_k(a, b, bits):
    a[:, ::97] *= 2.0**bits
    b[::97] *= 2.0**-bits
    return a, b


def all_along_k(a, b):
    of_k = powers(60, (a.shape[1],))
    return a * of_k, b / of_k[:, None]


DATA = {
    "normal": (lambda a, b: (a, b), 0.5),
    "uniform": (lambda a, b: (torch.rand_like(a), torch.rand_like(b)), 0.5),
    "exponents over 2^60": (lambda a, b: (a * powers(60, a.shape), b * powers(60, b.shape)), 1.0),
    "rows and columns": (lambda a, b: (a * powers(60, (2048, 1)), b * powers(60, (2048,))), 0.5),
    "2^20 along K": (lambda a, b: along_k(a, b, 20), 3.0),
    "2^30 along K": (lambda a, b: along_k(a, b, 30), 3.0),
    "all along K": (all_along_k, 3.0),
    "one column": (lambda a, b: (torch.cat([a[:, :1] * 2.0**40, a[:, 1:]], 1), b), 3.0),
}


@pytest.mark.parametrize("layout", ["NN", "TT"])
@pytest.mark.parametrize("data", DATA)
def test_errors_beside_those_of_cublas(data, layout):
    made, most = DATA[data]
    a, b = made(normal(2048, 2048), normal(2048, 2048))
    if layout == "TT":
        a, b = a.T.contiguous().T, b.T.contiguous().T
    of_cublas = rms(errors(torch.matmul(a, b), a, b))
    assert rms(errors(product(a, b), a, b)) <= most * of_cublas


def test_inf_and_nan_reach_their_rows_and_columns_alone():
    a, b, old = normal(1100, 900), normal(900, 1300), normal(1100, 1300)
    a[5, 3], a[77, 9], b[4, 10], b[7, ::2] = torch.inf, torch.nan, -torch.inf, 0
    c = product(a, b, old.clone(), 0.5, 1.0)
    exact = (0.5 * (a.double() @ b.double()) + old.double()).float()
    finite = exact.isfinite()
    assert int((~finite).sum()) == 2 * 1300 + 1100 - 2
    assert bool(((c == exact) | (c.isnan() & exact.isnan()))[~finite].all())
    assert float((c - exact)[finite].abs().max()) < 1e-4
    assert not bool(product(normal(1100, 900), b.nan_to_num(0, 0, 0)).isnan().any())


def test_subnormal_and_overflowing_values():
    a, b = normal(600, 700), normal(700, 800)
    assert rms(errors(product(a * 1e-40, b * 1e30), a * 1e-40, b * 1e30)) < ROUNDING
    tiny = product(a * 1e-20, b * 1e-20).double()
    assert float((tiny - a.double() * 1e-20 @ b.double() * 1e-20).abs().max()) < 1e-43
    assert bool(product(a.abs() * 1e19, b.abs() * 1e19).isposinf().all())
    zero = product(torch.zeros_like(a), b)
    assert not bool(zero.any())


def test_runs_have_the_same_bits():
    a, b = normal(1500, 1700), normal(1700, 1900)
    first = product(a, b)
    assert all(torch.equal(first, product(a, b)) for _ in range(5))


@pytest.mark.parametrize("shared", ["", "a", "b"])
def test_batches(shared):
    a = normal(600, 700) if shared == "a" else normal(3, 600, 700)
    b = normal(700, 800) if shared == "b" else normal(3, 700, 800)
    assert rms(errors(product(a, b), a, b)) < ROUNDING


def test_streams_and_graphs():
    a, b = normal(1024, 1024), normal(1024, 1024)
    expected = product(a, b)
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    outs = [torch.empty_like(expected) for _ in streams]
    for _ in range(20):
        for stream, out in zip(streams, outs, strict=True):
            with torch.cuda.stream(stream):
                product(a, b, out)
    torch.cuda.synchronize()
    assert all(torch.equal(expected, out) for out in outs)
    out, graph = torch.empty_like(expected), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        product(a, b, out)
        product(out, b, out2 := torch.empty_like(out))
    for seed in range(3):
        torch.manual_seed(seed)
        a.copy_(normal(1024, 1024))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, product(a, b))
        assert torch.equal(out2, product(out, b))


def test_small_products_say_that_they_are_handed_over():
    with pytest.warns(PrecisionWarning, match='is computed with precision = "fp32"'):
        c = product(normal(33, 44), normal(44, 35))
    assert c.shape == (33, 35)
    assert np.isfinite(c.cpu().numpy()).all()
