"""Cubins that were patched: the chosen instructions change, and nothing else."""

import numpy as np
import pytest

from analysis.errors import InputError, UnsupportedError
from kernels import find
from tests.cubins import cubin_of
from tests.refusals import refusal
from toolkit.machine_code.kernel import Kernel
from toolkit.machine_code.patching import (
    ALWAYS,
    BARRIERS,
    NO_BARRIERS,
    REUSE,
    STALL,
    WORD_BYTES,
    changed,
    field,
    rewritten,
)
from toolkit.sass.timing_table import machine_code

NOP = 0x918 | ALWAYS | NO_BARRIERS << BARRIERS | 1 << STALL


def nop(_):
    return NOP


def patched(kernel, patch):
    return Kernel.from_image(rewritten(kernel.image, {kernel.symbol: patch}), kernel.symbol)


def compiled(variant):
    return cubin_of(variant.source, variant.entry, defines=variant.macros(variant.defaults))


@pytest.fixture(scope="module")
def vectorized():
    variant = find("vectorized")
    return compiled(variant)


def test_a_patch_that_changes_nothing_leaves_the_cubin_as_it_is(vectorized):
    assert rewritten(vectorized.image, {vectorized.symbol: lambda code: code}) == vectorized.image


def test_words_are_the_code_that_is_executed(vectorized):
    given = []
    patched(vectorized, lambda words: given.extend(words) or words)
    assert b"".join(word.to_bytes(WORD_BYTES, "little") for word in given) == vectorized.code


def test_only_the_bytes_of_the_patched_instruction_change(vectorized):
    def only_the_third(code):
        return [*code[:2], nop(code[2]), *code[3:]]

    image = rewritten(vectorized.image, {vectorized.symbol: only_the_third})
    differing = [n for n, (a, b) in enumerate(zip(vectorized.image, image, strict=True)) if a != b]
    start = vectorized.image.index(vectorized.code)
    assert differing
    assert start + 2 * WORD_BYTES <= differing[0] <= differing[-1] < start + 3 * WORD_BYTES


def test_what_is_replaced_reads_as_nops_at_its_places(vectorized):
    chosen = [n for n, i in enumerate(vectorized.instructions) if i.opcode == "FFMA"]
    assert chosen

    def without(code):
        return [nop(word) if n in chosen else word for n, word in enumerate(code)]

    after = patched(vectorized, without)
    texts = [i.text for i in vectorized.instructions]
    assert [i.text for i in after.instructions] == [
        "NOP" if n in chosen else text for n, text in enumerate(texts)
    ]


def test_without_reuse_the_text_says_so_and_nothing_else_changes(vectorized):
    places = []

    def without_reuse(code):
        cleared = [word & ~(0b1111 << REUSE) for word in code]
        places.extend(changed(code, cleared))
        return cleared

    before, after = vectorized, patched(vectorized, without_reuse)
    assert machine_code(before)["reuse"].any()
    assert not machine_code(after)["reuse"].any()
    texts = [i.text.replace(".reuse", "") for i in before.instructions]
    assert [i.text for i in after.instructions] == texts
    reusing = np.flatnonzero(machine_code(before)["reuse"])
    assert set(reusing) <= set(places)


def test_a_kernel_that_is_not_there_is_an_error(vectorized):
    assert "no kernel 'gemm'" in refusal(
        InputError, rewritten, vectorized.image, {"gemm": lambda code: code}
    )


def test_a_patch_must_keep_the_number_of_instructions(vectorized):
    assert "fill up with NOPs" in refusal(
        InputError, rewritten, vectorized.image, {vectorized.symbol: lambda code: code[:-1]}
    )


def test_an_instruction_with_a_relocation_stays():
    source = """
    __device__ float table[32];
    extern "C" __global__ void kernel(float* x) { x[0] = table[threadIdx.x]; }
    """
    cubin = cubin_of(source, "kernel", options=("-G",))
    assert "filled in when it is loaded" in refusal(
        UnsupportedError, rewritten, cubin.image, {cubin.symbol: lambda code: list(map(nop, code))}
    )


def test_a_field_has_all_of_its_bits_and_no_others():
    assert field((1 << 128) - 1, STALL, 4) == 0b1111
    assert field(0b1101 << STALL, STALL, 4) == 0b1101
    assert field(0b1101 << STALL, STALL + 1, 2) == 0b10
