"""Remedies of a launch: edits that were tried, and advice on causes that none of them removes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from analysis.argument_types import checked
from analysis.comparison.accuracy import device_of
from analysis.devices import Device, find_device
from analysis.errors import InputError
from analysis.l2_state import DEFAULT_L2, l2_state
from analysis.records.remedy import Remedy
from toolkit.execution.completed_request import completed
from toolkit.execution.launch_request import LaunchRequest
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.launch import Argument, Execution
from toolkit.launch.setup import Content, setup_of
from toolkit.machine_code.architectures import architecture_of
from toolkit.machine_code.kernel_source import read_source
from toolkit.machine_code.source_tree import parsed
from toolkit.remedies.advice import Advice, advised
from toolkit.remedies.edit import Edit
from toolkit.remedies.facts import Facts
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.remedies.proposals import proposals
from toolkit.remedies.result import NONE, Remedies
from toolkit.remedies.search import MOST_SHOWN, Search
from toolkit.remedies.trial import Trials
from toolkit.rungs.matrices import check_seed

MOST_TRIED = 6  # edits: each takes about as long as the simulation of the kernel


@checked
def find_remedies(
    source: str | Path,
    kernel: str | None = None,
    *,
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    arguments: Sequence[Argument] | Mapping[str, Argument] | None = None,
    device: Device | str | None = None,
    arch: str | None = None,
    dynamic_shared_bytes: int | None = None,
    symbols: Content | None = None,
    cooperative: bool = False,
    heap_bytes: int = HEAP_BYTES,
    defines: Mapping[str, object] | None = None,
    options: Sequence[str] = ("-lineinfo",),
    seed: int | None = None,
    l2: str = DEFAULT_L2,
    allow_out_of_bounds: bool = False,
    inner_lines: bool = False,
) -> tuple[Remedy, ...]:
    """Edits of a kernel, or of its launch, and the time that each is predicted to save.

    Parameters
    ----------
    source
        A path or CUDA C++ text.
    kernel, grid, block, arguments, dynamic_shared_bytes
        As of `simulate`: what is omitted is taken from the launch in host code.
    symbols, cooperative, heap_bytes, device, arch, defines, options, seed, l2
        As of `simulate`.
    allow_out_of_bounds, inner_lines
        As of `simulate`.

    Returns
    -------
    tuple of Remedy
        As the command ranks them: the largest saving first, but a sentence on the largest cause
        (`saved_s` is None) before edits that save less. Edits were compiled, and the executed
        blocks write the same values.

    Raises
    ------
    ToolkitError
        As `simulate` does; InputError too if no device of `arch` is known.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import find_remedies
    >>> source = '''
    ... extern "C" __global__ void turn(float *out, const float *in)
    ... {
    ...     __shared__ float tile[32][32];
    ...     tile[threadIdx.y][threadIdx.x] = in[32 * threadIdx.y + threadIdx.x];
    ...     __syncthreads();
    ...     for (int k = 0; k < 32; k++)
    ...         out[32 * threadIdx.y + threadIdx.x] += tile[threadIdx.x][(threadIdx.y + k) % 32];
    ... }'''
    >>> arguments = [np.zeros(1024, np.float32), np.ones(1024, np.float32)]
    >>> found = find_remedies(source, grid=1, block=(32, 32), arguments=arguments, device="h200")
    >>> found[0].title
    'divide the work into more blocks of equal size: 132 SMs have room for 264'
    >>> edit = next(one for one in found if one.saved_s)
    >>> edit.title, edit.saved_s > 0
    ('tile[32][32 + 1], pads each row', True)
    """
    check_seed(seed)
    text, name = read_source(source)
    named = find_device(device) if isinstance(device, str) else device
    target = architecture_of(arch, named)
    found = named or device_of(target)
    if found is None:
        raise InputError(f"no device of {target} is known, and remedies need one: name a device")
    request = LaunchRequest(
        source=source,
        kernel=kernel,
        grid=grid,
        block=block,
        arguments=arguments,
        dynamic_shared_bytes=dynamic_shared_bytes,
        defines=defines,
        options=options,
    )
    whole = completed(request, target, seed, guesses=True)
    geometry, launched = whole.request.launched()
    launch = KernelLaunch(
        text=text,
        name=name,
        folder=None if text == source else Path(source).resolve().parent,
        kernel=whole.request.kernel,
        grid=geometry.grid,
        block=geometry.block,
        arguments=launched,
        dynamic_shared_bytes=geometry.dynamic_shared_bytes,
        device=found,
        arch=target,
        defines=defines or {},
        options=options,
        seed=seed,
        setup=setup_of(symbols, cooperative, heap_bytes),
        l2=l2_state(l2),
        allow_out_of_bounds=allow_out_of_bounds,
    )
    compiled = whole.kernel.with_inner_lines if inner_lines else whole.kernel
    simulated = launch.simulated(compiled)
    return remedies_of(launch, simulated).found


def remedies_of(launch: KernelLaunch, execution: Execution) -> Remedies:
    """Remedies of a launch that was simulated on a device, the largest saving first.

    None if its time was not predicted, or if the source does not plainly define the kernel.
    """
    kernel, predicted = execution.cubin, execution.predicted
    if kernel is None or predicted is None or not predicted.costs:
        return replace(NONE, launch=launch)
    source = parsed(launch.text, kernel.name, launch.defines)
    if source is None:
        return replace(NONE, launch=launch)
    facts = Facts(
        source=source,
        execution=execution,
        predicted=predicted,
        device=launch.device,
        grid=launch.grid,
        block=launch.block,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        file=launch.name,
    )
    trials = Trials(launch=launch, kernel=kernel, execution=execution)
    search = Search(trials=trials, predicted=predicted)
    proposed = proposals(facts)[:MOST_TRIED]
    made = [] if kernel.is_foreign else search.ranked(proposed)
    ranked = _with_advice(facts, made)[:MOST_SHOWN]
    return Remedies(
        launch=launch,
        found=tuple(remedy for remedy, _ in ranked),
        edits={remedy.number: edit for remedy, edit in ranked if edit},
        refused=tuple(search.refused),
        untried=len(search.untried),
        need_source=len(proposed) if kernel.is_foreign else 0,
    )


def _with_advice(
    facts: Facts, made: Sequence[tuple[Remedy, Edit]]
) -> list[tuple[Remedy, Edit | None]]:
    """Edits that were made, and sentences on causes that none of them removes, numbered.

    A sentence comes before edits that save less than its cause costs.
    """
    ranked: list[tuple[float, Remedy, Edit | None]] = [
        (remedy.saved_s or 0.0, remedy, edit) for remedy, edit in made
    ]
    for advice in advised(facts, {remedy.effect for remedy, _ in made}):
        smaller = (k for k, (worth_s, *_) in enumerate(ranked) if worth_s < advice.worth_s)
        at = next(smaller, len(ranked))
        ranked.insert(at, (advice.worth_s, _by_hand(advice, facts.predicted.time_s), None))
    number_of = {remedy.number: k for k, (_, remedy, edit) in enumerate(ranked, 1) if edit}
    return [
        (_renumbered(remedy, k, number_of), edit) for k, (_, remedy, edit) in enumerate(ranked, 1)
    ]


def _by_hand(advice: Advice, before_s: float) -> Remedy:
    """A sentence as a remedy, without a number yet."""
    return Remedy(
        number=0,
        effect=advice.effect,
        lines=advice.lines,
        title=advice.text,
        before_s=before_s,
        after_s=None,
        most_s=advice.most_s,
    )


def _renumbered(remedy: Remedy, number: int, number_of: Mapping[int, int]) -> Remedy:
    """A remedy with its number. `number_of`: new numbers of those that it refers to, by the old."""
    return replace(
        remedy,
        number=number,
        instead_of=tuple(number_of[one] for one in remedy.instead_of),
        after=tuple(number_of[one] for one in remedy.after),
    )
