"""Public kernels on tensor cores: the list, its operands, what must come out, and the errors."""

import importlib.util
import re
import sys
from statistics import fmean

import numpy as np
import pytest

from analysis.errors import InputError, ToolkitError
from benchmarks import public_tensor_errors as errors
from benchmarks.tensor_clocks import PUBLIC_CLOCKS, recorded_clocks
from benchmarks.tensor_times import TOLERANCE, _check
from validation import ROOT, recordings
from validation.timing.public_tensor import operands
from validation.timing.public_tensor.build import NamesOnly
from validation.timing.public_tensor.launch import described
from validation.timing.public_tensor.launches import FAMILIES, launches
from validation.timing.public_tensor.operands import Operand, Tiled, attention, product, scaled
from validation.timing.public_tensor.sources import CUDA, REPOSITORIES, TRITON
from validation.timing.public_tensor.triton_launches import calls, is_constant
from validation.timing.tensor_launches import LAUNCHES

LISTED = launches(ROOT)


def test_the_list_is_as_large_as_it_was_drawn():
    assert len({one.label for one in LISTED}) == len(LISTED) == 62
    assert len({one.kernel for one in LISTED}) == 47
    assert {one.family for one in LISTED} == set(FAMILIES)
    assert sum(one.family == "attention" for one in LISTED) == 13


def test_no_kernel_is_in_the_first_list():
    assert not {one.kernel for one in LISTED} & {one.kernel for one in LAUNCHES}


def test_each_cubin_has_a_source_and_a_launch():
    assert {one.image for one in LISTED} == {*CUDA, *TRITON} == {*described()}
    assert {one.repository for one in (*CUDA.values(), *TRITON.values())} == {*REPOSITORIES}


def test_other_machine_code_than_that_of_the_list_is_refused(tmp_path):
    one = launches(tmp_path)[0]
    (tmp_path / f"{one.image}.cubin").write_bytes(b"other")
    with pytest.raises(InputError, match=rf"{one.image}\.cubin is not that of the list"):
        _ = one.code


def test_triton_compiles_none_and_one_into_a_kernel():
    assert is_constant("persistent_half", "bias_ptr", None)
    assert is_constant("persistent_half", "stride_ak", 1)
    assert not is_constant("persistent_half", "stride_am", 16)
    assert not is_constant("chunk_outputs", "T", 1)  # its decorator exempts it


def test_launches_of_a_kernel_of_triton_are_specialised_alike():
    kinds = {}
    for call in calls():
        each = [
            (name, is_constant(call.kernel, name, one), isinstance(one, int) and one % 16 == 0)
            for name, one in call.arguments.items()
            if name not in TRITON[call.kernel].plain
        ]
        assert kinds.setdefault(call.kernel, each) == each


A = np.arange(12 * 6).reshape(12, 6) % 7 - 3.0
B = np.arange(6 * 10).reshape(6, 10) % 5 - 2.0


def first_and_last(whole):
    """The first and the last four rows, and where they begin in the array."""
    return [(0, whole[:4]), (whole.size - 4 * whole.shape[1], whole[-4:])]


def assert_same(found, expected):
    assert [start for start, _ in found] == [start for start, _ in expected]
    for (_, some), (_, other) in zip(found, expected, strict=True):
        np.testing.assert_allclose(some.ravel(), other.ravel())


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("by_columns", [False, True])
def test_products_are_those_of_matrices(by_rows, by_columns):
    numbers = product("double", 12, 10, 6, by_rows=by_rows, by_columns=by_columns)
    whole = (A @ B).T if by_columns else A @ B
    assert_same(numbers([A, B if by_rows else B.T.copy()]), first_and_last(whole))


def test_sums_are_scaled_and_added_to_what_was_there():
    before = np.arange(120.0)
    numbers = product("double", 12, 10, 6, by_rows=True, then=scaled(2, 3, 2))
    found = numbers([A, B, before])
    assert_same(found, first_and_last(2 * (A @ B) + 3 * before.reshape(12, 10)))


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_that_of_whole_heads(is_causal):
    heads, length, head = 2, 8, 4
    q, k, v = np.random.default_rng(1).standard_normal((3, heads, length, head))
    scores = q @ k.transpose(0, 2, 1) / 2  # the root of 4
    if is_causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(2, keepdims=True)
    whole = (weights @ v).reshape(heads * length, head)
    found = attention("double", heads, length, head, is_causal=is_causal)([q, k, v])
    assert_same(found, first_and_last(whole))


@pytest.mark.parametrize("axes", [2, 3, 5])
def test_a_tensor_map_in_columns_of_64_has_each_element_once(axes):
    one = Tiled(Operand("brain", 128 * 192, 1), 128, 192, 128, 64, axes).make()
    steps = one.tiling.pitches_bytes
    places = sum(
        step * np.arange(size).reshape(-1, *(1,) * (len(steps) - axis - 1))
        for axis, (step, size) in enumerate(zip(steps, one.tiling.shape, strict=True))
    )
    assert np.array_equal(np.sort(places, axis=None), 2 * np.arange(128 * 192))
    assert places[(*(0,) * (axes - 2), 1, 0)] == 2 * 192  # the next row
    assert one.array.nbytes == 2 * 128 * 192


def test_outputs_begin_with_zeros_and_operands_do_not():
    assert not Operand("half", 8).make().any()
    assert Operand("half", 8, 1).make().all()
    assert operands.zeros("int32", 4).make().dtype == np.int32


