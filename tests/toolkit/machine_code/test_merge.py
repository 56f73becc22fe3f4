"""Many cubins in one run of nvdisasm: each is printed as if it were alone."""

import json

import pytest

from analysis.devices import find_device
from analysis.errors import InputError, UnavailableError
from kernels.selection import whole_ladder
from kernels.variant import Variant
from tests.cubins import cubin_of
from tests.refusals import refusal
from tests.sampling import exhaustive
from toolkit.machine_code import disassemble as module
from toolkit.machine_code.disassemble import disassemble, disassemble_together, disassembler
from toolkit.machine_code.merge import disassemblies, mergeable, merged
from toolkit.rungs.launch import compile_for
from validation.corpus.inventory import ARCHITECTURES, sources

STORE = 'extern "C" __global__ void k(int* x) {{ x[threadIdx.x] += {value}; }}\n'
# A table of jumps in bank 2, functions, variables in global memory, a function of the system.
ALL_KINDS = """
__device__ int counter;
__device__ __noinline__ int twice(int x) { return x > 3 ? 2 * x : counter; }
extern "C" __global__ void k(int* x, int which) {
    switch (which) {
        case 0: x[0] = __popc(x[5]); break;
        case 1: x[1] = twice(x[2]) / x[3]; break;
        case 2: atomicAdd(&counter, 3); break;
        case 3: x[3] = 7 % x[2]; break;
        case 4: x[4] = __ffs(x[1]) + 9; break;
        case 5: x[5] = x[4] * x[3]; break;
        default: printf("%d", x[0]);
    }
}
"""


def compiled(source, arch="sm_90"):
    return cubin_of(source, "k", arch).image


def functions(printed):
    """The text of the functions: what stands behind the header."""
    start = printed.index("[") + 1
    _, end = json.JSONDecoder().raw_decode(printed, start)
    return printed[printed.index("[", end) :].strip()


def check_alike(images):
    for group in mergeable(images):
        printed = module._run(disassembler(), merged(group)).decode()
        for image, one in zip(group, disassemblies(printed, len(group)), strict=True):
            alone = module._run(disassembler(), image).decode()  # the cache may have a merged one
            assert functions(one) == functions(alone)


@pytest.mark.parametrize("arch", ["sm_90", *map(exhaustive, ("sm_75", "sm_86", "sm_120"))])
def test_kernels_of_one_name_with_jumps_calls_and_variables_are_printed_as_alone(arch):
    sources = (ALL_KINDS, ALL_KINDS.replace("9", "8"), STORE.format(value=4369))
    check_alike([compiled(source, arch) for source in sources])


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", ["h200", "rtx-3090"])
def test_the_ladder_is_printed_as_alone(device):
    chosen = []
    for selection in whole_ladder():
        if isinstance(selection.variant, Variant):
            try:
                selection.variant.check_device(selection.parameters, find_device(device))
            except UnavailableError:
                continue
            chosen.append(selection)
    assert len(chosen) > 10
    check_alike([compile_for(find_device(device), one).image for one in chosen])


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_corpus_is_printed_as_alone(arch):
    check_alike([one.image(arch) for one in sources() if arch in one.architectures()])


@pytest.fixture
def runs(monkeypatch, empty_cache):
    """The images that nvdisasm is run on."""
    images = []
    real = module._run
    monkeypatch.setattr(
        module, "_run", lambda program, image: (images.append(image), real(program, image))[1]
    )
    return images


def test_one_run_serves_all_kernels_of_an_architecture(runs):
    images = [compiled(STORE.format(value=value)) for value in (4369, 8738, 13107)]
    disassemble_together(images)
    assert len(runs) == 1
    for image, addend in zip(images, ("0x1111", "0x2222", "0x3333"), strict=True):
        assert addend in disassemble(image)
    disassemble_together(images)
    assert len(runs) == 1


@pytest.mark.exhaustive  # the kernels compiled ahead do
def test_architectures_take_a_run_each(runs):
    one, other = STORE.format(value=4369), STORE.format(value=8738)
    disassemble_together(compiled(x, arch) for x in (one, other) for arch in ("sm_86", "sm_90"))
    assert len(runs) == 2


@pytest.mark.exhaustive
def test_damaged_images_are_left_to_a_run_of_their_own(runs):
    sound = [compiled(STORE.format(value=value)) for value in (4369, 8738)]
    disassemble_together([sound[0][:3000], *sound, b"no ELF file", b"\x7fELF"])
    assert len(runs) <= 1
    assert all('"k"' in disassemble(image) for image in sound)


def test_what_is_no_disassembly_of_merged_images_is_refused():
    assert "is of no image" in refusal(ValueError, disassemblies, '[{},[{"function-name":"k"}]]', 2)


def test_two_symbols_of_one_name_are_refused():
    image = compiled(ALL_KINDS)
    assert "two symbols" in refusal(
        InputError, merged, [image.replace(b"\0counter\0", b"\0vprintf\0")]
    )
