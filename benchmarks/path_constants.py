"""Fit the constants of the paths' estimates on runs of `benchmarks.products --candidates`.

    python -m benchmarks.path_constants RUN.json... [--held-out RUN.json] [--only NAME]...

First the constants come as near to the measured times as they can (Gauss-Newton). Then one after
the other is changed a little, as long as the sum of squared errors and of the regret of choices
falls: how much longer the chosen path takes than the fastest that was timed. `--only` keeps the
other constants as they are. `--held-out` names a run with another seed, on which both are
evaluated too. No GPU; some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device, find_device
from kernels.path_rates import CONSTANTS, Constants
from kernels.path_times import candidates
from kernels.product import Product
from validation.products.law import SEED, products

TURNS = 3
FIRST_STEP, LATER = 0.06, 0.6  # relative change of a constant, and its factor from turn to turn
STEPS = 3  # of Gauss-Newton, each of which changes a constant by a third at most
DIFFERENCE, LARGEST_STEP = 0.02, 0.35
LARGE_ERROR = 0.12  # of a logarithm: larger ones count by their size, not by its square
STIFFNESS = 3e-6  # of the constants, without which two that hardly differ in effect would run away
NEAR, FAR_WEIGHT = 1.3, 0.2  # candidates that take so much longer than the fastest count less
MOST_ERROR = 0.5  # of a logarithm: larger ones are no reason to change a constant
#: Weight of the regret beside squared errors, and by which power of its estimate a candidate counts
#: in it: the shortest counts most, and one that is estimated 3% longer counts a sixth of it.
REGRET_WEIGHT, REGRET_POWER = 0.3, 60

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """The measured times of the candidates of a product, in their order; None if not timed."""

    number: int
    product: Product
    times_s: tuple[float | None, ...]

    @property
    def least_s(self) -> float:
        return min(one for one in self.times_s if one is not None)


def timed(run: dict[str, Any], device: Device) -> Iterator[Timed]:
    """The products of a run. All of their candidates are made once, for their labels."""
    drawn = products(run.get("seed", SEED))
    numbers = {case.name: (n, case.product) for n, case in enumerate(drawn)}
    for record in run["records"]:
        number, product = numbers[record["name"]]
        labels = [make(product, *rest).label for _, make, rest in candidates(device, product)]
        times = tuple(record["candidates"].get(label) for label in labels)
        if any(times):
            yield Timed(number=number, product=product, times_s=times)


def loss(constants: Constants, cases: Sequence[Timed], device: Device) -> float:
    """Mean squared error of the estimates' logarithms, and a share of the regret of choices."""
    total = weights = regret = 0.0
    for case in cases:
        found = [
            (estimate_s, time_s)
            for (estimate_s, _, _), time_s in zip(
                candidates(device, case.product, constants), case.times_s, strict=True
            )
            if time_s is not None
        ]
        for estimate_s, time_s in found:
            weight = 1.0 if time_s <= NEAR * case.least_s else FAR_WEIGHT
            error = min(abs(log(estimate_s / time_s)), MOST_ERROR)
            total, weights = total + weight * error**2, weights + weight
        regret += _regret(found, case.least_s)
    return total / weights + REGRET_WEIGHT * regret / len(cases)


def _regret(found: Sequence[tuple[float, float]], least_s: float) -> float:
    """Fraction by which the choice takes longer than one by the measured times.

    Both take a mean of candidates that are nearly as short as the shortest.
    """
    longer = [min(time_s / least_s - 1, MOST_ERROR) for _, time_s in found]

    def mixed(times: Sequence[float]) -> float:
        shares = [(min(times) / one) ** REGRET_POWER for one in times]
        return sum(share * one for share, one in zip(shares, longer, strict=True)) / sum(shares)

    estimates, measured = zip(*found, strict=True)
    return max(mixed(estimates) - mixed(measured), 0.0)


def changed(
    constants: Constants, factor: float, only: Sequence[str] | None = None
) -> Iterator[Constants]:
    """The constants with one of them multiplied, each in turn, or each of `only`."""
    for name, value in asdict(constants).items():
        if only and name not in only:
            continue
        every: list[Any] = [value * factor] if isinstance(value, float) else []
        if isinstance(value, tuple):
            every = [(*value[:n], one * factor, *value[n + 1 :]) for n, one in enumerate(value)]
        yield from (replace(constants, **{name: one}) for one in every)


