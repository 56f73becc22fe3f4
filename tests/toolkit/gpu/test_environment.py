"""Environment of a profile: it never fails, and has no name of the host or the user."""

import os
import platform
import shutil
import subprocess
import sys
from types import ModuleType

import pytest

from analysis.records.profile import GpuState
from toolkit.gpu import environment as surroundings
from toolkit.gpu.environment import GpuMonitor, commit, environment


class NvmlError(Exception):
    pass


BUS = "0000:65:00.0"


class FakeNvml(ModuleType):
    """A GPU of 1,755 MHz, 7,001 MHz memory, 215.5 W and 61 °C at bus 65, as pynvml tells it."""

    def __init__(self):
        super().__init__("pynvml")
        self.reasons = 0
        self.shut_down = 0

    def nvmlInit(self): ...  # noqa: N802

    def nvmlShutdown(self):  # noqa: N802
        self.shut_down += 1

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return "580.65.06"

    def nvmlDeviceGetHandleByPciBusId(self, bus):  # noqa: N802
        return self._only(bus == BUS)

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return f"Fake {handle}"

    def nvmlDeviceGetClockInfo(self, handle, clock):  # noqa: N802
        return {1: 1755, 2: 7001}[clock]

    def nvmlDeviceGetPowerUsage(self, handle):  # noqa: N802
        return 215_500

    def nvmlDeviceGetTemperature(self, handle, sensor):  # noqa: N802
        return {0: 61}[sensor]

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):  # noqa: N802
        return self.reasons

    @staticmethod
    def _only(found):
        if not found:
            raise NvmlError("Not Found")
        return "GPU 65"


@pytest.fixture
def nvml(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_the_state_is_in_si_units(nvml):
    assert GpuMonitor(BUS).state() == GpuState(
        sm_clock_hz=1.755e9,
        memory_clock_hz=7.001e9,
        power_w=215.5,
        temperature_c=61.0,
        throttle_reasons=(),
    )


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x0, ()),
        (0x1, ()),  # an idle GPU is not throttled
        (0x5, ("power cap",)),
        (0x68, ("hardware slowdown", "thermal (software)", "thermal (hardware)")),
        (0x80, ("power brake",)),
        (0x1000, ("unknown (0x1000)",)),
    ],
)
def test_throttle_reasons_have_names(bits, names, nvml):
    nvml.reasons = bits
    assert GpuMonitor(BUS).state().throttle_reasons == names


def test_what_the_gpu_does_not_know_is_absent(nvml):
    def unsupported(*_):
        raise NvmlError("Not Supported")

    nvml.nvmlDeviceGetPowerUsage = unsupported  # type: ignore[method-assign, assignment]
    state = GpuMonitor(BUS).state()
    assert state.power_w is None
    assert state.temperature_c == 61


def test_a_gpu_that_is_not_there_has_an_empty_state(nvml):
    monitor = GpuMonitor("0000:01:00.0")
    assert monitor.state() == GpuState()
    assert monitor.name is None
    assert monitor.driver_version == "580.65.06"


def test_without_the_library_everything_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with GpuMonitor(BUS) as monitor:
        assert monitor.state() == GpuState()
        assert (monitor.name, monitor.driver_version) == (None, None)


def test_without_a_driver_everything_is_absent(nvml):
    def no_driver():
        raise NvmlError("Driver Not Loaded")

    nvml.nvmlInit = no_driver
    with GpuMonitor(BUS) as monitor:
        assert monitor.state() == GpuState()
    assert nvml.shut_down == 0


def test_a_closed_monitor_knows_nothing(nvml):
    with GpuMonitor(BUS) as monitor:
        pass
    monitor.close()
    assert monitor.state() == GpuState()
    assert nvml.shut_down == 1


def test_the_environment_names_the_gpu_and_its_driver(nvml):
    found = environment(GpuMonitor(BUS))
    assert found.hardware["GPU"] == "Fake GPU 65"
    assert found.software["NVIDIA driver"] == "580.65.06"
    assert "GPU" not in environment().hardware
    assert "GPU" not in environment(GpuMonitor("0000:01:00.0")).hardware


def test_versions_are_those_of_the_packages(monkeypatch):
    versions = {"gemm-ladder": "0.1.0", "pycuda": "2026.1", "nvidia-cuda-nvrtc": "13.0.88"}
    monkeypatch.setattr(surroundings, "_version", versions.get)
    found = environment()
    assert found.toolkit_version == "0.1.0"
    assert found.software["Python"] == platform.python_version()
    assert found.software["PyCUDA"] == "2026.1"
    assert found.software["NVRTC"] == "13.0.88"
    assert "scipy" not in found.software  # what is not installed is not named


def test_a_package_that_is_not_installed_has_no_version():
    assert surroundings._version("no-such-package-here") is None


def test_neither_the_host_nor_the_user_is_named(monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "secret-host")
    monkeypatch.setenv("USER", "secret-user")
    text = repr(environment())
    assert "secret" not in text
    node = os.uname().nodename
    assert len(node) < 5 or node not in text  # a short name may be part of another word


def test_the_processor_is_named_with_its_cores(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Fast  CPU @ 3 GHz\nmodel name\t: Fast\n")
    assert surroundings._cpu_model(cpuinfo) == "Fast CPU @ 3 GHz"
    assert surroundings._cpu_model(tmp_path / "absent") is None
    assert environment().hardware["CPU"].endswith(" logical cores")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("GEMM_LADDER_COMMIT", raising=False)
    if shutil.which("git") is None:
        pytest.skip("needs git")
    (tmp_path / "file").write_text("one")
    for command in ("init -q", "add file", "commit -q -m One"):
        git(tmp_path, command)
    return tmp_path


def git(folder, command):
    identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *command.split()], cwd=folder, check=True)


def test_a_checkout_is_named_by_its_short_hash(checkout):
    head = checkout / ".git" / "refs" / "heads"
    (branch,) = head.iterdir()
    assert commit(checkout) == branch.read_text()[:7]


def test_a_changed_checkout_has_a_plus(checkout):
    clean = commit(checkout)
    (checkout / "untracked").touch()
    assert commit(checkout) == clean
    (checkout / "file").write_text("two")
    assert commit(checkout) == f"{clean}+"


def test_a_tag_does_not_replace_the_hash(checkout):
    before = commit(checkout)
    git(checkout, "tag -a -m One v1")
    assert commit(checkout) == before


def test_the_repository_of_a_git_hook_is_not_taken_for_ours(
    checkout, tmp_path_factory, monkeypatch
):
    monkeypatch.setenv("GIT_DIR", str(tmp_path_factory.mktemp("other")))
    assert commit(checkout) is not None


def test_a_folder_inside_another_checkout_is_none_itself(checkout):
    installed = checkout / "site-packages"
    installed.mkdir()
    assert commit(installed) is None


def test_git_that_is_absent_or_slow_or_fails_is_no_error(checkout, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    assert commit(checkout) is None
    fake = folder / "git"
    for script in ("#!/bin/sh\nexit 1\n", "#!/bin/sh\nexec /bin/sleep 60\n"):
        fake.write_text(script)
        fake.chmod(0o755)
        assert commit(checkout) is None


def test_a_copy_of_a_checkout_can_be_told_its_commit(monkeypatch, tmp_path):
    monkeypatch.delenv("GEMM_LADDER_COMMIT", raising=False)
    assert commit(tmp_path) is None
    monkeypatch.setenv("GEMM_LADDER_COMMIT", "abc1234")
    assert commit(tmp_path) == "abc1234"
