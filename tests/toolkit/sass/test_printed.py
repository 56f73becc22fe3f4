"""printf of kernels against that of the C library, and what is kept of it."""

import ctypes
import struct
from itertools import product
from math import inf

import numpy as np
import pytest

from toolkit import check, simulate
from toolkit.sass.printed import formatted

LIBC = ctypes.CDLL(None)


def of_c(form, value):
    """The text of C's printf for one argument."""
    room = ctypes.create_string_buffer(512)
    given = ctypes.c_double(value) if isinstance(value, float) else value
    LIBC.snprintf(room, 512, form.encode(), given)
    return room.value.decode()


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


@pytest.mark.parametrize("letter", "fFeEgGaA")
def test_floats_are_printed_as_c_prints_them(letter):
    forms = ["%", "%8.3", "%-12", "%+", "% ", "%012", "%024", "%#.0", "%.10"]
    forms += ["%.0", "%#.3", "%-+9.1", "%030.20"]
    values = [
        0.0,
        -1.5,
        3.14159265,
        1e300,
        2.5e-7,
        1.999,
        1.03125,
        1.09375,
        5e-324,
        inf,
        -inf,
        -0.0,
    ]
    for form, value in product(forms, values):
        text = f"<{form}{letter}>"
        assert formatted(text.encode(), [bits(value)], b"") == of_c(text, value)


def test_a_nan_has_its_sign():
    assert (
        formatted(b"%f|%5.1f|%E", [0x7FF8 << 48, 0xFFF8 << 48, 0x7FF8 << 48], b"")
        == "nan| -nan|NAN"
    )


@pytest.mark.parametrize("letter", "diuxXo")
def test_integers_are_printed_as_c_prints_them(letter):
    forms = ["%", "%8", "%-8", "%08", "%+", "% ", "%.3", "%#", "%8.3", "%08.3"]
    for form, value in product(forms, [0, 7, 255, 2**31 - 1, 2**32 - 3]):
        text = f"<{form}{letter}>"
        signed = value - 2**32 if value >= 2**31 else value
        assert formatted(text.encode(), [value], b"") == of_c(text, ctypes.c_int(signed))


@pytest.mark.parametrize("letter", "diuxXo")
@pytest.mark.parametrize("length", ["hh", "h", "l", "ll", "z", "j", "t"])
def test_lengths_are_those_of_c(length, letter):
    for form, value in product(
        ["%", "%6", "%-9.4"], [0, 1, 0x7F, 0x80, 0x1FF, 2**40 - 1, 2**64 - 2]
    ):
        text = f"<{form}{length}{letter}>"
        assert formatted(text.encode(), [value], b"") == of_c(text, ctypes.c_ulonglong(value))


@pytest.mark.parametrize(("width", "precision"), [(12, 3), (-12, 3), (3, 0), (0, -1), (-9, -2)])
@pytest.mark.parametrize("letter", "fega")
def test_width_and_precision_may_be_arguments(letter, width, precision):
    text, value = f"<%*.*{letter}>", 3.14159265
    given = [width % 2**32, precision % 2**32, bits(value)]
    room = ctypes.create_string_buffer(512)
    LIBC.snprintf(room, 512, text.encode(), width, precision, ctypes.c_double(value))
    assert formatted(text.encode(), given, b"") == room.value.decode()


def test_pointers_are_those_of_c():
    for form, value in product(["%p", "%20p", "%-20p|"], [0, 0x10, 2**63 + 5]):
        assert formatted(form.encode(), [value], b"") == of_c(form, ctypes.c_void_p(value))


def test_widths_strings_characters_and_pointers():
    text = b"%*d|%-6s|%.2s|%c|%p|%%|%lld|%hhd|%s"
    minus = 2**32 - 4
    arguments = [minus, 5, 1, 1, ord("x"), 0x10, 2**63, 0x1FF, 0]
    assert formatted(text, arguments, b"ab\0cdef\0") == (
        "5   |ab    |cd|x|0x10|%|-9223372036854775808|-1|(null)"
    )


PRINTS = r"""
extern "C" __global__ void tell(const float *x, char *name) {
    printf("%d of block %d: %5.2f %lld %s %s\n", threadIdx.x, blockIdx.x, x[threadIdx.x],
           1ll << (33 + threadIdx.x), "ok", name);
    name[0] = 'z';
}"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_a_kernel_prints_block_after_block(arch):
    x, name = np.array([1.5, -2], np.float32), np.frombuffer(b"ab\0", np.int8)
    launch = {"grid": 3, "block": 2, "arguments": [x, name]}
    # one worker: blocks race for `name`, so that only their order decides what the first prints
    execution = simulate(PRINTS, arch=arch, predict=False, workers=1, **launch)
    expected = [
        f"{thread} of block {block}: {x[thread]:5.2f} {1 << 33 + thread} ok {'az'[block > 0]}b"
        for block in range(3)
        for thread in range(2)
    ]
    assert execution.printed.splitlines() == expected
    assert execution.notes == ("the time that printf takes is not modelled",)


def test_few_blocks_are_said_to_be_all_that_printed():
    source = (
        'extern "C" __global__ void tell(int *x) { x[blockIdx.x] = printf("%d\\n", blockIdx.x); }'
    )
    x = np.zeros(1000, np.int32)
    execution = simulate(
        source, grid=1000, block=1, arguments=[x], arch="sm_90", predict=False, blocks=4
    )
    assert len(execution.printed.splitlines()) == 4
    assert "only the 4 executed blocks of 1,000 printed: --blocks all executes every block" in (
        execution.notes
    )


def test_a_megabyte_is_kept_and_the_rest_is_counted():
    source = r"""extern "C" __global__ void tell(int *x) {
        for (int i = 0; i < 2000; i++) printf("%d\n", i);
    }"""
    execution = simulate(
        source, grid=1, block=32, arguments=[np.zeros(1, np.int32)], arch="sm_90", predict=False
    )
    kept = len(execution.printed.splitlines())
    # of each call 24 bytes, the format's 4, and 8 of its argument
    assert kept == -(-(2**20 + 1) // 36)
    assert any(f"and {64_000 - kept:,} of the calls were not kept" in x for x in execution.notes)


def test_a_string_beyond_its_buffer_is_a_fault_of_the_kernel():
    source = 'extern "C" __global__ void tell(char *x) { printf("%s", x); }'
    found = check(source, grid=1, block=1, arguments=[np.ones(4, np.int8)], arch="sm_90")
    assert [one.kind for one in found.findings] == ["out of bounds"]
    assert "right after the end of argument 0 `x`, int8[4]" in found.findings[0].message


def test_check_gives_what_was_printed():
    x = np.zeros(2, np.float32)
    found = check(PRINTS, grid=1, block=1, arguments=[x, np.zeros(1, np.int8)], arch="sm_90")
    assert found.printed == "0 of block 0:  0.00 8589934592 ok \n"


@pytest.mark.parametrize("clock", ["clock()", "clock64()", "globaltimer()"])
def test_a_kernel_that_reads_a_clock_says_that_it_is_no_time(clock):
    source = (
        "__device__ inline long long globaltimer() {\n"
        '    long long t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t;\n}\n'
        f"__global__ void wait(long long *x) {{ long long t = {clock}; x[0] = t; }}"
    )
    execution = simulate(source, grid=1, block=1, arguments=[np.zeros(1, np.int64)], predict=False)
    (note,) = execution.notes
    assert note.startswith("the clock that the kernel reads counts executed instructions: ")
