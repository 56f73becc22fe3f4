"""Cache of results that depend on a kernel's machine code alone, such as its program in the core.

Entries are pickled. This adds no risk: a person who can write to the user's cache can also write
Python's own bytecode.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np

from toolkit.machine_code.disassemble import disassembler
from toolkit.machine_code.kernel import Kernel
from toolkit.store.cache import cached, digest_of_folders, keep

Value = TypeVar("Value")

# Folders whose files decide what the functions return; libraries in C are among them.
FOLDERS = ("analysis/sm", "toolkit/machine_code", "toolkit/sass")
_SOURCES = digest_of_folders(Path(__file__).parents[2], FOLDERS)


def kept(make: Callable[[Kernel], Value]) -> Callable[[Kernel], Value]:
    """The function `make`, whose results are kept in the cache. UnavailableError without nvdisasm.

    It is in one of FOLDERS, as is all that it calls. What it raises is not kept.
    """

    @wraps(make)
    def found(kernel: Kernel) -> Value:
        name = entry_of(kernel, make.__name__)
        content = cached(name)
        if content is None:
            content = pickle.dumps(make(kernel))
            keep(name, content)
        value: Value = pickle.loads(content)
        return value

    return found


def entry_of(kernel: Kernel, function: str) -> str:
    """Name of the entry with the result of a function for a kernel."""
    versions = f"{disassembler().version} {np.__version__} {_SOURCES}"
    decides = f"{versions} {function} {kernel.symbol}\n".encode()
    return f"decoded-{sha256(decides + kernel.image).hexdigest()}"
