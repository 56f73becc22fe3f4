"""The text of the source that a line table leads to, and what is said where it is not the same."""

import os
from pathlib import Path

import pytest

from analysis.errors import InputError
from tests.cubins import cubin_of
from toolkit.machine_code.elf import cubin_file
from toolkit.machine_code.kernel_source import compile_kernel, kernel_of_machine_code
from toolkit.machine_code.line_table import TableFile, files_of_table
from toolkit.machine_code.source_text import included_source

RECORDED = Path(__file__).parent / "recorded"
FATBIN = RECORDED / "scale_zstd.fatbin"  # of /src/scale.cu with 401 bytes
SCALE = (RECORDED / "scale.cu").read_text(encoding="utf-8")
KERNEL = """// {}
extern "C" __global__ void shift(float *out, const float *in, int n, double by)
{{
    if (threadIdx.x < n)
        out[threadIdx.x] = in[threadIdx.x] + by;
}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """NVRTC puts the folder in which it runs into the line table; a text of its own is compiled."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def text(folder):
    return KERNEL.format(folder)


@pytest.fixture
def image(text):
    return cubin_of(text, "shift").image


def notes(found):
    return [note for note in found.notes if "chosen" not in note]


def test_a_line_table_has_paths_times_and_sizes(folder, image):
    (file,) = files_of_table(cubin_file(image).content(".debug_line"))
    assert file == TableFile(path=str(folder / "shift.cu"))  # NVRTC states no time and no size
    assert file.name == "shift.cu"
    image = kernel_of_machine_code(FATBIN, target="sm_80").image
    (file,) = files_of_table(cubin_file(image).content(".debug_line"))
    assert (file.path, file.size) == ("/src/scale.cu", len(SCALE.encode()))
    assert file.time_s > 1_700_000_000


@pytest.mark.parametrize("inside", [".", "dé ü", "日本"])
@pytest.mark.parametrize("name", ["a.cu", "kö.cu", "ö.cu", "266.cu", "aé日本.cu", "b é.cu"])
def test_paths_may_have_any_characters(folder, text, inside, name):
    path = folder / inside / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.replace(str(folder), f"{inside} {name}"), encoding="utf-8")
    found = compile_kernel(path, target="sm_90")
    assert {line.file for line in found.lines.values()} == {name}
    (file,) = files_of_table(cubin_file(found.image).content(".debug_line"))
    assert Path(file.path).name == name
    again = kernel_of_machine_code(found.image, source_dirs=[path.parent])
    assert again.source == path.read_text(encoding="utf-8")


def test_a_kernel_may_stand_in_a_header_of_any_folder(folder, text):
    inside = folder / "dé ü"
    inside.mkdir()
    (inside / "shift.cuh").write_text(text, encoding="utf-8")
    (inside / "uses.cu").write_text('#include "shift.cuh"')
    header = included_source(compile_kernel(inside / "uses.cu", target="sm_90"))
    assert (header.path, header.text) == (inside / "shift.cuh", text)


def test_a_byte_order_mark_is_no_part_of_a_source(folder, text):
    (folder / "marked.cu").write_text(text, encoding="utf-8-sig")
    found = compile_kernel(folder / "marked.cu", target="sm_90")
    assert found.source == text


@pytest.mark.parametrize("path", ["/src/a.cu", r"C:\src\a.cu", "a.cu"])
def test_names_have_no_folders(path):
    assert TableFile(path=path).name == "a.cu"


def test_the_text_is_read_where_the_line_table_says(folder, text, image):
    Path("shift.cu").write_text(text, encoding="utf-8")
    found = kernel_of_machine_code(image)
    assert found.source == text
    assert (found.file, found.source_path) == ("shift.cu", folder / "shift.cu")
    assert [(one.name, one.dtype) for one in found.declared] == [
        ("out", "float32"),
        ("in", "float32"),
        ("n", "int32"),
        ("by", "float64"),
    ]
    assert not notes(found)


