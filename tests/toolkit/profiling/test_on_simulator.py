"""Records without a GPU whose machine code was executed: counters, verdicts, and why not."""

import re
from dataclasses import replace
from functools import partial

import pytest

from analysis.comparison.agreement import comparisons, unexplained
from analysis.devices import DEVICES, find_device
from analysis.errors import LaunchError, UnavailableError, UnsupportedError
from analysis.problem import parse_shape
from kernels import LADDER
from tests.heard import Heard
from tests.rungs import without_times
from tests.sampling import exhaustive
from tests.toolkit.profiling.one_shape import profiled
from toolkit.execution import plan_executor
from toolkit.execution import rung_simulation as simulated_ladder
from toolkit.execution.sanitizer import Checked
from toolkit.gpu.sampling import Sampling
from toolkit.launch.progress import Progress
from toolkit.machine_code.compile import compile_cubin
from toolkit.profiling import on_simulator as simulator_bench
from toolkit.profiling.on_simulator import SimulatorBench
from toolkit.profiling.plan import make_plan
from toolkit.profiling.profile import profile
from toolkit.rungs import inputs as ladder_inputs
from toolkit.rungs.matrices import Workload
from validation.corpus.sample import ALSO, USUAL

FULL, RAGGED = "256x256x64", "127x129x31"


bench = partial(profiled, SimulatorBench)


@pytest.fixture
def counted_alone(monkeypatch):
    """Neither checked by the sanitizer nor timed."""
    monkeypatch.setattr(simulator_bench, "check_rung", lambda *_: NOTHING_FOUND)
    without_times(monkeypatch)


@pytest.mark.parametrize(
    "rungs", [(LADDER[2], LADDER[12], LADDER[16]), exhaustive(LADDER)], ids=len
)
def test_rungs_are_executed_and_right(rungs, counted_alone):
    """Rungs beside what is no rung; test_ladder_arithmetic.py executes all of them."""
    names = [variant.name for variant in rungs]
    others = ["best", "best-fp32x", "cpu", "cublas"]
    records = bench("32", None if rungs is LADDER else [*names, *others], device="h200")
    assert sorted(records) == sorted([*names, *others])
    for variant in rungs:
        record = records[variant.name]
        assert (record.status, record.reason) == ("ok", None)
        assert record.simulated.architecture == "sm_90"
        assert record.check.passed
        assert record.occupancy is not None
        assert record.measured is None
    assert records["cpu"].measured is not None
    assert records["cpu"].simulated is records["cublas"].simulated is None


def test_a_rung_that_the_device_cannot_run_is_skipped():
    record = bench("32", ["bulk-copy"])["bulk-copy"]
    assert (record.status, record.simulated) == ("skipped", None)


def test_a_product_of_several_launches_has_a_time_where_it_is_named():
    record = bench("1000x1016x520", ["best-fp32x"], device="h200")["best-fp32x"]
    assert (record.status, record.reason) == ("ok", None)
    predicted = record.predicted
    entries = [part.split(": ")[0] for part in predicted.basis.split("; ") if "split_" in part]
    assert entries == ["split_first_pass", "split_second_pass", "split_product"]
    assert predicted.time_s > predicted.launch_s + max(one.time_s for one in predicted.bounds)
    assert sum(one.time_s for one in predicted.costs) == pytest.approx(predicted.time_s)


def test_a_large_product_of_several_launches_says_that_it_has_no_time():
    record = bench("4096", ["best-fp32x"], device="h200")["best-fp32x"]
    assert (record.status, record.predicted) == ("skipped", None)
    assert record.notes[-1].startswith("not predicted: all blocks of its launches")


ARCHITECTURES = {device.sm_arch: device.key for device in DEVICES.values()}


def refusal(variant, device):
    try:
        variant.check_device(variant.defaults, find_device(device))
    except UnavailableError as error:
        return str(error)
    return None


def tried_on(arch):
    """Rungs that are tried there: all on the usual one, and each on one other architecture."""
    return [v for v in LADDER[1:] if arch == USUAL or arch in ALSO.get(v.file, ())[:1]]


