"""setuptools' build backend, which also asks for a C compiler where the machine has none."""

from collections.abc import Mapping
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks that stay as they are

from toolkit import native


def get_requires_for_build_wheel(settings: Mapping[str, Any] | None = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(settings), *native.requirements()]


get_requires_for_build_editable = get_requires_for_build_wheel
