"""`run` on a made-up GPU, which takes 40 µs for a launch, and on one that is there."""

import json
import re
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from analysis.devices import DEVICES
from analysis.errors import LaunchError
from tests.toolkit.cli.commands import invoke, refused, write
from tests.toolkit.conftest import product
from tests.toolkit.remedies.launches import TRANSPOSE
from toolkit.store.profile_json import load_launch

N = 1024
LAUNCH = (
    f"transpose.cu -g {N // 32},{N // 32} -b 32,8 -a f32[{N},{N}]=zeros -a f32[{N},{N}] -a {N} "
    "--seed 1"
)
INLINED = """__device__ __forceinline__ float third(const float *p) { return 3 * *p; }
__global__ void k(float *y, const float *x) {
    y[threadIdx.x] = third(x + threadIdx.x);
}
"""
TEMPLATE = """template <int N> __global__ void fill(float *x) { x[threadIdx.x] = N; }
"""


@pytest.fixture(autouse=True)
def sources(folder):
    write("transpose.cu", TRANSPOSE)


@pytest.fixture
def h100(cuda, monkeypatch):
    """The made-up GPU, whose L2 is too small for a prediction, as an H100."""

    def transpose(launch):
        out, n = launch.floats(0)[: N * N].reshape(N, N), int(launch.arguments[2])
        out[:] = launch.floats(1)[: n * n].reshape(n, n).T

    cuda.product = transpose  # whatever the symbol is
    cuda.launch_s = 40e-6
    monkeypatch.setattr("toolkit.cli.run._gpu", lambda: DEVICES["h100-sxm"])
    return cuda


def shown(command):
    result = invoke(f"run {command}")
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_without_a_gpu_one_line_names_simulate():
    said = refused(f"run {LAUNCH}")
    assert said.startswith("no GPU to measure on: this machine has no NVIDIA driver (")
    assert "`python -m toolkit simulate` predicts the time without a GPU" in said


def test_the_measured_time_is_first_and_the_prediction_explains_it(h100):
    first, cause, line, *rest = shown(f"{LAUNCH} --no-remedies").splitlines()
    assert re.fullmatch(
        r"transpose: 40\.00 µs \(40\.00 to 40\.00\) measured on NVIDIA H100 SXM5 80 GB, "
        r"L2 dirty, [\d.]+ µs \([\d.]+ to [\d.]+\) predicted\.",
        first,
    )
    assert re.search(r"[\d.]+ of [\d.]+ µs predicted[.;]", cause)
    assert line == "Line 11 takes 32 wavefronts per shared load, ideal 1."
    text = "\n".join(rest)
    unexplained = re.search(r"^  unexplained +░+ +([\d.]+)$", text, re.MULTILINE)
    predicted = float(re.search(r"([\d.]+) µs \([^)]*\) predicted", first)[1])
    assert float(unexplained[1]) == pytest.approx(40 - predicted, abs=0.1)
    assert re.search(
        r"^measured +median of 20 launches and its 95 % interval; .* shorter$", text, re.MULTILINE
    )
    assert len(rest) + 3 <= 45


def test_blocks_that_were_not_simulated_are_not_called_unchecked(h100):
    options = f"{LAUNCH} --no-remedies"
    simulated = invoke(f"simulate {options} -d h100-sxm").stdout
    assert "not executed, so faults in them are not found (--blocks all)" in simulated
    assert "not executed" not in shown(options)  # the GPU executed all


def test_every_remedy_that_was_made_is_measured(h100):
    lines = shown(f"{LAUNCH} --no-lines").splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip().startswith("remedies"))
    assert lines[start].split() == ["remedies", "saves", "new", "time,", "µs", "measured,", "µs"]
    assert lines[start + 2].startswith(" 1  line 2: tile[32][32 + 1], pads each row")
    assert lines[start + 2].split()[-1] == "40.0"  # the made-up GPU is as fast with it


