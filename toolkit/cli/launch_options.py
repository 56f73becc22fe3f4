"""A launch as the options of `simulate` ask for it: text in, a checked call, its execution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import InputError, UnknownNameError, shortened
from analysis.geometry import Geometry
from analysis.records.launch import AskedLaunch
from toolkit.cli.argument_syntax import (
    UNWRITTEN,
    BufferArgument,
    buffer_bytes,
    make_arguments,
    parse_arguments,
    type_name,
)
from toolkit.cli.asked_launch import AskedOptions, extent_of, refuse_sizes
from toolkit.cli.launch_source import (
    defines_of,
    inputs_of,
    machine_code_of,
    options_of,
    target_of,
)
from toolkit.cli.options import KernelOptions, PredictOptions, RunOptions
from toolkit.cli.output import check_is_no_input
from toolkit.cli.settings import make_settings, parse_settings
from toolkit.execution.block_plan import Blocks
from toolkit.execution.completed_request import SIZES_GUESSED
from toolkit.execution.guessed_sizes import guessed_sizes
from toolkit.execution.sanitizer import Checked, check
from toolkit.execution.simulate import simulate
from toolkit.execution.simulator import MAX_INSTRUCTIONS, Advance, Announce, WhenCounted
from toolkit.frontends.script_names import is_script
from toolkit.launch.element_types import small_float
from toolkit.launch.launch import Argument, Execution
from toolkit.launch.setup import HEAP_BYTES, LaunchSetup, setup_of
from toolkit.machine_code.include_paths import text_with_headers
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, compile_kernel, naming, read_source
from toolkit.machine_code.signature import Declared, kernel_names, signature
from toolkit.remedies.find import NONE, Remedies
from toolkit.rungs.launch import RungLaunch, check_nothing_given, compile_for, rung_launch
from toolkit.rungs.matrices import chosen_seed
from toolkit.rungs.names import is_name
from toolkit.store.constants_file import with_constants
from toolkit.store.user_files import check_writable, same_file

if TYPE_CHECKING:
    from toolkit.cli.script_launch import ScriptLaunch
    from toolkit.gpu.sampling import Sampling

Extent = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A launch as it was asked for; everything is checked but what the compiler knows.

    `text` is the source's, None of machine code whose source is not found. `code` is a kernel that
    was compiled elsewhere. `written` are the arguments as they were given,
    `arguments` what they mean. `device` is the one that was named, else the best validated one of
    the architecture, None where no device of it is known.
    `saves` maps positions of buffers among the arguments, and names of variables, to files.
    `set_texts` are those of --set as they were given, `settings` what they mean. A
    `rung` by its name has no arguments here: those follow from its shape and the seed.
    `script` is set for a kernel of a Python file. `inner_lines` is as for `simulate`.
    `constants` is the file of --constants. `notes` say what host code told of the launch;
    `has_guessed_sizes` where arrays are as large as addresses imply.
    """

    source: Path
    text: str | None
    kernel: str | None
    grid: Extent
    block: Extent
    dynamic_shared_bytes: int
    written: Sequence[str]
    arguments: Sequence[BufferArgument | np.generic]
    arch: str
    device: Device | None
    defines: Mapping[str, str]
    options: Sequence[str]
    blocks: Blocks | None
    limit_s: float
    max_instructions: int
    seed: int
    saves: Mapping[int | str, Path]
    set_texts: Sequence[str] = ()
    settings: Mapping[str, BufferArgument | np.generic] = field(default_factory=dict)
    cooperative: bool = False
    heap_bytes: int = HEAP_BYTES
    rung: RungLaunch | None = None
    script: ScriptLaunch | None = None
    inner_lines: bool = False
    constants: str | None = None
    code: Kernel | None = None
    source_dirs: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    has_guessed_sizes: bool = False

    @property
    def file(self) -> str:
        """The name of the file whose text is `text`, as source lines have it."""
        return self.code.file or self.source.name if self.code else self.source.name

    def asked(self, kernel: str | None = None) -> AskedLaunch:
        """What records keep of it; `kernel` is the name, unless it is the one that was given."""
        return AskedLaunch(
            source=self.script.named if self.script else self.source.name,
            kernel=kernel or self.kernel or "",
            grid=self.grid,
            block=self.block,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            arguments=tuple(self.written),
            defines=dict(self.defines),
            options=tuple(self.options),
            seed=self.seed,
            device=self.device.key if self.device else None,
            rung=self.rung.label if self.rung else None,
            inner_lines=self.inner_lines,
            constants=self.constants,
            source_dirs=tuple(self.source_dirs),
            settings=tuple(self.set_texts),
            cooperative=self.cooperative,
            heap_bytes=None if self.heap_bytes == HEAP_BYTES else self.heap_bytes,
        )

    @property
    def setup(self) -> LaunchSetup:
        """Variables with their content, and the kind of launch."""
        return setup_of(
            make_settings(self.settings, seed=self.seed), self.cooperative, self.heap_bytes
        )

    def needed_bytes(self, *, copies: bool) -> int:
        """Host memory of its buffers, and of their `copies`; 0 for a rung by its name."""
        return (1 + copies) * buffer_bytes(self.arguments)

    def run(
        self,
        compiled: Future[Source],
        advance: Advance,
        announce: Announce | None = None,
        when_counted: WhenCounted | None = None,
        *,
        outputs: bool = False,
    ) -> SimulatedCall:
        """Execute it; `compiled` is its source (`compiled_beside`). Raises as `simulate` does."""
        blocks = self.blocks
        if blocks is None and self.rung is None:
            blocks = "all" if self.saves else "representative"
        launch = self._launch(compiled)
        execution = simulate(
            **launch | {"seed": self.seed},
            blocks=blocks,
            limit_s=self.limit_s,
            advance=advance,
            announce=announce,
            when_counted=when_counted,
            device=self.device,
            outputs=outputs,
            inner_lines=self.inner_lines,
        )
        if self.saves and (left := prod(self.grid) - (execution.executed_blocks or 0)):
            execution = replace(execution, notes=(*execution.notes, _of_saved(left)))
        execution = self._with_notes(execution)
        if self.script is None:
            return SimulatedCall(call=self, execution=execution)
        notes = [note] if (note := self.script.kernel.note) else []
        execution = replace(execution, notes=(*execution.notes, *notes))
        call = self.as_launched(execution.geometry)._with_text_of(execution.cubin)
        return SimulatedCall(call=call, execution=execution)

    def _with_notes(self, execution: Execution) -> Execution:
        """The result, which also says where the launch is from, and which sizes are guessed."""
        doubts = [SIZES_GUESSED] if self.has_guessed_sizes else []
        return replace(
            execution,
            notes=(*self.notes, *execution.notes),
            uncertainty=". ".join(filter(None, [*doubts, execution.uncertainty])),
        )

    def as_launched(self, geometry: Geometry | None) -> Call:
        """The call with the launch that a front end chose."""
        if self.script is None or geometry is None:
            return self
        return replace(
            self,
            grid=geometry.grid,
            block=geometry.block,
            dynamic_shared_bytes=geometry.dynamic_shared_bytes,
        )

    def _with_text_of(self, cubin: Kernel | None) -> Call:
        """The call with the text that a front end compiled, where that is known."""
        if cubin is None or cubin.file is None or cubin.source is None:
            return self
        return replace(self, source=self.source.with_name(cubin.file), text=cubin.source)

    def measure(self, compiled: Future[Source], sampling: Sampling) -> Execution:
        """Launch it on the GPU that is here, and time it. Raises as `toolkit.run` does."""
        from toolkit.gpu.launch import run

        rung = self.rung
        measured = run(
            self._kernel(compiled),
            grid=self.grid,
            block=self.block,
            arguments=rung.arguments(self.seed) if rung else self._made(),
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            samples=sampling,
            **vars(self.setup),
        )
        return self._with_notes(measured)

    def _kernel(self, compiled: Future[Source]) -> Kernel:
        """The machine code, as `simulate` executes it."""
        if self.rung is not None:
            return compile_for(self.arch, self.rung.selection, self.options)
        source = self.code or compiled.result()
        with naming(source):
            return compile_kernel(source, self.kernel, target=self.arch)

    def _made(self) -> list[Argument]:
        return make_arguments(self.arguments, seed=self.seed)

    def check(
        self,
        compiled: Future[Source],
        advance: Advance,
        announce: Announce | None = None,
    ) -> Checked:
        """Findings of the sanitizer on the launch. Raises as `check` does."""
        unwritten = [
            position
            for position, item in enumerate(self.arguments)
            if isinstance(item, BufferArgument) and item.fill == UNWRITTEN
        ]
        checked = check(
            **self._launch(compiled),
            blocks=self.blocks or "all",
            unwritten=unwritten,
            advance=advance,
            announce=announce,
        )
        return replace(checked, notes=(*self.notes, *checked.notes))

    def _launch(self, compiled: Future[Source]) -> dict[str, Any]:
        """Arguments that `simulate` and `check` have in common."""
        common: dict[str, Any] = {
            "arch": self.arch,
            "options": self.options,
            "max_instructions": self.max_instructions,
        }
        if (rung := self.rung) is not None:
            return common | {"source": rung.label, "shape": rung.problem, "seed": self.seed}
        common |= {"kernel": self.kernel, "dynamic_shared_bytes": self.dynamic_shared_bytes}
        if self.script is not None:
            return common | self.script.launch(self._made(), self.defines)
        return common | {
            **vars(self.setup),
            "arguments": self._made(),
            "source": self.code or compiled.result(),
            "grid": self.grid,
            "block": self.block,
        }


