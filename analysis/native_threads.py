"""Threads that run native code, which never outlives the memory that it was given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, TypeVar

WAIT_S = 0.01

T = TypeVar("T")


class NativeThreads:
    """Context in which jobs run in threads; it is left when none of them runs any longer.

    Native code does not see Ctrl-C. After an error or Ctrl-C, jobs that wait are dropped, and
    `end` is called, again and again, until those that run have returned.
    """

    def __init__(self, threads: int, end: Callable[[], None]) -> None:
        self._pool, self._end = ThreadPoolExecutor(threads), end
        self._pending: set[Future[Any]] = set()

    def __enter__(self) -> NativeThreads:
        return self

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Let a thread run a job. The future gets its result or its error.

        The future is known before the job can run: Ctrl-C within the pool's `submit` leaves a
        thread at work of which the pool knows nothing.
        """
        future = Future[T]()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        self._pool.submit(_run_into, future, job)
        return future

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        interrupt = None
        while True:
            try:
                if error is not None or interrupt is not None:
                    self._end_all()
                self._pool.shutdown()
                break
            except KeyboardInterrupt as another:
                interrupt = another
        if interrupt is not None and not isinstance(error, KeyboardInterrupt):
            raise interrupt

    def _end_all(self) -> None:
        running = [future for future in list(self._pending) if not future.cancel()]
        while wait(running, timeout=WAIT_S).not_done:  # a job may be just starting
            self._end()


def _run_into(future: Future[T], job: Callable[[], T]) -> None:
    """Run a job, unless its future was cancelled, which gets the result or the error."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job())
    except BaseException as error:
        future.set_exception(error)
