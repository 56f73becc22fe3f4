"""The process that launches what a profiler counts, on the made-up GPU of conftest.py."""

import re
import sys

import pytest

from kernels import find
from tests.cubins import cubin_of
from tests.processes import ran
from tests.toolkit.counted import launch_of
from toolkit.gpu.context import Gpu
from toolkit.gpu.nsight_compute.replay_process import LaunchFolder, launch_all, main, marker_source

BOTH = ("tiled:tile=16", "cublas")


def kept(folder, *shapes, labels=BOTH, seed=3):
    """The launches of labels at shapes, compiled by the made-up PyCUDA."""
    launches = LaunchFolder(folder)
    for shape in shapes:
        at_shape = [launch_of(label, shape) for label in labels]
        with Gpu() as gpu:
            images = {
                launch.label: gpu.load(source_of(launch), launch.entry, name="x.cu").cubin.image
                for launch in at_shape
                if launch.entry
            }
            name = at_shape[0].marker
            markers = gpu.load(marker_source(at_shape), name, name="m.cu").cubin.image
        launches.add(at_shape, seed=seed, images=images, markers=markers)
    return launches


def source_of(launch):
    variant = find(launch.label.partition(":")[0])
    return variant.source


def events(cuda):
    ignored = ("allocate", "fill")
    return [event for event in cuda.log if not event.startswith(ignored)]


def test_the_profiler_sees_a_marker_and_the_launch(cuda, cublas, tmp_path):
    kept(tmp_path, "32", "48x40x24")
    said = []
    assert launch_all(tmp_path, (), said.append)
    expected, lines = [], []
    for shape in ("32x32x32", "48x40x24"):
        tiled, library = f"next_is__tiled_tile_16__{shape}", f"next_is__cublas__{shape}"
        expected += ["start profiler", tiled, "sgemm_tiled", "stop profiler"]
        expected += ["cublas", "start profiler", library, "cublas", "stop profiler"]
        lines += [f"begins {tiled}", f"begins {library}"]
    assert events(cuda) == expected
    assert said == [*lines, "ends"]


def test_only_what_is_chosen_is_launched(cuda, cublas, tmp_path):
    kept(tmp_path, "32", "48")
    assert launch_all(tmp_path, ["next_is__tiled_tile_16__48x48x48"])
    assert events(cuda)[1:3] == ["next_is__tiled_tile_16__48x48x48", "sgemm_tiled"]
    assert "cublas" not in events(cuda)


def test_inputs_are_those_of_the_seed(cuda, cublas, tmp_path):
    seen = []

    def kernel(launch):
        seen.append(launch.floats(0).tobytes())

    cuda.kernels["sgemm_tiled"] = kernel
    for seed in (3, 3, 4):
        kept(tmp_path, "32", labels=("tiled",), seed=seed)
        launch_all(tmp_path, ())
    assert seen[0] == seen[1] != seen[2]


def test_padded_launches_are_padded(cuda, cublas, tmp_path):
    seen = []
    cuda.kernels["sgemm_vectorized"] = lambda launch: seen.append(
        [int(size) for size in launch.arguments[3:6]]
    )
    kept(tmp_path, "10x7x13", labels=("vectorized",))
    launch_all(tmp_path, ())
    assert seen == [[10, 8, 16]]


def test_a_launch_that_fails_does_not_end_the_others(cuda, cublas, tmp_path):
    cublas.error = RuntimeError("CUBLAS_STATUS_ALLOC_FAILED\nmore")
    kept(tmp_path, "32", labels=("cublas", "tiled"))
    said = []
    assert not launch_all(tmp_path, (), said.append)
    assert said[1] == "fails next_is__cublas__32x32x32 cuBLAS: CUBLAS_STATUS_ALLOC_FAILED"
    assert said[2:] == ["begins next_is__tiled__32x32x32", "ends"]


def test_a_fault_ends_the_process(cuda, cublas, tmp_path):
    cuda.kernels["sgemm_tiled"] = lambda launch: launch.cuda.fault()
    kept(tmp_path, "32", labels=("tiled", "naive-coalesced"))
    said = []
    assert not launch_all(tmp_path, (), said.append)
    assert said[-1].startswith("fails next_is__tiled__32x32x32 launch: ")
    assert "ends" not in said


def test_the_command_says_lines_and_a_code(cuda, cublas, tmp_path, capsys):
    kept(tmp_path, "32", labels=("tiled",))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "begins next_is__tiled__32x32x32\nends\n"
    cuda.gpus = 0
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: the CUDA driver finds no GPU (")


def test_the_command_runs_from_every_folder(tmp_path):
    """With no GPU it ends in the line that says so."""
    from toolkit.gpu.nsight_compute.replay_process import process_environment

    (tmp_path / "launches.json").write_text("[]")
    done = ran(LaunchFolder(tmp_path).command(), cwd=tmp_path, env=process_environment())
    assert (done.returncode, done.stdout) in [(0, "ends\n"), (1, "")]
    assert re.fullmatch(r"(error: .+\n)?", done.stderr)
    assert LaunchFolder(tmp_path).command()[0] == sys.executable


@pytest.mark.parametrize("labels", [("tiled:tile=16", "coarsened-2d:bk=16", "cublas")])
def test_markers_are_kernels_that_compile(labels):
    launches = [launch_of(label, "4096") for label in labels]
    for launch in launches:
        cubin_of(marker_source(launches), launch.marker)
