"""The CPU reference: right, timed, and left out where it would take too long."""

from datetime import UTC, datetime
from math import inf

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.errors import ShapeError
from analysis.problem import Gemm, parse_shape
from kernels import parse_selection
from toolkit.gpu.sampling import Sampling
from toolkit.launch import host_resources
from toolkit.launch.host_resources import available_bytes, blas_on_one_thread, sparse_zeros
from toolkit.profiling import on_cpu as host
from toolkit.profiling.on_cpu import known_cpu, measure_cpu
from toolkit.profiling.plan import make_plan
from toolkit.profiling.record import planned
from toolkit.rungs.matrices import Workload

SHAPE = parse_shape("20x30x10")


def measure(shape=SHAPE, *, variants=("cpu",), sampling=None):
    sampling = sampling or Sampling(max_samples=3)
    plan = make_plan([shape], variants, sampling=sampling, seed=1)
    record = planned(parse_selection("cpu"), shape, find_device("t4"))
    return measure_cpu(record, Workload(shape, 1), plan)


def test_the_product_is_checked_and_timed():
    record, interrupted = measure()
    assert not interrupted
    assert record.status == "ok"
    assert record.check.passed
    assert len(record.measured.samples_s) == 3
    assert (record.measured.clock, record.measured.l2) == ("host clock", "host")


def known(seed, variants=None, precision=0.01):
    sampling = Sampling(max_samples=3, precision=precision)
    plan = make_plan([SHAPE], variants, sampling=sampling, seed=seed)
    record = planned(parse_selection("cpu"), SHAPE, find_device("t4"))
    return known_cpu(record, Workload(SHAPE, seed), plan)[0]


def test_a_later_run_shows_what_was_measured_on_this_machine_and_when(empty_cache, monkeypatch):
    first, second = known(1), known(2)
    assert (first.notes, first.check) == ((), second.check)
    assert second.measured == first.measured
    day = datetime.now(UTC).date().isoformat()
    assert second.notes == (f"measured on this machine on {day}; --variant cpu measures again",)
    monkeypatch.setattr(host, "cpu", lambda: "another CPU")
    assert known(1).notes == ()


def test_who_asks_for_the_cpu_gets_it_measured_and_renews_what_is_kept(empty_cache):
    first = known(1)
    asked = known(1, variants=["cpu"])
    assert asked.notes == ()
    assert known(1).measured == asked.measured != first.measured
    assert known(1, precision=0.1).notes == ()  # of other samples


def test_a_wrong_product_is_not_kept(empty_cache, monkeypatch):
    monkeypatch.setattr(host, "_sgemm", lambda a, b: a @ b + np.float32(1e-3))
    assert known(1).status == "failed"
    assert not list(empty_cache.glob("*"))


def test_rows_are_columns_to_blas():
    workload = Workload(SHAPE, 1)
    product = host._sgemm(workload.a, workload.b)
    assert product.shape == (20, 30)
    assert np.allclose(product, workload.a @ workload.b, atol=1e-5)


def test_a_wrong_product_is_not_timed(monkeypatch):
    monkeypatch.setattr(host, "_sgemm", lambda a, b: a @ b + np.float32(1e-3))
    record, interrupted = measure()
    assert (record.status, record.measured, interrupted) == ("failed", None, False)
    assert record.reason.startswith("wrong result: the error of C[")


def test_it_is_left_out_where_it_takes_too_long_unless_it_is_named(
    monkeypatch,
):
    monkeypatch.setattr(host, "_expected_seconds", lambda problem, seed: 21.0)
    record, _ = measure(variants=None, sampling=Sampling(time_limit_s=2.0, max_samples=3))
    assert record.status == "skipped"
    assert record.reason == "one product would take about 21 s: ask for it with --variant cpu"
    record, _ = measure(variants=["cpu"])
    assert record.status == "ok"


def test_the_expected_time_grows_with_the_work(monkeypatch):
    monkeypatch.setattr(host, "_seconds", lambda workload: 0.01)
    twice = Gemm(m=host.TRIAL.m, n=host.TRIAL.n, k=2 * host.TRIAL.k)
    assert host._expected_seconds(twice, 1) == pytest.approx(0.02)


def test_no_room_on_the_host_is_said(monkeypatch):
    needed = 5 * 4 * (20 * 10 + 10 * 30 + 20 * 30)
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: needed)
    assert measure()[0].status == "ok"
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: needed - 1)
    record, interrupted = measure()
    assert (record.status, interrupted) == ("skipped", False)
    assert record.reason.startswith("needs about 0.0 GB on the host, ")


