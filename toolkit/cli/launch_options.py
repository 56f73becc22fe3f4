"""A launch as the options of `simulate` ask for it: text in, a checked call, its execution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import InputError, UnknownNameError, shortened
from analysis.records.launch import AskedLaunch
from toolkit.cli.argument_syntax import (
    UNWRITTEN,
    BufferArgument,
    buffer_bytes,
    make_arguments,
    parse_arguments,
)
from toolkit.cli.launch_source import defines_of, inputs_of, options_of, target_of
from toolkit.cli.options import KernelOptions, PredictOptions, RunOptions
from toolkit.cli.output import check_is_no_input
from toolkit.execution.block_plan import Blocks
from toolkit.execution.sanitizer import Checked, check
from toolkit.execution.simulate import simulate
from toolkit.execution.simulator import MAX_INSTRUCTIONS, Advance, Announce, WhenCounted
from toolkit.launch.launch import Argument, Execution
from toolkit.machine_code.include_paths import text_with_headers
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_names import plain_name
from toolkit.machine_code.kernel_source import CUBIN, Source, compile_kernel, naming, read_source
from toolkit.machine_code.signature import Declared, kernel_names, signature
from toolkit.remedies.find import NONE, Remedies
from toolkit.rungs.launch import RungLaunch, check_nothing_given, compile_for, rung_launch
from toolkit.rungs.matrices import chosen_seed
from toolkit.rungs.names import is_name
from toolkit.store.constants_file import with_constants
from toolkit.store.user_files import check_writable, same_file

if TYPE_CHECKING:
    from toolkit.gpu.sampling import Sampling

Extent = tuple[int, int, int]
_OWN_HEADER = re.compile(r'^\s*#\s*include\s*"', re.MULTILINE)  # which may hold kernels


@dataclass(frozen=True, kw_only=True)
class Call:
    """A launch as it was asked for; everything is checked but what the compiler knows.

    `text` is the source's, None of machine code. `written` are the arguments as they were given,
    `arguments` what they mean. `device` is the one that was named, else the best validated one of
    the architecture, None where no device of it is known.
    `saves` maps positions of buffers among the arguments to files. A `rung` by its name has no
    arguments here: those follow from its shape and the seed. `inner_lines` is as for `simulate`.
    `constants` is the file of --constants.
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
    saves: Mapping[int, Path]
    rung: RungLaunch | None = None
    inner_lines: bool = False
    constants: str | None = None

    def asked(self, kernel: str | None = None) -> AskedLaunch:
        """What records keep of it; `kernel` is the name, unless it is the one that was given."""
        return AskedLaunch(
            source=self.source.name,
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
        return SimulatedCall(call=self, execution=execution)

    def measure(self, compiled: Future[Source], sampling: Sampling) -> Execution:
        """Launch it on the GPU that is here, and time it. Raises as `toolkit.run` does."""
        from toolkit.gpu.launch import run

        rung = self.rung
        return run(
            self._kernel(compiled),
            grid=self.grid,
            block=self.block,
            arguments=rung.arguments(self.seed) if rung else self._made(),
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            samples=sampling,
        )

    def _kernel(self, compiled: Future[Source]) -> Kernel:
        """The machine code, as `simulate` executes it."""
        if self.rung is not None:
            return compile_for(self.arch, self.rung.selection, self.options)
        source = compiled.result()
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
        return check(
            **self._launch(compiled),
            blocks=self.blocks or "all",
            unwritten=unwritten,
            advance=advance,
            announce=announce,
        )

    def _launch(self, compiled: Future[Source]) -> dict[str, Any]:
        """Arguments that `simulate` and `check` have in common."""
        common: dict[str, Any] = {
            "arch": self.arch,
            "options": self.options,
            "max_instructions": self.max_instructions,
        }
        if (rung := self.rung) is not None:
            return common | {"source": rung.label, "shape": rung.problem, "seed": self.seed}
        return common | {
            "arguments": self._made(),
            "source": compiled.result(),
            "kernel": self.kernel,
            "grid": self.grid,
            "block": self.block,
            "dynamic_shared_bytes": self.dynamic_shared_bytes,
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
        declared = signature(self.call.text or "", self.kernel) or ()
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
        return {path: _npy(self.outputs[position]) for position, path in self.call.saves.items()}


def parse_call(
    launch: KernelOptions, saves: Sequence[str] = (), here: Device | None = None
) -> Call:
    """The launch that these texts mean. Raises InputError for the first that means none.

    `here` is the GPU that it is for, unless the options name a device.
    """
    arch, device = target_of(launch, here)
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
            },
        )
        rung = rung_launch(launch.source, launch.shape, device)
        return _of_rung(rung, saves, common, measures=isinstance(launch, RunOptions))
    if launch.shape is not None:
        raise InputError(f"--shape is for rungs, and {shortened(launch.source)!r} is not one")
    assert launch.grid is not None, "only a rung brings it"
    assert launch.block is not None, "only a rung brings it"
    source = Path(launch.source)
    text = None if launch.source.endswith(CUBIN) else read_source(source)[0]
    try:
        whole = None
        if text is not None:
            whole = text_with_headers(text, source.name, source.parent, launch.options or ())
        parsed = parse_arguments(arguments, _declared(whole, launch.kernel) if whole else None)
    except InputError:
        if text and launch.kernel:
            _check_kernel(text, launch.kernel)
        raise
    buffers = {k: item.fill for k, item in enumerate(parsed) if isinstance(item, BufferArgument)}
    return Call(
        source=source,
        text=text,
        kernel=launch.kernel,
        grid=_extent("--grid", launch.grid),
        block=_extent("--block", launch.block),
        dynamic_shared_bytes=launch.shared,
        written=tuple(arguments),
        arguments=parsed,
        defines=defines_of(launch),
        saves=_saves(saves, buffers, inputs_of(source, launch.options or ()) if saves else []),
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


def _declared(text: str, kernel: str | None) -> tuple[Declared, ...] | None:
    """The parameters of the kernel, or of the only one in the source."""
    names = kernel_names(text) if kernel is None else [kernel]
    return signature(text, names[0]) if len(names) == 1 else None


def _check_kernel(text: str, kernel: str) -> None:
    """Raise UnknownNameError for a kernel that is not in a source without own headers."""
    names = kernel_names(text)
    name = plain_name(kernel).partition("<")[0].rpartition("::")[2].strip()
    if names and name not in names and not _OWN_HEADER.search(text):
        raise UnknownNameError("kernel", kernel, names)


def _extent(option: str, text: str) -> Extent:
    parts = re.split(r"[,x×]", text)
    if not (
        len(parts) <= 3
        and all(re.fullmatch(r" *\d{1,10} *", part, re.ASCII) for part in parts)
        and all(map(int, parts))
    ):
        raise InputError(
            f"{option} {shortened(text)!r} is not a size: give one to three numbers of at least 1, "
            f"such as {option} 64 or {option} 8,8"
        )
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


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
) -> dict[int, Path]:
    """The files of `buffers`, which map positions among the arguments to what fills them.

    `inputs` are the other files that are read.
    """
    saves: dict[int, Path] = {}
    for text in texts:
        position, _, name = text.partition("=")
        if not re.fullmatch(r"\d{1,9}", position, re.ASCII) or not name:
            raise InputError(
                f"--save {shortened(text)!r} is not understood: give the position of a buffer, "
                "from 0 on, and a file: --save 1=out.npy"
            )
        if int(position) not in buffers:
            known = (
                f"give one of {', '.join(map(str, buffers))}" if buffers else "no argument is one"
            )
            raise InputError(
                f"--save {shortened(text)!r}: argument {position} is not a buffer: {known}"
            )
        path = Path(name)
        check_writable(path)
        read = [fill for fill in buffers.values() if isinstance(fill, Path)]
        if any(same_file(path, other) for other in [*inputs, *saves.values(), *read]):
            raise InputError(f"--save {shortened(text)!r}: {path} is already used: give another")
        check_is_no_input(path, ())
        saves[int(position)] = path
    return saves


def _of_saved(left: int) -> str:
    return (
        f"saved files lack the results of the {left:,} blocks that were not executed: there "
        "they keep the values of the arguments"
    )


def _npy(array: NDArray[np.generic]) -> bytes:
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
