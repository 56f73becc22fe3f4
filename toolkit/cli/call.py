"""A launch of the command line that is ready to execute, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.devices import Device
from analysis.errors import UnknownNameError
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.records.launch import AskedLaunch
from toolkit.cli.argument_syntax import (
    UNWRITTEN,
    BufferArgument,
    buffer_bytes,
    make_arguments,
)
from toolkit.cli.settings import make_settings
from toolkit.execution.random_contents import with_random_contents
from toolkit.execution.representatives import Blocks
from toolkit.execution.sanitizer import Checked, check
from toolkit.execution.simulate import simulate
from toolkit.execution.simulator import (
    LIMIT_S,
    MAX_INSTRUCTIONS,
    Advance,
    Announce,
    WhenCounted,
)
from toolkit.launch.element_types import small_float
from toolkit.launch.heap import HEAP_BYTES
from toolkit.launch.launch import Argument, Execution
from toolkit.launch.setup import LaunchSetup, setup_of
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import Source, compile_kernel, naming
from toolkit.machine_code.signature import Declared, signature
from toolkit.machine_code.source_text import SourceFile, included_source
from toolkit.remedies.result import NONE, Remedies
from toolkit.rungs.launch import RungLaunch, compile_for

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
    `constants` is the file of --constants, `clock_mhz` the number of --clock, `l2` what the launch
    finds in L2. `notes` say what host code told of the launch; `doubts` say why its time is not to
    be trusted.
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
    clock_mhz: float | None = None
    l2: L2State = DEFAULT_L2
    allow_out_of_bounds: bool = False
    code: Kernel | None = None
    source_dirs: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of the file whose text is `text`, as source lines have it."""
        return self.code.file or self.source.name if self.code else self.source.name

    def asked(self, kernel: str | None = None) -> AskedLaunch:
        """The launch as records keep it; `kernel` is its name, by default the given one."""
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
            clock_mhz=self.clock_mhz,
            l2=self.l2,
            allow_out_of_bounds=self.allow_out_of_bounds,
            source_dirs=tuple(self.source_dirs),
            settings=tuple(self.set_texts),
            cooperative=self.cooperative,
            heap_bytes=None if self.heap_bytes == HEAP_BYTES else self.heap_bytes,
            limit_s=None if self.limit_s == LIMIT_S else self.limit_s,
            blocks=None if self.blocks is None else str(self.blocks),
            max_instructions=(
                None if self.max_instructions == MAX_INSTRUCTIONS else self.max_instructions
            ),
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
            l2=self.l2,
            outputs=outputs,
            allow_out_of_bounds=self.allow_out_of_bounds,
            inner_lines=self.inner_lines,
        )
        if self.saves and (left := prod(self.grid) - (execution.executed_blocks or 0)):
            execution = replace(execution, notes=(*execution.notes, _of_saved(left)))
        if self.script is None and self.rung is None:
            execution = with_random_contents(execution, self._random_positions)
        execution = self._with_notes(execution)
        if self.script is None:
            return SimulatedCall(call=self, execution=execution)
        notes = [note] if (note := self.script.kernel.note) else []
        execution = replace(execution, notes=(*execution.notes, *notes))
        call = self.as_launched(execution.geometry)._with_text_of(execution.cubin)
        return SimulatedCall(call=call, execution=execution)

    @property
    def _random_positions(self) -> list[int]:
        """Positions of the arguments that are random arrays, in all of their fields."""
        return [
            position
            for position, item in enumerate(self.arguments)
            if isinstance(item, BufferArgument)
            and all(one.is_random for one in item.fields or [item])
        ]

    def _with_notes(self, execution: Execution) -> Execution:
        """The result, which also says where the launch is from, and which sizes are guessed."""
        return replace(
            execution,
            notes=(*self.notes, *execution.notes),
            uncertainty=". ".join(filter(None, [*self.doubts, execution.uncertainty])),
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
            self.machine_code(compiled),
            grid=self.grid,
            block=self.block,
            arguments=rung.arguments(self.seed) if rung else self.made,
            dynamic_shared_bytes=self.dynamic_shared_bytes,
            samples=sampling,
            l2=self.l2,
            **vars(self.setup),
        )
        return self._with_notes(measured)

    def machine_code(self, compiled: Future[Source]) -> Kernel:
        """The machine code, as `simulate` executes it."""
        if self.rung is not None:
            return compile_for(self.arch, self.rung.selection, self.options)
        source = self.code or compiled.result()
        with naming(source):
            return compile_kernel(source, self.kernel, target=self.arch)

    @cached_property
    def made(self) -> list[Argument]:
        """The arguments; no launch changes these arrays."""
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
        common |= vars(self.setup)
        if self.script is not None:
            return common | self.script.launch(self.made, self.defines)
        return common | {
            "arguments": self.made,
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

    @cached_property
    def written_in(self) -> SourceFile:
        """The file that the kernel stands in, which may be a header of the source."""
        call, kernel = self.call, self.execution.cubin
        included = included_source(kernel) if kernel and not call.script else None
        return included or SourceFile(path=call.source.with_name(call.file), text=call.text)

    @property
    def declared(self) -> tuple[Declared, ...]:
        """The parameters as the source declares them, none where that is not known."""
        if (code := self.call.code) is not None:
            declared = code.declared or ()
        else:
            script = self.call.script
            text = script.kernel.text if script else self.written_in.text
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
