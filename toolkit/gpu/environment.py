"""Environment of a profile: versions, the machine, and the state of the GPU while it ran.

Nothing here fails, and nothing here names the host or the user: a profile is made to be shared.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import toolkit
from analysis.records.profile import Environment, GpuState

# name in the record -> distribution on the package index
_SOFTWARE = {
    "numpy": "numpy",
    "scipy": "scipy",
    "plotly": "plotly",
    "PyCUDA": "pycuda",
    "nvmath-python": "nvmath-python",
    "NVRTC": "nvidia-cuda-nvrtc",
}

# nvml.h, "Clocks event reasons"; 0x1 (GPU idle) slows nothing that runs and is left out
_THROTTLE_REASONS = {
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal (software)",
    0x040: "thermal (hardware)",
    0x080: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
_GPU_IDLE = 0x001

# nvml.h: nvmlClockType_t and nvmlTemperatureSensors_t
_NVML_CLOCK_SM = 1
_NVML_CLOCK_MEM = 2
_NVML_SENSOR_GPU = 0


def environment(gpu: GpuMonitor | None = None) -> Environment:
    """Versions of the software and the machine, as found; with the GPU that `gpu` watches."""
    software = {name: _version(distribution) for name, distribution in _SOFTWARE.items()}
    hardware: dict[str, str | None] = {"CPU": cpu()}
    if gpu is not None:
        software["NVIDIA driver"] = gpu.driver_version
        hardware["GPU"] = gpu.name
    return Environment(
        toolkit_version=toolkit.__version__,
        commit=commit(),
        software={
            "Python": platform.python_version(),
            "OS": _operating_system(),
            **_found(software),
        },
        hardware=_found(hardware),
    )


def _found(versions: dict[str, str | None]) -> dict[str, str]:
    return {name: version for name, version in versions.items() if version is not None}


def commit(root: Path = Path(__file__).parents[2]) -> str | None:
    """The short hash of the toolkit's own checkout, with "+" where tracked files differ from it.

    The environment variable GEMM_LADDER_COMMIT overrules git, for copies of a checkout, as in a
    container. None where the toolkit is no checkout, or git does not answer within a second.
    """
    if told := os.environ.get("GEMM_LADDER_COMMIT"):
        return told
    if not (root / ".git").exists():  # installed, perhaps inside another project's checkout
        return None
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    describe = "git --no-optional-locks describe --always --exclude=* --dirty=+ --abbrev=7"
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            describe.split(), cwd=root, env=inherited, timeout=1, capture_output=True, check=True
        )
        return done.stdout.decode().strip()
    return None


class GpuMonitor:
    """Clocks, power and temperature of one GPU through NVIDIA's management library (NVML).

    `gpu` is the PCI bus id, which CUDA tells. Where NVML is absent or does not know, the answer is
    None.

    >>> with GpuMonitor("0000:65:00.0") as monitor:
    ...     state = monitor.state()
    """

    def __init__(self, gpu: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        with suppress(Exception):  # absent, of another driver, without permission ...
            nvml = import_module("pynvml")
            nvml.nvmlInit()
            self._nvml = nvml
            self._handle = nvml.nvmlDeviceGetHandleByPciBusId(gpu)

    def __enter__(self) -> GpuMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of NVML; the monitor knows nothing from then on."""
        if self._nvml is not None:
            self._ask("nvmlShutdown")
        self._nvml = self._handle = None

    @property
    def name(self) -> str | None:
        """The GPU's product name."""
        return _text(self._ask_gpu("nvmlDeviceGetName"))

    @property
    def driver_version(self) -> str | None:
        """The driver's version, such as "580.65.06"."""
        return _text(self._ask("nvmlSystemGetDriverVersion"))

    def state(self) -> GpuState:
        """State of the GPU at this moment."""
        reasons = self._ask_gpu("nvmlDeviceGetCurrentClocksEventReasons")
        return GpuState(
            sm_clock_hz=_scaled(1e6, self._ask_gpu("nvmlDeviceGetClockInfo", _NVML_CLOCK_SM)),
            memory_clock_hz=_scaled(1e6, self._ask_gpu("nvmlDeviceGetClockInfo", _NVML_CLOCK_MEM)),
            power_w=_scaled(1e-3, self._ask_gpu("nvmlDeviceGetPowerUsage")),
            temperature_c=_scaled(1.0, self._ask_gpu("nvmlDeviceGetTemperature", _NVML_SENSOR_GPU)),
            throttle_reasons=tuple(_throttle_reasons(reasons or 0)),
        )

    def _ask_gpu(self, function: str, *arguments: object) -> Any:
        return None if self._handle is None else self._ask(function, self._handle, *arguments)

    def _ask(self, function: str, *arguments: object) -> Any:
        """Answer of NVML; None if it has none: each GPU lacks some."""
        with suppress(Exception):
            return getattr(self._nvml, function)(*arguments)
        return None


def _throttle_reasons(bits: int) -> Iterator[str]:
    for bit, name in _THROTTLE_REASONS.items():
        if bits & bit:
            yield name
    if unknown := bits & ~sum(_THROTTLE_REASONS) & ~_GPU_IDLE:
        yield f"unknown ({unknown:#x})"


def _scaled(unit: float, value: float | None) -> float | None:
    return None if value is None else value * unit


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value  # bytes before version 11.5


@cache
def _version(distribution: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(distribution)
    return None


def _operating_system() -> str:
    name = platform.system()
    with suppress(OSError, AttributeError):
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    return f"{name} ({platform.system()} {platform.release()}, {platform.machine()})"


def cpu() -> str:
    """The CPU's model, and how many cores the system sees."""
    model = _cpu_model() or platform.machine()
    return f"{model}, {os.cpu_count()} logical cores"


def _cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    with suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return " ".join(value.split())
    return None
