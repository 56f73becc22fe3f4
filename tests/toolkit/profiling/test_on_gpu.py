"""The measuring workflow on the made-up GPU of conftest.py: checked, then timed, then recorded."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.errors import UnsupportedError
from analysis.product_errors import DATA_CLASSES
from analysis.records.profile import GpuState
from kernels import LADDER
from tests.heard import Heard
from tests.sampling import exhaustive
from tests.toolkit.counted import record_of
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.gpu import worker_process as isolated
from toolkit.gpu.launch import GUARD_WORD, GUARD_WORDS, OnGpu
from toolkit.gpu.product_launch import LAUNCHES
from toolkit.gpu.sampling import FEWEST_SAMPLES, WARM_UP_LAUNCHES, Sampling
from toolkit.profiling import on_gpu as gpu_bench
from toolkit.profiling.profile import profile
from toolkit.rungs.launch import compile_for

QUICK = Sampling(time_limit_s=60, max_samples=25, precision=1e-9)
FLUSH = "fill 0x0"
POISON = "fill 0x7fc0bad0"
L2_BYTES = 2**10  # of the made-up GPU
GUARD = f"fill {GUARD_WORD:#x}"


SIMULATED = gpu_bench.GpuBench._simulated


@pytest.fixture(autouse=True)
def not_simulated(monkeypatch):
    monkeypatch.setattr(gpu_bench.GpuBench, "_simulated", lambda bench, record, *_: record)


@pytest.fixture
def simulated(monkeypatch):
    """The made-up PyCUDA's modules are no machine code: the simulator gets the compiler's."""
    monkeypatch.setattr(gpu_bench.GpuBench, "_simulated", SIMULATED)
    real = LadderSimulator.simulate

    def simulate(simulator, cubin, selection, residence=None):
        cubin = compile_for(find_device("h100-sxm"), selection)
        return real(simulator, cubin, selection, residence)

    monkeypatch.setattr(LadderSimulator, "simulate", simulate)


def measure(*variants, shape="32", **settings):
    settings = {"executor": "gpu", "sampling": QUICK, "seed": 1} | settings
    return profile([shape], variants or None, **settings)


def measured(*variants, **settings):
    """The last record."""
    return measure(*variants, **settings).records[-1]


def assert_all_ok(result):
    assert {record.status for record in result.records} == {"ok"}


def events(cuda):
    """Events of the fake GPU, without those that prepare buffers."""
    return [event for event in cuda.log if event not in ("allocate", GUARD)]


def checked(entry):
    """The events of one check."""
    return [POISON, entry] * LAUNCHES


def wrong_at(row, column, value=None):
    """A kernel that errs in one element, by a little or to `value`."""

    def kernel(launch):
        launch.cuda.product(launch)
        n = int(launch.arguments[4])
        c = launch.floats(2)
        c[row * n + column] = c[row * n + column] + 1e-3 if value is None else value

    return kernel


def test_every_rung_is_checked_and_timed_beside_cublas(cuda, cublas):
    # tensor maps need a driver: test_ladder_arithmetic.py has the rungs that take them
    names = [variant.name for variant in LADDER if variant.bulk_tiles is None]
    result = measure(*names, "cpu", "cublas")
    assert (result.status, result.executor, result.device.key) == ("complete", "gpu", "h100-sxm")
    assert [record.label for record in result.records] == [*names, "cpu", "cublas"]
    for record in result.records:
        assert (record.status, record.reason) == ("ok", None)
        assert record.check.passed
        assert record.measured is not None
    tiled = record_of(result, "tiled").measured
    assert tiled.samples_s == pytest.approx([1e-3] * FEWEST_SAMPLES)
    assert tiled.flop_per_s == pytest.approx(2 * 32**3 / 1e-3)
    assert (tiled.clock, tiled.l2) == ("CUDA events", "dirty")
    assert tiled.relative_to_cublas.median == pytest.approx(0.5)  # cuBLAS takes half as long
    assert cublas.handles == 0
    assert result.environment.software["cuBLAS"] == "13.1.2"
    assert record_of(result, "cublas").notes == ("cuBLAS 13.1.2",)
    assert result.environment.software["nvcc"] == "13.0"


def test_errors_on_classes_of_inputs_are_taken_where_they_are_asked_for(cuda):
    assert measured("tiled").errors == ()
    found = measure("tiled", accuracy=True)
    assert [one.data for one in found.records[-1].errors] == list(DATA_CLASSES)
    assert " --accuracy " in found.command


def test_a_ragged_shape_is_right_and_padded_where_it_must_be(cuda, cublas):
    result = measure("naive-coalesced", "vectorized", "cublas", shape="10x7x13")
    assert_all_ok(result)
    plain, padded, _ = result.records
    assert plain.notes == ()
    assert str(padded.executed_shape) == "10x8x16"
    assert padded.notes[0].startswith("padded with zeros to 10x8x16")
    assert padded.measured.flop_per_s == pytest.approx(2 * 10 * 7 * 13 / 1e-3)  # as asked for


def test_all_are_checked_before_any_is_timed(cuda, cublas):
    measure("tiled", "naive-coalesced", "cublas")
    done = events(cuda)
    # what flushes L2 finds its room when a competitor is prepared: the first one by itself
    checks = [FLUSH, *checked("cublas"), FLUSH, FLUSH]
    checks += [*checked("sgemm_tiled"), *checked("sgemm_naive_coalesced")]
    assert done[: len(checks)] == checks
    assert POISON not in done[len(checks) :]
    rounds = [event for event in done[len(checks) :] if event not in (FLUSH, "hold")]
    warm = 3 * WARM_UP_LAUNCHES
    one_round = ["cublas", "sgemm_tiled", "sgemm_naive_coalesced"]
    the_next = ["cublas", "sgemm_naive_coalesced", "sgemm_tiled"]
    assert rounds[warm:] == (one_round + the_next) * (FEWEST_SAMPLES // 2)


def test_l2_is_dirty_before_every_sample(cuda):
    assert measured("tiled").measured.l2 == "dirty"
    timed = events(cuda)[1 + len(checked("sgemm_tiled")) :]
    assert timed == [FLUSH, "hold", "sgemm_tiled"] * (len(timed) // 3)


def test_a_slow_kernel_is_sampled_until_its_median_has_an_interval(cuda, monkeypatch):
    monkeypatch.setattr("toolkit.gpu.sampling.PATIENCE", 1e12)
    record = measured("tiled", sampling=Sampling(time_limit_s=1e-9, max_samples=25))
    assert len(record.measured.samples_s) == 6
    assert record.measured.interval_s is not None


def test_l2_stays_warm_where_that_is_asked_for(cuda):
    assert measured("tiled", l2="warm").measured.l2 == "warm"
    assert cuda.log.count(FLUSH) == 1  # which shows that there is room for it


def test_a_kernel_that_writes_nothing_cannot_pass(cuda):
    cuda.kernels["sgemm_tiled"] = lambda launch: None
    record = measured("naive-coalesced", "tiled")  # after one that left a right C
    assert record.status == "failed"
    assert record.reason == "wrong result: C[0][0] is not a number, or infinitely far off"


def test_a_kernel_that_leaves_one_element_cannot_pass(cuda):
    def all_but_one(launch):
        before = launch.floats(2)[32 * 32 - 1]
        launch.cuda.product(launch)
        launch.floats(2)[32 * 32 - 1] = before

    cuda.kernels["sgemm_tiled"] = all_but_one
    record = measured("naive-coalesced", "tiled")
    assert record.reason == "wrong result: C[31][31] is not a number, or infinitely far off"


def test_parameters_reach_the_compiler(cuda):
    options = []
    cuda.kernels["sgemm_tiled"] = lambda launch: options.append(launch.options)
    measure("tiled:tile=16")
    assert options[0] == ["-std=c++17", "-lineinfo", "-DTILE=16"]


@pytest.mark.parametrize("value", [None, np.nan, np.inf, -np.inf])
def test_a_wrong_element_fails_and_is_never_timed(cuda, cublas, value):
    cuda.kernels["sgemm_tiled"] = wrong_at(31, 7, value)
    result = measure("tiled", "naive-coalesced", "cublas")
    record = record_of(result, "tiled")
    assert record.status == "failed"
    assert "C[31][7]" in record.reason
    assert record.measured is None
    assert record.resources is not None
    assert cuda.log.count("sgemm_tiled") == LAUNCHES
    assert record_of(result, "naive-coalesced").measured is not None


def test_a_wrong_cublas_is_no_peer(cuda, cublas):
    cublas.factor = np.float32(1.001)
    tiled, peer = measure("tiled", "cublas").records
    assert peer.status == "failed"
    assert tiled.measured.relative_to_cublas is None


def test_a_kernel_that_does_not_compile_fails_alone(cuda):
    cuda.compile_errors["sgemm_tiled("] = 'kernel.cu(36): error: identifier "x" is undefined\n'
    result = measure("tiled", "naive-coalesced")
    record = record_of(result, "tiled")
    assert record.status == "failed"
    assert record.reason == '04_tiled.cu, line 36: does not compile: identifier "x" is undefined'
    assert record.theory is not None
    assert record_of(result, "naive-coalesced").measured is not None


def test_a_launch_that_is_refused_fails_alone(cuda):
    def refused(launch):
        raise cuda.driver.LaunchError("cuLaunchKernel failed: too many resources requested")

    cuda.kernels["sgemm_tiled"] = refused
    result = measure("tiled", "naive-coalesced")
    assert record_of(result, "tiled").reason == (
        "sgemm_tiled: cuLaunchKernel failed: too many resources requested"
    )
    assert record_of(result, "naive-coalesced").measured is not None


def running(script):
    """The processes of this machine that run a script."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            found += [process.name] * (script.encode() in words)
    return found


