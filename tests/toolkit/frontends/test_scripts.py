"""`simulate script.py:kernel`: texts that are read, and files that are imported."""

import json
import sys
from pathlib import Path

import pytest

from analysis.errors import InputError, UnavailableError, UnknownNameError
from tests.refusals import refusal
from tests.toolkit.cli.commands import invoke
from toolkit.frontends.scripts import script_kernel

KERNELS = Path(__file__).parent / "kernels"
PYCUDA = KERNELS / "of_pycuda.py"


def printed(*words, code=0):
    """Standard output of a command."""
    result = invoke(words[0], *words[1:])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def script(tmp_path):
    """A function that writes a Python file, which is not kept as a module."""
    before = dict(sys.modules)
    path = list(sys.path)

    def write(text):
        file = tmp_path / "written.py"
        file.write_text(text)
        return file

    yield write
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]
    sys.path[:] = path


def test_the_text_of_a_program_of_pycuda_is_read_without_running_it():
    found = script_kernel(f"{PYCUDA}:module")
    assert found.compiled.source.strip().startswith("#define TWICE")
    assert found.compiled.options == ("-DUNUSED=1",)
    assert found.note is None
    assert script_kernel(f"{PYCUDA}:double").module_kernel == "doubled"


def test_variables_and_the_kind_of_launch_are_those_of_the_options(script):
    file = script('''
from pycuda.compiler import SourceModule

module = SourceModule("""
__constant__ float scale;
__device__ float last;
__global__ void k(float *x) {
    last = x[threadIdx.x] * scale;
    if (!malloc(1000)) printf("no memory");
}""")
k = module.get_function("k")
''')
    launch = [f"{file}:k", "-g", "1", "-b", "1", "-a", "f32[1]=ones", "--set", "scale=3"]
    found = json.loads(printed("simulate", *launch, "--heap", "64", "--cooperative", "--json"))
    (last,) = (one for one in found["variables"] if one["name"] == "last")
    assert last["values"] == 3.0
    assert not [one for one in found["notes"] if "was not set" in one]
    assert (found["settings"], found["cooperative"]) == (["scale=3"], True)
    assert (found["heap_bytes"], found["printed"]) == (64, "no memory")
    assert "no memory" not in printed("check", *launch)


def test_a_text_that_is_computed_is_refused():
    said = refusal(InputError, script_kernel, f"{PYCUDA}:computed")
    assert "the text of the SourceModule is computed: give it to simulate in Python" in said


def test_the_command_simulates_a_program_of_pycuda():
    shown = printed(
        "simulate",
        f"{PYCUDA}:double",
        *("-g", "2", "-b", "32", "-a", "f32[64]", "-a", "40", "--json"),
    )
    document = json.loads(shown)
    assert document["kernel"] == "doubled"
    assert document["source"] == "of_pycuda.py:double"
    lines = [(one["line"], one["text"]) for one in document["lines"]]
    assert (10, "if (i < n) x[i] = TWICE(x[i]);") in lines
    assert document["remedies"] == []


def test_the_command_checks_a_program_of_pycuda():
    shown = printed(
        "check",
        f"{PYCUDA}:double",
        *("-g", "2", "-b", "32", "-a", "f32[30]", "-a", "40"),
        code=1,
    )
    assert "argument 0 `x`, float32[30]" in shown
    assert "of_pycuda.py, line 10" in shown


def test_an_imported_kernel_says_that_the_file_ran(script):
    file = script(
        "print('the top level runs')\n"
        "from toolkit import CudaText\n"
        "kernel = CudaText('__global__ void one(float *x) { x[threadIdx.x] = 1; }')\n"
    )
    shown = printed("simulate", f"{file}:kernel", "-g", "1", "-b", "32", "-a", "f32[32]")
    assert f"note: {file.name} was imported, which runs its top level" in shown


@pytest.mark.parametrize(
    ("text", "name", "error", "said"),
    [
        ("import triton\n", ":k", UnavailableError, "triton, which is not installed: pip install"),
        ("from numba import cuda\n", ":k", UnavailableError, "pip install 'numba-cuda[cu13]'"),
        ("import cupy\n", ":k", UnavailableError, "pip install cupy-cuda13x"),
        ("import nowhere_at_all\n", ":k", InputError, "No module named 'nowhere_at_all'"),
        ("\n1 / 0\n", ":k", InputError, "line 2 stops when it is imported: ZeroDivisionError"),
        ("raise SystemExit(3)\n", ":k", InputError, "stops when it is imported: SystemExit: 3"),
        ("k = 5\n", ":k", InputError, "is int, which is no kernel of Triton, Numba, CuPy"),
        ("def f(:\n", ":k", InputError, "line 1: invalid syntax"),
        ("@triton.jit\ndef add(): pass\n", "", InputError, "name the kernel: "),
        ("@jit\ndef add(): pass\n", "", InputError, ".py:add"),
    ],
)
def test_what_goes_wrong_is_one_line(script, monkeypatch, text, name, error, said):
    for package in ("triton", "numba", "cupy"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    assert said in refusal(error, script_kernel, f"{script(text)}{name}")


def test_functions_of_the_host_and_of_the_device_are_no_kernels(script):
    file = script(
        "@numba.jit(nopython=True)\ndef edges(): pass\n"
        "@cuda.jit(device=True)\ndef bin(): pass\n"
        "@cuda.jit\ndef histogram(): pass\n"
    )
    assert refusal(InputError, script_kernel, str(file)).endswith(
        f"name the kernel: {file}:histogram"
    )


def test_a_name_that_is_not_there_is_suggested(script):
    file = script("from toolkit import CudaText\nkernel = CudaText('')\n")
    said = refusal(UnknownNameError, script_kernel, f"{file}:kernl")
    assert "did you mean 'kernel'?" in said


def test_run_watch_and_apply_take_no_python_file_and_say_what_does():
    launch = ("-g", "2", "-b", "32", "-a", "f32[64]", "-a", "40")
    watched = invoke("simulate", f"{PYCUDA}:double", *launch, "--watch")
    assert "not a kernel of a Python file: leave out --watch, and run the command" in watched.stderr
    measured = invoke("run", f"{PYCUDA}:double", *launch)
    assert f"not {PYCUDA}:double: time it with its front end" in measured.stderr
    applied = invoke("simulate", f"{PYCUDA}:double", *launch, "--apply", "1")
    assert "is Python, which is not edited: put the CUDA C++ text of a RawKernel" in applied.stderr
