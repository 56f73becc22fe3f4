"""Devices with constants that `python -m toolkit.microbenchmarks` measured on a GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from analysis.devices import Device
from analysis.errors import InputError
from analysis.hardware.own_constants import REMEDY, own_constants
from toolkit.store.user_files import one_line, read_file


def with_constants(device: Device, path: str | Path) -> Device:
    """The device with the constants of a file in place of those of its architecture.

    Raises InputError for a file that cannot be read, is no output of the microbenchmarks, or is of
    another architecture.
    """
    try:
        document = json.loads(read_file(path).decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8: {REMEDY}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON: {one_line(error)}: {REMEDY}") from error
    except RecursionError as error:
        raise InputError(f"{path}: no measured constants: {REMEDY}") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte, a number of 5,000 digits
        reason = getattr(error, "strerror", None) or one_line(error)
        raise InputError(f"{path}: it cannot be read: {reason}") from error
    return replace(device, constants=own_constants(document, Path(path).name, device))
