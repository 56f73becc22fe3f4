"""Cubins that were patched: the chosen instructions change, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.errors import InputError, UnsupportedError
from analysis.problem import Gemm
from benchmarks.patches import OPERATIONS, all_without_reuse, nop, operation, without
from kernels import LADDER, find
from kernels.registry import Variant
from tests.sampling import chosen_of
from toolkit.compile import compile_cubin
from toolkit.cubin import Kernel
from toolkit.patching import WORD_BYTES, changed, rewritten, words
from toolkit.sass.machine import run_blocks
from toolkit.sass.machine_code import machine_code
from toolkit.sass.translate import bind, translate
from validation.corpus.sample import in_small_sample

ARCHITECTURES = ("sm_75", "sm_86", "sm_90", "sm_120")
OPCODES = {
    "barriers": "BAR",
    "global loads": "LDG",
    "global stores": "STG",
    "shared loads": "LDS",
    "shared stores": "STS",
    "asynchronous copies": "LDGSTS",
    "multiply-adds": "FFMA",
}
SCHEDULE = ("stall", "yields", "wait")


# Of rungs whose warps wait for copies in shared memory nothing can be left out.
PATCHABLE = [variant for variant in LADDER if variant.bulk_tiles is None]


# What the loops of the rungs with tiles are made of: asynchronous copies load and store in one.
LEFT_OUT = [
    (variant, name)
    for variant in PATCHABLE[3:]
    for name in OPERATIONS
    if name
    not in (
        ("global loads", "shared stores")
        if variant.tiling(variant.defaults).asynchronous
        else ("asynchronous copies",)
    )
]
FIRST = {name: variant for variant, name in reversed(LEFT_OUT)}  # its code is the shortest
OF_LOOPS = chosen_of(
    [pytest.param(variant, name, id=f"{variant.name}-{name}") for variant, name in LEFT_OUT],
    lambda case: case[0] is FIRST[case[1]],
)


def test_every_class_is_left_out_of_some_rung() -> None:
    assert {case.values[1] for case in OF_LOOPS} == set(OPERATIONS)


def compiled(variant: Variant, arch: str = "sm_90") -> Kernel:
    return compile_cubin(
        variant.source,
        name=variant.file,
        kernel=variant.entry,
        arch=arch,
        defines=variant.macros(variant.defaults),
    )


def patched(cubin: Kernel, name: str) -> Kernel:
    """The kernel without the instructions of a class."""
    patch = without(OPERATIONS[name])
    return replace(cubin, image=rewritten(cubin.image, {cubin.symbol: patch}))


def places(program: Kernel, opcode: str) -> list[int]:
    return [n for n, i in enumerate(program.instructions) if i.opcode == opcode]


@pytest.fixture(scope="module")
def vectorized() -> Kernel:
    variant = find("vectorized")
    assert isinstance(variant, Variant)
    return compiled(variant)


def test_a_patch_that_changes_nothing_leaves_the_cubin_as_it_is(vectorized: Kernel) -> None:
    assert rewritten(vectorized.image, {vectorized.symbol: lambda code: code}) == vectorized.image


def test_words_are_the_code_that_is_executed(vectorized: Kernel) -> None:
    code = vectorized.code
    halves = words(vectorized.image, vectorized.symbol)
    assert b"".join(word.to_bytes(WORD_BYTES, "little") for word in halves) == code


def test_only_the_bytes_of_the_patched_instruction_change(vectorized: Kernel) -> None:
    def only_the_third(code: list[int]) -> list[int]:
        return [*code[:2], nop(code[2]), *code[3:]]

    image = rewritten(vectorized.image, {vectorized.symbol: only_the_third})
    differing = [n for n, (a, b) in enumerate(zip(vectorized.image, image, strict=True)) if a != b]
    start = vectorized.image.index(vectorized.code)
    assert differing
    assert start + 2 * WORD_BYTES <= differing[0] <= differing[-1] < start + 3 * WORD_BYTES


@pytest.mark.parametrize(
    ("variant", "arch"),
    chosen_of(
        [
            pytest.param(variant, arch, id=f"{variant.name}-{arch}")
            for variant in PATCHABLE
            for arch in ARCHITECTURES
            if variant.runs_on(int(arch.removeprefix("sm_")))
        ],
        lambda case: in_small_sample(case[0].file, case[1]),
    ),
)
def test_operations_are_the_opcodes_that_nvdisasm_reads(variant: Variant, arch: str) -> None:
    cubin = compiled(variant, arch)
    code = words(cubin.image, cubin.symbol)
    program = cubin
    for name, opcode in OPCODES.items():
        found = [n for n, word in enumerate(code) if operation(word) in OPERATIONS[name]]
        assert found == places(program, opcode)


@pytest.mark.parametrize(("variant", "name"), OF_LOOPS)
def test_what_is_left_out_reads_as_nops_at_its_places(variant: Variant, name: str) -> None:
    cubin = compiled(variant)
    before, after = cubin, patched(cubin, name)
    chosen = places(before, OPCODES[name])
    assert chosen
    for number, (old, new) in enumerate(zip(before.instructions, after.instructions, strict=True)):
        assert new.text == ("NOP" if number in chosen else old.text)


def test_a_nop_keeps_the_schedule_and_holds_no_scoreboard(vectorized: Kernel) -> None:
    program = vectorized
    nops = without(frozenset().union(*OPERATIONS.values()))
    image = rewritten(vectorized.image, {vectorized.symbol: nops})
    before, after = (machine_code(p) for p in (program, vectorized.with_image(image)))
    chosen = [place for opcode in OPCODES.values() for place in places(program, opcode)]
    for kept in SCHEDULE:
        assert (before[kept] == after[kept]).all()
    for dropped in ("write_barrier", "read_barrier"):
        assert (after[dropped][chosen] == 7).all()  # none
    assert not after["reuse"][chosen].any()
    others = np.delete(np.arange(len(before)), chosen)
    assert (before[others] == after[others]).all()


def test_a_nop_is_the_one_that_the_compiler_emits(vectorized: Kernel) -> None:
    code = words(vectorized.image, vectorized.symbol)
    padding = places(vectorized, "NOP")
    assert padding
    assert [nop(code[place]) for place in padding] == [code[place] for place in padding]


def test_without_reuse_the_text_says_so_and_nothing_else_changes(vectorized: Kernel) -> None:
    symbol = vectorized.symbol
    image = rewritten(vectorized.image, {symbol: all_without_reuse})
    before, after = vectorized, vectorized.with_image(image)
    assert machine_code(before)["reuse"].any()
    assert not machine_code(after)["reuse"].any()
    texts = [i.text.replace(".reuse", "") for i in before.instructions]
    assert [i.text for i in after.instructions] == texts
    reusing = np.flatnonzero(machine_code(before)["reuse"])
    both = words(vectorized.image, symbol), words(image, symbol)
    assert set(reusing) <= set(changed(*both))


@pytest.mark.parametrize(("variant", "name"), OF_LOOPS)
def test_the_simulator_runs_what_is_left(variant: Variant, name: str) -> None:
    """Each step of K the product needs is gone, and still every loop ends."""
    problem = Gemm(m=128, n=128, k=32)
    geometry = variant.geometry(variant.defaults, problem)
    a, b = np.ones((128, 32), np.float32), np.ones((32, 128), np.float32)
    c = np.full((128, 128), np.nan, np.float32)
    arguments = [a, b, c, *map(np.int32, (128, 128, 32)), np.float32(1), np.float32(0)]
    bound, (_, _, result) = bind(translate(patched(compiled(variant), name)), geometry, arguments)
    run_blocks(bound, [range(geometry.blocks)])
    if name == "global stores":
        assert np.isnan(result).all()
    elif name != "barriers":  # without these it depends on who comes first
        assert (result != 32).any()


def test_a_kernel_that_is_not_there_is_an_error(vectorized: Kernel) -> None:
    with pytest.raises(InputError, match="no kernel 'gemm'"):
        words(vectorized.image, "gemm")


def test_a_patch_must_keep_the_number_of_instructions(vectorized: Kernel) -> None:
    with pytest.raises(InputError, match="fill up with NOPs"):
        rewritten(vectorized.image, {vectorized.symbol: lambda code: code[:-1]})


def test_an_instruction_with_a_relocation_stays() -> None:
    source = """
    __device__ float table[32];
    extern "C" __global__ void kernel(float* x) { x[0] = table[threadIdx.x]; }
    """
    cubin = compile_cubin(source, name="kernel.cu", kernel="kernel", arch="sm_90", options=("-G",))
    with pytest.raises(UnsupportedError, match="filled in when it is loaded"):
        rewritten(cubin.image, {cubin.symbol: lambda code: list(map(nop, code))})
