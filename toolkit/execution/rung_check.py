"""Sanitizer run of a rung on a small product, short enough for every profile."""

from __future__ import annotations

from analysis.errors import ShapeError
from analysis.problem import Gemm
from kernels.variant import Parameters, Variant
from toolkit.execution.sanitizer import Checked, check
from toolkit.machine_code.kernel import Kernel
from toolkit.rungs.arguments import position_of_c
from toolkit.rungs.launch import RungLaunch

# Larger than one tile of the largest rung in both directions, and no multiple of any tile: guards
# are executed, and blocks have neighbours. The second shape is for a rung with one block.
SHAPES = (Gemm(m=136, n=136, k=20), Gemm(m=24, n=28, k=20))
BLOCKS = 8


def check_rung(kernel: Kernel, variant: Variant, parameters: Parameters, seed: int) -> Checked:
    """Findings of the sanitizer in some blocks of a small product. C counts as unwritten before.

    Raises UnsupportedError for machine code that the simulator does not support, ShapeError if the
    rung accepts neither shape.
    """
    launch = RungLaunch(variant=variant, parameters=parameters, problem=_shape_of(variant))
    return check(
        kernel,
        grid=launch.geometry.grid,
        block=launch.geometry.block,
        arguments=launch.arguments(seed),
        unwritten=[position_of_c(variant)],
        dynamic_shared_bytes=launch.geometry.dynamic_shared_bytes,
        blocks=BLOCKS,
    )


def sentence(checked: Checked, variant: Variant) -> str:
    """Sentence on the result of a check, for the record of a rung."""
    blocks = f"{checked.executed_blocks} blocks of {_shape_of(variant)}"
    looked = "; ".join((f"{', '.join(checked.tools)} on {blocks}", *checked.notes))
    if not checked.findings:
        return f"sanitizer: no errors: {looked}"
    first = checked.findings[0]
    more = f" (and {len(checked.findings) - 1} more)" if len(checked.findings) > 1 else ""
    return f"sanitizer: {first.tool}: {first.message}{more}; {looked}"


def _shape_of(variant: Variant) -> Gemm:
    for shape in SHAPES:
        try:
            variant.check_shape(shape)
        except ShapeError:
            continue
        return shape
    raise ShapeError(f"{variant.name} takes none of {', '.join(map(str, SHAPES))}")
