"""The recorded hardware counters, counted again on the GPU that is here."""

import json
import subprocess
import sys

import pytest

from validation import ROOT, recordings

TESTS = ROOT / "tests"
EXACT = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
)


@pytest.mark.ncu
def test_exact_counters_repeat():
    script = "validation.counters.hardware_counters"
    recording = recordings.read(TESTS / "kernels/recorded/counters_sm_90.json")
    done = subprocess.run(
        [sys.executable, "-m", script, "256x256x256", "127x129x31"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    recorded = {(x["label"], x["executed_shape"]): x["counters"] for x in recording["launches"]}
    launches = json.loads(done.stdout)["launches"]
    assert len(launches) == 38  # 19 kernels at two shapes; one-block takes neither
    for launch in launches:
        expected = recorded[launch["label"], launch["executed_shape"]]
        assert {name: launch["counters"][name] for name in EXACT} == {
            name: expected[name] for name in EXACT
        }, launch["label"]