# In child processes, each with a made-up GPU of its own: what one breaks, the others do not see.

BUG = """
def tiled(launch):
    conftest.product(launch)
    if cuda.log.count("sgemm_tiled") == {launches}:
        {bug}

cuda.kernels["sgemm_tiled"] = tiled
"""
BUGS = {
    "faults": (
        "cuda.fault()",
        "cuCtxSynchronize failed: an illegal memory access was encountered",
    ),
    "hangs": (
        "ctypes.CDLL(None).sleep(3600)",
        "s and was stopped: an endless loop, or threads that wait for each other?",
    ),
    "dies": ("ctypes.CDLL(None).abort()", "the process that ran it died (signal SIGABRT)"),
    "writes in front of C": (
        "cuda.memory(launch.arguments[2] - 4)[0] = 1",
        "1 words in front of argument 2 `C`, float32[32,32] were overwritten",
    ),
    "writes to B": (
        "cuda.memory(launch.arguments[1])[0] ^= 1",
        "wrote to argument 1 `B`, float32[32,32], which is an input",
    ),
}


@pytest.mark.parametrize(
    ("bug", "launches"),
    [
        ("faults", 1),
        ("hangs", LAUNCHES + 1),
        ("dies", LAUNCHES + 9),
        *(
            exhaustive(bug, launches)
            for bug, launches in (
                ("writes in front of C", LAUNCHES + 9),
                ("writes to B", LAUNCHES + 9),
                ("faults", LAUNCHES + 9),
                ("faults", LAUNCHES),
                ("faults", LAUNCHES + 1),
                ("hangs", 1),
                ("hangs", LAUNCHES + 9),
                ("dies", 1),
            )
        ),
    ],
)
def test_whatever_one_breaks_another_runs_on_untouched(children, monkeypatch, bug, launches):
    """The other rung survives a failure in the check, in the warm-up, and in the timing."""
    what, words = BUGS[bug]
    children(BUG.format(launches=launches, bug=what))
    if bug == "hangs":
        monkeypatch.setattr("toolkit.gpu.product_launch.START_S", 8.0)
        monkeypatch.setattr("toolkit.gpu.product_launch.LAUNCH_GRACE_S", 1.0)
    result = measure("tiled", "naive-coalesced")
    assert result.status == "complete"
    tiled, other = result.records
    assert (tiled.status, tiled.measured) == ("failed", None)
    assert words in tiled.reason
    assert (other.status, other.reason) == ("ok", None)
    assert len(other.measured.samples_s) == FEWEST_SAMPLES


