"""Lines on a terminal and in a file."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

from rich.console import Console

from toolkit.cli.terminal import note, say

# Sizes are guessed, more blocks and other pipes than in most launches have something to say.
LAYER_NORM = """#include <cuda_fp16.h>
__global__ void layer_norm(const __half *x, const float *gamma, __half *y, int rows, int cols) {
    __shared__ float sums[32];
    const int row = blockIdx.x;
    float s = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) s += __half2float(x[row * cols + c]);
    for (int d = 16; d; d >>= 1) s += __shfl_down_sync(0xffffffff, s, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
    __syncthreads();
    float mean = 0.0f;
    for (int w = 0; w < blockDim.x / 32; ++w) mean += sums[w];
    mean /= cols;
    for (int c = threadIdx.x; c < cols; c += blockDim.x)
        y[row * cols + c] = __float2half((__half2float(x[row * cols + c]) - mean) * gamma[c]);
}
"""
LONG = "13 of 16,384 blocks executed; proved: each block has the same counts as all others"


def said(*, is_terminal, **options):
    console = Console(file=StringIO(), width=40, force_terminal=is_terminal, color_system=None)
    say(f"counted   {LONG}", indent=10, console=console, **options)
    return console.file.getvalue()


def test_a_long_line_ends_between_words_on_a_terminal():
    assert said(is_terminal=True) == (
        "counted   13 of 16,384 blocks executed;\n"
        "          proved: each block has the\n"
        "          same counts as all others\n"
    )


def test_a_line_stays_whole_in_a_file():
    assert said(is_terminal=False) == f"counted   {LONG}\n"


def test_an_address_that_is_longer_than_the_terminal_is_not_broken():
    console = Console(file=StringIO(), width=10, force_terminal=True, color_system=None)
    say("read docs/timing.md#The", indent=0, console=console)
    assert console.file.getvalue() == "read\ndocs/timing.md#The\n"


def test_a_line_without_an_indent_stays_whole_so_that_a_command_in_it_can_be_copied():
    console = Console(file=StringIO(), width=20, force_terminal=True, color_system=None)
    say("repeat with: python -m toolkit profile", console=console)
    assert console.file.getvalue() == "repeat with: python -m toolkit profile\n"


def test_a_note_is_continued_behind_its_lead():
    console = Console(file=StringIO(), width=24, force_terminal=True, color_system=None)
    note("the time that printf takes is not modelled", console)
    assert console.file.getvalue() == (
        "note: the time that\n      printf takes is\n      not modelled\n"
    )


def test_the_lines_of_a_text_are_kept():
    console = Console(file=StringIO(), width=40, force_terminal=True, color_system=None)
    say("one\n\n  two", indent=0, console=console)
    assert console.file.getvalue() == "one\n\n  two\n"


def test_no_line_ends_between_a_number_and_its_unit():
    console = Console(file=StringIO(), width=24, force_terminal=True, color_system=None)
    say("busy      issue 42.4 %, L2 9.1 %", indent=10, console=console)
    assert console.file.getvalue() == "busy      issue 42.4 %,\n          L2 9.1 %\n"


def on_terminal(words, columns, rows):
    """Standard output of a command on a terminal of this size."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = os.environ | {"TERM": "xterm"}
    command = [sys.executable, "-m", "toolkit", *words.split()]
    process = subprocess.Popen(command, stdout=its, stderr=subprocess.PIPE, env=environment)
    os.close(its)
    printed = b""
    try:
        while part := os.read(ours, 1 << 16):
            printed += part
    except OSError:  # the command has ended
        pass
    os.close(ours)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return re.sub(r"\x1b\[[\d;]*m", "", printed.decode()).replace("\r\n", "\n")


def test_an_answer_with_much_to_say_fits_a_terminal():
    Path("norm.cu").write_text(LAYER_NORM)
    call = "simulate norm.cu -g 4096 -b 256 -a rows=4096 -a cols=2048 -d h200 --limit 0.2"
    lines = on_terminal(call, columns=80, rows=50).splitlines()
    assert any(line.startswith("note: sizes guessed") for line in lines)
    assert any(line.startswith("          ") for line in lines)  # of facts that are wrapped
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 45
    longer = on_terminal(f"{call} --top 9 --no-remedies", columns=80, rows=50).splitlines()
    number = re.compile(r" +\d+  \S")
    assert sum(map(bool, map(number.match, longer))) == 9
    assert 2 <= sum(map(bool, map(number.match, lines))) <= 6 + 1  # and a remedy
