"""The sweep's process: the one call into Kernel Tuner.

    python -m toolkit.tuning.worker REQUEST.json

Times go into Kernel Tuner's cache file, one line per configuration; lines on standard output say
which configuration begins, and which fails and why. It is a process of its own because a kernel
that faults takes the CUDA context, and with it the process, down.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from analysis.errors import InputError, first_line
from toolkit.rungs.arguments import position_of_c, rung_arguments
from toolkit.rungs.matrices import Workload
from toolkit.tuning.request import BLOCK_SIZES, BREAKS, BRUTE_FORCE, STOPS, Request, tunable, wanted


def sweep(request: Request) -> None:
    """Have Kernel Tuner measure the configurations of a request that its cache does not hold."""
    from kernel_tuner import tune_kernel

    from toolkit.gpu.nvcc import LANGUAGE_OPTIONS
    from toolkit.tuning.guard import Guard

    if request.workers is not None:
        _check_gpus(request.workers)
    rung = request.rung
    arguments, of_c = _arguments(request), position_of_c(rung)
    tune_kernel(
        rung.entry,
        rung.source,
        lambda parameters: request.geometry(parameters).grid,
        arguments,
        tunable(request),
        grid_div_x=1,  # the problem's size is the grid's: the rung knows its tiles
        grid_div_y=1,
        grid_div_z=1,
        block_size_names=list(BLOCK_SIZES),
        restrictions=[_restriction(request)],
        smem_args={"size": lambda parameters: request.geometry(parameters).dynamic_shared_bytes},
        defines=_defines(request),
        # C is copied back
        answer=[argument if n == of_c else None for n, argument in enumerate(arguments)],
        observers=[partial(Guard, request)],
        lang="PyCUDA",
        compiler_options=[*LANGUAGE_OPTIONS, "-lineinfo"],
        iterations=request.iterations,
        strategy=_InOrder(request) if request.strategy == BRUTE_FORCE else request.strategy,
        strategy_options=_strategy_options(request),
        cache=request.cache,
        parallel=request.workers if request.workers is not None else False,
        quiet=True,
    )


def _check_gpus(workers: int) -> None:
    """Raise InputError where Ray has fewer GPUs than workers: Kernel Tuner would wait for ever."""
    ray = import_module("ray")
    ray.init()
    found = int(ray.cluster_resources().get("GPU", 0))
    if found < workers:
        raise InputError(
            f"{workers} workers were asked for, and Ray has {found} GPUs: ask for fewer, or add "
            "machines with `ray start`"
        )


class _InOrder:
    """A strategy of Kernel Tuner: brute force in the order of the request, for all workers.

    The best by prediction come first, so that Ctrl-C leaves what matters. Kernel Tuner 1.5.0
    compares the strategy's module with the names of those that may use several workers, so that
    every named one gets a single worker, and looks results up by a list (pull request 401 of
    KernelTuner/kernel_tuner). This one equals its name, and has one objective.
    """

    def __init__(self, request: Request) -> None:
        self._places = {one: place for place, one in enumerate(wanted(request))}

    def tune(self, searchspace: Any, runner: Any, options: Any) -> Any:
        options["objective"] = "time"
        ordered = sorted(searchspace.sorted_list(), key=self._places.__getitem__)
        return runner.run(ordered, options)

    def __eq__(self, other: object) -> bool:
        return other == BRUTE_FORCE

    def __hash__(self) -> int:
        return id(self)


def _arguments(request: Request) -> list[Any]:
    """What the rung takes, padded to what it needs; NaN in C, so that nothing left out passes."""
    executed = request.rung.executed(request.problem)
    a, b = Workload(request.problem, request.seed).padded(executed)
    c = np.full((executed.m, executed.n), np.nan, np.float32)
    return list(rung_arguments(request.rung, request.configurations[0], executed, (a, b, c)))


def _restriction(request: Request) -> Any:
    known = frozenset(wanted(request))

    def is_wanted(parameters: dict[str, int]) -> bool:
        return tuple(parameters.values()) in known

    return is_wanted


def _defines(request: Request) -> dict[str, Any]:
    """The rung's macros, each a function of the configuration."""

    def value(parameters: dict[str, int], macro: str) -> str:
        return str(request.rung.macros(request.own(parameters))[macro])

    macros = request.rung.macros(request.configurations[0])
    return {macro: partial(value, macro=macro) for macro in macros}


def _strategy_options(request: Request) -> dict[str, int]:
    return {} if request.strategy == BRUTE_FORCE else {"max_fevals": request.most}


def main(path: str) -> int:
    """Run the command line above; whatever ends it early is one line on standard output."""
    request = Request.load(Path(path))
    try:
        with chdir(Path(path).parent):  # Kernel Tuner leaves sources of what fails where it is
            sweep(request)
    except OSError as error:  # of a file that was open already it does not name: the cache
        what, where = error.strerror or first_line(error), error.filename or request.cache
        print(STOPS, f"{what} ({where}): repair that, and repeat the command", flush=True)
        return 1
    except InputError as error:
        print(STOPS, error, flush=True)
        return 1
    except Exception as error:  # what a launch raises is PyCUDA's, or Ray's around that
        print(BREAKS, first_line(getattr(error, "cause", error)), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
