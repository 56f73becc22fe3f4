"""Remedies on the command line: shown, in the document, and applied without overwriting."""

import json
from pathlib import Path

import pytest

from tests.toolkit.cli.commands import invoke, refused, write
from tests.toolkit.remedies.launches import ACCIDENTAL, FEW_BLOCKS, FLAT, TRANSPOSE

LAUNCH = "-g 32,32 -b 32,8 -a f32[1024,1024]=zeros -a f32[1024,1024] -a 1024 --seed 1 -d h200"
ROUNDED = "smooth.cu -g 4096 -b 256 -a f32[1024,1024]=zeros -a f32[1024,1024] --seed 1 -d rtx-3090"


@pytest.fixture(autouse=True)
def sources(folder):
    write("transpose.cu", TRANSPOSE)
    write("smooth.cu", ACCIDENTAL)


def shown(command):
    result = invoke(f"simulate {command}")
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_remedies_are_a_table():
    lines = shown(f"transpose.cu {LAUNCH} --no-lines").splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip().startswith("remedies"))
    assert lines[start].split() == ["remedies", "saves", "new", "time,", "µs"]
    first = lines[start + 2]
    assert first.startswith(" 1  line 2: tile[32][32 + 1], pads each row")
    saved, left = map(float, first.split()[-2:])
    assert saved > 0.2 * (saved + left)
    rest = " ".join("\n".join(lines[start + 3 :]).split())
    assert "2 lines 6, 11: column ^ row in each access to tile; " in rest
    assert "1,024 of 1,024 blocks compared: equal bit for bit" in rest
    assert "--apply 1 writes the edited source, after comparing all blocks" in rest


def test_no_remedies_are_searched_if_nobody_asks():
    assert "pads each row" not in shown(f"transpose.cu {LAUNCH} --no-lines --no-remedies")


@pytest.mark.exhaustive  # the table has them
def test_the_document_has_them():
    found = json.loads(shown(f"transpose.cu {LAUNCH} --json"))["remedies"]
    first = found[0]
    assert (first["number"], first["lines"]) == (1, [2])
    assert first["saved_s"] == first["before_s"] - first["after_s"]
    assert first["diff"].startswith("--- transpose.cu\n+++ transpose.cu\n")


def test_a_remedy_is_written_beside_its_diff():
    text = shown(f"transpose.cu {LAUNCH} --no-lines --apply 1")
    assert "remedy 1: all 1,024 blocks compared: equal bit for bit" in text
    assert "+    __shared__ float tile[32][32 + 1];" in text
    expected = TRANSPOSE.replace("tile[32][32];", "tile[32][32 + 1];")
    assert Path("transpose.remedy1.cu").read_text(encoding="utf-8") == expected
    assert Path("transpose.cu").read_text(encoding="utf-8") == TRANSPOSE


def test_a_kernel_in_a_header_is_edited_there():
    write("tile.cuh", TRANSPOSE)
    write("main.cu", '#include <vector>\n#include "tile.cuh"\nint main() {}\n')
    text = shown(f"main.cu {LAUNCH} --apply 1")
    assert "[32 + 1], pads each row" in text
    written = Path("tile.remedy1.cuh").read_text()
    assert written.replace("[32 + 1]", "[32]") == TRANSPOSE
    assert not Path("main.remedy1.cu").exists()


def test_variables_beside_a_header_are_no_hindrance():
    """The edited header is compiled without the variables of the file that includes it."""
    write("tile.cuh", TRANSPOSE)
    write("main.cu", '#include "tile.cuh"\n__device__ int used = 1;\nint main() {}\n')
    assert "[32 + 1], pads each row" in shown(f"main.cu {LAUNCH}")


def test_no_edit_is_made_where_a_header_alone_does_not_compile():
    write("tile.cuh", TRANSPOSE.replace("float *", "VALUE *"))
    write("main.cu", '#define VALUE float\n#include "tile.cuh"\nint main() {}\n')
    assert "pads each row" not in shown(f"main.cu {LAUNCH}")


def test_no_file_is_overwritten():
    write("transpose.remedy1.cu", "mine")
    error = refused(f"simulate transpose.cu {LAUNCH} --apply 1")
    assert error == "--apply: transpose.remedy1.cu exists and is not overwritten: move it away"


def test_a_change_of_rounding_is_asked_for():
    result = invoke(f"simulate {ROUNDED} --apply 1")
    assert result.exit_code == 1
    assert "results differ by rounding" in result.stderr
    assert result.stderr.endswith(": add --rounding\n")
    text = shown(f"{ROUNDED} --no-lines --apply 1 --rounding")
    assert "--apply 1 --rounding writes the edited source" in text
    assert "at most 1.5e-05 is accepted" in text
    assert Path("smooth.remedy1.cu").is_file()


def test_a_remedy_that_does_not_exist_is_refused():
    write("flat.cu", FLAT)
    result = invoke(f"simulate flat.cu {LAUNCH} --apply 3")
    assert result.exit_code == 1
    assert "--apply 3: no such remedy" in result.stderr


def test_edits_that_change_results_are_listed_on_demand():
    write("flat.cu", FLAT)
    refused_edit = "not offered, results differ: tile[32][32 + 1], pads each row"
    assert refused_edit in shown(f"flat.cu {LAUNCH} --verbose")
    assert refused_edit not in shown(f"flat.cu {LAUNCH}")


def test_another_launch_is_printed_and_nothing_is_written():
    write("saxpy.cu", FEW_BLOCKS)
    text = shown(
        "saxpy.cu -g 32 -b 256 -d h200 -a f32[1048576] -a f32[1048576] -a f32=2 -a 1048576 "
        "--apply 1"
    )
    assert "launch it with --grid 1056" in text
    assert not list(Path().glob("*.remedy*"))


@pytest.mark.parametrize("options", ["--apply 1 --no-remedies", "--rounding", "--apply 1 --watch"])
def test_options_that_exclude_each_other(options):
    refused(f"simulate transpose.cu {LAUNCH} {options}", code=2)


def test_a_rung_is_no_source_to_edit():
    error = refused("simulate tiled --shape 256 --apply 1")
    assert error.startswith("--apply: ")
    assert error.endswith("is not a CUDA C++ file of yours: give one")