def test_rows_that_are_wrong_are_named():
    result = np.arange(8, dtype=np.float32)
    assert _check(result, 4, np.array([[4.0, 5], [6, 7]])) == 0
    with pytest.raises(ToolkitError, match=r"rows from number 4 on are wrong by 0\.375"):
        _check(result, 4, np.array([[4.0, 8], [6, 7]]))  # 3 off, of 8


def test_names_of_missing_packages_pass_kernels_through(tmp_path):
    """A decorator of a package that is not installed leaves the function as it is."""
    path = tmp_path / "of_a_file.py"
    path.write_text(
        "import torch\nfrom einops import reduce\nfrom fla.utils import tuned\n"
        "from .beside import more\n"
        "class Function(torch.autograd.Function): ...\n"
        "@tuned(configs=[more for _ in torch.lists])\n"
        "def kernel(x: torch.Tensor | None): return 7\n"
        "if torch.cuda.is_available(): raise ValueError\n"
        "call = Function.apply\n"
    )
    finder = NamesOnly(tmp_path)
    sys.meta_path.insert(0, finder)
    try:
        spec = importlib.util.spec_from_file_location("public_kernels.of_a_file", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.startswith(("torch", "einops", "fla"))]:
            del sys.modules[name]
    assert module.kernel(None) == 7


def cell(predicted_s, measured_s, family="mma", by="mma.sync", at_clock_s=None):
    return {
        "family": family,
        "by": by,
        "predicted_s": predicted_s,
        "at_recorded_clock_s": at_clock_s or predicted_s,
        "measured_s": measured_s,
        "why_not": "",
    }


def test_errors_are_by_family_by_product_and_of_all():
    cells = [
        cell(9e-6, 10e-6, at_clock_s=8e-6),  # 10%; 20% at the recorded clock
        cell(130e-6, 100e-6, "attention", "wgmma"),  # 30%
    ]
    rows = [line for line in errors.table(cells) if "%" in line]
    assert rows == [
        "| mma | 1 | 10.0% | 10.0% | 0.90 to 0.90 | 20.0% |",
        "| attention | 1 | 30.0% | 30.0% | 1.30 to 1.30 | 30.0% |",
        "| by mma.sync | 1 | 10.0% | 10.0% | 0.90 to 0.90 | 20.0% |",
        "| by wgmma | 1 | 30.0% | 30.0% | 1.30 to 1.30 | 30.0% |",
        "| below 50 µs | 1 | 10.0% | 10.0% | 0.90 to 0.90 | 20.0% |",
        "| all | 2 | 20.0% | 20.0% | 0.90 to 1.30 | 25.0% |",
    ]


@pytest.mark.parametrize(
    ("predicted_s", "is_off"),
    [(1.6, False), (1.61, True), (0.625, False), (0.62, True), (None, True)],
)
def test_a_launch_is_off_by_a_factor_of_1_6_either_way(predicted_s, is_off):
    assert errors.is_off(cell(predicted_s, 1.0)) == is_off


def test_a_launch_without_a_predicted_time_counts_as_60_percent_off():
    assert errors.error(cell(None, 1.0)) == 0.6


def test_what_was_not_measured_is_left_out(monkeypatch):
    times = {"one": {"median_s": 2.0}, "other": {"error": "no launch"}}
    monkeypatch.setattr(errors, "measured", lambda: times)
    found = errors.joined({"one": {"predicted_s": 1.0}, "other": {"predicted_s": 1.0}})
    assert found == {"one": {"predicted_s": 1.0, "measured_s": 2.0}}


def test_an_h200_timed_every_launch_with_right_results():
    times = errors.measured()
    assert times.keys() == {one.label for one in LISTED}
    assert all(
        one["median_s"] > 0 and one["error_of_result"] <= TOLERANCE for one in times.values()
    )


def test_an_h200_counted_the_clock_of_every_launch():
    clocks = recorded_clocks(PUBLIC_CLOCKS)
    assert clocks.keys() == {one.label for one in LISTED}
    assert all(1.2e9 <= clock <= 1.98e9 for clock in clocks.values())


def test_every_measured_launch_is_predicted():
    times = errors.measured()
    found = recordings.read(errors.PREDICTED)["launches"]
    assert found.keys() == times.keys()
    for label, one in found.items():
        assert one["measured_s"] == times[label]["median_s"]


def test_the_opened_half_is_as_large_as_asked():
    """15 launches of WGMMA and of mma.sync, 8 of attention, a third below 50 µs."""
    found = recordings.read(errors.PREDICTED)["launches"].values()
    assert sum(one["by"] == "wgmma" for one in found) >= 15
    assert sum(one["by"] == "mma.sync" for one in found) >= 15
    assert sum(one["family"] == "attention" for one in found) >= 8
    assert sum(one["measured_s"] < errors.SHORT_S for one in found) >= len(found) / 3


def test_the_page_has_the_recorded_errors():
    lines = errors.table(recordings.read(errors.PREDICTED)["launches"].values())
    assert "\n".join(lines) in ROOT.joinpath("docs/validation.md").read_text(encoding="utf-8")


def test_readme_has_the_recorded_error():
    found = recordings.read(errors.PREDICTED)["launches"].values()
    error = f"{100 * fmean(map(errors.error, found)):.1f}%"
    rows = re.findall(
        r"^\| public kernels on tensor cores.*",
        ROOT.joinpath("README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert any(f"| {len(found)}, held out |" in row and error in row for row in rows)
