"""Continuation of an interrupted run: records that are kept, and settings that must be equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

from analysis.devices import Device
from analysis.errors import InputError, shortened
from analysis.problem import Gemm
from analysis.records.profile import ExecutorName, Profile, Record
from kernels.selection import Selection
from kernels.variant import Variant
from toolkit.profiling.plan import RunPlan

SOURCES = "kernel sources"  # the entry of a profile's software that tells them apart
DIGITS = 12
TOLD_BY_COUNTING = {"Nsight Compute", "Hardware counters"}  # not known when a run begins
INTERRUPTED = "interrupted"
MOST = 1000  # letters of a value in a message


class Records(dict[tuple[Gemm, str], Record]):
    """The records of a run; `changed` hears of every new one."""

    def __init__(self, changed: Callable[[Record], None]) -> None:
        super().__init__()
        self._changed = changed

    def __setitem__(self, key: tuple[Gemm, str], record: Record) -> None:
        super().__setitem__(key, record)
        self._changed(record)


def digest(selections: Iterable[Selection]) -> str:
    """Digest of the sources and parameters of these rungs."""
    sources = [
        f"{x.variant.source}{sorted(x.parameters.items())}"
        for x in selections
        if isinstance(x.variant, Variant)
    ]
    return sha256("\0".join(sources).encode()).hexdigest()[:DIGITS]


def check_unchanged(before: Profile, now: Profile, where: str) -> None:
    """Raise InputError where a run cannot go on from another: the first difference, by name.

    `now` is the new run with nothing done yet.
    """
    for what, old, new in differences(before, now):
        raise InputError(
            f"cannot resume {where}: {what} was {shortened(old, MOST)}, now it is "
            f"{shortened(new, MOST)}: leave out --resume, or repeat what was run: "
            f"{shortened(before.command, 2 * MOST)}"
        )


def differences(before: Profile, now: Profile) -> Iterator[tuple[str, str, str]]:
    """Differences that forbid continuing a run: name, earlier value, present value."""
    for name, old_value, new_value in _of_device(before.device, now.device):
        yield name, old_value, new_value
    # the options come first: which sources are used depends on them
    given, given_now = _options(before.command), _options(now.command)
    for name in given | given_now:
        if given.get(name) != given_now.get(name):
            yield name, given.get(name, "absent"), given_now.get(name, "absent")
    old, new = before.environment, now.environment
    versions = {"toolkit": old.toolkit_version, **old.software}
    versions_now = {"toolkit": new.toolkit_version, **new.software}
    for name in sorted((versions.keys() | versions_now.keys()) - TOLD_BY_COUNTING):
        if versions.get(name) != versions_now.get(name):
            yield name, versions.get(name, "absent"), versions_now.get(name, "absent")


def _of_device(before: Device, now: Device) -> Iterator[tuple[str, str, str]]:
    """Values of a device that two runs have otherwise: name, earlier value, present value.

    Sources of values are left out, and values that were not known when the first run began.
    """
    if before.name != now.name:
        yield "the device", before.name, now.name
    for name, value in vars(before).items():
        if name != "sources" and value is not None and value != getattr(now, name):
            yield f"{name} of the device", str(value), str(getattr(now, name))


def _options(command: str) -> dict[str, str]:
    """Value of each option of a command line, such as "tiled, cpu" for `--variant`."""
    head, *options = command.split(" --")
    found = {"the command": head}
    for option in options:
        name, _, value = option.partition(" ")
        earlier = f"{found[f'--{name}']}, " if f"--{name}" in found else ""
        found[f"--{name}"] = f"{earlier}{value}" if value else "given"
    return found


def finished(before: Profile, plan: RunPlan) -> dict[tuple[Gemm, str], Record]:
    """The records that need not be made again.

    On a GPU the variants of a shape are timed together: a shape stands as a whole, or not at all,
    but for those that failed, which are not launched again beside the others.
    """
    found = {(record.shape, record.label): record for record in before.records}
    done = {key: record for key, record in found.items() if stands(record, before.executor)}
    if before.executor != "gpu":
        return done
    labels = [selection.label for selection in plan.selections]
    whole = {shape for shape in plan.shapes if all((shape, label) in done for label in labels)}
    return {
        key: record for key, record in done.items() if key[0] in whole or record.status == "failed"
    }


def is_result(record: Record) -> bool:
    """True if a record has more than a plan: it was measured or simulated, or it failed."""
    return bool(record.measured or record.simulated) or record.status == "failed"


def stands(record: Record, executor: ExecutorName) -> bool:
    """True if a record need not be made again."""
    if record.status == "skipped" and (record.reason or "").startswith(INTERRUPTED):
        return False
    if record.measured is not None:
        return record.measured.stopped_by != "interrupt"
    return record.status != "ok" or executor != "gpu"
