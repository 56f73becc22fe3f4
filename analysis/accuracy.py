"""How far predicted times were from measured ones, per device; every figure with its command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysis.devices import DEVICES, Device

Kernels = Literal["ladder", "other kernels"]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The errors of the predicted times of one set of launches on one device.

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
        return f"python benchmarks/prediction_errors.py --part {self.part}"


ACCURACIES = (
    Accuracy(
        device="h200",
        kernels="other kernels",
        what="33 kernels on trial",
        launches=48,
        mean_error=0.146,
        is_held_out=True,
        part="final --device h200",
    ),
    Accuracy(
        device="h100-sxm",
        kernels="other kernels",
        what="33 kernels on trial",
        launches=48,
        mean_error=0.160,
        is_held_out=True,
        part="final --device h100",
    ),
    Accuracy(
        device="h200",
        kernels="ladder",
        what="rungs with other than their default parameters",
        launches=26,
        mean_error=0.047,
        is_held_out=True,
        part="ladder",
    ),
    Accuracy(
        device="h200",
        kernels="ladder",
        what="rungs of the recorded run, 15 µs and longer",
        launches=120,
        mean_error=0.024,
        is_held_out=False,
        part="recorded",
    ),
    Accuracy(
        device="h200",
        kernels="other kernels",
        what="34 kernels that are not matrix products",
        launches=54,
        mean_error=0.106,
        is_held_out=False,
        part="kernels",
    ),
    Accuracy(
        device="h100-sxm",
        kernels="ladder",
        what="rungs of the recorded run, 15 µs and longer",
        launches=122,
        mean_error=0.028,
        is_held_out=False,
        part="recorded",
    ),
    Accuracy(
        device="rtx-3090",
        kernels="ladder",
        what="times that xGeMM published",
        launches=18,
        mean_error=0.092,
        is_held_out=True,
        part="published",
    ),
    Accuracy(
        device="t4",
        kernels="ladder",
        what="times that a text published",
        launches=5,
        mean_error=0.12,
        is_held_out=True,
        part="published",
    ),
)


def accuracies(device: Device) -> tuple[Accuracy, ...]:
    """What is known of a device, or else of devices of its compute capability; held-out first."""
    own = [one for one in ACCURACIES if one.device == device.key]
    alike = (
        one
        for one in ACCURACIES
        if DEVICES[one.device].compute_capability == device.compute_capability
    )
    return tuple(sorted(own or alike, key=lambda one: not one.is_held_out))
