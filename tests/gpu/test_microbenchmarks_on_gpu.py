"""Constants of the GPU that is here are what any GPU's are like."""

import json
import subprocess
import sys

import pytest


@pytest.mark.gpu
def test_constants_are_measured(tmp_path):
    path = tmp_path / "constants.json"
    command = [sys.executable, "-m", "toolkit.microbenchmarks", "--output", str(path)]
    subprocess.run([*command, "--only", "_latency_cycles"], capture_output=True, check=True)
    constants = json.loads(path.read_text(encoding="utf-8"))["constants"]
    assert {name: line["error"] for name, line in constants.items() if "error" in line} == {}
    cycles = {name: line["value"] for name, line in constants.items()}
    assert 2 <= cycles["ffma_latency_cycles"] <= 8
    assert cycles["ffma_latency_cycles"] < cycles["lds_32_latency_cycles"]
    assert cycles["lds_32_latency_cycles"] < cycles["l2_hit_latency_cycles"]
    assert cycles["l2_hit_latency_cycles"] < cycles["dram_512_mib_latency_cycles"]