def test_cublas_has_its_turns_in_a_process_of_its_own(children, cublas):
    children("sys.modules |= conftest.FakeCublas(cuda).modules()")
    tiled, peer = measure("tiled", "cublas").records
    assert tiled.measured.relative_to_cublas.median == pytest.approx(0.5)
    assert peer.notes == ("cuBLAS 13.1.2",)


@pytest.mark.exhaustive  # a rung that hangs: see above
def test_a_cublas_that_hangs_fails_alone(children, cublas, monkeypatch):
    children("""
class Hanging(conftest.FakeCublas):
    def sgemm(self, *arguments):
        if cuda.log.count("cublas") == 9:
            ctypes.CDLL(None).sleep(3600)
        super().sgemm(*arguments)

sys.modules |= Hanging(cuda).modules()
""")
    monkeypatch.setattr("toolkit.gpu.product_launch.LAUNCH_GRACE_S", 1.0)
    result = measure("tiled", "cublas")
    tiled, peer = result.records
    assert (peer.status, peer.measured) == ("failed", None)
    assert "was stopped" in peer.reason
    assert tiled.measured.relative_to_cublas is not None  # by the samples that were taken beside it
    assert len(tiled.measured.samples_s) == FEWEST_SAMPLES


@pytest.mark.usefixtures("interpreters")
def test_ctrl_c_leaves_no_process_behind():
    result = measure("tiled", "naive-coalesced", progress=Heard(".*: 3 samples"))
    assert result.status == "interrupted"
    assert running(isolated.COMMAND[1]) == []


