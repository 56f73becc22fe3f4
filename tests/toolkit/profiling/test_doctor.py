"""The doctor on machines that are made up: driver, commands, packages and files are fakes."""

import threading
import time
from importlib import metadata
from types import SimpleNamespace

import pytest

from analysis.errors import REBUILD, UnavailableError
from toolkit.machine_code import cuda_tools as commands
from toolkit.machine_code.compile import REMEDY
from toolkit.profiling import doctor
from toolkit.profiling.doctor import ABILITIES, ProbeResult, abilities, examine

GPUS = ["NVIDIA GeForce RTX 3090", "Tesla T4"]
PACKAGES = {
    "pycuda": "2026.1",
    "nvmath-python": "1.0.0",
    "nvidia-ml-py": "13.580.65",
}


class FakeDriver:
    """libcuda.so.1 as ctypes calls it: results go through pointers, the status comes back."""

    def __init__(self, gpus, *, status=0, version=13000):
        self.gpus, self.status, self.version = gpus, status, version

    def cuInit(self, _):  # noqa: N802
        return self.status

    def cuDriverGetVersion(self, result):  # noqa: N802
        result._obj.value = self.version
        return 0

    def cuDeviceGetCount(self, result):  # noqa: N802
        result._obj.value = len(self.gpus)
        return self.status

    def cuDeviceGetName(self, text, size, index):  # noqa: N802
        text.value = self.gpus[index].encode()
        assert len(text.value) < size
        return 0

    def cuGetErrorName(self, status, result):  # noqa: N802
        result.contents.value = f"CUDA_ERROR_{status.value}".encode()
        return 0


