"""A launch of CUDA C++ that can be edited, compiled and simulated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from analysis.devices import Device
from analysis.geometry import Geometry
from analysis.l2_state import DEFAULT_L2, L2State
from analysis.timing.predicted import Explanation
from toolkit.execution.representatives import Blocks
from toolkit.execution.simulator import LIMIT_S, MAX_INSTRUCTIONS, Simulator
from toolkit.launch.launch import Argument, Execution
from toolkit.launch.setup import PLAIN, LaunchSetup
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.remedies.edit import Edit, Extent


@dataclass(frozen=True, kw_only=True)
class KernelLaunch:
    """Source and launch of a kernel. `name`: the file name of the source, in `folder`."""

    text: str
    name: str
    kernel: str | None
    grid: Extent
    block: Extent
    arguments: Sequence[Argument]
    device: Device
    arch: str
    dynamic_shared_bytes: int = 0
    folder: Path | None = None
    defines: Mapping[str, object] = field(default_factory=dict)
    options: Sequence[str] = ("-lineinfo",)
    blocks: Blocks = "representative"
    seed: int | None = None
    limit_s: float = LIMIT_S
    max_instructions: int = MAX_INSTRUCTIONS
    allow_out_of_bounds: bool = False
    setup: LaunchSetup = PLAIN
    l2: L2State = DEFAULT_L2

    @property
    def geometry(self) -> Geometry:
        return Geometry(
            grid=self.grid, block=self.block, dynamic_shared_bytes=self.dynamic_shared_bytes
        )

    def edited(self, edit: Edit) -> KernelLaunch:
        return replace(
            self,
            text=edit.applied(self.text),
            grid=edit.grid or self.grid,
            block=edit.block or self.block,
            options=(*self.options, *edit.compiler_options),
        )

    def compiled(self) -> Kernel:
        """Machine code, decoded. Raises as `compile_kernel` does."""
        found = compile_kernel(
            self.text,
            self.kernel,
            target=self.arch,
            name=self.name,
            folder=self.folder,
            defines=self.defines,
            options=self.options,
        )
        _ = found.instructions
        return found

    def simulated(
        self, kernel: Kernel, *, explanation: Explanation = Explanation.COSTS
    ) -> Execution:
        """Counters and predicted time, without outputs. Raises as `simulate` does."""
        simulator = Simulator(
            arch=self.arch,
            blocks=self.blocks,
            max_instructions=self.max_instructions,
            device=self.device,
            outputs=False,
            seed=self.seed,
            limit_s=self.limit_s,
            explanation=explanation,
            allow_out_of_bounds=self.allow_out_of_bounds,
            setup=self.setup,
            l2=self.l2,
        )
        return simulator.run(kernel, self.geometry, self.arguments)
