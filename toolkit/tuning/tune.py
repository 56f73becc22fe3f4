"""The workflow of `tune`: space, ranking, sweep, final, and the entries that a dispatcher reads.

With no GPU, or for another device than the one that is here, it ends after the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote

from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.devices import Device, find_device
from analysis.errors import ToolkitError
from analysis.problem import Gemm
from analysis.records.tuning import SCHEMA_VERSION, TunedShape, Tuning
from toolkit.gpu.context import gpu_here
from toolkit.gpu.environment import GpuMonitor, environment
from toolkit.launch.progress import Progress
from toolkit.profiling.plan import parse_shapes
from toolkit.rungs.matrices import chosen_seed
from toolkit.store.constants_file import with_constants
from toolkit.store.tuned import Tuned
from toolkit.tuning.space import parse_space
from toolkit.tuning.tuner import Effort, Tuner


def tune(
    text: str,
    shapes: Sequence[str | int | Gemm],
    *,
    device: str | None = None,
    constants: str | Path | None = None,
    effort: Effort | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Find the configurations of a rung that no other beats, at every shape.

    `text` is a rung, or one with some parameters fixed: "coarsened-1d:tm=8". `constants` is an
    output of `python -m toolkit.microbenchmarks`, whose constants predict times instead of the
    architecture's. Raises InputError or UnavailableError before anything runs; a configuration that
    fails is a failed candidate.
    What a shape ends early by, Ctrl-C too, is raised where no other shape was finished.
    """
    effort, progress = effort or Effort(), progress or Progress()
    space, problems, seed = parse_space(text), parse_shapes(shapes), chosen_seed(seed)
    for problem in problems:
        space.variant.check_shape(problem)
    asked, gpu = find_device(device) if device is not None else None, None
    try:
        gpu = gpu_here(asked)
    except ToolkitError as error:
        progress.notice(f"no GPU is used, so predicted times rank configurations: {error}")
    if gpu is None:
        chosen, found = asked or DEFAULT_DEVICE, environment()
    else:
        with gpu, GpuMonitor(gpu.pci_bus_id) as monitor:
            chosen, found = gpu.device, environment(monitor)
    if constants is not None:
        chosen = with_constants(chosen, constants)
    tuner = Tuner(space, chosen, found, effort, seed, progress)
    done, missing = _each(problems, partial(tuner.measured, gpu=gpu) if gpu else tuner.predicted)
    return Tuning(
        schema_version=SCHEMA_VERSION,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=_command(text, problems, chosen if gpu is None else None, constants, effort, seed),
        variant=space.variant.name,
        seed=seed,
        device=chosen,
        environment=found,
        shapes=done,
        missing=missing,
    )


def _each(
    problems: Sequence[Gemm], tuned: Callable[[Gemm], TunedShape]
) -> tuple[tuple[TunedShape, ...], tuple[str, ...]]:
    """The shapes that could be tuned, and why others could not; raises where none could."""
    done: list[TunedShape] = []
    missing: list[str] = []
    for number, problem in enumerate(problems):
        try:
            done.append(tuned(problem))
        except ToolkitError as error:
            missing.append(f"{problem}: {error}")
            if len(missing) == len(problems):
                raise
        except KeyboardInterrupt:
            if not done:
                raise
            missing += [f"{left}: interrupted" for left in problems[number:]]
            break
    return tuple(done), tuple(missing)


def entries_of(tuning: Tuning) -> list[Tuned]:
    """Entries for the dispatcher: of each shape, the winner with the best median."""
    found = []
    for shape in tuning.shapes:
        if not shape.winners:
            continue
        best, *others = shape.winners
        assert best.measured is not None
        ratio = best.measured.relative_to_cublas
        found.append(
            Tuned(
                device=tuning.device.name,
                architecture=tuning.device.sm_arch,
                shape=str(shape.shape),
                variant=tuning.variant,
                parameters=best.parameters,
                time_s=best.measured.median_s,
                ratio_to_cublas=ratio.median if ratio else None,
                interval=ratio.interval if ratio else None,
                tied_with=tuple(one.parameters for one in others),
                date=tuning.created[:10],
                toolkit_version=tuning.environment.toolkit_version,
                commit=tuning.environment.commit,
            )
        )
    return found


def _command(
    text: str,
    problems: Sequence[Gemm],
    device: Device | None,
    constants: str | Path | None,
    effort: Effort,
    seed: int,
) -> str:
    """The command line that repeats this run."""
    usual = Effort()
    words = [f"python -m toolkit tune {text}", f"--shape {','.join(map(str, problems))}"]
    words += [f"--device {device.key}"] if device is not None else []
    words += [f"--constants {quote(str(constants))}"] if constants is not None else []
    for option, value, default in (
        ("predict", effort.predictions, usual.predictions),
        ("measure", effort.measurements, usual.measurements),
        ("finalists", effort.finalists, usual.finalists),
        ("seconds", effort.sampling.time_limit_s, usual.sampling.time_limit_s),
    ):
        words += [f"--{option} {value}"] if value != default else []
    return " ".join([*words, f"--seed {seed}"])
