"""A remedy that is applied: all blocks of both versions are executed and compared first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from analysis.errors import InputError
from analysis.records.remedy import Remedy
from toolkit.execution.simulator import Announce, Simulator
from toolkit.machine_code.kernel import Kernel
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.remedies.result import Remedies
from toolkit.remedies.search import diff_of, error_of
from toolkit.remedies.verification import Pages, compared, pages_of

Advance = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Applied:
    """An edited source that writes what the original writes.

    `text` is empty if only `arguments` change, which are options of `simulate`; `compared` says
    what was compared.
    """

    name: str
    text: str
    diff: str
    arguments: tuple[str, ...]
    compared: str


def applied(
    remedies: Remedies,
    number: int,
    *,
    rounding: bool,
    advance: Advance | None = None,
    announce: Announce | None = None,
) -> Applied:
    """The edited source of a remedy, after all blocks of both versions were executed.

    Raises InputError if there is no such remedy or if results differ, by more than rounding unless
    `rounding` is false, and as `simulate` does.
    """
    remedy, launch = _remedy(remedies, number), remedies.launch
    assert launch is not None, "a remedy has one"
    edit = remedies.edits[number]
    if remedy.is_rounding and not rounding:
        raise InputError(
            f"--apply {number}: results differ by rounding ({remedy.error}): add --rounding"
        )
    changed = launch.edited(edit)
    before = _written(launch, launch.compiled(), advance, announce)
    after = _written(changed, changed.compiled(), advance, announce)
    blocks = prod(launch.grid)
    found = compared(before, after, blocks, blocks)
    if not (found.is_equal or (edit.may_round and rounding and found.is_rounding)):
        add = ": add --rounding" if edit.may_round and found.is_rounding else ""
        raise InputError(
            f"--apply {number}: refused, results differ: {found.place} (all {blocks:,} blocks "
            f"executed){add}"
        )
    equal = "equal bit for bit" if found.is_equal else error_of(found.error, found.bound)
    stem, _, suffix = launch.name.rpartition(".")
    return Applied(
        name=f"{stem}.remedy{number}.{suffix}",
        text=edit.applied(launch.text) if edit.replacements else "",
        diff=diff_of(launch, edit),
        arguments=edit.arguments,
        compared=f"all {blocks:,} blocks compared: {equal}",
    )


def _remedy(remedies: Remedies, number: int) -> Remedy:
    found = {one.number: one for one in remedies.found}
    if number not in found:
        known = f"choose one of {', '.join(map(str, found))}" if found else "none was found"
        raise InputError(f"--apply {number}: no such remedy: {known}")
    if number not in remedies.edits:
        raise InputError(f"--apply {number}: this remedy is made by hand: {found[number].title}")
    return found[number]


def _written(
    launch: KernelLaunch, kernel: Kernel, advance: Advance | None, announce: Announce | None
) -> tuple[Pages, ...]:
    """Return what all blocks of a launch write."""
    simulator = Simulator(
        arch=launch.arch,
        blocks="all",
        max_instructions=launch.max_instructions,
        advance=advance,
        announce=announce,
        setup=launch.setup,
    )
    execution = simulator.run(kernel, launch.geometry, launch.arguments)
    return pages_of(launch, kernel, execution)
