"""Recipes on disk, so that a later process neither chooses nor compiles."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from analysis.devices import DriverFacts
from toolkit.product.operands import Layout
from toolkit.product.recipe import Precision, Recipe
from toolkit.store.cache import cached, keep

PACKAGES = ("analysis", "kernels", "toolkit")
COMPILER = "nvidia-cuda-nvrtc"


def recipe_of(layout: Layout, facts: DriverFacts, precision: Precision = "fp32") -> Recipe:
    """The recipe of a product on a device, from the cache if it is there.

    Raises as `recipe_for`.
    """
    name = f"product-{sha256(repr((layout, facts, precision, _versions())).encode()).hexdigest()}"
    content = cached(name)
    if content is None:
        from analysis.devices import device_from_driver
        from toolkit.product.choice import recipe_for

        content = pickle.dumps(recipe_for(layout, device_from_driver(facts), precision))
        keep(name, content)
    recipe: Recipe = pickle.loads(content)
    return recipe


def _versions() -> tuple[object, ...]:
    """Everything else that decides a recipe: our own files, and the compiler."""
    return *_installed(), os.environ.get("NVRTC_APPEND_FLAGS", "")


@cache
def _installed() -> tuple[object, ...]:
    compiler = ""
    with suppress(metadata.PackageNotFoundError):
        compiler = metadata.version(COMPILER)
    root = Path(__file__).parents[2]
    files = sorted(stamp for package in PACKAGES for stamp in _stamps(root / package))
    return sys.version_info[:2], compiler, sha256(repr(files).encode()).hexdigest()


def _stamps(folder: Path) -> Iterator[tuple[object, ...]]:
    """Path, size and time of the last change of each file below a folder."""
    with os.scandir(folder) as items:
        for item in items:
            if item.is_dir():
                if item.name != "__pycache__":
                    yield from _stamps(Path(item.path))
            else:
                status = item.stat()
                yield item.path, status.st_size, status.st_mtime_ns
