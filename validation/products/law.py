"""The law of the 300 products at which `best` is judged. Written before any of them was timed.

`products(seed)` draws three groups: 100 with M, N and K log-uniform from 1 to 16,384, 150 from 128
to 16,384, and 50 layers of public models. In each group a third has only odd sizes, a third
multiples of 8, and the rest is as it was drawn. The four combinations of transposes are equally
frequent. A quarter has leading dimensions above the size, a quarter has alpha and beta other than 1
and 0, and a tenth is a batch of 2 to 64. A product has at most 2^36 multiply-adds and 8 GB.

Only `random.Random.random` is drawn from, which Python guarantees not to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from random import Random
from typing import TypeVar

from kernels.product import Product

SEED = 20251127
LARGEST_SIZE = 16_384
MOST_MULTIPLY_ADDS = 2**36
MOST_BYTES = 8 * 10**9
FACTORS = ((0.75, 0.5), (2.0, -1.0), (-1.0, 1.0), (1.5, 0.0), (1.0, 0.25))  # alpha and beta
WIDEST_GAP = 64  # floats between the end of a row and the next

T = TypeVar("T")


class Group(StrEnum):
    """Group of products whose sizes are drawn from one range."""

    ANY = "any"  #: log-uniform from 1
    LARGE = "large"  #: log-uniform from 128
    LAYER = "layer"  #: a layer of a public model


class Sizes(StrEnum):
    """Property that all sizes of a product share."""

    ODD = "odd"
    EIGHTS = "multiples of 8"
    DRAWN = "as drawn"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One product of the law, with a name that is its own."""

    name: str
    group: Group
    sizes: Sizes
    product: Product


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A linear layer: inputs of `features` columns, one row a token, and `outputs` columns."""

    model: str
    layer: str
    features: int
    outputs: int


# Widths of the public configurations of these models.
LAYERS = (
    Layer(model="GPT-2", layer="attention", features=768, outputs=2304),
    Layer(model="GPT-2", layer="MLP up", features=768, outputs=3072),
    Layer(model="GPT-2", layer="MLP down", features=3072, outputs=768),
    Layer(model="GPT-2", layer="vocabulary", features=768, outputs=50257),
    Layer(model="BERT-large", layer="attention", features=1024, outputs=1024),
    Layer(model="BERT-large", layer="MLP up", features=1024, outputs=4096),
    Layer(model="BERT-large", layer="MLP down", features=4096, outputs=1024),
    Layer(model="Llama-2-7B", layer="attention", features=4096, outputs=4096),
    Layer(model="Llama-2-7B", layer="MLP up", features=4096, outputs=11008),
    Layer(model="Llama-2-7B", layer="MLP down", features=11008, outputs=4096),
    Layer(model="Llama-2-7B", layer="vocabulary", features=4096, outputs=32000),
    Layer(model="Llama-2-13B", layer="MLP up", features=5120, outputs=13824),
    Layer(model="Llama-3-8B", layer="key and value", features=4096, outputs=1024),
    Layer(model="Llama-3-8B", layer="MLP up", features=4096, outputs=14336),
    Layer(model="Llama-3-8B", layer="MLP down", features=14336, outputs=4096),
    Layer(model="Mixtral-8x7B", layer="router", features=4096, outputs=8),
    Layer(model="ViT-B/16", layer="patches", features=768, outputs=768),
    Layer(model="ViT-L/16", layer="MLP up", features=1024, outputs=4096),
    Layer(model="ResNet-50", layer="3x3 of stage 2", features=576, outputs=64),
    Layer(model="ResNet-50", layer="1x1 of stage 4", features=512, outputs=2048),
    Layer(model="ResNet-50", layer="classes", features=2048, outputs=1000),
    Layer(model="VGG-16", layer="first dense", features=25088, outputs=4096),
    Layer(model="DLRM", layer="bottom MLP", features=13, outputs=512),
    Layer(model="DLRM", layer="top MLP", features=479, outputs=1024),
    Layer(model="Whisper-small", layer="MLP up", features=768, outputs=3072),
)
GROUPS = ((Group.ANY, 100), (Group.LARGE, 150), (Group.LAYER, 50))
LEAST_SIZES = {Group.ANY: 1, Group.LARGE: 128}


def products(seed: int = SEED) -> tuple[Case, ...]:
    """The products of a seed: 100 of any size, 150 of 128 or more, and 50 layers."""
    random = Random(seed)
    return tuple(case for group, count in GROUPS for case in _group(random, group, count))


def _group(random: Random, group: Group, count: int) -> Iterator[Case]:
    third = count // 3
    kinds = [Sizes.ODD] * third + [Sizes.EIGHTS] * third + [Sizes.DRAWN] * (count - 2 * third)
    kinds = _shuffled(random, kinds)
    transposes = _shuffled(random, [(bool(i & 1), bool(i & 2)) for i in range(count)])
    gaps = _shuffled(random, [i < count // 4 for i in range(count)])
    scaled = _shuffled(random, [i < count // 4 for i in range(count)])
    batched = _shuffled(random, [i < count // 10 for i in range(count)])
    for i in range(count):
        while True:
            origin, sizes = _sizes(random, group, kinds[i], i)
            product = _product(
                random, sizes, kinds[i], transposes[i], gaps[i], scaled[i], batched[i]
            )
            if product is not None:
                break
        yield Case(name=f"{group} {i}{origin}", group=group, sizes=kinds[i], product=product)


def _sizes(random: Random, group: Group, kind: Sizes, i: int) -> tuple[str, tuple[int, int, int]]:
    """M, N and K, and the layer's name. Odd widths of a layer have a column more, for its bias."""
    if group is Group.LAYER:
        layer = LAYERS[i % len(LAYERS)]
        tokens = _of_kind(_log_uniform(random, 1, LARGEST_SIZE), kind)
        widths = [_of_kind(one, kind) for one in (layer.outputs, layer.features)]
        return f" {layer.model} {layer.layer}", (tokens, widths[0], widths[1])
    least = LEAST_SIZES[group]
    m, n, k = (_of_kind(_log_uniform(random, least, LARGEST_SIZE), kind) for _ in range(3))
    return "", (m, n, k)


