"""Definition of a benchmark, and of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.microbenchmarks.bench import Bench


@dataclass(frozen=True, kw_only=True)
class Median:
    """The median of some repeats, with the least and the greatest of them."""

    value: float
    low: float
    high: float
    repeats: int
    detail: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, samples: Sequence[float], **detail: Any) -> Median:
        """The summary of samples, of which there must be one at least."""
        values = [float(sample) for sample in samples]
        return cls(
            value=median(values),
            low=min(values),
            high=max(values),
            repeats=len(values),
            detail=detail,
        )

    def scaled(self, factor: float) -> Median:
        """The same in another unit."""
        return replace(
            self, value=self.value * factor, low=self.low * factor, high=self.high * factor
        )

    def less(self, other: float) -> Median:
        """The same above another number."""
        return replace(self, value=self.value - other, low=self.low - other, high=self.high - other)

    def with_detail(self, **detail: Any) -> Median:
        return replace(self, detail={**self.detail, **detail})


def values(found: Mapping[int, Median]) -> dict[str, float]:
    """The medians, as a detail."""
    return {str(key): measured.value for key, measured in found.items()}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Constant: its name, which contains the unit, its method, and its benchmark."""

    name: str
    unit: str
    how: str
    measure: Callable[[Bench], Median]


def each(
    name: str, unit: str, how: str, measure: Callable[..., Median], /, **arguments: Any
) -> Iterator[Benchmark]:
    """One benchmark, or one for each value of the arguments that are tuples.

    `measure` is called with a bench and the arguments, and the texts are formatted with them.

    >>> [one.name for one in each("barrier_{warps}_warps_cycles", "cycles", "", max, warps=(1, 2))]
    ['barrier_1_warps_cycles', 'barrier_2_warps_cycles']
    """
    choices = [one if isinstance(one, tuple) else (one,) for one in arguments.values()]
    for chosen in product(*choices):
        given = dict(zip(arguments, chosen, strict=True))
        yield Benchmark(
            name=name.format(**given),
            unit=unit,
            how=how.format(**given),
            measure=partial(measure, **given),
        )
