"""A rung is one source and one entry: one that is added here goes through every command."""

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from analysis.access import Tiling
from analysis.problem import parse_shape
from kernels import LADDER, RungParameter, Variant
from kernels.selection import BY_NAME
from tests.toolkit.cli.commands import invoke
from toolkit import simulate
from toolkit.profiling.profile import profile
from toolkit.rungs.arguments import rung_arguments

DEVICE, SHAPE = "rtx-3090", parse_shape("67x70x52")


@dataclass(frozen=True, kw_only=True)
class Added(Variant):
    """A rung with its source beside this file."""

    @property
    def source(self):
        return Path(__file__).with_name(self.file).read_text(encoding="utf-8")


TWO_ROWS = Added(
    name="two-rows",
    rung=len(LADDER) + 1,
    title="Two rows",
    idea="a thread computes two rows of a column",
    file="two_rows.cu",
    entry="sgemm_two_rows",
    arguments=("K", "N", "M", "C", "beta", "alpha", "B", "A"),
    parameters={
        "rows": RungParameter(default=16, legal=(16, 32), meaning="of a block", sets=("block_m",)),
        "depth": RungParameter(default=8, legal=(8, 16), meaning="of a phase", sets=("block_k",)),
    },
    tile=partial(Tiling, block_n=32, thread_m=2, shared_load_a_width=4),
)


def _swap(old, new):
    """Replace an object wherever a module has it by name."""
    for module in list(sys.modules.values()):
        for name in [name for name, value in vars(module).items() if value is old]:
            setattr(module, name, new)


@pytest.fixture(autouse=True)
def added(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    swaps = [(LADDER, (*LADDER, TWO_ROWS)), (BY_NAME, BY_NAME | {TWO_ROWS.name: TWO_ROWS})]
    for old, new in swaps:
        _swap(old, new)
    yield
    for old, new in swaps:
        _swap(new, old)


def test_profile_counts_checks_and_predicts_it():
    found = profile([SHAPE], ["two-rows"], device=DEVICE, executor="simulate", seed=1)
    (record,) = found.records
    assert (record.status, record.check and record.check.passed) == ("ok", True)
    assert any("sanitizer: no errors" in note for note in record.notes), record.notes
    assert record.predicted is not None
    counts = record.theory.accesses
    for access in counts.accesses:
        if access.space == "global":  # K and rows of the tiles of A and B, exactly
            assert (
                access.elements
                == {"A": 67 * 52 * 3, "B": 52 * 70 * 5, "C": 67 * 70}[access.operand]
            )
    (listing,) = found.listings
    assert listing.source == TWO_ROWS.source


@pytest.mark.parametrize("parameters", TWO_ROWS.parameter_sets())
def test_simulate_computes_the_product_with_all_that_it_takes(parameters):
    rng = np.random.default_rng(1)
    a, b, c = (
        rng.random(extents, dtype=np.float32)
        for extents in ((SHAPE.m, SHAPE.k), (SHAPE.k, SHAPE.n), (SHAPE.m, SHAPE.n))
    )
    arguments = rung_arguments(TWO_ROWS, parameters, SHAPE, (a, b, c), alpha=2.0, beta=0.5)
    geometry = TWO_ROWS.geometry(parameters, SHAPE)
    execution = simulate(
        TWO_ROWS.source,
        TWO_ROWS.entry,
        grid=geometry.grid,
        block=geometry.block,
        arguments=arguments,
        defines=TWO_ROWS.macros(parameters),
        arch="sm_86",
        predict=False,
    )
    expected = 2.0 * a.astype(float) @ b + 0.5 * c
    of_c, *_ = execution.outputs  # the first array of the arguments
    np.testing.assert_allclose(of_c, expected, rtol=1e-5)


def test_tune_ranks_it_and_list_names_it():
    tuned = invoke(f"tune two-rows --shape {SHAPE} --device {DEVICE} --seed 1")
    assert tuned.exit_code == 0, tuned.output
    (shape,) = json.loads(Path("tuning.json").read_text())["shapes"]
    ranked = {tuple(one["parameters"].values()) for one in shape["candidates"] if one["predicted"]}
    assert ranked == {(16, 8), (16, 16), (32, 8), (32, 16)}
    assert "two-rows" in invoke("list variants").output
