"""The machine code of corpus kernels: of one file, and of all files of the sample together."""

from __future__ import annotations

from functools import cache

from tests.together import Part, image_of
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.kernel import Kernel
from validation.corpus.case import CORPUS, Case
from validation.corpus.inventory import KERNEL, sources
from validation.corpus.sample import in_sample


def compiled(case: Case, arch: str) -> Kernel:
    """The kernel of `case` for `arch`: "sm_86"."""
    if in_sample(case.file, arch):
        return Kernel.from_image(sample(arch), case.kernel)
    return alone(case, arch)


@cache
def sample(arch: str) -> bytes:
    """The files that are in the sample for `arch` as one image, under the kernels' own names."""
    files = [x for x in sources() if x.is_corpus and arch in x.architectures()]
    files = [x for x in files if in_sample(x.name, arch)]
    return image_of([Part(name=x.name, text=x.text, kernel=x.kernel) for x in files], arch)


def alone(case: Case, arch: str) -> Kernel:
    """The same from its own file's code."""
    return Kernel.from_image(of_file(case.file, arch).image, case.kernel)


@cache
def of_file(file: str, arch: str) -> Kernel:
    """The code of a whole file, under the name of its first kernel."""
    source = (CORPUS / file).read_text(encoding="utf-8")
    first = KERNEL.search(source)
    assert first, f"{file}: no extern kernel found"
    return compile_cubin(source, name=file, kernel=first[1], arch=arch)
