"""Contents of an installed package, and its behaviour if something is missing.

An editable install hides missing files, so these tests use wheels.
"""

import os
import sys
import tarfile
import venv
import zipfile

import pytest

from tests.processes import ran, said
from toolkit import native
from toolkit.machine_code.cuda_tools import nvidia_remedy
from validation import ROOT

PACKAGES = ("analysis", "kernels", "reports", "toolkit")
SAXPY = """extern "C" __global__ void saxpy(float *y, const float *x, float a)
{
    y[threadIdx.x] += a * x[threadIdx.x];
}
"""
LAUNCH = ("saxpy.cu", "-g", "1", "-b", "32", "-a", "f32[32]", "-a", "f32[32]", "-a", "f32=2")
COMMANDS = (
    ("list",),
    ("profile", "-s", "64", "-v", "tiled", "--executor", "simulate"),
    ("report", "profile.json"),
    ("simulate", *LAUNCH),
    ("check", *LAUNCH),
)


def sources():
    """Every file of the packages that git knows or would add."""
    listed = said(["git", "ls-files", "-co", "--exclude-standard", *PACKAGES], cwd=ROOT)
    return [name for name in listed.splitlines() if (ROOT / name).exists()]


def call(command, folder, **environment):
    """Standard output of a command that has to succeed."""
    return said(command, cwd=folder, env=environment or None)


@pytest.fixture
def tree(tmp_path):
    """A copy of what the distributions are made from; nothing is built in the checkout."""
    folder = tmp_path / "tree"
    beside = ["pyproject.toml", "setup.py", "build_backend.py", "MANIFEST.in", "README.md"]
    for name in [*sources(), *beside, "LICENSE"]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return folder


def made(tree, hook, folder, before="pass"):
    """The distribution that a hook of the build backend makes."""
    program = f"import build_backend as b; {before}; print(b.{hook}({str(folder)!r}))"
    return folder / call([sys.executable, "-c", program], tree).splitlines()[-1]


@pytest.mark.exhaustive
def test_distributions_hold_every_file_of_the_packages(tree, tmp_path):
    libraries = [native.file_of(name) for name in native.libraries()]
    instead = "b.native.compiler = lambda: ('cc',); b.native.build = lambda name, path: ("
    instead += "path.parent.mkdir(parents=True, exist_ok=True), path.touch())"
    with zipfile.ZipFile(made(tree, "build_wheel", tmp_path, instead)) as wheel:
        held = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert sorted(held) == sorted([*sources(), *libraries])
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(held)
    with tarfile.open(made(tree, "build_sdist", tmp_path)) as sdist:
        held = [name.partition("/")[2] for name in sdist.getnames()]
    assert {*sources(), "build_backend.py", "setup.py", "pyproject.toml"} <= set(held)


BARE = '''
import os, runpy, signal, subprocess, sys
from importlib import metadata

POSIX = ("fcntl", "resource", "pwd")

os.mkdir("cuda")  # the compiler's process gets the path, too
open("cuda/__init__.py", "w").write("raise ImportError")
sys.path.insert(0, os.getcwd())

class Blocked:
    """No package of NVIDIA's, and none of the modules that only some systems have."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cuda", "nvidia", "pycuda", "pynvml", *POSIX):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
for name in POSIX: sys.modules.pop(name, None)
del os.sched_getaffinity, os.fork, os.killpg, signal.SIGKILL
subprocess.Popen.kill = subprocess.Popen.terminate  # as on Windows
real = metadata.distribution
def distribution(name):
    if name.startswith("nvidia"): raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.distribution = distribution
from toolkit.cli.app import app
for line in sys.argv[1:]:
    try: app(line.split())
    except SystemExit as end: print(f"{line.split()[0]} ended with {end.code}", file=sys.stderr)
'''


def test_without_nvidias_packages_and_posix_all_but_the_simulator_works(tmp_path):
    """As on macOS and Windows."""
    (tmp_path / "saxpy.cu").write_text(SAXPY, encoding="utf-8")
    commands = (
        "list",
        "profile -s 64 -v tiled --record a.json",
        "profile -s 64 -v tiled --executor theory --record b.json",
        "report a.json",
        "compare a.json b.json",
        "profile --executor simulate",
        "doctor",
        " ".join(("simulate", *LAUNCH)),
    )
    environment = {"PATH": "", "HOME": str(tmp_path), "GEMM_LADDER_CACHE": str(tmp_path)}
    done = ran([sys.executable, "-c", BARE, *commands], cwd=tmp_path, env=environment)
    heard = done.stderr.splitlines()
    assert heard[1].startswith("note: theory only, nothing is simulated: NVRTC is not installed: ")
    ends = [line for line in heard if " ended with " in line]
    codes = (0, 0, 0, 0, 0, 1, 0, 1)
    assert ends == [
        f"{command.split()[0]} ended with {code}"
        for command, code in zip(commands, codes, strict=True)
    ], done.stderr
    for command in ("profile", "simulate"):
        at = heard.index(f"{command} ended with 1")
        assert heard[at - 1].startswith("error: NVRTC is not installed: ")
        assert " ended with " in heard[at - 2]


def test_on_macos_no_remedy_asks_for_what_does_not_exist():
    assert nvidia_remedy("pip install x", "win32") == "pip install x"
    assert "Linux and Windows only" in nvidia_remedy("pip install x", "darwin")


