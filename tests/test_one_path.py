"""Results of profile, simulate and tune for one launch: as recorded, and equal on all paths.

A rung's source as any other kernel, with all of its blocks executed, is one more path, "ordinary".
Its exact counters are equal; modelled ones and the time are close.
"""

import pytest

from analysis.records.counters import ALL_COUNTERS, MODELLED
from kernels import LADDER
from tests.one_path import (
    DEVICE,
    LAUNCHES,
    NAMED,
    RECORDED,
    RUNGS,
    SEED,
    OtherLaunch,
    RungLaunch,
    named,
)
from tests.sampling import chosen_of
from toolkit import simulate
from validation import recordings

FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
CLOSE = 1e-9  # relative, of times
SAMPLE = ("one-block 32", "vectorized 512", "stream-k 512")
SHAPES, ONE_BLOCK_SHAPES = ("512", "1024", "1000x1016x520"), ("32", "16x24x20", "1x1x1")
SAMPLE_BY_NAME = (("one-block", "16x24x20"), ("split-k", "512"))
CLOSE_TRAFFIC, CLOSE_TIME = 0.01, 0.005  # relative, of a rung as any other kernel
FEW_BYTES = 1 << 16  # of a launch that moves megabytes
ORDINARY_SHAPES = ("512", "1000x1016x520")
LATE = ("tf32-parts", "488x504x264")  # blocks at an edge read later than others: 5% of L2 reads
SAMPLE_ORDINARY = (("split-k", "512"), ("stream-k", "512"), LATE)


@pytest.fixture(scope="module")
def recorded():
    return recordings.read(RECORDED)


ANSWERS = {}


def answer_of(launch, path):
    """Answer of a path, asked once for all tests of this process."""
    if (launch.name, path) not in ANSWERS:
        ANSWERS[launch.name, path] = launch.answers()[path]()
    return ANSWERS[launch.name, path]


def is_in_sample(launch, path):
    """True for a launch of each kind; all blocks of two of them are executed."""
    is_plain = (launch.name, path) == ("vectorized 512", "ordinary")
    return isinstance(launch, OtherLaunch) or (launch.name in SAMPLE and not is_plain)


@pytest.mark.parametrize(
    ("launch", "path"),
    chosen_of(
        [
            pytest.param(launch, path, id=f"{launch.name}-{path}")
            for launch in LAUNCHES
            for path in launch.answers()
        ],
        lambda case: is_in_sample(*case),
    ),
)
def test_each_path_answers_what_is_recorded(launch, path, recorded):
    expected, found = recorded[launch.name][path], named(answer_of(launch, path))
    assert found["time_s"] == pytest.approx(expected["time_s"], rel=CLOSE)
    assert (found["limiter"], found["counters"]) == (expected["limiter"], expected["counters"])


def test_named_counters_exist():
    assert len(NAMED) == len(set(NAMED)) == 31
    assert set(NAMED) <= ALL_COUNTERS.keys()


def test_a_counter_that_is_not_named_is_not_recorded():
    found = {"time_s": 1.0, "counters": {NAMED[0]: 7, "added.sum": 3}}
    assert named(found) == {"time_s": 1.0, "counters": {NAMED[0]: 7}}


def test_at_least_twelve_launches_are_recorded(recorded):
    assert sorted(recorded) == sorted(launch.name for launch in LAUNCHES)
    assert len(recorded) >= 12


@pytest.mark.parametrize("launch", RUNGS, ids=lambda launch: launch.name)
def test_a_rung_has_one_recorded_answer(launch, recorded):
    assert_agree(recorded[launch.name])


@pytest.mark.parametrize(
    ("rung", "shape"),
    chosen_of(
        [
            (variant.name, shape)
            for variant in LADDER
            for shape in (ONE_BLOCK_SHAPES if variant.max_extent else SHAPES)
        ],
        lambda case: case in SAMPLE_BY_NAME,
    ),
)
def test_a_rung_by_name_has_one_answer(rung, shape):
    launch = RungLaunch(rung=rung, shape=shape)
    assert_agree({path: answer_of(launch, path) for path in ("profile", "simulate", "tune")})


def assert_agree(by_path):
    """One time, one limiter, and one set of counters, which tune does not list."""
    expected = by_path["profile"]
    assert expected["time_s"] > 0
    for path in ("simulate", "tune"):
        assert by_path[path]["time_s"] == pytest.approx(expected["time_s"], rel=CLOSE)
        assert by_path[path]["limiter"] == expected["limiter"]
    assert by_path["simulate"]["counters"] == expected["counters"]


@pytest.mark.parametrize(
    ("rung", "shape"),
    chosen_of(
        [
            (variant.name, shape)
            for variant in LADDER
            for shape in (ONE_BLOCK_SHAPES if variant.max_extent else ORDINARY_SHAPES)
        ]
        + [LATE],
        lambda case: case in SAMPLE_ORDINARY,
    ),
)
def test_a_rung_as_any_other_kernel_is_close(rung, shape):
    launch = RungLaunch(rung=rung, shape=shape)
    ours, ordinary = answer_of(launch, "simulate"), answer_of(launch, "ordinary")
    assert ordinary["time_s"] == pytest.approx(ours["time_s"], rel=CLOSE_TIME)
    assert ordinary["limiter"] == ours["limiter"]
    for name in ours["counters"] | ordinary["counters"]:
        close, few = (CLOSE_TRAFFIC, FEW_BYTES) if name in MODELLED else (0, 0)
        few //= ALL_COUNTERS[name].unit.size_bytes or 1
        found, expected = (one["counters"].get(name, 0) for one in (ordinary, ours))
        assert found == pytest.approx(expected, rel=close, abs=few), name


@pytest.mark.exhaustive  # the tests above compare at 512
@pytest.mark.parametrize(
    "rung",
    chosen_of(
        [variant.name for variant in LADDER if not variant.max_extent and not variant.sharing],
        lambda rung: rung == "vectorized",
    ),
)
def test_a_rung_at_2048_takes_as_long_as_its_source(rung):
    """Blocks of the source are observed, those of the rung are declared, both replayed whole."""
    ours = answer_of(RungLaunch(rung=rung, shape="2048"), "simulate")
    found = simulate(
        rung, shape="2048", seed=SEED, device=DEVICE, blocks="representative", limit_s=600
    )  # where a machine takes longer than the usual limit for all blocks, there is no time
    assert found.predicted.time_s == pytest.approx(ours["time_s"], rel=CLOSE_TIME)
    assert found.predicted.limiter == ours["limiter"]
    exact = found.counters.keys() - MODELLED.keys() - found.estimates.keys()
    assert FFMA in exact
    for name in exact:
        assert found.counters[name] == ours["counters"].get(name, 0), name
