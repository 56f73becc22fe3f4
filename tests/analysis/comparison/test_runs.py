"""Two profiles beside each other: what is compared, what is not, and why."""

from dataclasses import replace
from functools import partial

import pytest

from analysis.access import Tiling, access_counts
from analysis.comparison.runs import (
    COMPARISON_SCHEMA_VERSION,
    CountChange,
    Setting,
    compare,
)
from analysis.devices import find_device
from analysis.errors import InputError
from analysis.geometry import Geometry
from analysis.problem import parse_shape
from analysis.records.metrics import BANK_CONFLICTS, SHARED_WAVEFRONTS
from analysis.records.profile import (
    SCHEMA_VERSION,
    Environment,
    Interval,
    LineCounters,
    Profile,
)
from analysis.theory import theory
from tests import records_by_hand
from tests.records_by_hand import check, counted, occupancy, predicted, resources
from tests.refusals import refusal

SHAPE = parse_shape("64")
WARPS, L2 = "smsp__inst_executed.sum", "lts__t_sectors_op_read.sum"
DEVICE = find_device("rtx-3090")
RESOURCES = resources()


def simulated(counters, **more):
    lines = tuple(
        LineCounters(file="k.cu", line=7, text="x += a;", counters={name: count})
        for name, count in counters.items()
    )
    return records_by_hand.simulated(counters, lines=lines, **more)


def measured(median_s, *, samples=10, width=0.002, **more):
    """Samples of which the interval is `median_s` ± `width` of it; none below 6 samples."""
    interval = Interval(low=median_s * (1 - width), high=median_s * (1 + width))
    return records_by_hand.measured(
        median_s,
        samples_s=(median_s,) * samples,
        interval_s=interval if samples >= 6 else None,
        **{"flop_per_s": SHAPE.flop / median_s} | more,
    )


record = partial(records_by_hand.record, shape=SHAPE)


def profile(*records, **more):
    values = {
        "schema_version": SCHEMA_VERSION,
        "created": "2026-01-02T03:04:05+00:00",
        "command": "python -m toolkit profile",
        "status": "complete",
        "executor": "simulate",
        "seed": 1,
        "device": DEVICE,
        "environment": Environment(toolkit_version="0.1.0", commit="abc", hardware={"CPU": "one"}),
        "records": records,
    }
    return Profile(**(values | more))


def pair(before, after, **of_after):
    (found,) = compare(profile(before), profile(after, **of_after)).pairs
    return found


def timed(before, after, **of_after):
    return pair(record(measured=before), record(measured=after), **of_after).time


# Counts.


def test_what_did_not_change_is_the_same():
    same = record(simulated=simulated({WARPS: 5}), resources=RESOURCES)
    found = compare(profile(same), profile(same))
    assert (found.counts, found.times) == ("same", "not compared")
    assert found.pairs[0].compared == 1 + 3  # a counter; registers, shared and local bytes
    assert found.pairs[0].counts == ()
    assert found.schema_version == COMPARISON_SCHEMA_VERSION
    assert found.environment == found.notes == ()


def test_a_simulated_counter_that_changes_by_one_is_named_with_its_line():
    before, after = (record(simulated=simulated({WARPS: n})) for n in (5, 6))
    (change,) = pair(before, after).counts
    assert (change.grade, change.name, change.before, change.after) == ("simulated", WARPS, 5, 6)
    assert (change.verdict, change.ratio) == ("changed", 1.2)
    (line,) = change.lines
    assert (line.text, line.line_before, line.before, line.after) == ("x += a;", 7, 5, 6)
    assert compare(profile(before), profile(after)).counts == "changed"


def test_the_simulator_has_no_noise_but_its_model_has():
    stores = SHARED_WAVEFRONTS[1]
    before, after = (record(simulated=simulated({stores: n, L2: n * 10**6})) for n in (100, 105))
    verdicts = {one.name: one.verdict for one in pair(before, after).counts}
    assert verdicts == {stores: "changed", L2: "within"}
    farther = record(simulated=simulated({stores: 100, L2: 112 * 10**6}))
    assert [one.verdict for one in pair(before, farther).counts] == ["changed"]  # 12 of 112