def _product(
    random: Random,
    sizes: tuple[int, int, int],
    kind: Sizes,
    transposes: tuple[bool, bool],
    has_gaps: bool,
    is_scaled: bool,
    is_batched: bool,
) -> Product | None:
    """The product of these sizes, None if it has too many multiply-adds or bytes."""
    m, n, k = sizes
    step = 8 if kind is Sizes.EIGHTS else 1
    gaps = [step * _between(random, 1, WIDEST_GAP // step) if has_gaps else 0 for _ in range(3)]
    alpha, beta = FACTORS[_between(random, 0, len(FACTORS) - 1)] if is_scaled else (1.0, 0.0)
    product = Product(
        m=m,
        n=n,
        k=k,
        transpose_a=transposes[0],
        transpose_b=transposes[1],
        lda=(m if transposes[0] else k) + gaps[0],
        ldb=(k if transposes[1] else n) + gaps[1],
        ldc=n + gaps[2],
        batch=_between(random, 2, 64) if is_batched else 1,
        alpha=alpha,
        beta=beta,
    )
    fits = product.multiply_adds <= MOST_MULTIPLY_ADDS and product.allocated_bytes <= MOST_BYTES
    return product if fits else None


def _of_kind(size: int, kind: Sizes) -> int:
    if kind is Sizes.ODD:
        return size - 1 if size == LARGEST_SIZE else size | 1
    return max(8, (size + 4) // 8 * 8) if kind is Sizes.EIGHTS else size


def _log_uniform(random: Random, least: int, most: int) -> int:
    return min(most, int(exp(log(least) + random.random() * (log(most + 1) - log(least)))))


def _between(random: Random, least: int, most: int) -> int:
    return least + int(random.random() * (most - least + 1))


def _shuffled(random: Random, values: Sequence[T]) -> list[T]:
    keyed = sorted((random.random(), i) for i in range(len(values)))
    return [values[i] for _, i in keyed]
