"""A launch that a caller of `simulate` or `check` leaves open in part, completed.

Host code of the source says grid, block, scalars and sizes; addresses of the kernel say the sizes
of further arrays. Facts that are not known are named in one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.comparison.accuracy import device_of
from analysis.devices import Device
from analysis.errors import InputError
from reports import text as words
from toolkit.execution.guessed_sizes import guessed_arrays
from toolkit.execution.launch_request import NO_FUNCTION, LaunchRequest
from toolkit.launch.element_types import type_named
from toolkit.launch.launch import Argument, launch_geometry, three
from toolkit.launch.proposed import Proposed, Size
from toolkit.launch.random_arrays import random_array
from toolkit.launch.source_launches import SourceLaunches
from toolkit.machine_code.architectures import DEFAULT_ARCHITECTURE
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import is_machine_code, read_source
from toolkit.machine_code.signature import Declared
from toolkit.rungs.matrices import chosen_seed
from toolkit.store.watched_files import folders_of

SIZES_GUESSED = "Sizes of arrays are guessed"


@dataclass(frozen=True, kw_only=True)
class CompletedRequest:
    """A complete request, its kernel, and notes on what the caller did not say.

    `random_arguments` are the positions of arrays whose contents nobody gave.
    """

    request: LaunchRequest
    kernel: Kernel
    random_arguments: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  #: why its time is not to be trusted


def completed(
    request: LaunchRequest, target: str | Device | None, seed: int | None, *, guesses: bool
) -> CompletedRequest:
    """The launch that a request of a kernel means. Raises InputError for facts that are not known.

    `seed` is that of random arrays. Sizes that host code does not say are guessed if `guesses`.
    """
    request.check_no_shape()
    source = request.source
    if callable(request.grid):
        raise InputError(NO_FUNCTION)
    is_text = isinstance(source, str | Path) and not is_machine_code(source)
    if not is_text:
        return _as_given(request, target)
    assert isinstance(source, str | Path), "it is a text or a path"
    text, name = read_source(source)
    may_be_template = "<" not in (request.kernel or "") and "<<<" in text and "template" in text
    if request.is_complete and not may_be_template:
        return _as_given(request, target)
    folder = Path(source).resolve().parent if text != source else None
    known = SourceLaunches(
        text,
        name,
        folder,
        request.defines or {},
        folders_of(tuple(request.options)),
        target if isinstance(target, Device) else device_of(target or DEFAULT_ARCHITECTURE),
    )
    chosen = known.chosen(request.kernel, request.launch_line)
    given = _given(request.arguments, known.declared(chosen) or ())
    proposed = known.proposed(
        chosen,
        given={k: x if isinstance(x, np.generic) else None for k, x in given.items()},
        grid=None if request.grid is None else three(request.grid, "grid"),
        block=None if request.block is None else three(request.block, "block"),
        shared_bytes=request.dynamic_shared_bytes,
        line=request.launch_line,
    )
    return _filled(request, proposed, given, name, target, chosen_seed(seed), guesses=guesses)


def _as_given(request: LaunchRequest, target: str | Device | None) -> CompletedRequest:
    request.launched()
    return CompletedRequest(request=request, kernel=request.compiled(target))


def _given(
    arguments: Sequence[Argument] | Mapping[str, Argument] | None, declared: Sequence[Declared]
) -> dict[int | str, Argument]:
    """The arguments that are given, by position, or by a name that is none of the parameters."""
    if not isinstance(arguments, Mapping):
        return dict(enumerate(arguments or ()))
    names = [one.name for one in declared]
    return {names.index(k) if k in names else k: x for k, x in arguments.items()}


def _filled(
    request: LaunchRequest,
    proposed: Proposed,
    given: Mapping[int | str, Argument],
    file: str,
    target: str | Device | None,
    seed: int,
    *,
    guesses: bool,
) -> CompletedRequest:
    declared = proposed.declared or ()
    guessed = proposed.guessable if guesses else []
    if proposed.is_open(guessed):
        facts = proposed.open_facts(guessed)
        proposed.check_pointers(facts)
        raise InputError(
            f"{file}: {proposed.why_open()}: give {words.listing(list(facts.values()))}"
            f"{_by_name(facts, declared)}"
        )
    assert proposed.grid is not None, "it is refused"
    assert proposed.block is not None, "it is refused"
    assert proposed.shared_bytes is not None, "it is refused"
    by_position = {k: x for k, x in given.items() if isinstance(k, int)}
    in_order = proposed.in_order(by_position)
    arguments: list[Argument | None] = [
        _random(one, seed, position) if isinstance(one, Size) else one
        for position, one in enumerate(in_order)
    ]
    sized = [k for k, one in enumerate(in_order) if isinstance(one, Size)]
    notes = proposed.notes(file)
    filled = replace(
        request,
        kernel=proposed.kernel,
        grid=proposed.grid,
        block=proposed.block,
        dynamic_shared_bytes=proposed.shared_bytes,
    )
    kernel = filled.compiled(target)
    if guessed:
        geometry = launch_geometry(proposed.grid, proposed.block, proposed.shared_bytes)
        found = guessed_arrays(
            kernel,
            geometry,
            arguments,
            declared,
            lambda why, needed: InputError(f"{file}: {why}{_by_name(needed, declared)}"),
            filled.setup,
        )
        for k, size in found.sizes.items():
            arguments[k] = _random(size, seed, k)
        notes.append(found.note)
    whole = [one for one in arguments if one is not None]
    return CompletedRequest(
        request=replace(filled, arguments=whole),
        kernel=kernel,
        random_arguments=(*sized, *guessed),
        notes=tuple(notes),
        doubts=(*proposed.doubts, *([SIZES_GUESSED] if guessed else [])),
    )


def _random(size: Size, seed: int, position: int) -> NDArray[np.generic]:
    rng = np.random.default_rng((seed, position))
    return random_array((size.count,), type_named(size.dtype), rng)


def _by_name(facts: Iterable[int | str], declared: Sequence[Declared]) -> str:
    """Say how to give arguments that are open."""
    names = [declared[k].name for k in facts if isinstance(k, int)]
    if not names or None in names:
        return ""
    return f": arguments={{{', '.join(f'{name!r}: ...' for name in names)}}}"