def test_hardware_has_noise_in_either_direction():
    stores, conflicts = SHARED_WAVEFRONTS[1], BANK_CONFLICTS[1]
    runs = [
        record(counted=counted({WARPS: 7, stores: n, conflicts: n - 1000, L2: 2 * n}))
        for n in (1000, 1100)
    ]
    for before, after in (runs, runs[::-1]):
        found = pair(before, after)
        assert {one.verdict for one in found.counts} == {"within"}
        assert found.compared == 4
    (change,) = pair(runs[0], record(counted=counted({WARPS: 8}))).counts
    assert (change.grade, change.verdict) == ("measured", "changed")


def test_shared_loads_of_hardware_are_compared_less_their_conflicts():
    loads, conflicts = SHARED_WAVEFRONTS[0], BANK_CONFLICTS[0]
    before, noisy, off = (
        record(counted=counted({loads: n, conflicts: m}))
        for n, m in ((1000, 0), (1010, 10), (1010, 0))
    )
    assert pair(before, noisy).changed == ()
    assert [one.name for one in pair(before, off).changed] == [loads]


@pytest.mark.parametrize(
    ("change", "name", "before", "after"),
    [
        ({"registers_per_thread": 40}, "registers per thread", 32, 40),
        ({"static_shared_bytes": 0}, "static shared bytes", 8192, 0),
        ({"local_bytes": 16}, "local bytes", 0, 16),
    ],
)
def test_what_the_compiler_gives_is_deterministic(change, name, before, after):
    found = pair(record(resources=RESOURCES), record(resources=replace(RESOURCES, **change)))
    assert found.counts == (
        CountChange(
            grade="compiled",
            name=name,
            label=name,
            unit=None,
            before=before,
            after=after,
            tolerance=0,
            verdict="changed",
        ),
    )


