"""Hardware counters in a profile: a made-up GPU, and a made-up ncu that is run for real."""

import json
from types import SimpleNamespace

import pytest

from tests.heard import Heard
from tests.records_by_hand import counted
from tests.sampling import chosen_of, exhaustive
from tests.toolkit.counted import record_of
from toolkit import profile
from toolkit.gpu.nsight_compute import collect as counting
from toolkit.gpu.nsight_compute import ncu
from toolkit.gpu.nsight_compute.collect import Counting, Pass, middle
from toolkit.gpu.nsight_compute.replay_process import LaunchFolder
from toolkit.gpu.sampling import Sampling

QUICK = Sampling(max_samples=6, time_limit_s=60)
VERSION = "Nsight Compute 2025.3.1"
DRAM_WRITES = "dram__bytes_write.sum"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


@pytest.fixture
def no_machine_code(monkeypatch):
    """The made-up PyCUDA's modules are no machine code, and nothing is to be simulated."""
    monkeypatch.setattr(
        "toolkit.profiling.on_gpu.GpuBench._simulated", lambda bench, record, *_: record
    )


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Folder that contains the folders of launches."""
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def known_kernels(tmp_path_factory):
    """Folder with kernels that the made-up ncu has found in an earlier run."""
    return tmp_path_factory.mktemp("known")


@pytest.fixture
def replay(
    cuda,
    known_kernels,
    no_machine_code,
    kept,
    made_up_ncu,
    tmp_path,
    monkeypatch,
):
    """Put the made-up ncu on the PATH, with faults; what it returns are its command lines.

    It counts traffic once, not several times.
    """
    monkeypatch.setattr(ncu, "TRAFFIC_TIMES", 1)
    history = tmp_path / "history"

    files = {"history": str(history), "known": str(known_kernels)}

    def with_faults(**faults):
        monkeypatch.setenv("FAKE_NCU", json.dumps(files | faults))
        return CommandLines(history)

    with_faults()
    return with_faults


class CommandLines(list[list[str]]):
    """The command lines of ncu that counted, read when they are asked for."""

    def __init__(self, path):
        self._path = path

    def read(self):
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [line for line in map(json.loads, lines) if "--metrics" in line]


A_SHAPE = 2  # runs of ncu: instructions, and traffic


def count(*variants, shapes=("32",), **settings):
    settings = {"executor": "gpu", "sampling": QUICK, "seed": 1, "counters": True} | settings
    return profile(shapes, variants or ("tiled", "naive-coalesced", "cublas"), **settings)


def heard(*variants, **settings):
    told = Heard()
    return told, count(*variants, progress=told, **settings)


def test_every_launch_that_passed_is_counted(cublas, replay, kept):
    told, result = heard("tiled:tile=16", "cublas", "cpu", shapes=("32", "48"))
    for shape in ("32x32x32", "48x48x48"):
        tiled = record_of(result, "tiled:tile=16", shape).counted
        # the made-up ncu counts 1000 for each place behind the marker, and the letters of a name
        assert tiled.counters == {name: 2000 + sum(map(ord, name)) for name in ncu.COUNTER_NAMES}
        assert (tiled.source, tiled.caches, tiled.missing) == (VERSION, "flushed", ())
        (kernel,) = tiled.kernels
        assert (kernel.name, kernel.block, kernel.tile) == ("sgemm_tiled", (16, 16, 1), None)
        assert kernel.registers_per_thread == 40
        assert record_of(result, "cpu", shape).counted is None
        assert record_of(result, "cublas", shape).counted is not None
    assert result.environment.software["Nsight Compute"] == "2025.3.1.0"
    assert "Hardware counters" not in result.environment.software
    assert told.notices == []
    assert "counters of cublas: 2 of 2" in told.details
    assert list(kept.iterdir()) == []
    assert "--counters" in result.command.split()


def test_a_library_is_counted_over_all_its_kernels(cublas, replay):
    record = record_of(count("cublas"), "cublas")
    assert record.counted.counters[FFMA] == 2000 + 3000 + 2 * sum(map(ord, FFMA))
    main, reduction = record.counted.kernels
    assert main.name == "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"
    assert (main.tile, reduction.tile) == ((64, 128), None)  # rows and columns of row-major C
    assert record.notes == (
        "cuBLAS 13.1.2",
        "cuBLAS launched cutlass_80_simt_sgemm_128x64_8x5_nn_align1 (64 rows × 128 columns of C "
        "per block, grid 64 × 32 × 1, blocks of 256 × 1 × 1 threads, 40 registers per thread, "
        "8,192 bytes of shared memory), then void splitKreduce_kernel<32>(T1) (grid 64 × 32 × 1, "
        "blocks of 256 × 1 × 1 threads, 40 registers per thread, 8,192 bytes of shared memory)",
    )


def test_a_run_of_ncu_counts_instructions_and_several_count_traffic(cublas, replay, monkeypatch):
    monkeypatch.setattr(ncu, "TRAFFIC_TIMES", 3)
    lines = replay()
    count(shapes=("32", "48"))
    asked = [line[line.index("--metrics") + 1].split(",") for line in lines.read()]
    traffic = ncu.TRAFFIC_TIMES * [[*ncu.TRAFFIC, *ncu.OF_LAUNCH]]
    assert asked == 2 * [[*ncu.INSTRUCTIONS, *ncu.OF_LAUNCH], *traffic]
    assert DRAM_WRITES in ncu.TRAFFIC
    assert sorted(ncu.INSTRUCTIONS + ncu.TRAFFIC) == sorted(ncu.COUNTER_NAMES)


def test_traffic_is_the_median_of_what_several_launches_had():
    def counts(reads, missing=(), **others):
        return counted({DRAM_WRITES: 5, "reads": reads} | others, missing=missing)

    three = [counts(7, once=1), counts(90, missing=("once",)), counts(8, missing=("once",))]
    found = middle(three)
    assert found.counters == {DRAM_WRITES: 5, "reads": 8}
    assert found.missing == ("once",)
    assert middle(["it crashed", counts(3), None]) == counts(3)
    assert middle([None, "it crashed", "again"]) == "it crashed"
    assert middle([None, None]) is None


def test_what_was_counted_once_stays_where_a_later_count_fails(monkeypatch):
    told = Heard()
    counting = Counting(told)
    launches = [SimpleNamespace(label=label) for label in ("tiled", "naive-coalesced")]
    ones = {name: counted({name: 3}) for name in (*ncu.INSTRUCTIONS[:1], DRAM_WRITES)}
    asked = []

    def count_them(own, some):
        is_traffic = own.asked == ncu.TRAFFIC
        asked.append(("traffic" if is_traffic else "all", [one.label for one in some]))
        if not is_traffic:
            return {one.label: ones[ncu.INSTRUCTIONS[0]] for one in some}
        if asked[-2][0] == "traffic":  # the second time
            own.give_up("it hangs")
            return {}
        return {"tiled": ones[DRAM_WRITES], "naive-coalesced": "it crashed"}

    monkeypatch.setattr(Pass, "count", count_them)
    monkeypatch.setattr(LaunchFolder, "add", lambda *_, **__: None)
    with counting:
        counting.give_up("")  # there is no ncu here
        told.notices.clear()
        for _ in range(2):  # shapes
            found = counting.count(launches, seed=1, images={}, markers=b"", expected_s={})
            tiled, other = found["tiled"], found["naive-coalesced"]
            assert set(tiled.counters) == {ncu.INSTRUCTIONS[0], DRAM_WRITES}
            assert (tiled.missing, other.missing) == ((), ncu.TRAFFIC)
    both = ["tiled", "naive-coalesced"]
    assert asked == 2 * [("all", both), ("traffic", both), ("traffic", ["tiled"])]
    traffic = f"counters from {ncu.TRAFFIC[0]} to {ncu.TRAFFIC[-1]}"
    assert told.notices == 2 * [
        f"no further {traffic}: it hangs",
        f"no {traffic} of naive-coalesced: it crashed",
    ]


def test_traffic_that_cannot_be_counted_costs_nothing_else(cublas, replay):
    replay(crashes=["tiled"], crashes_with=DRAM_WRITES)
    told, result = heard()
    traffic = f"counters from {ncu.TRAFFIC[0]} to {ncu.TRAFFIC[-1]}"
    assert told.notices == [f"no {traffic} of tiled: UnknownError"]
    assert f"not counted: {', '.join(ncu.TRAFFIC)}" in record_of(result, "tiled").notes
    tiled, other = (record_of(result, label).counted for label in ("tiled", "naive-coalesced"))
    assert tiled.missing == ncu.TRAFFIC
    assert tuple(tiled.counters) == ncu.INSTRUCTIONS
    assert (other.missing, tuple(other.counters)) == ((), ncu.COUNTER_NAMES)


@pytest.mark.parametrize(
    "faults",
    chosen_of(
        [{"fails_with": DRAM_WRITES}, {"unknown": [*ncu.TRAFFIC]}, {"crashes_with": DRAM_WRITES}],
        lambda faults: "fails_with" in faults,
    ),
)
def test_a_run_for_traffic_that_fails_costs_no_other_counters(faults, cublas, replay):
    crashing = ["tiled", "naive-coalesced", "cublas"] if "crashes_with" in faults else []
    replay(**faults, crashes=crashing)
    told, result = heard(shapes=("32", "48"))
    assert told.notices
    for record in result.records:
        assert tuple(record.counted.counters) == ncu.INSTRUCTIONS
        assert record.counted.missing == ncu.TRAFFIC
    assert "Hardware counters" not in result.environment.software


def test_nothing_is_counted_unless_asked(cublas, replay):
    lines = replay()
    result = count(counters=False)
    assert lines.read() == []
    assert all(record.counted is None for record in result.records)
    assert "--counters" not in result.command


def test_what_failed_its_check_is_not_counted(cuda, cublas, replay):
    cuda.kernels["sgemm_tiled"] = lambda launch: None
    result = count()
    assert record_of(result, "tiled").counted is None
    assert record_of(result, "tiled").notes == ()
    assert record_of(result, "naive-coalesced").counted is not None


def test_a_missing_ncu_is_said_once_with_the_remedy(cublas, replay, monkeypatch):
    monkeypatch.setattr("toolkit.machine_code.cuda_tools.command_path", lambda *_: None)
    told, result = heard(shapes=("32", "48"))
    problem = f"there is no ncu on this machine: {ncu.INSTALL}"
    assert told.notices == [f"no hardware counters: {problem}"]
    assert result.environment.software["Hardware counters"] == f"none: {problem}"
    assert all(record.measured is not None for record in result.records)
    assert not any("count" in note for record in result.records for note in record.notes)


def test_a_broken_ncu_is_said_with_the_remedy(cublas, replay, monkeypatch):
    monkeypatch.setattr("toolkit.gpu.nsight_compute.ncu.path", lambda: "/bin/false")
    told, _ = heard()
    (notice,) = told.notices
    assert notice.startswith("no hardware counters: /bin/false does not work (")
    assert notice.endswith(ncu.INSTALL)


def test_without_permission_the_remedy_is_told(cublas, replay, kept):
    lines = replay(permission=False)
    told, result = heard(shapes=("32", "48"))
    assert result.status == "complete"
    assert len(lines.read()) == 1  # it is not tried again
    problem = f"only administrators may read them here: {ncu.ALLOW_COUNTERS}"
    assert result.environment.software["Hardware counters"] == f"none: {problem}"
    assert told.notices == [f"no hardware counters: {problem}"]
    assert list(kept.iterdir()) == []


def test_metrics_that_this_gpu_lacks_are_left_out(cublas, replay):
    first, second = ncu.COUNTER_NAMES[2], ncu.COUNTER_NAMES[5]
    lines = replay(unknown=[first, second])
    told, result = heard(shapes=("32", "48"))
    assert (
        len(lines.read()) == 2 * A_SHAPE + 2
    )  # two that fail for one metric each; then they are known
    assert told.notices == [
        f"hardware counters that this GPU lacks: {first}",
        f"hardware counters that this GPU lacks: {second}",
    ]
    for record in result.records:
        assert record.counted.missing == (first, second)
        assert not {first, second} & record.counted.counters.keys()
        assert len(record.counted.counters) == len(ncu.COUNTER_NAMES) - 2


def test_metrics_without_a_value_are_missing(cublas, replay):
    replay(not_counted=[FFMA])
    record = record_of(count("tiled"), "tiled")
    assert record.counted.missing == (FFMA,)


def test_registers_without_a_value_are_an_error_of_the_launch(cublas, replay):
    replay(not_counted=[ncu.REGISTERS])
    record = record_of(count("tiled"), "tiled")
    assert record.counted is None
    assert record.notes == (
        "not counted: tiled at 32x32x32: launch__registers_per_thread of sgemm_tiled was not "
        "counted",
    )


@pytest.mark.parametrize("culprit", [exhaustive("tiled"), "naive-coalesced", exhaustive("cublas")])
def test_a_launch_that_ncu_breaks_off_in_costs_its_own_counters(culprit, cublas, replay):
    replay(crashes=[culprit])
    result = count()
    for record in result.records:
        assert (record.counted is None) == (record.label == culprit)
        assert ("not counted: UnknownError" in record.notes) == (record.label == culprit)


@pytest.mark.parametrize(
    "culprit", chosen_of(["tiled", "naive-coalesced", "cublas"], lambda culprit: culprit == "tiled")
)
def test_a_launch_that_hangs_is_stopped_and_costs_its_own_counters(
    culprit, cublas, replay, monkeypatch
):
    monkeypatch.setattr(counting, "PATIENCE_S", 1.0)
    monkeypatch.setattr(counting, "PATIENCE_LAUNCHES", 0)
    replay(hangs=[culprit])
    result = count()
    for record in result.records:
        assert (record.counted is None) == (record.label == culprit)
    assert record_of(result, culprit).notes[-1] == (
        "not counted: ncu took too long and was stopped"
    )


def test_a_launch_whose_report_kills_ncu_is_found(cublas, replay):
    replay(lost=["naive-coalesced"])
    result = count()
    assert [record.counted is None for record in result.records] == [False, True, False]
    notes = record_of(result, "naive-coalesced").notes
    assert notes == ("not counted: ncu ended with 245",)  # -11 as a shell's exit code


def test_a_launch_that_fails_by_itself_says_why(cublas, replay):
    lines = replay(fails={"tiled": "launch: out of memory"})
    result = count()
    assert record_of(result, "tiled").notes == ("not counted: launch: out of memory",)
    assert record_of(result, "cublas").counted is not None
    assert len(lines.read()) == A_SHAPE


def test_what_concerns_every_launch_is_said_once(cublas, replay):
    lines = replay(unavailable=True)
    told, result = heard(shapes=("32", "48"))
    assert len(lines.read()) == counting.HOPELESS
    cause = "Profiling failed because a driver resource was unavailable. Ensure that no other "
    assert len(told.notices) == 1
    assert told.notices[0].startswith(f"no hardware counters: {cause}")
    assert result.environment.software["Hardware counters"].startswith(f"none: {cause}")
    assert all(record.measured is not None for record in result.records)


@pytest.mark.parametrize("failing", [(LaunchFolder, "add"), (ncu, "run")])
def test_a_full_disk_and_a_command_that_cannot_be_started_are_said_once(
    failing, cublas, replay, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*failing, full)
    told = Heard()
    result = count("tiled", shapes=("32", "48"), progress=told)
    problem = "[Errno 28] No space left on device: run `python -m toolkit doctor`"
    assert told.notices == [f"no hardware counters: {problem}"]
    assert result.environment.software["Hardware counters"] == f"none: {problem}"
    assert all(record.measured and not record.counted for record in result.records)


def test_a_process_that_dies_at_once_is_said_once(cublas, replay):
    lines = replay(dies="the CUDA driver finds no GPU (busy): run `python -m toolkit doctor`")
    told, _ = heard()
    assert len(lines.read()) == 1
    assert told.notices == [
        "no hardware counters: the CUDA driver finds no GPU (busy): run `python -m toolkit doctor`"
    ]


def test_ctrl_c_keeps_what_was_measured_and_counted(cublas, replay, kept):
    class SecondShape(Heard):
        def stage(self, text, steps):
            self.at = "counters of cublas.*" if text.startswith("48") else None

    result = count(shapes=("32", "48"), progress=SecondShape())
    assert result.status == "interrupted"
    assert [record.counted is None for record in result.records] == [False] * 3 + [True] * 3
    assert all(record.measured is not None for record in result.records)
    assert list(kept.iterdir()) == []


@pytest.mark.exhaustive  # as what failed its check
def test_what_faults_is_not_counted_and_the_others_are(children, cublas, replay):
    children("cuda.kernels['sgemm_tiled'] = lambda launch: cuda.fault()")
    lines, told = replay(), Heard()
    result = count(progress=told)
    assert record_of(result, "tiled").status == "failed"
    assert record_of(result, "naive-coalesced").counted is not None
    assert len(lines.read()) == A_SHAPE
    assert told.notices == []
