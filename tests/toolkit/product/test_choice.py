"""The launches that a call makes of the plan of a product."""

import re

import pytest

from analysis.devices import find_device
from analysis.problem import LARGEST_DIMENSION
from kernels.path_times import basis, plan_for
from kernels.paths import FOLDERS, source_of
from kernels.product import Product
from toolkit.product.choice import explain_choice, recipe_for
from toolkit.product.operands import Layout, Operand
from validation import ROOT

KERNEL = re.compile(r"__global__.*?\n\{\n(.*?)\n\}", re.DOTALL)


@pytest.mark.parametrize(("device", "may_start_early"), [("h200", True), ("a100-80gb", False)])
def test_launches_may_start_early_from_sm_90_on(device, may_start_early):
    one = Operand(9, 9, 9, 1, 0, 16)
    steps = recipe_for(Layout(one, one, one, 1), find_device(device)).steps
    assert [step.waits_itself for step in steps] == [may_start_early]


@pytest.mark.parametrize("beyond", [0, 1, 2**16 - 1, 2**16, 2**40])
def test_rows_too_far_apart_for_the_kernels_are_copied(beyond):
    far = LARGEST_DIMENSION + beyond
    apart, near = Operand(3, 40, far, 1, 0, 16), Operand(40, 36, 36, 1, 0, 16)
    for layout in (
        Layout(apart, near, Operand(3, 36, 36, 1, 0, 16), 1),
        Layout(Operand(3, 40, 40, 1, 0, 16), near, Operand(3, 36, far, 1, 0, 16), 1),
    ):
        recipe = recipe_for(layout, find_device("h200"))
        entries = [step.entry for step in recipe.steps]
        assert entries.count("strided_copy") == (1 if beyond else 0)
        assert any(recipe.copies_bytes) == (beyond > 0)


def test_a_choice_is_explained_without_a_gpu():
    device, product = find_device("l4"), Product(m=1000, n=900, k=70, transpose_b=True)
    first, *others, last = explain_choice(product, device).splitlines()
    chosen = plan_for(device, product).label
    assert first.startswith(f"1000x900x70 NT on NVIDIA L4: {chosen}, ")
    assert len(others) == 2
    assert all(one.startswith("then ") and chosen not in one for one in others)
    assert last == basis(device)


PRODUCTS = [path.name for path in sorted((ROOT / "kernels" / FOLDERS[0]).glob("*.cu"))]


@pytest.mark.parametrize("file", PRODUCTS)
def test_every_kernel_waits_for_the_launch_before_it(file):
    """In the order of the text: nothing is copied, loaded or stored before the wait."""
    kernels = KERNEL.findall(source_of(file))
    assert kernels
    for body in kernels:
        wait = body.index("wait_for_last_launch();")
        before = re.sub(r"const auto \w+ = \[&\].*?\n    \};\n", "", body[:wait], flags=re.DOTALL)
        assert not re.search(r"\bC\[|\bstart\(|atomicAdd|__ld|__st|operands\.\w*pass", before)
