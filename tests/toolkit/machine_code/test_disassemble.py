"""nvdisasm from its wheel and from elsewhere, on sound and on damaged machine code."""

import json
from importlib import metadata

import pytest

from analysis.errors import ToolkitError, UnavailableError
from tests.cubins import cubin_of
from tests.refusals import refusal
from toolkit.machine_code import disassemble as module
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
def program(no_wheel, tmp_path, monkeypatch):
    """An nvdisasm on the PATH that prints how it was called and the file that it got."""
    path = tmp_path / "bin" / "nvdisasm"
    path.parent.mkdir()
    path.write_text(FAKE)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    return path


@pytest.fixture
def runs(monkeypatch):
    """The images that nvdisasm was run on; it prints what it got."""
    images = []

    def run(program, image):
        images.append(image)
        return program.version.encode() + image

    monkeypatch.setattr(module, "_run", run)
    return images


def test_machine_code_becomes_json():
    image = cubin_of(SOURCE, "k", "sm_86").image
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
    assert refusal(UnavailableError, disassemble, b"image") == (
        "nvdisasm is not installed: pip install nvidia-cuda-nvdisasm"
    )


@pytest.mark.parametrize("variable", ["PATH", "CUDA_HOME"])
def test_one_on_the_path_or_of_a_cuda_toolkit_is_taken(variable, program, tmp_path, monkeypatch):
    if variable == "CUDA_HOME":
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert disassemble(b"image") == f"{program} -json image\n"


def test_another_program_in_its_place_has_other_entries(program):
    first = disassembler()
    program.write_text(FAKE + "echo more\n")
    disassembler.cache_clear()
    assert disassembler().version != first.version


def test_a_wheel_without_the_program_counts_as_none(no_wheel, monkeypatch):
    class Emptied:
        version = "13.5.37"
        files = ()

    monkeypatch.setattr(metadata, "distribution", lambda name: Emptied())
    assert refusal(UnavailableError, disassembler).startswith("nvdisasm is not installed")


@pytest.mark.parametrize("image", [b"", b"no ELF file", b"\x7fELF" + bytes(100)])
def test_damaged_machine_code_is_told_in_one_line(image):
    message = refusal(ToolkitError, disassemble, image)
    assert message.startswith("nvdisasm cannot read the machine code: ")
    assert "\n" not in message
    assert "kernel.cubin" not in message  # a temporary file means nothing to the user


def test_a_program_that_does_not_start_is_told(tmp_path, monkeypatch):
    absent = Disassembler(path=str(tmp_path / "absent"), version="1")
    monkeypatch.setattr(module, "disassembler", lambda: absent)
    with pytest.raises(UnavailableError, match=r"^nvdisasm cannot be run: .*reinstall it: pip"):
        disassemble(b"image")


OLDER = "nvdisasm is older than nvdisasm 12.8: pip install nvidia-cuda-nvdisasm"


@pytest.mark.parametrize(
    ("script", "error", "reason"),
    [
        (
            """echo '[{"SchemaVersion":{},"Producer":"nvdisasm V12.6.77 Build"}, []]'""",
            UnavailableError,
            OLDER,
        ),
        (
            "echo \"nvdisasm fatal   : Unknown option '-json'\" >&2; exit 1",
            UnavailableError,
            OLDER,
        ),
        ("exec sleep 60", ToolkitError, "nvdisasm did not end within 0.3 s"),
        ("exit 7", ToolkitError, "it ended with status 7 and said nothing"),
    ],
)
def test_a_program_that_is_too_old_or_fails_is_told(script, error, reason, program, monkeypatch):
    program.write_text(f"#!/bin/sh\n{script}\n")
    monkeypatch.setattr(module, "LIMIT_S", 0.3 if "sleep" in script else 60)
    said = refusal(error, disassemble, b"image")
    assert reason in said
    assert reason != OLDER or said == f"{program.parent}/{OLDER}"
