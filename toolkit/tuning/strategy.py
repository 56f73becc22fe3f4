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
    from kernel_tuner.interface import strategy_map

    by_values = {tuple(one.parameters.values()): one for one in selections}

    def is_wanted(parameters: dict[str, int]) -> bool:
        return tuple(parameters.values()) in by_values

    def run(configurations: Sequence[Any], options: Any) -> list[dict[str, Any] | None]:
        """What Kernel Tuner's runners answer: None behind the last that may be measured."""
        left = options.budget.get_evaluations_remaining()
        asked = [by_values[tuple(one)] for one in configurations[:left]]
        options.budget.add_evaluations(len(asked))
        different = {one.label: one for one in asked}
        found = dict(zip(different, measure(list(different.values())), strict=True))
        results = [_result(one, found[one.label]) for one in asked]
        return [*results, *[None] * (len(configurations) - len(asked))]

    def tune(searchspace: Any, runner: Any, options: Any) -> Any:
        options["strategy"], runner.run = strategy, run
        return strategy_map[strategy].tune(searchspace, runner, options)

    try:
        with warnings.catch_warnings():  # on blocks and arguments, which are not its business here
            warnings.simplefilter("ignore")
            tune_kernel(
                "rung",
                "",
                1,
                [],
                {
                    name: sorted({one.parameters[name] for one in selections})
                    for name in selections[0].parameters
                },
                restrictions=[is_wanted],
                lang="C",
                simulation_mode=True,  # it opens no GPU
                strategy=type("Strategy", (), {"tune": tune}),  # as it takes those of its users
                strategy_options={"max_fevals": most},
                quiet=True,
            )
    except ToolkitError:
        raise
    except Exception as error:
        raise LaunchError(f"Kernel Tuner stopped: {first_line(error)}") from None


def _result(selection: Selection, record: Record) -> dict[str, Any]:
    from kernel_tuner.util import RuntimeFailedConfig

    if record.measured is None:
        return {**selection.parameters, "__error__": RuntimeFailedConfig()}
    return {**selection.parameters, "time": 1e3 * record.measured.median_s}
