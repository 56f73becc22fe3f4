"""Many sources as one translation unit: each cubin costs a run of nvdisasm, whatever its size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel

DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
DYNAMIC = re.compile(r"extern __shared__ [^;]*?(\w+)\[\];")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A source without includes; lines of its code are those of `name`."""

    name: str
    text: str
    kernel: str
    defines: Mapping[str, object] = field(default_factory=dict)


def joined(parts: Sequence[Part]) -> str:
    """One source of them all. A kernel K that several parts have is called K_N in part N.

    What else a part defines is in a namespace of its own, and its macros end with it.
    """
    pieces = []
    for number, part in enumerate(parts):
        assert "#include" not in part.text, part.name
        macros = {**part.defines}
        if (name := name_of(parts, number)) != part.kernel:
            macros[part.kernel] = name
        pieces += [
            *(f"#define {name} {value}" for name, value in macros.items()),
            f"namespace part_{number} {{",
            f'#line 1 "{part.name}"',
            _own(part.text, number),
            "}",
            *(f"#undef {name}" for name in (*macros, *DEFINED.findall(part.text))),
        ]
    return "\n".join(pieces) + "\n"


def _own(text: str, number: int) -> str:
    """The text with its dynamic shared arrays, which have C names, under names of its own."""
    for name in set(DYNAMIC.findall(text)):
        text = re.sub(rf"(?<![.\w]){name}(?![.:\w])", f"{name}_{number}", text)
    return text


def name_of(parts: Sequence[Part], number: int) -> str:
    """Name of the kernel of a part in the source of all parts."""
    kernel = parts[number].kernel
    return f"{kernel}_{number}" if sum(x.kernel == kernel for x in parts) > 1 else kernel


def image_of(parts: Sequence[Part], arch: str) -> bytes:
    first = f"part_0::{name_of(parts, 0)}"
    return compile_cubin(joined(parts), name="parts.cu", kernel=first, arch=arch).image


def compiled_together(parts: Sequence[Part], arch: str) -> list[Kernel]:
    """The kernel of each part, all in one image."""
    image = image_of(parts, arch)
    return [
        replace(Kernel.from_image(image, name_of(parts, number)), name=part.kernel)
        for number, part in enumerate(parts)
    ]