def test_launch_and_occupancy_are_compared():
    before, after = (
        record(
            geometry=Geometry(grid=(4, 4, 1), block=(n, 1, 1)),
            occupancy=occupancy(blocks_per_sm=n // 64),
        )
        for n in (256, 512)
    )
    assert [(c.name, c.before, c.after) for c in pair(before, after).counts] == [
        ("threads per block", 256, 512),
        ("blocks per SM", 4, 8),
    ]


def test_theory_that_changes_is_named_also_where_an_access_is_new():
    naive, tiled = (
        record(theory=theory(access_counts(tiling, SHAPE), (), DEVICE))
        for tiling in (
            Tiling(block_m=32, block_n=32),
            Tiling(block_m=32, block_n=32, block_k=32),
        )
    )
    changes = {one.name: (one.before, one.after) for one in pair(naive, tiled).counts}
    assert changes["global loads of A: elements"] == (64**3, 2 * 64 * 64)  # two columns of blocks
    assert changes["shared loads of A: elements"] == (0, 64**3)
    assert "FLOP" not in changes
    back = {one.name: (one.before, one.after) for one in pair(tiled, naive).counts}
    assert back == {name: pair[::-1] for name, pair in changes.items()}


# What belongs together.


def test_records_belong_together_by_label_and_shape():
    other = parse_shape("1x2x3")
    before = profile(record(), record(label="a"), record(shape=other))
    found = compare(before, profile(record(label="b"), record(shape=other)))
    assert [(one.label, str(one.shape)) for one in found.pairs] == [("v", "1x2x3")]
    assert [(one.label, str(one.shape)) for one in found.only_before] == [
        ("v", "64x64x64"),
        ("a", "64x64x64"),
    ]
    assert [one.label for one in found.only_after] == ["b"]


def test_nothing_in_common_is_an_error_that_says_what_there_is():
    other = record(shape=parse_shape("1x2x3"))
    with pytest.raises(InputError) as error:
        compare(profile(record()), profile(other))
    assert str(error.value) == (
        "the profiles have no shape in common: the first has 64x64x64, the second 1x2x3: "
        "profile the same --shape"
    )
    assert "no variant in common: the first has v, the second w" in refusal(
        InputError, compare, profile(record()), profile(record(label="w"))
    )
    assert "the first has none" in refusal(InputError, compare, profile(), profile(record()))


# What may not be compared.


@pytest.mark.parametrize(
    ("key", "is_same"), [("rtx-3090", True), ("rtx-a6000", True), ("t4", False)]
)
def test_another_device_leaves_theory_and_the_counts_of_one_architecture(key, is_same):
    device = find_device(key)
    before, after = (
        record(
            resources=replace(RESOURCES, architecture=arch, registers_per_thread=registers),
            simulated=simulated({WARPS: registers}, architecture=arch),
            counted=counted({WARPS: registers}),
            occupancy=occupancy(blocks_per_sm=registers),
            measured=measured(1e-3),
        )
        for arch, registers in (("sm_86", 32), (device.sm_arch, 40))
    )
    found = compare(profile(before), profile(after, device=device))
    names = {(one.grade, one.name) for one in found.pairs[0].counts}
    of_code = {("compiled", "registers per thread"), ("simulated", WARPS)}
    of_device = {("compiled", "blocks per SM"), ("measured", WARPS)}
    if key == DEVICE.key:
        assert names == of_code | of_device
        assert found.notes == ()
    else:
        assert names == (of_code if is_same else set())
        assert found.pairs[0].time is None
        assert "occupancy and hardware counters are not compared" in found.notes[0]
        assert found.environment[0] == Setting(name="device", before=DEVICE.name, after=device.name)
    if not is_same:
        assert found.pairs[0].notes == ("compiled for sm_86 before, for sm_75 after",)


def test_another_compiler_is_named_and_its_counts_compared():
    before, after = (
        record(resources=replace(RESOURCES, compiler=compiler), simulated=simulated({WARPS: n}))
        for compiler, n in (("NVRTC 13.0.88", 1), ("nvcc 12.9", 2))
    )
    found = pair(before, after)
    assert found.notes == ("compiled by NVRTC 13.0.88 before, by nvcc 12.9 after",)
    assert [one.name for one in found.changed] == [WARPS]


def test_traffic_from_another_state_of_l2_is_not_compared():
    before = record(counted=counted({WARPS: 1, L2: 100}))
    after = record(counted=counted({WARPS: 1, L2: 900}, caches="warm"))
    found = pair(before, after)
    assert (found.compared, found.counts) == (1, ())
    assert found.notes == (
        "L2 was flushed before and warm after when the hardware counted: L2 and DRAM traffic is "
        "not compared",
    )


def test_a_kernel_that_fails_now_has_lost_its_counts():
    before = record(simulated=simulated({WARPS: 1}), measured=measured(1e-3), check=check())
    after = replace(before, status="failed", reason="wrong result")
    found = compare(profile(before), profile(after))
    assert found.counts == "changed"
    assert found.pairs[0].lost == ("failed: wrong result",)
    assert found.pairs[0].time is None
    assert found.pairs[0].notes == ("measured times are not compared: only the first side has one",)
    back = compare(profile(after), profile(before))
    assert (back.counts, back.pairs[0].lost) == ("same", ())
    assert back.pairs[0].notes[0] == "failed in the first profile: wrong result"


def test_a_simulation_that_fails_now_is_no_silence():
    before = record(simulated=simulated({WARPS: 1}))
    after = record(notes=("padded", "not simulated: unknown instruction"))
    assert pair(before, after).lost == ("not simulated: unknown instruction",)
    assert pair(before, after, executor="theory").lost == ("not simulated: unknown instruction",)
    assert pair(before, after).notes == ("simulated in the first profile only",)


@pytest.mark.parametrize(
    ("ours", "theirs", "lost"),
    [
        (
            {"simulated": simulated({WARPS: 1, L2: 2})},
            {"simulated": simulated({WARPS: 1})},
            f"missing now (simulated): {L2}",
        ),
        ({"counted": counted({WARPS: 1})}, {}, f"missing now (measured): {WARPS}"),
        (
            {"resources": RESOURCES},
            {},
            "missing now (compiled): registers per thread, static shared bytes, local bytes",
        ),
        (
            {"counted": counted({f"c{n}": n for n in range(10)})},
            {},
            "missing now (measured): c0, c1, c2, c3, c4, c5, c6, c7 and 2 more",
        ),
    ],
)
def test_counts_that_are_missing_now_are_lost(ours, theirs, lost):
    found = compare(profile(record(**ours)), profile(record(**theirs)))
    assert (found.counts, found.pairs[0].lost) == ("changed", (lost,))
    back = compare(profile(record(**theirs)), profile(record(**ours)))
    assert back.pairs[0].lost == ()  # new counts are no loss


def test_a_record_that_is_missing_now_is_lost_if_it_had_counts():
    both = record(resources=RESOURCES)
    for more, verdict in (({"resources": RESOURCES}, "changed"), ({}, "same")):
        found = compare(profile(both, record(label="w", **more)), profile(both))
        assert found.counts == verdict
        assert [one.has_counts for one in found.only_before] == [bool(more)]


def test_an_interrupted_profile_says_so():
    found = compare(profile(record(), status="interrupted"), profile(record()))
    assert found.notes == ("the first profile was interrupted: it may lack records",)


def test_differences_of_the_environment_are_listed():
    after = profile(
        record(),
        environment=Environment(
            toolkit_version="0.2.0", commit="abc", software={"numpy": "2"}, hardware={"CPU": "one"}
        ),
    )
    assert compare(profile(record()), after).environment == (
        Setting(name="toolkit version", before="0.1.0", after="0.2.0"),
        Setting(name="numpy", before=None, after="2"),
    )


# Times.


@pytest.mark.parametrize(
    ("after_s", "verdict"),
    [
        (1.1e-3, "slower"),
        (0.9e-3, "faster"),
        (1.01e-3, "same"),  # 1.01 ± 0.4%: within 3%
        (1.032e-3, "ambiguous"),  # 1.028 to 1.036
    ],
)
def test_medians_get_a_verdict_by_their_intervals(after_s, verdict):
    found = timed(measured(1e-3), measured(after_s, samples=700))
    assert (found.verdict, found.before_samples, found.after_samples) == (verdict, 10, 700)
    assert found.change == pytest.approx(after_s / 1e-3)
    assert found.change_interval.low == pytest.approx(after_s / 1e-3 * 0.998 / 1.002)
    assert (found.reason is None) == (verdict != "ambiguous")


def test_too_few_samples_are_ambiguous_however_far_apart():
    found = timed(measured(1e-3, samples=5), measured(9e-3))
    assert (found.verdict, found.change_interval) == ("ambiguous", None)
    assert found.reason == ("too few samples for an interval (5 before, 10 after): 6 are needed")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"l2": "warm"}, "L2 was dirty before and warm after"),
        ({"clock": "host clock", "l2": "host"}, "CUDA events before, host clock after"),
    ],
)
def test_times_of_different_kinds_are_not_compared(more, reason):
    before, after = record(measured=measured(1e-3)), record(measured=measured(1e-3, **more))
    found = pair(before, after)
    assert found.time is None
    assert found.notes == (f"times are not compared: {reason}",)


