"""Predictions of a made-up product: sums, bounds, lines and what happens when a number changes."""

import os
import signal
import time
from dataclasses import fields, replace
from functools import cache
from itertools import pairwise
from threading import Event, Thread, Timer
from types import SimpleNamespace

import pytest

from analysis.devices import find_device
from analysis.errors import InputError
from analysis.hardware.sm_constants import WITH_LATENCY, constants_for
from analysis.l2_state import L2State
from analysis.sm import UNLIMITED, Kind, Unit, run, side_by_side
from analysis.timing import costs
from analysis.timing import predict as timing
from analysis.timing.blocks_of_sm import OneSm, blocks_to_run, most_blocks
from analysis.timing.effects import REMOVABLE, Scene
from analysis.timing.model_runs import model_runs
from analysis.timing.modelled_sm import ModelledSm, with_clocks
from analysis.timing.predicted import Effect, Explanation
from analysis.timing.repetitions import shortened
from analysis.timing.samples import STEADY, AlongK, Repetitions, Whole
from analysis.timing.sm_totals import SmTotals
from analysis.timing.work import Exchanged, Work
from analysis.traffic.l2 import WINDOWS
from tests.analysis.streams_by_hand import FULL, code, streams
from tests.sampling import exhaustive

H200 = find_device("h200")


def predict(work, device):
    """Prediction that is explained by its effects."""
    return timing.predict(work, device, Explanation.EFFECTS)


def timed(work, device):
    """Prediction without an explanation, in a fraction of the time."""
    return timing.predict(work, device, Explanation.NONE)


DEPTH, WARPS, MULTIPLY_ADDS = 16, 8, 8

LOAD, BARRIER, SHARED, FMA, STORE, EXIT = range(6)
CODE = code(
    {"unit": Unit.LSU, "kind": Kind.LOAD, "write_barrier": 0, "operands": 2, "registers": 1},
    {"kind": Kind.BARRIER, "wait": 1},
    {
        "unit": Unit.LSU,
        "kind": Kind.SHARED_LOAD,
        "write_barrier": 1,
        "operands": 1,
        "registers": 1,
        "free_clocks": 1,
    },
    {"unit": Unit.FMA, "stall": 2, "source": [2, 3, 5], "wait": 2},
    {"unit": Unit.LSU, "kind": Kind.STORE, "operands": 3},
    {"kind": Kind.EXIT},
)


