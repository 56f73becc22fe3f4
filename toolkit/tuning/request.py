"""What a sweep is asked to measure: a file that its process reads, and keys that both sides use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis.geometry import Geometry
from analysis.problem import Gemm, parse_shape
from kernels.selection import find
from kernels.variant import Parameters, Variant

BLOCK_SIZES = ("block_size_x", "block_size_y", "block_size_z")  # Kernel Tuner's own names
BRUTE_FORCE = "brute_force"  # the strategy that measures all that it is given
# What a line of the sweep's process begins with; Ray puts the worker's name before it.
BEGINS, FAILS = "tuning-begins", "tuning-fails"  # a configuration
BREAKS, STOPS = "tuning-breaks", "tuning-stops"  # the process: by what it ran, or for lack of room


@dataclass(frozen=True, kw_only=True)
class Request:
    """One sweep of one rung at one shape; `workers` is None on one GPU, without Ray.

    `most` bounds how many configurations a strategy measures.
    """

    variant: str
    shape: str
    seed: int
    configurations: tuple[dict[str, int], ...]
    cache: str
    iterations: int
    strategy: str
    most: int
    workers: int | None = None

    @property
    def rung(self) -> Variant:
        found = find(self.variant)
        assert isinstance(found, Variant)
        return found

    @property
    def problem(self) -> Gemm:
        return parse_shape(self.shape)

    def geometry(self, parameters: Parameters) -> Geometry:
        """Of a launch; `parameters` may hold more than the rung's own."""
        own = self.own(parameters)
        return self.rung.geometry(own, self.rung.executed(self.problem))

    def own(self, parameters: Mapping[str, int]) -> dict[str, int]:
        """The rung's parameters among Kernel Tuner's, which has the size of the block too."""
        return {name: int(parameters[name]) for name in self.rung.parameters}

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Request:
        values = json.loads(path.read_text(encoding="utf-8"))
        return cls(**values | {"configurations": tuple(values["configurations"])})


def key_of(parameters: Mapping[str, int]) -> str:
    """The name of a configuration: "bk=8,tm=4"."""
    return ",".join(f"{name}={value}" for name, value in parameters.items())


def tunable(request: Request) -> dict[str, list[int]]:
    """The values of each parameter in Kernel Tuner's sense, the block's size among them.

    Kernel Tuner takes a block's size from parameters only; each rung's follows from its own, and
    `is_wanted` allows no other.
    """
    rows = [full(request, one) for one in request.configurations]
    return {name: sorted({row[name] for row in rows}) for name in rows[0]}


def full(request: Request, parameters: Parameters) -> dict[str, int]:
    """A configuration with the size of its block."""
    block = request.geometry(parameters).block
    return {**parameters, **dict(zip(BLOCK_SIZES, block, strict=True))}


def wanted(request: Request) -> list[tuple[int, ...]]:
    """The configurations as Kernel Tuner sees them, in the order of the request."""
    return [tuple(full(request, one).values()) for one in request.configurations]
