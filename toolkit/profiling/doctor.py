"""Findings on this machine: what each job needs, what is missing, and the command that fixes it.

The probes run in parallel. A probe that fails or hangs costs its own finding and nothing else.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from threading import Thread
from typing import Any, Literal

from analysis.errors import REBUILD, UnavailableError, first_line
from toolkit.gpu.driver import driver_library, error_name
from toolkit.gpu.nsight_compute import ncu
from toolkit.machine_code import cuda_tools as commands
from toolkit.machine_code.compile import REMEDY as INSTALL_NVRTC
from toolkit.machine_code.compile import compiler_version, supported_architectures
from toolkit.sass.core.binding import library

Status = Literal["ok", "missing", "optional missing", "problem"]

_PATIENCE_S = 20.0  # for all probes together; a driver that wakes many GPUs takes seconds

_INSTALL_DRIVER = "install the NVIDIA driver: https://www.nvidia.com/drivers"
_INSTALL_TOOLKIT = (
    "install NVIDIA's CUDA toolkit: https://developer.nvidia.com/cuda-downloads, "
    'then: export PATH="/usr/local/cuda/bin:$PATH"'
)

_CUDA_ERROR_NO_DEVICE = 100  # cuda.h
_CAP_SYS_ADMIN = 21  # linux/capability.h; what the driver asks of who reads counters


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """Result of one probe; `remedy` says how to fix it, empty if nothing needs fixing."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


Probe = Callable[[], str]  # the detail of what it found; raises LackingError for what it lacks


class LackingError(Exception):
    """Error of a probe: something is missing or does not work; it has the remedy."""

    def __init__(self, status: Status, detail: str, remedy: str = "") -> None:
        super().__init__(detail)
        self.status, self.remedy = status, remedy


def examine() -> list[ProbeResult]:
    """Findings in the order of `_PROBES`, followed by one finding per ability."""
    findings = _examined(_PROBES, _PATIENCE_S)
    return [*findings, *abilities(findings)]


def abilities(findings: list[ProbeResult]) -> list[ProbeResult]:
    """Abilities of the toolkit on this machine, derived from the findings."""
    working = {finding.name for finding in findings if finding.status == "ok"}
    return [
        _ability(name, [need for need in needs if need not in working])
        for name, needs in ABILITIES.items()
    ]


def _ability(name: str, lacking: list[str]) -> ProbeResult:
    if not lacking:
        return ProbeResult(name=name, status="ok", detail="works")
    status: Status = "missing" if name == _WITHOUT_GPU else "optional missing"
    return ProbeResult(name=name, status=status, detail=f"needs {', '.join(lacking)} (see above)")