@pytest.mark.parametrize("launches", range(LAUNCHES + 1, LAUNCHES + 8))
def test_a_launch_that_fails_while_it_is_timed_fails_alone(cuda, cublas, launches):
    def tiring(launch):
        if cuda.log.count("sgemm_tiled") >= launches:
            raise cuda.driver.LaunchError("cuLaunchKernel failed: the kernel timed out")
        cuda.product(launch)

    cuda.kernels["sgemm_tiled"] = tiring
    result = measure("tiled", "naive-coalesced", "cublas")
    record = record_of(result, "tiled")
    assert (record.status, record.measured) == ("failed", None)
    assert record.reason == "timed launch: cuLaunchKernel failed: the kernel timed out"
    assert record_of(result, "naive-coalesced").measured is not None


def test_without_cublas_the_rungs_are_measured_all_the_same(cuda):
    result = measure("tiled", "cublas")
    tiled, peer = result.records
    assert peer.status == "skipped"
    assert peer.reason.startswith("cuBLAS cannot be used (")
    assert "cuBLAS" not in result.environment.software
    assert tiled.measured.relative_to_cublas is None


def test_a_cublas_that_fails_is_a_failed_record(cuda, cublas):
    cublas.error = RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED (13): x\nmore")
    tiled, peer = measure("tiled", "cublas").records
    assert peer.reason == "cuBLAS: CUBLAS_STATUS_EXECUTION_FAILED (13): x"
    assert tiled.measured is not None


def room_for(competitors):
    """Bytes of the made-up GPU for so many competitors at 32x32x32."""
    one = 3 * (4 * 32 * 32 + 2 * 4 * GUARD_WORDS) + 2 * L2_BYTES
    return int(competitors * one)


def test_no_room_on_the_gpu_fails_what_needs_it(cuda):
    cuda.free_bytes = room_for(1) - 1
    record = measured("tiled")
    assert record.status == "failed"
    assert "do not fit on the GPU" in record.reason
    assert record.reason.endswith("take a smaller shape or close other programs")


@pytest.mark.parametrize("competitors", [3.5, 2.5])
def test_where_not_all_have_room_they_are_timed_one_group_after_the_other(
    cuda, cublas, competitors
):
    """Each group in turns with cuBLAS."""
    cuda.free_bytes = room_for(competitors)
    result = measure("naive-coalesced", "tiled", "coarsened-1d", "coarsened-2d", "cublas")
    assert_all_ok(result)
    for record in result.records[:-1]:
        assert record.measured.relative_to_cublas.median == pytest.approx(0.5)
    assert cuda.free_bytes == room_for(competitors)
    rounds = [moment.rounds for one in result.conditions for moment in one.moments]
    assert rounds == sorted(rounds)


def test_where_one_has_room_each_is_timed_by_itself(cuda, cublas):
    cuda.free_bytes = room_for(1.3)
    result = measure("naive-coalesced", "tiled", "cublas")
    assert_all_ok(result)
    for record in result.records:
        assert record.measured.relative_to_cublas is None or record.variant == "cublas"


def test_ctrl_c_in_a_later_group_keeps_what_cublas_took_before(cuda, cublas):
    cuda.free_bytes = room_for(2.5)
    result = measure(
        "naive-coalesced", "tiled", "cublas", progress=Heard("cublas: 1 samples", turn=2)
    )
    naive, tiled, peer = result.records
    assert naive.measured.relative_to_cublas is not None
    assert tiled.measured is None
    assert peer.status == "ok"
    assert len(peer.measured.samples_s) == FEWEST_SAMPLES  # beside the first group
    assert peer.measured.stopped_by == "precision"


class Interrupting(OnGpu):
    """Ctrl-C comes while one of them does something."""

    when = ""

    @classmethod
    def at(cls, what):
        return lambda: setattr(cls, "when", what)

    def _maybe(self, what):
        if self.when == what:
            Interrupting.when = ""
            raise KeyboardInterrupt

    def raise_damage(self):
        self._maybe("damage")
        super().raise_damage()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self._maybe("exit")


