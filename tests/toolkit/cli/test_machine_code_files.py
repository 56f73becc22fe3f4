"""Commands on files with device code: the source is shown, and a mistake is one line."""

import json
from pathlib import Path

import pytest

from analysis.errors import InputError
from tests.cubins import cubin_of
from tests.fatbins import entry, fatbin, program
from tests.toolkit.cli.commands import invoke, refused, write
from toolkit import check, simulate

SHIFT = """// {}
extern "C" __global__ void shift(float *out, const float *in, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i * 2];
}}
"""
LAUNCH = "-g 4 -b 64 -a f32[256] -a f32[512] -a 256"


@pytest.fixture(autouse=True)
def files(folder):
    """A program, `app`, for two architectures, and its source, which the line table leads to."""
    text = SHIFT.format(folder)  # of its own: NVRTC puts the folder into the line table
    write("shift.cu", text)
    images = [(cubin_of(text, "shift", f"sm_{number}").image, number) for number in (80, 90)]
    Path("app").write_bytes(program(fatbin(*(entry(*one) for one in images))))


def shown(command):
    result = invoke(command)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_a_program_is_simulated_with_the_text_of_its_source():
    said = shown(f"simulate app {LAUNCH} --seed 1")
    assert "out[i] = in[i * 2];" in said
    assert (
        "note: the machine code for sm_90 was chosen of sm_80 and sm_90: --device chooses another"
        in " ".join(said.split())
    )
    assert "this is machine code: simulate its source" in " ".join(said.split())
    source = shown(f"simulate shift.cu {LAUNCH} --seed 1 --no-remedies")
    table = [line for line in source.splitlines() if "in[i * 2]" in line]
    assert [line for line in said.splitlines() if "in[i * 2]" in line] == table


def test_the_device_chooses_the_machine_code():
    said = json.loads(shown(f"simulate app {LAUNCH} -d a100-40gb --json"))
    assert said["resources"]["architecture"] == "sm_80"
    lines = {line["line"]: line["text"] for line in said["lines"]}
    assert lines[6] == "out[i] = in[i * 2];"


def test_the_page_shows_the_source():
    shown(f"simulate app {LAUNCH} --html page.html")
    assert "in[i * 2]" in Path("page.html").read_text(encoding="utf-8")


def test_a_check_names_lines_of_the_source():
    result = invoke("check app -g 4 -b 64 -a f32[256] -a f32[256] -a 256 --html page.html")
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert "shift.cu, line 6" in said
    assert "argument 1 `in`, float32[256]" in said
    assert "in[i * 2]" in Path("page.html").read_text(encoding="utf-8")


def test_source_folders_are_an_option():
    Path("elsewhere").mkdir()
    Path("shift.cu").rename("elsewhere/shift.cu")
    typed = LAUNCH.replace("-a 256", "-a i32=256")
    said = shown(f"simulate app {typed}")
    assert "--source-dir FOLDER says where it is" in " ".join(said.split())
    assert "in[i * 2]" not in said
    said = json.loads(shown(f"simulate app {LAUNCH} --source-dir elsewhere --json"))
    assert any("in[i * 2]" in line["text"] for line in said["lines"])
    assert said["source_dirs"] == ["elsewhere"]
    shown(f"simulate app {LAUNCH} --source-dir elsewhere --html page.html")
    assert "--source-dir elsewhere" in Path("page.html").read_text(encoding="utf-8")


def test_options_that_nothing_would_read_are_refused():
    compiled = "'app' is machine code, which is compiled already: leave"
    said = refused(f"simulate app {LAUNCH} -D N=2")
    assert said == f"--define: {compiled} it out"
    said = refused(f"check app {LAUNCH} --option -O1 --compiler nvcc")
    assert said == f"--option and --compiler: {compiled} them out"
    said = refused(f"simulate shift.cu {LAUNCH} --source-dir elsewhere")
    assert said == "--source-dir is for machine code, and 'shift.cu' is not: leave it out"
    for function in (simulate, check):
        with pytest.raises(InputError, match="defines: the kernel is compiled already"):
            function(Path("app"), grid=1, block=1, arguments=[], defines={"N": 2})


def test_without_the_source_a_number_needs_a_type_of_the_right_size():
    Path("shift.cu").unlink()
    assert refused(f"simulate app {LAUNCH}") == (
        "--arg 2 ('256'): the type of this number is unknown here, and the kernel's parameter has "
        "4 bytes: give one, such as i32=256 or f32=256"
    )


def test_an_edit_is_not_applied_to_machine_code():
    said = refused(f"simulate app {LAUNCH} --apply 1")
    assert said == "--apply: app is not a CUDA C++ file of yours: give one"


@pytest.mark.parametrize("command", ["simulate", "check"])
@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"", "empty.cubin", "empty.cubin: it is empty"),
        (b"hello", "a.ptx", "a.ptx: it holds neither machine code nor PTX: make it again"),
        (
            b"hello",
            "a.cubin",
            "a.cubin: the machine code is not a cubin: it is not an ELF file",
        ),
        (program(), "a.out", "a.out: it holds no device code: give the file that nvcc compiled"),
        (b"\xff\xfe\0", "noise", "kernel source 'noise' cannot be read: not UTF-8 text, nor a"),
    ],
)
def test_files_without_device_code_are_one_line(command, content, name, said):
    Path(name).write_bytes(content)
    assert refused(f"{command} {name} {LAUNCH}").startswith(said)


def test_a_folder_is_one_line():
    Path("folder.cubin").mkdir()
    said = refused(f"simulate folder.cubin {LAUNCH}")
    assert said == "folder.cubin cannot be read: Is a directory"
    assert refused(f"simulate app {LAUNCH} -k shif").startswith("app: unknown kernel 'shif': ")
    Path("app").rename("sh")  # which "shift" begins with
    assert refused(f"simulate sh {LAUNCH} -k shif").startswith("sh: unknown kernel 'shif': ")
