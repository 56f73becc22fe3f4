"""Remedies of a launch in the command `simulate`: found, printed, and applied."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from reports.sections.remedies import remedies_notes, remedies_table
from reports.text import many
from toolkit.cli.call import Call, SimulatedCall
from toolkit.cli.output import write
from toolkit.cli.progress import SimulationProgress
from toolkit.cli.terminal import note, out, print_without_margins, rich_table, say
from toolkit.remedies.result import LIMIT_S, Remedies


def with_remedies(simulated: SimulatedCall) -> SimulatedCall:
    """The result with the remedies of a launch of CUDA C++ that has a predicted time.

    A kernel that stands in a header is edited there, and compiled from the header alone: where that
    does not compile there are no edits.
    """
    from toolkit.remedies.find import remedies_of
    from toolkit.remedies.kernel_launch import KernelLaunch

    call, own = simulated.call, simulated.written_in
    if call.rung or call.script or own.text is None or call.device is None:
        return simulated
    if not simulated.execution.predicted:
        return simulated
    launch = KernelLaunch(
        text=own.text,
        name=own.name,
        folder=own.path.resolve().parent,
        kernel=call.kernel if own.name == call.file else simulated.kernel,
        grid=call.grid,
        block=call.block,
        dynamic_shared_bytes=call.dynamic_shared_bytes,
        arguments=call.made,
        device=call.device,
        arch=call.arch,
        defines=call.defines,
        options=call.options,
        seed=call.seed,
        limit_s=call.limit_s,
        max_instructions=call.max_instructions,
        allow_out_of_bounds=call.allow_out_of_bounds,
        setup=call.setup,
        l2=call.l2,
    )
    return replace(simulated, remedies=remedies_of(launch, simulated.execution))


def print_remedies(remedies: Remedies) -> None:
    if remedies.found:
        out.print()
        print_without_margins(rich_table(remedies_table(remedies.found)))
        launch = remedies.launch
        is_applicable = launch is None or not launch.allow_out_of_bounds
        notes = [*remedies_notes(remedies.found, is_applicable=is_applicable)]
        if notes:
            out.print()
        for line in notes:
            say(f"  {line}", indent=2)
    if remedies.untried:
        note(f"{many(remedies.untried, 'edit')} not tried: the limit of {LIMIT_S:g} s was reached")
    if remedies.need_source:
        note(
            f"{many(remedies.need_source, 'edit')} not tried: an edit is compiled, and this is "
            "machine code: simulate its source"
        )


def print_refused(remedies: Remedies) -> None:
    """Say which edits were tried and not offered."""
    for line in remedies.refused:
        note(f"not offered, results differ: {line}")


def remedies_document(remedies: Remedies) -> list[dict[str, Any]]:
    return [asdict(one) | {"saved_s": one.saved_s} for one in remedies.found]


def check_applies(call: Call, number: int) -> None:
    """Raise InputError where a remedy cannot be applied, before the work."""
    if call.script:
        raise InputError(
            f"--apply: {call.source.name} is Python, which is not edited: put the CUDA C++ text of "
            "a RawKernel or SourceModule into a .cu file, for which remedies are found"
        )
    if call.rung or call.code or call.text is None:
        raise InputError(f"--apply: {call.source.name} is not a CUDA C++ file of yours: give one")
    if (path := _path(call.source.name, number)).exists():
        raise InputError(f"--apply: {path} exists and is not overwritten: move it away")


def _path(name: str, number: int) -> Path:
    source = Path(name)
    return Path(f"{source.stem}.remedy{number}{source.suffix}")


def apply_remedy(
    simulated: SimulatedCall, number: int, *, rounding: bool, is_quiet: bool = False
) -> None:
    """Write the source with a remedy, and print the diff. Raises InputError if results differ."""
    from toolkit.remedies.application import applied

    call = simulated.call
    with SimulationProgress(call.source.name, call.needed_bytes(copies=True)) as progress:
        found = applied(
            simulated.remedies,
            number,
            rounding=rounding,
            advance=progress.advance,
            announce=progress.announce,
        )
    path = _path(simulated.written_in.name, number)
    if found.text:
        if path.exists():
            raise InputError(f"--apply: {path} exists and is not overwritten: move it away")
        write({path: found.text})
    if is_quiet:
        return
    say(f"remedy {number}: {found.compared}")
    if found.arguments:
        say(f"launch it with {' '.join(found.arguments)}")
    if found.diff:
        say(found.diff.rstrip("\n"))