@dataclass(frozen=True, kw_only=True)
class SimulatedCall:
    """Call, its result, and its remedies, which are none unless they were asked for."""

    call: Call
    execution: Execution
    remedies: Remedies = NONE

    @property
    def kernel(self) -> str:
        cubin = self.execution.cubin
        return cubin.name if cubin else self.call.kernel or ""

    @property
    def declared(self) -> tuple[Declared, ...]:
        """The parameters as the source declares them, none where that is not known."""
        if (code := self.call.code) is not None:
            declared = code.declared or ()
        else:
            text = self.call.script.kernel.text if self.call.script else self.call.text
            declared = signature(text or "", self.kernel) or ()
        return declared if len(declared) == len(self.call.arguments) else ()

    @property
    def outputs(self) -> dict[int, NDArray[np.generic]]:
        """The buffers after the launch, by their position among the arguments."""
        call, outputs = self.call, self.execution.outputs
        buffers = [k for k, item in enumerate(call.arguments) if isinstance(item, BufferArgument)]
        if call.rung is not None:
            buffers = call.rung.buffers
        return dict(zip(buffers, outputs, strict=True)) if outputs else {}

    def files(self) -> dict[Path, bytes]:
        """Files that the user asked to keep, with their content."""
        symbols = self.execution.symbols
        for name in self.call.saves:
            if isinstance(name, str) and name not in symbols:
                raise UnknownNameError("__device__ variable", name, symbols)
        return {
            path: _npy(symbols[which] if isinstance(which, str) else self.outputs[which])
            for which, path in self.call.saves.items()
        }