def test_ctrl_c_while_guard_bands_are_looked_at_keeps_the_samples(cuda, monkeypatch):
    monkeypatch.setattr("toolkit.profiling.competitors.InAChild", Interrupting)
    result = measure(
        "tiled", "naive-coalesced", progress=Heard(".*buffers", then=Interrupting.at("damage"))
    )
    assert result.status == "interrupted"
    for record in result.records:
        assert len(record.measured.samples_s) == FEWEST_SAMPLES


def test_ctrl_c_while_competitors_leave_lets_all_of_them_go(cuda, cublas, monkeypatch):
    monkeypatch.setattr("toolkit.profiling.competitors.InAChild", Interrupting)
    cuda.free_bytes = room_for(3.5)
    leaving = Heard("tiled: what is around its buffers", then=Interrupting.at("exit"))
    result = measure("naive-coalesced", "tiled", "coarsened-2d", "cublas", progress=leaving)
    assert result.status == "interrupted"
    assert record_of(result, "tiled").measured is not None
    assert record_of(result, "coarsened-2d").measured is None
    assert cuda.depth == 0
    assert cuda.free_bytes == room_for(3.5)


def test_what_lacks_room_beside_others_is_tried_again_alone(cuda, cublas, monkeypatch):
    """It takes more than was thought, such as local memory."""

    class Hungry(OnGpu):
        def result(self, *arguments):
            if "tiled" in self._name:
                more = self.gpu.allocate(room_for(2))
                del more
            return super().result(*arguments)

    monkeypatch.setattr("toolkit.profiling.competitors.InAChild", Hungry)
    cuda.free_bytes = room_for(4.5)
    result = measure("naive-coalesced", "tiled", "coarsened-1d", "coarsened-2d", "cublas")
    assert_all_ok(result)
    for record in result.records:
        assert record.measured is not None
    alone, beside = (record_of(result, name).measured for name in ("tiled", "coarsened-2d"))
    assert alone.relative_to_cublas is None
    assert beside.relative_to_cublas is not None


def test_a_machine_that_starts_no_process_fails_the_rungs(interpreters, monkeypatch):
    monkeypatch.setattr("toolkit.gpu.worker_process.COMMAND", ("/no/such/program",))
    record = measured("tiled")
    assert record.status == "failed"
    assert record.reason.startswith("no process can be started (")


def test_no_room_on_the_host_fails_the_shape(cuda, cublas, monkeypatch):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 100_000)
    result = measure("tiled", "one-block", "cublas", shape="32")
    assert {record.status for record in result.records} == {"failed"}
    assert result.records[0].reason == (
        "shape 32x32x32: its float64 check takes about 0.0 GB on the host, 0.0 GB are free: "
        "take a smaller shape"
    )


def test_ctrl_c_while_checking_keeps_what_was_checked(cuda, cublas):
    result = measure("tiled", "naive-coalesced", progress=Heard("check naive-coalesced"))
    assert result.status == "interrupted"
    tiled, naive = result.records
    assert tiled.check is not None
    assert naive.check is None
    for record in result.records:
        assert (record.status, record.measured) == ("skipped", None)
        assert record.reason == "interrupted before it was timed"


@pytest.mark.parametrize("samples", [1, 2, 13])
def test_ctrl_c_while_timing_keeps_the_samples(cuda, cublas, samples):
    result = measure("tiled", "naive-coalesced", "cublas", progress=Heard(f".*: {samples} samples"))
    assert result.status == "interrupted"
    tiled, naive, peer = (record.measured for record in result.records)
    assert len(peer.samples_s) == samples
    assert peer.stopped_by == "interrupt"
    if samples == 1:
        assert tiled is naive is None
        assert result.records[0].reason == "interrupted before it was timed"
    else:
        assert len(tiled.samples_s) == len(naive.samples_s) == samples - 1
        assert tiled.relative_to_cublas is not None


def test_ctrl_c_in_the_cpu_keeps_its_samples(cuda, monkeypatch):
    times = iter([1.0, 2.0])

    def interrupted(workload):
        try:
            return next(times)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr("toolkit.profiling.on_cpu._seconds", interrupted)
    result = measure("cpu", "tiled")
    assert result.status == "interrupted"
    assert record_of(result, "cpu").measured.samples_s == (1.0, 2.0)
    assert record_of(result, "tiled").status == "skipped"


