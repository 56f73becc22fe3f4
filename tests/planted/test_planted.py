"""Planted bugs are found, where they are; correct kernels are not blamed."""

from concurrent.futures import Future
from functools import cache

import numpy as np
import pytest

from analysis.problem import parse_shape
from kernels.ladder import LADDER
from tests.planted.rungs import check_rung
from tests.rungs import every_rung
from tests.sampling import chosen_of, sampled, values_of
from tests.together import compiled_together
from toolkit.execution.rung_check import check_rung as checked_rung
from toolkit.execution.rung_check import sentence
from toolkit.execution.sanitizer import check
from toolkit.machine_code.compile import compile_cubin
from validation import ROOT, recordings
from validation.corpus.cases import CASES
from validation.corpus.compiled import compiled
from validation.corpus.sample import in_sample
from validation.planted.bugs import bugs, rung_part, without_barriers
from validation.planted.bugs import compiled as of_all

RECORDED = ROOT / "validation/planted/recorded/compute_sanitizer_sm_90.json"
RAGGED = parse_shape("160x136x36")  # no multiple of any tile
SMALL = parse_shape("32")


def compiled_of(bug, arch):
    made = Future()
    made.set_result(of_all(arch)[bug.name])
    return made


def check_bug(bug, arch):
    return bug.call(arch).check(compiled_of(bug, arch), lambda done, of: None)


BUGS = [(bug, "sm_90") for bug in bugs()]
# What synchronises is laid out in other instructions there.
ELSEWHERE = ("async", "syncwarp", "partial", "part_of_a_warp", "shuffle_from", "shuffle_down")
BUGS += [(bug, "sm_80") for bug in bugs() if any(part in bug.name for part in ELSEWHERE)]


@pytest.mark.parametrize(("bug", "arch"), BUGS, ids=[f"{bug.name}-{arch}" for bug, arch in BUGS])
def test_a_planted_bug_is_found_at_its_lines(bug, arch):
    found = check_bug(bug, arch).findings
    if bug.tool is None:
        assert [finding.message for finding in found] == []
        return
    ours = [x for x in found if (x.tool, x.kind) == (bug.tool, bug.kind)]
    assert ours, [finding.message for finding in found]
    if bug.lines:
        assert {access.line for finding in ours for access in finding.accesses} <= bug.lines


def planted(name):
    return next(bug for bug in bugs() if bug.name == name)


def test_a_race_in_an_inlined_function_names_the_calling_line():
    races = check_bug(planted("race_in_inlined_function"), "sm_90").findings
    reads = {a.location for x in races for a in x.accesses if a.what == "read"}
    assert reads == {"race_in_inlined_function.cu, line 8 (called from line 15)"}


def test_a_hazard_is_named_by_the_order_of_the_program():
    found = check_bug(planted("read_before_overwritten"), "sm_90").findings
    assert [(x.kind, [a.what for a in x.accesses]) for x in found] == [("WAR", ["read", "write"])]


def test_a_shuffle_names_both_lanes():
    (found,) = check_bug(planted("shuffle_from_outside_its_mask"), "sm_90").findings
    assert (
        "lane 0 (thread (0, 0, 0) of block (0, 0, 0)) reads lane 20, which its mask "
        in found.message
    )
    assert found.times == 16
    (found,) = check_bug(planted("shuffle_up_from_lanes_that_left"), "sm_90").findings
    assert (
        "lane 8 (thread (8, 0, 0) of block (0, 0, 0)) reads lane 4, which has left "
        in found.message
    )
    assert found.times == 8  # lanes 8 to 11 of two warps


def test_an_access_of_a_block_that_left_names_both_blocks():
    (found,) = check_bug(planted("cluster_exit_of_one_block"), "sm_90").findings
    access, end = found.accesses
    assert (access.what, end.what, end.block) == ("atomic", "exit", (0, 0, 0))
    assert access.block[0] > 0
    assert "of shared memory at byte 0 of block (0, 0, 0)" in found.message


def test_a_race_in_global_memory_names_the_block_of_each_access():
    races = check_bug(planted("sum_of_blocks_without_atomics"), "sm_90").findings
    first, second = races[0].accesses
    assert f" by thread {first.thread} of block {first.block}, " in races[0].message
    assert f" by thread {second.thread} of block {second.block}, " in races[0].message


def test_a_race_in_a_cluster_names_the_blocks_and_whose_memory_it_is():
    found = check_bug(planted("cluster_store_not_ordered"), "sm_90")
    race = next(x for x in found.findings if x.kind == "RAW")
    write, read = race.accesses
    assert {write.block, read.block} == {(0, 0, 0), (1, 0, 0)}
    assert f"of block {write.block}: write by thread" in race.message
    assert race.message.endswith("no cluster barrier between them")
    assert found.notes == (
        "in shared memory, racecheck compared only accesses of different blocks of a cluster, and "
        "initcheck did not run",
    )


