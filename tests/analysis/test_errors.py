import re

import pytest

from analysis import errors
from analysis.errors import CompileError, InputError, ToolkitError, UnknownNameError


def test_an_unknown_name_suggests_the_nearest_and_lists_the_known():
    error = UnknownNameError("variant", "Tyled", ["naive", "tiled"])
    assert str(error) == "unknown variant 'Tyled': did you mean 'tiled'? (known: naive, tiled)"


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("h100", "did you mean 'h100-pcie' or 'h100-sxm'?"),  # not v100, which is spelled alike
        ("h1000", "did you mean 'h100-pcie' or 'h100-sxm'?"),  # so begin those
        ("H100 SXM", "did you mean 'h100-sxm'?"),
        ("3090", "did you mean 'rtx-3090'?"),
        ("rtx-309", "did you mean 'rtx-3090'?"),
        ("rtx-3080", "did you mean 'rtx-3090'?"),
    ],
)
def test_a_part_of_a_name_suggests_the_names_that_hold_it(name, suggested):
    known = ["v100", "rtx-3090", "h100-pcie", "h100-sxm"]
    assert suggested in str(UnknownNameError("device", name, known))


def test_of_many_names_only_those_that_are_meant_are_listed():
    known = [f"name-{number}" for number in range(20)]
    assert str(UnknownNameError("rung", "tiles", [*known, "tiled"])) == (
        "unknown rung 'tiles': did you mean 'tiled'?"
    )


@pytest.mark.parametrize("name", ["qqq", "nope"])
def test_a_name_like_no_other_suggests_nothing(name):
    error = UnknownNameError("variant", name, ["naive", "one-block"])
    assert str(error) == f"unknown variant {name!r}: choose one of naive, one-block"


def test_a_compile_error_carries_the_log_beside_its_one_line():
    error = CompileError("tiled.cu(3): error: ';' expected", log="line 1\nline 2")
    assert (str(error), error.log) == ("tiled.cu(3): error: ';' expected", "line 1\nline 2")


def test_the_tree_at_the_head_of_the_file_is_the_tree_of_the_classes():
    """Each line of the drawing is indented by three columns per level below ToolkitError."""
    drawn = {}
    path = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([│├└─ ]*)(\w+Error)\b", line)
        if match:
            path[len(match[1]) // 3 :] = [match[2]]
            drawn[match[2]] = path[-2] if len(path) > 1 else "Exception"
    defined = {
        name: cls.__bases__[0].__name__
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, ToolkitError)
    }
    assert drawn == defined


def test_all_that_the_caller_got_wrong_is_an_input_error():
    with pytest.raises(InputError):
        raise UnknownNameError("device", "x", [])
