"""Programs that a part takes from a table of other repositories."""

import json

from validation.public_launches.capture import programs_of_table
from validation.public_launches.listed import before

COMPILED = ["nvcc", "-arch=sm_90", "one.cu"]


def table(folder, names):
    rows = [
        {
            "repository": "owner/tools",
            "commit": "c0ffee",
            "name": name,
            "folder": "tools/src",
            "compile": COMPILED,
            "arguments": ["100"],
        }
        for name in names
    ]
    path = folder / "table.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_programs_that_an_earlier_part_has_are_not_taken(tmp_path):
    used = before("fifth")[0].family
    found = programs_of_table(tmp_path, table(tmp_path, ["waves", used.upper()]), "fifth")
    assert [one.name for one in found] == ["waves"]


def test_matrix_products_are_not_taken(tmp_path):
    path = table(tmp_path, ["sgemm", "matrixMul", "waves"])
    assert [one.name for one in programs_of_table(tmp_path, path, "fifth")] == ["waves"]


def test_the_order_is_that_of_the_seed(tmp_path):
    path = table(tmp_path, [f"program{number}" for number in range(20)])
    of_fifth, again, of_fourth = (
        [one.name for one in programs_of_table(tmp_path, path, part)]
        for part in ("fifth", "fifth", "fourth")
    )
    assert of_fifth == again
    assert of_fifth != of_fourth
    assert sorted(of_fifth) == sorted(of_fourth)


def test_programs_of_one_folder_are_told_apart(tmp_path):
    one, other = programs_of_table(tmp_path, table(tmp_path, ["waves", "tides"]), "fifth")
    assert one.folder == other.folder
    assert one.main != other.main
    assert {one.key, other.key} == {"tools.waves", "tools.tides"}
    assert one.source == ("owner/tools", "c0ffee")
    assert one.root == tmp_path / "tools"
