"""Every case of the corpus compiles where it says, to a kernel that takes its arguments."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.sampling import sampled
from toolkit.launch.launch import buffers_of
from toolkit.launch.tensor_map import MAP_BYTES, TensorMap
from toolkit.machine_code.disassemble import disassemble
from toolkit.machine_code.elf import cubin_file
from validation.corpus.case import CORPUS, Near
from validation.corpus.cases import CASES, COUNTED, find
from validation.corpus.compiled import alone, compiled, of_file, sample
from validation.corpus.inventory import ARCHITECTURES, sources
from validation.corpus.sample import ALSO, USUAL, in_sample

FILES = sorted(path.name for path in CORPUS.glob("*.cu"))


def cases_of(file):
    return [case for case in (*CASES, *COUNTED) if case.file == file]


def test_names_are_unique():
    for cases in (CASES, COUNTED):
        assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_kernel_has_a_case_and_takes_its_arguments(arch):
    cases = [case for case in (*CASES, *COUNTED) if in_sample(case.file, arch)]
    chosen = {x.kernel: (x, compiled(x, arch)) for x in cases}
    check_all(chosen, sample(arch))


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", FILES)
def test_every_file_compiles_wherever_it_may(file):
    cases = {case.kernel: case for case in cases_of(file)}
    archs = [arch for arch in ARCHITECTURES if all(x.runs_on(arch) for x in cases.values())]
    assert archs
    with ThreadPoolExecutor() as pool:  # the compiler runs outside of Python's lock
        cubins = dict(zip(archs, pool.map(lambda arch: of_file(file, arch), archs), strict=True))
    for arch in (archs[0], archs[-1]):
        chosen = {kernel: (case, alone(case, arch)) for kernel, case in cases.items()}
        check_all(chosen, cubins[arch].image)


def check_all(chosen, image):
    """Assert that an image has these kernels, and that they take the arguments of their cases."""
    assert {cubin.symbol for _, cubin in chosen.values()} == set(cubin_file(image).kernels)
    for case, cubin in chosen.values():
        assert sizes(case) == parameter_sizes(cubin), f"{case.kernel} on {cubin.architecture}"


def parameter_sizes(cubin):
    found = cubin.parameters
    return [parameter.size for parameter in found]


def sizes(case):
    arguments = case.make(np.random.default_rng(0))
    return [_size(x) for x in arguments]


def _size(argument):
    if isinstance(argument, TensorMap):
        return MAP_BYTES
    return 8 if isinstance(argument, np.ndarray) else argument.dtype.itemsize


@pytest.mark.parametrize(
    "case", sampled([pytest.param(x, id=x.name) for x in CASES], key=lambda case: case.file)
)
def test_references_fit_the_arrays_and_notice_blank_ones(case):
    arguments = case.make(np.random.default_rng())
    arrays = list(buffers_of(arguments).values())
    right = [
        array if outcome is None else outcome if isinstance(outcome, np.ndarray) else outcome.value
        for array, outcome in zip(arrays, case.outcomes(arguments), strict=True)
    ]
    with np.errstate(all="ignore"):  # to infinities, where a reference in double has none
        case.check([x.astype(y.dtype) for x, y in zip(right, arrays, strict=True)], arguments)
    if any(x is not y for x, y in zip(right, arrays, strict=True)):
        with pytest.raises(AssertionError, match="elements are wrong, first element"):
            case.check(arrays, arguments)


def test_near_takes_no_nan_and_no_wrong_infinity():
    near = Near(value=np.array([1.0, np.inf, np.nan, 1e39]), error=0.5)
    got = np.array([1.4, np.inf, np.nan, np.inf], np.float32)
    assert not near.wrong(got).any()
    assert near.wrong(np.array([np.nan, -np.inf, 0, -np.inf], np.float32)).all()


@pytest.mark.parametrize("name", ["spills_300", "local_array_140", "local_bytes_140"])
def test_kernels_of_local_memory_use_it(name):
    case = find(name)
    for arch in ARCHITECTURES:
        if in_sample(case.file, arch):
            assert compiled(case, arch).resources.local_bytes > 0


def opcodes(file, arch):
    _, functions = json.loads(disassemble(file.image(arch)))
    return {line["opcode"] for function in functions for line in function["sass-instructions"]}


@pytest.mark.exhaustive
def test_the_sample_holds_every_opcode_with_its_modifiers():
    missing = {}
    held = set()
    for file in sources():
        for arch in file.architectures():
            found = opcodes(file, arch)
            if in_sample(file.name, arch):
                held |= found
            else:
                missing |= dict.fromkeys(found, (file.name, arch))
    assert {opcode: where for opcode, where in missing.items() if opcode not in held} == {}


def test_every_file_and_architecture_is_in_the_sample():
    files = {file.name for file in sources()}
    assert set(ALSO) <= files
    assert {arch for archs in ALSO.values() for arch in (*archs, USUAL)} == set(ARCHITECTURES)