def test_times_of_the_host_are_no_kernels():
    before, after = (
        record(measured=measured(seconds, clock="host clock", l2="host")) for seconds in (1, 2)
    )
    found = compare(profile(before), profile(after))
    assert found.times == "not compared"
    assert found.pairs[0].notes[0].startswith("times are not compared: times of the host's CPU")


def test_the_slowest_verdict_stands_for_all():
    before = [record(label=name, measured=measured(1e-3)) for name in "ab"]
    after = [record(label=name, measured=measured(s)) for name, s in (("a", 1e-3), ("b", 2e-3))]
    assert compare(profile(*before), profile(*before)).times == "not slower"
    assert compare(profile(*before), profile(*after)).times == "slower"
    assert compare(profile(*after), profile(*before)).times == "not slower"


# Predicted times.


def test_any_change_of_a_predicted_time_is_one():
    found = pair(record(predicted=predicted(1e-3)), record(predicted=predicted(1.000001e-3)))
    assert found.predicted.verdict == "changed"
    assert found.predicted.change == pytest.approx(1.000001)
    assert found.changed == ()  # it is no count
    last_digit = pair(record(predicted=predicted(0.1 + 0.2)), record(predicted=predicted(0.3)))
    assert last_digit.predicted.verdict == "same"


def test_another_limiter_at_the_same_time_is_a_change():
    found = pair(
        record(predicted=predicted(1.0)), record(predicted=predicted(1.0, limiter="shared memory"))
    )
    assert found.predicted.verdict == "changed"
    assert (found.predicted.limiter_before, found.predicted.limiter_after) == (
        "issue",
        "shared memory",
    )


def test_predicted_times_need_one_device_and_one_state_of_l2():
    ours = record(predicted=predicted(1.0))
    assert pair(ours, ours, device=find_device("t4")).predicted is None
    warm = pair(ours, record(predicted=predicted(1.0, l2="warm")))
    assert warm.predicted is None
    assert warm.notes == ("predicted times are not compared: L2 was dirty before and warm after",)
    assert pair(ours, record()).notes == ("predicted in the first profile only",)


@pytest.mark.parametrize(
    ("after", "verdict"), [(1.0, "same"), (1.5, "changed"), (None, "not compared")]
)
def test_the_verdict_on_predictions_stands_beside_that_on_times(after, verdict):
    theirs = record(predicted=predicted(after) if after else None)
    found = compare(profile(record(predicted=predicted(1.0))), profile(theirs))
    assert (found.predictions, found.times) == (verdict, "not compared")
