"""nvdisasm from its wheel and from elsewhere, on sound and on damaged machine code."""

import json
from importlib import metadata
from pathlib import Path

import pytest

from analysis.errors import ToolkitError, UnavailableError
from toolkit.machine_code import disassemble as module
from toolkit.machine_code.compile import compile_cubin
from toolkit.machine_code.disassemble import Disassembler, disassemble, disassembler

SOURCE = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1.0f; }\n'
FAKE = """#!/bin/sh
echo "$0 $1 $(cat "$2")"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMM_LADDER_CACHE", str(tmp_path / "cache"))
    disassembler.cache_clear()
    yield tmp_path / "cache"
    disassembler.cache_clear()


@pytest.fixture
def no_wheel(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CUDA_HOME", raising=False)


@pytest.fixture
def runs(monkeypatch):
    """The images that nvdisasm was run on; it prints what it got."""
    images = []

    def run(program, image):
        images.append(image)
        return program.version.encode() + image

    monkeypatch.setattr(module, "_run", run)
    return images


def fake(folder):
    """A program that prints how it was called and the file that it got."""
    folder.mkdir(parents=True)
    program = folder / "nvdisasm"
    program.write_text(FAKE)
    program.chmod(0o755)
    return str(program)


def test_machine_code_becomes_json():
    image = compile_cubin(SOURCE, name="k.cu", kernel="k", arch="sm_86").image
    _, (function,) = json.loads(disassemble(image))
    assert function["function-name"] == "k"
    assert "STG.E" in [i["opcode"] for i in function["sass-instructions"]]


def test_a_second_disassembly_is_answered_from_the_cache(runs):
    assert disassemble(b"image") == disassemble(b"image")
    assert disassemble(b"other") != disassemble(b"image")
    assert runs == [b"image", b"other"]


def test_another_version_has_other_entries(runs, monkeypatch):
    for version in ("13.5.37", "13.6.1", "13.5.37"):
        program = Disassembler(path="nvdisasm", version=version)
        monkeypatch.setattr(module, "disassembler", lambda program=program: program)
        assert disassemble(b"image") == f"{version}image"
    assert len(runs) == 2


def test_without_nvdisasm_the_remedy_is_told(no_wheel):
    with pytest.raises(UnavailableError) as caught:
        disassemble(b"image")
    assert str(caught.value) == ("nvdisasm is not installed: pip install nvidia-cuda-nvdisasm")


def test_one_on_the_path_is_taken(no_wheel, tmp_path, monkeypatch):
    program = fake(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert disassemble(b"image") == f"{program} -json image\n"


def test_one_of_a_cuda_toolkit_is_taken(no_wheel, tmp_path, monkeypatch):
    program = fake(tmp_path / "cuda" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert disassemble(b"image") == f"{program} -json image\n"


def test_another_program_in_its_place_has_other_entries(no_wheel, tmp_path, monkeypatch):
    path = Path(fake(tmp_path / "bin"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    first = disassembler()
    path.write_text(FAKE + "echo more\n")
    disassembler.cache_clear()
    assert disassembler().version != first.version


def test_a_wheel_without_the_program_counts_as_none(no_wheel, monkeypatch):
    class Emptied:
        version = "13.5.37"
        files = ()

    monkeypatch.setattr(metadata, "distribution", lambda name: Emptied())
    with pytest.raises(UnavailableError, match=r"^nvdisasm is not installed"):
        disassembler()


@pytest.mark.parametrize("image", [b"", b"no ELF file", b"\x7fELF" + bytes(100)])
def test_damaged_machine_code_is_told_in_one_line(image):
    with pytest.raises(ToolkitError) as caught:
        disassemble(image)
    message = str(caught.value)
    assert message.startswith("nvdisasm cannot read the machine code: ")
    assert "\n" not in message
    assert "kernel.cubin" not in message  # a temporary file means nothing to the user


def test_a_program_that_does_not_start_is_told(tmp_path, monkeypatch):
    absent = Disassembler(path=str(tmp_path / "absent"), version="1")
    monkeypatch.setattr(module, "disassembler", lambda: absent)
    with pytest.raises(UnavailableError, match=r"^nvdisasm cannot be run: .*reinstall it: pip"):
        disassemble(b"image")


@pytest.mark.parametrize(
    "printed",
    [
        """echo '[{"SchemaVersion":{},"Producer":"nvdisasm V12.6.77 Build"}, []]'""",
        "echo \"nvdisasm fatal   : Unknown option '-json'\" >&2; exit 1",
    ],
)
def test_an_older_program_is_refused_by_name(printed, no_wheel, tmp_path, monkeypatch):
    program = Path(fake(tmp_path / "bin"))
    program.write_text(f"#!/bin/sh\n{printed}\n")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    with pytest.raises(UnavailableError) as caught:
        disassemble(b"image")
    assert str(caught.value) == (
        f"{program} is older than nvdisasm 12.8: pip install nvidia-cuda-nvdisasm"
    )


def test_a_program_that_does_not_end_is_stopped(no_wheel, tmp_path, monkeypatch):
    Path(fake(tmp_path / "bin")).write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(module, "LIMIT_S", 0.1)
    with pytest.raises(ToolkitError, match=r"^nvdisasm did not end within 0\.1 s"):
        disassemble(b"image")


def test_a_disassembler_that_dies_silently_leaves_its_status(no_wheel, tmp_path, monkeypatch):
    program = Path(fake(tmp_path / "bin"))
    program.write_text("#!/bin/sh\nexit 7\n")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    with pytest.raises(ToolkitError, match=r"it ended with status 7 and said nothing$"):
        disassemble(b"image")
