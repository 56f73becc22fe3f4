"""Remedies of a launch: edits that are tried one by one, then in pairs, and ranked."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from pathlib import Path

from analysis.argument_types import checked
from analysis.comparison.accuracy import device_of
from analysis.devices import Device, find_device
from analysis.errors import InputError, ToolkitError
from analysis.l2_state import DEFAULT_L2, l2_state
from analysis.records.remedy import Remedy
from analysis.timing.predicted import Effect, Predicted
from toolkit.execution.completed_request import completed
from toolkit.execution.launch_request import LaunchRequest
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.launch import Argument, Execution
from toolkit.launch.setup import Content, setup_of
from toolkit.machine_code.architectures import architecture_of
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import read_source
from toolkit.machine_code.source_tree import parsed
from toolkit.remedies.advice import advised
from toolkit.remedies.edit import Edit
from toolkit.remedies.facts import LEAST_SAVED, Facts
from toolkit.remedies.kernel_launch import KernelLaunch
from toolkit.remedies.proposals import proposals
from toolkit.remedies.result import LIMIT_S, NONE, Remedies
from toolkit.remedies.trial import RefusedError, Trial, Trials
from toolkit.rungs.matrices import check_seed

MOST_TRIED = 6  # edits: each takes about as long as the simulation of the kernel
MOST_SHOWN = 5
PAIRED = 3
ALL = 0.9  # of what can be avoided: as good as all


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
    inner_lines: bool = False,
) -> tuple[Remedy, ...]:
    """Edits of a kernel, or of its launch, and the time that each is predicted to save.

    Parameters
    ----------
    source
        A path or CUDA C++ text.
    kernel, grid, block, arguments, dynamic_shared_bytes
        As of `simulate`: what is omitted is taken from the launch in host code.
    symbols, cooperative, heap_bytes, device, arch, defines, options, seed, l2, inner_lines
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
        remedy = Remedy(
            number=0,
            effect=advice.effect,
            lines=advice.lines,
            title=advice.text,
            before_s=facts.predicted.time_s,
            after_s=None,
            most_s=advice.most_s,
        )
        least_s = advice.worth_s
        at = next((k for k, (worth_s, *_) in enumerate(ranked) if worth_s < least_s), len(ranked))
        ranked.insert(at, (least_s, remedy, None))
    number = {remedy.number: k for k, (_, remedy, edit) in enumerate(ranked, 1) if edit}

    def numbered(remedy: Remedy, k: int) -> Remedy:
        others = (tuple(number[one] for one in of) for of in (remedy.instead_of, remedy.after))
        instead_of, after = others
        return replace(remedy, number=k, instead_of=instead_of, after=after)

    return [(numbered(remedy, k), edit) for k, (_, remedy, edit) in enumerate(ranked, 1)]