def test_a_text_beside_the_machine_code_is_found(folder, text, image):
    (folder / "build").mkdir()
    (folder / "build/app").write_bytes(image)
    (folder / "build/shift.cu").write_text(text, encoding="utf-8")
    assert kernel_of_machine_code(folder / "build/app").source == text
    assert kernel_of_machine_code(image).source is None  # bytes are beside nothing


def test_a_text_that_is_not_found_is_said(folder, image):
    found = kernel_of_machine_code(image)
    assert (found.source, found.declared, found.file) == (None, None, "shift.cu")
    assert notes(found) == [
        f"the text of shift.cu is not at {folder}/shift.cu: --source-dir FOLDER says where it is"
    ]
    (folder / "empty").mkdir()
    found = kernel_of_machine_code(image, source_dirs=["empty"])
    assert notes(found)[0].startswith("the text of shift.cu is not in empty: ")


def test_another_file_of_the_name_is_not_taken(image):
    Path("shift.cu").write_text("__global__ void other() {}\n", encoding="utf-8")
    assert kernel_of_machine_code(image).source is None
    Path("shift.cu").write_bytes(b"shift \xff\xfe")  # no text
    assert kernel_of_machine_code(image).source is None


def test_without_a_line_table_the_remedy_is_said(text):
    found = kernel_of_machine_code(cubin_of(text, "shift", options=()).image)
    assert notes(found) == [
        "it has no line table: compile it with `nvcc -lineinfo` to see source lines (Numba: "
        "lineinfo=True)"
    ]


# --- folders ------------------------------------------------------------------------------------


def test_folders_are_searched_and_the_longest_common_end_of_paths_wins(folder):
    for place in ("a", "b/src", "c"):
        (folder / place).mkdir(parents=True)
        (folder / place / "scale.cu").write_text(SCALE, encoding="utf-8")
    found = kernel_of_machine_code(FATBIN, target="sm_80", source_dirs=[folder])
    assert found.source_path == folder / "b/src/scale.cu"
    assert not notes(found)


def test_two_files_that_fit_alike_are_refused(folder):
    for place in ("a", "b"):
        (folder / place).mkdir()
        (folder / place / "scale.cu").write_text(SCALE, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"holds several files scale\.cu, such as .*: name the fold"
    ):
        kernel_of_machine_code(FATBIN, target="sm_80", source_dirs=[folder])
    found = kernel_of_machine_code(FATBIN, target="sm_80", source_dirs=[folder / "b"])
    assert found.source_path == folder / "b/scale.cu"


def test_a_folder_that_is_none_is_refused():
    with pytest.raises(InputError, match="source folder 'nowhere' is not there"):
        kernel_of_machine_code(FATBIN, target="sm_80", source_dirs=["nowhere"])


# --- changes ------------------------------------------------------------------------------------


def test_another_size_than_the_table_states_is_said(folder):
    (folder / "scale.cu").write_text(SCALE + "// more\n", encoding="utf-8")
    found = kernel_of_machine_code(FATBIN, target="sm_80", source_dirs=[folder])
    assert notes(found) == [
        "scale.cu had 401 bytes then, and has 409 now: lines may be off: compile it again"
    ]


def test_a_later_save_of_the_very_file_is_said(folder, text, image):
    Path("shift.cu").write_text(text, encoding="utf-8")
    Path("app").write_bytes(image)
    made = Path("app").stat().st_mtime
    for later, said in ((-10, []), (10, ["shift.cu was saved after the machine code was made: "])):
        os.utime("shift.cu", (made + later, made + later))
        found = notes(kernel_of_machine_code(folder / "app"))
        assert [note.partition("lines")[0] for note in found] == said


@pytest.mark.parametrize(
    ("old", "new"), [("int n, ", ""), ("double by", "float by"), ("int n", "long n")]
)
def test_declarations_that_do_not_fit_the_machine_code_are_not_used(old, new, text, image):
    changed = text.replace(old, new)
    assert changed != text
    Path("shift.cu").write_text(changed, encoding="utf-8")
    found = kernel_of_machine_code(image)
    assert found.source == changed
    assert found.declared is None
