"""Commands of CUDA's tools: where they are, and their versions."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from toolkit.machine_code.programs import run_program

_PATIENCE_S = 10.0


def nvidia_remedy(install: str, platform: str = sys.platform) -> str:
    """Remedy if a package of NVIDIA is missing: `install`; on macOS NVIDIA has no such package."""
    if platform != "darwin":
        return install
    return "NVIDIA makes it for Linux and Windows only; `profile --executor theory` works here"


def command_path(name: str, *folders: Path) -> str | None:
    """The path of a command, on PATH or else in one of the folders."""
    places = (None, *map(str, folders))
    return next(filter(None, (shutil.which(name, path=place) for place in places)), None)


def cuda_folders() -> list[Path]:
    """Folders of the commands of CUDA toolkits that the environment names."""
    homes = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    return [Path(home, "bin") for home in homes if home]


def files_of_wheel(wheel: str, *names: str) -> list[Path]:
    """The files with one of these names that a pip wheel has installed; none without the wheel."""
    try:
        files = metadata.files(wheel) or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name in names]


def version_printed_by(command: str, pattern: str) -> str:
    """Text that the group of `pattern` matches in the output of `command --version`.

    Raises ValueError if nothing matches, and OSError or subprocess.SubprocessError if the command
    fails.
    """
    ran = run_program([command, "--version"], limit_s=_PATIENCE_S)
    ran.check_returncode()
    output = ran.stdout.decode(errors="replace")
    match = re.search(pattern, output)
    if match is None:
        raise ValueError(f"`{Path(command).name} --version` prints no version")
    return match[1]
