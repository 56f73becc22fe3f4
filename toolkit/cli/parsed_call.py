"""The call that the options of a launch mean: texts in, a checked `Call` out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from analysis.devices import Device
from analysis.errors import InputError, shortened
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2
from reports.text import listing
from toolkit.cli.argument_syntax import (
    BufferArgument,
    make_arguments,
    parse_arguments,
)
from toolkit.cli.call import Call
from toolkit.cli.completed_options import CompletedOptions, extent_of, open_sizes
from toolkit.cli.launch_source import (
    defines_of,
    inputs_of,
    machine_code_of,
    options_of,
    target_of,
)
from toolkit.cli.options import KernelOptions, PredictOptions, RunOptions, SimulateOptions
from toolkit.cli.output import check_is_no_input
from toolkit.cli.settings import parse_settings
from toolkit.execution.completed_request import SIZES_GUESSED
from toolkit.execution.guessed_sizes import guessed_arrays
from toolkit.execution.simulator import MAX_INSTRUCTIONS
from toolkit.frontends.script_names import is_script
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.launch import Argument
from toolkit.machine_code.include_paths import text_with_headers
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, read_source
from toolkit.machine_code.signature import Declared, kernel_names, signature
from toolkit.rungs.launch import check_nothing_given, rung_launch
from toolkit.rungs.matrices import chosen_seed
from toolkit.rungs.names import is_name
from toolkit.store.constants_file import predicting_with
from toolkit.store.user_files import check_writable, same_file

Extent = tuple[int, int, int]


def call_of(
    options: CompletedOptions,
    compiled: Future[Source],
    saves: Sequence[str] = (),
    here: Device | None = None,
) -> Call:
    """The call of a launch, whose sizes are guessed where nobody says them.

    `compiled` is its source (`compiled_beside`). Raises as `parse_call` does.
    """
    if all(one is not None for one in options.arguments):
        call = parse_call(options.launch, saves, here)
        return replace(call, notes=options.notes, doubts=options.doubts)
    declared = options.declared or ()
    known = [k for k, one in enumerate(options.arguments) if one is not None]
    texts = [options.arguments[k] or "" for k in known]
    parsed = parse_arguments(texts, [declared[k] for k in known])
    trial = replace(options.launch, arguments=[])
    trial_call = parse_call(trial, (), here)
    kernel = trial_call.machine_code(compiled)
    arguments: list[Argument | None] = [None] * len(options.arguments)
    seed = chosen_seed(options.launch.seed)
    for k, one in zip(known, make_arguments(parsed, seed=seed), strict=True):
        arguments[k] = one
    geometry = Geometry(
        grid=extent_of("--grid", options.launch.grid or ""),
        block=extent_of("--block", options.launch.block or ""),
        dynamic_shared_bytes=options.launch.shared or 0,
    )
    found = guessed_arrays(
        kernel,
        geometry,
        arguments,
        declared,
        lambda why, needed: open_sizes(options, why, needed),
        trial_call.setup,
    )
    written = [
        str(found.sizes[k]) if text is None else text for k, text in enumerate(options.arguments)
    ]
    return replace(
        parse_call(replace(options.launch, arguments=written), saves, here),
        notes=(*options.notes, found.note),
        doubts=(*options.doubts, SIZES_GUESSED),
    )


def parse_call(
    launch: KernelOptions, saves: Sequence[str] = (), here: Device | None = None
) -> Call:
    """The launch that these texts mean. Raises InputError for the first that means none.

    `here` is the GPU that it is for, unless the options name a device.
    """
    code = machine_code_of(launch, here)
    _check_uses(launch, is_compiled=code is not None)
    common = _common(launch, here, code)
    if is_name(launch.source):
        return _of_rung(launch, saves, common)
    if launch.shape is not None:
        raise InputError(
            f"--shape is for rungs, and {shortened(launch.source)!r} is not one: leave it out"
        )
    if is_script(launch.source):
        return _of_script(launch, saves, common)
    return _of_source(launch, code, saves, common)


def _check_uses(launch: KernelOptions, *, is_compiled: bool) -> None:
    """Raise InputError for an option that nothing would read."""
    source = shortened(launch.source)
    if launch.source_dirs and not is_compiled:
        raise InputError(f"--source-dir is for machine code, and {source!r} is not: leave it out")
    of_compiler = {
        "--define": launch.defines,
        "--option": launch.options,
        "--compiler": launch.compiler,
    }
    if given := [name for name, value in of_compiler.items() if value and is_compiled]:
        raise InputError(
            f"{listing(given)}: {source!r} is machine code, which is compiled already: leave "
            f"{'it' if len(given) == 1 else 'them'} out"
        )


def _common(launch: KernelOptions, here: Device | None, code: Kernel | None) -> dict[str, Any]:
    """Fields of the call that do not depend on what kind of kernel it is of."""
    arch, device = target_of(launch, here, code)
    predicts = launch if isinstance(launch, PredictOptions) else None
    constants, clock = (predicts.constants, predicts.clock) if predicts else (None, None)
    for option, given in (("--constants", constants), ("--clock", clock)):
        if given is not None and device is None:
            raise InputError(
                f"{option}: no device of {arch} is known, so no time is predicted: name a "
                "device with --device"
            )
    if device is not None:
        device = predicting_with(device, constants, clock)
    return {
        "arch": arch,
        "device": device,
        "options": options_of(launch),
        "blocks": None if launch.blocks is None else _blocks(launch.blocks),
        "limit_s": PredictOptions.limit if predicts is None else predicts.limit,
        "max_instructions": launch.max_instructions or MAX_INSTRUCTIONS,
        "seed": chosen_seed(launch.seed),
        "inner_lines": predicts is not None and predicts.inner_lines,
        "constants": None if constants is None else str(constants),
        "clock_mhz": clock,
        "l2": DEFAULT_L2 if predicts is None else predicts.l2,
        "allow_out_of_bounds": isinstance(launch, SimulateOptions) and launch.allow_out_of_bounds,
    }


def _of_source(
    launch: KernelOptions, code: Kernel | None, saves: Sequence[str], common: Mapping[str, Any]
) -> Call:
    """The call of a kernel of CUDA C++, or of machine code."""
    assert launch.grid is not None, "only a rung brings it"
    assert launch.block is not None, "only a rung brings it"
    source, arguments = Path(launch.source), launch.arguments or ()
    options = tuple(launch.options or ())
    if code is not None:
        text, declared = code.source, code.declared
        sizes = [parameter.size for parameter in code.parameters]
    else:
        text = read_source(source)[0]
        whole = text_with_headers(text, source.name, source.parent, options)
        declared, sizes = _declared(whole, launch.kernel), []
    parsed = parse_arguments(arguments, declared, sizes)
    return Call(
        source=source,
        text=text,
        kernel=launch.kernel,
        grid=extent_of("--grid", launch.grid),
        block=extent_of("--block", launch.block),
        dynamic_shared_bytes=launch.shared or 0,
        written=tuple(arguments),
        arguments=parsed,
        code=code,
        source_dirs=launch.source_dirs or (),
        defines=defines_of(launch),
        saves=_saves(saves, _buffers(parsed), inputs_of(source, options) if saves else []),
        set_texts=tuple(launch.settings or ()),
        settings=parse_settings(launch.settings or (), text or ""),
        cooperative=launch.cooperative,
        heap_bytes=launch.heap,
        **common,
    )


def _of_rung(launch: KernelOptions, saves: Sequence[str], common: Mapping[str, Any]) -> Call:
    """The call of a rung, with files for buffers only where all of its blocks are executed."""
    check_nothing_given(
        launch.source,
        {
            "kernel": launch.kernel,
            "grid": launch.grid,
            "block": launch.block,
            "arguments": launch.arguments,
            "shared memory": launch.shared,
            "defines": launch.defines,
            "--set": launch.settings,
            "--cooperative": launch.cooperative,
            "--heap": launch.heap != HEAP_BYTES,
        },
    )
    rung = rung_launch(launch.source, launch.shape, common["device"])
    if saves and not isinstance(launch, RunOptions) and common["blocks"] != "all":
        raise InputError(
            f"--save: only some blocks of {rung.label} are executed, so the product is incomplete: "
            "add --blocks all"
        )
    geometry, variant = rung.geometry, rung.variant
    source = Path(variant.file)
    return Call(
        source=source,
        text=variant.source,
        kernel=variant.entry,
        grid=geometry.grid,
        block=geometry.block,
        dynamic_shared_bytes=geometry.dynamic_shared_bytes,
        written=(str(rung.problem),),
        arguments=(),
        defines={name: str(value) for name, value in variant.macros(rung.parameters).items()},
        saves=_saves(saves, dict.fromkeys(rung.buffers), []),
        rung=rung,
        **common,
    )


def _of_script(launch: KernelOptions, saves: Sequence[str], common: Mapping[str, Any]) -> Call:
    """The call of a kernel in a Python file, which is read or imported now."""
    from toolkit.cli.script_launch import ScriptLaunch, script_arguments
    from toolkit.frontends.scripts import script_kernel

    if isinstance(launch, RunOptions):
        raise InputError(
            "run takes CUDA C++ or a cubin, not a kernel of a Python file: simulate takes it"
        )
    found = script_kernel(launch.source)
    kernel, arguments = launch.kernel or found.module_kernel, launch.arguments or ()
    if found.own_name is not None and kernel not in (None, found.own_name):
        raise InputError(f"--kernel {kernel}: {launch.source} is {found.own_name}: leave it out")
    declared = _declared(found.text, kernel or found.own_name) if found.text else None
    parsed, numbers = script_arguments(arguments, found, declared)
    grid = extent_of("--grid", launch.grid) if launch.grid is not None else None
    block = extent_of("--block", launch.block) if launch.block is not None else None
    return Call(
        source=found.path,
        text=read_source(found.path)[0],
        kernel=kernel,
        grid=grid or (1, 1, 1),
        block=block or (1, 1, 1),
        dynamic_shared_bytes=launch.shared or 0,
        written=tuple(arguments),
        arguments=parsed,
        defines=defines_of(launch),
        saves=_saves(saves, _buffers(parsed), [found.path]),
        set_texts=tuple(launch.settings or ()),
        settings=parse_settings(launch.settings or (), found.text or ""),
        cooperative=launch.cooperative,
        heap_bytes=launch.heap,
        script=ScriptLaunch(kernel=found, grid=grid, block=block, numbers=numbers),
        **common,
    )


def _buffers(arguments: Sequence[BufferArgument | np.generic]) -> dict[int, object]:
    """Fill of each buffer among the arguments, by position."""
    return {k: item.fill for k, item in enumerate(arguments) if isinstance(item, BufferArgument)}


def _declared(text: str, kernel: str | None) -> tuple[Declared, ...] | None:
    """The parameters of the kernel, or of the only one in the source."""
    names = kernel_names(text) if kernel is None else [kernel]
    return signature(text, names[0]) if len(names) == 1 else None


def _blocks(text: str) -> Literal["all", "representative"] | int:
    match text:
        case "all" | "representative":
            return text
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or int(text) < 1:
        raise InputError(
            f"--blocks {shortened(text)!r}: give all, representative or a number from 1 on"
        )
    return int(text)


def _saves(
    texts: Sequence[str], buffers: Mapping[int, object], inputs: Sequence[Path]
) -> dict[int | str, Path]:
    """The files of `buffers`, which map positions among the arguments to what fills them.

    And those of variables, by name.

    `inputs` are the other files that are read.
    """
    saves: dict[int | str, Path] = {}
    for text in texts:
        which, _, name = text.partition("=")
        is_position = re.fullmatch(r"\d{1,9}", which, re.ASCII)
        if not (is_position or re.fullmatch(r"[A-Za-z_][\w:]*", which, re.ASCII)) or not name:
            raise InputError(
                f"--save {shortened(text)!r} is not understood: give the position of a buffer, "
                "from 0 on, or the name of a __device__ variable, and a file: --save 1=out.npy"
            )
        if is_position and int(which) not in buffers:
            names = list(map(str, buffers))
            known = (
                f"give {' or '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}"
                if names
                else "no argument is one"
            )
            raise InputError(
                f"--save {shortened(text)!r}: argument {which} is not a buffer: {known}"
            )
        path = Path(name)
        check_writable(path)
        read = [fill for fill in buffers.values() if isinstance(fill, Path)]
        if any(same_file(path, other) for other in [*inputs, *saves.values(), *read]):
            raise InputError(f"--save {shortened(text)!r}: {path} is already used: give another")
        check_is_no_input(path, ())
        saves[int(which) if is_position else which] = path
    return saves
