"""Errors of predicted times against measured ones, per device, each with its command.

`DEFAULT_DEVICE` is the device that commands use if none is named and no GPU is used: among the
devices with a recorded run, the one whose held-out launches are predicted best.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from analysis.comparison.held_out import HELD_OUT, HeldOut, Kernels
from analysis.devices import DEVICES, Device
from analysis.timing.resources import Resource

RECORDED = "recorded"  # the part whose launches are those of the recorded run of a device


@dataclass(frozen=True)
class Accuracy:
    """Errors of the predicted times of one set of launches on one device.

    `device` is a key of `DEVICES`, `launches` how many were timed, and `mean_error` the mean of
    |predicted / measured - 1|. `is_held_out` is False where constants or rules of the model were
    fitted on these launches. `part` names the part of benchmarks/prediction_errors.py that
    computes `mean_error` again, with its options.
    """

    device: str
    kernels: Kernels
    what: str
    launches: int
    mean_error: float
    is_held_out: bool
    part: str

    @property
    def command(self) -> str:
        return f"python -m benchmarks.prediction_errors --part {self.part}"


ACCURACIES = (
    Accuracy(
        "h200",
        "other kernels",
        "33 kernels outside the ladder",
        49,
        0.118,
        True,
        "final --device h200",
    ),
    Accuracy(
        "h100-sxm",
        "other kernels",
        "33 kernels outside the ladder",
        49,
        0.123,
        True,
        "final --device h100",
    ),
    Accuracy(
        "h200",
        "ladder",
        "rungs with other than their default parameters",
        26,
        0.051,
        True,
        "ladder",
    ),
    Accuracy(
        "h200",
        "ladder",
        "rungs of the recorded run, 15 µs and longer",
        120,
        0.040,
        False,
        RECORDED,
    ),
    Accuracy(
        "h200",
        "other kernels",
        "37 kernels outside the ladder",
        58,
        0.068,
        False,
        "kernels",
    ),
    Accuracy(
        "h100-sxm",
        "ladder",
        "rungs of the recorded run, 15 µs and longer",
        122,
        0.041,
        False,
        RECORDED,
    ),
    Accuracy("rtx-3090", "ladder", "rungs, times published by xGeMM", 18, 0.097, True, "published"),
    Accuracy("t4", "ladder", "rungs, times published in a text", 5, 0.085, True, "published"),
)


LEAST_LIKE = 5  # launches: the mean error of fewer says little


def held_out_like(device: Device, limiter: Resource, *, is_rung: bool) -> HeldOut | None:
    """Error of the held-out launches on a device with this limiter; None below `LEAST_LIKE`.

    Rungs of the ladder are compared with rungs, other kernels with other kernels.
    """
    kernels: Kernels = "ladder" if is_rung else "other kernels"
    found = (
        one
        for one in HELD_OUT
        if (one.device, one.kernels, one.limiter) == (device.key, kernels, limiter)
    )
    like = next(found, None)
    return like if like and like.launches >= LEAST_LIKE else None


def accuracies(device: Device) -> tuple[Accuracy, ...]:
    """Accuracies of a device, or else of devices of its compute capability; held-out ones first."""
    own = [one for one in ACCURACIES if one.device == device.key]
    alike = (
        one
        for one in ACCURACIES
        if DEVICES[one.device].compute_capability == device.compute_capability
    )
    return tuple(sorted(own or alike, key=lambda one: not one.is_held_out))


def _by_validation(device: Device) -> tuple[bool, float]:
    """Sort key, the best first: a recorded run, then the mean error of held-out launches."""
    own = [one for one in ACCURACIES if one.device == device.key]
    held_out = [one for one in own if one.is_held_out]
    launches = sum(one.launches for one in held_out)
    errors = sum(one.mean_error * one.launches for one in held_out)
    return all(one.part != RECORDED for one in own), errors / launches if launches else inf


DEFAULT_DEVICE = min(DEVICES.values(), key=_by_validation)


def device_of(architecture: str) -> Device | None:
    """Best validated device of an architecture such as "sm_90a"; None if no device has it."""
    plain = architecture.rstrip("af")
    devices = (device for device in DEVICES.values() if device.sm_arch == plain)
    return min(devices, key=_by_validation, default=None)
