"""Child processes that are forked from one that has imported the modules already.

A fresh interpreter imports the toolkit and the made-up GPU for 0.6 s of processor time, in each
child again. The process that forks has one thread and no state but these imports.
"""

import atexit
import ctypes
import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path

PR_SET_PDEATHSIG = 1
MOST_BYTES = 1 << 20  # of a request: some code and an environment


class Forked:
    """The part of `subprocess.Popen` that the toolkit uses, for a process forked elsewhere."""

    def __init__(self, pid, status):
        self.pid, self.returncode, self._status = pid, None, status

    def wait(self, timeout=None):
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                said = self._status.recv(64)
            except (TimeoutError, BlockingIOError):  # the latter if nothing is to be waited
                raise subprocess.TimeoutExpired("a forked child", timeout) from None
            self._status.close()
            self.returncode = int(said) if said else -signal.SIGKILL
        return self.returncode

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


def forked(before, code, pipe, shows_output):
    """Start a child that runs `code` after `before`, which only the first child has to wait for.

    The child has the environment and the working directory of this process, and its argument is
    the number of the file `pipe` there.
    """
    # two messages, the child's number and its end: a stream might deliver both as one
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    silent = os.open(os.devnull, os.O_RDWR)
    shown = (1, 2) if shows_output else (silent, silent)
    request = pickle.dumps((code, os.getpid(), dict(os.environ), Path.cwd()))
    assert len(request) < MOST_BYTES
    try:
        server = _server(before)
        with theirs:
            socket.send_fds(server, [request], [pipe, theirs.fileno(), silent, *shown])
        pid = int(ours.recv(64))
    finally:
        os.close(silent)
    return Forked(pid, ours)


@cache
def _server(before):
    """The connection to the process that forks. It ends with this one."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
        server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), before],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(p or str(Path.cwd()) for p in sys.path)},
            start_new_session=True,
        )
    atexit.register(_end, ours, server)
    return ours


def _end(requests, server):
    requests.close()
    server.wait()


# In the process that forks.


def serve(requests, names):
    """Fork for each request a process that forks the child, waits for it, and tells its status."""
    while True:
        request, files, *_ = socket.recv_fds(requests, MOST_BYTES, 5)
        if not request:
            return
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        if not os.fork():
            requests.close()
            _watch(pickle.loads(request), files, names)
        for file in files:
            os.close(file)


def _watch(request, files, names):
    _end_with_parent()
    pipe, status, *standard = files
    status = socket.socket(fileno=status)
    if child := os.fork():
        for file in (pipe, *standard):
            os.close(file)
        status.send(str(child).encode())
        _, ended = os.waitpid(child, 0)
        with suppress(BrokenPipeError):  # nobody waits for it any more
            status.send(str(os.waitstatus_to_exitcode(ended)).encode())
        os._exit(0)
    try:
        status.close()
        _run(request, pipe, standard, names)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(1)


def _run(request, pipe, standard, names):
    code, parent, environment, folder = request
    _end_with_parent()
    os.setsid()
    for place, file in enumerate(standard):
        os.dup2(file, place)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.getppid = lambda: parent  # whom the toolkit takes for it
    sys.argv = ["child", str(pipe)]
    exec(compile(code, "child", "exec"), names)


def _end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    made = {"__name__": "child"}
    exec(compile(sys.argv[2], "before", "exec"), made)
    serve(socket.socket(fileno=int(sys.argv[1])), made)
