"""Configurations in the order of their expected times: who is predicted, and who cannot run."""

from dataclasses import replace

import pytest

from analysis.devices import find_device
from analysis.errors import CompileError, InputError, LaunchError, UnsupportedError
from analysis.problem import parse_shape
from tests.refusals import refusal
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.launch.progress import Progress
from toolkit.profiling import in_theory
from toolkit.profiling.record import planned
from toolkit.tuning.ranking import estimate, ranked
from toolkit.tuning.space import parse_space

H200 = find_device("h200")
SMALL = parse_shape("64")


def rank(text, device=H200, most=9, shape=SMALL):
    selections = parse_space(text).selections
    return ranked(selections, shape, device, seed=1, most=most, progress=Progress())


def by_label(found):
    return {one.label: one for one in found}


def test_all_are_predicted_and_stand_in_the_order_of_their_times():
    found = rank("tiled")
    times = [one.predicted.time_s for one in found if one.predicted]
    assert len(times) == len(found) == 3
    assert times == sorted(times)
    assert all(one.resources and one.occupancy for one in found)


def test_closed_forms_choose_who_is_predicted_where_there_are_too_many():
    found = rank("tiled", most=2)
    assert [bool(one.predicted) for one in found] == [True, True, False]
    by_estimate = sorted(found, key=lambda one: one.estimate_s)
    assert found[-1] == by_estimate[-1]
    assert found[-1].status == "left out"
    assert found[-1].reason == "not predicted: by closed forms it is number 3 of 3"


def test_an_estimate_is_the_sum_of_the_ceilings_for_whole_rounds_of_sms():
    selection = parse_space("tiled:tile=32").selections[0]
    # 12 × 11 blocks fill 132 SMs once; one more row of blocks takes a second round
    full, more = parse_shape("384x352x64"), parse_shape("416x352x64")
    exact = planned(selection, full, H200)
    assert estimate(exact, H200) == pytest.approx(sum(c.time_s for c in exact.theory.ceilings))
    ragged = planned(selection, more, H200)
    rounds = 2 * 132 / (13 * 11)
    assert estimate(ragged, H200) == pytest.approx(
        rounds * sum(c.time_s for c in ragged.theory.ceilings)
    )


def test_blocks_of_too_many_threads_are_left_out_without_being_compiled():
    small = replace(H200, max_threads_per_block=256)
    found = by_label(rank("tiled", small))
    assert found["tiled"].status == "left out"
    assert found["tiled"].resources is None
    assert found["tiled"].reason == f"1024 threads per block, {H200.name} takes 256"
    assert found["tiled:tile=16"].status == "ok"


def test_what_registers_do_not_allow_is_left_out_with_the_reason():
    few = replace(H200, registers_per_sm=16_384)  # 1,024 threads of 32 registers take 32,768
    found = by_label(rank("tiled", few))
    assert found["tiled"].status == "left out"
    assert "more than the 16384 of one SM" in str(found["tiled"].reason)


def test_where_no_configuration_runs_the_error_says_what_happened_to_one():
    tiny = replace(H200, max_threads_per_block=32)
    said = refusal(InputError, rank, "tiled", tiny)
    assert said.startswith(f"none of 3 configurations runs on {H200.name}: tiled")
    assert said.endswith(f"threads per block, {H200.name} takes 32")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (LaunchError("line 3: thread 7 reads beyond A"), "failed", "simulated: line 3: thread 7"),
        (UnsupportedError("no HGMMA"), "ok", "not simulated: no HGMMA"),
    ],
)
def test_a_simulation_that_fails_costs_its_configuration_one_that_is_lacking_only_its_time(
    monkeypatch, error, status, said
):
    real = LadderSimulator.simulate

    def simulate(self, cubin, selection, residence):
        if selection.parameters["tile"] == 16:
            raise error
        return real(self, cubin, selection, residence)

    monkeypatch.setattr(LadderSimulator, "simulate", simulate)
    found = by_label(rank("tiled"))["tiled:tile=16"]
    assert found.status == status
    assert found.predicted is None
    assert said in (found.reason or " ".join(found.notes))


def test_candidates_without_a_prediction_stand_behind_those_that_have_one(
    monkeypatch,
):
    real = LadderSimulator.simulate

    def simulate(self, cubin, selection, residence):
        if selection.parameters["tile"] == 32:
            raise UnsupportedError("no HGMMA")
        return real(self, cubin, selection, residence)

    monkeypatch.setattr(LadderSimulator, "simulate", simulate)
    assert [one.label for one in rank("tiled")][-1] == "tiled"


def test_a_configuration_that_does_not_compile_has_failed_and_the_others_go_on(
    monkeypatch,
):
    real = in_theory.compile_for

    def compile_for(device, selection):
        if selection.parameters["tile"] == 8:
            raise CompileError("04_tiled.cu, line 9: a bad day")
        return real(device, selection)

    monkeypatch.setattr(in_theory, "compile_for", compile_for)
    found = by_label(rank("tiled"))
    assert found["tiled:tile=8"].status == "failed"
    assert found["tiled:tile=8"].reason == "04_tiled.cu, line 9: a bad day"
    assert sum(one.status == "ok" for one in found.values()) == 2


def test_a_wrong_result_on_the_simulator_is_never_measured(
    monkeypatch,
):
    real = LadderSimulator.simulate

    def simulate(*arguments):
        found = real(*arguments)
        return replace(found, check=replace(found.check, passed=False, worst_ratio=3.0))

    monkeypatch.setattr(LadderSimulator, "simulate", simulate)
    with pytest.raises(InputError, match=r"simulated: wrong result: .* 3 times its bound"):
        rank("tiled:tile=8")