def test_a_simulation_notes_the_unwritten_reads_that_are_found():
    bug = planted("histogram_never_zeroed")
    call, made = bug.call("sm_90"), compiled_of(bug, "sm_90")
    note, of_random_bins = call.run(made, lambda done, of: None).execution.notes
    found = call.check(made, lambda done, of: None).findings
    assert [(x.kind, x.accesses[0].what, x.accesses[0].line) for x in found] == [
        ("uninitialized read", "atomic", 9)
    ]
    assert "times where no thread had written, first 4 bytes" in note
    assert "histogram_never_zeroed.cu, line 9: ATOMS" in note
    assert note.endswith("; `check` says which lines use such a value")
    assert "holds random numbers" in of_random_bins


def test_there_are_enough_of_them():
    wrong = [bug for bug in bugs() if bug.tool is not None]
    assert len(wrong) >= 24
    assert {bug.tool for bug in wrong} == {"memcheck", "racecheck", "synccheck", "initcheck"}


def code_of(variant, arch):
    return compile_cubin(
        variant.source,
        name=variant.file,
        kernel=variant.entry,
        arch=arch,
        defines=variant.macros(variant.defaults),
    )


def shape_of(variant):
    return SMALL if variant.rung == 1 else RAGGED


RUNGS = [(variant, arch) for variant in LADDER for arch in (86, 90) if variant.runs_on(arch)]


@pytest.mark.parametrize(
    ("variant", "arch"),
    chosen_of(
        [
            pytest.param(variant, f"sm_{arch}", id=f"{variant.name}-sm_{arch}")
            for variant, arch in RUNGS
        ],
        lambda case: in_sample(case[0].file, case[1]),
    ),
)
def test_a_rung_is_not_blamed(variant, arch):
    checked = check_rung(code_of(variant, arch), variant, shape_of(variant), variant.defaults)
    assert checked.findings == ()
    assert checked.executed_blocks == checked.blocks


@every_rung
def test_the_line_of_a_profile_blames_no_rung(variant):
    code = code_of(variant, "sm_90")
    said = sentence(checked_rung(code, variant, variant.defaults, seed=1), variant)
    assert said.startswith("sanitizer: no errors: memcheck, racecheck, synccheck, initcheck on ")


LAST_OF_RUNG = {variant.name: name for name, variant, _ in without_barriers()}


def is_quick(deleted):
    """Both barriers of one rung and one of each other that compiles fast."""
    name, variant, _ = deleted
    if variant.tiling(variant.defaults).asynchronous:
        return False
    return variant.name == "tiled" or name == LAST_OF_RUNG[variant.name]


DELETED = chosen_of([pytest.param(*x, id=x[0]) for x in without_barriers()], is_quick)


@cache
def compiled_without_barriers():
    """The code of these for sm_90, by name."""
    chosen = [values_of(deleted) for deleted in DELETED]
    cubins = compiled_together([rung_part(variant, text) for _, variant, text in chosen], "sm_90")
    return dict(zip([name for name, _, _ in chosen], cubins, strict=True))


@pytest.mark.parametrize(("name", "variant", "source"), DELETED)
def test_a_deleted_barrier_is_found(name, variant, source):
    code = compiled_without_barriers()[name]
    found = check_rung(code, variant, shape_of(variant), variant.defaults).findings
    kinds = {x.kind for x in found if x.tool == "racecheck"}
    assert kinds & {"RAW", "WAR"}, name


@pytest.mark.parametrize(
    "case", sampled([pytest.param(x, id=x.name) for x in CASES], key=lambda x: x.kernel)
)
def test_a_kernel_of_the_corpus_is_not_blamed(case):
    arch = "sm_90"
    checked = check(
        compiled(case, arch),
        grid=case.grid,
        block=case.block,
        dynamic_shared_bytes=case.dynamic_shared_bytes,
        arguments=case.make(np.random.default_rng(1)),
    )
    assert [finding.message for finding in checked.findings] == []


needs_recording = pytest.mark.skipif(
    not RECORDED.exists(), reason="recorded on a GPU by record_sanitizer.py"
)


def recorded(name):
    """The errors of each tool."""
    kernels = recordings.read(RECORDED)["kernels"]
    return {tool: said["errors"] for tool, said in kernels[name].items()}


@needs_recording
@pytest.mark.parametrize("bug", [x for x in bugs() if x.is_recorded], ids=lambda bug: bug.name)
def test_compute_sanitizer_agrees(bug):
    """Its tool reports what the file says that it sees, and no tool anything where that is none."""
    errors = recorded(bug.name)
    if bug.nvidia != "none":
        assert errors[bug.nvidia]
    else:
        assert not any(errors.values())


# compute-sanitizer was not run on the rungs on tensor cores yet
COMPARED = [
    name
    for name, variant, _ in without_barriers()
    if variant.tiling(variant.defaults).tensor is None
]


@needs_recording
def test_compute_sanitizer_agrees_on_most():
    """Planted bugs, and barriers deleted from rungs, that the same tool of both reports."""
    same = [bug.name for bug in bugs() if bug.tool is not None and bug.nvidia == bug.tool]
    same += [name for name in COMPARED if recorded(name)["racecheck"]]
    assert len(same) >= 24


@needs_recording
@pytest.mark.parametrize("name", COMPARED)
def test_compute_sanitizer_finds_the_deleted_barriers_too(name):
    """All but one, of which it says nothing."""
    assert bool(recorded(name)["racecheck"]) is (name != "tiled without the barrier of line 52")
