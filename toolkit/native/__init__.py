"""Build the native libraries with the machine's C compiler, or with the ziglang wheel's.

Comes in: C sources. Goes out: a shared library beside each Python module. `python -m
toolkit.native` builds all. The build backend runs this before anything is installed: standard
library only.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from analysis.library import sources_of

ROOT = Path(__file__).parents[2]
ZIG = "ziglang==0.17.1"  # newer ones may spell the flags below in another way

# Sums and products round as written: nothing is contracted, nothing reassociated.
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-fvisibility=hidden")
# A loop over lanes that crosses a boundary of 32 bytes took 15% longer.
CORE_FLAGS = (*FLAGS, "-fno-math-errno", "-falign-loops=32")
# x86-64-v3, by its features: gcc 10, clang and zig have no name for it in common.
V3 = ["-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mlzcnt", "-mmovbe", "-mf16c", "-mpopcnt", "-mcx16"]
# The model writes its fields one by one: as vectors, compilers read several of them back too soon.
CYCLES_FLAGS = (*FLAGS, "-fno-tree-vectorize")

MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}.get(
    platform.machine().lower(), platform.machine().lower()
)
# Wheels of ziglang exist for these, as `sys.platform` and MACHINE.
ZIG_WHEELS = {
    ("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "aarch64"),
    ("win32", "x86_64"), ("win32", "aarch64"),
}  # fmt: skip

PROBE = """
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
__attribute__((visibility("default"))) int probe(void) { return 1; }
"""


class BuildError(Exception):
    """A compiler that works does not compile a source."""


def libraries() -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Name of each library, as Python names modules -> its sources and flags."""
    folders = {
        "toolkit.sass._core": ("toolkit/sass/core", CORE_FLAGS),
        "analysis._cycles": ("analysis/sm", CYCLES_FLAGS),
        "analysis.traffic._traffic": ("analysis/traffic", FLAGS),
    }
    if MACHINE == "x86_64":
        folders["toolkit.sass._core_v3"] = ("toolkit/sass/core", (*CORE_FLAGS, *V3))
    return {
        name: (
            sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.c")),
            (*flags, f'-DBUILT_FROM="{sources_of(ROOT / folder)}"'),
        )
        for name, (folder, flags) in folders.items()
    }


def file_of(name: str) -> str:
    """Path of a library in the root of the packages; ctypes needs no other suffix anywhere."""
    return f"{name.replace('.', '/')}.so"


@cache
def compiler() -> tuple[str, ...] | None:
    """Command of a C compiler that can build for this machine, None without one.

    That of $CC, else cc, gcc or clang, else the ziglang wheel.
    """
    return next((command for command in _compilers() if _works(command)), None)


def requirements() -> list[str]:
    """Packages that the build needs beside setuptools: a compiler if there is none."""
    has_wheel = (sys.platform, MACHINE) in ZIG_WHEELS
    return [ZIG] if has_wheel and compiler() is None else []


def build(name: str, output: Path) -> None:
    """Compile a library. Raises BuildError where the compiler refuses."""
    sources, flags = libraries()[name]
    command = compiler()
    if command is None:
        raise BuildError(f"no C compiler works here: install gcc or clang, or: pip install {ZIG}")
    compile_library(command, [ROOT / source for source in sources], output, flags)


def compile_library(
    command: Sequence[str], sources: Sequence[Path], output: Path, flags: Sequence[str]
) -> None:
    """Compile C sources to a shared library. Raises BuildError with the compiler's message."""
    output.parent.mkdir(parents=True, exist_ok=True)
    position = [] if sys.platform == "win32" else ["-fPIC"]
    with TemporaryDirectory(dir=output.parent) as folder:
        made = Path(folder, output.name)
        ran = subprocess.run(
            [*command, *flags, *position, "-shared", "-o", made, *sources, "-lm"],
            check=False,
            env={"ZIG_GLOBAL_CACHE_DIR": _zig_cache(), **os.environ}
            if "ziglang" in command
            else None,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if ran.returncode:
            compiled = os.path.commonpath(sources)
            raise BuildError(f"{shlex.join(command)} does not compile {compiled}:\n{ran.stderr}")
        made.replace(output)  # a process that has the old file open keeps it


def _compilers() -> Iterator[tuple[str, ...]]:
    if os.environ.get("CC"):
        yield tuple(shlex.split(os.environ["CC"]))
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            yield (path,)
    if find_spec("ziglang"):
        system = {"darwin": "macos", "win32": "windows-gnu"}.get(sys.platform, "linux-gnu")
        if system == "linux-gnu" and platform.libc_ver()[0] != "glibc":
            system = "linux-musl"
        yield zig(f"{MACHINE}-{system}")


def zig(target: str) -> tuple[str, ...]:
    """Command of the ziglang wheel's C compiler; by default it would trap undefined behaviour."""
    command = (sys.executable, "-m", "ziglang", "cc", "-target", target)
    return (*command, "-fno-sanitize=undefined")


@cache
def _zig_cache() -> str:
    """Folder for the cache of zig, 50 MB, until this process ends: a user may have no home."""
    folder = mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _works(command: Sequence[str]) -> bool:
    """True if the compiler builds a library that loads here, with all flags that are used."""
    flags = (*CORE_FLAGS, *CYCLES_FLAGS, *(V3 if MACHINE == "x86_64" else ()))
    # Windows does not delete a library that is loaded
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, library = Path(folder, "probe.c"), Path(folder, "probe.so")
        source.write_text(PROBE, encoding="utf-8")
        try:
            compile_library(command, [source], library, flags)
            return bool(ctypes.CDLL(str(library)).probe() == 1)
        except (BuildError, OSError, AttributeError):
            return False


def main() -> None:
    """Build every library in place."""
    for name in libraries():
        path = ROOT / file_of(name)
        try:
            build(name, path)
        except (BuildError, OSError) as error:
            sys.exit(f"error: {path}: {error}")
        print(f"built {path}")
