"""Programs, object files, fatbins and PTX: the right machine code of all that is in there."""

import struct
from functools import cache
from pathlib import Path

import lz4.block
import numpy as np
import pytest
import zstandard

from analysis.devices import DEVICES
from analysis.errors import CompileError, InputError, ToolkitError, UnavailableError
from tests.cubins import cubin_of
from tests.fatbins import CUBIN, LTO, LZ4, OF_ARCHITECTURE, PTX, ZSTANDARD, entry, fatbin, program
from toolkit import simulate
from toolkit.machine_code import device_linker
from toolkit.machine_code.containers import Form, form_of
from toolkit.machine_code.kernel_source import compile_kernel, kernel_of_machine_code

RECORDED = Path(__file__).parent / "recorded"
TWICE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
THRICE = 'extern "C" __global__ void thrice(float *x) { x[threadIdx.x] *= 3; }'
PTX_TEXT = b"""// a comment
.version 7.0
.target sm_75
.address_size 64
.visible .entry halve(.param .u64 x) {
    .reg .f32 %f<2>; .reg .b32 %r<2>; .reg .b64 %a<4>;
    ld.param.u64 %a0, [x];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %a1, %r0, 4;
    add.s64 %a2, %a0, %a1;
    ld.f32 %f0, [%a2];
    mul.f32 %f1, %f0, 0f3F000000;
    st.f32 [%a2], %f1;
    ret;
}
"""
RDC = ("-lineinfo", "-rdc=true")
CALLEE = """
extern "C" __device__ float grown(float x, int n)
{
    float sum[4] = {x, 1, 2, 3};
    for (int k = 0; k < n; k++)
        sum[k & 3] += sum[k + 1 & 3] / 3;
    return sum[n & 3];
}
__global__ void unused() {}
"""
CALLER = """
extern "C" __device__ float grown(float x, int n);
extern "C" __global__ void grow(float *x) { x[threadIdx.x] = grown(x[threadIdx.x], threadIdx.x); }
"""
WHOLE = CALLEE.replace("__global__ void unused() {}", "") + CALLER


@cache
def cubin(arch="sm_90", source=TWICE, name="twice", options=("-lineinfo",)):
    return cubin_of(source, name, arch, options=options).image


def capability(arch):
    return int(arch.removeprefix("sm_"))


def of(*architectures):
    return fatbin(*(entry(cubin(arch), capability(arch)) for arch in architectures))


def architecture(content, **how):
    return kernel_of_machine_code(content, **how).architecture


def refused(content, error=InputError, **how):
    with pytest.raises(error) as caught:
        kernel_of_machine_code(content, **how)
    return str(caught.value)


# --- what a file is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (cubin, Form.CUBIN),
        (lambda: of("sm_90"), Form.FATBIN),
        (lambda: program(of("sm_90")), Form.HOST),
        (lambda: b"!<arch>\n" + of("sm_90"), Form.HOST),
        (lambda: b"MZ\x90\0" + of("sm_90"), Form.HOST),
        (lambda: PTX_TEXT, Form.PTX),
        (lambda: b"/* .version 7.0 */ __global__ void k() {}", None),
        (lambda: b"", None),
        (lambda: b".version\n", None),
    ],
)
def test_content_tells_what_a_file_is(content, form):
    assert form_of(content()) == form


@pytest.mark.parametrize("name", ["app", "app.o", "twice.cubin", "libtwice.so"])
def test_the_name_of_a_file_does_not_matter(name, tmp_path):
    (tmp_path / name).write_bytes(program(of("sm_80")))
    x = np.ones(32, np.float32)
    execution = simulate(tmp_path / name, grid=1, block=32, arguments=[x])
    assert (execution.outputs[0] == 2).all()
    assert execution.device.key == "a100-40gb"


# --- which machine code -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "wanted", "chosen"),
    [
        (("sm_80", "sm_86", "sm_90"), "sm_86", "sm_86"),
        (("sm_80", "sm_86", "sm_90"), "sm_89", "sm_86"),  # same major, the newest minor
        (("sm_86", "sm_80", "sm_90"), "sm_80", "sm_80"),
        (("sm_80", "sm_90", "sm_100"), None, "sm_90"),  # that of the default device
        (("sm_80", "sm_86"), None, "sm_86"),  # none is for it: the newest
        (("sm_80", "sm_86"), DEVICES["a100-40gb"], "sm_80"),
    ],
)
def test_machine_code_is_chosen_by_architecture(there, wanted, chosen):
    assert architecture(program(of(*there)), target=wanted) == chosen


