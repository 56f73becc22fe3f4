"""Two launches of `simulate --json` beside each other."""

from dataclasses import replace

import pytest

from analysis.comparison.counts import Outcome
from analysis.comparison.runs import Setting, compare_launches
from analysis.errors import InputError
from analysis.records.counters import MODELLED
from analysis.records.launch import LaunchRecord
from analysis.records.profile import LineCounters
from analysis.timing.predicted import LineCost
from tests.records_by_hand import predicted, resources
from tests.refusals import refusal

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
BULK = "bulk__sectors_read.sum"
DRAM = "dram__bytes_read.sum"
RESOURCES = resources(architecture="sm_90", registers_per_thread=14)


def line(text, wavefronts, number=3):
    return LineCounters(file="t.cu", line=number, text=text, counters={WAVEFRONTS: wavefronts})


BEFORE = LaunchRecord(
    source="t.cu",
    kernel="transpose",
    grid=(32, 32, 1),
    block=(32, 32, 1),
    dynamic_shared_bytes=0,
    arguments=("f32[64]", "i32=8"),
    defines={"WIDTH": "32"},
    options=("-lineinfo",),
    seed=1,
    resources=RESOURCES,
    basis="all 1,024 blocks executed",
    counters={WAVEFRONTS: 1024, DRAM: 4_000_000},
    lines=(line("out[i] = tile[j][i];", 1024),),
    predicted=None,
    device="h200",
)


def pair_of(found):
    (pair,) = found.pairs
    return pair


def edited(**changes):
    return replace(BEFORE, **changes)


def test_equal_launches_differ_in_nothing():
    found = compare_launches(BEFORE, BEFORE)
    # blocks, threads, dynamic shared bytes; registers, static shared, local bytes; two counters
    pair = pair_of(found)
    assert pair.compared == 8
    assert (pair.counts, pair.changed, pair.notes, pair.lost) == ((), (), (), ())
    assert (found.counts, found.predictions) == (Outcome.SAME, Outcome.NOT_COMPARED)
    assert (found.notes, found.environment, found.only_before, found.only_after) == ((),) * 4


def test_a_changed_counter_names_its_line():
    after = edited(
        counters={WAVEFRONTS: 32, DRAM: 4_000_000}, lines=(line("out[i] = tile[j][i];", 32, 9),)
    )
    (change,) = pair_of(compare_launches(BEFORE, after)).changed
    assert (change.grade, change.name, change.before, change.after) == (
        "simulated",
        WAVEFRONTS,
        1024,
        32,
    )
    (where,) = change.lines
    assert (where.line_before, where.line_after, where.before, where.after) == (3, 9, 1024, 32)


def test_resources_and_geometry_are_counts():
    after = edited(resources=replace(RESOURCES, registers_per_thread=15), block=(32, 8, 1))
    changed = pair_of(compare_launches(BEFORE, after)).changed
    assert [(one.name, one.before, one.after) for one in changed] == [
        ("threads per block", 1024, 256),
        ("registers per thread", 14, 15),
    ]


def test_what_is_modelled_for_two_devices_is_not_compared():
    assert DRAM in MODELLED
    before = edited(predicted=predicted(1e-5))
    found = compare_launches(
        before, edited(predicted=predicted(2e-5), device="t4", counters={WAVEFRONTS: 1024, DRAM: 1})
    )
    pair = pair_of(found)
    assert (pair.counts, pair.predicted) == ((), None)
    assert pair.compared == 7
    assert pair.lost == (f"missing now (simulated): {DRAM}: give --device h200",)
    assert found.notes == (
        "the devices differ, h200 before and t4 after: neither modelled traffic nor times are "
        "compared",
    )


@pytest.mark.parametrize("device", [None, "h100-sxm"])
def test_counters_of_the_first_device_are_lost_without_it(device):
    found = compare_launches(BEFORE, edited(device=device, counters={WAVEFRONTS: 1024}))
    assert pair_of(found).lost == (f"missing now (simulated): {DRAM}: give --device h200",)
    back = compare_launches(edited(device=None, counters={WAVEFRONTS: 1024}), BEFORE)
    assert pair_of(back).lost == ()


def test_code_of_two_architectures_is_refused():
    assert "sm_90 and sm_86: simulate both with the same --arch" in refusal(
        InputError,
        compare_launches,
        BEFORE,
        edited(resources=replace(RESOURCES, architecture="sm_86")),
    )


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"kernel": "other"}, ("kernel", "transpose", "other")),
        ({"arguments": ("f32[128]", "i32=8")}, ("arguments", "f32[64], i32=8", "f32[128], i32=8")),
        ({"defines": {}}, ("defines", "WIDTH=32", "")),
        ({"options": ("-g",)}, ("options", "-lineinfo", "-g")),
        ({"heap_bytes": 4096}, ("heap", "", "4,096 bytes")),
        ({"constants": "mine.json"}, ("constants", "", "mine.json")),
        ({"clock_mhz": 1000.5}, ("clock", "", "1,000.5 MHz")),
        ({"allow_out_of_bounds": True}, ("accesses beyond all arrays", "errors", "allowed")),
        ({"basis": "4 of 1,024"}, ("executed blocks", "all 1,024 blocks executed", "4 of 1,024")),
    ],
)
def test_what_else_differs_is_said(changes, setting):
    found = compare_launches(BEFORE, edited(**changes))
    name, before, after = setting
    assert found.environment == (Setting(name=name, before=before, after=after),)
    assert (found.notes, pair_of(found).notes) == ((), ())