# Rungs that are tried at a ragged shape by default: no tile, one, and more elements, copies, parts.
RAGGED_RUNGS = ("naive-coalesced", "tiled", "vectorized", "async-copy", "split-k", "fp16-parts")
# (rung, device) whose machine code keeps a register in local memory, which no source says.
SPILLS = {("tf32-parts", "b200"), ("tf32-parts", "rtx-5090")}
NOTHING_FOUND = Checked(kernel="", findings=(), executed_blocks=0, blocks=0, tools=())
SOME_AND_ALL = [
    (FULL, ARCHITECTURES[USUAL], tried_on(USUAL)),
    (RAGGED, ARCHITECTURES[USUAL], [v for v in LADDER if v.name in RAGGED_RUNGS]),
    *(
        pytest.param(shape, key, tried_on(arch), id=f"{shape}-{arch}", marks=pytest.mark.exhaustive)
        for shape in (FULL, RAGGED)
        for arch, key in ARCHITECTURES.items()
        if arch != USUAL
    ),
    *(
        pytest.param(shape, key, LADDER[1:], id=f"{shape}-all-{arch}", marks=pytest.mark.exhaustive)
        for shape in (FULL, RAGGED)
        for arch, key in ARCHITECTURES.items()
    ),
]


@pytest.mark.parametrize(("shape", "device", "variants"), SOME_AND_ALL)
def test_closed_forms_and_machine_code_agree_on_every_architecture(
    shape, device, variants, counted_alone
):
    records = bench(shape, [v.name for v in variants], device) if variants else {}
    for variant in variants:
        label, record = variant.name, records[variant.name]
        if refused := refusal(variant, device):
            assert (record.status, record.reason) == ("skipped", refused)
            continue
        assert (label, record.status, record.reason) == (label, "ok", None)
        assert unexplained(record) == ()
        found = {(one.subject, one.quantity): one for one in comparisons(record)}
        if variant.bulk_tiles is not None:  # what is read ahead and left for others is explained
            assert found["arithmetic", "multiply-adds"].closed_form
            continue
        for (subject, quantity), one in found.items():
            # what the source says and how wide the compiler makes it hold at edges too
            if quantity in ("elements", "instructions"):
                assert one.is_equal, (label, subject, quantity)
            # but for alpha, beta and twins of stores whose guards are off
            if shape == FULL and quantity in ("requests", "sectors", "wavefronts"):
                if subject in ("local loads", "local stores") and (label, device) in SPILLS:
                    assert one.reason == "spilled registers are kept in local memory"
                    continue
                assert one.is_equal, (label, subject, quantity)
        assert found["arithmetic", "multiply-adds"].is_equal or variant.rung >= 7  # beta


def test_an_architecture_that_the_compiler_does_not_know_is_said():
    record = bench("32", ["tiled"], "gtx-1080-ti")["tiled"]
    assert record.simulated.architecture == "sm_75"
    assert record.notes[:-1] == (record.resources.note,)


def test_every_rung_has_a_line_of_the_sanitizer():
    record = bench("32", ["tiled"], "t4")["tiled"]
    assert record.notes[-1] == (
        "sanitizer: no errors: memcheck, racecheck, synccheck, initcheck on 9 blocks of 136x136x20"
    )


def test_what_the_sanitizer_finds_fails_the_record(monkeypatch):
    """The simulated order of threads hides the race, so that the result is right."""
    real = simulator_bench.check_rung

    def without_barriers(cubin, variant, *rest):
        source = variant.source.replace("__syncthreads();", "")
        racing = compile_cubin(source, name="racing.cu", kernel=variant.entry, arch="sm_75")
        return real(racing, variant, *rest)

    monkeypatch.setattr(simulator_bench, "check_rung", without_barriers)
    record = bench("32", ["tiled"], "t4")["tiled"]
    assert record.check.passed
    assert record.status == "failed"
    assert record.reason.startswith("sanitizer: ")
    assert "racing.cu, line" in record.reason


def refuse(error):
    def simulate(*arguments):
        raise error

    return simulate


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedError("NEW R1 at 0x0010: unknown"),
        UnavailableError("no core: install a compiler"),
    ],
)
def test_what_cannot_be_simulated_keeps_its_theory(error, monkeypatch):
    monkeypatch.setattr(simulated_ladder.LadderSimulator, "simulate", refuse(error))
    record = bench("32", ["tiled"])["tiled"]
    assert record.status == "ok"
    assert record.theory is not None
    assert record.occupancy is not None
    assert record.simulated is record.check is None
    assert record.notes == (f"not simulated: {error}",)


def test_too_large_a_shape_keeps_its_theory(monkeypatch):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 0)
    record = bench("32", ["tiled"])["tiled"]
    assert record.status == "ok"
    assert record.notes[0].startswith("not simulated: A and B take 0.0 GB at 32x32x32, which are")