def test_a_page_has_the_measured_time_beside_the_predicted_one(h100):
    shown(f"{LAUNCH} --html page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<span class="v">40.0</span><small>µs</small><i>measured; ' in page
    assert page.count('class="unexplained" x="0"') == 1
    assert "40.0 µs measured with it" in page


def test_without_a_prediction_there_is_the_time_alone(h100):
    text = shown(f"{LAUNCH} --no-predict --html page.html")
    assert text.startswith("transpose: 40.00 µs (40.00 to 40.00) measured on NVIDIA H100")
    assert "What limits it is unknown without a predicted time." in text
    assert "occupancy " in text  # the device is known
    page = Path("page.html").read_text(encoding="utf-8")
    assert "measured, not divided" in page
    assert "of 64 warps fit on an SM" in page


def test_a_launch_that_the_simulator_refuses_is_measured(h100, monkeypatch):
    def fails(*arguments, **named):
        raise LaunchError("transpose: line 6 is too hard")

    monkeypatch.setattr("toolkit.cli.call.simulate", fails)
    assert "note: not predicted: transpose: line 6 is too hard\n" in shown(LAUNCH)
    shown(f"{LAUNCH} --html page.html")
    assert "not predicted: transpose: line 6 is" in Path("page.html").read_text(encoding="utf-8")
    document = json.loads(shown(f"{LAUNCH} --json"))
    assert document["prediction_basis"] == "not predicted: transpose: line 6 is too hard"
    assert document["samples_s"] == pytest.approx([40e-6] * 20)


def test_outputs_are_those_of_the_gpu(h100):
    shown(f"{LAUNCH} --no-predict --save 0=out.npy --save 1=in.npy")
    found, given = np.load("out.npy"), np.load("in.npy")
    assert (found == given.T).all()
    assert given.any()
    document = json.loads(shown(f"{LAUNCH} --no-predict --json"))
    hashes = [one["sha256"] for one in document["outputs"]]
    assert hashes == [sha256(one.tobytes()).hexdigest() for one in (found, given)]


def test_inlined_functions_count_at_their_own_lines_if_asked(h100):
    write("k.cu", INLINED)
    h100.product = lambda launch: None
    options = "k.cu -k k -g 1 -b 32 -a f32[32] -a f32[32] --no-remedies"
    hint = "lines of inlined functions: --inner-lines\n"
    assert hint in shown(options)
    assert hint not in shown(f"{options} --inner-lines")
    loads = [
        one["line"]
        for one in json.loads(shown(f"{options} --inner-lines --json"))["lines"]
        if one["counters"].get("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum")
    ]
    assert loads == [1]


def test_two_documents_are_compared_by_their_measured_times(h100):
    write("a.json", shown(f"{LAUNCH} --json"))
    h100.launch_s = 50e-6
    write("b.json", shown(f"{LAUNCH} --json"))
    assert load_launch("a.json").samples_s == pytest.approx((40e-6,) * 20)
    result = invoke("compare a.json b.json --fail-on time")
    assert result.exit_code == 3
    assert result.stderr == "error: --fail-on time: slower, 40.00 µs → 50.00 µs\n"


def test_a_fault_is_one_line(h100):
    h100.product = lambda launch: launch.cuda.fault()
    assert refused(f"run {LAUNCH}") == (
        "transpose: cuCtxSynchronize failed: an illegal memory access was encountered: "
        "`python -m toolkit check` names the line, without a GPU"
    )


def test_templates_and_rungs_are_launched_by_the_names_that_simulate_takes(h100):
    write("fill.cu", TEMPLATE)
    h100.kernels["_Z4fillILi3EEvPf"] = lambda launch: launch.floats(0).__setitem__(slice(32), 3)
    text = shown("fill.cu -k 'fill<3>' -g 1 -b 32 -a f32[32] --save 0=x.npy --no-remedies")
    assert text.startswith("fill<3>: 40.00 µs")
    assert (np.load("x.npy") == 3).all()
    h100.product = product
    assert shown("tiled -s 64 --no-lines").startswith("sgemm_tiled: 40.00 µs")


def test_apply_needs_remedies():
    for without in ("--no-remedies", "--no-predict"):
        assert f"not with {without}" in invoke(f"run {LAUNCH} --apply 1 {without}").stderr


def test_help_gives_the_defaults_of_run():
    said = " ".join(invoke("run --help").stdout.split())
    assert "[default: that of the GPU]" in said
    assert "The GPU executes all. [default: representative]" in said
    assert "Next kernel argument (see simulate --help); repeatable." in said


@pytest.mark.gpu
def test_a_launch_on_a_gpu_is_measured_and_explained(silicon, folder, monkeypatch):
    monkeypatch.undo()  # there is a GPU
    monkeypatch.chdir(folder)
    result = invoke(f"run transpose.cu {LAUNCH.partition(' ')[2]} --json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert len(document["samples_s"]) >= 20
    assert 1e-6 < document["measured_s"] < 1e-3
    assert document["device"] == silicon.device.key
    assert document["predicted"] is not None
    made = [one for one in document["remedies"] if one["after_s"] is not None]
    assert made
    assert all(0 < one["measured_s"] < document["measured_s"] for one in made[:1])