@pytest.mark.parametrize("position", [0, 1, 5])
def test_ctrl_c_keeps_the_samples(monkeypatch, position):
    times = iter([0.1] * position)

    def seconds(workload):
        try:
            return next(times)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(host, "_seconds", seconds)
    record, interrupted = measure(sampling=Sampling())
    assert interrupted
    if position:
        assert record.measured.samples_s == (0.1,) * position
        assert record.measured.stopped_by == "interrupt"
    else:
        assert (record.status, record.measured) == ("skipped", None)


def test_the_free_memory_is_a_plausible_number():
    available = available_bytes()
    assert available == inf or 2**20 < available < 2**50


MEMINFO = "/proc/meminfo"
LIMIT, USED = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"
USES = "/sys/fs/cgroup/memory.stat"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, inf),
        ({MEMINFO: ""}, inf),
        ({MEMINFO: "MemTotal: 5 kB"}, inf),
        ({MEMINFO: "MemAvailable: many kB"}, inf),
        ({MEMINFO: "MemTotal: 9 kB\nMemAvailable: 5 kB"}, 5 * 1024),
        ({MEMINFO: "MemAvailable: 5 kB", LIMIT: "max\n", USED: "7\n"}, 5 * 1024),
        ({MEMINFO: "MemAvailable: 5 kB", LIMIT: "3000\n", USED: "2000\n"}, 1000),
        ({MEMINFO: "MemAvailable: 5 kB", LIMIT: "9000\n", USED: "0\n"}, 5 * 1024),
        ({LIMIT: "3000\n", USED: "4000\n"}, 0),
        ({LIMIT: "3000\n"}, inf),
        # files that the system keeps in memory as long as nothing else needs it
        ({LIMIT: "9\n", USED: "9\n", USES: "anon 2\ninactive_file 4\nactive_file 3\n"}, 7),
        ({LIMIT: "9\n", USED: "9\n", USES: "anon 9\nshmem 1\n"}, 0),
    ],
)
def test_free_memory_is_the_least_of_the_hosts_and_the_containers(monkeypatch, files, expected):
    def read_text(path, encoding=None):
        if str(path) not in files:
            raise FileNotFoundError
        return files[str(path)]

    monkeypatch.setattr("pathlib.Path.read_text", read_text)
    assert available_bytes() == expected


def test_a_reference_that_was_not_asked_for_takes_a_share_of_the_time(
    monkeypatch,
):
    given = []

    def interleave(timers, sampling):
        given.append(sampling.time_limit_s)
        return host_interleave(timers, Sampling(max_samples=1))

    host_interleave = host.interleave
    monkeypatch.setattr(host, "interleave", interleave)
    measure(variants=None, sampling=Sampling(time_limit_s=2.0))
    measure(variants=["cpu"], sampling=Sampling(time_limit_s=2.0))
    assert given == [2.0 * host.TIME_SHARE, 2.0]


def test_a_product_as_long_as_the_time_limit_is_the_only_sample(
    monkeypatch,
):
    monkeypatch.setattr(host, "_expected_seconds", lambda problem, seed: 0.0)
    record, interrupted = measure(variants=None, sampling=Sampling(time_limit_s=1e-9))
    assert (len(record.measured.samples_s), interrupted) == (1, False)
    assert record.check.passed


@pytest.mark.parametrize("shape", [(3, 5), (0,), (1 << 20, 1 << 10)])
def test_sparse_zeros_are_zeros_that_can_be_written(shape):
    found = sparse_zeros(shape, np.float32)
    assert (found.shape, found.dtype) == (shape, np.float32)
    found[-1:] = 1
    assert found[-1:].all()
    assert not found[:-1][:1000].any()


@pytest.mark.parametrize("shape", [(1 << 28, 1 << 28), (1 << 30, 1 << 32)])
def test_more_zeros_than_there_can_be_are_refused(shape):
    with pytest.raises(ShapeError, match=r"elements takes \d+\.\d GB, more than this"):
        sparse_zeros(shape, np.float32)


def test_blas_has_one_thread_for_a_while_and_then_as_many_as_before():
    threads = host_resources._blas_threads()
    if threads is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    get, set_to = threads
    set_to(2)
    before = get()  # where there is one core, one
    with blas_on_one_thread():
        assert get() == 1
    assert get() == before


def test_who_leaves_last_gives_blas_its_threads_back(monkeypatch):
    threads = [4]

    def set_to(count):
        threads[0] = count

    monkeypatch.setattr(host_resources, "_blas_threads", lambda: (lambda: threads[0], set_to))
    first, second = blas_on_one_thread(), blas_on_one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads == [1]
    second.__exit__(None, None, None)
    assert threads == [4]


def test_another_blas_goes_on_as_it_does(monkeypatch):
    monkeypatch.setattr(host_resources, "_blas_threads", lambda: None)
    with blas_on_one_thread():
        assert (np.eye(3) @ np.eye(3)).sum() == 3