def warp(block, number, k, line_of=int):
    """Phases of a tiled product: a load, a barrier, two-way conflicts and multiply-adds."""
    steps = []
    for phase in range(k // DEPTH):
        line = ((block * WARPS + number) << 16) + line_of(phase)
        steps += [(LOAD, 1, 0, [(line, FULL)]), BARRIER]
        steps += [(SHARED, 2), *[FMA] * MULTIPLY_ADDS] * DEPTH
        steps.append(BARRIER)
    return [*steps, (STORE, 1, 0, [(1 << 40 | block * WARPS + number, FULL)]), EXIT]


def sample_of(at, k):
    """Streams by their K: those of the launch, or two smaller ones."""
    if len(at) > 1:
        return AlongK(at=at, k=k)
    return Whole(streams=next(iter(at.values())))


def modelled_sm(asked, device=H200):
    return ModelledSm(work=asked, device=device, constants=constants_for("sm_90"))


@cache
def two_blocks(k):
    return streams([[warp(b, w, k) for w in range(WARPS)] for b in range(2)])


def work(*, k=512, samples=(64, 128), **changes):
    blocks = changes.get("blocks", 2000)
    read = blocks * WARPS * k // DEPTH * 128.0
    facts = {
        "code": CODE,
        "sample": sample_of({at: two_blocks(at) for at in samples}, k),
        "blocks": blocks,
        "blocks_per_sm": 4,
        "shared_bytes_per_block": 1 << 14,
        "flop": blocks * WARPS * k * MULTIPLY_ADDS * 64,
        "l2_read_bytes": read,
        "l2_write_bytes": blocks * WARPS * 128.0,
        "dram_read_bytes": read / 8,
        "dram_write_bytes": blocks * WARPS * 64.0,
    }
    return Work(**(facts | changes))


@pytest.fixture(scope="module")
def usual():
    return predict(work(), H200)


def test_a_time_is_predicted_at_the_clock_that_the_device_holds():
    t4 = find_device("t4")
    boosted = replace(t4, sustained_clock_hz=None)
    of_clean_l2 = work(l2=L2State.CLEAN)  # a dirty one delays the first request, at any clock
    usual, slower = timed(of_clean_l2, boosted), predict(of_clean_l2, t4)
    assert (usual.clock_hz, slower.clock_hz) == (1590e6, 585e6)
    # DRAM is not slower with the SMs: a little less than 1,590 / 585
    assert slower.time_s == pytest.approx(usual.time_s * 1590 / 585, rel=0.05)
    assert sum(slower.parts.values()) == pytest.approx(slower.time_s)
    assert (
        slower.basis == usual.basis + ", at the 585 MHz that it holds under load instead of 1,590"
    )


def test_turings_shared_memory_takes_two_clocks_for_a_wavefront():
    narrow = find_device("t4")
    wide = replace(narrow, shared_bytes_per_clock_per_sm=128)
    clocks = {}
    for device in (narrow, wide):
        bounds = {one.name: one.time_s for one in timed(work(), device).bounds}
        of_shared = bounds["shared memory"] - bounds["L1"]  # L1 passes the same data path
        clocks[device.shared_bytes_per_clock_per_sm] = of_shared * device.held_clock_hz
    wavefronts = 2 * WARPS * 512 * most_blocks(2000, narrow.sm_count, 4)  # two-way conflicts
    assert clocks[64] == pytest.approx(2 * wavefronts)  # a barrier that opens takes none there
    assert clocks[128] > wavefronts


def test_what_dram_alone_costs_is_its_bandwidth():
    read = work().l2_read_bytes
    replayed = timed(work(dram_read_bytes=read), H200)
    floored = predict(work(dram_read_bytes=200 * read), H200)
    assert floored.time_s > 10 * replayed.time_s  # SMs read as much of DRAM in both: all they ask
    assert floored.parts[Effect.DRAM_BANDWIDTH] >= 0.95 * (floored.time_s - replayed.time_s)


# How many blocks the busiest SM runs.


@pytest.mark.parametrize(
    ("blocks", "sms", "per_sm", "expected"),
    [
        (1, 132, 4, 1),
        (132, 132, 4, 1),
        (133, 132, 4, 2),  # dealt out in turn
        (528, 132, 4, 4),
        (1056, 132, 4, 8),  # two whole rounds
        (529, 132, 4, 5),  # one is left, and somebody runs it
        (1055, 132, 4, 8),
    ],
)
def test_the_busiest_sm(blocks, sms, per_sm, expected):
    assert most_blocks(blocks, sms, per_sm) == expected


# What was measured of rungs 2 to 4, two blocks to an SM: a launch takes as long as one of the next
# multiple of 132 blocks.
@pytest.mark.parametrize(
    ("blocks", "expected"), [(264, 2), (275, 3), (352, 3), (396, 3), (407, 4), (528, 4), (539, 5)]
)
def test_blocks_that_end_apart_are_dealt_out_one_by_one(blocks, expected):
    assert most_blocks(blocks, 132, 2, finish_at_different_times=True) == expected
    assert most_blocks(blocks, 132, 2) >= expected
    asked = replace(work(), blocks=blocks, blocks_per_sm=2)
    assert replace(asked, finish_at_different_times=True).most_blocks(H200) == expected
    assert asked.most_blocks(H200) == most_blocks(blocks, 132, 2)


def test_who_ends_a_tile_waits_for_the_sums_of_others():
    def clocks(device=H200, **sums):
        asked = work(exchanged=Exchanged(**sums))
        return modelled_sm(asked, device).machine.flag_clocks

    assert clocks() == 0
    c = constants_for("sm_90")
    one = clocks(left_bytes=65536.0, read_back_bytes=65536.0)  # nobody else stores
    assert one == pytest.approx(65536 / c.most_write_bytes_per_clock + c.flag_latency, abs=1)
    slow = replace(H200, dram_bytes_per_s=H200.dram_bytes_per_s / 2)
    everyone = clocks(slow, left_bytes=65536.0, read_back_bytes=264 * 65536.0)
    ample = replace(H200, dram_bytes_per_s=1e14)
    stored = 2 * 65536 / c.write_bytes_per_clock
    assert clocks(ample, left_bytes=65536.0, read_back_bytes=264 * 65536.0) == pytest.approx(
        stored + c.flag_latency, abs=1
    )
    # what was dirty in L2 makes room at the pace of DRAM: one of two lines at first
    asked = work()
    come = asked.dram_read_bytes + asked.l2_write_bytes
    written = asked.dram_write_bytes + min(0.6 * H200.l2_bytes, 0.5 * come)
    fewer = 2 * min(asked.dram_read_bytes, written) / (asked.dram_read_bytes + written)
    reached = c.dram_efficiency * (1 - 0.07 * fewer)  # less where DRAM reads and writes
    rate = slow.dram_bytes_per_s * reached / H200.held_clock_hz
    made_room = written / come * 264 * 65536 / rate
    assert made_room > stored
    assert everyone == pytest.approx(made_room + c.flag_latency, abs=1)
    slower = replace(H200, dram_bytes_per_s=H200.dram_bytes_per_s / 4)
    others = clocks(slower, left_bytes=65536.0, read_back_bytes=264 * 65536.0)
    assert others - c.flag_latency == pytest.approx(2 * (everyone - c.flag_latency), abs=2)


# The prediction.


def test_the_parts_add_up_to_the_time(usual):
    assert sum(usual.parts.values()) == pytest.approx(usual.time_s, rel=1e-9)
    assert usual.parts[Effect.LAUNCH] == usual.launch_s
    assert not usual.lines  # these take longer
    assert usual.time_s == pytest.approx(usual.cycles / usual.clock_hz + usual.launch_s)
    assert usual.flop_per_s == work().flop / usual.time_s


@pytest.mark.parametrize(("free", "share"), [(1, 7 / 8), (4, 1 / 2), (8, 0)])
def test_conflicts_are_a_part_of_the_time(free, share):
    # eight wavefronts, of which so many are free, keep the load/store unit busy throughout
    samples = {k: streams([[[*[(SHARED, 8), FMA] * k, EXIT]] * WARPS] * 2) for k in (64, 128)}
    code = CODE.copy()
    code["free_clocks"] = free
    found = predict(work(code=code, dram_read_bytes=0.0, sample=AlongK(at=samples, k=512)), H200)
    conflicts_s = found.parts.get(Effect.CONFLICTS, 0.0)
    assert conflicts_s == pytest.approx(share * found.time_s, abs=0.1 * found.time_s)


def test_the_limiter_is_the_largest_bound(usual):
    bounds = {bound.name: bound.time_s for bound in usual.bounds}
    assert all(time_s > 0 for time_s in bounds.values())
    first, second = sorted(bounds, key=lambda name: -bounds[name])[:2]
    assert (usual.limiter, usual.next_limiter) == (first, second)
    run_s = usual.time_s - usual.launch_s
    assert usual.limiter_share == pytest.approx(min(1, bounds[first] / run_s))
    for name in ("issue", "FP32", "shared memory", "L1"):  # what the replayed SM itself did
        assert bounds[name] <= run_s


def test_bounds_are_what_was_replayed(usual):
    bounds = {bound.name: bound for bound in usual.bounds}
    per_block = WARPS * (512 // DEPTH * (DEPTH * (1 + MULTIPLY_ADDS) + 3) + 2)
    blocks = most_blocks(2000, 132, 4)
    clocks = per_block * blocks / 4  # schedulers
    assert bounds["issue"].time_s == pytest.approx(clocks / H200.boost_clock_hz)
    barriers = 2 * 512 // DEPTH * blocks  # 4 clocks each, half of them of shared memory
    wavefronts = 2 * WARPS * 512 * blocks + 2 * barriers
    l1 = bounds["L1"].time_s * H200.boost_clock_hz
    assert 0 < l1 < wavefronts  # they pass the same data path
    assert bounds["shared memory"].time_s == pytest.approx((wavefronts + l1) / H200.boost_clock_hz)


def test_the_unit_with_most_of_the_data_path_is_bound_by_all_of_it():
    nothing = SmTotals(**{one.name: 0.0 for one in fields(SmTotals)})
    total = replace(nothing, load_store=100.0, shared=60.0, l1=40.0)
    assert (total.bound_by_shared, total.bound_by_l1) == (100, 40)
    total = replace(total, shared=40.0, l1=60.0)
    assert (total.bound_by_shared, total.bound_by_l1) == (40, 100)
    copies_past_l1 = replace(total, l1=120.0)  # a path of their own
    assert (copies_past_l1.bound_by_shared, copies_past_l1.bound_by_l1) == (40, 120)
    products_that_read = replace(total, shared=130.0)
    assert (products_that_read.bound_by_shared, products_that_read.bound_by_l1) == (130, 60)


def test_the_line_along_k_meets_what_is_replayed_at_k_itself():
    """Nothing here changes along K: two small values say what K itself does.

    But for what blocks that get in each other's way make of small differences, either way. L2 is
    clean: a dirty one delays the first request, which lets blocks start apart from each other.
    """
    off = []
    for k in (256, 512):
        smaller, whole = (
            work(k=k, samples=samples, l2=L2State.CLEAN) for samples in ((k // 4, k // 2), (k,))
        )
        extended, itself = timed(smaller, H200).cycles, timed(whole, H200).cycles
        off.append(extended / itself - 1)
    assert max(map(abs, off)) < 0.02


@pytest.mark.parametrize(
    ("of_sm", "per_sm", "facts", "expected"),
    [
        (1, 2, {}, (1,)),
        (8, 2, {}, (2, 6)),
        (9, 2, {}, (3, 7)),
        (7, 2, {}, (7,)),  # two rounds behind the first ones are all
        (16, 4, {}, (4, 12)),
        (8, 2, {"unlike": 3}, (4, 6)),  # from the round on that has the last unlike one
        (16, 2, {"waves": 4}, (2, 10)),
        (10, 2, {"waves": 4}, (10,)),
        (16, 2, {"waves": 4, "unlike": 3}, (4, 6)),
    ],
)
def test_two_numbers_of_blocks_are_rounds_apart(of_sm, per_sm, facts, expected):
    assert blocks_to_run(of_sm, per_sm, **{"waves": 2} | facts) == expected


def test_the_line_over_blocks_meets_a_run_of_all_of_them():
    asked = work(k=64, samples=(64,), blocks=4000, dram_read_bytes=0.0)
    sm = modelled_sm(asked)
    assert len(sm.numbers_of_blocks) == 2
    jobs = [n % 2 for n in range(sm.blocks)]
    whole, total = run(sm.code, asked.sample.streams, jobs, sm.machine), model_runs(sm, []).total
    # blocks of 4 phases: the first round is in step, later ones are less so
    assert total.clocks == pytest.approx(whole.clocks, rel=0.05)
    assert total.issued == pytest.approx(whole.issued)


def one_sm(*orders, **changes):
    facts = {
        "blocks": len(orders[-1]),
        "orders": orders,
        "further": 0.0,
        "rounds": len(orders[-1]) / 4,
        "relative_work": 1.0,
        "relative_reads": 1.0,
    }
    return work(k=64, samples=(64,), blocks=8 * 132, of_sm=OneSm(**(facts | changes)))


def test_an_sm_of_which_all_blocks_are_named_is_replayed_as_usual():
    usual = predict(work(k=64, samples=(64,), blocks=8 * 132), H200)
    assert predict(one_sm((0, 1) * 4), H200) == usual
    assert "replayed on a model of one SM: 8 of its 8 blocks, 4 resident at once" in usual.basis


def test_the_order_of_unlike_blocks_matters():
    """A long block that starts last runs alone at the end."""
    blocks = [[warp(b, w, at) for w in range(WARPS)] for b, at in enumerate((16, 512))]
    sample = Whole(streams=streams(blocks))
    first, last = (
        timed(replace(one_sm(order), sample=sample), H200).time_s
        for order in ((1, *[0] * 31), (*[0] * 31, 1))
    )
    assert last > 1.1 * first


def test_two_orders_of_an_sm_are_extended_to_all_blocks():
    few, many, everything = ((0, 1) * n for n in (4, 8, 20))
    extended = one_sm(few, many, blocks=40, further=4.0, rounds=10.0)  # 8 + 4 * 8 = 40
    found, whole = timed(extended, H200), timed(one_sm(everything), H200)
    assert found.cycles == pytest.approx(whole.cycles, rel=0.05)
    bounds = [{b.name: b.time_s for b in one.bounds} for one in (found, whole)]
    assert bounds[0]["issue"] == pytest.approx(bounds[1]["issue"])
    assert bounds[0]["latency"] == pytest.approx(bounds[1]["latency"])
    assert found.basis.startswith("replayed on a model of one SM: 8 and 16 of its 40 blocks")


def test_an_sm_that_reads_more_than_others_has_more_bandwidth():
    usual, more = (modelled_sm(one_sm((0, 1), relative_reads=reads)) for reads in (1.0, 2.0))
    assert more.machine.l2_bytes_per_clock == 2 * usual.machine.l2_bytes_per_clock
    assert more.machine.dram_bytes_per_clock == 2 * usual.machine.dram_bytes_per_clock


def test_a_block_that_copies_for_its_cluster_has_as_much_more_bandwidth():
    usual, more = (
        modelled_sm(work(k=64, samples=(64,), blocks=132, copied_for_cluster=reads)).machine
        for reads in (1.0, 1.5)
    )
    assert more.l2_bytes_per_clock == pytest.approx(1.5 * usual.l2_bytes_per_clock)


def test_copies_past_l1_of_several_waves_have_the_rate_of_their_l2():
    asked = work(k=64, samples=(64,), blocks=1024, blocks_per_sm=2)
    usual, past = (
        modelled_sm(replace(asked, copies_past_l1=is_past)).machine for is_past in (False, True)
    )
    assert past.l2_bytes_per_clock == pytest.approx(1.2 * usual.l2_bytes_per_clock)  # 60 of 50 MiB
    assert past.l2_line_bytes == pytest.approx(1.2 * usual.l2_line_bytes)
    one_wave = replace(asked, copies_past_l1=True, blocks=2 * 132)
    assert modelled_sm(one_wave).machine.l2_bytes_per_clock == usual.l2_bytes_per_clock


def test_work_that_other_sms_do_not_have_is_a_part_of_the_time():
    found = predict(one_sm((0, 1), relative_work=1.5), H200)
    of_sm_s = found.time_s - found.launch_s  # of which others have 1 / 1.5
    assert found.parts[Effect.IDLE_SMS] == pytest.approx(of_sm_s / 3, rel=0.1)


def at_all_occupancies(**changes):
    """Seconds of launches of one and four blocks per SM, together.

    One of them may be sooner for being held up a little, where its warps then meet fewer others.
    """
    return sum(
        timed(work(blocks_per_sm=per_sm, blocks=132 * 12, **changes), H200).time_s
        for per_sm in (1, 4)
    )


@pytest.fixture(scope="module")
def usual_times():
    return at_all_occupancies()


def test_no_unit_is_busy_for_longer_than_the_launch():
    # reads keep the load/store unit busy throughout: a line through short runs, whose ends leave
    # it idle, would end 2.9 % below what they take
    def reader(k):
        return [*[(SHARED, 2), FMA, FMA] * k, (STORE, 1, 0, [(1 << 40, FULL)]), EXIT]

    samples = {k: streams([[reader(k)] * 32] * 2) for k in (32, 64)}
    usual = work(blocks=13200, blocks_per_sm=2)
    found = timed(replace(usual, sample=AlongK(at=samples, k=4096)), H200)
    clocks = {bound.name: bound.time_s * found.clock_hz for bound in found.bounds}
    busy = clocks["shared memory"]  # with the wavefronts of L1, which the same unit serves
    assert busy <= found.cycles * (1 + 1e-9)
    assert busy == pytest.approx(found.cycles, rel=1e-3)


@pytest.mark.parametrize(
    "name",
    [
        "dram_latency",
        "launch_s",
        *(exhaustive(n) for n in ("l2_latency", "shared_latency")),
    ],
)
def test_longer_latencies_take_longer(name, usual_times, monkeypatch):
    usual = constants_for("sm_90")
    times = [usual_times]
    for scale in (2, 4):
        longer = replace(usual, **{name: getattr(usual, name) * scale})
        monkeypatch.setattr(timing, "constants_of", lambda _, longer=longer: longer)
        times.append(at_all_occupancies())
    assert times[0] < times[1] < times[2]


def with_bandwidth(scale):
    return replace(H200, dram_bytes_per_s=H200.dram_bytes_per_s * scale)


def test_less_bandwidth_takes_longer():
    found = [timed(work(), with_bandwidth(scale)) for scale in (4, 1, 1 / 4, 1 / 16, 1 / 256)]
    times = [prediction.time_s for prediction in found]
    # warps that are held up a little may meet fewer others: 3% sooner was seen
    assert all(later >= 0.96 * sooner for sooner, later in pairwise(times))
    assert times[-1] > 3 * times[0]
    assert found[-1].limiter == "DRAM"
    # what is read from DRAM has to come at its rate
    dram = next(bound for bound in found[-1].bounds if bound.name == "DRAM")
    assert times[-1] > 0.9 * dram.time_s


@pytest.mark.parametrize(("blocks", "by_waits"), [(132, None), (133, 2.0), (2000, 2.0)])
def test_sms_meet_by_what_they_wait(blocks, by_waits):
    """SMs with one block each start together, and all wait; without barriers none does."""
    asked = work(blocks=blocks)
    runs = model_runs(modelled_sm(asked), [])
    assert (asked.code["kind"] == Kind.BARRIER).any()
    assert runs.waits > 0
    shared = 1.0 if by_waits is None else min(1.0, by_waits * runs.waits)
    assert runs.coupling == pytest.approx(shared)
    code = asked.code.copy()
    code["kind"][code["kind"] == Kind.BARRIER] = Kind.PLAIN
    free = model_runs(modelled_sm(replace(asked, code=code)), [])
    assert free.coupling == (1.0 if by_waits is None else 0.0)


def test_sms_that_read_the_same_lines_at_other_times_do_not_wait_together():
    asked = work(blocks=132)
    half = model_runs(modelled_sm(replace(asked, soon_shares=(0.5,) * len(WINDOWS))), [])
    all_at_once = model_runs(modelled_sm(asked), [])
    assert 0 < half.slowdown == pytest.approx(all_at_once.slowdown / 2)


def test_without_reads_from_dram_nobody_waits_for_it(usual_times):
    assert at_all_occupancies(dram_read_bytes=0.0) < usual_times


def test_few_blocks_leave_sms_idle():
    half, full = (predict(work(blocks=blocks), H200) for blocks in (66, 132))
    assert half.parts[Effect.IDLE_SMS] == pytest.approx((half.time_s - half.launch_s) / 2, rel=0.1)
    assert Effect.IDLE_SMS not in full.parts
    # alone, an SM has more of L2 and DRAM
    assert half.cycles <= full.cycles


def test_a_prediction_says_what_it_rests_on(usual):
    assert usual.is_fitted
    assert usual.constants == "sm_90, measured"
    assert "blocks at K = 64 and 128, 4 resident at once" in usual.basis
    other = predict(work(), find_device("rtx-3090"))
    assert not other.is_fitted
    assert other.constants == "sm_86, mostly taken over from sm_90"


def test_units_take_the_clocks_of_their_architecture():
    clocks = {unit: 10 + unit for unit in Unit}
    latencies = {unit: 100 + unit for unit in WITH_LATENCY}
    of_each_unit = code(*({"unit": unit, "latency": 7} for unit in Unit))
    made_up = replace(constants_for("sm_90"), units=clocks, latencies=latencies)
    table = with_clocks(of_each_unit, made_up)
    assert dict(zip(Unit, table["pipe_clocks"].tolist(), strict=True)) == clocks
    # conversions that take longer than the XU are made by the pipe for doubles
    others = dict.fromkeys(Unit, 7) | {Unit.CONVERT_64: latencies[Unit.FP64]}
    pipes = [Unit.FP64 if unit == Unit.CONVERT_64 else unit for unit in Unit]
    assert [Unit(unit) for unit in table["unit"]] == pipes
    assert dict(zip(Unit, table["latency"].tolist(), strict=True)) == others | latencies
    assert set(of_each_unit["pipe_clocks"]) == {1}  # the work's own table is left alone
    real = with_clocks(CODE, constants_for("sm_90"))
    assert real["pipe_clocks"].tolist() == [1, 1, 1, 2, 1, 1]  # a multiply-add: half a pipe
    assert real["latency"][BARRIER] == 4


def test_predictions_are_the_same_again(usual):
    assert predict(work(), H200) == usual


@pytest.fixture
def raises_interrupts():
    """Ctrl-C is raised, whoever else has set a handler or ignores it (a background job)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("raises_interrupts")
def test_an_interrupt_ends_the_replay_at_once(monkeypatch):
    """Without the stop, these runs would go on for several seconds more."""
    asked = work(k=1 << 12, samples=(1 << 11, 1 << 12), blocks=20_000)
    stopped_at = []

    def interrupt():
        stopped_at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = Timer(0.15, interrupt)

    def interrupted_runs(*arguments):
        timer.start()
        return model_runs(*arguments)

    def predict_and_wait():
        try:
            predict(asked, H200)
        finally:
            timer.cancel()
            if timer.ident:
                timer.join()  # if it interrupts now, then in here

    monkeypatch.setattr(timing, "model_runs", interrupted_runs)
    with pytest.raises(KeyboardInterrupt):
        predict_and_wait()
    assert time.monotonic() - stopped_at[0] < 1


def test_an_interrupt_while_runs_are_started_ends_those_that_began(monkeypatch):
    began, native, left = Event(), SimpleNamespace(most_clocks=1), []

    class Interrupted(Thread):
        def start(self):
            super().start()
            assert began.wait(10)
            raise KeyboardInterrupt

    def goes_on():
        began.set()
        until = time.monotonic() + 10
        while native.most_clocks and time.monotonic() < until:
            time.sleep(0.001)
        left.append(native.most_clocks)

    monkeypatch.setattr("threading.Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        side_by_side([goes_on, goes_on], 2, [native])
    assert left == [0]


def long(line_of=int):
    """A product whose 256 phases are all replayed, if replays are not shortened."""
    blocks = [[warp(b, w, 256 * DEPTH, line_of) for w in range(WARPS)] for b in range(2)]
    return work(sample=Whole(streams=streams(blocks)))


def complete(monkeypatch, asked):
    """The prediction from all repetitions."""
    with monkeypatch.context() as patch:
        patch.setattr(timing, "SHORTENED", (UNLIMITED, 1, 1))
        return timed(asked, H200)


@pytest.mark.parametrize(
    ("blocks", "basis", "within"),
    [
        exhaustive(16, "16 of its 16 blocks with 56 and 112 of 255 repetitions", 0.01),
        (40, "4 and 12 of its 40 blocks with 44 and 88 of 255 repetitions", 0.015),
    ],
)
def test_a_shorter_replay_of_a_long_loop_predicts_the_same(monkeypatch, blocks, basis, within):
    asked = replace(long(), blocks=blocks * H200.sm_count)
    short, whole = predict(asked, H200), complete(monkeypatch, asked)
    assert short.basis.startswith(f"replayed on a model of one SM: {basis}")
    assert "repetitions" not in whole.basis
    assert short.time_s == pytest.approx(whole.time_s, rel=within)
    assert short.time_s != whole.time_s
    for one, other in zip(short.bounds, whole.bounds, strict=True):
        assert one.time_s == pytest.approx(other.time_s, rel=within)
    assert sum(short.parts.values()) == pytest.approx(short.time_s)


@pytest.mark.exhaustive  # 6 s
def test_a_loop_that_becomes_faster_is_replayed_completely(monkeypatch):
    asked = replace(long(lambda phase: phase % 45), blocks=4 * H200.sm_count)
    # after 45 phases, all lines are in L1; of four blocks, repetitions from 56 to 112 are compared
    monkeypatch.setattr(timing, "SHORTENED", (1 << 20, 1 << 19, 64))
    assert isinstance(shortened(CODE, asked.sample, 4, *timing.SHORTENED), Repetitions)
    whole = complete(monkeypatch, asked)
    assert timed(asked, H200).time_s == whole.time_s


@pytest.mark.parametrize(
    "wrong", [{"blocks_per_sm": 0}, {"blocks": 0}, {"sample": AlongK(at={}, k=1)}]
)
def test_work_without_blocks_or_streams_is_refused(wrong):
    with pytest.raises(InputError, match="a launch that fits on the device, and its streams"):
        replace(work(), **wrong)


@pytest.fixture
def counted_runs(monkeypatch):
    """Streams of each run for the parts of a time, in order."""
    found, run_them = [], costs.blocks_run

    def counted(sm, machine, streams, *others):
        found.append(streams)
        return run_them(sm, machine, streams, *others)

    monkeypatch.setattr(costs, "blocks_run", counted)
    return found


def test_scenes_that_are_replayed_alike_share_a_replay(counted_runs):
    sm = modelled_sm(work())
    pricing = costs.pricing_of(model_runs(sm, []), sm, [])
    assert pricing.complete.clocks > 0
    (spread,) = pricing.times([replace(pricing.base, is_spread=True)])
    assert spread.clocks < pricing.complete.clocks
    assert not counted_runs  # the complete model has run for the time itself
    slow = pricing.base.with_machine(l2_latency=2000)
    first = pricing.times([slow, slow])
    assert len(counted_runs) == 2  # two values of K
    assert first == pricing.times([pricing.base.with_machine(l2_latency=2000)]) * 2
    assert first[0].clocks > pricing.complete.clocks
    assert len(counted_runs) == 2


def test_the_run_of_the_time_is_the_replay_of_the_complete_model(counted_runs):
    sm = modelled_sm(work())
    runs = model_runs(sm, [])
    replayed = costs.Pricing(runs=runs, base=Scene(sm=sm, code=sm.code), begun=[]).complete
    assert len(counted_runs) == 2
    assert costs.pricing_of(runs, sm, []).complete == replayed


@pytest.mark.parametrize("blocks", [132, 1000, 8000])
def test_starting_blocks_costs_no_more_than_all_starts(blocks):
    """Blocks that meet at L1 and DRAM gain or lose more by the times of their starts."""
    (one,) = (one for one in REMOVABLE if one.effect == Effect.BLOCK_START)
    samples = {k: streams([[[*[(SHARED, 8), FMA] * k, EXIT]] * WARPS] * 2) for k in (64, 128)}
    alone = work(blocks=blocks, dram_read_bytes=0.0, sample=AlongK(at=samples, k=512))
    sm = modelled_sm(alone)
    pricing = costs.pricing_of(model_runs(sm, []), sm, [])
    (without,) = pricing.times([one.removed(pricing.base)])
    assert pricing.complete.clocks - without.clocks <= one.most_clocks(pricing.base)
    assert one.most_clocks(one.removed(pricing.base)) == 0


def test_effects_of_long_blocks_are_ranked_by_a_part_of_each(monkeypatch):
    sm = modelled_sm(work(samples=(512,)))
    runs = model_runs(sm, [])
    monkeypatch.setattr(costs, "RANKED_BY", (1 << 13, 3 << 13))  # of 151,000 instructions
    whole, parts, run_them = [], [], costs.blocks_run

    def noted(sm, machine, *rest):
        (parts if machine.stops_at_mark else whole).append(machine)
        return run_them(sm, machine, *rest)

    monkeypatch.setattr(costs, "blocks_run", noted)
    exact = costs.costs_of(costs.pricing_of(runs, sm, []))
    assert not parts
    of_exact = len(whole)
    brief = costs.costs_of(costs.pricing_of(runs, sm, []), ranks_briefly=True)
    assert parts
    assert len(whole) - of_exact < of_exact
    assert sum(one.time_s for one in brief) == pytest.approx(sum(one.time_s for one in exact))
    first, of_both = brief[0], {one.effect: one for one in exact}
    assert first == of_both[first.effect]  # the saving of the first one is that of whole blocks


def test_effects_of_short_blocks_are_ranked_by_whole_replays():
    sm = modelled_sm(work(samples=(128,)))
    runs = model_runs(sm, [])
    brief, exact = (
        costs.costs_of(costs.pricing_of(runs, sm, []), ranks_briefly=one) for one in (True, False)
    )
    assert brief == exact


@pytest.mark.parametrize("misleading", [0, 1])
def test_the_time_is_divided_by_a_sample_that_takes_as_long_as_all(monkeypatch, misleading):
    """A sample with 32 times the conflicts stands for one that is not like complete blocks."""
    asked = []

    def with_conflicts(streams):
        steps = streams.steps.copy()
        steps["clocks"][steps["pc"] == SHARED] *= 32
        return replace(streams, steps=steps)

    def shortened_wrongly(code, sample, blocks, *limits):
        asked.append(limits)
        found = shortened(code, sample, blocks, *limits)
        return found.changed(with_conflicts) if len(asked) <= misleading else found

    monkeypatch.setattr(timing, "shortened", shortened_wrongly)
    monkeypatch.setattr(timing, "SHORTENED_FOR_COSTS", (1 << 14, 1 << 13, 8))
    sm = modelled_sm(work(k=1024, samples=(1024,)))
    runs = model_runs(sm, [])
    pricing = timing._pricing(runs, sm, [])
    assert asked == [(1 << 14, 1 << 13, 8), (1 << 15, 1 << 14, 16)][: misleading + 1]
    assert isinstance(pricing.base.sm.work.sample, Repetitions)
    assert pricing._complete.clocks == pytest.approx(runs.replayed.clocks, rel=STEADY)


def test_a_time_of_which_no_sample_is_like_all_is_divided_by_whole_blocks(monkeypatch):
    monkeypatch.setattr(costs.Pricing, "is_of_steady_sample", False)
    monkeypatch.setattr(timing, "SHORTENED_FOR_COSTS", (1 << 14, 1 << 13, 8))
    sm = modelled_sm(work(samples=(512,)))
    pricing = timing._pricing(model_runs(sm, []), sm, [])
    assert isinstance(pricing.base.sm.work.sample, Whole)


def test_an_effect_without_which_the_replay_takes_longer_costs_0_with_a_note(monkeypatch):
    worse = replace(
        next(one for one in REMOVABLE if one.effect == Effect.FETCH),
        removed=lambda scene: scene.with_machine(l2_latency=5000),
        is_present=lambda scene: True,
        reasons=(),
        moves_roof=True,
    )
    monkeypatch.setattr(costs, "REMOVABLE", (worse,))
    sm = modelled_sm(work(samples=(512,)))
    runs = model_runs(sm, [])
    noted, *rest = costs.costs_of(costs.pricing_of(runs, sm, []))
    assert (noted.effect, noted.time_s, noted.detail) == (Effect.FETCH, 0.0, costs.LONGER)
    whole_s = runs.total.clocks / sm.clock_hz + sm.constants.launch_s
    assert sum(one.time_s for one in rest) == pytest.approx(whole_s)


def test_registers_that_loads_write_are_issue_slots():
    sm = modelled_sm(work(samples=(512,)))
    runs = model_runs(sm, [])
    pricing = costs.pricing_of(runs, sm, [])
    totals = runs.total
    assert totals.written_slots > 0
    issue = pricing.complete.roofs[Effect.OTHER_INSTRUCTIONS]
    assert issue == pytest.approx((totals.issued + totals.written_slots) / 4)
