"""The law of the 300 products is deterministic, and what it says holds."""

from collections import Counter
from hashlib import sha256

import pytest

from validation.products.law import (
    GROUPS,
    LARGEST_SIZE,
    LAYERS,
    MOST_BYTES,
    MOST_MULTIPLY_ADDS,
    SEED,
    Group,
    Sizes,
    products,
)

# of the text of all cases: another law, or another order of draws, is another set
DIGEST = "0618b49a51de225052d095cbd240a647c4c1835dab2be9c04c1db74a0a27fcc5"


def sizes(case):
    return case.product.m, case.product.n, case.product.k


def cases(group, seed=SEED):
    return [case for case in products(seed) if case.group is group]


def has_gaps(product):
    a, b, c = product.a, product.b, product.c
    return all(one.pitch > one.columns for one in (a, b, c))


def test_the_set_is_always_the_same():
    assert products() == products()
    text = "\n".join(map(repr, products()))
    assert sha256(text.encode()).hexdigest() == DIGEST


def test_another_seed_is_another_set():
    ours, theirs = ({sizes(case) for case in products(seed)} for seed in (SEED, SEED + 1))
    assert len(ours & theirs) < 10  # few sizes coincide, such as those of tiny products


@pytest.mark.parametrize("seed", [SEED, 1])
@pytest.mark.parametrize(("group", "count"), GROUPS)
def test_a_group_has_the_shares_that_the_law_says(group, count, seed):
    found = cases(group, seed)
    assert len(found) == count
    kinds = Counter(case.sizes for case in found)
    assert kinds[Sizes.ODD] == kinds[Sizes.EIGHTS] == count // 3
    layouts = Counter((case.product.transpose_a, case.product.transpose_b) for case in found)
    assert len(layouts) == 4
    assert max(layouts.values()) - min(layouts.values()) <= 1
    assert sum(has_gaps(case.product) for case in found) == count // 4
    assert sum((case.product.alpha, case.product.beta) != (1, 0) for case in found) == count // 4
    batches = [case.product.batch for case in found if case.product.batch > 1]
    assert len(batches) == count // 10
    assert max(batches) <= 64


@pytest.mark.parametrize("seed", [SEED, 1, 2])
def test_every_product_is_within_the_bounds(seed):
    for case in products(seed):
        assert case.product.multiply_adds <= MOST_MULTIPLY_ADDS == 2**36
        assert case.product.allocated_bytes <= MOST_BYTES
        if case.sizes is Sizes.ODD:
            assert all(size % 2 for size in sizes(case))
        if case.sizes is Sizes.EIGHTS:
            assert not any(size % 8 for size in sizes(case))
        if case.group is not Group.LAYER:
            least = 128 if case.group is Group.LARGE else 1
            assert all(least <= size <= LARGEST_SIZE for size in sizes(case))


def test_sizes_are_log_uniform():
    large = [size for case in cases(Group.LARGE) for size in sizes(case)]
    small = sum(size < 1448 for size in large)  # the geometric mean of 128 and 16,384
    # the bound on multiply-adds leaves out the largest, so that small ones are more than a half
    assert 0.45 * len(large) < small < 0.65 * len(large)


def test_a_layer_has_the_widths_of_its_model():
    for i, case in enumerate(cases(Group.LAYER)):
        layer, product = LAYERS[i % len(LAYERS)], case.product
        assert layer.model in case.name
        assert layer.layer in case.name
        for size, width in ((product.n, layer.outputs), (product.k, layer.features)):
            assert abs(size - width) <= (4 if case.sizes is Sizes.EIGHTS else 1)


def test_names_are_unique():
    assert len({case.name for case in products()}) == 300
