"""A front end of another package: the example in the contract's docstring, registered and used."""

import json
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from analysis.errors import InputError, UnsupportedError
from tests.refusals import refusal
from tests.toolkit.cli.commands import invoke
from toolkit import check, simulate
from toolkit.frontends import front_end
from toolkit.frontends.front_end import FRONT_ENDS, FrontEnd, front_end_of, front_ends, register

PAGE = Path("docs/sources/frontends.md")
SCRIPT = """\
from mine import Text
kernel = Text('''
extern "C" __global__ void halved(float *x, long long size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) x[i] /= 2;
}
extern "C" __global__ void every(float *x, long long) { x[blockIdx.x * 64 + threadIdx.x] = 1; }
''')
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The path of a script beside `mine.py`, which is the example of the docstring."""
    example = front_end.__doc__.partition("the size of the array:\n")[2]
    (tmp_path / "mine.py").write_text(dedent(example))
    path = tmp_path / "halved.py"
    path.write_text(SCRIPT)
    monkeypatch.setattr(front_end, "_registered", dict(front_end._registered))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path
    for name in ("mine", "halved"):
        sys.modules.pop(name, None)


@pytest.fixture
def halved(written):
    namespace = {}
    exec(written.read_text(), namespace)
    return namespace["kernel"]


def test_python_simulates_a_kernel_of_a_registered_front_end(halved):
    x = np.arange(200, dtype=np.float32)
    found = simulate(halved, kernel="halved", arguments=[x])
    assert (found.geometry.grid, found.geometry.block) == ((4, 1, 1), (64, 1, 1))
    (after,) = found.outputs  # not the size, which the front end adds
    np.testing.assert_array_equal(after, x / 2)


def test_its_own_refusals_reach_the_user(halved):
    said = refusal(InputError, simulate, halved, kernel="halved", arguments=[3])
    assert said == "halved takes one array: give arguments=[x]"
    x = np.zeros(200, np.float32)
    said = refusal(InputError, simulate, halved, kernel="halved", grid=5, arguments=[x])
    assert said == "halved: mine launches a grid of 4: leave the grid out"


def test_the_sanitizer_checks_it_and_counts_the_arguments_of_the_user(halved):
    (found, *_) = check(halved, kernel="every", arguments=[np.zeros(200, np.float32)]).findings
    assert "argument 0 `x`, float32[200]" in found.message


def test_the_commands_take_it_in_a_script(written):
    launch = ("-k", "halved", "-a", "f32[200]")
    result = invoke("simulate", f"{written}:kernel", *launch, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kernel"] == "halved"
    assert invoke("check", f"{written}:kernel", *launch).exit_code == 0


def test_a_script_that_names_no_kernel_is_told_of_those_that_it_makes(written):
    invoke("simulate", f"{written}:kernel", "-k", "halved", "-a", "f32[200]")  # it registers
    said = invoke("simulate", str(written)).stderr
    assert f"name the kernel: {written}:kernel" in said


def test_no_front_end_takes_the_kernels_of_another():
    mine = FrontEnd(name="Mine", kernels=("mine.Text", "triton.JITFunction"), module="mine")
    assert refusal(InputError, register, mine) == (
        "front end Mine: triton.JITFunction is a kernel of Triton: name the package and the class "
        "of a kernel of your own"
    )
    assert tuple(front_ends()) == FRONT_ENDS


def test_a_front_end_registered_again_replaces_itself(monkeypatch):
    monkeypatch.setattr(front_end, "_registered", dict(front_end._registered))
    for remedy in ("give a Text", "give a text"):
        register(FrontEnd(name="Mine", kernels=(), module="mine", refused={"mine.No": remedy}))
    no = type("No", (), {"__module__": "mine.some"})()
    assert refusal(UnsupportedError, front_end_of, no) == (
        "mine.No cannot be simulated: give a text"
    )


def test_the_page_has_a_row_for_each_front_end_and_what_installs_it():
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    found = {row[1].strip(): row[4].strip() for row in rows if len(row) == 7}
    for one in FRONT_ENDS:
        install = f"`{one.install}`" if one.install else "nothing"
        assert found[one.name.removeprefix("the ")] == install
