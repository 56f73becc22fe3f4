"""Kernels that are timed together, each in a process of its own with its own memory on the GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from analysis.errors import ToolkitError
from kernels.ladder import CUBLAS
from toolkit.gpu.context import Gpu
from toolkit.gpu.launch import InAChild, Task

SAFETY = 1.1  # of the memory that is thought to be needed: contexts differ a little


class Competitors:
    """Kernels that are timed round-robin, each with its own memory on the GPU; a context manager.

    Those in `waiting` are not started. Those in `preparing` are being prepared, in this order. All
    others have been checked. At most `most_preparing` prepare themselves at a time.
    """

    def __init__(self, gpu: Gpu, tasks: Mapping[str, Task], most_preparing: int) -> None:
        self.children: dict[str, InAChild] = {}
        self.waiting, self.preparing = deque(tasks), deque[str]()
        self._gpu, self._tasks, self._most_preparing = gpu, tasks, most_preparing
        self._alone: set[str] = set()  # those that had no room beside others
        self._held: dict[str, ExitStack] = {}
        self._free_bytes = gpu.free_bytes  # before the first one came
        self._overhead_bytes: int | None = None  # what one takes beside its buffers

    def __enter__(self) -> Competitors:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end(list(self._held))

    @property
    def are_left(self) -> bool:
        """True if some are not checked."""
        return bool(self.waiting or self.preparing)

    @property
    def lack_room(self) -> bool:
        """True if the next one can be started only after others have ended."""
        if self.preparing:
            return False
        return self.waiting[0] in self._alone or not self._has_room(self.waiting[0])

    def _has_room(self, label: str) -> bool:
        """True if the GPU should have room for one more, besides those that are being prepared."""
        if not self._held:
            return True
        if self._overhead_bytes is None:  # the first one tells
            return False
        tasks = [self._tasks[one] for one in (label, *self.preparing)]
        needed = sum(self._overhead_bytes + one.buffer_bytes for one in tasks)
        return self._gpu.free_bytes >= SAFETY * needed

    def make_room(self) -> None:
        """End those that were timed: all but cuBLAS, and cuBLAS too if the next needs its room."""
        self._end([label for label in self._held if label != CUBLAS.name])
        if self.waiting[0] in self._alone or not self._has_room(self.waiting[0]):
            self._end(list(self._held))

    def start_waiting(self) -> Iterator[tuple[str, ToolkitError]]:
        """Start those that wait, as far as there is room. Yield those that fail at once."""
        while (
            self.waiting
            and len(self.preparing) < self._most_preparing
            and self._has_room(self.waiting[0])
            and not (self.waiting[0] in self._alone and self.preparing)
        ):
            label = self.waiting.popleft()
            held = ExitStack()
            try:
                self.children[label] = held.enter_context(InAChild(self._tasks[label]))
            except ToolkitError as error:
                yield label, error
                continue
            self._held[label] = held
            self.preparing.append(label)

    def is_tried_again(self, label: str) -> bool:
        """End a competitor that had no memory, to be started alone. False if it was alone."""
        if len(self._held) == 1 or label in self._alone:
            return False
        self.checked(label, stays=False)
        self._alone.add(label)
        self.waiting.append(label)
        return True

    def checked(self, label: str, *, stays: bool) -> None:
        """Keep a prepared competitor to be timed, or end it."""
        self.preparing.remove(label)
        if not stays:
            self._end([label])
        elif self._overhead_bytes is None:
            taken = self._free_bytes - self._gpu.free_bytes
            self._overhead_bytes = max(0, taken - self._tasks[label].buffer_bytes)

    def _end(self, labels: Sequence[str]) -> None:
        with ExitStack() as leaving:  # all leave, also where Ctrl-C comes meanwhile
            for label in labels:
                leaving.push(self._held.pop(label))
            for label in labels:  # at once: the end of a process takes a while
                self.children.pop(label).dismiss()