class Machine:
    """A machine with everything; each test takes something away."""

    def __init__(self, monkeypatch, folder):
        self.driver = FakeDriver(GPUS)
        self.packages = dict(PACKAGES)
        self.modules = {
            "pycuda.driver": SimpleNamespace(),
            "nvmath.bindings.cublasLt": SimpleNamespace(get_version=lambda: 130000),
            "pynvml": SimpleNamespace(nvmlInit=lambda: None),
        }
        self.files = {"/proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n"}
        self.folder = folder
        self.command("nvcc", "Cuda compilation tools, release 13.0, V13.0.88")
        self.command("ncu", "NVIDIA (R) Nsight Compute\nVersion 2025.3.1.0 (build 36398880)")
        monkeypatch.setenv("PATH", str(folder))
        for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setattr(doctor, "driver_library", lambda: self.driver)
        monkeypatch.setattr(doctor, "_read", self.files.get)
        monkeypatch.setattr(doctor, "import_module", self._import)
        monkeypatch.setattr(metadata, "version", self._version)
        monkeypatch.setattr(doctor, "supported_architectures", lambda: [75, 86, 120])
        monkeypatch.setattr(doctor, "compiler_version", lambda: "NVRTC 13.0.88")

    def command(self, name, output, folder=None):
        path = (folder or self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nprintf '%s' '{output}'\n")  # printf is built into sh
        path.chmod(0o755)

    def found(self, name):
        (finding,) = [finding for finding in examine() if finding.name == name]
        return finding

    def _import(self, name):
        module = self.modules[name]
        if isinstance(module, Exception):
            raise module
        return module

    def _version(self, distribution):
        if distribution not in self.packages:
            raise metadata.PackageNotFoundError(distribution)
        return self.packages[distribution]


@pytest.fixture
def machine(monkeypatch, tmp_path):
    return Machine(monkeypatch, tmp_path / "bin")


def test_a_machine_with_everything_can_do_everything(machine):
    findings = examine()
    assert [finding for finding in findings if finding.status != "ok"] == []
    assert [finding.name for finding in findings[-len(ABILITIES) :]] == list(ABILITIES)
    assert len({finding.name for finding in findings}) == len(findings)
    assert not any(finding.remedy for finding in findings)


def test_gpus_are_named(machine):
    assert machine.found("GPU").detail == "NVIDIA GeForce RTX 3090, Tesla T4"
    machine.driver = FakeDriver(GPUS, version=12080)
    assert machine.found("NVIDIA driver").detail == "for CUDA 12.8"


def test_no_driver_is_told_apart_from_a_driver_without_a_gpu(machine):
    machine.driver = FakeDriver([], status=100)  # CUDA_ERROR_NO_DEVICE
    assert machine.found("NVIDIA driver").status == "ok"
    assert machine.found("GPU").status == "optional missing"
    assert machine.found("GPU").detail == "the driver finds no GPU"
    machine.driver = None
    assert machine.found("NVIDIA driver").status == "optional missing"
    assert "install the NVIDIA driver" in machine.found("NVIDIA driver").remedy
    assert machine.found("GPU").detail == "unknown without the driver"


def test_hidden_gpus_are_told_with_the_variable_that_hides_them(machine, monkeypatch):
    machine.driver = FakeDriver([], status=100)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.found("GPU").detail == "the driver finds no GPU; CUDA_VISIBLE_DEVICES=''"
    assert machine.found("GPU").remedy == "unset CUDA_VISIBLE_DEVICES"


def test_a_driver_that_does_not_start_is_a_problem(machine):
    machine.driver = FakeDriver(GPUS, status=803)
    finding = machine.found("NVIDIA driver")
    assert finding.status == "problem"
    assert finding.detail == "for CUDA 13.0, but cuInit fails: CUDA_ERROR_803"
    assert finding.remedy


def test_nvcc_is_found_on_the_path_with_its_version(machine):
    assert machine.found("nvcc") == ProbeResult(name="nvcc", status="ok", detail="13.0.88")


def test_nvcc_off_the_path_is_a_problem_for_pycuda(machine, monkeypatch, tmp_path):
    (machine.folder / "nvcc").unlink()
    machine.command("nvcc", "V12.4.131", tmp_path / "cuda" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    finding = machine.found("nvcc")
    assert finding.status == "problem"
    assert finding.detail.startswith("12.4.131, in CUDA_HOME but not on PATH")
    assert finding.remedy == 'export PATH="$CUDA_HOME/bin:$PATH"'


def test_a_missing_command_names_what_to_install(machine, monkeypatch):
    monkeypatch.setattr(commands, "command_path", lambda *_: None)
    assert machine.found("nvcc").status == "optional missing"
    assert "CUDA toolkit" in machine.found("nvcc").remedy
    assert machine.found("Nsight Compute").status == "optional missing"
    assert "Nsight Compute" in machine.found("Nsight Compute").remedy


@pytest.mark.parametrize(("version", "status"), [(12090, "problem"), (13000, "ok"), (13010, "ok")])
def test_an_nvcc_that_the_driver_is_too_old_for_is_a_problem(version, status, machine):
    machine.driver = FakeDriver(GPUS, version=version)  # nvcc is 13.0.88
    assert machine.found("nvcc").status == status


def test_a_command_that_fails_or_says_nothing_is_a_problem(machine):
    machine.command("nvcc", "")
    assert machine.found("nvcc").detail == "ValueError: `nvcc --version` prints no version"
    (machine.folder / "ncu").write_text("#!/bin/sh\nexit 3\n")
    assert machine.found("Nsight Compute").status == "problem"


def test_nsight_compute_is_found_with_its_version(machine):
    assert machine.found("Nsight Compute").detail == "2025.3.1.0"


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("PyCUDA", "pycuda"),
        ("cuBLAS", "nvmath-python"),
        ("GPU clocks and power", "nvidia-ml-py"),
    ],
)
def test_a_missing_package_is_installed_by_the_extra(name, distribution, machine):
    del machine.packages[distribution]
    finding = machine.found(name)
    assert finding.status == "optional missing"
    assert finding.detail == f"{distribution} is not installed"
    assert finding.remedy == "pip install -e '.[gpu]'"


