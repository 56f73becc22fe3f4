"""The native cores of simulator and timing model; everything else stands in pyproject.toml."""

import platform
from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

CORE = "toolkit/sass/core"
# Sums and products round as written: nothing is contracted, nothing reassociated.
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"]

# What the core was built from: toolkit/sass/core.py refuses one of other sources.
SOURCES = sha256(b"".join(path.read_bytes() for path in sorted(Path(CORE).glob("*.[ch]"))))


def core(name: str, *flags: str) -> Extension:
    return Extension(
        f"toolkit.sass.{name}",
        sources=[f"{CORE}/core.c"],
        depends=[str(path) for path in sorted(Path(CORE).glob("*.h"))],
        define_macros=[("CORE_SOURCES", f'"{SOURCES.hexdigest()}"')],
        extra_compile_args=[*FLAGS, *flags],
        libraries=["m"],
        optional=True,  # without a C compiler all but the simulator works, and it says so
    )


# The model writes its fields one by one: as vectors, compilers read several of them back too soon.
cycles = Extension(
    "analysis._cycles",
    sources=["analysis/cycles/sm.c"],
    extra_compile_args=["-std=c11", "-O3", "-fno-tree-vectorize", "-fvisibility=hidden"],
    optional=True,
)
flavours = [core("_core")]
if platform.machine().lower() in ("x86_64", "amd64"):
    flavours.append(core("_core_v3", "-march=x86-64-v3"))

setup(ext_modules=[*flavours, cycles])
