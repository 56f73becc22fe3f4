"""Sources as text and as files."""

from pathlib import Path

import pytest

from analysis.errors import InputError
from toolkit.machine_code.kernel_source import read_source


@pytest.mark.parametrize("text", ['extern "C" __global__ void f() {}', "int x;\nint y;", "\n"])
def test_text_is_what_holds_a_brace_or_a_line_break(text):
    assert read_source(text) == (text, "kernel.cu")


def test_a_path_is_read_and_names_itself(tmp_path):
    path = tmp_path / "größe {1}.cu"
    path.write_text("// größe", encoding="utf-8")
    assert read_source(path) == ("// größe", "größe {1}.cu")
    plain = path.rename(tmp_path / "plain.cu")
    assert read_source(str(plain)) == ("// größe", "plain.cu")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    wrong = tmp_path / "wrong.cu"
    wrong.write_bytes(b"\xff\xfe")
    for path, reason in (
        (tmp_path / "absent.cu", f"No such file or directory: {tmp_path} has wrong.cu"),
        (tmp_path, "Is a directory"),
        (wrong, "not UTF-8 text"),
        (Path("a\0b"), "embedded null byte"),
    ):
        with pytest.raises(InputError) as caught:
            read_source(path)
        assert str(caught.value) == f"kernel source {str(path)!r} cannot be read: {reason}"
