"""Devices with what a user gives to predict with: measured constants, and an SM clock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from analysis.devices import Device, with_clock
from analysis.errors import InputError
from analysis.hardware.own_constants import REMEDY, own_constants
from toolkit.store.user_files import one_line, read_file


def predicting_with(
    device: Device, constants: str | Path | None, clock_mhz: float | None
) -> Device:
    """The device with the constants and the SM clock that are given. Raises as these do."""
    device = device if constants is None else with_constants(device, constants)
    return device if clock_mhz is None else with_clock(device, clock_mhz)


def with_constants(device: Device, path: str | Path) -> Device:
    """The device with the constants of a file in place of those of its architecture.

    `python -m toolkit.microbenchmarks` writes such files. Raises InputError for a file that cannot
    be read, is no output of the microbenchmarks, or is of another architecture.
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
