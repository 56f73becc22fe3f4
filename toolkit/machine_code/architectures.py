"""The architecture that a kernel is compiled for, and the devices on which its code runs."""

from __future__ import annotations

import re

from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.devices import Device
from analysis.errors import InputError

DEFAULT_ARCHITECTURE = DEFAULT_DEVICE.sm_arch  # where neither an architecture nor a device is given
_ARCHITECTURE = re.compile(r"sm_(\d+)(\d)([af]?)", re.ASCII)


# What an architecture lacks and has with an "a" (PTX ISA: wgmma, setmaxnreg; mma with .kind,
# ldmatrix that widens), in a source or in ptxas' message.
_FEATURES = {
    "sm_90": re.compile(r"\bwgmma\b|\bsetmaxnreg\b"),
    **dict.fromkeys(("sm_120", "sm_121"), re.compile(r"\bkind::(mx)?f(8f6f4|4)|\bb8x16\b")),
}


def names_features(text: str) -> bool:
    """True if a source names what one architecture alone has."""
    return any(features.search(text) for features in _FEATURES.values())


def with_features(arch: str, text: str) -> str:
    """`arch`, or "sm_90a" for "sm_90" where a source, or an error, names what that alone has.

    >>> with_features("sm_90", 'asm volatile("wgmma.fence.sync.aligned;");')
    'sm_90a'
    >>> with_features("sm_120", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4")
    'sm_120a'
    """
    features = _FEATURES.get(arch)
    return f"{arch}a" if features and features.search(text) else arch


def architecture_of(arch: str | None, device: Device | None) -> str:
    """The architecture to compile for: `arch`, else that of `device`, else the default.

    Raises InputError where code for `arch` does not run on `device`.
    """
    if arch is None:
        return device.sm_arch if device else DEFAULT_ARCHITECTURE
    check_runs_on(arch, device)
    return arch


def check_runs_on(arch: str, device: Device | None) -> None:
    """Raise InputError where machine code for `arch` does not run on `device`.

    It runs on devices of the same major compute capability whose minor one is not lower; that of an
    architecture such as sm_90a runs on this one alone (CUDA C++ Programming Guide, "Binary
    Compatibility" and "Feature Set Compiler Targets"). Names of no architecture pass: the compiler
    refuses them.
    """
    match = _ARCHITECTURE.fullmatch(arch)
    if device is None or match is None:
        return
    (major, minor), of_code = device.compute_capability, int(match[2])
    if int(match[1]) != major or not (minor == of_code if match[3] == "a" else minor >= of_code):
        raise InputError(
            f"code for {arch} does not run on the {device.name} ({device.sm_arch}): compile it for "
            "the device, or name another one"
        )