def test_a_package_that_does_not_import_is_a_problem(machine):
    machine.modules["pycuda.driver"] = ImportError("libcurand.so.10: not found\nmore")
    finding = machine.found("PyCUDA")
    assert finding.status == "problem"
    assert finding.detail == "pycuda 2026.1 does not work: libcurand.so.10: not found"
    assert finding.remedy == "pip install --force-reinstall pycuda"
    machine.driver = None
    assert "install the NVIDIA driver" in machine.found("PyCUDA").remedy


@pytest.mark.parametrize(
    ("capabilities", "status"),
    [
        ("000001ffffffffff", "ok"),
        ("0000000000200000", "ok"),  # bit 21 alone: CAP_SYS_ADMIN
        ("000001ffffdfffff", "problem"),  # all but that
        ("00000000a80425fb", "problem"),  # root in a container
    ],
)
def test_restricted_counters_need_an_administrator(capabilities, status, machine):
    machine.files["/proc/driver/nvidia/params"] = "A: 1\nRmProfilingAdminOnly: 1\nB: 0\n"
    machine.files["/proc/self/status"] = f"Name:\tpython\nCapEff:\t{capabilities}\n"
    finding = machine.found("Permission to read counters")
    assert finding.status == status
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in finding.remedy) == (status == "problem")


def test_without_the_kernel_module_there_are_no_counters(machine):
    machine.files.clear()
    assert machine.found("Permission to read counters").status == "optional missing"


def test_a_missing_nvrtc_is_not_optional(machine, monkeypatch):
    def absent():
        raise UnavailableError(f"NVRTC is not installed: {REMEDY}")

    monkeypatch.setattr(doctor, "supported_architectures", absent)
    assert machine.found("NVRTC") == ProbeResult(
        name="NVRTC", status="missing", detail="NVRTC is not installed", remedy=REMEDY
    )
    assert machine.found("Profile with no GPU").status == "missing"


def test_a_missing_core_is_not_optional(machine, monkeypatch):
    def absent():
        raise UnavailableError(f"the simulator's native core was not built: {REBUILD}")

    assert machine.found("Simulator's core").status == "ok"
    monkeypatch.setattr(doctor, "library", absent)
    assert machine.found("Simulator's core") == ProbeResult(
        name="Simulator's core",
        status="missing",
        detail="the simulator's native core was not built",
        remedy=REBUILD,
    )
    assert machine.found("Profile with no GPU").status == "missing"


def test_a_laptop_can_profile_with_no_gpu(machine):
    machine.driver = None
    machine.packages.clear()
    status = {finding.name: finding.status for finding in examine()[-4:]}
    assert list(status.values()) == ["ok"] + 3 * ["optional missing"]
    assert machine.found("Profile on the GPU").detail == (
        "needs NVIDIA driver, GPU, PyCUDA (see above)"
    )


def test_abilities_need_probes_that_exist():
    assert {need for needs in ABILITIES.values() for need in needs} <= set(doctor._PROBES)
    without_anything = [finding.status for finding in abilities([])]
    assert without_anything == ["missing"] + 3 * ["optional missing"]


def test_a_probe_that_fails_or_hangs_costs_only_its_own_finding():
    def fails():
        raise RuntimeError("broken\nin two lines")

    def hangs():
        time.sleep(10)
        raise AssertionError

    def works():
        return "fine"

    threads = set(threading.enumerate())
    start = time.monotonic()
    findings = doctor._examined({"hangs": hangs, "fails": fails, "works": works}, 0.2)
    assert time.monotonic() - start < 8  # usually 0.2 s
    (hanging,) = set(threading.enumerate()) - threads
    assert hanging.daemon  # or Python would wait for it at its end
    assert findings == [
        ProbeResult(name="hangs", status="problem", detail="no answer within 0.2 s"),
        ProbeResult(name="fails", status="problem", detail="RuntimeError: broken"),
        ProbeResult(name="works", status="ok", detail="fine"),
    ]


def test_the_real_machine_is_examined_without_an_error():
    findings = examine()
    assert [finding.name for finding in findings] == [*doctor._PROBES, *ABILITIES]
    for finding in findings:
        assert "\n" not in finding.detail + finding.remedy
        assert finding.detail
