"""Kernel Tuner's strategies: they choose what is measured, and the toolkit's bench measures it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from analysis.errors import (
    LaunchError,
    ToolkitError,
    UnavailableError,
    UnknownNameError,
    first_line,
)
from analysis.records.profile import Record
from kernels.selection import Selection

BRUTE_FORCE = "brute_force"  # the best by prediction: that needs no Kernel Tuner
INSTALL = "pip install '.[tune]'"

Measure = Callable[[Sequence[Selection]], Sequence[Record]]


def check_strategy(strategy: str) -> None:
    """Raise UnavailableError without Kernel Tuner, UnknownNameError for none of its strategies."""
    if strategy == BRUTE_FORCE:
        return
    if find_spec("kernel_tuner") is None:
        raise UnavailableError(f"Kernel Tuner is not installed: {INSTALL}")
    from kernel_tuner.interface import strategy_map

    if strategy not in strategy_map:
        raise UnknownNameError("--strategy", strategy, strategy_map)


def search(strategy: str, selections: Sequence[Selection], most: int, measure: Measure) -> None:
    """Let a strategy have at most `most` of the selections measured.

    Raises LaunchError where it stops for a reason of its own.
    """
    from kernel_tuner import tune_kernel

    by_values = {tuple(one.parameters.values()): one for one in selections}
    names = list(selections[0].parameters)

    def is_wanted(parameters: dict[str, int]) -> bool:
        return tuple(parameters.values()) in by_values

    try:
        with warnings.catch_warnings():  # on blocks and arguments, which are not its business here
            warnings.simplefilter("ignore")
            tune_kernel(
                "rung",
                "",
                1,
                [],
                {name: sorted({one.parameters[name] for one in selections}) for name in names},
                restrictions=[is_wanted],
                lang="C",
                simulation_mode=True,  # it opens no GPU
                strategy=_Strategy(strategy, by_values, measure),
                strategy_options={"max_fevals": most},
                quiet=True,
            )
    except ToolkitError:
        raise
    except Exception as error:
        raise LaunchError(f"Kernel Tuner stopped: {first_line(error)}") from None


class _Strategy:
    """A strategy by its name, as Kernel Tuner takes strategies of its users."""

    def __init__(
        self, name: str, by_values: dict[tuple[int, ...], Selection], measure: Measure
    ) -> None:
        self._name, self._by_values, self._measure = name, by_values, measure

    def tune(self, searchspace: Any, runner: Any, options: Any) -> Any:
        from kernel_tuner.interface import strategy_map

        options["strategy"] = self._name
        runner.run = self._run
        return strategy_map[self._name].tune(searchspace, runner, options)

    def _run(self, configurations: Sequence[Any], options: Any) -> list[dict[str, Any] | None]:
        """What Kernel Tuner's runners answer: None behind the last that may be measured."""
        budget = options.budget
        asked = [tuple(one) for one in configurations[: budget.get_evaluations_remaining()]]
        budget.add_evaluations(len(asked))
        selections = [self._by_values[one] for one in dict.fromkeys(asked)]
        found = dict(zip(dict.fromkeys(asked), self._measure(selections), strict=True))
        results = [_result(self._by_values[one], found[one]) for one in asked]
        return [*results, *[None] * (len(configurations) - len(asked))]


def _result(selection: Selection, record: Record) -> dict[str, Any]:
    from kernel_tuner.util import RuntimeFailedConfig

    if record.measured is None:
        return {**selection.parameters, "__error__": RuntimeFailedConfig()}
    return {**selection.parameters, "time": 1e3 * record.measured.median_s}
