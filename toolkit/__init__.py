"""Profile CUDA kernels: compile, execute, check, time, analyse.

>>> from toolkit import profile
>>> result = profile(shapes=["512"], variants=["tiled"], device="t4", executor="theory")
>>> result.records[0].theory.intensity_loads
8.0

`profile` runs the ladder and returns a `toolkit.store.presented.ShownProfile`; `run` launches any
kernel on the GPU and `simulate` on the CPU, with a `TensorMap` for bulk copies of tiles, a
`Texture` and a `Surface`, and `CudaText` for the text of a SourceModule of PyCUDA;
`matmul` multiplies arrays of PyTorch, CuPy and PyCUDA on the GPU, with the kernels of the ladder.
`find_remedies` tries edits of a kernel, `explain` says what a word means, `save` and `load` keep
profiles in files, and `compare` says what changed from one to another. The command line is
`python -m toolkit`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.records.words import explain
    from toolkit.execution.sanitizer import check
    from toolkit.execution.simulate import simulate
    from toolkit.frontends.cuda_text import CudaText
    from toolkit.gpu.launch import run
    from toolkit.launch.tensor_map import TensorMap
    from toolkit.launch.texture import Surface, Texture
    from toolkit.product.matmul import matmul
    from toolkit.profiling.profile import profile
    from toolkit.remedies.find import find_remedies
    from toolkit.store.comparison import compare
    from toolkit.store.presented import load
    from toolkit.store.profile_json import save

__version__ = "0.1.0"

__all__ = [
    "CudaText",
    "Surface",
    "TensorMap",
    "Texture",
    "__version__",
    "check",
    "compare",
    "explain",
    "find_remedies",
    "load",
    "matmul",
    "profile",
    "run",
    "save",
    "simulate",
]

_HOMES = {
    "CudaText": "toolkit.frontends.cuda_text",
    "Surface": "toolkit.launch.texture",
    "TensorMap": "toolkit.launch.tensor_map",
    "Texture": "toolkit.launch.texture",
    "check": "toolkit.execution.sanitizer",
    "compare": "toolkit.store.comparison",
    "explain": "analysis.records.words",
    "find_remedies": "toolkit.remedies.find",
    "matmul": "toolkit.product.matmul",
    "profile": "toolkit.profiling.profile",
    "run": "toolkit.gpu.launch",
    "simulate": "toolkit.execution.simulate",
    "load": "toolkit.store.presented",
    "save": "toolkit.store.profile_json",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: numpy and scipy cost start-up time."""
    if name not in _HOMES:
        raise AttributeError(f"module 'toolkit' has no attribute {name!r}")
    if hidden := hidden_package():
        raise ImportError(hidden)
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def hidden_package() -> str | None:
    """Remedy if Python finds a user's file or folder in place of a package of ours, else None."""
    for name in ("analysis", "kernels", "reports"):
        spec = find_spec(name)
        ours = Path(__file__).parents[1] / name / "__init__.py"
        if spec is not None and not (spec.origin and ours.samefile(spec.origin)):
            found = spec.origin or next(iter(spec.submodule_search_locations or ()))
            return (
                f"{found} hides gemm-ladder's own package {name!r}: rename it, or start in another "
                "folder (the command gemm-ladder starts in any)"
            )
    return None
