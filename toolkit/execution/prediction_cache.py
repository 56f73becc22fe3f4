"""Predictions of launches, kept in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from analysis.comparison.interval import interval_of
from analysis.devices import Device
from analysis.errors import ToolkitError
from analysis.sm import Streams
from analysis.timing.predicted import Predicted, from_json
from analysis.timing.work import Work
from toolkit.store.cache import cached, digest_of_folders, keep

# Folders whose code affects predictions.
FOLDERS = (
    "analysis",
    "kernels",
    *(f"toolkit/{x}" for x in ("machine_code", "launch", "sass", "rungs", "execution")),
)


def cached_prediction(
    launch: Mapping[str, object], device: Device, made: Callable[[], Predicted]
) -> Predicted | str:
    """Prediction of a launch on a device with its interval, or the reason why there is none.

    `launch` identifies the launch and what is asked of it. Its values must differ as text if they
    differ. `made` predicts; it is called only if the prediction is not in the cache.
    """
    name = _name("prediction", launch, device)
    entry = cached(name)
    if entry is not None:
        return with_interval(from_json(entry), device)
    try:
        found = made()
    except (ToolkitError, ValueError, MemoryError) as error:
        return str(error) or "not enough memory"
    keep(name, json.dumps(asdict(found)).encode())
    return with_interval(found, device)


def with_interval(predicted: Predicted, device: Device) -> Predicted:
    """The prediction with its interval on a device."""
    return replace(predicted, interval_s=interval_of(predicted, device))


def digest_of(streams: Streams) -> str:
    """Digest that identifies streams."""
    digest = sha256()
    for name in ("steps", "lines", "first_step", "first_line", "first_warp"):
        digest.update(np.ascontiguousarray(getattr(streams, name)).data)
        digest.update(name.encode())
    return digest.hexdigest()


def key_of(work: Work) -> dict[str, object]:
    """Key that identifies a launch among all whose predictions may differ.

    Sums over blocks depend on the number of workers in their last digits, so nine digits are used.
    """
    values = {field.name: getattr(work, field.name) for field in fields(work)}
    rounded = {k: f"{v:.9g}" if isinstance(v, float) else v for k, v in values.items()}
    return rounded | {
        "instructions": sha256(repr(work.instructions).encode()).hexdigest(),
        "code": sha256(work.code.tobytes()).hexdigest(),
        "atomics": work.atomics and work.atomics.digest,
        "stores": work.stores and work.stores.digest,
        "sample": (type(work.sample).__name__, sorted(map(_digested, vars(work.sample).items()))),
    }


def _digested(field: tuple[str, Any]) -> tuple[str, str]:
    """Name and text of a field of a sample, with digests in place of streams."""
    name, value = field
    if isinstance(value, Streams):
        return name, digest_of(value)
    if isinstance(value, Mapping):
        return name, repr(sorted((length, digest_of(one)) for length, one in value.items()))
    return name, repr(value)


def _name(kind: str, launch: Mapping[str, object], device: Device) -> str:
    digest = sha256()
    for part in (MODEL, repr(sorted(launch.items())), repr(device)):
        digest.update(part.encode())
    return f"{kind}-{digest.hexdigest()}.json"


def model_digest(root: Path) -> str:
    """Digest of all files below `root` that a prediction may depend on.

    Sources of rungs are left out: a prediction depends on the machine code, which is in the key.
    """
    return digest_of_folders(root, FOLDERS)


# Digest of the loaded code, taken at import, before a file changes.
MODEL = model_digest(Path(__file__).parents[2])