def test_a_kernel_that_faults_fails_alone(monkeypatch):
    real = simulated_ladder.LadderSimulator.simulate

    def faulty(ladder, cubin, selection, residence):
        if selection.label == "tiled":
            raise LaunchError("sgemm_tiled: out of bounds")
        return real(ladder, cubin, selection, residence)

    monkeypatch.setattr(simulated_ladder.LadderSimulator, "simulate", faulty)
    records = bench("32", ["tiled", "naive-coalesced"])
    assert (records["tiled"].status, records["tiled"].reason) == (
        "failed",
        "sgemm_tiled: out of bounds",
    )
    assert records["naive-coalesced"].simulated is not None


def test_a_wrong_result_fails_and_keeps_its_counters(monkeypatch):
    real = plan_executor.merged

    def wrong(verdicts, where):
        return replace(real(verdicts, where), passed=False, worst_ratio=3.0)

    monkeypatch.setattr(plan_executor, "merged", wrong)
    record = bench("32", ["tiled"])["tiled"]
    assert record.status == "failed"
    assert re.fullmatch(
        r"wrong result: the error of C\[\d+\]\[\d+\] is 3 times its bound", record.reason
    )
    assert record.simulated is not None


def test_ctrl_c_keeps_what_is_done():
    variants = ["tiled", "naive-coalesced"]
    heard = Heard("naive-coalesced: .*blocks")
    assert list(bench("32", variants, "t4", progress=heard, interrupted=True)) == ["tiled"]


def test_progress_tells_the_blocks_that_are_done():
    heard = Heard()
    bench("64", ["tiled"], progress=heard)
    assert heard.details[-1] == "tiled: 4 of 4 blocks"


def test_rungs_of_a_shape_share_their_matrices():
    made = SimulatorBench(find_device("t4"))
    plan = make_plan(["32", "48"], ["tiled", "naive-coalesced"], sampling=Sampling(), seed=1)
    simulators = []
    for problem in plan.shapes:
        made.profile_shape(problem, plan, {}, Progress())
        simulators.append(made._ladder)
    assert simulators[0] is not simulators[1]
    assert list(simulators[1]._matrices) == [(48, plan.shapes[1])]


def test_inputs_that_the_last_rung_did_not_use_are_dropped():
    ladder = ladder_inputs.LadderInputs(Workload(parse_shape("64x48x512"), 3))
    shape = ladder.workload.problem

    def use(*ks):
        ladder.begin_rung()
        for k in ks:
            executed = replace(shape, k=k)
            a, b = ladder.matrices(ladder.at(k), executed)
            assert (a.shape, b.shape) == ((64, k), (k, 48))
            ladder.references(ladder.at(k), [(range(16), range(16))])

    use(512, 32, 64)
    use(64)
    first = ladder.at(64).a
    use(64, 96)
    assert ladder.at(64).a is first
    assert set(ladder._workloads) == set(ladder._references) | {512} == {512, 64, 96}
    assert {k for k, _ in ladder._matrices} == {512, 64, 96}


def test_the_source_of_best_is_kept_at_every_shape():
    plan = make_plan(["32", "64x32x16"], ["best", "tiled"], sampling=Sampling(), seed=1)
    records = {}
    bench = SimulatorBench(find_device("rtx-3090"))
    for shape in plan.shapes:
        bench.profile_shape(shape, plan, records, Progress())
    for record in records.values():
        listing = bench.listings[record.simulated.listing or ""]
        assert len(listing.sass) == len(record.simulated.executed)


def test_a_rung_that_never_ends_fails_and_the_others_are_counted(edit_rung, monkeypatch):
    edit_rung("tiled", "__syncthreads();", 'while (alpha > 0.0f) asm volatile("");')
    monkeypatch.setattr(plan_executor, "FEWEST_INSTRUCTIONS", 10**5)
    found = profile(
        ["64"], ["naive-coalesced", "tiled", "vectorized"], device="rtx-3090", executor="simulate"
    )
    before, broken, after = found.records
    assert (before.status, after.status) == ("ok", "ok")
    assert broken.status == "failed"
    assert re.fullmatch(
        r"sgemm_tiled did not end within 32 times the number by its closed forms: "
        r"an endless loop\?; "
        r"block \(\d, \d, 0\), 04_tiled\.cu, line \d+: .*",
        broken.reason or "",
    )
