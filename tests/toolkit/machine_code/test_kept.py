"""Results that depend on machine code alone are kept in the cache, and equal the originals."""

import numpy as np
import pytest

from tests.sampling import exhaustive
from toolkit.machine_code import kept
from toolkit.machine_code.disassemble import Disassembler
from toolkit.machine_code.kept import entry_of
from toolkit.machine_code.kernel_source import compile_kernel
from toolkit.sass import schedule_facts, timing_table, translate

SOURCE = """
extern "C" __global__ void sums(float *out, const float *in, int n) {
    __shared__ float part[256];
    part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float sum = 0.1f;
    for (int k = 0; k < n; ++k) sum += part[k] * in[k];
    out[threadIdx.x] = sum;
}
"""


pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture(params=[exhaustive("sm_75"), "sm_90", exhaustive("sm_120")])
def kernel(request):
    return compile_kernel(SOURCE, target=request.param)


def made(kernel):
    """The program, the timing table and the facts, as a new process finds them."""
    translate.translate.cache_clear()
    timing_table._timing_table.cache_clear()
    schedule_facts.schedule_facts.cache_clear()
    lowered = translate.translate(kernel).lowered
    parts = lowered.pool, lowered.slots, lowered.first_uniform
    table, facts = timing_table.machine_code(kernel), schedule_facts.schedule_facts(kernel)
    return [lowered.program.tobytes(), lowered.program.dtype, table.tobytes(), facts, parts]


def test_what_is_kept_equals_what_was_made(kernel, monkeypatch):
    def refuse(*arguments, **named):
        raise AssertionError("it is in the cache")

    first = made(kernel)
    monkeypatch.setattr(translate, "lower", refuse)
    monkeypatch.setattr(timing_table, "_operands", refuse)
    monkeypatch.setattr(schedule_facts, "_sums", refuse)
    assert made(kernel) == first
    assert first[3].sums
    assert first[3].has_barriers


def test_damaged_entries_are_made_anew(kernel, empty_cache):
    first = made(kernel)
    entries = list(empty_cache.glob("decoded-*"))
    assert len(entries) == 3
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-3] + b"abc")
    assert made(kernel) == first
    assert not any(entry.read_bytes().endswith(b"abc") for entry in entries)


def test_a_table_with_counts_leaves_the_one_without_as_it_is(kernel):
    before = timing_table.machine_code(kernel)
    counts = np.ones(len(before), [("requests", "u8"), ("conflict_free", "u8")])
    assert timing_table.machine_code(kernel, counts)["free_clocks"].all()
    assert np.array_equal(timing_table.machine_code(kernel), before)


def test_the_name_of_an_entry_depends_on_all_that_decides_it(kernel, monkeypatch):
    names = {entry_of(kernel, "one"), entry_of(kernel, "other")}
    edited = compile_kernel(SOURCE.replace("0.1f", "0.2f"), target=kernel.architecture)
    names.add(entry_of(edited, "one"))
    monkeypatch.setattr(kept, "_SOURCES", "edited")
    names.add(entry_of(kernel, "one"))
    monkeypatch.setattr(
        kept, "disassembler", lambda: Disassembler(path="nvdisasm", version="newer")
    )
    names.add(entry_of(kernel, "one"))
    assert len(names) == 5