def nearest(
    constants: Constants, cases: Sequence[Timed], device: Device, only: Sequence[str] | None = None
) -> Constants:
    """The constants whose estimates are nearest to the measured times."""
    for _ in range(STEPS):
        errors, weights = _errors(constants, cases, device)
        varied = list(changed(constants, 1 - DIFFERENCE, only))
        columns = [_errors(one, cases, device)[0] - errors for one in varied]
        slopes = np.stack(columns, axis=1) / -DIFFERENCE
        weighted = slopes * weights[:, None]
        stiff = STIFFNESS * len(errors) * np.eye(len(varied))
        step = np.linalg.solve(weighted.T @ slopes + stiff, -weighted.T @ errors)
        factors = 1 + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        tried = constants
        for place, factor in enumerate(factors):
            tried = _legal(list(changed(tried, float(factor), only))[place])
        if _size(tried, cases, device) >= _size(constants, cases, device):
            break
        constants = tried
    return constants


def _legal(constants: Constants) -> Constants:
    """The constants with last turns that take no longer than whole ones."""
    first, second, third = (min(one, 1.0) for one in constants.last_turn_shares)
    return replace(constants, last_turn_shares=(first, second, third))


def _errors(constants: Constants, cases: Sequence[Timed], device: Device) -> tuple[Floats, Floats]:
    """Errors of the estimates' logarithms, and their weights."""
    errors, weights = [], []
    for estimate_s, time_s, least_s in _timed_estimates(constants, cases, device):
        error = log(estimate_s / time_s)
        near = 1.0 if time_s <= NEAR * least_s else FAR_WEIGHT
        errors.append(error)
        weights.append(near * min(1.0, LARGE_ERROR / max(abs(error), 1e-9)))
    return np.array(errors), np.array(weights)


def _size(constants: Constants, cases: Sequence[Timed], device: Device) -> float:
    """The weighted sum of the errors' squares, of large ones of their sizes."""
    errors, weights = _errors(constants, cases, device)
    return float((weights * errors**2).sum())


def fitted(cases: Sequence[Timed], device: Device, only: Sequence[str] | None = None) -> Constants:
    """The nearest constants, each then changed up and down, by less from turn to turn."""
    best, step = nearest(CONSTANTS, cases, device, only), FIRST_STEP
    least = loss(best, cases, device)
    count = sum(1 for _ in changed(best, 1.0, only))
    for turn in range(TURNS):
        for n in range(count):
            for factor in (1 + step, 1 / (1 + step)):
                tried = _legal(
                    next(one for i, one in enumerate(changed(best, factor, only)) if i == n)
                )
                found = loss(tried, cases, device)
                if found < least:
                    best, least = tried, found
                    break
        step *= LATER
        print(f"turn {turn + 1}: {least:.4f}", file=sys.stderr, flush=True)
    return best


def _timed_estimates(
    constants: Constants, cases: Sequence[Timed], device: Device
) -> Iterator[tuple[float, float, float]]:
    """Estimate, measured time and least time of the product, of each candidate that was timed."""
    for case in cases:
        found = candidates(device, case.product, constants)
        for (estimate_s, _, _), time_s in zip(found, case.times_s, strict=True):
            if time_s is not None:
                yield estimate_s, time_s, case.least_s


def evaluate(constants: Constants, cases: Sequence[Timed], device: Device) -> str:
    """Errors of the chosen paths' estimates, and regrets."""
    errors, regrets = [], []
    for case in cases:
        found = candidates(device, case.product, constants)
        known = [
            (estimate_s, time_s)
            for (estimate_s, _, _), time_s in zip(found, case.times_s, strict=True)
            if time_s is not None
        ]
        estimate_s, time_s = min(known)
        errors.append(abs(log(estimate_s / time_s)))
        regrets.append(time_s / case.least_s - 1)
    return (
        f"{len(cases)} products: estimates {exp(sum(errors) / len(errors)) - 1:.1%} off, by a "
        f"factor of {exp(max(errors)):.2f} at worst; regret {sum(regrets) / len(regrets):.1%} on "
        f"average, {max(regrets):.0%} at worst"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--held-out", type=Path, help="run that is evaluated only")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--only", action="append", help="constant to fit, instead of all")
    chosen = parser.parse_args()
    device = find_device(chosen.device)

    def read(run: Path) -> list[Timed]:
        return list(timed(json.loads(run.read_text(encoding="utf-8")), device))

    cases = [case for run in chosen.runs for case in read(run)]
    held_out = read(chosen.held_out) if chosen.held_out else []
    best = fitted(cases, device, chosen.only)
    for name, value in asdict(best).items():
        rounded = tuple(float(f"{one:.3g}") for one in value) if isinstance(value, tuple) else value
        print(f"    {name} = {rounded if isinstance(value, tuple) else f'{value:.3g}'}")
    rates = best.any_rates
    as_predicted = replace(best, any_rates=(sum(rates) / len(rates),) * len(rates))
    for name, some in (("fitted", cases), ("held out", held_out)):
        if not some:
            continue
        print(f"{name}, before:", evaluate(CONSTANTS, some, device))
        print(f"{name}, after:", evaluate(best, some, device))
        print(f"{name}, one factor for all rates:", evaluate(as_predicted, some, device))
    return 0


if __name__ == "__main__":
    sys.exit(main())