def _examined(probes: dict[str, Probe], patience_s: float) -> list[ProbeResult]:
    """The finding of each probe; daemon threads, because one that hangs cannot be stopped."""
    found = {
        name: ProbeResult(name=name, status="problem", detail=f"no answer within {patience_s:g} s")
        for name in probes
    }

    def examine_one(name: str) -> None:
        found[name] = _finding(name, probes[name])

    deadline = time.monotonic() + patience_s
    threads = [Thread(target=examine_one, args=(name,), daemon=True) for name in probes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return list(found.values())


def _finding(name: str, probe: Probe) -> ProbeResult:
    try:
        return ProbeResult(name=name, status="ok", detail=probe())
    except LackingError as lacking:
        return ProbeResult(
            name=name, status=lacking.status, detail=str(lacking), remedy=lacking.remedy
        )
    except Exception as error:  # the doctor reports every failure and has none
        detail = f"{type(error).__name__}: {first_line(error)}"
        return ProbeResult(name=name, status="problem", detail=detail)


def _nvrtc() -> str:
    try:
        known = supported_architectures()
    except Exception as error:
        detail = first_line(error).removesuffix(f": {INSTALL_NVRTC}")
        raise LackingError("missing", detail, INSTALL_NVRTC) from None
    return f"{compiler_version()}, sm_{known[0]} to sm_{known[-1]}"


def _core() -> str:
    try:
        built = Path(library()._name).stem
    except UnavailableError as error:
        detail = first_line(error).removesuffix(f": {REBUILD}")
        raise LackingError("missing", detail, REBUILD) from None
    return "for processors with AVX2 and FMA" if built == "_core_v3" else "for any processor"


# The driver.


def _driver() -> str:
    library = driver_library()
    if library is None:
        raise LackingError("optional missing", "not installed", _INSTALL_DRIVER)
    status = library.cuInit(0)
    version = ".".join(map(str, _driver_cuda_version(library)))
    if status not in (0, _CUDA_ERROR_NO_DEVICE):
        detail = f"for CUDA {version}, but cuInit fails: {error_name(library, status)}"
        remedy = "reboot, or reinstall the NVIDIA driver; `nvidia-smi` says more"
        raise LackingError("problem", detail, remedy)
    return f"for CUDA {version}"


def _gpus() -> str:
    library = driver_library()
    if library is None or library.cuInit(0) not in (0, _CUDA_ERROR_NO_DEVICE):
        raise LackingError("optional missing", "unknown without the driver")
    if names := list(_names_of_gpus(library)):
        return ", ".join(names)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        remedy = "`nvidia-smi` lists the GPUs"
        raise LackingError("optional missing", "the driver finds no GPU", remedy)
    detail = f"the driver finds no GPU; CUDA_VISIBLE_DEVICES={visible!r}"
    raise LackingError("optional missing", detail, "unset CUDA_VISIBLE_DEVICES")


def _driver_cuda_version(library: Any) -> tuple[int, int]:
    """The newest CUDA that the driver serves, such as (13, 0)."""
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10


def _names_of_gpus(library: Any) -> Iterator[str]:
    count = ctypes.c_int()
    library.cuDeviceGetCount(ctypes.byref(count))
    for index in range(count.value):
        text = ctypes.create_string_buffer(256)
        library.cuDeviceGetName(text, len(text), index)
        yield text.value.decode()


# Commands.


def _nvcc() -> str:
    path = commands.command_path("nvcc", *commands.cuda_folders())
    if path is None:
        detail = "neither on PATH nor in CUDA_HOME"
        raise LackingError("optional missing", detail, _INSTALL_TOOLKIT)
    version = commands.version_printed_by(path, r"V(\d+(?:\.\d+)+)")
    if shutil.which("nvcc") is None:
        detail = f"{version}, in CUDA_HOME but not on PATH, where PyCUDA looks"
        raise LackingError("problem", detail, 'export PATH="$CUDA_HOME/bin:$PATH"')
    library = driver_library()
    if library is not None and int(version.split(".")[0]) > _driver_cuda_version(library)[0]:
        # CUDA Compatibility: a driver serves toolkits of its own major version and older ones
        served = ".".join(map(str, _driver_cuda_version(library)))
        detail = f"{version} is newer than the driver, which serves CUDA {served}"
        raise LackingError("problem", detail, _INSTALL_DRIVER)
    return version


def _ncu() -> str:
    path = ncu.path()
    if path is None:
        raise LackingError("optional missing", "not installed", ncu.INSTALL)
    return ncu.version(path)


# Permission to read hardware counters (NVIDIA, ERR_NVGPUCTRPERM).


def _counter_permission() -> str:
    parameters = _read("/proc/driver/nvidia/params")
    if parameters is None:
        raise LackingError("optional missing", "no NVIDIA kernel module is loaded")
    if not re.search(r"^RmProfilingAdminOnly: *1$", parameters, re.MULTILINE):
        return "every user may read hardware counters"
    if _is_administrator():
        return "only administrators may, and this one is"
    detail = "only administrators may read hardware counters"
    raise LackingError("problem", detail, ncu.ALLOW_COUNTERS)


def _is_administrator() -> bool:
    """True if this process has CAP_SYS_ADMIN, which root in a container often lacks."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", _read("/proc/self/status") or "", re.MULTILINE)
    return match is not None and bool(int(match[1], 16) >> _CAP_SYS_ADMIN & 1)


def _read(path: str) -> str | None:
    with suppress(OSError):
        return Path(path).read_text(errors="replace")
    return None


# Python packages.


def _package(distribution: str, use: Callable[[], object]) -> str:
    """The version of a package of the extra `gpu`; `use` fails where it does not work."""
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        detail, remedy = f"{distribution} is not installed", "pip install -e '.[gpu]'"
        raise LackingError("optional missing", detail, remedy) from None
    try:
        use()
    except Exception as error:
        no_driver = driver_library() is None
        detail = f"{distribution} {version} does not work: {first_line(error)}"
        remedy = _INSTALL_DRIVER if no_driver else f"pip install --force-reinstall {distribution}"
        raise LackingError("problem", detail, remedy) from None
    return f"{distribution} {version}"


_PROBES: dict[str, Probe] = {
    "NVRTC": _nvrtc,
    "Simulator's core": _core,
    "NVIDIA driver": _driver,
    "GPU": _gpus,
    "nvcc": _nvcc,
    "PyCUDA": partial(_package, "pycuda", lambda: import_module("pycuda.driver")),
    "cuBLAS": partial(
        _package,
        "nvmath-python",
        lambda: import_module("nvmath.bindings.cublasLt").get_version(),
    ),
    "GPU clocks and power": partial(
        _package, "nvidia-ml-py", lambda: import_module("pynvml").nvmlInit()
    ),
    "Nsight Compute": _ncu,
    "Permission to read counters": _counter_permission,
}

_WITHOUT_GPU = "Profile with no GPU"
_ON_GPU = ("NVIDIA driver", "GPU", "nvcc", "PyCUDA")
# what the toolkit can do -> the probes that must be ok
ABILITIES: dict[str, tuple[str, ...]] = {
    _WITHOUT_GPU: ("NVRTC", "Simulator's core"),
    "Profile on the GPU": _ON_GPU,
    "Tune on the GPU": _ON_GPU,
    "Hardware counters": (*_ON_GPU, "Nsight Compute", "Permission to read counters"),
}