@dataclass(frozen=True, kw_only=True)
class Search:
    """Trials of edits, relative to the predicted time of the launch as it is."""

    trials: Trials
    predicted: Predicted
    refused: list[str] = field(default_factory=list)
    untried: list[Edit] = field(default_factory=list)
    until_s: float = field(default_factory=lambda: time.process_time() + LIMIT_S)

    def ranked(self, edits: Sequence[Edit]) -> list[tuple[Remedy, Edit]]:
        """Remedies that save something, and their edits."""
        before_s = self.predicted.time_s
        tried = self._tried(edits, self.refused)
        worth = [one for one in tried if self._saves(before_s, one.time_s)]
        worth = _without_equals(_in_order(worth, LEAST_SAVED * before_s))[:MOST_SHOWN]
        found = [self._remedy(number, one) for number, one in enumerate(worth, 1)]
        return self._paired(found, worth)

    def _saves(self, before_s: float, after_s: float) -> bool:
        return before_s - after_s >= LEAST_SAVED * self.predicted.time_s

    def _leaves_nothing(self, trial: Trial) -> bool:
        """True if a remedy saves about all that can be avoided: others can only replace it."""
        rest = (Effect.LAUNCH, Effect.REMAINDER)
        avoidable_s = sum(
            one.time_s for one in self.predicted.costs if not one.is_roof and one.effect not in rest
        )
        return self.predicted.time_s - trial.time_s >= ALL * avoidable_s

    def _tried(self, edits: Sequence[Edit], refused: list[str]) -> Iterator[Trial]:
        """Trials that succeed. The next edit is compiled while one is tried.

        Lines on edits that change results are added to `refused`. Edits for other causes are left
        out once nothing is left for them to save.
        """
        only: Effect | None = None
        queue, pool = deque(edits), ThreadPoolExecutor(1)

        def begun() -> tuple[Edit, Future[Kernel]] | None:
            while queue:
                edit = queue.popleft()
                if only in (None, edit.effect):
                    return edit, pool.submit(self.trials.launch.edited(edit).compiled)
            return None

        ahead = begun()
        try:
            while ahead is not None:
                edit, kernel = ahead
                ahead = begun()
                if only not in (None, edit.effect):
                    continue
                if time.process_time() > self.until_s:
                    self.untried.append(edit)
                    continue
                try:
                    trial = self._trial(edit, kernel.result())
                except RefusedError as error:
                    refused.append(f"{edit.title}: {error}")
                    continue
                except ToolkitError:
                    continue
                if trial is None:
                    continue
                if self._saves(self.predicted.time_s, trial.time_s) and self._leaves_nothing(trial):
                    only = edit.effect
                yield trial
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _trial(self, edit: Edit, kernel: Kernel) -> Trial | None:
        """The trial of an edit, None if neither machine code nor launch change."""
        if kernel.code == self.trials.kernel.code and not edit.options:
            return None
        return self.trials.tried(edit, kernel)

    def _paired(
        self, found: Sequence[Remedy], trials: Sequence[Trial]
    ) -> list[tuple[Remedy, Edit]]:
        """Remedies with their relation to those before them, for the first three."""
        result = [(remedy, one.edit) for remedy, one in zip(found, trials, strict=True)]
        for other in range(1, len(found[:PAIRED])):
            for one in range(other):
                if not result[one][0].instead_of and not result[one][0].after:
                    result[other] = self._related(
                        result[other][0], trials[other], trials[one], one + 1
                    )
                    break
        return result

    def _related(
        self, remedy: Remedy, trial: Trial, larger: Trial, number: int
    ) -> tuple[Remedy, Edit]:
        """A remedy relative to one that saves more: instead of it, or after it."""
        both = None if self._leaves_nothing(larger) else larger.edit.with_other(trial.edit)
        if both is not None and time.process_time() > self.until_s:
            return remedy, trial.edit
        pair = next(self._tried([both], []), None) if both else None
        if both is None or pair is None or not self._saves(larger.time_s, pair.time_s):
            return replace(remedy, instead_of=(number,)), trial.edit
        joint = replace(
            self._remedy(remedy.number, pair),
            effect=remedy.effect,
            lines=remedy.lines,
            title=remedy.title,
            before_s=larger.time_s,
            after=(number,),
        )
        return joint, both

    def _remedy(self, number: int, trial: Trial) -> Remedy:
        launch, edit, comparison = self.trials.launch, trial.edit, trial.comparison
        rounds = comparison.is_rounding
        equal = "values differ by rounding" if rounds else "equal bit for bit"
        return Remedy(
            number=number,
            effect=edit.effect,
            lines=edit.lines,
            title=edit.title,
            before_s=self.predicted.time_s,
            after_s=trial.time_s,
            compared=f"{comparison.text}: {equal}",
            diff=diff_of(launch, edit),
            arguments=edit.arguments,
            is_rounding=rounds,
            error=error_of(comparison.error, comparison.bound) if rounds else "",
        )


def diff_of(launch: KernelLaunch, edit: Edit) -> str:
    """Unified diff of the source; empty if an edit changes only options."""
    old, new = (text.splitlines(keepends=True) for text in (launch.text, edit.applied(launch.text)))
    return "".join(unified_diff(old, new, launch.name, launch.name))


def error_of(error: float, bound: float) -> str:
    return f"largest relative error {error:.1e}, at most {bound:.1e} is accepted"


def _in_order(trials: Sequence[Trial], alike_s: float) -> list[Trial]:
    """Trials by their time; of those that differ by less than `alike_s` the simpler one is first.

    Edits are proposed in order of simplicity.
    """
    left, found = list(trials), list[Trial]()
    while left:
        best_s = min(one.time_s for one in left)
        found.append(next(one for one in left if one.time_s <= best_s + alike_s))
        left.remove(found[-1])
    return found


def _without_equals(trials: Sequence[Trial]) -> list[Trial]:
    """Trials without those that choose another size, or other options, than the best one does."""
    found = list[Trial]()
    for one in trials:
        if any(
            (one.edit.options and other.edit.options)
            or (one.edit.compiler_options and other.edit.compiler_options)
            for other in found
        ):
            continue
        found.append(one)
    return found
