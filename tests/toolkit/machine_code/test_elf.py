"""Cubins whose sizes, counts and places lie: no reader takes more time or memory for them."""

import struct
import tracemalloc
from functools import cache

import pytest

from analysis.errors import InputError
from tests.cubins import cubin_of
from tests.refusals import refusal
from toolkit import simulate
from toolkit.machine_code.elf import HEADER, SECTION, SYMBOL, cubin_file
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.line_table import line_table

SOURCE = """__device__ float v[4] = {4, 3, 2, 1};
extern "C" __global__ void k(float *x, float y) { x[threadIdx.x] = y / x[threadIdx.x] + v[1]; }
"""


@cache
def image():
    return cubin_of(SOURCE, "k").image


@pytest.fixture(autouse=True)
def bounded():
    """No test takes a hundred times the bytes of its cubin."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6


def with_word(at, form, value):
    """The cubin with a number at a place."""
    changed = bytearray(image())
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


def with_symbol(name, *, value=None, size=None):
    """The cubin with another value or size of the symbols whose names begin so."""
    file = cubin_file(image())
    start, _ = file.place(".symtab")
    changed = bytearray(image())
    for number, symbol in enumerate(file.symbols):
        if symbol.name.startswith(name):
            at = start + number * SYMBOL.size
            if value is not None:
                struct.pack_into("<Q", changed, at + 8, value)
            if size is not None:
                struct.pack_into("<Q", changed, at + 16, size)
    return bytes(changed)


def said_of(changed):
    return refusal(InputError, Kernel.from_image, changed)


@pytest.mark.parametrize("value", [2**40, 2**64 - 1])
def test_a_function_that_begins_beyond_the_code_is_no_endless_loop(value):
    assert any("$__internal_" in symbol.name for symbol in cubin_file(image()).symbols)
    Kernel.from_image(with_symbol("k", value=value))
    Kernel.from_image(with_symbol("$__internal_", value=value))


@pytest.mark.parametrize("size", [17, 2**33, 2**64 - 1])
def test_a_variable_larger_than_its_section_is_refused(size):
    said = said_of(with_symbol("v", size=size))
    assert said == "the machine code is not a cubin: v has more bytes than its section"


def test_variables_that_memory_has_no_room_for_are_refused(monkeypatch):
    kernel = cubin_of("__device__ float v[1 << 28]; __global__ void k() { v[0] = 1; }", "k")
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 2e9)
    said = refusal(InputError, simulate, kernel, grid=1, block=1, arguments=[])
    assert said.startswith("k: its variables take 3.2 GB on the host, 2.0 GB are free: ")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        (0x2F, 256, "k takes 256 registers, and 255 is the most"),
        (0x11, 2**20, "k takes 1,048,576 bytes of local memory, and 524,288 is the most"),
    ],
)
def test_a_kernel_that_takes_more_than_an_sm_has_is_refused(attribute, value, message):
    start, size = cubin_file(image()).place(".nv.info")
    info = image()[start : start + size]
    number = [x.name for x in cubin_file(image()).symbols].index("k")
    at = info.index(struct.pack("<BBHI", 4, attribute, 8, number))
    said = said_of(with_word(start + at + 8, "<I", value))
    assert said == f"the machine code is not a cubin: {message}"


def test_sections_that_share_all_bytes_of_a_file_are_refused():
    changed = bytearray(image())
    table, count = HEADER.unpack_from(changed)[6], HEADER.unpack_from(changed)[12]
    for number in range(1, count):
        header = SECTION.unpack_from(changed, table + number * SECTION.size)
        if header[1] == 1:
            struct.pack_into("<QQ", changed, table + number * SECTION.size + 24, 0, len(changed))
    assert said_of(bytes(changed)) == "the machine code is not a cubin: it is damaged"


def test_names_that_are_one_long_string_are_refused():
    """65,000 sections whose names begin at places of one string of 65,000 letters."""
    count, letters = 65_000, b"a" * 65_000 + b"\0"
    table = HEADER.size + len(letters)
    names = SECTION.pack(0, 3, 0, 0, HEADER.size, len(letters), 0, 0, 1, 0)
    others = b"".join(SECTION.pack(n, 0, *[0] * 8) for n in range(1, count))
    header = list(HEADER.unpack_from(image()))
    header[6], header[12], header[13] = table, count, 0
    assert said_of(HEADER.pack(*header) + letters + names + others).endswith("it is damaged")


@pytest.mark.parametrize("at", [0x28, 0x3C, 0x3E])  # where the table is, how long, its names
def test_a_table_of_sections_beyond_the_file_is_refused(at):
    for value in (0xFFFF, 0x7FFF):
        said = said_of(with_word(at, "<H", value))
        assert said.startswith("the machine code is not a cubin: ")


def test_a_bank_of_constants_has_a_number_of_two_digits():
    assert cubin_file(image()).names.count(".nv.constant4")
    start, size = cubin_file(image()).place(".shstrtab")
    strings = image()[start : start + size]
    at = start + strings.index(b".nv.constant0.k")
    changed = image()[:at] + b".nv.constant099" + image()[at + 15 :]
    assert "no kernel" in said_of(changed)


def test_a_number_of_a_line_table_has_64_bits():
    unit = struct.pack("<IHIBBbBB", 0, 2, 0, 1, 1, -3, 12, 10) + b"\0\1\1\1\1\0\0\0\1\0\0"
    unit += b"\2" + b"\x80" * 10**6
    data = struct.pack("<I", len(unit) - 4) + unit[4:]
    with pytest.raises((ValueError, IndexError)):
        line_table(data, {}, "k", size=16)


def test_units_of_a_line_table_read_no_names_of_others():
    """Each of 40,000 units has its names begin at its end."""
    unit = struct.pack("<IHIBBbBB", 11, 2, 0, 1, 1, -3, 12, 1)
    with pytest.raises((ValueError, IndexError)):
        line_table(unit * 40_000 + b"a\0" * 10**6, {}, "k", size=16)