def call_of(
    asked: AskedOptions,
    compiled: Future[Source],
    saves: Sequence[str] = (),
    here: Device | None = None,
) -> Call:
    """The call of a launch, whose sizes are guessed where nobody says them.

    `compiled` is its source (`compiled_beside`). Raises as `parse_call` does.
    """
    if all(one is not None for one in asked.arguments):
        return replace(parse_call(asked.launch, saves, here), notes=asked.notes)
    declared = asked.declared or ()
    known = [k for k, one in enumerate(asked.arguments) if one is not None]
    texts = [asked.arguments[k] or "" for k in known]
    parsed = parse_arguments(texts, [declared[k] for k in known])
    trial = replace(asked.launch, arguments=[])
    kernel = parse_call(trial, (), here)._kernel(compiled)
    arguments: list[Argument | None] = [None] * len(asked.arguments)
    seed = chosen_seed(asked.launch.seed)
    for k, one in zip(known, make_arguments(parsed, seed=seed), strict=True):
        arguments[k] = one
    types = {k: np.dtype(declared[k].dtype) for k, one in enumerate(arguments) if one is None}
    geometry = Geometry(
        grid=extent_of("--grid", asked.launch.grid or ""),
        block=extent_of("--block", asked.launch.block or ""),
        dynamic_shared_bytes=asked.launch.shared or 0,
    )
    found = guessed_sizes(kernel, geometry, arguments, types)
    if found.needed:
        refuse_sizes(asked, found.needed)
    written = [
        text
        if text is not None
        else f"{type_name(types[k])}[{found.sizes[k] // types[k].itemsize}]"
        for k, text in enumerate(asked.arguments)
    ]
    listed = ", ".join(f"{declared[k].name or f'argument {k}'} {written[k]}" for k in sorted(types))
    return replace(
        parse_call(replace(asked.launch, arguments=written), saves, here),
        notes=(*asked.notes, f"sizes guessed from addresses and guards: {listed}"),
        has_guessed_sizes=True,
    )