def test_doubts_about_a_time_are_said():
    after = edited(uncertainty="Do not trust the time: a loop ended")
    assert compare_launches(BEFORE, after).notes == (
        "the second launch: Do not trust the time: a loop ended",
    )


def test_other_random_content_is_noted():
    (note,) = compare_launches(BEFORE, edited(seed=2)).notes
    assert note.startswith("the random content differs")


RANDOM = (
    *("f32[64]", "f32[64]=random", "x=f32[8,8]", "struct[4]:i32,f32[3]=1", "x=struct[4]:i32"),
    *("tex:f32[512,512],linear,clamp", "image=tex:u8x4[64,64],float", "surf:f32[8,8]"),
)
GIVEN = (
    *("f32[64]=zeros", "x=f32[8,8]=ones", "n=4", "i32=4", "in[1].npy", "struct:i32=1,f32=2"),
    *("tex:f32[8,8]=zeros,linear", "tex:u8x4[64,64]=a.npy,float", "struct[4]:i32=0,f32[3]=1"),
)


@pytest.mark.parametrize("argument", RANDOM)
def test_random_content_of_any_argument_is_noted(argument):
    before = edited(arguments=("i32=4", argument))
    (note,) = compare_launches(before, replace(before, seed=2)).notes
    assert note.startswith("the random content differs")


@pytest.mark.parametrize("argument", GIVEN)
def test_seeds_do_not_matter_where_nothing_is_random(argument):
    before = edited(arguments=(argument,))
    assert compare_launches(before, replace(before, seed=2)).notes == ()


def test_bulk_copies_that_came_are_a_change():
    after = edited(
        counters={**BEFORE.counters, BULK: 512}
    )  # without such copies nobody counts them
    for sides in ((BEFORE, after), (after, BEFORE)):
        (change,) = pair_of(compare_launches(*sides)).changed
        assert (change.name, {change.before, change.after}) == (BULK, {0, 512})


def test_launches_without_a_common_counter_are_refused():
    assert "no counter in common" in refusal(
        InputError, compare_launches, BEFORE, edited(counters={})
    )


def test_lines_of_inlined_functions_are_compared_with_their_like_alone():
    costs = [LineCost(file="t.cu", line=3, time_s=time_s) for time_s in (1e-6, 3e-6)]
    times = [predicted(1e-5, lines=(one,)) for one in costs]
    at_calls = edited(inner_lines=False, predicted=times[0])
    after = edited(
        inner_lines=True, lines=(line("", 32),), predicted=times[1], counters={WAVEFRONTS: 32}
    )
    found = compare_launches(at_calls, after)
    (note,) = found.notes
    assert note.startswith("source lines are not compared: only the second launch counts inlined")
    assert pair_of(found).line_costs == ()
    assert [one.lines for one in pair_of(found).changed] == [()]
    for known in (False, None):  # records of earlier versions do not say it
        like = compare_launches(at_calls, replace(after, inner_lines=known))
        assert like.notes == ()
        assert pair_of(like).changed[0].lines
        assert pair_of(like).line_costs


def test_the_command_of_a_record_has_all_options():
    record = edited(options=("-lineinfo", "-use_fast_math"), inner_lines=True, constants="own.json")
    shared = "-g 32,32,1 -b 32,32,1 -a 'f32[64]' -a i32=8 -D WIDTH=32 --option -use_fast_math"
    asked = f"t.cu -k transpose {shared} --constants own.json --seed 1"
    head = f"python -m toolkit simulate {asked}"
    assert record.command == f"{head} --device h200 --inner-lines"
    assert replace(record, device=None).command == f"{head} --arch sm_90 --inner-lines"
    other = replace(record, device="a100-40gb", inner_lines=False)
    assert other.command == f"{head} --device a100-40gb --arch sm_90"
    measured = replace(record, samples_s=(1e-5,), inner_lines=False)
    assert measured.command == f"python -m toolkit run {asked}"
    assert replace(record, device=None, source="t.cubin").command.endswith("--seed 1 --inner-lines")


def test_measured_launches_need_no_counter():
    before = edited(counters={}, lines=(), basis=None, samples_s=(1e-5,) * 9)
    found = compare_launches(before, replace(before, samples_s=(2e-5,) * 9))
    assert (found.times, found.counts) == (Outcome.SLOWER, Outcome.SAME)
    said = refusal(InputError, compare_launches, before, replace(before, samples_s=()))
    assert "no counter in common" in said


def test_a_time_that_one_side_lacks_or_that_has_other_constants_is_noted():
    ours = edited(predicted=predicted(1e-3))
    others = edited(predicted=replace(predicted(1e-3), constants="d"))
    (note,) = pair_of(compare_launches(ours, others)).notes
    assert note == "predicted with constants of c before, of d after"
    for sides, which in (((BEFORE, ours), "second"), ((ours, BEFORE), "first")):
        (note,) = pair_of(compare_launches(*sides)).notes
        assert note == f"predicted in the {which} launch only"