def test_progress_ends_with_the_last_step(cuda):
    progress = Heard()
    measure("tiled", "one-block", progress=progress)
    assert (
        len(progress.steps) == progress.stages[0][1] == 4
    )  # the reference, two checks, the timing
    progress = Heard()
    measure("tiled", "cublas", "cpu", progress=progress)  # without cuBLAS
    assert len(progress.steps) == progress.stages[0][1] == 5


def test_counters_of_the_code_that_was_launched_stand_beside_its_times(
    cuda, simulated, monkeypatch
):
    given = []
    behind = LadderSimulator.simulate

    def remembered(simulator, cubin, selection, residence):
        given.append(cubin)
        return behind(simulator, cubin, selection, residence)

    monkeypatch.setattr(LadderSimulator, "simulate", remembered)
    record = measured("tiled")
    assert [(cubin.symbol, cubin.architecture) for cubin in given] == [("sgemm_tiled", "sm_90")]
    assert record.measured is not None
    assert record.simulated is not None
    assert "blocks" not in record.check.bound  # the GPU's own verdict, on every element


def test_a_wrong_result_is_not_simulated(cuda, simulated, monkeypatch):
    cuda.kernels["sgemm_tiled"] = wrong_at(1, 2)
    monkeypatch.setattr(LadderSimulator, "simulate", None)
    record = measured("tiled")
    assert record.status == "failed"
    assert record.simulated is None


def test_what_the_simulator_does_not_know_is_a_note(cuda, simulated, monkeypatch):
    def refuse(*arguments):
        raise UnsupportedError("NEW R1 at 0x0010: unknown")

    monkeypatch.setattr(LadderSimulator, "simulate", refuse)
    record = measured("tiled")
    assert (record.status, record.simulated) == ("ok", None)
    assert record.measured is not None
    assert record.notes == ("not simulated: NEW R1 at 0x0010: unknown",)


def test_a_simulator_that_computes_otherwise_than_the_gpu_is_not_believed(
    cuda, simulated, monkeypatch
):
    behind = LadderSimulator.simulate

    def wrong(*arguments):
        found = behind(*arguments)
        return replace(found, check=replace(found.check, passed=False))

    monkeypatch.setattr(LadderSimulator, "simulate", wrong)
    record = measured("tiled")
    assert record.simulated is None
    assert record.notes == (
        "not simulated: the simulator computes another result than the GPU, a wrong one",
    )


class Warming:
    """A GPU that is a degree warmer at every question, which comes between kernels alone."""

    def __init__(self, cuda):
        self.cuda, self.questions = cuda, 0

    def state(self):
        assert self.cuda.log[-1] != "hold"  # within a timed interval
        self.questions += 1
        self.cuda.log.append("state")
        return GpuState(sm_clock_hz=1.98e9, temperature_c=40.0 + self.questions)


def test_the_gpus_state_is_kept_over_the_rounds(cuda, monkeypatch):
    warming = Warming(cuda)
    monkeypatch.setattr(gpu_bench.GpuMonitor, "state", lambda monitor: warming.state())
    monkeypatch.setattr("toolkit.gpu.conditions.APART_S", 0.0)
    result = measure("tiled", "naive-coalesced")
    (conditions,) = result.conditions
    assert conditions.shape == result.records[0].shape
    assert [one.rounds for one in conditions.moments] == list(range(FEWEST_SAMPLES + 1))
    # the question before the rounds is the 41st degree, the first of them the 42nd
    assert [one.state.temperature_c for one in conditions.moments][:2] == [42.0, 43.0]
    timed = [one for one in cuda.log[cuda.log.index("state") :] if one not in (FLUSH, "hold")]
    one_round = ["sgemm_tiled", "sgemm_naive_coalesced"]
    assert timed[:5] == ["state", "state", *one_round, "state"]


def test_a_resumed_run_keeps_the_conditions_of_what_stands(cuda, monkeypatch):
    monkeypatch.setattr(gpu_bench.GpuMonitor, "state", lambda _: Warming(cuda).state())
    settings = {"executor": "gpu", "sampling": QUICK, "seed": 1}
    first = profile(["32", "64"], ["tiled"], **settings)
    cut = replace(
        first, status="interrupted", records=first.records[:1], conditions=first.conditions[:1]
    )
    again = profile(["32", "64"], ["tiled"], **settings, resume=cut)
    assert again.conditions[0] == first.conditions[0]
    assert [one.shape for one in again.conditions] == [one.shape for one in first.conditions]


def test_without_a_management_library_there_are_no_conditions(cuda):
    assert measure("tiled").conditions == ()