def parse_call(
    launch: KernelOptions, saves: Sequence[str] = (), here: Device | None = None
) -> Call:
    """The launch that these texts mean. Raises InputError for the first that means none.

    `here` is the GPU that it is for, unless the options name a device.
    """
    code = machine_code_of(launch, here)
    arch, device = target_of(launch, here, code)
    predicts = launch if isinstance(launch, PredictOptions) else None
    constants = predicts.constants if predicts is not None else None
    if constants is not None:
        if device is None:
            raise InputError(
                f"--constants: no device of {arch} is known, so no time is predicted: name a "
                "device with --device"
            )
        device = with_constants(device, constants)
    arguments = launch.arguments or ()
    common: dict[str, Any] = {
        "arch": arch,
        "device": device,
        "options": options_of(launch),
        "blocks": None if launch.blocks is None else _blocks(launch.blocks),
        "limit_s": launch.limit,
        "max_instructions": launch.max_instructions or MAX_INSTRUCTIONS,
        "seed": chosen_seed(launch.seed),
        "inner_lines": predicts is not None and predicts.inner_lines,
        "constants": None if constants is None else str(constants),
    }
    if is_name(launch.source):
        check_nothing_given(
            launch.source,
            {
                "kernel": launch.kernel,
                "grid": launch.grid,
                "block": launch.block,
                "arguments": arguments,
                "shared memory": launch.shared,
                "defines": launch.defines,
                "--set": launch.settings,
                "--cooperative": launch.cooperative,
            },
        )
        rung = rung_launch(launch.source, launch.shape, device)
        return _of_rung(rung, saves, common, measures=isinstance(launch, RunOptions))
    if launch.shape is not None:
        raise InputError(f"--shape is for rungs, and {shortened(launch.source)!r} is not one")
    if is_script(launch.source):
        return _of_script(launch, saves, common)
    assert launch.grid is not None, "only a rung brings it"
    assert launch.block is not None, "only a rung brings it"
    source = Path(launch.source)
    text = code.source if code else read_source(source)[0]
    if code:
        declared, sizes = code.declared, [parameter.size for parameter in code.parameters]
    else:
        options = tuple(launch.options or ())
        whole = text_with_headers(text or "", source.name, source.parent, options)
        declared, sizes = _declared(whole, launch.kernel), []
    parsed = parse_arguments(arguments, declared, sizes)
    buffers = {k: item.fill for k, item in enumerate(parsed) if isinstance(item, BufferArgument)}
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
        saves=_saves(saves, buffers, inputs_of(source, launch.options or ()) if saves else []),
        set_texts=tuple(launch.settings or ()),
        settings=parse_settings(launch.settings or (), text or ""),
        cooperative=launch.cooperative,
        heap_bytes=launch.heap,
        **common,
    )


def _of_rung(
    rung: RungLaunch, saves: Sequence[str], common: Mapping[str, Any], *, measures: bool
) -> Call:
    """The call of a rung, with files for buffers only where all of its blocks are executed."""
    if saves and not measures and common["blocks"] != "all":
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
        raise InputError(f"--kernel {kernel}: {launch.source} is {found.own_name}")
    declared = _declared(found.text, kernel or found.own_name) if found.text else None
    parsed, numbers = script_arguments(arguments, found, declared)
    buffers = {k: item.fill for k, item in enumerate(parsed) if isinstance(item, BufferArgument)}
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
        saves=_saves(saves, buffers, [found.path]),
        script=ScriptLaunch(kernel=found, grid=grid, block=block, numbers=numbers),
        **common,
    )


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
            known = (
                f"give one of {', '.join(map(str, buffers))}" if buffers else "no argument is one"
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


def _of_saved(left: int) -> str:
    return (
        f"saved files lack the results of the {left:,} blocks that were not executed: there "
        "they keep the values of the arguments"
    )


def _npy(array: NDArray[np.generic]) -> bytes:
    file = BytesIO()
    if small_float(array.dtype):  # a file has no such types: numpy.load gives their bytes
        array = array.view(f"V{array.itemsize}")
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