def test_the_choice_is_said():
    found = kernel_of_machine_code(of("sm_80", "sm_86"))
    there = "the machine code for sm_86 was chosen of sm_80 and sm_86"
    assert found.notes[0] == f"{there}: --device chooses another"
    assert kernel_of_machine_code(of("sm_80", "sm_86"), target="sm_86").notes[0] == there
    assert not any("chosen" in note for note in kernel_of_machine_code(of("sm_80")).notes)


@pytest.mark.parametrize("wanted", ["sm_75", "sm_90", "sm_120"])
def test_code_for_other_architectures_alone_is_refused(wanted):
    assert refused(of("sm_80", "sm_86"), target=wanted) == (
        f"it holds code for sm_80, sm_86, which does not run on {wanted}: compile it with "
        f"-arch={wanted}, or name sm_86 with --arch"
    )


def test_code_of_one_architecture_alone_runs_on_no_newer_one():
    special = fatbin(entry(cubin("sm_100"), 100, flags=OF_ARCHITECTURE))
    assert architecture(special, target="sm_100") == "sm_100"
    assert "holds code for sm_100a" in refused(special, target="sm_103")
    assert architecture(of("sm_100"), target="sm_103") == "sm_100"


def test_the_named_kernel_is_found_in_any_entry():
    other = fatbin(entry(cubin(source=THRICE, name="thrice"), 90))
    both = program(of("sm_80", "sm_90"), other)
    assert kernel_of_machine_code(both, "thrice").symbol == "thrice"
    assert kernel_of_machine_code(both, "twice").architecture == "sm_90"
    assert refused(both) == (
        "it holds 2 kernels: say which one, by name or by number (-k 1): 1 twice, 2 thrice"
    )
    assert refused(both, kernel="four") == "unknown kernel 'four': choose one of twice, thrice"


def test_a_library_with_many_kernels_names_a_few():
    source = "\n".join(f'extern "C" __global__ void k{n}() {{}}' for n in range(21))
    image = cubin("sm_90", source, "k0")
    assert refused(image) == "the cubin holds 21 kernels: name one with -k, such as k20, k19, k18"
    assert refused(image, kernel="k99") == (
        "unknown kernel 'k99': the cubin holds 21, such as k9, k19"
    )
    assert kernel_of_machine_code(image, "k20").symbol == "k20"


def test_a_cubin_has_its_architecture():
    assert architecture(cubin("sm_80"), target="sm_90") == "sm_80"


# --- compression --------------------------------------------------------------------------------

COMPRESS = {
    LZ4: lambda content: lz4.block.compress(content, store_size=False),
    ZSTANDARD: lambda content: zstandard.ZstdCompressor().compress(content),
}


@pytest.mark.parametrize("flag", COMPRESS)
def test_compressed_entries_are_read(flag):
    image = cubin("sm_80")
    packed = COMPRESS[flag](image)
    assert len(packed) < len(image) / 2
    stored = fatbin(entry(packed, 80, flags=flag, size=len(image)))
    assert kernel_of_machine_code(stored).image == image


