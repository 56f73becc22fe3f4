"""Whole kernels, compiled, reordered and executed: the same bits, and no more clocks."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from analysis.errors import ToolkitError, UnsupportedError
from tests.cubins import cubin_of
from tests.sampling import chosen_of
from toolkit.execution.simulate import simulate
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.patching import REUSE, REUSE_BITS, changed, rewritten, with_field, words
from toolkit.reorder import kernel, reorder
from toolkit.reorder.verify import check
from toolkit.reorder.words import is_movable

SOURCE = Path(__file__).with_name("product.cu").read_text(encoding="utf-8")
K = 20


def quick(*architectures):
    """The oldest, one in between and the newest; the others are exhaustive."""
    return chosen_of(architectures, lambda arch: arch in ("sm_75", "sm_90", "sm_120"))


@cache
def _compiled(arch):
    return cubin_of(SOURCE, "product", arch)


@cache
def _reordered(arch):
    return reorder(_compiled(arch))


def _executed(cubin):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((32, K), (K, 32)))
    c = np.full((32, 32), np.nan, dtype=np.float32)
    return simulate(cubin, grid=1, block=64, arguments=[a, b, c, np.int32(K)])


@pytest.mark.parametrize("arch", quick("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"))
def test_the_same_bits_by_the_same_instructions(arch):
    found = _reordered(arch)
    before, after = _executed(found.before), _executed(found.after)
    for a, b in zip(before.outputs, after.outputs, strict=True):
        np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))
    assert before.counters == after.counters


@pytest.mark.parametrize("arch", quick("sm_75", "sm_80"))
def test_what_loses_nothing_stays_as_it_is(arch):
    """A multiply-add takes two clocks of its scheduler there: time to read four registers."""
    found = _reordered(arch)
    assert all(loop.after.clocks <= loop.before.clocks for loop in found.loops)


@pytest.mark.parametrize("arch", quick("sm_86", "sm_90", "sm_120"))
def test_fewer_clocks_are_lost_to_register_banks(arch):
    (loop,) = _reordered(arch).loops
    assert loop.multiply_adds == 64  # 4×4 sums, 4 steps
    assert loop.after.bank_clocks < loop.before.bank_clocks
    assert loop.after.clocks < loop.before.clocks


def test_it_is_found_again():
    assert reorder(_compiled("sm_90")).image == _reordered("sm_90").image


def test_only_multiply_adds_change_but_for_what_is_kept():
    before, after = (
        words(cubin.image, cubin.symbol)
        for cubin in (_compiled("sm_90"), _reordered("sm_90").after)
    )
    for position in changed(before, after):
        pair = [with_field(code[position], REUSE, REUSE_BITS, 0) for code in (before, after)]
        assert pair[0] == pair[1] or all(map(is_movable, pair))


def test_code_that_does_something_else_is_not_handed_out():
    before = _compiled("sm_90")
    position = next(k for k, w in enumerate(words(before.image, before.symbol)) if is_movable(w))

    def negated(code):
        code[position] ^= 1 << 75  # the sign of the third operand
        return code

    image = rewritten(before.image, {before.symbol: negated})
    wrong = Kernel.from_image(image, before.symbol)
    with pytest.raises(ToolkitError, match=r"another value|other values"):
        check(kernel.code_of(before), kernel.code_of(wrong))


def _of(body):
    source = f'extern "C" __global__ void k(float *x, int n) {{ {body} }}'
    return cubin_of(source, "k")


def test_a_kernel_without_products_stays_as_it_is():
    cubin = _of("x[n] = x[0] * x[1] + x[2];")
    assert reorder(cubin).image == cubin.image


def test_a_jump_to_a_computed_place_is_refused():
    cases = "".join(f"case {n}: x[{n}] = x[n + {7 * n}] * {n}; break; " for n in range(9))
    with pytest.raises(UnsupportedError, match=r"BRX .*: it jumps to a computed position"):
        reorder(_of(f"switch (n) {{ {cases} }}"))
