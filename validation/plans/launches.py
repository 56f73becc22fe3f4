"""Launches made from a seed, to compare a plan with the execution of all blocks.

    python -m validation.plans.launches 7             # the source of seed 7, and what is known
    python -m validation.plans.launches 0 2000        # how many launches have what in them

About half of the launches use the ingredients of `affine` alone. The others use some of `bent` and
`data` too. Conditions of blocks, in any of several uses, contain other ingredients.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from random import Random

import numpy as np

from toolkit.launch.launch import Argument
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation.plans import affine, bent, data
from validation.plans.index import Index, Values
from validation.plans.writer import LEAST_SHARE, Three, Writer

AFFINE_SHARE = 0.52
AT_A_TIME = 16  # seeds whose kernels are compiled together
ARCHITECTURES = ("sm_90", "sm_80", "sm_90", "sm_75", "sm_90", "sm_120", "sm_90", "sm_90")
MOST_THREADS = 400_000  # of a launch: all blocks of most launches take less than 0.3 s
WARPS = (32, 64, 96, 128, 192, 256)
UNEVEN = (33, 48, 100, 130)  # threads of a block, beside whole warps

Statement = Callable[[Writer], Iterator[str]]
Draw = Callable[[Writer], Index]
CONDITIONS = {**affine.CONDITIONS, **bent.CONDITIONS}
STATEMENTS = {**affine.STATEMENTS, **bent.STATEMENTS, **data.STATEMENTS}
AFFINE = {*affine.CONDITIONS, *affine.STATEMENTS}
BENT = {*bent.CONDITIONS, *bent.STATEMENTS}


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch. `kinds`: the kind of each block, None if they are not known.

    Blocks of one kind do the same, or differ by random numbers of the same distribution. Blocks of
    different kinds may do the same too.
    """

    seed: int
    source: str
    grid: Three
    block: Three
    arguments: tuple[Argument, ...]
    ingredients: frozenset[str]
    is_affine: bool
    kinds: Values | None

    @property
    def kernel(self) -> str:
        return f"made_{self.seed}"

    @property
    def architecture(self) -> str:
        return ARCHITECTURES[self.seed // AT_A_TIME % len(ARCHITECTURES)]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def rarest_share(self) -> float | None:
        """Share of the rarest kind of block."""
        if self.kinds is None:
            return None
        return float(np.bincount(self.kinds).min() / self.blocks)

    @property
    def has_frequent_kinds(self) -> bool:
        return self.rarest_share is not None and self.rarest_share >= LEAST_SHARE


def launch_of(seed: int) -> Launch:
    """The launch of this seed, always the same."""
    random = Random(seed)
    is_affine = random.random() < AFFINE_SHARE
    writer = _writer(seed, random)
    names = _chosen(writer, is_affine)
    body = list(_body(writer, names))
    return Launch(
        seed=seed,
        source=_source(writer, body),
        grid=writer.grid,
        block=writer.block,
        arguments=tuple(writer.arguments),
        ingredients=frozenset(writer.used),
        is_affine=is_affine,
        kinds=writer.kind_of() if writer.is_known else None,
    )


def kernel_of(launch: Launch, architecture: str | None = None) -> Kernel:
    """Machine code of a launch, by default for its own architecture."""
    image = _image(launch.seed // AT_A_TIME, architecture or launch.architecture)
    return Kernel.from_image(image, launch.kernel)


@lru_cache(maxsize=1)
def _image(group: int, architecture: str) -> bytes:
    launches = [launch_of(AT_A_TIME * group + k) for k in range(AT_A_TIME)]
    return compile_cubin(
        "".join(one.source for one in launches),
        name="made.cu",
        kernel=launches[0].kernel,
        arch=architecture,
    ).image


def _writer(seed: int, random: Random) -> Writer:
    is_even = random.random() < 0.5
    threads = random.choice(UNEVEN if random.random() < 0.3 and not is_even else WARPS)
    most = min(20_000 if random.random() < 0.1 else 5_000, MOST_THREADS // threads)
    blocks = random.randint(256, most)
    in_rows = random.random() < 0.35
    grid = _divided(random, blocks, random.choice((1, 1, 2, 2, 3)))
    block = (threads, 1, 1)
    if in_rows or random.random() < 0.2:
        wide = random.choice([n for n in (2, 4, 8, 16, 32) if threads % n == 0] or [threads])
        block = (wide, threads // wide, 1)
    writer = Writer(
        seed=seed, random=random, grid=grid, block=block, in_rows=in_rows, is_even=is_even
    )
    writer.note_addresses(writer.elements.min(axis=1) * affine.FLOAT)
    return writer


def _divided(random: Random, blocks: int, axes: int) -> Three:
    """A grid of about so many blocks, at least 256."""
    if axes == 1:
        return blocks, 1, 1
    z = random.randint(2, 6) if axes == 3 else 1
    in_plane = -(-blocks // z)
    x = min(in_plane, random.choice((random.randint(2, 9), isqrt(in_plane), in_plane // 3)))
    y = -(-in_plane // x)
    x, y = (y, x) if random.random() < 0.5 else (x, y)
    return x, y, z


def _chosen(w: Writer, is_affine: bool) -> list[str]:
    """Names of ingredients, in the order in which they are written."""
    random, more = w.random, 0 if w.is_even else 1
    if is_affine:
        names = random.sample(list(affine.CONDITIONS), random.randint(1, 2 + more))
        names += random.sample(list(affine.STATEMENTS), random.randint(1, 4))
    else:
        names = random.sample(sorted(BENT), random.randint(1 + more, 2 + 3 * more))
        names += random.sample(list(data.STATEMENTS), random.randint(1, 4))
        names += random.sample(sorted(AFFINE), random.randint(0, 2))
    random.shuffle(names)
    return names


def _body(w: Writer, names: list[str]) -> Iterator[str]:
    while names:
        name = names.pop()
        if name in STATEMENTS:
            w.used.add(name)
            yield from STATEMENTS[name](w)
        else:
            found = w.condition(CONDITIONS[name])
            if found is not None:
                w.used.add(name)
                yield from _used(w, found, names)


def _used(w: Writer, condition: Index, names: list[str]) -> Iterator[str]:
    """Statement that uses a condition on the block."""
    use = w.random.choice(("branch", "branch", "two branches", "exit", "trips", "address", "value"))
    w.used.add(f"condition: {use}")
    text, j = condition.text, w.fresh("j")
    if use in ("branch", "two branches"):
        yield f"if ({text}) {{"
        yield from _inside(w, names)
        if use == "two branches":
            yield "} else {"
            yield from _inside(w, names)
        yield "}"
    elif use == "exit":
        yield f"if ({text}) return;"
    elif use == "trips":
        few, many = w.random.sample(range(9), 2)
        yield f"for (int {j} = 0; {j} < ({text} ? {few} : {many}); ++{j}) {{"
        yield f"v = v * 0.5f + {w.floats()}[i] * {j}; }}"
    elif use == "address":
        yield f"v += {w.floats()}[{text} ? i : tid];"
    else:
        yield f"v = {text} ? v * 2.5f : v + {w.random.randint(1, 9)};"


def _inside(w: Writer, names: list[str]) -> Iterator[str]:
    """Other ingredients, or a little work."""
    count = min(len(names), w.random.choice((0, 1, 1, 2)))
    inner = [names.pop() for _ in range(count)]
    yield from _body(w, inner)
    yield from w.arithmetic()
    if w.chance(0.5):
        yield f"v += {w.floats()}[i];"


def _source(w: Writer, body: list[str]) -> str:
    out = w.zeros(int(w.elements.max()) + 1)
    x, y, _ = w.block
    rows = f"(({w.grid[1]} * bz + by) * {y} + threadIdx.y) * {w.grid[0] * x} + bx * {x}"
    place = f"{rows} + threadIdx.x" if w.in_rows else f"bid * {w.threads} + tid"
    lines = [
        "const int bx = blockIdx.x, by = blockIdx.y, bz = blockIdx.z;",
        f"const int bid = bx + {w.grid[0]} * (by + {w.grid[1]} * bz);",
        f"const int tid = threadIdx.x + {x} * threadIdx.y;",
        f"const int i = {place};",
        "float v = 0; int k = tid;",
        *body,
        f"{out}[i] = v + k;",
    ]
    head = f'extern "C" __global__ void made_{w.seed}({", ".join(w.parameters)}) {{'
    return "\n".join([*w.outside, head, *(f"    {line}" for line in lines), "}\n"])


def described(launch: Launch) -> Iterator[str]:
    """The source, and what is known of the launch, as comments of C."""
    yield launch.source
    kinds = "not known" if launch.kinds is None else f"{launch.kinds.max() + 1:,}"
    rarest = launch.rarest_share
    yield f"// {launch.architecture}, grid {launch.grid}, block {launch.block}"
    yield f"// kinds of blocks: {kinds}" + (f", the rarest {rarest:.2%}" if rarest else "")
    yield f"// {', '.join(sorted(launch.ingredients))}"


def counted(first: int, count: int) -> Iterator[str]:
    """Number of launches with each ingredient."""
    launches = [launch_of(seed) for seed in range(first, first + count)]
    found = Counter(name for one in launches for name in one.ingredients)
    found["(affine alone)"] = sum(one.is_affine for one in launches)
    found["(every kind frequent)"] = sum(one.has_frequent_kinds for one in launches)
    found["(every kind frequent, not affine)"] = sum(
        one.has_frequent_kinds and not one.is_affine for one in launches
    )
    found["(kinds not known)"] = sum(one.kinds is None for one in launches)
    yield from (f"{name:36}{n:6,}{n / count:8.1%}" for name, n in found.most_common())


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    lines = described(launch_of(*numbers)) if len(numbers) == 1 else counted(*numbers)
    print("\n".join(lines))