@pytest.mark.parametrize("flag", COMPRESS)
def test_a_damaged_compressed_entry_is_one_line(flag):
    image = cubin("sm_80")
    packed = COMPRESS[flag](image)
    for damaged, size in (
        (packed[: len(packed) // 2], len(image)),
        (b"\xff" * len(packed), len(image)),
        (packed, len(image) - 1),
    ):
        said = refused(fatbin(entry(damaged, 80, flags=flag, size=size)))
        assert said.startswith("it is damaged: an entry ")
    said = refused(fatbin(entry(packed, 80, flags=flag, size=2**31)))
    assert said == "an entry of 2,147,483,648 bytes is too large: 1,073,741,824 are read"


def test_what_nvcc_compresses_is_read():
    """recorded/scale.cu has the commands that made it."""
    found = kernel_of_machine_code(RECORDED / "scale_zstd.fatbin", source_dirs=[RECORDED])
    assert (found.architecture, found.name) == ("sm_80", "scale<64>")
    assert found.source == (RECORDED / "scale.cu").read_text(encoding="utf-8")
    assert [one.name for one in found.declared] == ["x", "a", "n"]
    x = np.arange(64, dtype=np.float32)
    arguments = [x, np.float32(3), np.int32(32)]
    execution = simulate(found, grid=1, block=64, arguments=arguments)
    assert (execution.outputs[0] == np.where(x < 32, 3 * x, x)).all()
    assert {file for file, _ in execution.lines} == {"scale.cu"}


def test_without_their_libraries_compressed_entries_are_refused(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    assert refused(RECORDED / "scale_zstd.fatbin", UnavailableError) == (
        "zstandard is not installed, and this device code is compressed: pip install lz4 zstandard"
    )


# --- PTX and relocatable code -------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_80", pytest.param("sm_120", marks=pytest.mark.exhaustive)])
def test_ptx_is_compiled_for_the_target(arch):
    found = kernel_of_machine_code(PTX_TEXT, target=arch)
    assert found.architecture == arch
    assert found.compiler.startswith("nvJitLink 13.")
    assert found.notes[0].startswith(f"compiled for {arch} from PTX for compute_75 by nvJitLink")
    execution = simulate(found, grid=1, block=32, arguments=[np.ones(32, np.float32)])
    assert (execution.outputs[0] == 0.5).all()


def test_lines_of_ptx_lead_to_the_python_source_that_it_names(tmp_path):
    """As Triton and Numba write it."""
    script = tmp_path / "script.py"
    script.write_text("import triton\n\ndef halve(x):\n    x /= 2\n", encoding="utf-8")
    text = (
        PTX_TEXT.decode()
        .replace("ld.f32", ".loc 1 3 1\nld.f32")
        .replace("mul.f32", ".loc 1 4 1\nmul.f32")
    )
    found = kernel_of_machine_code(f'{text}.file 1 "{script}"\n', target="sm_90")
    assert {(line.file, line.line) for line in found.lines.values()} == {
        ("script.py", 3),
        ("script.py", 4),
    }
    assert found.source == script.read_text(encoding="utf-8")


def test_ptx_of_nvcc_in_a_fatbin_is_compiled():
    found = kernel_of_machine_code(RECORDED / "scale_lz4.fatbin", target="sm_86")
    assert (found.architecture, found.name) == ("sm_86", "scale<64>")


def test_ptx_as_a_text_is_a_source():
    assert compile_kernel(PTX_TEXT.decode(), target=None).architecture == "sm_90"


def test_machine_code_comes_before_ptx():
    both = fatbin(entry(PTX_TEXT.replace(b"halve", b"twice"), 75, PTX), entry(cubin("sm_80"), 80))
    assert architecture(both) == "sm_80"  # no device is named: what was compiled decides
    assert architecture(both, target="sm_86") == "sm_80"
    assert architecture(both, target="sm_90") == "sm_90"


def test_wrong_ptx_is_one_line():
    said = refused(PTX_TEXT.replace(b"mul.f32", b"mol.f32"), CompileError)
    assert said.startswith("its PTX: line 12: ")
    assert "\n" not in said
    assert refused(PTX_TEXT.replace(b".target sm_75", b"")) == "the PTX has no .target"
    new = PTX_TEXT.replace(b".version 7.0", b".version 99.0")
    assert refused(new, CompileError).endswith(": pip install -U nvidia-nvjitlink")
    newer = PTX_TEXT.replace(b".target sm_75", b".target sm_90a")
    assert "PTX for compute_90a, which does not run on sm_100" in refused(newer, target="sm_100")


def test_without_nvjitlink_ptx_is_refused(monkeypatch):
    monkeypatch.setattr(device_linker, "WHEEL", "a-wheel-of-nobody")
    assert refused(PTX_TEXT, UnavailableError) == (
        "this takes nvJitLink, which is not installed: pip install 'gemm-ladder[link]'"
    )


def rdc_entry(source, name, arch="sm_90"):
    image = cubin(arch, source, name, RDC)
    return fatbin(entry(image, capability(arch), options=b"--compile-only"))


@pytest.mark.parametrize(
    "arch",
    [
        pytest.param("sm_75", marks=pytest.mark.exhaustive),
        pytest.param("sm_80", marks=pytest.mark.exhaustive),
        "sm_90",
        pytest.param("sm_120", marks=pytest.mark.exhaustive),
    ],
)
def test_relocatable_code_is_linked_and_computes_what_one_source_does(arch):
    parts = program(rdc_entry(CALLER, "grow", arch), rdc_entry(CALLEE, "unused", arch))
    x = np.linspace(0.1, 9, 32, dtype=np.float32)
    launch = {"grid": 1, "block": 32, "arguments": [x]}
    linked = simulate(parts, "grow", **launch)
    whole = simulate(WHOLE, "grow", arch=arch, **launch)
    assert (linked.outputs[0] == whole.outputs[0]).all()
    assert linked.notes[0].startswith("linked by nvJitLink 13.")
    assert {file for file, _ in linked.lines} == {"grow.cu", "unused.cu"}


def test_the_part_that_is_missing_is_named():
    said = refused(program(rdc_entry(CALLER, "grow")), CompileError)
    assert said.startswith("it calls or reads grown, which it does not define (nvcc -rdc): give ")
    mangled = rdc_entry(CALLER.replace('extern "C" __device__', "__device__"), "grow")
    assert refused(program(mangled), CompileError) == said


def test_lto_alone_is_refused():
    said = refused(fatbin(entry(b"bitcode.", 90, LTO)))
    assert said.startswith("it holds LTO IR only (nvcc -dlto): ")


# --- bad input ----------------------------------------------------------------------------------


def old(arch):
    """Machine code whose header names another architecture."""
    image = bytearray(cubin("sm_80"))
    image[49] = capability(arch)  # second byte of the flags
    return bytes(image)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (program, "it holds no device code: give the file that nvcc compiled "),
        (fatbin, "it holds no device code: "),
        (lambda: of("sm_90")[:-100], "it is truncated: a fatbin goes on for 100 bytes: make it "),
        (lambda: of("sm_90")[:12], "it is truncated: a fatbin goes on for 4 bytes: make it again"),
        (lambda: program(sections=1), "it is truncated: its table of sections is beyond its end"),
        (lambda: program()[:40], "it is truncated: its table of sections is beyond its end"),
        (lambda: b"\x50\xed\x55\xba\2\0" + bytes(64), "the fatbin has an unknown version: "),
        (lambda: b"\x7fELF\1\1\1" + bytes(57), "it is a 32-bit program, "),
        (
            lambda: fatbin(struct.pack("<HHIQ", CUBIN, 0x101, 64, 2**40) + bytes(48)),
            "a fatbin is damaged: an entry of 1,099,511,627,776 bytes does not fit",
        ),
        (lambda: fatbin(entry(b"no cubin", 90)), "the machine code is not a cubin: it is not an "),
        (
            lambda: old("sm_70"),
            "its machine code is for sm_70, and the oldest that can be read is sm_75: compile it ",
        ),
        (
            lambda: fatbin(entry(old("sm_60"), 60)),
            "its machine code is for sm_60, and the oldest that can be read is sm_75: compile it ",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(content, said):
    found = refused(content(), ToolkitError)
    assert found.startswith(said)
    assert "\n" not in found


def test_an_unknown_kind_of_entry_is_passed_over():
    assert architecture(fatbin(entry(b"mercury.", 90, 16), entry(cubin(), 90))) == "sm_90"


def test_a_device_that_is_too_old_is_refused():
    assert refused(of("sm_80"), target="sm_70").startswith("machine code for sm_70 cannot be read")
    assert refused(of("sm_80"), target="hopper") == (
        "'hopper' is no architecture: give one such as sm_90"
    )


def test_the_log_of_nvjitlink_is_one_line():
    log = "\nerror   : Undefined reference to 'f' in 'source 1'\nERROR 9: finish\n\0"
    assert device_linker.first_error(log) == "Undefined reference to 'f' in 'source 1'"
    assert device_linker.first_error("ptxas fatal   : x\n") == "ptxas fatal   : x"
    assert not device_linker.first_error("\0")