@pytest.mark.parametrize("hides", ["reports/", "analysis.py"])
def test_a_users_file_that_hides_a_package_is_named(hides, tmp_path):
    path = tmp_path / hides
    path.mkdir() if hides.endswith("/") else path.touch()
    done = ran([sys.executable, "-m", "toolkit", "profile", "--shape", "8"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    name = hides.rstrip("/").removesuffix(".py")
    assert done.stderr.startswith(f"error: {path} hides gemm-ladder's own package {name!r}: rename")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("is_package", [True, False])
def test_a_users_folder_toolkit_is_named(is_package, tmp_path):
    folder = tmp_path / "toolkit"
    folder.mkdir()
    if is_package:
        (folder / "__init__.py").touch()
    # An editable install finds our __main__.py and the user's package, as this does
    command = [sys.executable, "-P", ROOT / "toolkit" / "__main__.py", "list"]
    done = ran(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {folder}")
    assert " hides gemm-ladder's own package 'toolkit': rename it" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "simulate"])
def test_a_python_without_the_packages_is_named(command):
    done = ran([sys.executable, "-S", "-m", "toolkit", command], cwd=ROOT)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: typer is not installed for {sys.executable}: install")
    assert done.stderr.count("\n") == 1


# Real builds, in fresh environments.


def python_of(environment):
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def fresh(folder, distribution, *options):
    """Python of a new environment with a distribution and what it asks for, by plain pip."""
    venv.create(folder, with_pip=True)
    call([python_of(folder), "-m", "pip", "install", "-q", *options, distribution], folder)
    return python_of(folder)


def use(python, folder):
    """Run the commands in an empty folder, as a user of the package does."""
    folder.mkdir()
    (folder / "saxpy.cu").write_text(SAXPY, encoding="utf-8")
    for command in COMMANDS:
        call([python.with_name("gemm-ladder"), *command], folder)
    found = call([python, "-c", "import toolkit; print(toolkit.__file__)"], folder)
    assert "site-packages" in found
    assert (folder / "profile.html").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("hook", ["build_wheel", "build_sdist"])
def test_an_installed_package_works_from_an_empty_folder(hook, tree, tmp_path):
    use(fresh(tmp_path / "venv", made(tree, hook, tmp_path)), tmp_path / "empty")


@pytest.mark.exhaustive
def test_the_oldest_versions_of_what_it_needs_are_enough(tree, tmp_path):
    uv = [sys.executable, "-m", "uv"]
    call([*uv, "venv", "-q", tmp_path / "venv", "--python", sys.executable], tmp_path)
    python = python_of(tmp_path / "venv")
    install = [*uv, "pip", "install", "-q", "--python", python, "--resolution", "lowest-direct"]
    call([*install, made(tree, "build_wheel", tmp_path)], tmp_path)
    use(python, tmp_path / "empty")
    wrong = ran([python, "-m", "toolkit", "profile", "--seconds", "none"], cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: --seconds 'none': give a number")


@pytest.fixture
def without_compilers(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)


@pytest.mark.exhaustive
def test_an_install_without_a_compiler_can_simulate(tree, tmp_path, without_compilers):
    python = fresh(tmp_path / "venv", tree)
    use(python, tmp_path / "empty")
    assert "AVX2" in call([python, "-m", "toolkit", "doctor"], tmp_path) or (
        native.MACHINE != "x86_64"
    )


@pytest.mark.exhaustive
def test_an_install_with_no_compiler_at_all_says_so_and_can_be_repaired(
    tree, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        patch.delenv("CC", raising=False)
        environment = tmp_path / "venv"
        venv.create(environment, with_pip=True)
        python = python_of(environment)
        # no isolation: the backend's wish for the compiler's wheel is not fulfilled
        call([python, "-m", "pip", "install", "-q", "setuptools>=77"], tmp_path)
        call([python, "-m", "pip", "install", "-q", "--no-build-isolation", tree], tmp_path)
        empty = tmp_path / "empty"
        empty.mkdir()
        run = [python, "-m", "toolkit"]
        auto = ran([*run, "profile", "-s", "64", "-v", "tiled"], cwd=empty)
        assert auto.returncode == 0
        assert auto.stderr.startswith(
            "note: theory only, nothing is simulated: the simulator's native core was not built: "
        )
        forced = ran([*run, "profile", "--executor", "simulate"], cwd=empty)
        assert forced.returncode == 1
        assert forced.stderr.startswith("error: the simulator's native core was not built: run ")
        assert "python -m toolkit.native" in call([*run, "doctor"], empty)
        call([python, "-m", "pip", "install", "-q", "ziglang"], empty)
        call([python, "-m", "toolkit.native"], empty)
    use(python, tmp_path / "repaired")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "platform", ["x86_64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]
)
def test_the_dependencies_exist_for_a_platform(platform, tmp_path):
    resolved = call(
        [sys.executable, "-m", "uv", "pip", "compile", "-q", "--python-platform", platform,
         "--python-version", "3.11", "--only-binary", ":all:", "--no-header", "--no-annotate",
         "pyproject.toml"],
        ROOT,
    )  # fmt: skip
    assert ("nvrtc" in resolved) == ("darwin" not in platform)
    assert "numpy==" in resolved
