"""The machine code of corpus kernels, each file compiled once for all of its kernels."""

from __future__ import annotations

from functools import cache

from case import CORPUS, Case
from inventory import KERNEL

from toolkit.compile import Cubin, compile_cubin


def compiled(case: Case, arch: str) -> Cubin:
    """The kernel of `case` for `arch`: "sm_86"."""
    if case.kernel.isidentifier():
        return Cubin.from_image(of_file(case.file, arch).image, case.kernel)
    # of a name expression only the compiler knows the symbol
    return compile_cubin(case.source, name=case.file, kernel=case.kernel, arch=arch)


@cache
def of_file(file: str, arch: str) -> Cubin:
    """The code of a whole file, under the name of its first kernel."""
    source = (CORPUS / file).read_text(encoding="utf-8")
    first = KERNEL.search(source)
    assert first, f"{file}: no extern kernel found"
    return compile_cubin(source, name=file, kernel=first[1], arch=arch)
